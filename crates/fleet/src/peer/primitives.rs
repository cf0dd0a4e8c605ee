//! What the Noise handshake is made of, from the library that TLS is made of here.
//!
//! `snow` brings primitives of its own, which are sixteen more crates; these are the same
//! ones (X25519, ChaCha20-Poly1305, SHA-256) by aws-lc-rs. Nonces are counted by `snow`.

use aws_lc_rs::{
    aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey},
    agreement::{PrivateKey, UnparsedPublicKey, X25519, agree},
    digest, rand,
};
use snow::{
    Error,
    params::{CipherChoice, DHChoice, HashChoice},
    resolvers::CryptoResolver,
    types::{Cipher, Dh, Hash, Random},
};

const KEY_BYTES: usize = 32;
const TAG_BYTES: usize = 16;
const NONCE_BYTES: usize = 12;
const BLOCK_BYTES: usize = 64;

/// Finds the primitives of the one pattern that is spoken.
pub(super) struct Primitives;

impl CryptoResolver for Primitives {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        Some(Box::new(SystemBytes))
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        matches!(choice, DHChoice::Curve25519).then(|| Box::new(Exchange::default()) as _)
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        matches!(choice, HashChoice::SHA256).then(|| Box::new(Sha256::default()) as _)
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        matches!(choice, CipherChoice::ChaChaPoly).then(|| Box::new(ChaChaPoly::default()) as _)
    }
}

struct SystemBytes;

impl Random for SystemBytes {
    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Error> {
        rand::fill(bytes).map_err(|_| Error::Rng)
    }
}

/// A key pair of X25519; nothing before it is generated or set.
#[derive(Default)]
struct Exchange {
    private: [u8; KEY_BYTES],
    public: [u8; KEY_BYTES],
}

impl Exchange {
    fn pair(&self) -> Result<PrivateKey, Error> {
        PrivateKey::from_private_key(&X25519, &self.private).map_err(|_| Error::Dh)
    }
}

impl Dh for Exchange {
    fn name(&self) -> &'static str {
        "25519"
    }

    fn pub_len(&self) -> usize {
        KEY_BYTES
    }

    fn priv_len(&self) -> usize {
        KEY_BYTES
    }

    fn set(&mut self, private: &[u8]) {
        self.private.copy_from_slice(private);
        let public = self.pair().ok().and_then(|it| it.compute_public_key().ok());
        // Without a public key nobody agrees on anything.
        let public = public.and_then(|it| it.as_ref().try_into().ok());
        self.public = public.unwrap_or_default();
    }

    fn generate(&mut self, rng: &mut dyn Random) -> Result<(), Error> {
        let mut private = [0; KEY_BYTES];
        rng.try_fill_bytes(&mut private)?;
        self.set(&private);
        Ok(())
    }

    fn pubkey(&self) -> &[u8] {
        &self.public
    }

    fn privkey(&self) -> &[u8] {
        &self.private
    }

    fn dh(&self, public: &[u8], out: &mut [u8]) -> Result<(), Error> {
        let public = public.get(..KEY_BYTES).ok_or(Error::Dh)?;
        let peer = UnparsedPublicKey::new(&X25519, public);
        // A point that gives nothing away of this side's key is refused by the library.
        agree(&self.pair()?, peer, Error::Dh, |secret| {
            let out = out.get_mut(..secret.len()).ok_or(Error::Dh)?;
            out.copy_from_slice(secret);
            Ok(())
        })
    }
}

/// ChaCha20-Poly1305; without a key until one is set.
#[derive(Default)]
struct ChaChaPoly(Option<LessSafeKey>);

impl Cipher for ChaChaPoly {
    fn name(&self) -> &'static str {
        "ChaChaPoly"
    }

    fn set(&mut self, key: &[u8; KEY_BYTES]) {
        self.0 = UnboundKey::new(&CHACHA20_POLY1305, key).ok().map(LessSafeKey::new);
    }

    fn encrypt(&self, nonce: u64, authtext: &[u8], plaintext: &[u8], out: &mut [u8]) -> usize {
        let key = self.0.as_ref().expect("a key of 32 bytes is always taken");
        let (text, rest) = out.split_at_mut(plaintext.len());
        text.copy_from_slice(plaintext);
        let tag = key.seal_in_place_separate_tag(numbered(nonce), Aad::from(authtext), text);
        let tag = tag.expect("a message of Noise is far below the cipher's limit");
        rest[..TAG_BYTES].copy_from_slice(tag.as_ref());
        plaintext.len() + TAG_BYTES
    }

    fn decrypt(
        &self,
        nonce: u64,
        authtext: &[u8],
        ciphertext: &[u8],
        out: &mut [u8],
    ) -> Result<usize, Error> {
        let key = self.0.as_ref().ok_or(Error::Decrypt)?;
        let mut text = ciphertext.to_vec();
        let opened = key.open_in_place(numbered(nonce), Aad::from(authtext), &mut text);
        let opened = opened.map_err(|_| Error::Decrypt)?;
        out.get_mut(..opened.len()).ok_or(Error::Decrypt)?.copy_from_slice(opened);
        Ok(opened.len())
    }
}

