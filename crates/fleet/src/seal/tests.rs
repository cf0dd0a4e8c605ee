//! What opens and what does not.

use proptest::prelude::*;

use super::*;

const ONE: &str = "0123456789abcdef0123456789abcdef";
const OTHER: &str = "fedcba9876543210fedcba9876543210";

fn fleet(name: &str, secrets: &[&str]) -> FleetSecrets {
    FleetSecrets::new(name, secrets.iter().copied()).expect("keys")
}

proptest! {
    #[test]
    fn what_was_sealed_opens_under_its_name_and_nowhere_else(
        name in any::<Vec<u8>>(),
        other in any::<Vec<u8>>(),
        value in any::<Vec<u8>>(),
    ) {
        let keys = fleet("prod", &[ONE]);
        let sealed = keys.seal(&name, &value).expect("random numbers");
        prop_assert_eq!(keys.open(&name, &sealed), Ok(value));
        if other != name {
            prop_assert_eq!(keys.open(&other, &sealed), Err(SealError::Foreign));
        }
    }

    #[test]
    fn a_changed_byte_makes_a_value_another_ones(
        value in any::<Vec<u8>>(),
        at in any::<prop::sample::Index>(),
        bit in 0_u8..8,
    ) {
        let keys = fleet("prod", &[ONE]);
        let mut sealed = keys.seal(b"name", &value).expect("random numbers");
        let at = at.index(sealed.len());
        sealed[at] ^= 1 << bit;
        prop_assert!(keys.open(b"name", &sealed).is_err());
    }

    #[test]
    fn arbitrary_bytes_do_not_open(bytes in any::<Vec<u8>>()) {
        prop_assert!(fleet("prod", &[ONE]).open(b"name", &bytes).is_err());
    }
}

#[test]
fn a_fleet_of_another_name_or_secret_opens_nothing_and_names_things_otherwise() {
    let prod = fleet("prod", &[ONE]);
    let sealed = prod.seal(b"name", b"value").expect("random numbers");
    for stranger in [fleet("test", &[ONE]), fleet("prod", &[OTHER])] {
        assert_eq!(stranger.open(b"name", &sealed), Err(SealError::Foreign));
        assert_ne!(stranger.name("pin", &[b"x"]), prod.name("pin", &[b"x"]));
        assert_ne!(stranger.noise_psks(), prod.noise_psks());
        assert_ne!(stranger.hash_keys(), prod.hash_keys());
        assert_ne!(stranger.fingerprints("key", &[b"x"]), prod.fingerprints("key", &[b"x"]));
    }
}

#[test]
fn a_secret_is_replaced_in_three_steps_and_everybody_reads_everybody() {
    let steps: [&[&str]; 4] = [&[ONE], &[ONE, OTHER], &[OTHER, ONE], &[OTHER]];
    for pair in steps.windows(2) {
        for (writer, reader) in [(pair[0], pair[1]), (pair[1], pair[0])] {
            let (writer, reader) = (fleet("prod", writer), fleet("prod", reader));
            let sealed = writer.seal(b"name", b"value").expect("random numbers");
            assert_eq!(reader.open(b"name", &sealed).as_deref(), Ok(&b"value"[..]));
            let name = writer.name("pin", &[b"x"]);
            assert!(reader.names("pin", &[b"x"]).any(|known| known == name));
            let told = writer.fingerprints("key", &[b"x"])[0];
            assert!(reader.fingerprints("key", &[b"x"]).contains(&told));
            let random = "5".repeat(32);
            let id = format!("{random}{}", hex(&writer.session_mac(random.as_bytes())));
            assert!(reader.knows_session(&id));
        }
    }
}

#[test]
fn only_ids_that_this_fleet_gave_are_known() {
    let keys = fleet("prod", &[ONE]);
    let id = format!("abc{}", hex(&keys.session_mac(b"abc")));
    assert!(keys.knows_session(&id));
    assert!(!fleet("prod", &[OTHER]).knows_session(&id));
    let proof = hex(&keys.session_mac(b""));
    for wrong in ["", "abc", &proof, &id[1..], &format!("{id}0"), &id.replace('a', "é")] {
        assert!(!keys.knows_session(wrong), "{wrong}");
    }
}

#[test]
fn no_name_is_made_of_other_parts() {
    let keys = fleet("prod", &[ONE]);
    let names = [
        keys.name("pin", &[b"ab", b"c"]),
        keys.name("pin", &[b"a", b"bc"]),
        keys.name("pin", &[b"abc"]),
        keys.name("pi", &[b"nabc"]),
    ];
    let distinct: std::collections::BTreeSet<_> = names.iter().collect();
    assert_eq!(distinct.len(), names.len());
}

#[test]
fn nothing_is_printed() {
    assert_eq!(format!("{:?}", fleet("prod", &[ONE, OTHER])), "FleetSecrets(2)");
}
