//! Asks a running gateway over its admin listener.
//!
//! Rules kept here:
//! - Every question has a deadline, and every answer a largest size.
//! - The token is sent as `authorization: Bearer`, and never shown.
//! - Whoever answers must be tidegate: other programs' answers are refused as such.

mod address;

use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, header};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tidegate_config::secret::{FixedEnvironment, SecretRef};
use tidegate_net::upstream::{ConnectError, Origin, Pool, SendError, SplicedBody, UpstreamBody};
use tokio::runtime::Runtime;
use tokio::task::LocalSet;

use self::address::Address;

/// A gateway answers questions about itself at once; a large record takes a little longer.
const WITHIN: Duration = Duration::from_secs(20);
/// More than the largest record of an incident.
const ANSWER_MAX: usize = 512 * 1024 * 1024;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// The address or the token cannot be used.
    #[error("{0}")]
    Unusable(String),
    /// Nobody answers there.
    #[error("{0}")]
    NoGateway(String),
    /// Somebody answers who is no admin listener of tidegate.
    #[error("{0}")]
    NotTidegate(String),
    /// It wants a token, or another one.
    #[error("{0}")]
    TokenRejected(String),
    /// What was asked for is not there.
    #[error("{0}")]
    NotFound(String),
    /// It answered with an error.
    #[error("{message}")]
    Refused {
        /// The status.
        status: u16,
        /// What it said.
        message: String,
    },
}

/// A gateway that can be asked.
pub struct AdminClient {
    runtime: Runtime,
    tasks: LocalSet,
    pool: Rc<Pool>,
    origin: Origin,
    authority: HeaderValue,
    token: Option<HeaderValue>,
    url: String,
}

impl AdminClient {
    /// The gateway whose admin listener is at `url`. `certificates` are PEM that is trusted besides
    /// the system's roots: those of the gateway's own listener.
    ///
    /// # Errors
    /// The url is none, the token cannot be sent, the certificates cannot be read, or no runtime
    /// can be started.
    pub fn new(
        url: &str,
        token: Option<&str>,
        certificates: Option<&str>,
    ) -> Result<Self, AskError> {
        let unusable = AskError::Unusable;
        let address = Address::parse(url).map_err(unusable)?;
        let ca = certificates.map(SecretRef::parse).transpose().map_err(unusable)?;
        let environment = FixedEnvironment::default();
        let tls = || tidegate_net::upstream::tls(ca.as_ref(), Path::new("."), &environment);
        let tls = address.is_tls.then(tls).transpose().map_err(unusable)?;
        let token = token.map(|token| {
            let mut value = HeaderValue::try_from(format!("Bearer {token}"))
                .map_err(|_| unusable("the admin token cannot be sent in a header".to_owned()))?;
            value.set_sensitive(true);
            Ok(value)
        });
        let authority = HeaderValue::try_from(address.authority())
            .map_err(|_| unusable("the host cannot be sent in a header".to_owned()))?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime =
            runtime.map_err(|error| unusable(format!("no runtime can be started: {error}")))?;
        Ok(Self {
            runtime,
            tasks: LocalSet::new(),
            pool: Rc::default(),
            url: address.url(),
            // Whoever types an address means it, private or not.
            origin: Origin { host: address.host, port: address.port, allow_private: true, tls },
            authority,
            token: token.transpose()?,
        })
    }

    /// Where the gateway is.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Whether a token is sent.
    #[must_use]
    pub fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// `GET`, as a type of the API.
    ///
    /// # Errors
    /// There is no answer, or not such a one.
    pub fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, AskError> {
        let text = self.ask(Method::GET, path, None)?;
        serde_json::from_slice(&text).map_err(|problem| self.foreign(&problem.to_string()))
    }

    /// `POST` with JSON, as a type of the API.
    ///
    /// # Errors
    /// There is no answer, or not such a one.
    pub fn post<T: DeserializeOwned>(&self, path: &str, body: &Value) -> Result<T, AskError> {
        let text = self.ask(Method::POST, path, Some(body))?;
        serde_json::from_slice(&text).map_err(|problem| self.foreign(&problem.to_string()))
    }

