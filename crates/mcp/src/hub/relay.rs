//! What becomes of each request that servers answer: which server, under which name, and how its
//! answer, or its absence, is told to the client.
//!
//! ```text
//!   search mode ─▶ route ─▶ enter ─▶ asked (one server, or a group's) ─▶ between eras ─▶ answered
//!                    │ unknown: first look, then programs that start, then again
//! ```
//! Rules kept here:
//! - A tool of a server that is down, or that this session goes without, is *unavailable* and
//!   never *unknown*: the catalogue knows names regardless of health.
//! - What a server answers goes back as it came, but for what only one of two eras knows.
//! - A tool's failure is a tool's result; everything else is an error of the protocol.

use std::sync::Arc;

use bytes::Bytes;
use tidegate_core::time::{Millis, Now};

use super::bridge::Bridging;
use super::calls::{Made, Requested, has_output_schema};
use super::effect::{CallRecord, CallRecordEnd, Effect, LogLine};
use super::exchange::{ExchangeEnd, ExchangeOwner, outcome_kind};
use super::group_call::GroupState;
use super::ids::{CallId, ClientId, ExchangeId, LinkId};
use super::route::CallRoute;
use super::schedule::Task;
use super::search::{CALL_TOOL, FIND_TOOL, SearchAnswer, SearchTask};
use super::server::ServerGroup;
use super::{Env, Hub};
use crate::{
    call::{Code, End, Unavailable},
    cause::Cause,
    group_call::Attempted,
    listing::Kind,
    message::{INVALID_PARAMS, Params, RESOURCE_NOT_FOUND, error_object},
    session::{Caller, Entry},
};

/// A request of a client's that a server answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relayed {
    CallTool,
    ReadResource,
    Subscribe,
    Unsubscribe,
    GetPrompt,
    Complete,
}

impl Relayed {
    pub(super) fn of_method(method: &str) -> Option<Self> {
        Some(match method {
            "tools/call" => Self::CallTool,
            "resources/read" => Self::ReadResource,
            "resources/subscribe" => Self::Subscribe,
            "resources/unsubscribe" => Self::Unsubscribe,
            "prompts/get" => Self::GetPrompt,
            "completion/complete" => Self::Complete,
            _ => return None,
        })
    }

    pub(super) const fn method(self) -> &'static str {
        match self {
            Self::CallTool => "tools/call",
            Self::ReadResource => "resources/read",
            Self::Subscribe => "resources/subscribe",
            Self::Unsubscribe => "resources/unsubscribe",
            Self::GetPrompt => "prompts/get",
            Self::Complete => "completion/complete",
        }
    }
}

/// What became of a request to a server.
#[derive(Debug)]
pub(super) enum Answered {
    /// The text of the server's `result`, or of its `error`.
    Reply(Result<Bytes, Bytes>),
    /// What the client hears instead.
    Unavailable(Unavailable),
}

/// How far a call has come.
#[derive(Default)]
pub(super) struct Relay {
    pub(super) stage: RelayStage,
    /// Where it goes, once that is known.
    pub(super) route: Option<Box<CallRoute>>,
    /// It came out of another call, which had the headers.
    is_wrapped: bool,
    /// When it was let through to its server.
    began: Now,
    pub(super) link: Option<LinkId>,
    pub(super) group: Option<Box<GroupState>>,
    /// The members of a group that were asked, once that is over.
    pub(super) attempts: Vec<Attempted>,
    /// How often its server said that it needs to know more.
    pub(super) rounds: usize,
}

#[derive(Default)]
pub(super) enum RelayStage {
    #[default]
    Start,
    /// It is being looked at.
    Busy,
    /// A first look, and what it is for.
    Looking(LookFor, bool),
    Searching(u64),
    /// A program that is only just starting may be the one that has it.
    ChildrenUp(Now),
    /// Its server may still be connecting.
    Enter(Caller),
    /// The same of a server that was never reached.
    Unreached(Arc<ServerGroup>, Caller),
    /// Something goes to the server before it.
    Preparing(ExchangeId),
    /// In a group: the next member.
    Member,
    Asking(ExchangeId),
    /// The client is asked what its server needs to know.
    Bridging(Box<Bridging>),
}

/// What a first look is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LookFor {
    List,
    Find,
    Unwrap,
    Route,
}

impl Relay {
    /// The search that it waits for.
    pub(super) fn job(&self) -> Option<u64> {
        if let RelayStage::Searching(job) = self.stage { Some(job) } else { None }
    }

