//! The keys that are derived from a fleet's secret, and what is done with them.
//!
//! | key | what for |
//! |---|---|
//! | seal | values in the store: AES-256-GCM-SIV, which bears random nonces |
//! | names | names in the store: HMAC-SHA-256 |
//! | sessions | the part of an MCP session's id that proves who gave it |
//! | peer channel | the pre-shared key of the Noise handshake |
//! | rendezvous | the core's hash of sessions |
//!
//! Rules kept here:
//! - Every purpose has a key of its own, by HKDF-SHA-256 over the secret and the fleet's name: what
//!   belongs to a fleet of another name or secret does not open, whatever it is put into.
//! - A sealed value is bound to the name it is kept under, so that it cannot be moved.
//! - Of several secrets the first one writes, and all of them read.
//! - No secret and no key is ever printed.

use aws_lc_rs::{
    aead::{AES_256_GCM_SIV, Aad, Nonce, RandomizedNonceKey},
    hkdf, hmac,
};
use subtle::ConstantTimeEq;
use tidegate_core::names::{Fingerprint, HashKey};

/// What every derivation begins with.
const SALT: &[u8] = b"tidegate fleet 1";

/// How sealed values are laid out: this, a nonce, the text with its tag.
const FORMAT: u8 = 1;
const NONCE_BYTES: usize = 12;
const TAG_BYTES: usize = 16;

/// The bytes of a session id's proof.
pub const SESSION_MAC_BYTES: usize = 16;

/// The keys of a fleet.
pub struct FleetSecrets {
    /// One set per secret; never empty.
    sets: Vec<KeySet>,
}

impl std::fmt::Debug for FleetSecrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FleetSecrets({})", self.sets.len())
    }
}

/// The keys of one secret.
struct KeySet {
    seal: RandomizedNonceKey,
    names: hmac::Key,
    sessions: hmac::Key,
    psk: [u8; 32],
    rendezvous: [u8; 16],
}

/// Why a value was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// It is no sealed value, or not one of this version.
    #[error("it is not a sealed value of this version")]
    Form,
    /// It was sealed with another secret or for another name, or was changed.
    #[error("it was not sealed by this fleet under this name")]
    Foreign,
}

/// A name in the store: 128 bits of an HMAC, in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SealedName(pub String);

impl FleetSecrets {
    /// The keys of a fleet of this name; `None` without a secret.
    #[must_use]
    pub fn new<'a>(fleet: &str, secrets: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        let sets: Option<Vec<_>> =
            secrets.into_iter().map(|secret| KeySet::derive(fleet, secret)).collect();
        sets.filter(|sets| !sets.is_empty()).map(|sets| Self { sets })
    }

    /// How many secrets there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.sets.len()
    }

    /// Seals a value under a name, with the first secret; `None` if the system gives no random
    /// numbers.
    #[must_use]
    pub fn seal(&self, name: &[u8], value: &[u8]) -> Option<Vec<u8>> {
        let mut text = value.to_vec();
        let nonce = self.sets[0].seal.seal_in_place_append_tag(Aad::from(name), &mut text).ok()?;
        let mut sealed = Vec::with_capacity(1 + NONCE_BYTES + text.len());
        sealed.push(FORMAT);
        sealed.extend_from_slice(nonce.as_ref());
        sealed.append(&mut text);
        Some(sealed)
    }

    /// Opens a value that was kept under a name.
    ///
    /// # Errors
    /// It is not one of this fleet's, or not of this name.
    pub fn open(&self, name: &[u8], sealed: &[u8]) -> Result<Vec<u8>, SealError> {
        let Some((&FORMAT, rest)) = sealed.split_first() else { return Err(SealError::Form) };
        if rest.len() < NONCE_BYTES + TAG_BYTES {
            return Err(SealError::Form);
        }
        let (nonce, text) = rest.split_at(NONCE_BYTES);
        for set in &self.sets {
            let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| SealError::Form)?;
            let mut text = text.to_vec();
            let opened = set.seal.open_in_place(nonce, Aad::from(name), &mut text);
            if let Ok(length) = opened.map(|opened| opened.len()) {
                text.truncate(length);
                return Ok(text);
            }
        }
        Err(SealError::Foreign)
    }

    /// The name of something in the store, by the first secret.
    #[must_use]
    pub fn name(&self, kind: &str, parts: &[&[u8]]) -> SealedName {
        self.sets[0].name(kind, parts)
    }

    /// All names under which it may be found, the first one first.
    pub fn names<'a>(
        &'a self,
        kind: &'a str,
        parts: &'a [&'a [u8]],
    ) -> impl Iterator<Item = SealedName> + 'a {
        self.sets.iter().map(move |set| set.name(kind, parts))
    }

    /// What replicas call a backend, an endpoint or a key, one name per secret.
    #[must_use]
    pub fn fingerprints(&self, kind: &str, parts: &[&[u8]]) -> Vec<Fingerprint> {
        self.sets.iter().map(|set| Fingerprint(set.tag(kind, parts))).collect()
    }

    /// The keys of the core's hash of sessions, one per secret.
    #[must_use]
    pub fn hash_keys(&self) -> Vec<HashKey> {
        self.sets.iter().map(|set| HashKey(set.rendezvous)).collect()
    }

    /// The proof that a session id was given by this fleet, for the random part of the id.
    #[must_use]
    pub fn session_mac(&self, random_part: &[u8]) -> [u8; SESSION_MAC_BYTES] {
        cut(hmac::sign(&self.sets[0].sessions, random_part).as_ref())
    }

    /// Whether a session id was given by this fleet. An id is a random part and its proof, both in
    /// hexadecimal: the last 32 digits are the proof.
    #[must_use]
    pub fn knows_session(&self, id: &str) -> bool {
        let Some(at) = id.len().checked_sub(2 * SESSION_MAC_BYTES) else { return false };
        if !id.is_ascii() || at == 0 {
            return false;
        }
        let (random, proof) = id.split_at(at);
        let Some(proof) = unhex::<SESSION_MAC_BYTES>(proof) else { return false };
        let proves = |set: &KeySet| -> subtle::Choice {
            let own: [u8; SESSION_MAC_BYTES] =
                cut(hmac::sign(&set.sessions, random.as_bytes()).as_ref());
            own.ct_eq(&proof)
        };
        // All of them, so that the time says nothing.
        self.sets.iter().fold(subtle::Choice::from(0), |any, set| any | proves(set)).into()
    }

    /// The pre-shared keys of the channel between replicas: the first one is used, all are
    /// accepted.
    #[must_use]
    pub fn noise_psks(&self) -> Vec<[u8; 32]> {
        self.sets.iter().map(|set| set.psk).collect()
    }
}

