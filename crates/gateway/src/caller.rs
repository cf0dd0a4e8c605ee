//! Who calls: the inbound keys.
//!
//! Rules kept here:
//! - Keys are compared as SHA-256 digests, in constant time and all of them, so that neither the
//!   key nor its place in the list can be measured (S6).
//! - Every credential of a request counts, because SDKs send two of them when two are configured:
//!   one key that is known is enough, whatever stands beside it. Of two known ones the first wins,
//!   in the order of `KEY_HEADERS`, then `authorization`.
//! - Without `keys` everybody may call (and the listener is loopback: `check` sees to it).
//! - A key in the query string is refused (S9).

use std::path::Path;
use std::sync::Arc;

use http::{HeaderMap, HeaderName, header};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tidegate_config::{file::ConfigFile, percent::Percent, secret::Environment};
use tidegate_mcp::shares;

/// The headers in which a key stands as it is: Anthropic's, Azure's and Google's.
static KEY_HEADERS: [HeaderName; 3] = [
    HeaderName::from_static("x-api-key"),
    HeaderName::from_static("api-key"),
    HeaderName::from_static("x-goog-api-key"),
];

/// Why nobody is known to have sent a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unauthorized {
    NoKeySent,
    UnknownKey,
}

impl Unauthorized {
    /// What to tell the client.
    pub const fn message(self) -> &'static str {
        match self {
            Self::NoKeySent => {
                "no key was sent: send it as `authorization: Bearer KEY` or `x-api-key: KEY`"
            }
            Self::UnknownKey => "the key that was sent is not known here",
        }
    }

    /// The value of `www-authenticate`, without which a 401 is incomplete (RFC 6750, section 3).
    pub const fn challenge(self) -> &'static str {
        match self {
            Self::NoKeySent => "Bearer",
            Self::UnknownKey => "Bearer error=\"invalid_token\"",
        }
    }
}

/// Somebody who may call.
#[derive(Debug)]
pub struct Caller {
    pub name: Arc<str>,
    routes: Option<Vec<String>>,
    servers: Option<Vec<String>>,
    /// The fraction of the MCP bounds that it may use.
    pub share: f64,
}

impl Caller {
    /// The gateway itself, which may use everything.
    pub fn own() -> Arc<Self> {
        Arc::new(Self { name: "tidegate".into(), routes: None, servers: None, share: 1.0 })
    }

    /// Whether it may use a route (`direct` requests name their target here).
    pub fn may_use(&self, route: &str) -> bool {
        self.routes.as_ref().is_none_or(|routes| routes.iter().any(|it| it == route))
    }

    /// Whether it may use an MCP server (or a group of them, by the group's name).
    pub fn may_use_server(&self, server: &str) -> bool {
        self.servers.as_ref().is_none_or(|servers| servers.iter().any(|it| it == server))
    }

    /// The MCP servers, and groups of them, that it may use; all if none are said.
    pub fn servers(&self) -> Option<&[String]> {
        self.servers.as_deref()
    }
}

/// Everybody who may call.
#[derive(Debug)]
pub struct Callers {
    /// `None`: everybody.
    keys: Option<Vec<([u8; 32], Arc<Caller>)>>,
    anyone: Arc<Caller>,
}

impl Callers {
    pub fn new(file: &ConfigFile, folder: &Path, environment: &dyn Environment) -> Self {
        let count = file.keys.as_ref().map_or(0, Vec::len);
        let known = |file: &tidegate_config::file::CallerFile| {
            // A key that cannot be resolved opens nothing.
            let secret = file.key.resolve(environment, folder).ok()?;
            let caller = Caller {
                name: file.name.as_str().into(),
                routes: file.routes.clone(),
                servers: file.servers.clone(),
                share: shares::fraction(file.share.map(Percent::fraction), count),
            };
            Some((digest(secret.expose().as_bytes()), Arc::new(caller)))
        };
        Self {
            keys: file.keys.as_ref().map(|keys| keys.iter().filter_map(known).collect()),
            anyone: Arc::new(Caller { name: "".into(), routes: None, servers: None, share: 1.0 }),
        }
    }

