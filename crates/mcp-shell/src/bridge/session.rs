//! The era of sessions: one with the gateway for as long as the client is there.
//!
//! ```text
//!   initialize ──▶ link 1 ──(the gateway does not know it any more)──▶ link 2 ──▶ …
//! ```
//! A link is a transport as the gateway itself uses it towards servers: notices in order, a GET
//! for what comes of the gateway's own accord, a DELETE at the end. Requests go beside it, under
//! the client's own ids.
//!
//! Rules kept here:
//! - A gateway that has forgotten the session (it was restarted) gets the client's own
//!   `initialize` again: once for all who notice, and a request that was refused unread is sent
//!   again, once. The new session is told what lasts of the old one (`standing`), and the client
//!   that lists may have changed.
//! - A request goes out after the notices that came before it.
//! - A new `initialize` of the client's ends the session before it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use serde::Deserialize;
use serde_json::value::RawValue;
use tidegate_core::{outcome::OutcomeKind, time::Millis};
use tidegate_mcp::{
    cause::{Cause, Delivery},
    message::{self, Id},
};
use tidegate_runtime::task::{self, Owned};
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::{
    exchange::{Exchange, GivenUp, Post},
    pipes::Out,
    standing::Standing,
    trouble::Trouble,
    wire::{Wire, Worth},
};
use crate::{
    http::{HttpTransport, conversation::HttpConversation, failure, notices::Before},
    transport::{ConnectionEvent, Events, LargeAnswer},
};

/// A gateway answers `initialize` at once, whatever its servers do; beside that only the patience
/// with one that is starting counts.
const GREET_WITHIN: Millis = Millis::seconds(15);

/// A gateway takes these at once; whoever waits for the session waits for them too.
const STANDING_WITHIN: Duration = Duration::from_secs(5);

/// The client's way to a session.
pub(super) struct Session {
    wire: Rc<Wire>,
    out: Out,
    link: RefCell<Option<Link>>,
    /// How the client introduced itself.
    introduction: RefCell<Option<InitializeRequest>>,
    standing: RefCell<Standing>,
    /// What is used where there is no session: the gateway says what it thinks of that.
    bare: Rc<HttpConversation>,
    made: Cell<u64>,
    renewing: Mutex<()>,
    renewal: RefCell<Option<Owned>>,
}

struct Link {
    number: u64,
    transport: HttpTransport,
    _hearing: Owned,
}

#[derive(Clone)]
struct InitializeRequest {
    id: Id,
    message: Bytes,
    /// The client has said that it is ready.
    is_ready: bool,
}

/// Requests of the client's.
pub(super) struct SessionRequest {
    pub(super) ids: Vec<Id>,
    pub(super) message: Bytes,
    pub(super) given_up: GivenUp,
    /// What has to reach the gateway first.
    pub(super) before: Option<Before>,
}

impl Session {
    pub(super) fn new(wire: Rc<Wire>, out: Out) -> Rc<Self> {
        Rc::new(Self {
            bare: wire.without_session(),
            wire,
            out,
            link: RefCell::default(),
            introduction: RefCell::default(),
            standing: RefCell::default(),
            made: Cell::default(),
            renewing: Mutex::default(),
            renewal: RefCell::default(),
        })
    }

    /// The client introduces itself.
    pub(super) async fn open(self: &Rc<Self>, id: Id, message: Bytes) {
        self.close().await;
        let introduction = InitializeRequest { id, message, is_ready: false };
        match self.greet(&introduction, Worth::First).await {
            Ok((link, answer)) => {
                *self.link.borrow_mut() = link;
                *self.introduction.borrow_mut() = Some(introduction);
                self.out.say(answer).await;
            }
            Err(trouble) => self.out.say(trouble.to_answer(&introduction.id, &self.wire.url)).await,
        }
    }

    /// What gets no answer: notifications, and answers to what the gateway asked.
    pub(super) fn notice(&self, method: &str, message: Bytes) {
        if method == "notifications/initialized"
            && let Some(introduction) = &mut *self.introduction.borrow_mut()
        {
            introduction.is_ready = true;
        }
        // Without a session there is nobody whom it could concern.
        if let Some(link) = &*self.link.borrow() {
            link.transport.notice(message);
        }
    }