/// A nonce as Noise counts them: four zeros and a little-endian number.
fn numbered(nonce: u64) -> Nonce {
    let mut bytes = [0; NONCE_BYTES];
    bytes[4..].copy_from_slice(&nonce.to_le_bytes());
    Nonce::assume_unique_for_key(bytes)
}

struct Sha256(digest::Context);

impl Default for Sha256 {
    fn default() -> Self {
        Self(digest::Context::new(&digest::SHA256))
    }
}

impl Hash for Sha256 {
    fn name(&self) -> &'static str {
        "SHA256"
    }

    fn block_len(&self) -> usize {
        BLOCK_BYTES
    }

    fn hash_len(&self) -> usize {
        KEY_BYTES
    }

    fn reset(&mut self) {
        *self = Self::default();
    }

    fn input(&mut self, data: &[u8]) {
        self.0.update(data);
    }

    fn result(&mut self, out: &mut [u8]) {
        out[..KEY_BYTES].copy_from_slice(self.0.clone().finish().as_ref());
    }
}

#[cfg(test)]
mod tests {
    use snow::Builder;

    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        let pair = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal");
        (0..hex.len()).step_by(2).map(pair).collect()
    }

    /// The vector of the public collection "cacophony": every byte that goes over the wire.
    #[test]
    fn a_published_exchange_comes_out_byte_for_byte() {
        let psk = b"This is my Austrian perspective!";
        let side = |ephemeral: &[u8], is_initiator: bool| {
            let pattern = "Noise_NNpsk0_25519_ChaChaPoly_SHA256".parse().expect("a pattern");
            let builder = Builder::with_resolver(pattern, Box::new(Primitives));
            let builder = builder.psk(0, psk).and_then(|it| it.prologue(b"John Galt"));
            let builder = builder.expect("sound").fixed_ephemeral_key_for_testing_only(ephemeral);
            match is_initiator {
                true => builder.build_initiator().expect("a side"),
                false => builder.build_responder().expect("a side"),
            }
        };
        let first = bytes("893e28b9dc6ca8d611ab664754b8ceb7bac5117349a4439a6b0569da977c464a");
        let second = bytes("bbdb4cdbd309f1a1f2e1456967fe288cadd6f712d65dc7b7793d5e63da6b375b");
        let (mut asker, mut owner) = (side(&first, true), side(&second, false));
        let (mut sent, mut read) = ([0; 128], [0; 128]);
        let length = asker.write_message(b"Ludwig von Mises", &mut sent).expect("sealed");
        let wire = "ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c7944\
                    79b962b8aff8485742ac32f905ba45369e2465fb59e138a93d67a0d1266b6a54";
        assert_eq!(sent[..length], bytes(wire));
        let length = owner.read_message(&sent[..length], &mut read).expect("opened");
        assert_eq!(&read[..length], b"Ludwig von Mises");
        let length = owner.write_message(b"Murray Rothbard", &mut sent).expect("sealed");
        let wire = "95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f144808843\
                    d6062704d5a9c422a8e834423f8c1feada7e8d0d910a1a2cd030fb584221e3";
        assert_eq!(sent[..length], bytes(wire));
        asker.read_message(&sent[..length], &mut read).expect("opened");
        let (mut asker, mut owner) = (
            asker.into_transport_mode().expect("a channel"),
            owner.into_transport_mode().expect("a channel"),
        );
        let length = asker.write_message(b"F. A. Hayek", &mut sent).expect("sealed");
        let wire = "e632c3763d7669067383433197a3baddf146e9e70ad4b4e9e59e0f";
        assert_eq!(sent[..length], bytes(wire));
        owner.read_message(&sent[..length], &mut read).expect("opened");
        let length = owner.write_message(b"Carl Menger", &mut sent).expect("sealed");
        let wire = "64c6bee32ea91c8474bb4c21d7a700109ad45af77b29764ba5eb1e";
        assert_eq!(sent[..length], bytes(wire));
        sent[length - 1] ^= 1;
        assert!(asker.read_message(&sent[..length], &mut read).is_err(), "a changed tag");
    }

    #[test]
    fn a_point_that_agrees_on_nothing_is_refused() {
        let mut pair = Exchange::default();
        pair.generate(&mut SystemBytes).expect("random numbers");
        assert!(pair.dh(&[0; KEY_BYTES], &mut [0; KEY_BYTES]).is_err());
        assert!(pair.dh(&[9; 5], &mut [0; KEY_BYTES]).is_err(), "too short");
    }
}