    /// The request to a server that it waits for.
    pub(super) fn exchange(&self) -> Option<ExchangeId> {
        let era = self.group.as_ref().and_then(|it| it.era_exchange());
        match self.stage {
            RelayStage::Preparing(exchange) | RelayStage::Asking(exchange) => Some(exchange),
            _ => era,
        }
    }
}

impl Hub {
    /// Looks at a call.
    pub(super) fn run_call(&mut self, env: &mut Env<'_>, id: CallId) {
        self.look_at_silence(env.now, id);
        while let Some(call) = self.calls.get_mut(id) {
            let stage = std::mem::replace(&mut call.relay.stage, RelayStage::Busy);
            let client = call.client;
            let next = match stage {
                RelayStage::Busy => return,
                RelayStage::Start => self.start_call(env, id),
                RelayStage::Looking(what, has_begun) => {
                    match self.first_look_of(env, client, has_begun, Task::Call(id)) {
                        true => self.looked(env, id, what),
                        false => return self.put_relay(id, RelayStage::Looking(what, true)),
                    }
                }
                RelayStage::ChildrenUp(until) => {
                    match self.are_children_up(env.now, client, until, Task::Call(id)) {
                        true => self.route_call(env, id, 2),
                        false => return self.put_relay(id, RelayStage::ChildrenUp(until)),
                    }
                }
                RelayStage::Enter(caller) => self.enter_call(env, id, caller),
                RelayStage::Unreached(group, caller) => self.never_reached(env, id, group, caller),
                RelayStage::Preparing(exchange) => match self.exchanges.get(exchange) {
                    Some(_) => return self.put_relay(id, RelayStage::Preparing(exchange)),
                    None => self.ask_server(env, id),
                },
                RelayStage::Member => self.next_step(env, id),
                RelayStage::Bridging(bridging) => self.run_bridging(env, id, bridging),
                stage @ (RelayStage::Searching(_) | RelayStage::Asking(_)) => {
                    return self.put_relay(id, stage);
                }
            };
            match next {
                Some(stage) => self.put_relay(id, stage),
                None => return,
            }
        }
    }

    pub(super) fn put_relay(&mut self, id: CallId, stage: RelayStage) {
        if let Some(call) = self.calls.get_mut(id) {
            call.relay.stage = stage;
        }
    }

    fn start_call(&mut self, env: &mut Env<'_>, id: CallId) -> Option<RelayStage> {
        let call = self.calls.get_mut(id)?;
        let what = match call.requested {
            Requested::List(_) => return Some(RelayStage::Looking(LookFor::List, false)),
            Requested::Relay(what) => what,
        };
        if self.settings.is_search {
            // The search looks into arguments.
            if let (Some(large), Some(params)) = (&call.large, &call.params)
                && let Ok(whole) =
                    serde_json::value::RawValue::from_string(large.put_back(params.get()))
            {
                (call.params, call.large) = (Some(whole), None);
            }
            if what == Relayed::CallTool {
                let params = Params::parse(call.params.as_deref()).ok();
                match params.and_then(|it| it.text("name")).as_deref() {
                    Some(FIND_TOOL) => return Some(RelayStage::Looking(LookFor::Find, false)),
                    Some(CALL_TOOL) => return self.search(env, id, LookFor::Unwrap, true),
                    _ => {}
                }
            }
        }
        self.route_call(env, id, 0)
    }

    /// Asks whoever searches.
    fn search(
        &mut self,
        env: &mut Env<'_>,
        id: CallId,
        what: LookFor,
        may_look: bool,
    ) -> Option<RelayStage> {
        let call = self.calls.get(id)?;
        let (client, params) = (call.client, call.params.clone());
        let task = match what {
            LookFor::List => SearchTask::Describe,
            LookFor::Unwrap => SearchTask::Unwrap { params: params?, may_look },
            LookFor::Find | LookFor::Route => {
                let params = Params::parse(params.as_deref()).unwrap_or_default();
                SearchTask::Find(params.get("arguments").map(ToOwned::to_owned))
            }
        };
        let job = self.ask_search(env, client, id, task);
        Some(RelayStage::Searching(job))
    }

