//! Signatures of thoughts: `thoughtSignature`, bytes in base64.
//!
//! Google's SDKs decode the field, so another vendor's seal must be base64 there too. A client may
//! return the field in either alphabet of base64.
//!
//! Models from Gemini 3 on refuse a call in the history that has no signature. Google documents a
//! value for calls that another model made: [`FOREIGN_CALL`].

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};

use crate::convert::part::{FOREIGN_SEAL, Seal, Vendor};

/// What Google documents for a call that did not come from Gemini.
pub(super) const FOREIGN_CALL: &str = "skip_thought_signature_validator";

/// Reads the field.
pub(super) fn read(text: String) -> Seal {
    let decoded = STANDARD.decode(&text).or_else(|_| URL_SAFE.decode(&text));
    let foreign = decoded
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .filter(|inside| inside.starts_with(FOREIGN_SEAL));
    Seal::read(Vendor::Google, foreign.unwrap_or(text), false)
}

/// What stands in the field, in an answer to a client of Gemini's API.
pub(super) fn written(seal: &Seal) -> String {
    let text = seal.in_dialect_of(Vendor::Google);
    if seal.vendor == Vendor::Google { text } else { STANDARD.encode(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anybodys_seal_survives_a_client_of_gemini() {
        let own = Seal { vendor: Vendor::Google, data: "AbC/+w==".into(), is_content: false };
        assert_eq!(written(&own), "AbC/+w==");
        assert_eq!(read("AbC/+w==".into()), own);
        let data = "~~??>>".to_owned();
        let other = Seal { vendor: Vendor::Anthropic, data, is_content: true };
        let text = written(&other);
        assert!(STANDARD.decode(&text).is_ok());
        assert_eq!(read(text.replace('+', "-").replace('/', "_")), other);
    }
}