    /// A request of the client's, of which something may last.
    pub(super) fn see(&self, method: &str, params: Option<&RawValue>) {
        self.standing.borrow_mut().see(method, params);
    }

    /// The notices so far.
    pub(super) fn so_far(&self) -> Option<Before> {
        self.link.borrow().as_ref().map(|link| link.transport.so_far())
    }

    /// Asks the gateway, and tells the client everything that comes of it.
    pub(super) async fn ask(self: &Rc<Self>, mut ask: SessionRequest) {
        if let Some(before) = ask.before.take() {
            before.were_taken().await;
        }
        let (talk, number) = self.current();
        let Err(mut trouble) = self.exchange(&talk, &mut ask).await else { return };
        let Some(number) = number.filter(|_| trouble.failure.is_session_loss) else {
            return self.give_up(&ask, &trouble).await;
        };
        if trouble.is_unread_loss() {
            trouble = match self.renew(number).await {
                Ok(()) => match self.exchange(&self.current().0, &mut ask).await {
                    Ok(()) => return,
                    Err(trouble) => trouble,
                },
                Err(trouble) => trouble,
            };
            return self.give_up(&ask, &trouble).await;
        }
        self.give_up(&ask, &trouble).await;
        // Nobody waits for it any more, so there is nobody to tell.
        drop(self.renew(number).await);
    }

    /// Ends the session.
    pub(super) async fn close(&self) {
        drop(self.renewal.take());
        *self.introduction.borrow_mut() = None;
        *self.standing.borrow_mut() = Standing::default();
        let link = self.link.take();
        if let Some(link) = link {
            link.transport.close().await;
        }
    }

    fn current(&self) -> (Rc<HttpConversation>, Option<u64>) {
        match &*self.link.borrow() {
            Some(link) => (Rc::clone(link.transport.talk()), Some(link.number)),
            None => (Rc::clone(&self.bare), None),
        }
    }

    async fn exchange(
        &self,
        talk: &Rc<HttpConversation>,
        ask: &mut SessionRequest,
    ) -> Result<(), Trouble> {
        let given_up = Rc::clone(&ask.given_up);
        let post = self.post(talk, ask.message.clone(), ask.ids.clone(), given_up);
        let mut exchange = Exchange::begin(post).await?;
        loop {
            let heard = exchange.next().await;
            ask.ids = exchange.wants().to_vec();
            match heard? {
                Some(message) => self.out.say(message).await,
                None => return Ok(()),
            }
        }
    }

    async fn give_up(&self, ask: &SessionRequest, trouble: &Trouble) {
        if ask.given_up.get() {
            return;
        }
        for id in &ask.ids {
            self.out.say(trouble.to_answer(id, &self.wire.url)).await;
        }
    }

    /// Opens a session in place of the one with this number, unless somebody has.
    async fn renew(self: &Rc<Self>, number: u64) -> Result<(), Trouble> {
        let _one_at_a_time = self.renewing.lock().await;
        if self.current().1 != Some(number) {
            return Ok(());
        }
        let introduction = self.introduction.borrow().clone();
        let Some(introduction) = introduction else { return Err(lost().into()) };
        let (link, answer) = self.greet(&introduction, Worth::Usual).await?;
        let Some(link) = link else { return Err(lost().into()) };
        if introduction.is_ready {
            let ready = message::notification("notifications/initialized", None);
            link.transport.notice(ready.into());
        }
        let talk = Rc::clone(link.transport.talk());
        let before = link.transport.so_far();
        *self.link.borrow_mut() = Some(link);
        // Late or never: a session without it is better than none.
        drop(timeout(STANDING_WITHIN, self.say_again(&talk, before)).await);
        for method in Greeting::read(&answer).changes() {
            self.out.say(message::notification(method, None)).await;
        }
        Ok(())
    }

    /// Tells a session what lasts of the one before it.
    async fn say_again(&self, talk: &Rc<HttpConversation>, before: Before) {
        let requests = self.standing.borrow().requests();
        before.were_taken().await;
        for (id, message) in requests {
            let post = self.post(talk, message, vec![id], GivenUp::default());
            if let Ok(mut exchange) = Exchange::begin(post).await {
                // What comes is an answer that nobody waits for.
                while let Ok(Some(_)) = exchange.next().await {}
            }
        }
    }

