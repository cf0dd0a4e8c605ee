//! Maps that are empty most of the time, of which every session has several.
//!
//! A map that had an entry keeps a node with room for eleven. That is cheap for one map, and a
//! kilobyte or two for every session that waits for its client.

use std::collections::BTreeMap;

/// Takes an entry out. An empty map holds no memory.
pub(super) fn take_out<K: Ord, V>(map: &mut BTreeMap<K, V>, key: &K) -> Option<V> {
    let taken = map.remove(key);
    if map.is_empty() {
        *map = BTreeMap::new();
    }
    taken
}
