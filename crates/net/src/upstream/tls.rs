//! TLS to providers and MCP servers: the system's roots, and those of the config besides.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::{CertificateDer, pem::PemObject};
use rustls::{ClientConfig, RootCertStore};
use tidegate_config::secret::{Environment, SecretRef};

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
enum TlsError {
    #[error("the extra root certificates are not PEM")]
    NotPem,
    #[error("an extra root certificate is not valid")]
    Invalid(#[source] rustls::Error),
    #[error("tls cannot be set up")]
    Setup(#[source] rustls::Error),
}

/// TLS as a provider or server of the config wants it: `ca` names extra roots.
pub fn configured(
    ca: Option<&SecretRef>,
    folder: &Path,
    environment: &dyn Environment,
) -> Result<Arc<ClientConfig>, String> {
    let extra = ca.map(|ca| ca.resolve(environment, folder)).transpose()?;
    let pem = extra.as_ref().map(|secret| secret.expose().as_bytes());
    client_config(pem).map_err(|error| error.to_string())
}

/// A client that trusts the system's roots and those in `extra_pem`.
fn client_config(extra_pem: Option<&[u8]>) -> Result<Arc<ClientConfig>, TlsError> {
    let mut roots = RootCertStore::empty();
    // A system certificate that cannot be parsed is skipped, as browsers do.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    for certificate in CertificateDer::pem_slice_iter(extra_pem.unwrap_or_default()) {
        let certificate = certificate.map_err(|_| TlsError::NotPem)?;
        roots.add(certificate).map_err(TlsError::Invalid)?;
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Setup)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_is_not_a_certificate_is_refused() {
        assert!(client_config(None).is_ok());
        let garbage = b"-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n";
        assert!(client_config(Some(garbage)).is_err());
    }
}