    /// A search has its answer.
    pub(super) fn searched(&mut self, env: &mut Env<'_>, job: u64, answer: SearchAnswer) {
        let Some(id) = self.searches.remove(&job) else { return };
        let Some(call) = self.calls.get_mut(id) else { return };
        match answer {
            SearchAnswer::Result(result) => return self.complete(env, id, Ok(result)),
            SearchAnswer::Unknown => {
                call.relay.stage = RelayStage::Looking(LookFor::Unwrap, false);
            }
            SearchAnswer::Call(params) => {
                call.params = Some(params);
                call.relay.is_wrapped = true;
                call.headers.clear();
                if let Some(stage) = self.route_call(env, id, 0) {
                    self.put_relay(id, stage);
                }
            }
        }
        self.run_call(env, id);
    }

    /// A first look is over.
    fn looked(&mut self, env: &mut Env<'_>, id: CallId, what: LookFor) -> Option<RelayStage> {
        match what {
            LookFor::Find => self.search(env, id, what, false),
            LookFor::Unwrap => self.search(env, id, what, false),
            LookFor::Route => self.route_call(env, id, 1),
            LookFor::List => {
                let call = self.calls.get(id)?;
                let Requested::List(kind) = call.requested else { return None };
                if kind == Kind::Tools && self.settings.is_search {
                    return self.search(env, id, what, false);
                }
                let made = self.page(id, kind);
                self.complete(env, id, made);
                None
            }
        }
    }

    /// A page of a list.
    fn page(&mut self, id: CallId, kind: Kind) -> Made {
        let bad = |message: &str| Err(error_object(INVALID_PARAMS, message, None));
        let Some(call) = self.calls.get(id) else { return bad("there is no such call") };
        let client = call.client;
        let cursor = match Params::parse(call.params.as_deref()) {
            Ok(params) => params.text("cursor"),
            Err(flaw) => return bad(&format!("params: {flaw}")),
        };
        let catalogue = self.catalogue_of(client);
        let is_seen = |slot| self.sees(client, slot);
        match catalogue.page(kind, is_seen, cursor.as_deref(), self.settings.answer_max) {
            Ok(page) => Ok(page.to_result()),
            Err(wrong) => bad(&wrong.to_string()),
        }
    }

    /// Finds out where a call goes; `looks` says how much has been waited for that.
    fn route_call(&mut self, env: &mut Env<'_>, id: CallId, looks: u8) -> Option<RelayStage> {
        let call = self.calls.get(id)?;
        let Requested::Relay(what) = call.requested else { return None };
        let (client, is_wrapped) = (call.client, call.relay.is_wrapped);
        let refused = match self.route_of(env.random, id, what, is_wrapped) {
            Ok(route) => {
                let call = self.calls.get_mut(id)?;
                call.relay.route = Some(Box::new(route));
                call.relay.began = env.now;
                let caller = Caller { began: env.now, has_waited: false };
                return Some(RelayStage::Enter(caller));
            }
            Err(refused) => refused,
        };
        let is_unknown = matches!(refused.0, INVALID_PARAMS | RESOURCE_NOT_FOUND);
        match looks {
            // A server whose lists are not known yet may have it.
            0 if is_unknown => return Some(RelayStage::Looking(LookFor::Route, false)),
            1 if is_unknown => {
                let until = env.now.after(self.longest_start(client));
                return Some(RelayStage::ChildrenUp(until));
            }
            _ => {}
        }
        if let Some(group) = self.unreached(id, what) {
            let caller = Caller { began: env.now, has_waited: false };
            return Some(RelayStage::Unreached(group, caller));
        }
        let (code, message) = refused;
        let params = self.calls.get(id).and_then(|it| it.params.as_deref());
        let params = Params::parse(params).ok().filter(|_| code == RESOURCE_NOT_FOUND);
        let uri = params.and_then(|it| it.text("uri"));
        let data = uri.map(|uri| serde_json::json!({ "uri": uri }).to_string());
        self.complete(env, id, Err(error_object(code, &message, data.as_deref())));
        None
    }

