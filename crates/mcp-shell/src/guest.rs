//! The other side: a client of a gateway's `/mcp`, for the command line.
//!
//! One call opens a session, asks, and ends the session again. It goes over the same transport and
//! conversation that the gateway uses towards servers, so there is one client to keep right.
//!
//! Rules kept here:
//! - Everything ends: connecting and greeting within `GREET_WITHIN`, the rest within what the
//!   caller says. Giving up tells the gateway.
//! - Nothing is declared: whoever asks this client for something is refused.
//! - A key is sent as `authorization: Bearer` and never shown.

use std::path::Path;
use std::rc::{Rc, Weak};

use bytes::Bytes;
use http::HeaderValue;
use serde_json::value::RawValue;
use tidegate_config::{
    file::ServerFile,
    secret::{FixedEnvironment, SecretRef},
};
use tidegate_core::time::Millis;
pub use tidegate_mcp::cause::Cause;
use tidegate_mcp::{
    listing::{Gather, Kind, Listing, ServerInfo},
    message::{self, ErrorObject, Id, METHOD_NOT_FOUND, Params},
    raw::quoted,
};
use tidegate_runtime::{clock::Clock, rng};
use tokio::task::LocalSet;

use super::{
    carrier::Carrier,
    conversation::{About, Conversation, Ear, Reply, Voice},
    hello::Hello,
    http::{HttpPlace, HttpTransport},
    party::{Desk, Party},
    shelf::pages,
    stream::{Account, Streams},
    transport::Failure,
};

/// A gateway answers `initialize` at once, whatever its servers do.
const GREET_WITHIN: Millis = Millis::seconds(5);

/// Where a gateway is, and who asks.
#[derive(Debug)]
pub struct Gate {
    place: Rc<HttpPlace>,
}

/// Why a gateway gave no result.
#[derive(Clone, Debug, thiserror::Error)]
pub enum GuestError {
    /// The url, or the key, cannot be used.
    #[error("{0}")]
    Unusable(String),
    /// Nobody answers there, or nobody who speaks MCP.
    #[error("{0}")]
    NoGateway(Cause),
    /// It wants another key.
    #[error("{0}")]
    KeyRejected(Cause),
    /// It did not answer in time.
    #[error("{0}")]
    TimedOut(Cause),
    /// It answered with an error.
    #[error("{message}")]
    Refused {
        /// The code of JSON-RPC.
        code: i64,
        /// What it says.
        message: String,
        /// What else it says, as text of JSON.
        data: Option<String>,
    },
    /// Nothing can be asked from here.
    #[error("cannot start a runtime: {0}")]
    NoRuntime(String),
}

/// What a gateway says while it works, as a line.
pub type Told = Box<dyn Fn(&str)>;

impl Gate {
    /// A gateway's endpoint: `http://127.0.0.1:8700/mcp`.
    ///
    /// # Errors
    /// The url is none, or the key cannot be sent.
    pub fn new(url: &str, key: Option<&str>) -> Result<Self, GuestError> {
        Self::trusting(url, key, None)
    }

    /// The same, with certificates in PEM that are trusted besides the system's: those of the
    /// gateway's own listener.
    ///
    /// # Errors
    /// The url is none, the key cannot be sent, or the certificates cannot be read.
    pub fn trusting(
        url: &str,
        key: Option<&str>,
        certificates: Option<&str>,
    ) -> Result<Self, GuestError> {
        let ca = certificates.map(SecretRef::parse).transpose().map_err(GuestError::Unusable)?;
        let mut file = ServerFile {
            url: Some(url.to_owned()),
            ca,
            // Whoever types an address means it, private or not.
            allow_private: true,
            ..ServerFile::default()
        };
        if let Some(key) = key {
            let secret =
                SecretRef::parse(&format!("Bearer {key}")).map_err(GuestError::Unusable)?;
            file.headers.insert("authorization".to_owned(), secret);
        }
        let mark = HeaderValue::try_from(format!("{:016x}", rng::draw()))
            .expect("hexadecimal digits can stand in a header");
        let environment = FixedEnvironment::default();
        let place = HttpPlace::new("gateway", &file, Path::new("."), &environment, &mark);
        let place = place.map_err(|error| GuestError::Unusable(error.reason().to_owned()))?;
        Ok(Self { place: Rc::new(place) })
    }

    /// Where it is.
    pub(super) fn place(&self) -> Rc<HttpPlace> {
        Rc::clone(&self.place)
    }

    /// The tools that are offered, each as its definition.
    ///
    /// # Errors
    /// The gateway gives no list.
    pub fn tools(&self, within: Millis) -> Result<Vec<Box<RawValue>>, GuestError> {
        self.in_session(Box::new(|_| {}), async |talk, info| {
            let gather = Gather::again(&Listing::new(info), &[Kind::Tools]);
            let (listing, _) = pages(talk, gather, &Hello::own(), within)
                .await
                .map_err(|(_, failure)| failed(failure))?;
            let raw =
                |item: &tidegate_mcp::listing::Item| RawValue::from_string(item.raw.to_string());
            Ok(listing.items(Kind::Tools).iter().filter_map(|item| raw(item).ok()).collect())
        })
    }

