//! The expectations about the end: servers of the whole program, and sessions that ever opened.

use tidegate_config::{
    diagnostic::{Diagnostic, quoted},
    path::KeyPath,
    suggest,
};

use super::{Check, program::unknown_server};
use crate::codes::mcp;

impl Check<'_> {
    pub(super) fn expect(&mut self) {
        let expect = &self.file.expect;
        let root = KeyPath::from("expect");
        let ever: Vec<String> = self.ever.iter().cloned().collect();
        // States are read at the end, from the servers of then; counts are of all that ever were.
        let states = expect.breaker.keys().map(|it| ("breaker", it));
        let states = states.chain(expect.health.keys().map(|it| ("health", it)));
        let counts = expect.reinitialised.keys().map(|it| ("reinitialised", it));
        let counts = counts.chain(expect.requests.keys().map(|it| ("requests", it)));
        let counts = counts.chain(expect.keepalive.keys().map(|it| ("keepalive", it)));
        let mut problems = Vec::new();
        for (key, server) in states {
            let path = root.key(key).key(server.as_str());
            problems.extend(unknown_server(server, &path, &self.servers).map(|it| (it, path)));
        }
        for (key, server) in counts {
            let path = root.key(key).key(server.as_str());
            problems.extend(unknown_server(server, &path, &ever).map(|it| (it, path)));
        }
        for session in expect.list_changed.keys().filter(|it| !self.opened.contains(*it)) {
            let path = root.key("list_changed").key(session.as_str());
            let names = self.opened.iter().map(String::as_str);
            let message = format!("the session {} never opens", quoted(session));
            let problem = Diagnostic::error(&mcp::UNKNOWN_SESSION, message)
                .label("no step opens it")
                .maybe_help(suggest::did_you_mean(session, names, "sessions"));
            problems.push((problem, path));
        }
        for (problem, path) in problems {
            self.problems.add(problem.at_key(self.document, &path));
        }
    }
}
