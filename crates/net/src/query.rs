//! Query strings of clients, read by what their names say.
//!
//! A server undoes percent-encoding, may split at `;` as well as at `&`, and may ignore case and
//! punctuation of names. A rule about names has to see what any of them would see.
//!
//! Rules kept here:
//! - A key never travels in a query, where logs and proxies would keep it (S9).
//! - What the config says about a parameter cannot be changed by a client: its own parameter of
//!   that name is left out.

use tidegate_text::percent::escaped_byte;

/// Names that providers and clients give to credentials, in lower case, letters and digits only.
const KEY_NAMES: &[&str] = &[
    "accesskey",
    "accesstoken",
    "apikey",
    "apisecret",
    "apitoken",
    "authkey",
    "authorization",
    "authtoken",
    "bearer",
    "bearertoken",
    "clientsecret",
    "key",
    "ocpapimsubscriptionkey",
    "password",
    "secret",
    "secretkey",
    "subscriptionkey",
    "token",
    "xapikey",
    "xauthtoken",
    "xgoogapikey",
];

/// Whether a parameter is named like a credential.
pub fn has_key(query: &str) -> bool {
    query.split(['&', ';']).any(|pair| KEY_NAMES.contains(&plain(&name_of(pair)).as_str()))
}

/// A client's query without the parameters that the config sets; as it came otherwise.
pub fn without(query: &str, is_configured: impl Fn(&str) -> bool) -> impl Iterator<Item = &str> {
    query.split('&').filter(move |part| {
        !part.is_empty() && !part.split(';').any(|pair| is_configured(&name_of(pair)))
    })
}

/// Whether two parameters are the same to a server that ignores case.
pub fn is_same_name(one: &str, other: &str) -> bool {
    one.trim().eq_ignore_ascii_case(other.trim())
}

/// A parameter's name, percent-encoding undone. What is broken stays as it is.
fn name_of(pair: &str) -> String {
    let name = pair.split('=').next().unwrap_or_default().as_bytes();
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name;
    while let Some((&first, tail)) = rest.split_first() {
        let plain = (if first == b'+' { b' ' } else { first }, tail);
        let escaped = if first == b'%' { escaped_byte(tail) } else { None };
        let (byte, after) = escaped.unwrap_or(plain);
        bytes.push(byte);
        rest = after;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Letters and digits of a name, in lower case.
fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s9_a_key_is_found_however_its_name_is_spelled() {
        for query in [
            "key=x",
            "%6bey=x",
            "%6Bey=x",
            "a=1&API_KEY=x",
            "a=1;key=x",
            ";key=x",
            "x-goog-api-key=x",
            "x%2Dgoog-api-key=x",
            "client_secret=x",
            "+key=x",
            "access-token=x",
            "token",
        ] {
            assert!(has_key(query), "{query}");
        }
        for query in ["beta=true", "api-version=2024", "a=key", "monkey=1", "%zzkey=1", "", "k%"] {
            assert!(!has_key(query), "{query}");
        }
    }

    #[test]
    fn what_the_config_sets_is_left_out_of_a_clients_query() {
        let left = |query| {
            let is_configured = |name: &str| is_same_name(name, "api-version");
            without(query, is_configured).collect::<Vec<_>>().join("&")
        };
        assert_eq!(left("api-version=evil&beta=true"), "beta=true");
        assert_eq!(left("Api-Version=evil&%61pi-version=evil&x=%61"), "x=%61");
        assert_eq!(left("a=1;api-version=evil&b=2"), "b=2");
        assert_eq!(left("a=api-version&&b"), "a=api-version&b");
    }
}
