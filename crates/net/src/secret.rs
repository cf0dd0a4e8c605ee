//! Random text that nobody can guess: keys, and names of sessions that are as good as keys.

/// So many random bytes from the provider of cryptography, in hexadecimal; `None` if the system
/// gives none.
#[must_use]
pub fn random_hex<const BYTES: usize>() -> Option<String> {
    let mut bytes = [0_u8; BYTES];
    rustls::crypto::aws_lc_rs::default_provider().secure_random.fill(&mut bytes).ok()?;
    Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::random_hex;

    #[test]
    fn it_is_as_long_as_asked_for_and_never_the_same() {
        let (one, other) = (random_hex::<16>(), random_hex::<16>());
        assert_eq!(one.as_ref().map(String::len), Some(32));
        assert_ne!(one, other);
    }
}
