//! Asking a server for everything it offers, page by page, and stopping in time.
//!
//! ```text
//!   while let Some(ask) = gather.ask() {
//!       send ask.method() with ask.params(); then gather.page(result) or gather.refused()
//!   }
//!   gather.finish()
//! ```
//! Rules kept here:
//! - Only what the server's capabilities declare is asked for.
//! - Every cursor is followed, an empty one too, except one that came before: it would go round.
//! - What the server fails to answer is kept as it was known before; what it says it does not have
//!   is gone.
//! - A listing is bounded. What is beyond is left out, and the [`Shortfall`] says so.

use std::{collections::BTreeSet, fmt, sync::Arc};

use serde::{
    Deserialize,
    de::{Deserializer, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

use super::{Defect, Item, Kind, Listing, ServerInfo, valid};
use crate::{
    era::Era,
    raw::{Fields, Flaw, as_text, quoted},
    stateless::mirror,
};

/// Definitions of one kind that are kept: no client can use as many.
pub const ITEMS_MAX: usize = 10_000;
/// Bytes of all definitions of a server.
pub const LISTING_MAX: usize = 16 * 1024 * 1024;
/// Pages of one kind: small pages of a long list, and an end to pages that are empty for ever.
pub const PAGES_MAX: usize = 2_000;

/// A listing in the making.
#[derive(Debug)]
pub struct Gather {
    listing: Listing,
    /// What is still to be asked for; the last one is being asked for.
    kinds: Vec<Kind>,
    /// Of the kind being asked for.
    items: Vec<Item>,
    cursor: Option<String>,
    cursors: BTreeSet<String>,
    pages: usize,
    /// Bytes kept, of all kinds.
    size: usize,
    shortfall: Shortfall,
    checks_headers: bool,
    /// What was known before.
    before: Option<Arc<Listing>>,
}

/// What to ask next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// For what.
    pub kind: Kind,
    /// From where on.
    pub cursor: Option<String>,
}

impl Ask {
    /// The method to send.
    #[must_use]
    pub const fn method(&self) -> &'static str {
        self.kind.method()
    }

    /// Its params, as text of JSON.
    #[must_use]
    pub fn params(&self) -> Option<String> {
        self.cursor.as_ref().map(|cursor| format!(r#"{{"cursor":{}}}"#, quoted(cursor)))
    }
}

impl Gather {
    /// Begins with a server that was just greeted.
    #[must_use]
    pub fn new(info: ServerInfo) -> Self {
        let kinds = Kind::ALL.into_iter().filter(|kind| info.offers(*kind)).collect();
        Self::of(Listing::new(info), kinds)
    }

    /// Keeps what was known before wherever the server fails to answer.
    pub fn fall_back_on(&mut self, before: Arc<Listing>) {
        self.before = Some(before);
    }

    /// Asks again for some kinds only, after the server said that they changed.
    #[must_use]
    pub fn again(listing: &Listing, kinds: &[Kind]) -> Self {
        let mut listing = listing.clone();
        kinds.iter().for_each(|kind| listing.set_items(*kind, Vec::new()));
        let is_wanted = |kind: &Kind| kinds.contains(kind) && listing.info.offers(*kind);
        let wanted = Kind::ALL.into_iter().filter(is_wanted).collect();
        Self::of(listing, wanted)
    }

    /// Asks for these kinds as well, before anything was asked for.
    pub fn ask_also(&mut self, kinds: &[Kind]) {
        let listing = &mut self.listing;
        let mut wanted = self.kinds.clone();
        for kind in kinds.iter().filter(|kind| !self.kinds.contains(kind)) {
            listing.set_items(*kind, Vec::new());
            wanted.extend(listing.info.offers(*kind).then_some(*kind));
        }
        self.kinds = Kind::ALL.into_iter().rev().filter(|kind| wanted.contains(kind)).collect();
        self.size = size_of_all(&self.listing);
    }

    fn of(listing: Listing, mut kinds: Vec<Kind>) -> Self {
        kinds.reverse();
        let size = size_of_all(&listing);
        Self {
            listing,
            kinds,
            items: Vec::new(),
            cursor: None,
            cursors: BTreeSet::new(),
            pages: 0,
            size,
            shortfall: Shortfall::default(),
            checks_headers: false,
            before: None,
        }
    }

    /// Leaves out tools whose arguments could not be repeated in headers as they want it: a client
    /// of the stateless era does so over HTTP.
    pub fn check_headers(&mut self) {
        self.checks_headers = true;
    }

    /// What to ask next; none when everything was asked.
    #[must_use]
    pub fn ask(&self) -> Option<Ask> {
        self.kinds.last().map(|kind| Ask { kind: *kind, cursor: self.cursor.clone() })
    }

    /// Takes the answer to [`Self::ask`].
    ///
    /// # Errors
    /// It is no clear object: the server is not to be trusted with the rest.
    pub fn page(&mut self, result: &RawValue) -> Result<(), Flaw> {
        let Some(kind) = self.kinds.last().copied() else { return Ok(()) };
        let fields = Fields::of(result, &[])?;
        let is_cut = match fields.get(kind.field()).map(|items| serde_json::from_str(items.get())) {
            None => false,
            Some(Ok(Elements { kept, is_cut })) => self.keep(kind, &kept) || is_cut,
            Some(Err(_)) => {
                self.shortfall.skip(kind, None, "the list must be an array");
                false
            }
        };
        self.pages += 1;
        self.cursor = fields.get("nextCursor").and_then(as_text);
        let is_last = match &self.cursor {
            None => true,
            Some(_) if is_cut || self.pages == PAGES_MAX => true,
            Some(cursor) => !self.cursors.insert(cursor.clone()),
        };
        if is_cut || (is_last && self.cursor.is_some()) {
            self.shortfall.cut.push(kind);
        }
        if is_cut || is_last {
            self.close_kind();
        }
        Ok(())
    }

    /// The answer to [`Self::ask`] was larger than is taken: what came before it of this kind is
    /// all, and the other kinds go on.
    pub fn too_large(&mut self) {
        if let Some(kind) = self.kinds.last() {
            self.shortfall.too_large.push(*kind);
        }
        self.close_kind();
    }

    /// The server refused [`Self::ask`], because it has no such thing: what came so far of this
    /// kind is all.
    pub fn refused(&mut self) {
        self.close_kind();
    }

    /// The server failed to answer [`Self::ask`]: what was known of this kind stays.
    pub fn failed(&mut self) {
        let Some(kind) = self.kinds.last().copied() else { return };
        self.shortfall.failed.push(kind);
        if let Some(before) = &self.before {
            self.items = before.items(kind).to_vec();
        }
        self.close_kind();
    }

    /// The listing, and what it lacks.
    #[must_use]
    pub fn finish(mut self) -> (Listing, Shortfall) {
        self.close_kind();
        (self.listing, self.shortfall)
    }

    /// Keeps what fits; says whether something did not.
    fn keep(&mut self, kind: Kind, elements: &[&RawValue]) -> bool {
        for element in elements {
            let item = match self.read(kind, element) {
                Ok(item) => item,
                Err(why) => {
                    let key = Fields::of(element, &[]).ok().and_then(|it| it.text(kind.key()));
                    self.shortfall.skip(kind, key.as_deref(), &why);
                    continue;
                }
            };
            let size = self.size + size_of(&item);
            if self.items.len() == ITEMS_MAX || size > LISTING_MAX {
                return true;
            }
            self.size = size;
            self.items.push(item);
        }
        false
    }

    /// One definition, or why it cannot be offered.
    fn read(&self, kind: Kind, element: &RawValue) -> Result<Item, String> {
        let era = match self.listing.info.known_version() {
            Some(_) => Era::Sessions,
            None => Era::Stateless,
        };
        let sound = valid::checked(kind, element, era).map_err(|it: Defect| it.to_string())?;
        if self.checks_headers && kind == Kind::Tools {
            let checked = mirror::check_tool(sound.get());
            checked.map_err(|_| "its arguments cannot be repeated in headers".to_owned())?;
        }
        Item::read(kind, &sound).ok_or_else(|| format!("`{}` cannot be used", kind.key()))
    }

    fn close_kind(&mut self) {
        if let Some(kind) = self.kinds.pop() {
            self.listing.set_items(kind, std::mem::take(&mut self.items));
        }
        self.cursor = None;
        self.cursors.clear();
        self.pages = 0;
    }
}

fn size_of_all(listing: &Listing) -> usize {
    Kind::ALL.iter().flat_map(|kind| listing.items(*kind)).map(size_of).sum()
}

fn size_of(item: &Item) -> usize {
    item.raw.len() + item.key.len()
}

/// Definitions that are named when they are left out: enough to find the fault.
const NAMED_MAX: usize = 16;
/// Characters of a name that are repeated.
const SHOWN_CHARS: usize = 64;

/// What a listing lacks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shortfall {
    /// Definitions that break the protocol's schema.
    pub skipped: usize,
    /// The first of them, each with what is wrong with it.
    pub named: Vec<String>,
    /// Kinds of which only a part was taken.
    pub cut: Vec<Kind>,
    /// Kinds of which a page was larger than an answer may be.
    pub too_large: Vec<Kind>,
    /// Kinds that the server failed to list.
    pub failed: Vec<Kind>,
}

impl Shortfall {
    /// Whether nothing is missing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let is_cut = !self.cut.is_empty() || !self.too_large.is_empty();
        self.skipped == 0 && !is_cut && self.failed.is_empty()
    }

    fn skip(&mut self, kind: Kind, key: Option<&str>, why: &str) {
        self.skipped += 1;
        if self.named.len() < NAMED_MAX {
            let key: Option<String> = key.map(|key| key.chars().take(SHOWN_CHARS).collect());
            let name = key.map(|key| format!(" {key:?}")).unwrap_or_default();
            self.named.push(format!("{kind}{name}: {why}"));
        }
    }
}