    /// Calls a tool; its result as text of JSON. `arguments` is the text of an object. `told` hears
    /// of progress, and of log lines that come with the call.
    ///
    /// # Errors
    /// There is no result. A tool that failed has one.
    pub fn call(
        &self,
        name: &str,
        arguments: &str,
        within: Millis,
        told: Told,
    ) -> Result<String, GuestError> {
        let params = format!(r#"{{"name":{},"arguments":{arguments}}}"#, quoted(name));
        let params = RawValue::from_string(params)
            .map_err(|error| GuestError::Unusable(format!("the arguments are no JSON: {error}")))?;
        self.in_session(told, async |talk, _| {
            let params = Params::parse(Some(&params))
                .map_err(|flaw| GuestError::Unusable(format!("the arguments: {flaw}")))?;
            let voice = Voice { hello: &Hello::own(), party: Some(Rc::new(own_party())) };
            let reply = talk.ask("tools/call", params, voice, within).await;
            let result = answer(reply)?;
            Ok(String::from_utf8_lossy(&result).into_owned())
        })
    }

    fn in_session<R>(
        &self,
        told: Told,
        act: impl AsyncFnOnce(&Rc<Conversation>, ServerInfo) -> Result<R, GuestError>,
    ) -> Result<R, GuestError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| GuestError::NoRuntime(error.to_string()))?;
        LocalSet::new().block_on(&runtime, async {
            let (place, pool) = (Rc::clone(&self.place), Rc::default());
            let (transport, events) =
                HttpTransport::open(place, pool, Clock::start(), GREET_WITHIN);
            let ear: Rc<dyn Ear> = Rc::new(Ears(told));
            let carrier = Carrier::Http(transport);
            let talk = Conversation::begin(carrier, events, Rc::downgrade(&ear));
            let result = match greet(&talk).await {
                Ok(info) => act(&talk, info).await,
                Err(error) => Err(error),
            };
            talk.close().await;
            result
        })
    }
}

/// Introduces itself.
async fn greet(talk: &Rc<Conversation>) -> Result<ServerInfo, GuestError> {
    let hello = Hello::own();
    let params = Params::parse(Some(hello.params())).unwrap_or_default();
    let reply = talk.ask("initialize", params, Voice::of(&hello), GREET_WITHIN).await;
    let result = match reply {
        // Whatever is wrong this early, it is no gateway that could be asked.
        Reply::Failed(failure) if failure.cause != Cause::AuthRejected => {
            return Err(GuestError::NoGateway(failure.cause));
        }
        reply => answer(reply)?,
    };
    let info = serde_json::from_slice::<&RawValue>(&result).ok();
    let info = info.and_then(|info| ServerInfo::read(info).ok());
    let info = info.filter(|info| info.known_version().is_some());
    let info = info.ok_or(GuestError::NoGateway(Cause::Malformed))?;
    talk.negotiated(&info.version);
    talk.tell(message::notification("notifications/initialized", None));
    Ok(info)
}

fn answer(reply: Reply) -> Result<Bytes, GuestError> {
    match reply {
        Reply::Answer(Ok(result)) => Ok(result),
        Reply::Answer(Err(error)) => {
            let read = serde_json::from_slice::<&RawValue>(&error).ok().map(ErrorObject::read);
            let (code, message, data) = read.map_or_else(Default::default, |error| {
                (error.code, error.message, error.data.map(|data| data.get().to_owned()))
            });
            Err(GuestError::Refused { code, message, data })
        }
        Reply::Failed(failure) => Err(failed(failure)),
    }
}

const fn failed(failure: Failure) -> GuestError {
    match failure.cause {
        Cause::AuthRejected => GuestError::KeyRejected(failure.cause),
        Cause::TimedOut(_) => GuestError::TimedOut(failure.cause),
        cause => GuestError::NoGateway(cause),
    }
}

/// Nobody's call but our own: it only asks for progress.
fn own_party() -> Party {
    let desk = Desk::new(&Streams::new(false, Account::own()).standing());
    desk.set_progress(RawValue::from_string("0".to_owned()).ok());
    Party { client: Weak::new(), desk, info: None, level: None, mirrored: Vec::new(), large: None }
}

/// Hears what is no answer.
struct Ears(Told);

impl Ear for Ears {
    fn asked(&self, by: &Rc<Conversation>, id: Id, _: &str, _: About<'_>) {
        let message = "this client can be asked for nothing";
        by.tell(message::error(Some(&id), METHOD_NOT_FOUND, message, None));
    }

    fn told(&self, _: &Rc<Conversation>, method: &str, about: About<'_>) {
        let Ok(params) = Params::parse(about.params) else { return };
        let line = match method {
            "notifications/progress" => progress_line(&params),
            "notifications/message" => params.get("data").map(|data| {
                let level = params.text("level").unwrap_or_default();
                let data = params.text("data").unwrap_or_else(|| data.get().to_owned());
                format!("{level}: {data}")
            }),
            _ => None,
        };
        if let Some(line) = line {
            (self.0)(&line);
        }
    }

    fn ended(&self, _: &Rc<Conversation>, _: Failure) {}
}

/// `3/10 unpacking`.
fn progress_line(params: &Params<'_>) -> Option<String> {
    let progress = params.get("progress")?.get();
    let total = params.get("total").map(|total| format!("/{}", total.get())).unwrap_or_default();
    let message = params.text("message").map(|it| format!(" {it}")).unwrap_or_default();
    Some(format!("{progress}{total}{message}"))
}