    /// What a client hears of a server that was never reached: it is unavailable, and why.
    fn never_reached(
        &mut self,
        env: &mut Env<'_>,
        id: CallId,
        group: Arc<ServerGroup>,
        caller: Caller,
    ) -> Option<RelayStage> {
        let call = self.calls.get(id)?;
        let (client, requested) = (call.client, call.requested);
        let cause = match self.enter(env, client, &group, caller, Task::Call(id)) {
            Ok(Entry::Refused(cause)) => cause,
            Ok(_) => Cause::ListsUnknown,
            Err(caller) => return self.wait_in(id, RelayStage::Unreached(group, caller)),
        };
        let Requested::Relay(what) = requested else { return None };
        let unavailable = unavailable(&group, cause);
        self.tell_failure(client, what, &unavailable);
        let tool = (what == Relayed::CallTool).then_some("{}");
        let made = failed(tool, &unavailable);
        let params = Params::parse(self.calls.get(id)?.params.as_deref()).ok();
        let name = params.and_then(|it| it.text("name"));
        let answered = Answered::Unavailable(unavailable);
        self.record(env.now, id, (what, caller.began), (&group, name, None), &answered);
        self.complete(env, id, made);
        None
    }

    /// Keeps a stage that waits; none, so that nothing goes on.
    fn wait_in(&mut self, id: CallId, stage: RelayStage) -> Option<RelayStage> {
        self.put_relay(id, stage);
        None
    }

    /// Waits for a server that is still connecting, then asks.
    fn enter_call(&mut self, env: &mut Env<'_>, id: CallId, caller: Caller) -> Option<RelayStage> {
        let call = self.calls.get(id)?;
        let client = call.client;
        let group = Arc::clone(&call.relay.route.as_ref()?.group);
        let entered = match self.enter(env, client, &group, caller, Task::Call(id)) {
            Err(caller) => return self.wait_in(id, RelayStage::Enter(caller)),
            Ok(Entry::Go) => Ok(()),
            Ok(Entry::Refused(cause)) => Err(cause),
            Ok(Entry::Wait(_)) => Err(Cause::Busy),
        };
        self.schedule.disarm(Task::Call(id));
        self.look_at_silence(env.now, id);
        if let Err(cause) = entered {
            let answered = Answered::Unavailable(unavailable(&group, cause));
            self.answered(env, id, answered);
            return None;
        }
        let level = self.clients.get(client).and_then(|it| it.level.clone());
        let call = self.calls.get_mut(id)?;
        let route = call.relay.route.as_mut()?;
        call.progress = route.progress.take();
        call.mirrored = std::mem::take(&mut route.mirrored);
        call.level = match &call.envelope {
            Some(envelope) => envelope.log_level.clone(),
            None => level,
        };
        let Some(server) = group.alone() else { return self.begin_group(env, id) };
        let Some(link) = self.link_to(env.now, client, server) else {
            let answered = Answered::Unavailable(unavailable(&group, Cause::Closing));
            self.answered(env, id, answered);
            return None;
        };
        let profile = Arc::clone(&self.clients.get(client)?.profile);
        self.refresh(env, server, link, &profile);
        if let Some(answered) = self.noted(id, link) {
            self.answered(env, id, answered);
            return None;
        }
        self.calls.get_mut(id)?.relay.link = Some(link);
        self.prepare(env, id, link)
    }

    /// Asks the server that was found, with everything prepared.
    pub(super) fn ask_server(&mut self, env: &mut Env<'_>, id: CallId) -> Option<RelayStage> {
        let call = self.calls.get(id)?;
        if call.relay.group.is_some() {
            return self.attempt_step(env, id);
        }
        let (link, replayability) = (call.relay.link?, call.relay.route.as_ref()?.replayability);
        let inquiry = self.inquiry_of(id)?;
        let exchange = self.ask(env, link, inquiry, replayability, ExchangeOwner::Call(id));
        self.asking(id, exchange)
    }

    /// A call waits for its request, unless that has ended already.
    pub(super) fn asking(&mut self, id: CallId, exchange: ExchangeId) -> Option<RelayStage> {
        if self.exchanges.get(exchange).is_some() {
            let call = self.calls.get_mut(id)?;
            if matches!(call.relay.stage, RelayStage::Busy) {
                call.relay.stage = RelayStage::Asking(exchange);
            }
        }
        None
    }

    /// The request of a call has ended.
    pub(super) fn call_exchanged(&mut self, env: &mut Env<'_>, id: CallId, end: ExchangeEnd) {
        let Some(call) = self.calls.get_mut(id) else { return };
        call.relay.stage = RelayStage::Busy;
        let Some(link) = call.relay.link else { return };
        if call.relay.group.is_some() {
            return self.step_exchanged(env, id, link, end);
        }
        let answered = match end {
            ExchangeEnd::Ended { end: End::Answered, reply: Some(reply), .. } => {
                Answered::Reply(reply)
            }
            ExchangeEnd::Ended { end: End::Unavailable(it), .. } | ExchangeEnd::Known(it) => {
                Answered::Unavailable(it)
            }
            ExchangeEnd::Ended { .. } => {
                let server = self.links.get(link).map_or(self.no_server, |it| it.server);
                Answered::Unavailable(self.unavailable(server, Cause::Closing))
            }
        };
        self.bridge(env, id, link, answered);
    }

