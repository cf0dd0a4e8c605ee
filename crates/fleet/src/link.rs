//! Connections to the store: one server, one behind Sentinel, or a Cluster.
//!
//! Rules kept here:
//! - Every connection has a limit on connecting and on every answer; one that was cut or answers
//!   nonsense ends, and whoever uses it begins anew.
//! - No error that is shown repeats a url or a password.

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, FromRedisValue, IntoConnectionInfo,
    RedisConnectionInfo, TlsMode,
    aio::MultiplexedConnection,
    cluster::ClusterClientBuilder,
    cluster_async::ClusterConnection,
    sentinel::{SentinelClientBuilder, SentinelServerType},
};
use tidegate_config::store_url::{StoreKind, StoreUrl};

/// How long a connection may take to be there.
const CONNECT: Duration = Duration::from_secs(3);
/// How long an answer may take. A store that is slower than this is away.
pub(crate) const ANSWER: Duration = Duration::from_secs(5);

/// A connection to the store.
#[derive(Clone)]
pub(crate) enum Link {
    Server(MultiplexedConnection),
    Cluster(ClusterConnection),
}

/// Why the store is not there.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// It cannot be reached, or the connection broke.
    #[error("it cannot be reached: {0}")]
    Unreachable(String),
    /// TLS with it does not come about.
    #[error("tls: {0}")]
    Tls(&'static str),
    /// It refuses the login.
    #[error("it refuses the login")]
    Login,
    /// It has no room, and is set to keep what it has.
    #[error("it is full and takes no more (its `maxmemory-policy`)")]
    Full,
    /// It answers with an error.
    #[error("it answers with an error: {0}")]
    Answer(String),
    /// It is no store that can be used.
    #[error("{0}")]
    Unfit(String),
}

impl StoreError {
    /// What to do about it.
    #[must_use]
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::Tls(_) => {
                "is `rediss://` right? its certificate is checked by the system's authorities; \
                 a private one is named by SSL_CERT_FILE"
            }
            Self::Login => "look at user and password in `state.redis`, and at the user's rights",
            Self::Full => "give it more `maxmemory`, or a store of its own",
            Self::Unreachable(_) | Self::Answer(_) | Self::Unfit(_) => {
                "look at `state.redis`; a gateway would serve alone until the store is there"
            }
        }
    }
}

impl From<redis::RedisError> for StoreError {
    fn from(error: redis::RedisError) -> Self {
        if let Some(problem) = tls_problem(&error) {
            return Self::Tls(problem);
        }
        let code = error.code().unwrap_or_default().to_owned();
        // The server's own words may hold anything; its code is a word.
        match code.as_str() {
            "OOM" => Self::Full,
            "NOAUTH" | "WRONGPASS" | "NOPERM" => Self::Login,
            "" => match error.kind() {
                redis::ErrorKind::AuthenticationFailed => Self::Login,
                redis::ErrorKind::Io => Self::Unreachable(error.category().to_owned()),
                _ => Self::Unreachable(error.category().to_owned()),
            },
            _ => Self::Answer(code),
        }
    }
}

/// What the system said.
fn io_error(error: &redis::RedisError) -> Option<&io::Error> {
    error.source()?.downcast_ref::<Arc<dyn Error + Send + Sync>>()?.downcast_ref()
}

/// Whether the other side ended the connection.
fn is_cut_off(error: &redis::RedisError) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    let kind = io_error(error).map(io::Error::kind);
    matches!(kind, Some(BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof))
}

/// What TLS found wrong, in words that hold nothing of the other side's.
fn tls_problem(error: &redis::RedisError) -> Option<&'static str> {
    use rustls::{CertificateError as Certificate, Error as Tls};
    Some(match io_error(error)?.get_ref()?.downcast_ref::<Tls>()? {
        Tls::InvalidCertificate(it) => match it {
            Certificate::UnknownIssuer | Certificate::BadSignature => {
                "its certificate is signed by no authority that this machine trusts"
            }
            Certificate::NotValidForName | Certificate::NotValidForNameContext { .. } => {
                "its certificate is for another host than the one in `state.redis`"
            }
            Certificate::Expired | Certificate::ExpiredContext { .. } => {
                "its certificate has expired"
            }
            Certificate::NotValidYet | Certificate::NotValidYetContext { .. } => {
                "its certificate is not valid yet"
            }
            _ => "its certificate is not accepted",
        },
        Tls::InvalidMessage(_) => "what it answers is not TLS",
        Tls::AlertReceived(_) => "it ends the handshake",
        _ => "the handshake fails",
    })
}

