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
//! - What is learned of a server's eras comes from success: a refusal of one greeting counts when
//!   another was answered.
//! - After a connection was regained the server is told again what the client had told it: its log
//!   level, its subscriptions.

use std::rc::{Rc, Weak};

use serde_json::value::RawValue;
use tidegate_core::{
    outcome::OutcomeKind,
    time::{Millis, Now},
};
use tidegate_mcp::{
    cause::Cause,
    era::{self, Era, Greeted},
    link::Generation,
    listing::ServerInfo,
    message::{self, ErrorObject, Params},
    raw::quoted,
    stateless::discover,
};
use tidegate_runtime::task;

use super::{Link, listening};
use crate::{
    carrier::Carrier,
    conversation::{Conversation, Ear, Reply, Voice},
    transport::{Events, Failure},
};

/// A connection, and who is at its other end.
type Made = (Rc<Conversation>, ServerInfo);

/// Why a greeting brought nothing.
enum Ungreeted {
    /// The server speaks another era, if any.
    Next(Failure),
    /// It may speak another era, or this one at another time.
    Unclear(Failure),
    /// Nothing else would help.
    Final(Failure),
}

impl Link {
    /// Makes the connection, in a task of the link's own.
    pub(crate) fn connect(&self, generation: Generation) {
        let Some(this) = self.this.upgrade() else { return };
        let connecting = task::spawn_owned("mcp connect", async move {
            let made = this.make().await;
            this.made(generation, made);
        });
        *self.connecting.borrow_mut() = Some(connecting);
    }

    async fn make(&self) -> Result<Made, Failure> {
        let began = self.ground.now();
        if self.server.is_old() {
            // It may have become younger: a failure brings the newer ways back.
            return self.make_old(began).await.inspect_err(|_| self.server.set_old(false));
        }
        let caller = self.client().map(|client| client.caller());
        let opened = self.server.open(&self.ground, caller.as_deref()).await?;
        let talk = self.begin_talk(opened);
        let failure = match self.greet(&talk).await {
            Ok(info) => return Ok((talk, info)),
            Err(failure) => failure,
        };
        self.give_up(&talk, began, failure);
        if !self.may_be_old(&talk, failure) {
            return Err(failure);
        }
        // What came of the newer ways says more than that there is no older one.
        self.make_old(began).await.map_err(|_| failure)
    }

    /// Makes the connection over the transport before streamable HTTP, which only sessions know.
    async fn make_old(&self, began: Now) -> Result<Made, Failure> {
        let talk = self.begin_talk(self.server.open_old(&self.ground).await?);
        match self.try_era(&talk, Era::Sessions).await {
            Ok(info) => {
                let mut eras = self.server.eras();
                eras.learn(Era::Sessions, true);
                eras.learn(Era::Stateless, false);
                self.server.set_eras(eras);
                self.server.set_old(true);
                Ok((talk, info))
            }
            Err(
                Ungreeted::Next(failure) | Ungreeted::Unclear(failure) | Ungreeted::Final(failure),
            ) => {
                self.give_up(&talk, began, failure);
                Err(failure)
            }
        }
    }

    fn begin_talk(&self, (carrier, events): (Carrier, Events)) -> Rc<Conversation> {
        let ear: Weak<dyn Ear> = self.this.clone();
        Conversation::begin(carrier, events, ear)
    }

    fn give_up(&self, talk: &Rc<Conversation>, began: Now, failure: Failure) {
        if failure.cause == Cause::ProcessExited {
            self.server.exited(began, &talk.last_words());
        }
        task::spawn("end of a failed connect", Rc::clone(talk).close());
    }

    /// Whether a server that refused every greeting may have the first transport of all: it knows
    /// no POST to its address.
    fn may_be_old(&self, talk: &Conversation, failure: Failure) -> bool {
        let is_refused = matches!(failure.cause, Cause::Status(400..=499));
        is_refused && talk.is_http() && self.wishes.contains(&Era::Sessions)
    }

    /// Greets in the eras that are worth trying.
    async fn greet(&self, talk: &Rc<Conversation>) -> Result<ServerInfo, Failure> {
        let mut refused: Vec<Era> = Vec::new();
        let mut first = None;
        for era in self.server.eras().in_order(self.wishes) {
            match self.try_era(talk, era).await {
                Ok(info) => {
                    // Other links may have learned something meanwhile.
                    let mut eras = self.server.eras();
                    refused.iter().for_each(|other| eras.learn(*other, false));
                    eras.learn(era, true);
                    self.server.set_eras(eras);
                    return Ok(info);
                }
                Err(Ungreeted::Next(failure)) => {
                    refused.push(era);
                    first.get_or_insert(failure);
                }
                Err(Ungreeted::Unclear(failure)) => {
                    first.get_or_insert(failure);
                }
                Err(Ungreeted::Final(failure)) => return Err(first.unwrap_or(failure)),
            }
        }
        let mut eras = self.server.eras();
        // Its sessions are known to work; that it refuses the other era is an answer too.
        if refused == [Era::Stateless] && eras.speaks(Era::Sessions) == Some(true) {
            eras.learn(Era::Stateless, false);
            self.server.set_eras(eras);
        } else if !refused.is_empty() {
            eras.forget();
            self.server.set_eras(eras);
        }
        Err(first.unwrap_or_else(refusal))
    }

