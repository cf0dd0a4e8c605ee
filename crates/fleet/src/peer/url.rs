//! Where a replica is reached: `http://HOST:PORT`, and nothing else.

use std::net::{IpAddr, SocketAddr};

/// A replica's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerAddress {
    /// The host, without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// Why a text is no such address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlProblem {
    /// TLS with client certificates is not spoken between replicas.
    #[error(
        "`https` is not spoken between replicas; write `http`: the channel is encrypted with a key \
         from `state.secret`"
    )]
    Https,
    /// It is something else.
    #[error("it must be `http://HOST:PORT`, without a path")]
    Form,
}

impl PeerAddress {
    /// Reads a url.
    ///
    /// # Errors
    /// It is none that a replica can be reached by.
    pub fn parse(url: &str) -> Result<Self, UrlProblem> {
        let rest = match url.split_once("://") {
            Some(("http", rest)) => rest,
            Some(("https", _)) => return Err(UrlProblem::Https),
            Some(_) | None => return Err(UrlProblem::Form),
        };
        let (host, port) = rest.trim_end_matches('/').rsplit_once(':').ok_or(UrlProblem::Form)?;
        let port = port.parse().ok().filter(|port| *port > 0).ok_or(UrlProblem::Form)?;
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let is_sound = match bare {
            Some(bare) => bare.parse::<std::net::Ipv6Addr>().is_ok(),
            None => {
                let is_part =
                    |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '.' | '_');
                !host.is_empty() && host.chars().all(is_part)
            }
        };
        let host = bare.unwrap_or(host).to_owned();
        if is_sound { Ok(Self { host, port }) } else { Err(UrlProblem::Form) }
    }

    /// The url of a socket's address.
    #[must_use]
    pub fn url_of(address: SocketAddr) -> String {
        match address.ip() {
            IpAddr::V4(ip) => format!("http://{ip}:{}", address.port()),
            IpAddr::V6(ip) => format!("http://[{ip}]:{}", address.port()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_a_host_and_a_port() {
        let read = |url: &str| PeerAddress::parse(url).map(|it| (it.host, it.port));
        assert_eq!(read("http://10.0.0.7:8702"), Ok(("10.0.0.7".to_owned(), 8702)));
        assert_eq!(read("http://pod-1.peers:8702/"), Ok(("pod-1.peers".to_owned(), 8702)));
        assert_eq!(read("http://[fd00::1]:8702"), Ok(("fd00::1".to_owned(), 8702)));
        assert_eq!(read("https://10.0.0.7:8702"), Err(UrlProblem::Https));
        for wrong in [
            "",
            "10.0.0.7:8702",
            "http://10.0.0.7",
            "http://:1",
            "http://a:0",
            "http://a:1/x",
            "http://a b:1",
            "http://[::1:5",
            "ftp://a:1",
            "http://a:99999",
            "http://u@a:1",
        ] {
            assert_eq!(read(wrong), Err(UrlProblem::Form), "{wrong}");
        }
        let address = "[::1]:5".parse().expect("an address");
        assert_eq!(PeerAddress::url_of(address), "http://[::1]:5");
    }
}
