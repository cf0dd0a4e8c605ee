//! The way to a provider: connections, TLS, pools.

mod connect;
mod error;
mod h1;
mod h2;
mod io;
mod pool;
mod race;
mod request_lines;
mod spliced_body;
mod tls;
mod upstream_body;

pub use connect::{ConnectError, Connected, Origin, connect};
pub use error::UpstreamError;
pub use io::Io;
pub use pool::{Pool, PooledConnection, SendError};
pub use request_lines::RequestLines;
pub use spliced_body::SplicedBody;
pub use tls::configured as tls;
pub use upstream_body::UpstreamBody;
