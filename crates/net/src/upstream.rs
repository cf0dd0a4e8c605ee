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

pub use arriving::Arriving;
pub use body::Pieces;
pub use connect::{ConnectError, Connected, Place, connect};
pub use io::Io;
pub use pool::{Lease, Pool, SendError};
pub use tls::configured as tls;
