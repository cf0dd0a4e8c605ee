//! `tls`: what a listener presents, and whom it lets in.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::secret::SecretRef;

/// TLS of a listener. The files are read again when they change.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TlsFile {
    /// The listener's certificate and those that lead to its authority, in PEM, its own first.
    #[schemars(example = &"file:cert.pem")]
    pub cert: SecretRef,
    /// The private key of the certificate, in PEM, without a passphrase.
    #[schemars(example = &"file:key.pem")]
    pub key: SecretRef,
    /// The authorities whose clients are let in, in PEM. Absent: clients need no certificate.
    #[schemars(example = &"file:clients.pem")]
    pub client_ca: Option<SecretRef>,
}
