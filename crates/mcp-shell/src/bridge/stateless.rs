//! The era without sessions: every request stands by itself, and its headers repeat a part of it.
//!
//! Rules kept here:
//! - A request is posted as it came. Dropping it closes its stream, which is how a gateway learns
//!   that nobody wants the answer.
//! - A stream that ends before its answer is not taken up again: this era has no such thing. A
//!   subscription alone is made again, and then its client is told that anything may have changed.
//! - A call that was refused because its headers lack an argument is made again, once, with the
//!   tool's wishes known.

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use tidegate_mcp::{
    message::{self, Id, Message, Params},
    raw::quoted,
    stateless::{
        HEADER_MISMATCH,
        listen::{self, Filter},
    },
};
use tokio::time::{sleep, timeout};

use super::{
    exchange::{Exchange, GivenUp, Post},
    headers,
    mirrored::Mirrored,
    pipes::Out,
    trouble::Trouble,
    wire::{Wire, Worth},
};
use crate::http::conversation::HttpConversation;

/// A client's first word in this era.
const DISCOVER: &str = "server/discover";
const LIST: &str = "tools/list";
const CALL: &str = "tools/call";

/// How long a tool's wishes are looked for, and in how many pages.
const LEARN_WITHIN: Duration = Duration::from_secs(10);
const PAGES_MAX: usize = 100;
/// How long to wait before a subscription is made again: this, and twice as long each time.
const WAIT_MIN: Duration = Duration::from_secs(1);
const WAIT_MAX: Duration = Duration::from_secs(30);

/// The client's way to a gateway without a session.
pub(super) struct Stateless {
    wire: Rc<Wire>,
    out: Out,
    talk: Rc<HttpConversation>,
    mirrored: Mirrored,
}

/// A request of the client's.
pub(super) struct StatelessRequest {
    pub(super) id: Id,
    pub(super) method: String,
    pub(super) message: Bytes,
}

impl Stateless {
    pub(super) fn new(wire: Rc<Wire>, out: Out) -> Rc<Self> {
        let talk = wire.without_session();
        Rc::new(Self { talk, wire, out, mirrored: Mirrored::default() })
    }

    /// Asks the gateway, and tells the client everything that comes of it.
    pub(super) async fn ask(&self, ask: StatelessRequest) {
        let asked = match ask.method.as_str() {
            listen::METHOD => self.listen(&ask).await,
            CALL => self.call(&ask).await,
            _ => self.exchange(&ask).await,
        };
        if let Err(trouble) = asked {
            self.out.say(trouble.to_answer(&ask.id, &self.wire.url)).await;
        }
    }

    async fn exchange(&self, ask: &StatelessRequest) -> Result<(), Trouble> {
        let mut exchange = self.begin(ask).await?;
        while let Some(message) = exchange.next().await? {
            if ask.method == LIST {
                self.mirrored.see(&message);
            }
            self.out.say(message).await;
        }
        Ok(())
    }

    async fn call(&self, ask: &StatelessRequest) -> Result<(), Trouble> {
        let Err(trouble) = self.exchange(ask).await else { return Ok(()) };
        let may_lack_headers = trouble.code() == Some(HEADER_MISMATCH);
        let learnt = async { may_lack_headers && self.learn(ask).await.unwrap_or(false) };
        if !timeout(LEARN_WITHIN, learnt).await.unwrap_or(false) {
            return Err(trouble);
        }
        self.exchange(ask).await
    }

    /// Looks for the wishes of the tool that is called; whether it has any.
    async fn learn(&self, call: &StatelessRequest) -> Result<bool, Trouble> {
        let Ok(Message::Request { params, .. }) = Message::parse(&call.message) else {
            return Ok(false);
        };
        let params = Params::parse(params).unwrap_or_default();
        let (Some(name), Some(meta)) = (params.text("name"), params.get("_meta")) else {
            return Ok(false);
        };
        let (id, mut cursor) = (Id::number(0), None::<String>);
        for _ in 0..PAGES_MAX {
            let after = cursor.map(|it| format!(r#""cursor":{},"#, quoted(&it)));
            let params = format!(r#"{{{}"_meta":{}}}"#, after.unwrap_or_default(), meta.get());
            let message = message::request(&id, LIST, Some(&params)).into();
            let list = StatelessRequest { id: id.clone(), method: LIST.to_owned(), message };
            let mut exchange = self.begin(&list).await?;
            cursor = None;
            while let Some(message) = exchange.next().await? {
                cursor = self.mirrored.see(&message);
            }
            if self.mirrored.tool(&name).is_some() {
                return Ok(true);
            }
            if cursor.is_none() {
                break;
            }
        }
        Ok(false)
    }

    /// Listens until the client or the gateway ends it; a gateway that went away is asked again.
    async fn listen(&self, ask: &StatelessRequest) -> Result<(), Trouble> {
        let (mut was_open, mut wait) = (false, WAIT_MIN);
        loop {
            let followed = self.follow(ask, &mut was_open, &mut wait).await;
            match followed {
                Err(trouble) if was_open && trouble.is_absence() => {}
                ended => return ended,
            }
            sleep(wait).await;
            wait = (wait * 2).min(WAIT_MAX);
        }
    }

    async fn follow(
        &self,
        ask: &StatelessRequest,
        was_open: &mut bool,
        wait: &mut Duration,
    ) -> Result<(), Trouble> {
        let is_again = *was_open;
        let mut exchange = self.begin(ask).await?;
        while let Some(message) = exchange.next().await? {
            let Some(filter) = acknowledged(&message) else {
                self.out.say(message).await;
                continue;
            };
            (*was_open, *wait) = (true, WAIT_MIN);
            if !is_again {
                self.out.say(message).await;
                continue;
            }
            for method in changes(&filter) {
                self.out.say(listen::tagged(method, None, &ask.id)).await;
            }
        }
        Ok(())
    }

    async fn begin(&self, ask: &StatelessRequest) -> Result<Exchange<'_>, Trouble> {
        let params = match Message::parse(&ask.message) {
            Ok(Message::Request { params, .. }) => params,
            _ => None,
        };
        let params = Params::parse(params).unwrap_or_default();
        let name = params.text("name").filter(|_| ask.method == CALL);
        let tool = name.and_then(|name| self.mirrored.tool(&name));
        Exchange::begin(Post {
            wire: &self.wire,
            talk: &self.talk,
            message: ask.message.clone(),
            headers: headers::of(&ask.method, &params, tool.as_deref()),
            worth: if ask.method == DISCOVER { Worth::First } else { Worth::Usual },
            wants: vec![ask.id.clone()],
            given_up: GivenUp::default(),
        })
        .await
    }
}

/// What a subscription is about, if a message says so.
fn acknowledged(message: &[u8]) -> Option<Filter> {
    match Message::parse(message) {
        Ok(Message::Notification { method, params }) if method == listen::ACKNOWLEDGED => {
            Some(Filter::read(params).unwrap_or_default())
        }
        _ => None,
    }
}

/// What may have changed for a subscription while nobody listened.
fn changes(filter: &Filter) -> impl Iterator<Item = &'static str> {
    [
        (filter.tools, "notifications/tools/list_changed"),
        (filter.prompts, "notifications/prompts/list_changed"),
        (filter.resources, "notifications/resources/list_changed"),
    ]
    .into_iter()
    .filter_map(|(is_wanted, method)| is_wanted.then_some(method))
}