    /// The caller of this name, with what it may use now; none if it may not call any more.
    pub fn named(&self, name: &str) -> Option<Arc<Caller>> {
        let Some(keys) = &self.keys else {
            return Some(Arc::clone(&self.anyone)).filter(|anyone| *anyone.name == *name);
        };
        keys.iter().map(|(_, caller)| caller).find(|it| *it.name == *name).map(Arc::clone)
    }

    /// Everybody who may call.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Caller>> {
        let anyone = self.keys.is_none().then_some(&self.anyone);
        self.keys.iter().flatten().map(|(_, caller)| caller).chain(anyone)
    }

    /// Whether both know the same keys.
    pub fn has_the_keys_of(&self, other: &Self) -> bool {
        let digests = |callers: &Self| {
            let keys = callers.keys.as_ref()?;
            Some(keys.iter().map(|(digest, _)| *digest).collect::<Vec<_>>())
        };
        digests(self) == digests(other)
    }

    /// Who sent these headers.
    pub fn who(&self, headers: &HeaderMap) -> Result<Arc<Caller>, Unauthorized> {
        let Some(keys) = &self.keys else { return Ok(Arc::clone(&self.anyone)) };
        let mut found = Err(Unauthorized::NoKeySent);
        for sent in presented(headers).map(digest) {
            for (key, caller) in keys {
                let is_it = bool::from(key.ct_eq(&sent));
                if is_it && found.is_err() {
                    found = Ok(Arc::clone(caller));
                }
            }
            found = found.or(Err(Unauthorized::UnknownKey));
        }
        found
    }
}

/// Every key in the headers, as the SDKs send them; an empty one is none.
fn presented(headers: &HeaderMap) -> impl Iterator<Item = &[u8]> {
    let plain = KEY_HEADERS.iter().flat_map(|name| headers.get_all(name));
    let bearer = headers.get_all(header::AUTHORIZATION).iter().filter_map(|value| {
        let (scheme, key) = value.as_bytes().split_at_checked(7)?;
        scheme.eq_ignore_ascii_case(b"bearer ").then_some(key)
    });
    let plain = plain.map(|value| value.as_bytes());
    plain.chain(bearer).map(<[u8]>::trim_ascii).filter(|key| !key.is_empty())
}

fn digest(key: &[u8]) -> [u8; 32] {
    Sha256::digest(key).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_bed::{self, CALLER_CANARY};

    fn check(pairs: &[(&'static str, &str)], expected: Result<&str, Unauthorized>) {
        let live = test_bed::live(test_bed::TWO_PROVIDERS);
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().expect("a header value"));
        }
        let found = live.callers.who(&headers);
        assert_eq!(found.as_ref().map(|it| &*it.name).map_err(|it| *it), expected, "{pairs:?}");
    }

    #[test]
    fn one_known_key_is_enough_whatever_stands_beside_it() {
        let known = &format!("Bearer {CALLER_CANARY}");
        check(&[("x-api-key", "sk-ant-of-somebody-else"), ("authorization", known)], Ok("ci"));
        check(&[("x-api-key", CALLER_CANARY), ("authorization", "Bearer wrong")], Ok("ci"));
        check(&[("x-goog-api-key", CALLER_CANARY)], Ok("ci"));
        check(&[("api-key", CALLER_CANARY), ("authorization", "Basic eDp5")], Ok("ci"));
        let both = [("authorization", known.as_str()), ("x-api-key", "canary-caller-all")];
        check(&both, Ok("all"));
    }

    #[test]
    fn a_missing_key_is_told_from_an_unknown_one() {
        check(&[], Err(Unauthorized::NoKeySent));
        check(&[("x-api-key", ""), ("authorization", "Bearer ")], Err(Unauthorized::NoKeySent));
        check(&[("authorization", "Basic eDp5")], Err(Unauthorized::NoKeySent));
        check(&[("authorization", "Bearer wrong")], Err(Unauthorized::UnknownKey));
        check(&[("x-api-key", "' OR 1=1--")], Err(Unauthorized::UnknownKey));
    }
}
