//! How a link's connection is made: the server is greeted in the eras it may speak, one after the
//! other, until it answers in words of one.
//!
//! | greeting | answered | then |
//! |---|---|---|
//! | any | in its own words | that era is spoken, and remembered of the server |
//! | any | refused for what it says | the next era; over HTTP at last the transport before all |
//! | any | no connection | nothing else is tried |
//! | `server/discover` | unclear (overload, silence, …) | the next era, and nothing is remembered |
//! | `initialize` | unclear | nothing else is tried |
//!
//! Rules kept here:
//! - Connecting is the link's, not of the call that asked for it: a call that is cancelled does not
//!   take the attempt away from the others that wait for it.
//! - What is learned of a server's eras comes from success: a refusal of one greeting counts when
//!   another was answered.
//! - After a connection was regained the server is told again what the client had told it: its log
//!   level, its subscriptions.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::value::RawValue;
use tidegate_core::{
    outcome::OutcomeKind,
    time::{Millis, Now},
};

use super::connection::{Asker, Outbound, ServerReply};
use super::effect::{Effect, LogLine, Metric, TransportKind};
use super::ids::{ConnectionId, LinkId, ServerId};
use super::schedule::Task;
use super::{Env, Hub};
use crate::{
    cause::Cause,
    era::Era,
    greeting::{self, Greeted},
    health::Failure,
    link::{Generation, LinkState},
    listing::ServerInfo,
    message::{self, Params, read_error},
    raw::quoted,
    stateless::discover,
    supervisor::Start,
};

/// An attempt to connect that is under way.
pub(super) struct Making {
    generation: Generation,
    began: Now,
    connection: ConnectionId,
    /// Over the transport before streamable HTTP, after this failure of the newer ones.
    legacy: Option<Option<Failure>>,
    stage: MakingStage,
    /// Eras that are still to be tried.
    eras: VecDeque<Era>,
    refused: Vec<Era>,
    first: Option<Failure>,
}

