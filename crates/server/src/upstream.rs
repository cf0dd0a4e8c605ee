//! The way to a provider: connections, TLS, pools.

mod arriving;
mod body;
mod connect;
mod h1;
mod h2;
mod io;
mod pool;
mod race;
mod tls;

pub(crate) use arriving::Arriving;
pub(crate) use body::Pieces;
pub(crate) use connect::{ConnectError, Connected, Place, connect};
pub(crate) use io::Io;
pub(crate) use pool::{Lease, Pool, SendError};
pub(crate) use tls::configured as tls;
