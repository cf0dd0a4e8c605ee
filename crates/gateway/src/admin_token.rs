//! The admin token: who may read and change what.
//!
//! Compared as a SHA-256 digest in constant time, so that neither the token nor its length can be
//! measured. A token that is configured but cannot be resolved opens nothing.

use std::path::Path;

use http::{HeaderMap, header};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tidegate_config::{file::AdminFile, secret::Environment};

/// What a path does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdminAccess {
    Reads,
    Changes,
    /// Whoever asks brings the token with it, or needs none.
    SignsIn,
}

/// The token of a config.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdminToken {
    /// None is configured.
    Absent,
    /// One is configured, and it is not there.
    Unresolved,
    /// Its digest.
    Known([u8; 32]),
}

impl AdminToken {
    pub fn new(file: &AdminFile, folder: &Path, environment: &dyn Environment) -> Self {
        let Some(reference) = &file.token else { return Self::Absent };
        match reference.resolve(environment, folder) {
            Ok(secret) => Self::Known(digest(secret.expose().as_bytes())),
            Err(_) => Self::Unresolved,
        }
    }

    /// Whether this is the token.
    pub fn is(&self, sent: &[u8]) -> bool {
        matches!(self, Self::Known(token) if bool::from(digest(sent).ct_eq(token)))
    }

    /// Whether a request may go on; if not, what to do about it.
    pub fn permit(
        &self,
        access: AdminAccess,
        is_loopback: bool,
        headers: &HeaderMap,
    ) -> Result<(), &'static str> {
        if access == AdminAccess::SignsIn || (access == AdminAccess::Reads && is_loopback) {
            return Ok(());
        }
        match self {
            Self::Known(token) if is_presented(token, headers) => Ok(()),
            Self::Known(_) => Err("send the admin token as `authorization: Bearer TOKEN`"),
            Self::Absent => Err("set `admin.token` in the config to allow this, then send it as \
                                 `authorization: Bearer TOKEN`"),
            Self::Unresolved => Err("`admin.token` of the config cannot be resolved, so nobody \
                                     can do this: `tidegate check` says why"),
        }
    }
}

fn is_presented(token: &[u8; 32], headers: &HeaderMap) -> bool {
    let Some(value) = headers.get(header::AUTHORIZATION) else { return false };
    let Some((scheme, sent)) = value.as_bytes().split_at_checked(7) else { return false };
    scheme.eq_ignore_ascii_case(b"bearer ") && bool::from(digest(sent.trim_ascii()).ct_eq(token))
}

fn digest(token: &[u8]) -> [u8; 32] {
    Sha256::digest(token).into()
}
