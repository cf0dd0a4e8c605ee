//! Secrets: those that stand in the file, references that lead nowhere or were meant for another
//! program, values that cannot be sent, and files that others can read.
//!
//! Most of it is a warning: a literal works, and a provider whose key is not there is
//! `unconfigured` and does not stop the start. A value that cannot stand in a header is an error,
//! because no request could ever carry it.

use std::path::Path;

use super::Check;
use crate::{
    codes::config as codes,
    diagnostic::quoted,
    path::KeyPath,
    secret::{Secret, SecretRef},
};

/// What a secret is used for, which decides what may be said about it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A key or token: a literal is a mistake.
    Key,
    /// A header's value, which is often no secret at all.
    Header,
    /// A variable of a child process, which may hold any text.
    Variable,
    /// Certificates, which everybody may read.
    Certificate,
}

impl<'a> Check<'a> {
    pub(super) fn secrets(&mut self) {
        let file: &'a _ = self.file;
        if let Some(token) = &file.admin.token {
            self.secret(&KeyPath::from("admin").key("token"), token, Purpose::Key);
        }
        for (index, caller) in file.keys.iter().flatten().enumerate() {
            let path = KeyPath::from("keys").index(index).key("key");
            self.secret(&path, &caller.key, Purpose::Key);
        }
        for (name, provider) in &file.providers {
            let path = KeyPath::from("providers").key(name);
            if let Some(key) = &provider.key {
                self.secret(&path.key("key"), key, Purpose::Key);
            }
            for (index, key) in provider.keys.iter().flatten().enumerate() {
                self.secret(&path.key("keys").index(index), key, Purpose::Key);
            }
            for (header, value) in &provider.headers {
                self.secret(&path.key("headers").key(header), value, Purpose::Header);
            }
            if let Some(ca @ SecretRef::File(_)) = &provider.ca {
                self.secret(&path.key("ca"), ca, Purpose::Certificate);
            }
        }
        for (name, server) in &file.mcp.servers {
            let path = KeyPath::from("mcp").key("servers").key(name);
            for (header, value) in &server.headers {
                self.secret(&path.key("headers").key(header), value, Purpose::Header);
            }
            if let Some(ca @ SecretRef::File(_)) = &server.ca {
                self.secret(&path.key("ca"), ca, Purpose::Certificate);
            }
            for (variable, value) in &server.env {
                self.secret(&path.key("env").key(variable), value, Purpose::Variable);
            }
        }
        self.config_file_is_private();
    }

    pub(super) fn secret(&mut self, path: &KeyPath, reference: &SecretRef, purpose: Purpose) {
        match reference {
            SecretRef::Literal(literal) => self.literal(path, literal, purpose),
            SecretRef::File(file) if purpose != Purpose::Certificate => {
                let file = self.source.folder().join(file);
                self.secret_file_is_private(path, &file);
            }
            SecretRef::Env(_) | SecretRef::File(_) => {}
        }
        match reference.resolve(self.environment, self.source.folder()) {
            Ok(secret) if matches!(purpose, Purpose::Key | Purpose::Header) => {
                self.can_be_sent(path, &secret);
            }
            Ok(_) => {}
            Err(problem) => {
                let message = format!("`{path}` cannot be resolved: {problem}");
                let help = match reference {
                    SecretRef::Env(name) => format!(
                        "set {} and restart; until then whatever needs it is skipped",
                        quoted(name)
                    ),
                    SecretRef::File(_) | SecretRef::Literal(_) => {
                        "put the value into that file and reload; until then whatever needs it is \
                         skipped"
                            .to_owned()
                    }
                };
                self.report(self.warning(&codes::UNRESOLVED_SECRET, path, message).help(help));
            }
        }
    }