    fn post<'a>(
        &'a self,
        talk: &'a Rc<HttpConversation>,
        message: Bytes,
        wants: Vec<Id>,
        given_up: GivenUp,
    ) -> Post<'a> {
        let (wire, headers, worth) = (&*self.wire, HeaderMap::new(), Worth::Usual);
        Post { wire, talk, message, headers, worth, wants, given_up }
    }

    /// Introduces the client. A session, if the gateway opened one, and what it answered.
    async fn greet(
        self: &Rc<Self>,
        introduction: &InitializeRequest,
        worth: Worth,
    ) -> Result<(Option<Link>, Bytes), Trouble> {
        let (transport, events) = self.wire.transport();
        let talk = Rc::clone(transport.talk());
        let greeted = async {
            let wants = vec![introduction.id.clone()];
            let post = self.post(&talk, introduction.message.clone(), wants, GivenUp::default());
            let mut exchange = Exchange::begin(Post { worth, ..post }).await?;
            drop(talk.note_session(&exchange.head));
            let mut answer = Bytes::new();
            while let Some(message) = exchange.next().await? {
                answer = message;
            }
            Ok::<Bytes, Trouble>(answer)
        };
        let limit = Duration::from_millis(GREET_WITHIN.0);
        let answer = timeout(limit, greeted).await.map_err(|_| too_slow())??;
        let Some(version) = Greeting::read(&answer).version else { return Ok((None, answer)) };
        transport.negotiated(&version);
        let number = self.made.get() + 1;
        self.made.set(number);
        let hearing = task::spawn_owned("bridged events", hear(Rc::clone(self), number, events));
        Ok((Some(Link { number, transport, _hearing: hearing }), answer))
    }
}

/// Hands on what the gateway says of its own accord, until the session is lost.
async fn hear(session: Rc<Session>, number: u64, mut events: Events) {
    while let Some(event) = events.recv().await {
        match event {
            ConnectionEvent::Message { bytes, .. }
            | ConnectionEvent::LargeAnswer(LargeAnswer { bytes, .. }) => {
                session.out.say(bytes).await;
            }
            ConnectionEvent::Closed { .. } => {
                // A task of its own: the new link ends this one.
                let own = Rc::clone(&session);
                let renewal = task::spawn_owned("new session", async move {
                    // The next request tries again, and tells its client.
                    drop(own.renew(number).await);
                });
                *session.renewal.borrow_mut() = Some(renewal);
                return;
            }
            // Requests go beside the transport, which is open from the start.
            _ => {}
        }
    }
}

/// What is read of the answer to `initialize`.
#[derive(Default)]
struct Greeting {
    version: Option<String>,
    capabilities: Capabilities,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Capabilities {
    tools: Lists,
    prompts: Lists,
    resources: Lists,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Lists {
    list_changed: bool,
}

impl Greeting {
    fn read(answer: &[u8]) -> Self {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Result {
            protocol_version: String,
            #[serde(default)]
            capabilities: serde_json::Value,
        }
        #[derive(Deserialize)]
        struct GreetingAnswer {
            result: Result,
        }
        let Ok(GreetingAnswer { result }) = serde_json::from_slice(answer) else {
            return Self::default();
        };
        // Capabilities of another shape are no reason to refuse a session.
        let capabilities = serde_json::from_value(result.capabilities).unwrap_or_default();
        Self { version: Some(result.protocol_version), capabilities }
    }

    /// What a client is told whose session was replaced.
    fn changes(&self) -> impl Iterator<Item = &'static str> {
        let Capabilities { tools, prompts, resources } = &self.capabilities;
        [
            (tools, "notifications/tools/list_changed"),
            (prompts, "notifications/prompts/list_changed"),
            (resources, "notifications/resources/list_changed"),
        ]
        .into_iter()
        .filter_map(|(lists, method)| lists.list_changed.then_some(method))
    }
}

fn lost() -> crate::transport::Failure {
    failure::plain(Cause::SessionLost, Delivery::Not, OutcomeKind::Transport)
}

fn too_slow() -> crate::transport::Failure {
    failure::plain(Cause::TimedOut(GREET_WITHIN), Delivery::Not, OutcomeKind::Timeout)
}
