//! `subscriptions/listen`: what a client wants to hear of its own accord, on a stream that stays
//! open.
//!
//! Rules kept here:
//! - Nothing is told that was not asked for.
//! - Everything on the stream carries the id of the request that opened it.

use std::collections::BTreeSet;

use serde_json::value::RawValue;

use super::{Refused, SUBSCRIPTION_ID};
use crate::{
    message::{self, INVALID_PARAMS, Id, Params},
    raw::{Fields, quoted},
};

/// The method.
pub const METHOD: &str = "subscriptions/listen";
/// The first message on the stream.
pub const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
/// A resource was updated.
pub const UPDATED: &str = "notifications/resources/updated";
/// Resources that one stream may be about.
pub const URIS_MAX: usize = 1000;
/// Bytes of one of them, and of all.
pub const URI_MAX: usize = 8 * 1024;
const URIS_BYTES_MAX: usize = 256 * 1024;

/// What a client wants to hear.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// That the tools have changed.
    pub tools: bool,
    /// That the prompts have changed.
    pub prompts: bool,
    /// That the resources have changed.
    pub resources: bool,
    /// That one of these was updated.
    pub uris: BTreeSet<String>,
}

impl Filter {
    /// Reads the params of the request.
    ///
    /// # Errors
    /// They say nothing that can be understood.
    pub fn read(params: Option<&RawValue>) -> Result<Self, Refused> {
        let bad = |message: &str| Refused::new(INVALID_PARAMS, message);
        let params = Params::parse(params);
        let params = params.map_err(|flaw| bad(&format!("params: {flaw}")))?;
        let wishes = params.get("notifications");
        let wishes = wishes.ok_or_else(|| bad("params need an object `notifications`"))?;
        let wishes = Fields::of(wishes, &[]);
        let wishes = wishes.map_err(|flaw| bad(&format!("params.notifications: {flaw}")))?;
        let is_set = |name| wishes.get(name).is_some_and(|value| value.get() == "true");
        let uris = wishes.get("resourceSubscriptions").map(RawValue::get).unwrap_or("[]");
        let too_many = "params.notifications: too many or too long uris for one stream";
        if uris.len() > URIS_BYTES_MAX {
            return Err(bad(too_many));
        }
        let uris: BTreeSet<String> = serde_json::from_str(uris)
            .map_err(|_| bad("params.notifications: `resourceSubscriptions` is a list of uris"))?;
        if uris.len() > URIS_MAX || uris.iter().any(|uri| uri.len() > URI_MAX) {
            return Err(bad(too_many));
        }
        Ok(Self {
            tools: is_set("toolsListChanged"),
            prompts: is_set("promptsListChanged"),
            resources: is_set("resourcesListChanged"),
            uris,
        })
    }

    /// The filter as a client writes it, or as it is acknowledged.
    #[must_use]
    pub fn to_json(&self) -> String {
        let flags = [
            ("toolsListChanged", self.tools),
            ("promptsListChanged", self.prompts),
            ("resourcesListChanged", self.resources),
        ];
        let flags = flags.iter().filter(|(_, is_set)| *is_set);
        let mut parts: Vec<String> = flags.map(|(name, _)| format!(r#""{name}":true"#)).collect();
        if !self.uris.is_empty() {
            let uris: Vec<String> = self.uris.iter().map(|uri| quoted(uri)).collect();
            parts.push(format!(r#""resourceSubscriptions":[{}]"#, uris.join(",")));
        }
        format!("{{{}}}", parts.join(","))
    }

    /// Whether there is anything to hear.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether a notification was asked for.
    #[must_use]
    pub fn wants(&self, method: &str, params: Option<&str>) -> bool {
        match method {
            "notifications/tools/list_changed" => self.tools,
            "notifications/prompts/list_changed" => self.prompts,
            "notifications/resources/list_changed" => self.resources,
            UPDATED => uri_of(params).is_some_and(|uri| self.uris.contains(&uri)),
            _ => false,
        }
    }
}

fn uri_of(params: Option<&str>) -> Option<String> {
    Fields::parse(params?, &[]).ok()?.text("uri")
}

/// A notification on the stream that the request of this id opened.
#[must_use]
pub fn tagged(method: &str, params: Option<&str>, id: &Id) -> String {
    let mut fields = Fields::parse(params.unwrap_or("{}"), &[]).unwrap_or_default();
    tag(&mut fields, id);
    message::notification(method, Some(&fields.to_json()))
}

/// The first message on a stream.
#[must_use]
pub fn acknowledgement(filter: &Filter, id: &Id) -> String {
    let params = format!(r#"{{"notifications":{}}}"#, filter.to_json());
    tagged(ACKNOWLEDGED, Some(&params), id)
}

/// The last: the result of the request, still undressed.
#[must_use]
pub fn farewell(id: &Id) -> String {
    let mut fields = Fields::default();
    tag(&mut fields, id);
    fields.to_json()
}

fn tag(fields: &mut Fields<'_>, id: &Id) {
    let id = RawValue::from_string(id.as_json().to_owned()).expect("an id is JSON");
    // A flawed `_meta` is replaced by one that can be read.
    if fields.edit("_meta", &[], |meta| meta.set(SUBSCRIPTION_ID, id.clone())).is_err() {
        fields.remove("_meta");
        drop(fields.edit("_meta", &[], |meta| meta.set(SUBSCRIPTION_ID, id)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(json: &str) -> Result<Filter, Refused> {
        Filter::read(Some(&RawValue::from_string(json.to_owned()).expect("json")))
    }

    #[test]
    fn only_what_was_asked_for_is_told_with_the_id_of_the_request() {
        let wishes = r#"{"notifications":{"toolsListChanged":true,"promptsListChanged":false,
            "resourceSubscriptions":["a:b"],"later":true}}"#;
        let filter = filter(wishes).expect("a good filter");
        assert_eq!(
            filter.to_json(),
            r#"{"toolsListChanged":true,"resourceSubscriptions":["a:b"]}"#
        );
        assert!(filter.wants("notifications/tools/list_changed", None));
        assert!(!filter.wants("notifications/prompts/list_changed", None));
        assert!(filter.wants(UPDATED, Some(r#"{"uri":"a:b"}"#)));
        assert!(!filter.wants(UPDATED, Some(r#"{"uri":"a:c"}"#)) && !filter.wants(UPDATED, None));
        let told = tagged(UPDATED, Some(r#"{"uri":"a:b","_meta":{"k":1}}"#), &Id::number(7));
        let meta = r#""_meta":{"k":1,"io.modelcontextprotocol/subscriptionId":7}"#;
        assert!(told.contains(meta), "{told}");
    }

    #[test]
    fn a_filter_that_says_nothing_is_refused() {
        for bad in
            ["{}", r#"{"notifications":1}"#, r#"{"notifications":{"resourceSubscriptions":1}}"#]
        {
            assert_eq!(filter(bad).expect_err("bad").code, INVALID_PARAMS, "{bad}");
        }
    }
}
