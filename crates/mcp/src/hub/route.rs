//! Which server a request goes to, and what that server is to be asked.

use std::sync::Arc;

use serde_json::value::RawValue;

use super::calls::Requested;
use super::ids::{CallId, ClientId};
use super::relay::Relayed;
use super::server::ServerGroup;
use super::{CallTrace, Hub, Random, ids::LinkId, relay::Answered};
use crate::{
    call::Replayability,
    catalogue::Catalogue,
    message::{INVALID_PARAMS, Params, RESOURCE_NOT_FOUND},
    raw::Flaw,
    stateless::{heading, mirror},
};

/// Where a request goes, with params as its server knows them.
pub(super) struct CallRoute {
    /// A reload may move it, so it is not known by its place.
    pub(super) group: Arc<ServerGroup>,
    /// An object as text.
    pub(super) params: Arc<str>,
    pub(super) replayability: Replayability,
    pub(super) progress: Option<Box<RawValue>>,
    /// The `name` that the client wrote, for the record of the call.
    pub(super) name: Option<String>,
    /// How the tool is described to clients, if it is one.
    pub(super) tool: Option<Arc<str>>,
    /// Headers that repeat arguments.
    pub(super) mirrored: Vec<(String, String)>,
    /// The call's own place in the client's trace, which its server is told.
    pub(super) trace: Option<CallTrace>,
}

/// A request that goes nowhere: an error's code and words.
type NoRoute = (i64, String);

impl Hub {
    /// Which server, and what it is to be asked. A call that was wrapped in another has no headers
    /// of its own.
    pub(super) fn route_of(
        &mut self,
        random: &mut dyn Random,
        id: CallId,
        what: Relayed,
        is_wrapped: bool,
    ) -> Result<CallRoute, NoRoute> {
        let gone = || (INVALID_PARAMS, "its server has just been taken away".to_owned());
        let client = self.calls.get(id).ok_or_else(gone)?.client;
        let catalogue = self.catalogue_of(client);
        let call = self.calls.get(id).ok_or_else(gone)?;
        let flawed = |flaw: Flaw| (INVALID_PARAMS, format!("params: {flaw}"));
        let mut params = Params::parse(call.params.as_deref()).map_err(flawed)?;
        let named = params.text("name");
        let mut described = None;
        let mut mirrored = Vec::new();
        let (slot, replayability) = match what {
            Relayed::CallTool => {
                let name = named.as_deref().ok_or_else(|| missing("name"))?;
                let offered = catalogue.tool(name).filter(|it| self.may_use(client, it.server));
                let Some(offered) = offered else {
                    let nearest = catalogue.nearest_tool(name, |slot| self.sees(client, slot));
                    let hint = nearest.map(|it| format!("; did you mean `{it}`?"));
                    let hint = hint.unwrap_or_default();
                    let message = format!("unknown tool: `{}`{hint}", shown(name));
                    return Err((INVALID_PARAMS, message));
                };
                params.set_text("name", &offered.own);
                let raw = Arc::clone(&offered.raw);
                // Only a tool that wants arguments repeated in headers has them looked into.
                let large = call.large.as_ref().filter(|_| raw.contains(mirror::KEY));
                let large = large.and_then(|it| RawValue::from_string(it.text().to_owned()).ok());
                let arguments = large.as_deref().or_else(|| params.get("arguments"));
                if call.envelope.is_some() && !is_wrapped {
                    let checked = mirror::check_call(&raw, arguments, &call.headers);
                    checked.map_err(|refused| (refused.code, refused.message))?;
                }
                mirrored = repeated(&raw, arguments, &call.headers);
                described = Some(raw);
                let may_replay = offered.hints.may_replay();
                let repeatable = Replayability::Repeatable;
                (offered.server, if may_replay { repeatable } else { Replayability::Once })
            }
            Relayed::GetPrompt => {
                let name = named.as_deref().ok_or_else(|| missing("name"))?;
                let offered = catalogue.prompt(name).filter(|it| self.may_use(client, it.server));
                let offered = offered.ok_or_else(|| unknown_prompt(name))?;
                params.set_text("name", &offered.own);
                (offered.server, Replayability::Repeatable)
            }
            Relayed::Complete => {
                (self.completion(client, &catalogue, &mut params)?, Replayability::Repeatable)
            }
            Relayed::ReadResource | Relayed::Subscribe | Relayed::Unsubscribe => {
                (self.resource(client, &catalogue, &params)?, Replayability::Repeatable)
            }
        };
        let progress = params.progress_token();
        let trace = params.trace_parent().and_then(|parent| random.trace(&parent));
        if let Some(trace) = &trace {
            // A `_meta` that is no object was refused when the message came in.
            drop(params.set_trace_parent(&trace.header));
        }
        let params = params.to_json().into();
        let group = self.group_at(client, slot).ok_or_else(gone)?;
        let (name, tool) = (named, described);
        Ok(CallRoute { group, params, replayability, progress, name, tool, mirrored, trace })
    }

