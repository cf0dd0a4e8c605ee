//! Opening a connection to a provider.
//!
//! Rules kept here:
//! - The address comes from the config only. A host *name* that resolves to a private address is
//!   refused unless the provider allows it (S14); the address that was checked is the one that is
//!   connected to (S16). Each address of a name is judged by itself before they race
//!   (`race.rs`).
//! - A shortage of our own (descriptors, ports) is told apart from the provider's trouble.
//! - Error words are classes, never addresses (S61).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::{Io, race::race};

/// Where a provider is, as the config says.
#[derive(Clone, Debug)]
pub struct Origin {
    pub host: String,
    pub port: u16,
    pub allow_private: bool,
    pub tls: Option<Arc<rustls::ClientConfig>>,
}

/// Why no connection came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectError {
    Dns,
    Private,
    Refused,
    Failed,
    Tls,
    /// Out of descriptors or ports: says nothing about the provider.
    Shortage,
}

impl ConnectError {
    /// The class as a client may be told of it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Dns => "name not resolved",
            Self::Private => "private address refused",
            Self::Refused => "connection refused",
            Self::Failed => "connection failed",
            Self::Tls => "tls failed",
            Self::Shortage => "out of local resources",
        }
    }
}

/// A connection, and whether it speaks HTTP/2.
pub struct Connected {
    pub io: Io,
    pub is_h2: bool,
}

pub async fn connect(place: &Origin) -> Result<Connected, ConnectError> {
    let tcp = connect_tcp(place).await?;
    // Small writes must not wait for acknowledgements; failing to say so is no reason to give up.
    drop(tcp.set_nodelay(true));
    let Some(tls) = &place.tls else {
        return Ok(Connected { io: Io::Tcp(tcp), is_h2: false });
    };
    let name = ServerName::try_from(place.host.clone()).map_err(|_| ConnectError::Tls)?;
    let stream = TlsConnector::from(Arc::clone(tls))
        .connect(name, tcp)
        .await
        .map_err(|_| ConnectError::Tls)?;
    let is_h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    Ok(Connected { io: Io::Tls(Box::new(stream)), is_h2 })
}

async fn connect_tcp(place: &Origin) -> Result<TcpStream, ConnectError> {
    let literal: Option<IpAddr> = place.host.trim_matches(['[', ']']).parse().ok();
    if let Some(address) = literal {
        return race(vec![SocketAddr::new(address, place.port)]).await;
    }
    let is_own_choice = place.allow_private || place.host.eq_ignore_ascii_case("localhost");
    let resolved = tokio::net::lookup_host((place.host.as_str(), place.port)).await;
    let mut addresses: Vec<SocketAddr> = resolved.map_err(|_| ConnectError::Dns)?.collect();
    if addresses.is_empty() {
        return Err(ConnectError::Dns);
    }
    addresses.retain(|it| is_own_choice || !is_private(it.ip()));
    if addresses.is_empty() {
        return Err(ConnectError::Private);
    }
    race(addresses).await
}

/// Whether an address is one that a public host name has no business to resolve to. An IPv4 address
/// inside an IPv6 one is judged by itself, because that is where the connection ends up.
fn is_private(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => {
            let [first, second, ..] = v4.octets();
            v4.is_loopback()
                || v4.is_private()
                || v4.is_link_local()
                || v4.is_unspecified()
                || v4.is_broadcast()
                || v4.is_multicast()
                || first == 0
                || (first == 100 && (64..128).contains(&second))
        }
        IpAddr::V6(v6) => {
            v6.is_loopback()
                || v6.is_unspecified()
                || v6.is_multicast()
                || v6.is_unique_local()
                || v6.is_unicast_link_local()
                || embedded(v6).is_some_and(|v4| is_private(IpAddr::V4(v4)))
        }
    }
}

/// The IPv4 address that packets to this one are translated or tunnelled to: IPv4-compatible
/// (`::/96`), NAT64 (`64:ff9b::/96`) and 6to4 (`2002::/16`).
fn embedded(v6: Ipv6Addr) -> Option<Ipv4Addr> {
    let from = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Ipv4Addr::new(a, b, c, d)
    };
    match v6.segments() {
        [0, 0, 0, 0, 0, 0, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            Some(from(high, low))
        }
        [0x2002, high, low, ..] => Some(from(high, low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s14_private_loopback_link_local_and_mapped_addresses_are_private() {
        for text in [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "::1",
            "::",
            "fe80::1",
            "fd00::1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::127.0.0.1",
            "64:ff9b::10.0.0.1",
            "2002:7f00:1::",
        ] {
            assert!(is_private(text.parse().expect("an address")), "{text}");
        }
        for text in [
            "1.1.1.1",
            "172.32.0.1",
            "100.128.0.1",
            "2606:4700::1",
            "::ffff:8.8.8.8",
            "64:ff9b::8.8.8.8",
        ] {
            assert!(!is_private(text.parse().expect("an address")), "{text}");
        }
    }

    #[tokio::test]
    async fn a_closed_port_is_refused() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback binds");
        let port = listener.local_addr().expect("it is bound").port();
        drop(listener);
        let place = Origin { host: "127.0.0.1".into(), port, allow_private: false, tls: None };
        assert_eq!(connect(&place).await.err(), Some(ConnectError::Refused));
    }

    #[tokio::test]
    async fn s14_a_name_that_resolves_to_loopback_is_refused_unless_it_is_localhost() {
        let place =
            |host: &str| Origin { host: host.into(), port: 1, allow_private: false, tls: None };
        assert_eq!(connect(&place("localhost")).await.err(), Some(ConnectError::Refused));
        // Resolvers answer names under `localhost` with loopback (RFC 6761) or not at all.
        let error = connect(&place("evil.localhost")).await.err();
        assert!(matches!(error, Some(ConnectError::Private | ConnectError::Dns)), "{error:?}");
    }
}
