//! Whether the addresses to listen on are free, or a gateway listens there already.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use tidegate_config::Config;

use super::finding::Finding;

/// A gateway on this machine answers at once.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Looks at both listeners.
pub(super) fn look(config: &Config, findings: &mut Vec<Finding>) {
    let file = &config.file;
    let data = (file.listen.0, "/health", file.tls.is_some());
    let admin = (file.admin.listen.0, "/metrics", file.admin.tls.is_some());
    for (name, (address, path, has_tls)) in [("listen", data), ("admin.listen", admin)] {
        findings.push(finding(name, address, path, has_tls));
    }
}

fn finding(name: &str, address: SocketAddr, path: &str, has_tls: bool) -> Finding {
    match TcpListener::bind(address).map_err(|error| error.kind()) {
        Ok(_) => Finding::good("network", format!("{name} {address} is free")),
        Err(ErrorKind::AddrInUse) if has_tls => {
            Finding::warning("network", format!("somebody listens at {name} {address}, with TLS"))
        }
        Err(ErrorKind::AddrInUse) if answers(reachable(address), path) => {
            Finding::good("network", format!("a gateway listens at {name} {address}"))
        }
        Err(ErrorKind::AddrInUse) => {
            Finding::bad("network", format!("another program listens at {name} {address}"))
                .fix("`ss -ltnp` shows which; choose another address, or stop it")
        }
        Err(ErrorKind::PermissionDenied) => {
            Finding::bad("network", format!("{name} {address}: no permission to listen there"))
                .fix("choose a port above 1023")
        }
        Err(_) => Finding::bad("network", format!("{name} {address} is not of this machine"))
            .fix("`ip address` lists the addresses there are"),
    }
}

/// Where a listener on all addresses is reached.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// Whether an HTTP server answers with 200, or asks for a token.
fn answers(address: SocketAddr, path: &str) -> bool {
    let ask = || -> std::io::Result<[u8; 12]> {
        let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes())?;
        let mut head = [0; 12];
        stream.read_exact(&mut head)?;
        Ok(head)
    };
    ask().is_ok_and(|head| matches!(&head, b"HTTP/1.1 200" | b"HTTP/1.1 401"))
}
