//! MCP servers: transport, keepalive, filters, groups.

use super::{Check, Unknown, url::Query};
use crate::{
    codes::config as codes,
    diagnostic::quoted,
    file::{KeepaliveMethod, ServerFile, ToolList},
    glob,
    path::KeyPath,
};

impl<'a> Check<'a> {
    pub(super) fn mcp(&mut self) {
        let file: &'a _ = self.file;
        let mcp = KeyPath::from("mcp");
        for (name, server) in &file.mcp.servers {
            let path = mcp.key("servers").key(name);
            self.name_is_usable(&path, name, "server");
            self.transport(&path, server);
            self.keepalive(&path.key("keepalive"), server);
            self.filters(&path, server);
        }
        for (group, members) in &file.mcp.replicas {
            self.group(&mcp.key("replicas").key(group), group, members);
        }
        if let Some(embeddings) = &file.mcp.search.embeddings {
            self.route_exists(&mcp.key("search").key("embeddings").key("route"), &embeddings.route);
        }
        self.search_model(&mcp.key("search").key("model"));
        if let Some(telemetry) = &file.telemetry {
            let path = KeyPath::from("telemetry").key("otlp");
            self.url(&path, &telemetry.otlp, Query::Refused);
        }
    }

    /// Whether the model is a file; whether that can be used is found by whoever can run it.
    fn search_model(&mut self, path: &KeyPath) {
        let mcp = &self.file.mcp;
        if mcp.search.model.is_some() && mcp.search.model_file().is_none() {
            let message = format!("`{path}` is not a file");
            self.report(
                self.error(&codes::SEARCH_MODEL, path, message)
                    .help("write `file:all-minilm-l6-v2/model.onnx`"),
            );
        } else if mcp.search.model.is_some() && mcp.tools == ToolList::All {
            let message = format!("`{path}` has an effect only with `mcp.tools: search`");
            let diagnostic = self.warning(&codes::NO_EFFECT, path, message);
            self.report(diagnostic.at_key(self.document, path));
        }
    }

    fn transport(&mut self, path: &KeyPath, server: &'a ServerFile) {
        let has_url = self.is_written(&path.key("url"));
        let has_command = self.is_written(&path.key("command"));
        let is_fake = self.is_written(&path.key("fake"));
        let problem = match (has_url, has_command, is_fake) {
            (true, true, _) => Some("has both `url` and `command`"),
            (false, false, false) => Some("has neither `url` nor `command`"),
            (true, false, true) | (false, true, true) => Some("has `fake` and another way to it"),
            _ => None,
        };
        if let Some(problem) = problem {
            let diagnostic =
                self.error(&codes::SERVER_TRANSPORT, path, format!("`{path}` {problem}"));
            self.report(diagnostic.at_key(self.document, path).help("write exactly one of them"));
        }
        if let Some(url) = &server.url {
            self.url(&path.key("url"), url, Query::Allowed);
        }
        if server.command.as_ref().is_some_and(|command| command.iter().all(String::is_empty)) {
            let message = format!("`{path}.command` names no program");
            self.report(self.error(&codes::SERVER_TRANSPORT, &path.key("command"), message));
        }
        self.ca_is_file(path, server.ca.as_ref());
        let idle_keys: &[&str] = match (has_url, has_command) {
            (true, false) => &["env", "shared"],
            (false, true) => &["headers", "allow_private", "ca", "fleet"],
            _ => &[],
        };
        for key in idle_keys {
            if self.is_written(&path.key(*key)) {
                let other = if has_url { "command" } else { "url" };
                let message = format!("`{path}.{key}` has an effect only with `{other}`");
                let diagnostic = self.warning(&codes::NO_EFFECT, &path.key(*key), message);
                self.report(diagnostic.at_key(self.document, &path.key(*key)));
            }
        }
    }