    fn resource(
        &self,
        client: ClientId,
        catalogue: &Catalogue,
        params: &Params<'_>,
    ) -> Result<usize, NoRoute> {
        let uri = params.text("uri").ok_or_else(|| missing("uri"))?;
        if let Some(slot) = self.slot_of_uri(client, catalogue, &uri) {
            return Ok(slot);
        }
        let mut message = format!("resource not found: `{}`", shown(&uri));
        let slots = self.clients.get(client).map(|it| it.slots.as_slice()).unwrap_or_default();
        for (at, slot) in slots.iter().enumerate() {
            if self.may_use(client, at) && catalogue.is_unreached(at) {
                let name = &slot.group.name;
                message
                    .push_str(&format!("; server `{name}`, which may have it, was never reached"));
            }
        }
        Err((RESOURCE_NOT_FOUND, message))
    }

    /// Who has a resource: who lists it, who has a template for it, or the only one who may have
    /// any. Where several may, also one that was never reached, nobody is asked at random.
    fn slot_of_uri(&self, client: ClientId, catalogue: &Catalogue, uri: &str) -> Option<usize> {
        let found = catalogue.server_of(uri).filter(|slot| self.may_use(client, *slot));
        if found.is_some() {
            return found;
        }
        let kept = self.clients.get(client)?;
        let may_have = |(at, group): (usize, &ServerGroup)| {
            let listing = self.listing(group, &kept.profile);
            let is_able = listing.is_none_or(|listing| listing.info.can("resources"));
            let is_it = self.may_use(client, at) && self.is_usable(group) && is_able;
            is_it.then_some(at)
        };
        let slots = kept.slots.iter().enumerate().map(|(at, slot)| (at, &*slot.group));
        let mut able = slots.filter_map(may_have);
        let only = able.next()?;
        able.next().is_none().then_some(only)
    }

    fn completion(
        &self,
        client: ClientId,
        catalogue: &Catalogue,
        params: &mut Params<'_>,
    ) -> Result<usize, NoRoute> {
        let wrong = |flaw| (INVALID_PARAMS, format!("params.ref: {flaw}"));
        let reference = params.reference().map_err(wrong)?;
        let (name, uri) = (reference.text("name"), reference.text("uri"));
        drop(reference);
        if let Some(name) = name {
            let offered = catalogue.prompt(&name).filter(|it| self.may_use(client, it.server));
            let offered = offered.ok_or_else(|| unknown_prompt(&name))?;
            params.set_reference("name", &offered.own).map_err(wrong)?;
            return Ok(offered.server);
        }
        let missing = || (INVALID_PARAMS, "params.ref needs `name` or `uri`".to_owned());
        let uri = uri.ok_or_else(missing)?;
        let template = catalogue.template(&uri).filter(|it| self.may_use(client, it.server));
        let slot =
            template.map(|it| it.server).or_else(|| self.slot_of_uri(client, catalogue, &uri));
        slot.ok_or_else(|| (INVALID_PARAMS, format!("unknown resource: `{}`", shown(&uri))))
    }