impl KeySet {
    fn derive(fleet: &str, secret: &str) -> Option<Self> {
        let root = hkdf::Salt::new(hkdf::HKDF_SHA256, SALT).extract(secret.as_bytes());
        let seal: [u8; 32] = derived(&root, fleet, "seal")?;
        let names: [u8; 32] = derived(&root, fleet, "names")?;
        let sessions: [u8; 32] = derived(&root, fleet, "sessions")?;
        Some(Self {
            seal: RandomizedNonceKey::new(&AES_256_GCM_SIV, &seal).ok()?,
            names: hmac::Key::new(hmac::HMAC_SHA256, &names),
            sessions: hmac::Key::new(hmac::HMAC_SHA256, &sessions),
            psk: derived(&root, fleet, "peer channel")?,
            rendezvous: derived(&root, fleet, "rendezvous")?,
        })
    }

    fn tag(&self, kind: &str, parts: &[&[u8]]) -> [u8; 16] {
        let mut context = hmac::Context::with_key(&self.names);
        for part in std::iter::once(&kind.as_bytes()).chain(parts) {
            context.update(&(part.len() as u64).to_be_bytes());
            context.update(part);
        }
        cut(context.sign().as_ref())
    }

    fn name(&self, kind: &str, parts: &[&[u8]]) -> SealedName {
        SealedName(hex(&self.tag(kind, parts)))
    }
}

/// A key of so many bytes for one purpose.
fn derived<const BYTES: usize>(
    root: &hkdf::Prk,
    fleet: &str,
    purpose: &str,
) -> Option<[u8; BYTES]> {
    struct Length(usize);
    impl hkdf::KeyType for Length {
        fn len(&self) -> usize {
            self.0
        }
    }
    let mut key = [0; BYTES];
    let parts = [purpose.as_bytes(), &[0], fleet.as_bytes()];
    root.expand(&parts, Length(BYTES)).ok()?.fill(&mut key).ok()?;
    Some(key)
}

/// The first bytes of a longer tag.
fn cut<const BYTES: usize>(tag: &[u8]) -> [u8; BYTES] {
    std::array::from_fn(|at| tag.get(at).copied().unwrap_or_default())
}

/// Bytes in hexadecimal.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble & 15)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(*byte)]).collect()
}

/// So many bytes from hexadecimal.
#[must_use]
pub fn unhex<const BYTES: usize>(text: &str) -> Option<[u8; BYTES]> {
    let text = text.as_bytes();
    if text.len() != 2 * BYTES {
        return None;
    }
    let digit = |at: usize| char::from(text[at]).to_digit(16).map(|it| it as u8);
    let mut bytes = [0; BYTES];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = digit(2 * at)? << 4 | digit(2 * at + 1)?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests;
