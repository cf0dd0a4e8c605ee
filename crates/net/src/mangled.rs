//! What the tests of both sides do to bytes before they are read: faults put in, and cuts.

use proptest::prelude::*;
use proptest::sample::{Index, select};

/// A fault.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    Replace(u8),
    Insert(u8),
    Remove,
    Cut,
}

pub(crate) fn fault() -> impl Strategy<Value = Fault> {
    let byte = prop_oneof![select(&b"\r\n:; \t\0,0123456789abcxHT/.\x7f\xff"[..]), any::<u8>()];
    prop_oneof![
        byte.clone().prop_map(Fault::Replace),
        byte.prop_map(Fault::Insert),
        Just(Fault::Remove),
        Just(Fault::Cut),
    ]
}

impl Fault {
    pub(crate) fn put_into(self, text: &mut Vec<u8>, at: Index) {
        if text.is_empty() {
            return;
        }
        let at = at.index(text.len());
        match self {
            Self::Replace(byte) => text[at] = byte,
            Self::Insert(byte) => text.insert(at, byte),
            Self::Remove => drop(text.remove(at)),
            Self::Cut => text.truncate(at),
        }
    }
}

/// The bytes in parts, cut at these places.
pub(crate) fn parts<'a>(bytes: &'a [u8], cuts: &[Index]) -> Vec<&'a [u8]> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    cuts.sort_unstable();
    let mut parts = Vec::new();
    let mut rest = bytes;
    for cut in cuts {
        let (part, after) = rest.split_at(cut - (bytes.len() - rest.len()));
        parts.push(part);
        rest = after;
    }
    parts.push(rest);
    parts
}

/// A runtime for one case of a property.
pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime")
}