    /// The server that a request is about by the prefix of its name, if nobody knows what it
    /// offers.
    pub(super) fn unreached(&mut self, id: CallId, what: Relayed) -> Option<Arc<ServerGroup>> {
        let call = self.calls.get(id)?;
        let client = call.client;
        let params = Params::parse(call.params.as_deref()).ok()?;
        let name = match what {
            Relayed::CallTool | Relayed::GetPrompt => params.text("name"),
            Relayed::Complete => params.reference().ok()?.text("name"),
            Relayed::ReadResource | Relayed::Subscribe | Relayed::Unsubscribe => None,
        };
        let slot = self.catalogue_of(client).unreached_owner(&name?)?;
        self.group_at(client, slot).filter(|_| self.may_use(client, slot))
    }

    /// What a link must know before a request goes over it; the answer, if the server is not asked:
    /// one without sessions is not told of a single subscription.
    pub(super) fn noted(&mut self, id: CallId, link: LinkId) -> Option<Answered> {
        let call = self.calls.get(id)?;
        let (client, requested) = (call.client, call.requested);
        let is_wanted = match requested {
            Requested::Relay(Relayed::Subscribe) => true,
            Requested::Relay(Relayed::Unsubscribe) => false,
            Requested::Relay(_) | Requested::List(_) => return None,
        };
        let params = call.relay.route.as_ref().and_then(|it| Params::of_text(&it.params).ok());
        let uri = params.and_then(|params| params.text("uri"));
        let is_stateless = self.is_stateless(link);
        if let Some(uri) = uri {
            self.note_subscription(client, link, uri, is_wanted);
        }
        is_stateless.then(|| Answered::Reply(Ok(bytes::Bytes::from_static(b"{}"))))
    }

    /// A link remembers what its client subscribed to, for when it is made again.
    fn note_subscription(&mut self, client: ClientId, link: LinkId, uri: String, is_wanted: bool) {
        self.note_record(client);
        let is_stateless = self.is_stateless(link);
        let server = self.links.get(link).and_then(|it| self.servers.get(it.server));
        let is_shared = server.is_some_and(|it| it.is_shared_child());
        // What a shared server tells goes to those who asked for it.
        if (is_shared || is_stateless)
            && let Some(kept) = self.clients.get_mut(client)
        {
            match is_wanted {
                true => _ = kept.subscriptions.insert(uri.clone()),
                false => _ = kept.subscriptions.remove(&uri),
            }
        }
        if is_stateless {
            let is_wanted = self.is_subscribed(&uri);
            self.subscribe_link(link, &uri, is_wanted);
        } else if !is_shared && let Some(kept) = self.links.get_mut(link) {
            match is_wanted {
                true => _ = kept.subscriptions.insert(uri),
                false => _ = kept.subscriptions.remove(&uri),
            }
        }
    }
}

fn missing(name: &str) -> NoRoute {
    (INVALID_PARAMS, format!("params need a text `{name}`"))
}

fn unknown_prompt(name: &str) -> NoRoute {
    (INVALID_PARAMS, format!("unknown prompt: `{}`", shown(name)))
}

/// The headers that repeat a call's arguments, and those of the client's that are not understood.
fn repeated(
    tool: &str,
    arguments: Option<&RawValue>,
    headers: &[(String, String)],
) -> Vec<(String, String)> {
    let mut all = mirror::headers(tool, arguments);
    let is_known = |name: &str| all.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
    let others = headers.iter().filter(|(name, _)| name.starts_with(heading::PARAM));
    let others: Vec<_> = others.filter(|(name, _)| !is_known(name)).cloned().collect();
    all.extend(others);
    all
}

/// A caller's text in a sentence of ours: not all of it if it is long.
fn shown(text: &str) -> String {
    const MAX: usize = 80;
    match text.char_indices().nth(MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
