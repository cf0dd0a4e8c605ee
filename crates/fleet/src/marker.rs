//! The store's marker: a random value that the first replica puts into an empty store, so that one
//! that has lost its data is told from one that never had it.
//!
//! Rules kept here:
//! - A marker that is another one than was known, or is missing, means that the data was lost, also
//!   where the connection stood all the while.
//! - Whoever finds that out has everything loaded and written again: the doubt is kept until then.

use std::cell::{Cell, RefCell};

use redis::Cmd;

use crate::{
    layout::StoreKeys,
    link::{Link, StoreError},
    seal::FleetSecrets,
};

/// The marker as it was last seen.
#[derive(Debug, Default)]
pub(crate) struct KnownMarker {
    value: RefCell<Option<Vec<u8>>>,
    is_doubted: Cell<bool>,
}

/// A marker as it was found.
#[derive(Debug, Default)]
pub(crate) struct FoundMarker {
    /// The first one that opens.
    pub(crate) value: Option<Vec<u8>>,
    /// Whether there was one that does not.
    pub(crate) is_foreign: bool,
}

impl KnownMarker {
    /// This is the marker from now on; the one before it.
    pub(crate) fn replace(&self, value: Vec<u8>) -> Option<Vec<u8>> {
        self.is_doubted.set(false);
        self.value.replace(Some(value))
    }

    /// Whether the store has lost its data since the marker was last seen, judged by what it has
    /// now.
    pub(crate) fn is_lost(&self, found: &FoundMarker) -> bool {
        let known = self.value.borrow();
        let is_lost = known.is_some() && *known != found.value;
        if is_lost {
            self.is_doubted.set(true);
        }
        is_lost
    }

    /// Whether somebody found that the data was lost and nothing was done about it yet.
    pub(crate) fn is_doubted(&self) -> bool {
        self.is_doubted.get()
    }
}

/// Reads the store's marker.
pub(crate) async fn read(
    link: &mut Link,
    secrets: &FleetSecrets,
    store_keys: &[StoreKeys],
) -> Result<FoundMarker, StoreError> {
    let mut is_foreign = false;
    for keys in store_keys {
        let mut command = Cmd::new();
        command.arg("GET").arg(&keys.marker);
        let found: Option<Vec<u8>> = link.ask(&command).await?;
        let Some(found) = found else { continue };
        match secrets.open(keys.marker.as_bytes(), &found) {
            Ok(marker) => return Ok(FoundMarker { value: Some(marker), is_foreign }),
            Err(_) => is_foreign = true,
        }
    }
    Ok(FoundMarker { value: None, is_foreign })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_marker_or_none_is_doubted_until_a_new_one_is_known() {
        let found = |value: Option<&[u8]>| FoundMarker {
            value: value.map(<[u8]>::to_vec),
            is_foreign: false,
        };
        let marker = KnownMarker::default();
        assert!(!marker.is_lost(&found(None)), "nothing was known");
        assert_eq!(marker.replace(b"a".to_vec()), None);
        assert!(!marker.is_lost(&found(Some(b"a"))) && !marker.is_doubted());
        for other in [None, Some(&b"b"[..])] {
            assert!(marker.is_lost(&found(other)) && marker.is_doubted());
            assert!(!marker.is_lost(&found(Some(b"a"))), "it is the known one");
            assert!(marker.is_doubted(), "and what was found is not forgotten");
            assert_eq!(marker.replace(b"a".to_vec()).as_deref(), Some(&b"a"[..]));
            assert!(!marker.is_doubted());
        }
    }
}