enum MakingStage {
    /// The connection is being opened.
    Opening,
    /// The server was greeted.
    Greeting { era: Era, is_second: bool },
    /// It is told what the connection before knew.
    Restoring { info: Box<ServerInfo>, left: VecDeque<(&'static str, String)> },
}

/// Why a greeting brought nothing.
enum Ungreeted {
    /// The server speaks another era, if any.
    Next(Failure),
    /// It may speak another era, or this one at another time.
    Unclear(Failure),
    /// Nothing else would help.
    Final(Failure),
}

impl Hub {
    /// Makes the connection of a link.
    pub(super) fn connect(&mut self, env: &mut Env<'_>, link: LinkId, generation: Generation) {
        let Some(kept) = self.links.get(link) else { return };
        let (server, owner) = (kept.server, kept.owner);
        let Some(configured) = self.servers.get(server) else {
            return self.connect_failed(link, generation, closed());
        };
        if !configured.is_usable() {
            let failure = Failure::of(Cause::SwitchedOff, OutcomeKind::Cancelled);
            return self.connect_failed(link, generation, failure);
        }
        if configured.is_child()
            && let Start::Later { at, cause } = configured.supervisor.may_start(env.now)
        {
            let pause = at.since(env.now);
            if cause == Cause::ProcessExited && pause <= configured.connect_timeout {
                // Whoever wants it waits no longer than for any other connection.
                return self.schedule.arm(Task::Start(link), at);
            }
            // Its end was charged when it happened; waiting to start it again is no news.
            let failure = Failure::of(cause, OutcomeKind::Cancelled);
            let failure = Failure { retry_after: Some(at.since(env.now)), ..failure };
            return self.connect_failed(link, generation, failure);
        }
        let legacy = configured.is_legacy.then_some(None);
        let caller = owner.and_then(|owner| self.clients.get(owner));
        let caller = caller.map(|it| (Arc::clone(&it.caller), it.rights.share));
        self.open_connection(env.now, link, (server, generation), legacy, caller);
    }

    /// The pause after which a program may be started again is over.
    pub(super) fn run_start(&mut self, env: &mut Env<'_>, link: LinkId) {
        let Some(kept) = self.links.get(link) else { return };
        let is_wanted = kept.machine.state() == LinkState::Connecting && kept.making.is_none();
        let generation = kept.machine.generation();
        if is_wanted {
            self.connect(env, link, generation);
        }
    }

    fn open_connection(
        &mut self,
        now: Now,
        link: LinkId,
        (server, generation): (ServerId, Generation),
        legacy: Option<Option<Failure>>,
        caller: Option<(Arc<str>, f64)>,
    ) {
        let Some(configured) = self.servers.get(server) else { return };
        let (key, within) = (configured.settings.key, configured.connect_timeout);
        let transport = match legacy {
            Some(_) => TransportKind::LegacySse,
            None => TransportKind::Configured,
        };
        let connection = self.new_connection(link, server);
        let Some(kept) = self.links.get_mut(link) else { return };
        let began = kept.making.as_ref().map_or(now, |it| it.began);
        kept.making = Some(Box::new(Making {
            generation,
            began,
            connection,
            legacy,
            stage: MakingStage::Opening,
            eras: VecDeque::new(),
            refused: Vec::new(),
            first: None,
        }));
        let resume = None;
        self.out.push(Effect::Open { connection, server: key, transport, within, caller, resume });
    }

    /// Nobody wants the connection that is being made.
    pub(super) fn drop_making(&mut self, link: LinkId) {
        let making = self.links.get_mut(link).and_then(|it| it.making.take());
        if let Some(making) = making {
            self.drop_connection(making.connection);
        }
    }

    /// A connection is open, or cannot be opened.
    pub(super) fn making_opened(
        &mut self,
        env: &mut Env<'_>,
        talk: ConnectionId,
        opened: Result<(), Failure>,
    ) {
        let Some(link) = self.connections.get(talk).map(|it| it.link) else { return };
        let Some(kept) = self.links.get_mut(link) else { return };
        let Some(making) = kept.making.as_mut().filter(|it| it.connection == talk) else { return };
        if !matches!(making.stage, MakingStage::Opening) {
            return;
        }
        match opened {
            Ok(()) => {
                let server = kept.server;
                let (wishes, is_legacy) = (kept.wishes, making.legacy.is_some());
                let eras = self.servers.get(server).map(|it| it.eras).unwrap_or_default();
                let order = if is_legacy { vec![Era::Sessions] } else { eras.in_order(wishes) };
                making.eras = order.into();
                self.greet_next(env, link);
            }
            Err(failure) => {
                let server = kept.server;
                self.connections.remove(talk);
                if failure.cause == Cause::CannotStart {
                    self.exited(env, server, env.now, "");
                }
                if failure.cause == Cause::TooManyChildren {
                    self.out.push(Effect::Count(Metric::Refused("program")));
                }
                self.making_failed(env, link, failure);
            }
        }
    }

    /// Greets in the next era that is worth trying.
    fn greet_next(&mut self, env: &mut Env<'_>, link: LinkId) {
        let Some(kept) = self.links.get_mut(link) else { return };
        let server = kept.server;
        let Some(making) = kept.making.as_mut() else { return };
        let Some(era) = making.eras.pop_front() else {
            let failure = making.first.unwrap_or_else(refusal);
            let refused = std::mem::take(&mut making.refused);
            if making.legacy.is_none() {
                self.nothing_spoken(server, &refused);
            }
            return self.greeting_failed(env, link, failure);
        };
        making.stage = MakingStage::Greeting { era, is_second: false };
        let talk = making.connection;
        if let Some(conversation) = self.connections.get_mut(talk) {
            conversation.era = era;
        }
        self.greet(env.now, link, era);
    }

    fn greet(&mut self, now: Now, link: LinkId, era: Era) {
        let Some(kept) = self.links.get(link) else { return };
        let Some(server) = self.servers.get(kept.server) else { return };
        let Some(making) = &kept.making else { return };
        let (talk, generation) = (making.connection, making.generation);
        let profile = Arc::clone(&kept.profile);
        let asker = Asker::Making(link, generation);
        match era {
            Era::Sessions => {
                let within = server.initialize_within();
                let own = Arc::clone(&profile);
                let params = Params::parse(Some(own.params())).unwrap_or_default();
                let out = Outbound::own("initialize", params, profile, within, asker);
                self.send_request(now, talk, out);
            }
            Era::Stateless => {
                // Silence is an answer where something else can be tried.
                let share = if kept.wishes.len() > 1 { 2 } else { 1 };
                let within = Millis(server.connect_timeout.0 / share);
                let params = Params::default();
                let out = Outbound::own(discover::METHOD, params, profile, within, asker);
                self.send_request(now, talk, out);
            }
        }
    }

    /// A greeting, or something after it, was answered.
    pub(super) fn making_replied(
        &mut self,
        env: &mut Env<'_>,
        link: LinkId,
        generation: Generation,
        reply: ServerReply,
    ) {
        let Some(kept) = self.links.get_mut(link) else { return };
        let server = kept.server;
        let making = kept.making.as_mut().filter(|it| it.generation == generation);
        let Some(making) = making else { return };
        let (talk, is_legacy) = (making.connection, making.legacy.is_some());
        let (era, is_second) = match making.stage {
            MakingStage::Opening => return,
            MakingStage::Restoring { .. } => return self.restore_next(env, link),
            MakingStage::Greeting { era, is_second } => (era, is_second),
        };
        let greeted = match era {
            Era::Sessions => read(&reply, greeting::of_initialize),
            Era::Stateless => read(&reply, greeting::of_discover),
        };
        if matches!(greeted, Greeted::Again) && era == Era::Stateless && !is_second {
            making.stage = MakingStage::Greeting { era, is_second: true };
            return self.greet(env.now, link, era);
        }
        let ungreeted = match (greeted, era) {
            (Greeted::Speaks(info), _) => return self.greeted(env, link, (server, era), info),
            (Greeted::Other | Greeted::Again, _) => {
                Ungreeted::Next(self.refused_greeting(server, &reply, era))
            }
            (Greeted::Unclear(failure), Era::Stateless) => {
                // A program that says nothing has no such words; a host may be overloaded.
                let is_http = self.connections.get(talk).is_some_and(|it| it.is_http);
                let is_silent = matches!(failure.cause, Cause::TimedOut(_)) && !is_http;
                if is_silent { Ungreeted::Next(failure) } else { Ungreeted::Unclear(failure) }
            }
            (Greeted::Unclear(failure) | Greeted::Unreachable(failure), _) => {
                Ungreeted::Final(failure)
            }
        };
        let making = self.links.get_mut(link).and_then(|it| it.making.as_mut());
        let Some(making) = making else { return };
        match ungreeted {
            Ungreeted::Next(failure) => {
                making.refused.push(era);
                making.first.get_or_insert(failure);
            }
            Ungreeted::Unclear(failure) => _ = making.first.get_or_insert(failure),
            Ungreeted::Final(failure) => {
                let failure = making.first.unwrap_or(failure);
                return self.greeting_failed(env, link, failure);
            }
        }
        if is_legacy {
            let failure = making.first.unwrap_or_else(refusal);
            return self.greeting_failed(env, link, failure);
        }
        self.greet_next(env, link);
    }

    /// The server speaks an era: what was learned is remembered, and what it had been told is told
    /// again.
    fn greeted(
        &mut self,
        env: &mut Env<'_>,
        link: LinkId,
        (server, era): (ServerId, Era),
        info: ServerInfo,
    ) {
        let Some(kept) = self.links.get_mut(link) else { return };
        let Some(making) = kept.making.as_mut() else { return };
        let (talk, is_legacy) = (making.connection, making.legacy.is_some());
        let refused = std::mem::take(&mut making.refused);
        let mut left = VecDeque::new();
        if era == Era::Sessions {
            let level = kept.level.as_ref();
            left.extend(
                level.map(|it| ("logging/setLevel", format!(r#"{{"level":{}}}"#, quoted(it)))),
            );
            let uris = kept.subscriptions.iter();
            left.extend(
                uris.map(|it| ("resources/subscribe", format!(r#"{{"uri":{}}}"#, quoted(it)))),
            );
        }
        let version = info.version.clone();
        making.stage = MakingStage::Restoring { info: Box::new(info), left };
        // Other links may have learned something meanwhile.
        let mut eras = self.servers.get(server).map(|it| it.eras).unwrap_or_default();
        if is_legacy {
            eras.learn(Era::Sessions, true);
            eras.learn(Era::Stateless, false);
            if let Some(server) = self.servers.get_mut(server) {
                server.is_legacy = true;
            }
        } else {
            refused.iter().for_each(|other| eras.learn(*other, false));
            eras.learn(era, true);
        }
        self.set_eras(server, eras);
        if era == Era::Sessions {
            if let Some(talk) = self.connections.get_mut(talk).filter(|_| !is_legacy) {
                talk.version = Some(version.clone());
            }
            self.out.push(Effect::Negotiated { connection: talk, version });
            self.tell_server(talk, message::notification("notifications/initialized", None));
        }
        self.restore_next(env, link);
    }

    /// Tells a new conversation the next of what the old one knew.
    fn restore_next(&mut self, env: &mut Env<'_>, link: LinkId) {
        let Some(kept) = self.links.get_mut(link) else { return };
        let Some(making) = kept.making.as_mut() else { return };
        let MakingStage::Restoring { left, .. } = &mut making.stage else { return };
        let Some((method, json)) = left.pop_front() else { return self.made(env, link) };
        let (talk, generation) = (making.connection, making.generation);
        let profile = Arc::clone(&kept.profile);
        let within = self.servers.get(kept.server).map(|it| it.connect_timeout);
        let params = RawValue::from_string(json).ok();
        let params = Params::parse(params.as_deref()).unwrap_or_default();
        let asker = Asker::Making(link, generation);
        let within = within.unwrap_or(Millis::ZERO);
        let out = Outbound::own(method, params, profile, within, asker);
        self.send_request(env.now, talk, out);
    }

    /// The connection is there.
    fn made(&mut self, env: &mut Env<'_>, link: LinkId) {
        let Some(kept) = self.links.get_mut(link) else { return };
        let Some(making) = kept.making.take() else { return };
        let Making { generation, connection, stage, .. } = *making;
        let MakingStage::Restoring { info, .. } = stage else { return };
        if !kept.machine.connected(generation) {
            self.close_connection(connection);
            return self.link_turned(link);
        }
        let before = kept.talk.replace((generation, connection));
        kept.info = Some(Arc::from(info));
        (kept.made_at, kept.heard_at) = (env.now, env.now);
        let is_again = kept.machine.reinitialised() > 0;
        let server = kept.server;
        if let Some((_, before)) = before {
            // One broken connection need not have ended the server's session; calls that went the
            // same way may still hear what became of them.
            let within = self.servers.get(server).map_or(Millis::ZERO, |it| it.call_timeout);
            self.retire(env.now, before, within);
        }
        self.begin_listening(link);
        self.note_record_of(link);
        if is_again {
            self.out.push(Effect::Count(Metric::Reinitialised(self.server_name(server))));
        }
        // Whoever waits goes on after this; what the server offers is looked at first.
        self.server_connected(env, server, link);
        self.link_turned(link);
    }

    /// What is learned when a server took no greeting at all.
    fn nothing_spoken(&mut self, server: ServerId, refused: &[Era]) {
        let mut eras = self.servers.get(server).map(|it| it.eras).unwrap_or_default();
        // Its sessions are known to work; that it refuses the other era is an answer too.
        if refused == [Era::Stateless] && eras.speaks(Era::Sessions) == Some(true) {
            eras.learn(Era::Stateless, false);
            self.set_eras(server, eras);
        } else if !refused.is_empty() {
            eras.forget();
            self.set_eras(server, eras);
        }
    }

    /// No greeting was taken: the connection is closed, and the transport before all is tried if
    /// that may be it.
    fn greeting_failed(&mut self, env: &mut Env<'_>, link: LinkId, failure: Failure) {
        let Some(kept) = self.links.get(link) else { return };
        let Some(making) = &kept.making else { return };
        let (talk, began, legacy) = (making.connection, making.began, making.legacy);
        let (server, generation) = (kept.server, making.generation);
        let wants_sessions = kept.wishes.contains(&Era::Sessions);
        let is_http = self.connections.get(talk).is_some_and(|it| it.is_http);
        if failure.cause == Cause::ProcessExited {
            let words = std::mem::take(&mut self.last_words);
            self.exited(env, server, began, &words);
        }
        self.close_connection(talk);
        // A server that knows no POST to its address may have the first transport of all.
        let is_refused = matches!(failure.cause, Cause::Status(400..=499));
        if legacy.is_none() && is_refused && is_http && wants_sessions {
            let legacy = Some(Some(failure));
            return self.open_connection(env.now, link, (server, generation), legacy, None);
        }
        self.making_failed(env, link, failure);
    }

    /// The attempt has failed.
    fn making_failed(&mut self, _env: &mut Env<'_>, link: LinkId, failure: Failure) {
        let Some(kept) = self.links.get_mut(link) else { return };
        let Some(making) = kept.making.take() else { return };
        let (server, generation) = (kept.server, making.generation);
        let failure = match making.legacy {
            // What came of the newer ways says more than that there is no older one.
            Some(Some(newer)) => newer,
            Some(None) => {
                // It may have become younger: a failure brings the newer ways back.
                if let Some(server) = self.servers.get_mut(server) {
                    server.is_legacy = false;
                }
                failure
            }
            None => failure,
        };
        self.connect_failed(link, generation, failure);
    }

    fn connect_failed(&mut self, link: LinkId, generation: Generation, failure: Failure) {
        let Some(kept) = self.links.get_mut(link) else { return };
        kept.machine.failed(generation, failure);
        let server = self.links.get(link).map(|it| it.server);
        let server = server.map(|it| self.server_name(it)).unwrap_or_default();
        let (what, detail) = ("no connection", failure.cause.to_string());
        self.out.push(Effect::Log(LogLine::Debug { server, what, detail }));
        self.link_turned(link);
    }

    /// What a greeting that was refused comes to if no other is taken.
    fn refused_greeting(&mut self, server: ServerId, reply: &ServerReply, era: Era) -> Failure {
        match reply {
            ServerReply::Failed(failure) => *failure,
            ServerReply::Answer(Err(error)) => {
                let message = read_error(error).map(|error| error.message).unwrap_or_default();
                let (what, detail) = ("a greeting was refused", format!("{era:?}: {message}"));
                let server = self.server_name(server);
                self.out.push(Effect::Log(LogLine::Debug { server, what, detail }));
                refusal()
            }
            ServerReply::Answer(Ok(_)) => refusal(),
        }
    }

    /// A program that was started then ended by itself.
    pub(super) fn exited(
        &mut self,
        env: &mut Env<'_>,
        server: ServerId,
        started: Now,
        last_words: &str,
    ) {
        let Some(kept) = self.servers.get_mut(server) else { return };
        let start = kept.supervisor.exited(started, env.now, env.random.draw());
        if let Start::Later { at, cause: Cause::CrashLoop } = start {
            let (server, pause) = (Arc::clone(&kept.name), at.since(env.now));
            let last_words = last_words.to_owned();
            self.out.push(Effect::Log(LogLine::CrashLoop { server, pause, last_words }));
        }
    }

    /// A conversation is over.
    pub(super) fn conversation_ended(
        &mut self,
        env: &mut Env<'_>,
        talk: ConnectionId,
        failure: Failure,
        last_words: &str,
    ) {
        let Some(conversation) = self.connections.get(talk) else { return };
        let (link, server) = (conversation.link, conversation.server);
        let Some(generation) = self.generation_of(link, talk) else {
            // An attempt that fails for it tells what the program said.
            self.last_words = last_words.to_owned();
            return;
        };
        let name = self.server_name(server);
        let (what, detail) = ("a conversation is over", failure.cause.to_string());
        self.out.push(Effect::Log(LogLine::Debug { server: name, what, detail }));
        if self.servers.get(server).is_some_and(|it| it.is_child()) {
            let made_at = self.links.get(link).map_or(env.now, |it| it.made_at);
            self.exited(env, server, made_at, last_words);
        }
        self.link_lost(link, generation);
    }
}

fn read(
    reply: &ServerReply,
    meaning: impl FnOnce(Result<&RawValue, &RawValue>) -> Greeted,
) -> Greeted {
    fn part(bytes: &[u8]) -> Option<&RawValue> {
        serde_json::from_slice::<&RawValue>(bytes).ok()
    }
    match reply {
        ServerReply::Answer(Ok(result)) => {
            part(result).map_or(Greeted::Other, |it| meaning(Ok(it)))
        }
        ServerReply::Answer(Err(error)) => {
            part(error).map_or(Greeted::Other, |it| meaning(Err(it)))
        }
        ServerReply::Failed(failure) => greeting::of_failure(*failure),
    }
}

/// It answered, and speaks nothing that is spoken here.
fn refusal() -> Failure {
    Failure::of(Cause::Malformed, OutcomeKind::ServerError)
}

const fn closed() -> Failure {
    Failure::of(Cause::Closing, OutcomeKind::Cancelled)
}
