//! Secrets that stand in the file, and references that lead nowhere.
//!
//! Both are warnings: a literal works, and a provider whose key is not there is `unconfigured` and
//! does not stop the start.

use super::Check;
use crate::{codes::config as codes, path::KeyPath, secret::SecretRef};

/// Whether a literal is a mistake: a key's is, a header's often is not.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Literal {
    Warned,
    Fine,
}

impl<'a> Check<'a> {
    pub(super) fn secrets(&mut self) {
        let file: &'a _ = self.file;
        if let Some(token) = &file.admin.token {
            self.secret(&KeyPath::from("admin").key("token"), token, Literal::Warned);
        }
        for (index, caller) in file.keys.iter().flatten().enumerate() {
            self.secret(
                &KeyPath::from("keys").index(index).key("key"),
                &caller.key,
                Literal::Warned,
            );
        }
        for (name, provider) in &file.providers {
            let path = KeyPath::from("providers").key(name);
            if let Some(key) = &provider.key {
                self.secret(&path.key("key"), key, Literal::Warned);
            }
            for (index, key) in provider.keys.iter().flatten().enumerate() {
                self.secret(&path.key("keys").index(index), key, Literal::Warned);
            }
            for (header, value) in &provider.headers {
                self.secret(&path.key("headers").key(header), value, Literal::Fine);
            }
            if let Some(ca @ SecretRef::File(_)) = &provider.ca {
                self.secret(&path.key("ca"), ca, Literal::Fine);
            }
        }
        for (name, server) in &file.mcp.servers {
            let path = KeyPath::from("mcp").key("servers").key(name);
            for (header, value) in &server.headers {
                self.secret(&path.key("headers").key(header), value, Literal::Fine);
            }
            if let Some(ca @ SecretRef::File(_)) = &server.ca {
                self.secret(&path.key("ca"), ca, Literal::Fine);
            }
            for (variable, value) in &server.env {
                self.secret(&path.key("env").key(variable), value, Literal::Fine);
            }
        }
    }

    fn secret(&mut self, path: &KeyPath, reference: &SecretRef, literal: Literal) {
        if reference.is_literal() {
            if literal == Literal::Warned {
                let message = format!("`{path}` is written into the file");
                self.report(
                    self.warning(&codes::LITERAL_SECRET, path, message)
                        .at_key(self.document, path)
                        .help("put it into the environment and write `env:NAME`"),
                );
            }
            return;
        }
        if let Err(problem) = reference.resolve(self.environment, self.source.folder()) {
            let message = format!("`{path}` cannot be resolved: {problem}");
            self.report(
                self.warning(&codes::UNRESOLVED_SECRET, path, message)
                    .help("what depends on it is skipped until it is there"),
            );
        }
    }
}