impl fmt::Display for Shortfall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut comma = "";
        if self.skipped > 0 {
            let named = self.named.join("; ");
            write!(f, "{} unusable definitions left out ({named})", self.skipped)?;
            comma = ", ";
        }
        for kind in &self.cut {
            write!(f, "{comma}{kind} cut off: the list is too long or goes round")?;
            comma = ", ";
        }
        for kind in &self.too_large {
            write!(f, "{comma}{kind} cut off: a page is larger than `limits.mcp_answer`")?;
            comma = ", ";
        }
        for kind in &self.failed {
            write!(f, "{comma}{kind} not listed: the server failed")?;
            comma = ", ";
        }
        Ok(())
    }
}

/// The elements of an array, up to one more than can be used: an array of ten million zeros takes
/// no more memory than its text.
struct Elements<'a> {
    kept: Vec<&'a RawValue>,
    is_cut: bool,
}

impl<'de: 'a, 'a> Deserialize<'de> for Elements<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ElementsReader;
        impl<'de> Visitor<'de> for ElementsReader {
            type Value = Elements<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let (mut kept, mut is_cut) = (Vec::new(), false);
                while let Some(element) = seq.next_element()? {
                    is_cut = kept.len() == ITEMS_MAX;
                    if !is_cut {
                        kept.push(element);
                    }
                }
                Ok(Elements { kept, is_cut })
            }
        }
        deserializer.deserialize_seq(ElementsReader)
    }
}
