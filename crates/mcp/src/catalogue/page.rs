//! One page of a list for a client.
//!
//! A cursor says of which kind and after which name the next page goes on, so the gateway keeps
//! nothing for it, and a list that changes between two pages repeats nothing. To clients it is
//! opaque: a letter and the digits of the name's bytes.
//!
//! Many clients read the first page only. So a list is one page as long as it is not larger than
//! an answer may be.

use std::fmt::Write as _;

use super::Catalogue;
use crate::{
    listing::Kind,
    raw::{quoted, shown},
};

/// One page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Of what.
    pub kind: Kind,
    /// The definitions, joined by commas.
    pub items: String,
    /// Where the next page begins, if there is one.
    pub next_cursor: Option<String>,
}

/// A cursor that this gateway did not give out for this list: -32602.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown cursor `{0}`; list again without one")]
pub struct BadCursor(String);

impl Page {
    /// The page as the result of its list method, as text of JSON.
    #[must_use]
    pub fn to_result(&self) -> String {
        let mut json = format!(r#"{{"{}":[{}]"#, self.kind.field(), self.items);
        if let Some(cursor) = &self.next_cursor {
            write!(json, r#","nextCursor":{}"#, quoted(cursor)).expect("a text takes everything");
        }
        json.push('}');
        json
    }
}

impl Catalogue {
    /// The page after `cursor` of what a session sees: as many definitions as fit into `max` bytes,
    /// and at least one.
    ///
    /// # Errors
    /// The cursor is none of this list's.
    pub fn page(
        &self,
        kind: Kind,
        is_visible: impl Fn(usize) -> bool,
        cursor: Option<&str>,
        max: usize,
    ) -> Result<Page, BadCursor> {
        let offers = self.offers(kind);
        let start = match cursor {
            None => 0,
            Some(cursor) => {
                let last = decode(kind, cursor).ok_or_else(|| BadCursor(shown(cursor)))?;
                offers.partition_point(|offered| offered.name.as_ref() <= last.as_str())
            }
        };
        let visible = offers[start..].iter().filter(|offered| is_visible(offered.server));
        let (mut items, mut last) = (String::new(), None);
        for offered in visible {
            let comma = if last.is_some() { "," } else { "" };
            if last.is_some() && items.len() + comma.len() + offered.raw.len() > max {
                return Ok(Page { kind, items, next_cursor: last.map(|it| encode(kind, it)) });
            }
            items.push_str(comma);
            items.push_str(&offered.raw);
            last = Some(&offered.name);
        }
        Ok(Page { kind, items, next_cursor: None })
    }
}

const fn letter(kind: Kind) -> char {
    match kind {
        Kind::Tools => 't',
        Kind::Resources => 'r',
        Kind::Templates => 'u',
        Kind::Prompts => 'p',
    }
}

fn encode(kind: Kind, name: &str) -> String {
    let mut cursor = String::from(letter(kind));
    for byte in name.bytes() {
        write!(cursor, "{byte:02x}").expect("a text takes everything");
    }
    cursor
}

fn decode(kind: Kind, cursor: &str) -> Option<String> {
    let digits = cursor.strip_prefix(letter(kind))?.as_bytes();
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let (pairs, []) = digits.as_chunks::<2>() else { return None };
    let bytes: Option<Vec<u8>> =
        pairs.iter().map(|[high, low]| Some(value(*high)? << 4 | value(*low)?)).collect();
    String::from_utf8(bytes?).ok()
}
