//! A hash that is the same in every run, on every machine and in every version: names are made of
//! it.
//!
//! It is FNV-1a of 64 bits with a last mixing step, chosen because it fits into a screen. It keeps
//! nobody from looking for two texts with one hash, so nothing may rely on that.

/// FNV's offset basis and prime.
const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

/// The hash of some texts, in order. Where one ends and the next begins counts.
#[must_use]
pub fn fingerprint(parts: &[&str]) -> u64 {
    let mut hash = BASIS;
    let mut take = |byte: u8| hash = (hash ^ u64::from(byte)).wrapping_mul(PRIME);
    for part in parts {
        part.bytes().for_each(&mut take);
        // No text holds this byte, so it ends one.
        take(0xff);
    }
    // FNV leaves the upper bits of short texts alike; these steps (of MurmurHash3) spread them.
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_never_changes_between_versions() {
        assert_eq!(fingerprint(&[]), 0xefd0_1f60_ba99_2926);
        assert_eq!(fingerprint(&["github", "search"]), 0xdecf_58a6_8189_b3ac);
    }

    #[test]
    fn where_a_text_ends_counts() {
        assert_ne!(fingerprint(&["a", "bc"]), fingerprint(&["ab", "c"]));
        assert_ne!(fingerprint(&["a"]), fingerprint(&["a", ""]));
    }
}
