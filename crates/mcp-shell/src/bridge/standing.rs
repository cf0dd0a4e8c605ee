//! What a client has asked for that lasts as long as its session: the level of log lines, and the
//! resources whose updates it wants to hear of. A session in place of a lost one is told again.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::value::RawValue;
use tidegate_mcp::{
    message::{self, Id, Params},
    raw::text_value,
};

/// Resources that are remembered: far more than clients watch.
const WATCHED_MAX: usize = 1000;

const LEVEL: &str = "logging/setLevel";
const WATCH: &str = "resources/subscribe";

/// What lasts, as the params that asked for it.
#[derive(Debug, Default)]
pub(super) struct Standing {
    level: Option<Box<str>>,
    /// By uri.
    watched: BTreeMap<String, Box<str>>,
}

impl Standing {
    /// Looks at a request of the client's.
    pub(super) fn see(&mut self, method: &str, params: Option<&RawValue>) {
        let text = || params.map(|params| Box::from(params.get()));
        let uri = || Params::parse(params).ok()?.text("uri");
        match method {
            LEVEL => self.level = text(),
            WATCH if self.watched.len() < WATCHED_MAX => {
                self.watched.extend(uri().zip(text()));
            }
            "resources/unsubscribe" => {
                uri().map(|uri| self.watched.remove(&uri));
            }
            _ => {}
        }
    }

    /// The requests that say all of it again, under ids of our own.
    pub(super) fn requests(&self) -> Vec<(Id, Bytes)> {
        let level = self.level.iter().map(|params| (LEVEL, &**params));
        let watched = self.watched.values().map(|params| (WATCH, &**params));
        let request = |(number, (method, params)): (usize, (&str, &str))| {
            let id = text_value(&format!("tidegate-{number}"));
            let id = Id::read(&id).expect("a short text is an id");
            let message = message::request(&id, method, Some(params));
            (id, message.into())
        };
        level.chain(watched).enumerate().map(request).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json, value::to_raw_value};

    use super::*;

    #[test]
    fn the_last_level_and_every_watched_resource_are_said_again() {
        let mut standing = Standing::default();
        for (method, params) in [
            ("logging/setLevel", json!({"level": "debug"})),
            ("resources/subscribe", json!({"uri": "a:"})),
            ("resources/subscribe", json!({"uri": "b:"})),
            ("tools/call", json!({"name": "x"})),
            ("resources/unsubscribe", json!({"uri": "a:"})),
            ("logging/setLevel", json!({"level": "error"})),
            ("resources/subscribe", json!({})),
        ] {
            standing.see(method, Some(&to_raw_value(&params).expect("JSON")));
        }
        let said = standing.requests().into_iter().map(|(_, it)| serde_json::from_slice(&it));
        let said: Vec<Value> = said.collect::<Result<_, _>>().expect("JSON");
        assert_eq!(
            said,
            [
                json!({"jsonrpc": "2.0", "id": "tidegate-0", "method": "logging/setLevel",
                    "params": {"level": "error"}}),
                json!({"jsonrpc": "2.0", "id": "tidegate-1", "method": "resources/subscribe",
                    "params": {"uri": "b:"}}),
            ]
        );
    }
}