    fn ask(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Vec<u8>, AskError> {
        self.run(async {
            let asking = async {
                let mut response = self.send(method, path, body, &[]).await?;
                let text = read(response.body_mut()).await?;
                self.judged(&response, text)
            };
            tokio::time::timeout(WITHIN, asking).await.unwrap_or_else(|_| {
                let words = format!("no answer within {} s", WITHIN.as_secs());
                Err(AskError::NoGateway(words))
            })
        })
    }

    /// Opens the stream of events, after the one with this id.
    ///
    /// # Errors
    /// The stream cannot be opened.
    pub(crate) fn open_events(
        &self,
        last: Option<&str>,
    ) -> Result<Response<UpstreamBody>, AskError> {
        self.run(async {
            let asking = async {
                let last = last.map(|id| ("last-event-id", id));
                let headers: Vec<_> = last.into_iter().collect();
                let mut response = self.send(Method::GET, "/api/events", None, &headers).await?;
                if response.status().is_success() {
                    return Ok(response);
                }
                let text = read(response.body_mut()).await?;
                Err(self.judged(&response, text).err().unwrap_or_else(|| self.foreign("no stream")))
            };
            tokio::time::timeout(WITHIN, asking)
                .await
                .unwrap_or_else(|_| Err(AskError::NoGateway("no answer in time".to_owned())))
        })
    }

    /// Runs a future to its end on this thread.
    pub(crate) fn run<R>(&self, future: impl Future<Output = R>) -> R {
        self.tasks.block_on(&self.runtime, future)
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        headers: &[(&'static str, &str)],
    ) -> Result<Response<UpstreamBody>, AskError> {
        let bytes = body.map(|body| Bytes::from(body.to_string())).unwrap_or_default();
        let pieces = SplicedBody::new([bytes, Bytes::new(), Bytes::new()]);
        let request = Request::builder().method(method).uri(path);
        let mut request =
            request.body(pieces).map_err(|error| AskError::Unusable(error.to_string()))?;
        let list = request.headers_mut();
        list.insert(header::HOST, self.authority.clone());
        list.insert(header::USER_AGENT, HeaderValue::from_static("tidegate-cli"));
        list.insert(header::ACCEPT, HeaderValue::from_static("*/*"));
        if body.is_some() {
            list.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        if let Some(token) = &self.token {
            list.insert(header::AUTHORIZATION, token.clone());
        }
        for (name, value) in headers {
            if let Ok(value) = HeaderValue::try_from(*value) {
                list.insert(*name, value);
            }
        }
        let name: Arc<str> = "admin".into();
        let connection = self.pool.fresh(&name, &self.origin).await;
        let connection = connection.map_err(|error| AskError::NoGateway(connect_words(error)))?;
        connection.send(request).await.map_err(|error| match error {
            SendError::Broken(error) if error.is_parse() => {
                self.foreign("its answer is not HTTP (is it behind TLS?)")
            }
            SendError::NotSent | SendError::Broken(_) => {
                AskError::NoGateway("the connection broke before an answer".to_owned())
            }
        })
    }

    /// The text of a good answer, or what a bad one means.
    fn judged<B>(&self, response: &Response<B>, text: Vec<u8>) -> Result<Vec<u8>, AskError> {
        let status = response.status().as_u16();
        if response.status().is_success() {
            return Ok(text);
        }
        let value: Value = serde_json::from_slice(&text).unwrap_or_default();
        // Errors of a gateway's admin listener have a message and nothing else.
        let is_own = value["error"].as_object().is_some_and(|it| it.len() == 1);
        let message = value["error"]["message"].as_str().filter(|_| is_own);
        let message = message.map(crate::words::calm);
        Err(match (status, message) {
            (401 | 403, Some(message)) => AskError::TokenRejected(message),
            (404, Some(message)) => AskError::NotFound(message),
            (_, Some(message)) => AskError::Refused { status, message },
            // A refused reload says what is wrong in a list.
            (422, None) if value["problems"].is_array() => return Ok(text),
            (_, None) => self.foreign(&format!("it answers with status {status}")),
        })
    }

    fn foreign(&self, why: &str) -> AskError {
        AskError::NotTidegate(format!(
            "what answers at `{}` is no admin listener of this version of tidegate: {why}",
            self.url
        ))
    }
}

async fn read(body: &mut UpstreamBody) -> Result<Vec<u8>, AskError> {
    let mut text = Vec::new();
    while let Some(piece) = body.data().await {
        let broke = || AskError::NoGateway("the connection broke within the answer".to_owned());
        text.extend_from_slice(&piece.map_err(|_| broke())?);
        if text.len() > ANSWER_MAX {
            return Err(AskError::NotTidegate("the answer is too large".to_owned()));
        }
    }
    Ok(text)
}

fn connect_words(error: ConnectError) -> String {
    match error {
        ConnectError::Tls => "tls failed: its certificate is not trusted, or it speaks no TLS",
        other => other.word(),
    }
    .to_owned()
}