    /// A call is answered: it is recorded, and its client told.
    pub(super) fn answered(&mut self, env: &mut Env<'_>, id: CallId, answered: Answered) {
        let Some(call) = self.calls.get_mut(id) else { return };
        let Requested::Relay(what) = call.requested else { return };
        let client = call.client;
        let Some(route) = call.relay.route.take() else { return };
        let began = call.relay.began;
        let answered = match answered {
            // Clients know the group and not its members.
            Answered::Unavailable(it) if !route.group.is_alone => {
                Answered::Unavailable(Unavailable { server: route.group.name.to_string(), ..it })
            }
            answered => answered,
        };
        let trace_id = route.trace.map(|it| it.id);
        let about = (&*route.group, route.name, trace_id);
        self.record(env.now, id, (what, began), about, &answered);
        let made = match answered {
            // It was a part of a message that has been read.
            Answered::Reply(Ok(part)) => Ok(text(part)),
            Answered::Reply(Err(part)) => Err(text(part)),
            Answered::Unavailable(unavailable) => {
                self.tell_failure(client, what, &unavailable);
                failed(route.tool.as_deref(), &unavailable)
            }
        };
        self.complete(env, id, made);
    }

    /// Records a call that has ended. Subscriptions are none.
    fn record(
        &mut self,
        now: Now,
        id: CallId,
        (what, began): (Relayed, Now),
        (group, name, trace_id): (&ServerGroup, Option<String>, Option<u128>),
        answered: &Answered,
    ) {
        if matches!(what, Relayed::Subscribe | Relayed::Unsubscribe) {
            return;
        }
        let Some(call) = self.calls.get(id) else { return };
        let Some(client) = self.clients.get(call.client) else { return };
        // Most calls are no part of a trace, and parameters may be large.
        let traced = call.params.as_deref().filter(|it| it.get().contains("traceparent"));
        let params = traced.and_then(|params| Params::parse(Some(params)).ok());
        let end = match answered {
            Answered::Reply(reply) => CallRecordEnd::Answered(outcome_kind(reply)),
            Answered::Unavailable(it) => {
                CallRecordEnd::Unavailable { code: it.code.word(), cause: it.cause }
            }
        };
        self.out.push(Effect::Record(Box::new(CallRecord {
            began,
            ended: now,
            caller: Arc::clone(&client.caller),
            session: Arc::clone(&client.id),
            server: Arc::clone(&group.name),
            method: what.method(),
            name,
            id: call.id.to_string(),
            trace_parent: params.and_then(|params| params.trace_parent()),
            trace_id,
            attempts: call.relay.attempts.clone(),
            end,
        })));
    }

    /// The line about a request that its server could not answer.
    fn tell_failure(&mut self, client: ClientId, what: Relayed, unavailable: &Unavailable) {
        let caller = self.clients.get(client).map(|it| Arc::clone(&it.caller));
        self.out.push(Effect::Log(LogLine::Unavailable {
            server: unavailable.server.clone(),
            method: what.method(),
            code: unavailable.code.word(),
            cause: unavailable.cause,
            caller: caller.unwrap_or_default(),
        }));
    }

    fn longest_start(&self, client: ClientId) -> Millis {
        let Some(client) = self.clients.get(client) else { return Millis::ZERO };
        let each = client.slots.iter().map(|it| self.initialize_within(&it.group));
        each.max().unwrap_or_default()
    }
}

/// What a client hears of a request that its server could not answer.
fn failed(tool: Option<&str>, unavailable: &Unavailable) -> Made {
    let Some(tool) = tool else { return Err(unavailable.rpc_error().to_string()) };
    Ok(match has_output_schema(tool) {
        true => unavailable.schema_tool_result().to_string(),
        false => unavailable.tool_result().to_string(),
    })
}

pub(super) fn unavailable(group: &ServerGroup, cause: Cause) -> Unavailable {
    let server = group.name.to_string();
    Unavailable { server, cause, retry_after: None, code: Code::BackendUnavailable }
}

fn text(part: Bytes) -> String {
    String::from_utf8(part.into()).unwrap_or_default()
}
