//! The steps of the program, each with what is open and configured when its turn comes.

use tidegate_config::{
    diagnostic::{Diagnostic, quoted},
    path::KeyPath,
    suggest,
};

use super::Check;
use crate::{
    codes::{self, mcp},
    mcp::file::{CallFile, StepFile},
};

/// Calls at once: more than any client makes.
const AT_ONCE_MAX: u32 = 1000;

/// What kind of answer a step has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A list of tools.
    Tools,
    /// A list of tools, and whether it fits.
    Search,
    /// The end of a call.
    Call,
    /// None, and it happens to a server.
    Deed,
    /// None.
    Other,
}

/// How a client comes back with what it was asked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Return {
    Answer,
    Retry,
}

impl Check<'_> {
    pub(super) fn program(&mut self) {
        let file = self.file;
        let program = KeyPath::from("program");
        if file.program.is_empty() {
            let problem = Diagnostic::error(&codes::EMPTY_LIST, "`program` is empty")
                .label("at least one step is needed")
                .help("write one as `- { open: s1 }`");
            self.add(problem, &program);
        }
        for (index, step) in file.program.iter().enumerate() {
            let path = program.index(index);
            if let Some(kind) = self.one_action(step, &path) {
                self.beside(step, kind, &path);
            }
            self.step(step, index, &path);
        }
    }

    /// The kind of the step's one action; none, and a problem, if it has none or several.
    fn one_action(&mut self, step: &StepFile, path: &KeyPath) -> Option<Kind> {
        let actions = [
            ("open", step.open.is_some(), Kind::Tools),
            ("stateless", step.stateless.is_some(), Kind::Tools),
            ("list", step.list.is_some(), Kind::Tools),
            ("find", step.find.is_some(), Kind::Search),
            ("call", step.call.is_some(), Kind::Call),
            ("answer", step.answer.is_some(), Kind::Call),
            ("retry", step.retry.is_some(), Kind::Call),
            ("crash", step.crash.is_some(), Kind::Deed),
            ("hang", step.hang.is_some(), Kind::Deed),
            ("lose_session", step.lose_session.is_some(), Kind::Deed),
            ("slow", step.slow.is_some(), Kind::Deed),
            ("tools", step.tools.is_some(), Kind::Deed),
            ("era", step.era.is_some(), Kind::Deed),
            ("heal", step.heal.is_some(), Kind::Deed),
            ("probe", step.probe.is_some(), Kind::Other),
            ("advance", step.advance.is_some(), Kind::Other),
            ("close", step.close.is_some(), Kind::Other),
            ("reload", step.reload.is_some(), Kind::Other),
        ];
        // A key whose value could not be read has been reported, and is an action all the same.
        let is_written = |key: &str| self.document.node(&path.key(key)).is_some();
        let written: Vec<_> = actions.iter().filter(|it| it.1 || is_written(it.0)).collect();
        match written.as_slice() {
            [(_, _, kind)] => return Some(*kind),
            // A key that is not known has been reported, and may have been meant for one.
            [] if self.has_other_keys(path) => {}
            [] => {
                let problem = Diagnostic::error(&mcp::BAD_STEP, format!("`{path}` does nothing"))
                    .label("a step has one action")
                    .help("such as `open`, `call`, `list`, `crash`, `heal` or `advance`");
                self.add(problem, path);
            }
            several => {
                let names: Vec<String> = several.iter().map(|it| format!("`{}`", it.0)).collect();
                let message = format!("`{path}` has several actions: {}", names.join(", "));
                let problem = Diagnostic::error(&mcp::BAD_STEP, message)
                    .label("a step has one action")
                    .help("write them as steps of their own");
                self.add(problem, &path.key(several[1].0));
            }
        }
        None
    }

    fn has_other_keys(&self, path: &KeyPath) -> bool {
        self.document.keys_at(path).any(|key| !matches!(key, "after" | "expect"))
    }

    /// `after` and `expect` beside an action.
    fn beside(&mut self, step: &StepFile, kind: Kind, path: &KeyPath) {
        if step.after.is_some() && kind != Kind::Deed {
            let message = format!("`{path}` cannot be put off");
            let problem = Diagnostic::error(&mcp::BAD_STEP, message)
                .label("`after` goes with what happens to a server")
                .help("to let time pass, write a step `{ advance: 5s }`");
            self.add(problem, &path.key("after"));
        }
        let Some(expect) = &step.expect else { return };
        let expected = [
            ("tools", expect.tools.is_some(), Kind::Tools),
            ("good_match", expect.good_match.is_some(), Kind::Search),
            ("ok", expect.ok.is_some(), Kind::Call),
            ("asked", expect.asked.is_some(), Kind::Call),
            ("error", expect.error.is_some(), Kind::Call),
            ("names", expect.names.is_some(), Kind::Call),
            ("by", expect.by.is_some(), Kind::Call),
            ("cause", expect.cause.is_some(), Kind::Call),
        ];
        let path = path.key("expect");
        let goes_with = |it: Kind| it == kind || (it, kind) == (Kind::Tools, Kind::Search);
        for (key, _, its_kind) in expected.into_iter().filter(|it| it.1 && !goes_with(it.2)) {
            let path = path.key(key);
            let whose = match its_kind {
                Kind::Tools => "`open`, `list` and `find`",
                Kind::Search => "`find`",
                Kind::Call | Kind::Deed | Kind::Other => "`call`",
            };
            let problem = Diagnostic::error(&mcp::BAD_STEP, format!("`{path}` cannot come true"))
                .label(format!("it goes with {whose}"));
            self.add(problem, &path);
        }
        if let Some(server) = &expect.names {
            let seen: Vec<String> = self.seen().iter().map(|it| it.name.to_owned()).collect();
            let path = path.key("names");
            if let Some(problem) = unknown_server(server, &path, &seen) {
                self.add(problem, &path);
            }
        }
        if let Some(server) = &expect.by {
            self.server_name(server, &path.key("by"));
        }
        let names = expect.tools.iter().flatten();
        for (index, tool) in names.enumerate() {
            self.tool(tool, &path.key("tools").index(index));
        }
    }

    fn step(&mut self, step: &StepFile, index: usize, path: &KeyPath) {
        let deeds = [
            ("crash", step.crash.as_ref()),
            ("hang", step.hang.as_ref()),
            ("lose_session", step.lose_session.as_ref()),
            ("heal", step.heal.as_ref()),
        ];
        for (key, server) in deeds {
            if let Some(server) = server {
                self.server_name(server, &path.key(key));
            }
        }
        if let Some(slow) = &step.slow {
            self.server_name(&slow.server, &path.key("slow").key("server"));
        }
        if let Some(era) = &step.era {
            self.server_name(&era.server, &path.key("era").key("server"));
        }
        if let Some(server) = &step.probe {
            self.server_name(server, &path.key("probe"));
        }
        if let Some(tools) = &step.tools {
            let path = path.key("tools");
            self.server_name(&tools.server, &path.key("server"));
            self.tool_names(&tools.list, &path.key("list"));
        }
        if let Some(session) = &step.list {
            self.session(session, &path.key("list"));
        }
        if let Some(find) = &step.find {
            self.session(&find.session, &path.key("find").key("session"));
        }
        if let Some(call) = &step.call {
            self.call(call, &path.key("call"));
        }
        if let Some(session) = &step.open {
            self.opens(session, index, &path.key("open"));
        }
        if let Some(client) = &step.stateless {
            self.opens(client, index, &path.key("stateless"));
            self.stateless.insert(client.clone());
        }
        if let Some(session) = &step.answer {
            self.session(session, &path.key("answer"));
            self.comes_back(session, Return::Answer, &path.key("answer"));
        }
        if let Some(client) = &step.retry {
            self.session(client, &path.key("retry"));
            self.comes_back(client, Return::Retry, &path.key("retry"));
        }
        if let Some(session) = &step.close {
            self.session(session, &path.key("close"));
            self.open.remove(session);
            self.stateless.remove(session);
            self.asked.remove(session);
        }
        if let Some(servers) = step.reload.as_ref().and_then(|it| it.servers.as_ref()) {
            self.servers(servers, &path.key("reload").key("servers"));
            self.servers = servers.keys().cloned().collect();
            self.ever.extend(servers.keys().cloned());
        }
    }

    fn opens(&mut self, session: &str, index: usize, path: &KeyPath) {
        if session.is_empty() {
            let problem = Diagnostic::error(&codes::EMPTY_NAME, format!("`{path}` is empty"));
            return self.add(problem.label("a session needs a name"), path);
        }
        if let Some(first) = self.open.insert(session.to_owned(), index) {
            let first = KeyPath::from("program").index(first);
            let span = |key: &str| self.document.span_of(&first.key(key));
            let first = span("open").or_else(|| span("stateless"));
            let place = first.map(|span| format!("opened at {}", self.source.location(span)));
            let message = format!("the session {} is open already", quoted(session));
            let problem = Diagnostic::error(&mcp::UNKNOWN_SESSION, message)
                .label("opened again here")
                .maybe_help(place);
            self.add(problem, path);
        }
        self.opened.insert(session.to_owned());
    }

    /// A session answers, a client without one sends its call again: only after a call.
    fn comes_back(&mut self, client: &str, how: Return, path: &KeyPath) {
        let is_stateless = self.stateless.contains(client);
        let (is_right, help) = match how {
            Return::Answer => (!is_stateless, "a client without a session comes back by `retry`"),
            Return::Retry => (is_stateless, "a session answers by `answer`"),
        };
        if !is_right {
            let message = format!("`{path}` does not go with {}", quoted(client));
            self.add(Diagnostic::error(&mcp::BAD_STEP, message).help(help), path);
        } else if self.open.contains_key(client) && !self.asked.contains(client) {
            let message = format!("{} was asked nothing", quoted(client));
            let problem = Diagnostic::error(&mcp::BAD_STEP, message)
                .label("no step before calls a tool that asks")
                .help("list the tool under `asks` of its server, and call it first");
            self.add(problem, path);
        }
    }

    fn call(&mut self, call: &CallFile, path: &KeyPath) {
        self.session(&call.session, &path.key("session"));
        self.asked.insert(call.session.clone());
        self.tool(&call.tool, &path.key("tool"));
        if !(1..=AT_ONCE_MAX).contains(&call.at_once) {
            let path = path.key("at_once");
            let message = format!("`{path}` must be between 1 and {AT_ONCE_MAX}");
            self.add(Diagnostic::error(&codes::TOO_MUCH_WORK, message), &path);
        }
    }

    fn session(&mut self, session: &str, path: &KeyPath) {
        if self.open.contains_key(session) {
            return;
        }
        let was_open = self.opened.contains(session);
        let state = if was_open { "has been closed" } else { "is not open" };
        let names = self.open.keys().map(String::as_str);
        let help = suggest::did_you_mean(session, names, "open sessions");
        let message = format!("the session {} {state}", quoted(session));
        let problem = Diagnostic::error(&mcp::UNKNOWN_SESSION, message)
            .label("no step before opens it")
            .maybe_help(help);
        self.add(problem, path);
    }

    /// A tool as clients see it.
    fn tool(&mut self, tool: &str, path: &KeyPath) {
        let offered = self.offered();
        if offered.contains(tool) || self.servers.is_empty() {
            return;
        }
        let names = offered.iter().map(String::as_str);
        let help = suggest::did_you_mean(tool, names, "tools");
        let message = format!("no server has a tool {}", quoted(tool));
        let problem = Diagnostic::error(&mcp::UNKNOWN_TOOL, message)
            .label("no tool is offered under this name")
            .maybe_help(help);
        self.add(problem, path);
    }

    pub(super) fn server_name(&mut self, server: &str, path: &KeyPath) {
        let problem = unknown_server(server, path, &self.servers);
        if let Some(problem) = problem {
            self.add(problem, path);
        }
    }
}

/// The problem of a server that is not among those that are known.
pub(super) fn unknown_server(server: &str, path: &KeyPath, known: &[String]) -> Option<Diagnostic> {
    if known.is_empty() || known.iter().any(|it| it == server) {
        return None;
    }
    let names = known.iter().map(String::as_str);
    let message = format!("`{path}` names a server that does not exist: {}", quoted(server));
    Some(
        Diagnostic::error(&mcp::UNKNOWN_SERVER, message)
            .label("no server has this name")
            .maybe_help(suggest::did_you_mean(server, names, "servers")),
    )
}