    async fn try_era(&self, talk: &Rc<Conversation>, era: Era) -> Result<ServerInfo, Ungreeted> {
        talk.speak(era);
        let (reply, greeted) = match era {
            Era::Sessions => {
                let params = Params::parse(Some(self.hello.params())).unwrap_or_default();
                let within = self.server.initialize_within();
                let reply = talk.ask("initialize", params, Voice::of(&self.hello), within).await;
                let greeted = read(&reply, era::of_initialize);
                (reply, greeted)
            }
            Era::Stateless => self.discover(talk).await,
        };
        match (greeted, era) {
            (Greeted::Speaks(info), Era::Sessions) => {
                talk.negotiated(&info.version);
                talk.tell(message::notification("notifications/initialized", None));
                self.restore(talk).await;
                Ok(info)
            }
            (Greeted::Speaks(info), Era::Stateless) => Ok(info),
            (Greeted::Other | Greeted::Again, _) => Err(Ungreeted::Next(self.refused(&reply, era))),
            (Greeted::Unclear(failure), Era::Stateless) => {
                // A program that says nothing has no such words; a host may be overloaded.
                let is_silent = matches!(failure.cause, Cause::TimedOut(_)) && !talk.is_http();
                Err(if is_silent { Ungreeted::Next(failure) } else { Ungreeted::Unclear(failure) })
            }
            (Greeted::Unclear(failure) | Greeted::Unreachable(failure), _) => {
                Err(Ungreeted::Final(failure))
            }
        }
    }

    /// Asks who the server is, in the words of the stateless era.
    async fn discover(&self, talk: &Rc<Conversation>) -> (Reply, Greeted) {
        // Silence is an answer where something else can be tried.
        let share = if self.wishes.len() > 1 { 2 } else { 1 };
        let within = Millis(self.server.connect_timeout.0 / share);
        let ask = || talk.ask(discover::METHOD, Params::default(), Voice::of(&self.hello), within);
        let mut reply = ask().await;
        if matches!(read(&reply, era::of_discover), Greeted::Again) {
            reply = ask().await;
        }
        let greeted = read(&reply, era::of_discover);
        (reply, greeted)
    }

    /// What a greeting that was refused comes to if no other is taken.
    fn refused(&self, reply: &Reply, era: Era) -> Failure {
        match reply {
            Reply::Failed(failure) => *failure,
            Reply::Answer(Err(error)) => {
                let error = serde_json::from_slice::<&RawValue>(error).ok().map(ErrorObject::read);
                let message = error.map(|error| error.message).unwrap_or_default();
                tracing::debug!(
                    server = &*self.server.name,
                    ?era,
                    message,
                    "a greeting was refused"
                );
                refusal()
            }
            Reply::Answer(Ok(_)) => refusal(),
        }
    }

    /// Tells a new conversation what the old one knew.
    async fn restore(&self, talk: &Rc<Conversation>) {
        let within = self.server.connect_timeout;
        let tell = async |method: &str, json: String| {
            let params = RawValue::from_string(json).ok();
            let params = Params::parse(params.as_deref()).unwrap_or_default();
            drop(talk.ask(method, params, Voice::of(&self.hello), within).await);
        };
        let level = self.level.borrow().clone();
        if let Some(level) = level {
            tell("logging/setLevel", format!(r#"{{"level":{}}}"#, quoted(&level))).await;
        }
        let subscriptions = self.subscriptions.borrow().clone();
        for uri in subscriptions {
            tell("resources/subscribe", format!(r#"{{"uri":{}}}"#, quoted(&uri))).await;
        }
    }

    fn made(&self, generation: Generation, made: Result<Made, Failure>) {
        let connected = match made {
            Ok((talk, info)) => {
                let is_wanted = self.machine.borrow_mut().connected(generation);
                if is_wanted {
                    let before = self.talk.replace(Some((generation, Rc::clone(&talk))));
                    if let Some((_, before)) = before {
                        // One broken connection need not have ended the server's session; calls
                        // that went the same way may still hear what became of them.
                        let within = self.server.call_timeout;
                        task::spawn("end of a lost connection", before.retire(within));
                    }
                    *self.info.borrow_mut() = Some(Rc::new(info));
                    self.made_at.set(self.ground.now());
                    self.heard_at.set(self.ground.now());
                    *self.listening.borrow_mut() = listening::begin(self, &talk);
                } else {
                    task::spawn("end of an unwanted connection", talk.close());
                }
                is_wanted
            }
            Err(failure) => {
                let cause = failure.cause;
                tracing::debug!(server = &*self.server.name, %cause, "no connection");
                self.machine.borrow_mut().failed(generation, failure);
                false
            }
        };
        // Whoever waits goes on after this; what the server offers is looked at first.
        if connected {
            if self.machine.borrow().reinitialised() > 0 {
                self.ground.gateway().metrics.mcp_reinitialised(&self.server.name);
            }
            self.server.connected(self);
        }
        self.turned.notify_waiters();
    }
}

fn read(reply: &Reply, meaning: impl FnOnce(Result<&RawValue, &RawValue>) -> Greeted) -> Greeted {
    let part = |bytes| serde_json::from_slice::<&RawValue>(bytes).ok();
    match reply {
        Reply::Answer(Ok(result)) => part(result).map_or(Greeted::Other, |it| meaning(Ok(it))),
        Reply::Answer(Err(error)) => part(error).map_or(Greeted::Other, |it| meaning(Err(it))),
        Reply::Failed(failure) => era::of_failure(*failure),
    }
}

/// It answered, and speaks nothing that is spoken here.
fn refusal() -> Failure {
    Failure::of(Cause::Malformed, OutcomeKind::ServerError)
}
