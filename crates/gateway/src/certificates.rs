//! Certificates of the listeners, read with the config; the operator's side reads them again when
//! their files change.

use std::sync::Arc;

use tidegate_config::{
    Config,
    codes::config as codes,
    diagnostic::Diagnostic,
    document,
    file::{ConfigFile, TlsFile},
    path::KeyPath,
    secret::Environment,
    source::Source,
};
use tidegate_net::connection::{Certificates, Presented, TlsProblem, TlsTexts};

/// What both listeners present.
#[derive(Debug, Default)]
pub struct ListenerTls {
    pub data: Arc<Certificates>,
    pub admin: Arc<Certificates>,
}

/// What a config wants both listeners to present.
#[derive(Clone, Debug, Default)]
pub struct WantedTls {
    data: Option<Arc<Presented>>,
    admin: Option<Arc<Presented>>,
}

impl ListenerTls {
    /// Presents what a config wants, on connections from now on.
    pub fn follow(&self, wanted: &WantedTls) {
        self.data.set(wanted.data.clone());
        self.admin.set(wanted.admin.clone());
    }
}

/// The sections of a config, each with its place in the file.
pub fn sections(file: &ConfigFile) -> [(KeyPath, Option<&TlsFile>); 2] {
    let admin = KeyPath::from("admin").key("tls");
    [(KeyPath::from("tls"), file.tls.as_ref()), (admin, file.admin.tls.as_ref())]
}

/// Reads the certificates that a config names.
///
/// # Errors
/// Every problem there is, at its place in the file.
pub fn read(
    source: &Source,
    file: &ConfigFile,
    environment: &dyn Environment,
) -> Result<WantedTls, Vec<Diagnostic>> {
    let mut problems = Vec::new();
    let [data, admin] = sections(file).map(|(path, section)| {
        let texts = TlsTexts::read(section?, source.folder(), environment);
        match texts.and_then(|texts| texts.presented()) {
            Ok(presented) => Some(presented),
            Err(problem) => {
                problems.push(diagnostic(source, &path, &problem));
                None
            }
        }
    });
    if problems.is_empty() { Ok(WantedTls { data, admin }) } else { Err(problems) }
}

/// What is wrong with the certificates of a sound config.
#[must_use]
pub fn problems(
    source: &Source,
    config: &Config,
    environment: &dyn Environment,
) -> Vec<Diagnostic> {
    read(source, &config.file, environment).err().unwrap_or_default()
}

fn diagnostic(source: &Source, section: &KeyPath, problem: &TlsProblem) -> Diagnostic {
    let path = section.key(problem.key);
    let message = format!("`{path}` cannot be used: {}", problem.reason);
    let diagnostic = Diagnostic::error(&codes::UNUSABLE_CERTIFICATE, message);
    match document::parse(source).document {
        Some(document) => diagnostic.at(&document, &path),
        None => diagnostic,
    }
}
