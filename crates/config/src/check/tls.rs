//! TLS of the listeners: files that are there, and keys that do not travel in the clear.
//!
//! Left to others: whether a certificate and its key can be used, which takes cryptography; whoever
//! starts a gateway, or checks a config for one, asks the server for it.

use super::Check;
use crate::{
    address::Address, codes::config as codes, file::TlsFile, path::KeyPath, secret::SecretRef,
};

impl<'a> Check<'a> {
    pub(super) fn tls(&mut self) {
        let file: &'a _ = self.file;
        let (listen, admin) = (KeyPath::from("listen"), KeyPath::from("admin"));
        if file.keys.is_some() {
            self.clear_text(&listen, file.listen, file.tls.as_ref(), "keys of callers", "tls");
        }
        if file.admin.token.is_some() {
            let (path, tls) = (admin.key("listen"), file.admin.tls.as_ref());
            self.clear_text(&path, file.admin.listen, tls, "the admin token", "admin.tls");
        }
        for (section, tls) in
            [(KeyPath::from("tls"), file.tls.as_ref()), (admin.key("tls"), file.admin.tls.as_ref())]
        {
            let Some(tls) = tls else { continue };
            self.certificate(&section.key("cert"), &tls.cert);
            self.certificate(&section.key("key"), &tls.key);
            if let Some(client_ca) = &tls.client_ca {
                self.certificate(&section.key("client_ca"), client_ca);
            }
        }
    }

    fn clear_text(
        &mut self,
        path: &KeyPath,
        address: Address,
        tls: Option<&TlsFile>,
        what: &str,
        section: &str,
    ) {
        if address.is_loopback() || tls.is_some() {
            return;
        }
        let message = format!("{what} are sent to `{address}` in clear text")
            .replace("token are", "token is");
        self.report(
            self.warning(&codes::CLEAR_TEXT, path, message)
                .label("not loopback, and without TLS")
                .help(format!("add `{section}: {{cert: file:cert.pem, key: file:key.pem}}`"))
                .help("or keep it if something in front of it speaks TLS for it"),
        );
    }

    fn certificate(&mut self, path: &KeyPath, reference: &SecretRef) {
        if let Err(problem) = reference.resolve(self.environment, self.source.folder()) {
            let message = format!("`{path}` cannot be used: {problem}");
            self.report(self.error(&codes::UNUSABLE_CERTIFICATE, path, message));
        }
    }
}
