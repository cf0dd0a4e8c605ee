//! Listen addresses as files write them: `127.0.0.1:8700`, `[::1]:8700`, `localhost:8700`, `:8700`.
//!
//! Rules kept here:
//! - An IP address and a port. Names other than `localhost` are refused, because what a name
//!   resolves to decides whether a listener is reachable from outside, and that must be readable in
//!   the file.
//! - `localhost`, and a port alone, mean 127.0.0.1: a listener is opened to the network only by an
//!   address that says so, such as `0.0.0.0:8700`.

use std::{
    borrow::Cow,
    fmt,
    net::{Ipv4Addr, SocketAddr},
};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::diagnostic::quoted;

/// The schema format that makes the decoder parse a scalar as an address.
pub(crate) const FORMAT: &str = "tidegate-address";

/// An IP address and a port to listen on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address(pub SocketAddr);

impl Address {
    /// Understands the text of an address.
    ///
    /// # Errors
    /// A lowercase fragment that says what is wrong with the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |_| {
            let form = "write an IP address and a port, as in `127.0.0.1:8700`";
            format!("{} is not an address: {form}", quoted(text))
        };
        let local = text.strip_prefix("localhost:").or_else(|| text.strip_prefix(':'));
        if let Some(Ok(port)) = local.map(str::parse::<u16>) {
            return Ok(Self(SocketAddr::from((Ipv4Addr::LOCALHOST, port))));
        }
        text.parse().map(Self).map_err(wrong)
    }

    /// Whether only programs on this machine can reach it.
    #[must_use]
    pub fn is_loopback(self) -> bool {
        self.0.ip().to_canonical().is_loopback()
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for Address {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Address {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(de::Error::custom)
    }
}

impl JsonSchema for Address {
    fn schema_name() -> Cow<'static, str> {
        "Address".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "An IP address and a port; `localhost` and a port alone mean 127.0.0.1.",
            "type": "string",
            "format": FORMAT,
            "examples": ["127.0.0.1:8700", "[::1]:8700", "localhost:8700", ":8700"],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_told_from_the_rest() {
        let loopback = |text| Address::parse(text).expect("an address").is_loopback();
        assert!(loopback("127.0.0.1:1") && loopback("127.9.9.9:1") && loopback("[::1]:1"));
        assert!(loopback("[::ffff:127.0.0.1]:1"));
        assert!(!loopback("0.0.0.0:1") && !loopback("[::]:1") && !loopback("10.0.0.1:1"));
    }

    #[test]
    fn localhost_and_a_port_alone_are_loopback() {
        for text in ["localhost:8700", ":8700"] {
            let address = Address::parse(text).expect(text);
            assert_eq!(address.to_string(), "127.0.0.1:8700");
        }
    }

    #[test]
    fn other_names_and_missing_ports_are_refused() {
        for text in ["example.com:8700", "127.0.0.1", ":", ":99999", "localhost", "localhost:", ""]
        {
            let said = Address::parse(text).expect_err(text);
            assert!(said.contains("write an IP address and a port"), "{said}");
        }
    }
}
