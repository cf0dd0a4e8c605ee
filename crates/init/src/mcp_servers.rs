//! `mcpServers` of Claude Desktop, Claude Code, Cursor and others, and `servers` of VS Code.
//!
//! The products agree on `command`, `args`, `env`, `url` and `headers`, and differ in how a value
//! names a variable. What only an editor can know (its workspace folder, what its user types) is
//! not carried over.

mod values;

use serde_json::{Map, Value, json};

use self::values::Values;
use crate::{
    draft::Draft,
    item::Item,
    notes::Notes,
    secrets::{Variables, is_secret_argument, looks_secret},
};

const EDITOR_VARIABLE: &str = "it uses a variable that only the editor knows; write the server by \
                               hand under `mcp.servers`";
const SECRET_ARGUMENT: &str = "an argument looks like a secret, and `command` holds no references; \
                               pass it by an environment variable under `env`";
const SECRET_URL: &str = "its url looks as if it held a secret, and a url holds no references; \
                          write the server by hand, with the secret in a header";

/// Reads a list of servers.
pub(crate) fn import(
    root: &Item<'_>,
    servers: &Item<'_>,
    variables: &mut Variables,
    notes: &mut Notes,
) -> Draft {
    let mut draft = Draft::default();
    draft.heading(&[
        "The config of a Tidegate gateway, written by `tidegate init --from` for MCP servers.",
        "`tidegate check` checks it; clients reach all servers at http://127.0.0.1:8700/mcp.",
    ]);
    add_all(servers, &mut draft, variables, notes);
    for (key, item) in root.entries() {
        match key {
            "mcpServers" | "servers" | "mcp" | "$schema" => {}
            "inputs" => notes.drop(&item, "there is nobody to ask; set environment variables"),
            _ => notes.drop(&item, "not about MCP servers"),
        }
    }
    draft
}

/// Adds every server of a map to the draft.
pub(crate) fn add_all(
    servers: &Item<'_>,
    draft: &mut Draft,
    variables: &mut Variables,
    notes: &mut Notes,
) {
    draft.comment("mcp", &["Clients see the tools of all servers as SERVER_TOOL."]);
    for (name, item) in servers.entries() {
        if let Some(settings) = server(name, &item, variables, notes) {
            let given = draft.server(name, settings, &item);
            if given != name {
                notes.change(
                    &item,
                    format!("it is called `{given}`: names have no other characters"),
                );
            }
        }
    }
}

/// A server's settings; none, with a note, if it cannot be carried over.
fn server(
    name: &str,
    item: &Item<'_>,
    variables: &mut Variables,
    notes: &mut Notes,
) -> Option<Value> {
    if !item.is_map() {
        notes.drop(item, "a server is a map with `command` or `url`");
        return None;
    }
    let flag = |key: &str| item.get(key).and_then(|it| it.flag());
    if flag("disabled") == Some(true) || flag("enabled") == Some(false) {
        notes.drop(item, "it is switched off");
        return None;
    }
    let mut settings = match address(item) {
        Ok(settings) => settings,
        Err(reason) => {
            notes.drop(item, reason);
            return None;
        }
    };
    let is_program = settings.contains_key("command");
    for (key, part) in item.entries() {
        let mut values = Values { server: name, variables, notes };
        match key {
            "command" | "args" | "disabled" | "enabled" => {}
            "url" | "serverUrl" | "httpUrl" if !is_program => {}
            "env" if is_program => insert_map(&mut settings, "env", values.of_environment(&part)),
            "headers" | "extra_headers" | "static_headers" if !is_program => {
                insert_map(&mut settings, "headers", values.of_headers(&part));
            }
            // Which transport a server has is found out when it is connected to, also the old one.
            "type" | "transport" => {}
            "disabledTools" | "disallowed_tools" => tools(&mut settings, "exclude", &part, notes),
            "allowed_tools" => tools(&mut settings, "include", &part, notes),
            _ => notes.drop(&part, reason(key)),
        }
    }
    Some(Value::Object(settings))
}

/// How the server is reached.
fn address(item: &Item<'_>) -> Result<Map<String, Value>, &'static str> {
    let mut settings = Map::new();
    if let Some(command) = item.get("command") {
        let program = command.text().filter(|text| !text.is_empty());
        let mut words = vec![program.ok_or("its command is not text")?];
        if let Some(args) = item.get("args") {
            words.extend(args.texts().ok_or("its arguments are not a list of texts")?);
        }
        if words.iter().any(|word| word.contains("${")) {
            return Err(EDITOR_VARIABLE);
        }
        let before = |at: usize| at.checked_sub(1).and_then(|at| words.get(at).copied());
        if words.iter().enumerate().any(|(at, word)| is_secret_argument(word, before(at))) {
            return Err(SECRET_ARGUMENT);
        }
        settings.insert("command".to_owned(), json!(words));
        return Ok(settings);
    }
    let url = ["url", "serverUrl", "httpUrl"].into_iter().find_map(|key| item.get(key));
    let url = url.as_ref().and_then(Item::text).ok_or("it has neither `command` nor `url`")?;
    if url.contains("${") || url.starts_with("os.environ/") {
        return Err(EDITOR_VARIABLE);
    }
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let is_secret = |pair: &str| is_secret_argument(pair, None);
    if looks_secret(url) || query.split('&').any(is_secret) {
        return Err(SECRET_URL);
    }
    settings.insert("url".to_owned(), json!(url));
    Ok(settings)
}

fn insert_map(settings: &mut Map<String, Value>, key: &str, values: Map<String, Value>) {
    if !values.is_empty() {
        settings.insert(key.to_owned(), Value::Object(values));
    }
}

fn tools(settings: &mut Map<String, Value>, key: &str, part: &Item<'_>, notes: &mut Notes) {
    match part.texts() {
        Some(names) => drop(settings.insert(key.to_owned(), json!(names))),
        None => notes.drop(part, "not a list of tool names"),
    }
}

/// Why a key of a server is left out.
fn reason(key: &str) -> &'static str {
    match key {
        "cwd" => "a working folder cannot be set; use absolute paths in `command`",
        "envFile" => "files of variables are not read; list the variables under `env`",
        "autoApprove" | "alwaysAllow" | "trust" => "whether to ask a person is the client's choice",
        "timeout" | "initTimeout" | "startup_timeout_sec" => {
            "timeouts are set for all servers: `mcp.call_timeout`, `mcp.connect_timeout`"
        }
        "oauth"
        | "auth"
        | "auth_type"
        | "auth_value"
        | "authentication_token"
        | "authProviderType" => {
            "only headers authenticate: set `headers: { authorization: env:NAME }`"
        }
        "env" => "only a server that is started by `command` has an environment",
        "headers" => "only a server that is reached by `url` gets headers",
        _ => "there is no such setting",
    }
}

#[cfg(test)]
mod tests;
