//! Groups of servers: each names servers of the file, and no server is named twice.

use std::collections::BTreeSet;

use tidegate_config::{
    codes::config::TWICE_NAMED,
    diagnostic::{Diagnostic, quoted},
    file::SeenServer,
    path::KeyPath,
};

use super::{Check, program::unknown_server};
use crate::codes;

impl Check<'_> {
    pub(super) fn replicas(&mut self) {
        let file = self.file;
        let mut members_so_far = BTreeSet::new();
        for (group, members) in &file.replicas {
            let path = KeyPath::from("replicas").key(group.as_str());
            if group.is_empty() {
                let problem = Diagnostic::error(&codes::EMPTY_NAME, "a group's name is empty");
                self.problems.add(problem.at_key(self.document, &path));
            }
            if self.servers.contains(group) {
                let message = format!("{} is a server and a group of servers", quoted(group));
                let problem = Diagnostic::error(&TWICE_NAMED, message);
                self.problems.add(problem.at_key(self.document, &path));
            }
            if members.is_empty() {
                let problem = Diagnostic::error(&codes::EMPTY_LIST, format!("`{path}` is empty"));
                self.add(problem.label("a group has members"), &path);
            }
            for (index, member) in members.iter().enumerate() {
                let path = path.index(index);
                if let Some(problem) = unknown_server(member, &path, &self.servers) {
                    self.add(problem, &path);
                } else if !members_so_far.insert(member) {
                    let message = format!("{} is a member twice", quoted(member));
                    self.add(Diagnostic::error(&TWICE_NAMED, message), &path);
                }
            }
        }
    }

    /// What clients see at this point of the program: servers, and groups in place of theirs.
    pub(super) fn seen(&self) -> Vec<SeenServer<'_>> {
        SeenServer::all(self.servers.iter().map(String::as_str), &self.file.replicas)
    }
}
