//! Listening sockets.
//!
//! Each thread has a socket of its own on the same port (`SO_REUSEPORT`), so that the kernel
//! spreads connections and no thread hands one to another. A port that another process already
//! serves must not be shared with it by accident: it is first bound without that option.

use std::io;
use std::net::{SocketAddr, TcpListener};

use socket2::{Domain, Protocol, Socket, Type};

/// Connections the kernel may hold for us while we are busy.
const BACKLOG: i32 = 4096;

/// One socket per thread, all on the address.
pub(crate) fn bind(address: SocketAddr, threads: usize) -> io::Result<Vec<TcpListener>> {
    drop(socket(address, false)?);
    let first = socket(address, true)?;
    // Port 0 becomes a real one with the first socket.
    let address = first.local_addr()?;
    let mut sockets = vec![first];
    for _ in 1..threads {
        sockets.push(socket(address, true)?);
    }
    Ok(sockets)
}

fn socket(address: SocketAddr, is_shared: bool) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    if is_shared {
        socket.set_reuse_port(true)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    if is_shared {
        socket.listen(BACKLOG)?;
    }
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_share_a_port_and_a_taken_one_is_refused() {
        let address = "127.0.0.1:0".parse().expect("an address");
        let ours = bind(address, 3).expect("a free port");
        let port = ours[0].local_addr().expect("bound");
        assert!(ours.iter().all(|it| it.local_addr().ok() == Some(port)));
        assert!(bind(port, 1).is_err(), "a second gateway must not share it");
    }
}
