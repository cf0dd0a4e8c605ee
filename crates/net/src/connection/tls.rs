//! TLS of a listener: what it presents, and how a connection becomes a secure one.
//!
//! Rules kept here:
//! - HTTP/2 and HTTP/1.1 are offered (ALPN), in this order.
//! - With `client_ca`, a client without a certificate of one of these authorities gets no
//!   connection.
//! - A handshake has a deadline. A client that speaks plain HTTP is told so in plain HTTP.
//! - Messages name the key of the config that is at fault, and never show what a file holds.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem, pem::PemObject};
use rustls::server::WebPkiClientVerifier;
use rustls::{InconsistentKeys, RootCertStore, ServerConfig};
use sha2::{Digest, Sha256};
use tidegate_config::{
    file::TlsFile,
    secret::{Environment, Secret, SecretRef},
};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, server::TlsStream};

/// The same as for a request head: whoever takes longer is not going to send one.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);
/// What a client of plain HTTP is told.
const PLAIN_HTTP: &[u8] = b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\n\
    content-length: 49\r\nconnection: close\r\n\r\n\
    this listener speaks TLS: use an `https://` url.\n";

/// What is wrong with a `tls` section: the key at fault, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsProblem {
    pub key: &'static str,
    pub reason: String,
}

/// What a listener presents at the moment; nothing if it speaks plain HTTP.
#[derive(Debug, Default)]
pub struct Certificates(ArcSwapOption<Presented>);

/// A certificate with its key, and what tells whether the files have changed since.
#[derive(Debug)]
pub struct Presented {
    config: Arc<ServerConfig>,
    pub digest: [u8; 32],
}

impl Certificates {
    pub fn set(&self, presented: Option<Arc<Presented>>) {
        self.0.store(presented);
    }

    pub fn get(&self) -> Option<Arc<Presented>> {
        self.0.load_full()
    }
}

/// The texts of a `tls` section.
pub struct TlsTexts {
    cert: Secret,
    key: Secret,
    client_ca: Option<Secret>,
}

impl TlsTexts {
    /// Reads them.
    pub fn read(
        file: &TlsFile,
        folder: &Path,
        environment: &dyn Environment,
    ) -> Result<Self, TlsProblem> {
        let read = |key: &'static str, reference: &SecretRef| {
            reference.resolve(environment, folder).map_err(|reason| TlsProblem { key, reason })
        };
        Ok(Self {
            cert: read("cert", &file.cert)?,
            key: read("key", &file.key)?,
            client_ca: file.client_ca.as_ref().map(|it| read("client_ca", it)).transpose()?,
        })
    }

    /// What changes when one of them does.
    pub fn digest(&self) -> [u8; 32] {
        let mut digest = Sha256::new();
        for text in [Some(&self.cert), Some(&self.key), self.client_ca.as_ref()] {
            let text = text.map(Secret::expose).unwrap_or_default();
            digest.update((text.len() as u64).to_be_bytes());
            digest.update(text);
        }
        digest.finalize().into()
    }

    /// What a listener presents with them.
    pub fn presented(&self) -> Result<Arc<Presented>, TlsProblem> {
        let config = Arc::new(self.server_config()?);
        Ok(Arc::new(Presented { config, digest: self.digest() }))
    }

    fn server_config(&self) -> Result<ServerConfig, TlsProblem> {
        let problem = |key, reason: &str| TlsProblem { key, reason: reason.to_owned() };
        let chain = certificates(&self.cert).map_err(|reason| problem("cert", reason))?;
        let key = private_key(&self.key).map_err(|reason| problem("key", reason))?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|_| problem("cert", "tls cannot be set up"))?;
        let builder = match &self.client_ca {
            None => builder.with_no_client_auth(),
            Some(text) => {
                let unusable = |reason: &str| problem("client_ca", reason);
                let mut roots = RootCertStore::empty();
                for authority in certificates(text).map_err(unusable)? {
                    roots.add(authority).map_err(|_| unusable("a certificate is not valid"))?;
                }
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                let verifier = verifier.build().map_err(|_| unusable("it cannot be used"))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let mut config = builder.with_single_cert(chain, key).map_err(|error| match error {
            rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
                problem("key", "the key does not belong to the certificate")
            }
            _ => problem("cert", "the certificate is not valid"),
        })?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }
}

