//! The other side: a client of a gateway's `/mcp`, for the command line.
//!
//! One call opens a session, asks, and ends the session again. It goes over the same transport that
//! the gateway uses towards servers; requests are made one after the other.
//!
//! Rules kept here:
//! - Everything ends: connecting and greeting within `GREET_WITHIN`, the rest within what the
//!   caller says. Giving up tells the gateway.
//! - Nothing is declared: whoever asks this client for something is refused.
//! - A key is sent as `authorization: Bearer` and never shown.

mod dialogue;

use std::path::Path;
use std::rc::Rc;

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
    hub::own_info,
    listing::{Gather, Item, Kind, Listing, ServerInfo},
    message::{ErrorObject, METHOD_NOT_FOUND, Version},
    raw::quoted,
};
use tidegate_runtime::{clock::Clock, rng};
use tokio::task::LocalSet;

use self::dialogue::{Dialogue, Reply};
use super::{
    http::{HttpPlace, HttpTransport},
    transport::{EventSender, Failure},
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
pub type OnNotice = Box<dyn Fn(&str)>;

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
        self.in_session(Box::new(|_| {}), async |dialogue, info| {
            let mut gather = Gather::again(&Listing::new(info), &[Kind::Tools]);
            while let Some(ask) = gather.ask() {
                match dialogue.ask(ask.method(), ask.params().as_deref(), within).await {
                    Reply::Result(result) => {
                        let page = serde_json::from_slice::<&RawValue>(&result).ok();
                        if page.is_none_or(|page| gather.page(page).is_err()) {
                            gather.failed();
                        }
                    }
                    Reply::Error(error) => {
                        let read = serde_json::from_slice::<&RawValue>(&error).ok();
                        match read.is_some_and(|it| ErrorObject::read(it).code == METHOD_NOT_FOUND)
                        {
                            true => gather.refused(),
                            false => gather.failed(),
                        }
                    }
                    Reply::Failed(failure) if failure.cause == Cause::TooLarge => {
                        gather.too_large();
                    }
                    Reply::Failed(failure) => return Err(failed(failure)),
                }
            }
            let (listing, _) = gather.finish();
            let raw = |item: &Item| RawValue::from_string(item.raw.to_string()).ok();
            Ok(listing.items(Kind::Tools).iter().filter_map(raw).collect())
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
        told: OnNotice,
    ) -> Result<String, GuestError> {
        if let Err(error) = serde_json::from_str::<&RawValue>(arguments) {
            return Err(GuestError::Unusable(format!("the arguments are no JSON: {error}")));
        }
        self.in_session(told, async |dialogue, _| {
            let params = format!(r#"{{"name":{},"arguments":{arguments}"#, quoted(name));
            let result = answer(dialogue.call(&params, within).await)?;
            Ok(String::from_utf8_lossy(&result).into_owned())
        })
    }

    fn in_session<R>(
        &self,
        told: OnNotice,
        act: impl AsyncFnOnce(&mut Dialogue, ServerInfo) -> Result<R, GuestError>,
    ) -> Result<R, GuestError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| GuestError::NoRuntime(error.to_string()))?;
        LocalSet::new().block_on(&runtime, async {
            let (place, pool) = (Rc::clone(&self.place), Rc::default());
            let (teller, events) = EventSender::alone();
            let transport = HttpTransport::open(place, pool, Clock::start(), GREET_WITHIN, teller);
            let mut dialogue = Dialogue::new(transport, events, told);
            let result = match greet(&mut dialogue).await {
                Ok(info) => act(&mut dialogue, info).await,
                Err(error) => Err(error),
            };
            dialogue.close().await;
            result
        })
    }
}

/// Introduces itself.
async fn greet(dialogue: &mut Dialogue) -> Result<ServerInfo, GuestError> {
    let params = format!(
        r#"{{"protocolVersion":"{}","capabilities":{{}},"clientInfo":{}}}"#,
        Version::LATEST,
        own_info()
    );
    let result = match dialogue.ask("initialize", Some(&params), GREET_WITHIN).await {
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
    dialogue.initialised(&info.version);
    Ok(info)
}

fn answer(reply: Reply) -> Result<Bytes, GuestError> {
    match reply {
        Reply::Result(result) => Ok(result),
        Reply::Error(error) => {
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
