//! The address of an admin listener, as people write it.

/// Where admin listeners listen unless the config says otherwise.
const PORT: u16 = 8701;

/// An address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) is_tls: bool,
    pub(super) host: String,
    pub(super) port: u16,
}

impl Address {
    /// `http://127.0.0.1:8701`, `https://gate.example`, `127.0.0.1:8701`, `gate.example`.
    pub(super) fn parse(written: &str) -> Result<Self, String> {
        let wrong = |why: &str| Err(format!("`{written}` is no address of a gateway: {why}"));
        let (is_tls, rest) = match written.split_once("://") {
            None => (false, written),
            Some(("http", rest)) => (false, rest),
            Some(("https", rest)) => (true, rest),
            Some(_) => return wrong("it begins with http:// or https://"),
        };
        let rest = rest.trim_end_matches('/');
        if rest.contains(['/', '?', '#', '@', ' ']) {
            return wrong("it is a host with a port, without a path or a user");
        }
        let (host, port) = match (rest.strip_prefix('['), rest.rsplit_once(':')) {
            // An IPv6 address in brackets may have no port behind it.
            (Some(inside), _) => match inside.split_once(']') {
                Some((host, "")) => (host.to_owned(), None),
                Some((host, port)) => (host.to_owned(), port.strip_prefix(':')),
                None => return wrong("the bracket is not closed"),
            },
            (None, Some((host, port))) => (host.to_owned(), Some(port)),
            (None, None) => (rest.to_owned(), None),
        };
        if host.is_empty() {
            return wrong("it has no host");
        }
        let port = match port.map(str::parse) {
            None if is_tls => 443,
            None => PORT,
            Some(Ok(port)) if port > 0 => port,
            Some(_) => return wrong("its port is no number from 1 to 65535"),
        };
        Ok(Self { is_tls, host, port })
    }

    /// Host and port, as the `Host` header has them.
    pub(super) fn authority(&self) -> String {
        let is_v6 = self.host.contains(':');
        let host = if is_v6 { format!("[{}]", self.host) } else { self.host.clone() };
        format!("{host}:{}", self.port)
    }

    /// The whole.
    pub(super) fn url(&self) -> String {
        format!("{}://{}", if self.is_tls { "https" } else { "http" }, self.authority())
    }
}

#[cfg(test)]
mod tests {
    use super::Address;

    #[test]
    fn the_ways_to_write_an_address_are_understood() {
        for (written, expected) in [
            ("http://127.0.0.1:9", "http://127.0.0.1:9"),
            ("127.0.0.1:9/", "http://127.0.0.1:9"),
            ("gate.example", "http://gate.example:8701"),
            ("https://gate.example", "https://gate.example:443"),
            ("http://[::1]:9", "http://[::1]:9"),
            ("[::1]", "http://[::1]:8701"),
        ] {
            let url = Address::parse(written).map(|it| it.url());
            assert_eq!(url.as_deref(), Ok(expected), "{written}");
        }
    }

    #[test]
    fn anything_else_is_refused_with_a_reason() {
        for written in [
            "",
            "http://",
            "ftp://h",
            "http://h/path",
            "http://u@h",
            "h:x",
            "h:0",
            "h:70000",
            "[::1",
        ] {
            assert!(Address::parse(written).is_err(), "{written}");
        }
    }
}