    /// A literal is either a secret that should stand elsewhere, or a reference in the spelling of
    /// another program.
    fn literal(&mut self, path: &KeyPath, literal: &Secret, purpose: Purpose) {
        if let Some(name) = foreign_reference(literal.expose()) {
            let message = format!("`{path}` names a variable in a spelling that is not read here");
            let help = match literal.expose().starts_with(['$', 'o']) {
                true => format!("write {}", quoted(&format!("env:{name}"))),
                false => format!(
                    "put the whole value into a variable and write `env:NAME` ({} is sent as it \
                     stands)",
                    quoted(&format!("${{{name}}}"))
                ),
            };
            self.report(
                self.warning(&codes::FOREIGN_REFERENCE, path, message)
                    .at_key(self.document, path)
                    .help(help),
            );
        } else if purpose == Purpose::Key {
            let message = format!("`{path}` is written into the file");
            self.report(
                self.warning(&codes::LITERAL_SECRET, path, message)
                    .at_key(self.document, path)
                    .help("put it into the environment and write `env:NAME`"),
            );
        }
    }

    fn can_be_sent(&mut self, path: &KeyPath, secret: &Secret) {
        if secret.expose().chars().any(char::is_control) {
            let message = format!("the value of `{path}` holds a line break or control character");
            self.report(
                self.error(&codes::UNSENDABLE_SECRET, path, message)
                    .label("no header can carry this value")
                    .help("write the value on one line: only a line break at its end is ignored"),
            );
        }
    }

    fn secret_file_is_private(&mut self, path: &KeyPath, file: &Path) {
        if self.environment.is_readable_by_others(file) {
            let shown = quoted(&file.display().to_string());
            let message = format!("every user of this machine can read {shown}");
            self.report(
                self.warning(&codes::READABLE_BY_OTHERS, path, message)
                    .help(format!("run `chmod o-rwx {}`", file.display())),
            );
        }
    }

    /// A config file is as secret as the keys that stand in it.
    fn config_file_is_private(&mut self) {
        let file = self.file;
        let providers = file.providers.values();
        let of_providers = providers.flat_map(|it| it.key.iter().chain(it.keys.iter().flatten()));
        let of_callers = file.keys.iter().flatten().map(|it| &it.key);
        let mut keys = file.admin.token.iter().chain(of_callers).chain(of_providers);
        let holds_keys = keys.any(|key| match key {
            SecretRef::Literal(literal) => foreign_reference(literal.expose()).is_none(),
            SecretRef::Env(_) | SecretRef::File(_) => false,
        });
        let name = self.source.name();
        if holds_keys && self.environment.is_readable_by_others(Path::new(name)) {
            let message =
                format!("every user of this machine can read {}, which holds keys", quoted(name));
            let root = KeyPath::root();
            self.report(
                self.warning(&codes::READABLE_BY_OTHERS, &root, message)
                    .help(format!("run `chmod o-rwx {name}`, or write `env:NAME` for the keys")),
            );
        }
    }
}

/// The variable that a value names in the spelling of a shell (`$NAME`, `${NAME}`) or of LiteLLM
/// (`os.environ/NAME`), alone or in the middle of a text.
fn foreign_reference(value: &str) -> Option<&str> {
    let name = value.strip_prefix("os.environ/").or_else(|| {
        let braced = value.split_once("${").map(|(_, rest)| rest);
        let braced = braced.and_then(|rest| rest.split_once('}')).map(|(name, _)| name);
        let name = braced.map(|name| name.split_once(':').map_or(name, |(name, _)| name));
        name.or_else(|| value.strip_prefix('$'))
    })?;
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    (is_name && name.chars().all(is_part)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::foreign_reference;

    #[test]
    fn references_of_other_programs_are_recognised_and_keys_are_not() {
        for (value, name) in [
            ("$GROQ_API_KEY", Some("GROQ_API_KEY")),
            ("${GROQ_API_KEY}", Some("GROQ_API_KEY")),
            ("${KEY:-none}", Some("KEY")),
            ("os.environ/OPENAI_API_KEY", Some("OPENAI_API_KEY")),
            ("Bearer ${TOKEN}", Some("TOKEN")),
            ("sk-abc", None),
            ("$", None),
            ("pa$$word", None),
            ("${}", None),
        ] {
            assert_eq!(foreign_reference(value), name, "{value}");
        }
    }
}
