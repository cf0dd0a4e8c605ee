//! How many tokens a text costs a model, estimated.

/// Bytes of English or JSON that make a token, about; models differ by a quarter either way.
const BYTES: usize = 4;

/// About how many tokens a text of so many bytes costs.
#[must_use]
pub const fn estimated_tokens(bytes: usize) -> usize {
    bytes.div_ceil(BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_begun_token_counts() {
        assert_eq!([0, 1, 4, 5].map(estimated_tokens), [0, 1, 1, 2]);
    }
}