    fn keepalive(&mut self, path: &KeyPath, server: &'a ServerFile) {
        let keepalive = &server.keepalive;
        let tool_name = keepalive.tool.as_ref().and_then(|tool| tool.name.as_deref());
        let is_tool = keepalive.method == Some(KeepaliveMethod::Tool);
        if is_tool && tool_name.is_none_or(str::is_empty) {
            let message = format!("`{path}` uses `method: tool` and names no tool");
            self.report(
                self.error(&codes::KEEPALIVE_WITHOUT_TOOL, &path.key("method"), message)
                    .help("add `tool: {name: NAME}`, a tool that is cheap and changes nothing"),
            );
        }
        if !is_tool && keepalive.tool.is_some() && keepalive.method.is_some() {
            let message = format!("`{path}.tool` has an effect only with `method: tool`");
            let diagnostic = self.warning(&codes::NO_EFFECT, &path.key("tool"), message);
            self.report(diagnostic.at_key(self.document, &path.key("tool")));
        }
        if keepalive.every.millis().0 == 0 {
            let message = format!("`{path}.every` is zero");
            self.report(
                self.error(&codes::BAD_SETTING, &path.key("every"), message)
                    .help("write `method: none` to switch it off"),
            );
        }
    }

    fn filters(&mut self, path: &KeyPath, server: &'a ServerFile) {
        let include = server.include.iter().flatten().enumerate().map(|entry| ("include", entry));
        let exclude = server.exclude.iter().enumerate().map(|entry| ("exclude", entry));
        for (key, (at, text)) in include.chain(exclude) {
            if let Err(problem) = glob::parse(text) {
                let place = path.key(key).index(at);
                self.report(self.error(&codes::BAD_GLOB, &place, format!("`{place}`: {problem}")));
            }
        }
    }

    fn group(&mut self, path: &KeyPath, group: &str, members: &'a [String]) {
        let servers = KeyPath::from("mcp").key("servers");
        self.name_is_usable(path, group, "group of servers");
        if self.has(&servers, group) {
            let message = format!("{} is a server and a group of servers", quoted(group));
            let diagnostic = self.error(&codes::TWICE_NAMED, path, message);
            self.report(diagnostic.at_key(self.document, path).help("give the group another name"));
        }
        if members.is_empty() {
            let message = format!("`{path}` is an empty group");
            self.report(self.error(&codes::NO_EFFECT, path, message).help("name its servers"));
        }
        for (at, server) in members.iter().enumerate() {
            if !self.has(&servers, server) {
                let place = path.index(at);
                self.unknown(Unknown {
                    code: &codes::UNKNOWN_SERVER,
                    path: &place,
                    name: server,
                    section: servers.clone(),
                    message: format!(
                        "`{path}` names a server that does not exist: {}",
                        quoted(server)
                    ),
                    label: "no server has this name",
                });
            }
            self.member(&path.index(at), (group, at), server);
        }
        self.filters_of_group(members);
    }

    /// A server is a member once: two groups would share its tools under two names.
    fn member(&mut self, path: &KeyPath, (group, at): (&str, usize), server: &str) {
        let before = self.file.mcp.replicas.iter().find_map(|(name, members)| {
            let first = members.iter().position(|it| it == server)?;
            Some((name.as_str(), first))
        });
        if let Some((other, first)) = before.filter(|it| *it != (group, at)) {
            let message = match other == group {
                true => format!("{} is twice in one group", quoted(server)),
                false => format!("{} is in two groups", quoted(server)),
            };
            let taken = format!("it is `mcp.replicas.{other}[{first}]` already");
            self.report(self.error(&codes::TWICE_NAMED, path, message).label(taken));
        }
    }

    /// A group offers what its first member's filters let through.
    fn filters_of_group(&mut self, members: &'a [String]) {
        let servers = KeyPath::from("mcp").key("servers");
        let Some((first, others)) = members.split_first() else { return };
        let Some(offered) = self.file.mcp.servers.get(first) else { return };
        for server in others {
            let Some(file) = self.file.mcp.servers.get(server) else { continue };
            let differs = [
                ("include", file.include != offered.include),
                ("exclude", file.exclude != offered.exclude),
                ("rename", file.rename != offered.rename),
            ];
            for (key, _) in differs.iter().filter(|(_, differs)| *differs) {
                let place = servers.key(server).key(*key);
                if self.is_written(&place) {
                    let message = format!("`{place}` has no effect in a group");
                    let help =
                        format!("a group's tools are filtered as those of {}", quoted(first));
                    let diagnostic = self.warning(&codes::NO_EFFECT, &place, message);
                    self.report(diagnostic.at_key(self.document, &place).help(help));
                }
            }
        }
    }
}