impl Link {
    /// Reaches the store.
    pub(crate) async fn open(url: &StoreUrl) -> Result<Self, StoreError> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT))
            .set_response_timeout(Some(ANSWER));
        let opening = async {
            Ok::<_, redis::RedisError>(match &url.kind {
                StoreKind::Single { database } => {
                    let (host, port) = url.nodes.first().cloned().unwrap_or_default();
                    let info = address(&host, port, url.is_tls)
                        .into_connection_info()?
                        .set_redis_settings(login(url, *database));
                    let client = Client::open(info)?;
                    Self::Server(
                        client.get_multiplexed_async_connection_with_config(&config).await?,
                    )
                }
                StoreKind::Sentinel { service, database } => {
                    let nodes = url.nodes.iter().map(|(host, port)| address(host, *port, false));
                    let kind = SentinelServerType::Master;
                    let mut builder = SentinelClientBuilder::new(nodes, service.clone(), kind)?
                        .set_client_to_redis_db(*database);
                    if url.is_tls {
                        builder = builder
                            .set_client_to_redis_tls_mode(TlsMode::Secure)
                            .set_client_to_sentinel_tls_mode(TlsMode::Secure);
                    }
                    if let Some(user) = &url.user {
                        builder = builder.set_client_to_redis_username(user);
                    }
                    if let Some(password) = &url.password {
                        builder = builder.set_client_to_redis_password(password);
                    }
                    let mut client = builder.build()?;
                    Self::Server(client.get_async_connection_with_config(&config).await?)
                }
                StoreKind::Cluster => {
                    let nodes: Result<Vec<_>, _> = url
                        .nodes
                        .iter()
                        .map(|(host, port)| address(host, *port, url.is_tls).into_connection_info())
                        .collect();
                    let mut builder = ClusterClientBuilder::new(nodes?)
                        .connection_timeout(CONNECT)
                        .response_timeout(ANSWER)
                        .retries(1);
                    if let Some(user) = &url.user {
                        builder = builder.username(user);
                    }
                    if let Some(password) = &url.password {
                        builder = builder.password(password);
                    }
                    Self::Cluster(builder.build()?.get_async_connection().await?)
                }
            })
        };
        // A Sentinel or Cluster asks several hosts, one after another.
        match tokio::time::timeout(2 * CONNECT, opening).await {
            Ok(Err(error)) if url.is_tls && (is_cut_off(&error) || error.is_timeout()) => {
                Err(StoreError::Tls("there is no handshake: does it speak TLS?"))
            }
            Ok(opened) => Ok(opened?),
            Err(_) => Err(StoreError::Unreachable("it did not answer in time".to_owned())),
        }
    }

    /// Asks one thing.
    pub(crate) async fn ask<T: FromRedisValue>(&mut self, command: &Cmd) -> Result<T, StoreError> {
        let answer = match self {
            Self::Server(link) => tokio::time::timeout(ANSWER, command.query_async(link)).await,
            Self::Cluster(link) => tokio::time::timeout(ANSWER, command.query_async(link)).await,
        };
        match answer {
            Ok(answer) => Ok(answer?),
            Err(_) => Err(StoreError::Unreachable("it did not answer in time".to_owned())),
        }
    }
}

fn address(host: &str, port: u16, is_tls: bool) -> ConnectionAddr {
    let host = host.to_owned();
    match is_tls {
        true => ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None },
        false => ConnectionAddr::Tcp(host, port),
    }
}

fn login(url: &StoreUrl, database: i64) -> RedisConnectionInfo {
    let mut info = RedisConnectionInfo::default().set_db(database);
    if let Some(user) = &url.user {
        info = info.set_username(user);
    }
    if let Some(password) = &url.password {
        info = info.set_password(password);
    }
    info
}