fn certificates(text: &Secret) -> Result<Vec<CertificateDer<'static>>, &'static str> {
    let chain: Result<Vec<_>, _> =
        CertificateDer::pem_slice_iter(text.expose().as_bytes()).collect();
    match chain {
        Err(_) => Err("it is not PEM: a block cannot be read"),
        Ok(chain) if chain.is_empty() => {
            Err("it holds no certificate: `-----BEGIN CERTIFICATE-----` is expected")
        }
        Ok(chain) => Ok(chain),
    }
}

fn private_key(text: &Secret) -> Result<PrivateKeyDer<'static>, &'static str> {
    let text = text.expose();
    if text.contains("-----BEGIN ENCRYPTED PRIVATE KEY-----") {
        return Err("the key is encrypted: write it without a passphrase");
    }
    PrivateKeyDer::from_pem_slice(text.as_bytes()).map_err(|error| match error {
        pem::Error::NoItemsFound => {
            "it holds no private key: `-----BEGIN PRIVATE KEY-----` is expected"
        }
        _ => "it is not PEM: a block cannot be read",
    })
}

/// A secure connection, and whether HTTP/2 was agreed on.
pub(super) async fn handshake(
    mut stream: TcpStream,
    presented: &Presented,
) -> Option<(TlsStream<TcpStream>, bool)> {
    let shaking = async {
        let mut first = [0];
        // Every method is written in capital letters, and no record of TLS begins with one.
        if stream.peek(&mut first).await.ok()? == 1 && first[0].is_ascii_uppercase() {
            drop(stream.write_all(PLAIN_HTTP).await);
            drop(stream.shutdown().await);
            return None;
        }
        TlsAcceptor::from(Arc::clone(&presented.config)).accept(stream).await.ok()
    };
    let stream = tokio::time::timeout(HANDSHAKE_WITHIN, shaking).await.ok()??;
    let is_h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    Some((stream, is_h2))
}

#[cfg(test)]
mod tests {
    use tidegate_config::secret::FixedEnvironment;

    use super::*;

    fn pair() -> (String, String) {
        let key = rcgen::KeyPair::generate().expect("a key");
        let params = rcgen::CertificateParams::new(vec!["localhost".into()]).expect("a name");
        (params.self_signed(&key).expect("a certificate").pem(), key.serialize_pem())
    }

    fn problem(cert: &str, key: &str, client_ca: Option<&str>) -> Option<(&'static str, String)> {
        let mut files = vec![("/c".into(), cert.to_owned()), ("/k".into(), key.to_owned())];
        files.extend(client_ca.map(|text| ("/a".into(), text.to_owned())));
        let environment = FixedEnvironment { variables: Vec::new(), files };
        let reference = |text| SecretRef::parse(text).expect("a reference");
        let client_ca = client_ca.map(|_| reference("file:/a"));
        let file = TlsFile { cert: reference("file:/c"), key: reference("file:/k"), client_ca };
        let texts = TlsTexts::read(&file, Path::new(""), &environment);
        let found = texts.and_then(|texts| texts.presented());
        found.err().map(|problem| (problem.key, problem.reason))
    }

    #[test]
    fn what_is_wrong_with_certificates_is_said_of_the_key_at_fault() {
        let ((cert, key), (other, other_key)) = (pair(), pair());
        assert_eq!(problem(&cert, &key, None), None);
        assert_eq!(problem(&cert, &key, Some(&other)), None);
        let garbage = "-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n";
        let sealed = key.replace("PRIVATE", "ENCRYPTED PRIVATE");
        for (cert, key, client_ca, at, said) in [
            (&*cert, &*other_key, None, "key", "does not belong to the certificate"),
            (&*key, &*key, None, "cert", "holds no certificate"),
            (&*cert, &*cert, None, "key", "holds no private key"),
            (&*cert, &*sealed, None, "key", "encrypted"),
            (garbage, &*key, None, "cert", "not PEM"),
            (&*cert, &*key, Some("nothing"), "client_ca", "holds no certificate"),
            ("", &*key, None, "cert", "is empty"),
        ] {
            let found = problem(cert, key, client_ca).expect("a problem");
            assert!(found.0 == at && found.1.contains(said), "{found:?}, not {at}: {said}");
        }
    }
}
