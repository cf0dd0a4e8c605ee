//! Signatures of thoughts: `thoughtSignature`, bytes in base64.
//!
//! Google's SDKs decode the field, so another vendor's seal must be base64 there too. A client may
//! return the field in either alphabet of base64.
//!
//! Models from Gemini 3 on refuse a call in the history that has no signature. Google documents a
//! value for calls that another model made: [`FOREIGN_CALL`]. Older models know no such value, so a
//! call that another vendor made goes to a client of this dialect with a mark of our own
//! ([`unsigned`]), and [`crate::convert::history`] makes of it what the next model takes.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};

use crate::convert::part::{FOREIGN_SEAL, NO_SEAL, Seal, Vendor};

/// What Google documents for a call that did not come from Gemini.
pub(in crate::convert) const FOREIGN_CALL: &str = "skip_thought_signature_validator";

/// Reads the field, which may be empty or say that there is no seal.
pub(super) fn read(text: String) -> Option<Seal> {
    if text == FOREIGN_CALL {
        return None;
    }
    let decoded = STANDARD.decode(&text).or_else(|_| URL_SAFE.decode(&text));
    let foreign = decoded
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .filter(|inside| inside.starts_with(FOREIGN_SEAL));
    Seal::read_field(Vendor::Google, foreign.unwrap_or(text), false)
}

/// What stands in the field, in an answer to a client of Gemini's API.
pub(super) fn written(seal: &Seal) -> String {
    let text = seal.in_dialect_of(Vendor::Google);
    if seal.vendor == Vendor::Google { text } else { STANDARD.encode(text) }
}

/// What stands in the field of a call that nobody signed.
pub(super) fn unsigned() -> String {
    STANDARD.encode(NO_SEAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anybodys_seal_survives_a_client_of_gemini() {
        let own = Seal { vendor: Vendor::Google, data: "AbC/+w==".into(), is_content: false };
        assert_eq!(written(&own), "AbC/+w==");
        assert_eq!(read("AbC/+w==".into()), Some(own));
        let data = "~~??>>".to_owned();
        let other = Seal { vendor: Vendor::Anthropic, data, is_content: true };
        let text = written(&other);
        assert!(STANDARD.decode(&text).is_ok());
        assert_eq!(read(text.replace('+', "-").replace('/', "_")), Some(other));
        for none in [unsigned(), FOREIGN_CALL.to_owned(), String::new()] {
            assert_eq!(read(none), None);
        }
    }
}
