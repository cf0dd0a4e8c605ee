//! What to write instead, for the mistakes that newcomers make most often.
//!
//! A message says what is wrong; the advice here shows the right spelling. It knows the habits of
//! other programs' files (`mcpServers`, `model_list`, `args`, `api_key`) and the two mistakes of
//! every YAML file: a value where a list belongs, and a key at the wrong indentation.

use super::{Walk, schema::Schema};
use crate::{
    diagnostic::quoted,
    document::{Entry, Node, NodeKind},
    path::{KeyPath, Step},
    secret,
};

/// Keys of other programs, and what they are called here.
struct Foreign {
    keys: &'static [&'static str],
    /// The advice holds only for a section that has this key.
    section_has: &'static str,
    advice: &'static str,
}

const FOREIGN: &[Foreign] = &[
    Foreign {
        keys: &["mcpServers", "mcp_servers", "mcp-servers"],
        section_has: "mcp",
        advice: "MCP servers are written as `mcp: {servers: {NAME: {url: …}}}`; a program and its \
                 arguments are one list, `command: [npx, -y, NAME]`",
    },
    Foreign {
        keys: &["mcpServers", "mcp_servers", "mcp-servers"],
        section_has: "servers",
        advice: "write `servers`; a program and its arguments are one list, \
                 `command: [npx, -y, NAME]`",
    },
    Foreign {
        keys: &["model_list", "litellm_settings", "router_settings", "general_settings"],
        section_has: "routes",
        advice: "LiteLLM's keys are not read: write each account under `providers`, and each \
                 `model_name` as a route, `routes: {NAME: {tiers: [[provider/model]]}}`",
    },
    Foreign {
        keys: &["args", "arguments"],
        section_has: "command",
        advice: "put the arguments into `command`, which is one list: `command: [npx, -y, NAME]`",
    },
    Foreign {
        keys: &["api_key", "apikey", "apiKey", "api-key", "token", "secret"],
        section_has: "key",
        advice: "write `key: env:NAME`, and put the key into that environment variable",
    },
    Foreign {
        keys: &["base_url", "baseurl", "baseUrl", "api_base", "endpoint", "base"],
        section_has: "url",
        advice: "did you mean `url`?",
    },
    Foreign {
        keys: &["host", "port", "bind", "address"],
        section_has: "listen",
        advice: "write the address and the port as `listen: 127.0.0.1:8700`",
    },
    Foreign {
        keys: &["models", "targets", "model", "fallbacks"],
        section_has: "tiers",
        advice: "write the targets as `tiers: [[provider/model], [other/model]]`, the first tier \
                 first",
    },
];

impl Walk<'_> {
    /// What may be meant by a key that a section does not have.
    pub(super) fn advice_on_key(
        &self,
        section: Schema<'_>,
        key: &str,
        before: Option<&Entry>,
    ) -> Option<String> {
        let has = |name: &str| section.properties().is_some_and(|known| known.contains_key(name));
        let foreign = FOREIGN.iter().find(|it| it.keys.contains(&key) && has(it.section_has));
        if let Some(foreign) = foreign {
            return Some(foreign.advice.to_owned());
        }
        if !self.path.parent().is_root() && self.is_top_level(key) {
            return Some(format!(
                "{} is a key of the top level: write it without indentation",
                quoted(key)
            ));
        }
        let before = before.filter(|it| matches!(it.value.kind, NodeKind::Null))?;
        let schema = section.properties()?.get(&before.key).map(Schema::new)?;
        let empty = schema.resolved(self.definitions).takes("object");
        empty.then(|| {
            let name = quoted(&before.key);
            format!("if it belongs to {name}, which is empty, indent it below {name}")
        })
    }

    fn is_top_level(&self, key: &str) -> bool {
        self.definitions.pointer("/properties").is_some_and(|known| known.get(key).is_some())
    }

    fn is_top_level_scalar(&self, key: &str) -> bool {
        let known = self.definitions.pointer("/properties").and_then(|known| known.get(key));
        known.is_some_and(|schema| Schema::new(schema).resolved(self.definitions).takes_scalar())
    }

    /// What to write where a value is of the wrong kind.
    pub(super) fn advice_on_type(&self, schema: Schema<'_>, node: &Node) -> Option<String> {
        let last = self.path.steps().last();
        if let Some(Step::Key(key)) = last
            && !self.path.parent().is_root()
            && self.is_top_level_scalar(key)
            && matches!(node.kind, NodeKind::Scalar { .. })
        {
            let name = quoted(key);
            return Some(format!("{name} is a key of the top level: write it without indentation"));
        }
        match &node.kind {
            NodeKind::Scalar { text, .. } if schema.takes("array") => {
                let items = schema.items().resolved(self.definitions);
                let is_list = items.takes_scalar() || items.takes("array");
                is_list.then(|| as_list(&self.path, items, text))
            }
            NodeKind::Seq(_) if schema.format() == Some(secret::FORMAT) => Some(
                "write one `env:NAME`; several keys are written as `keys: [env:A, env:B]`"
                    .to_owned(),
            ),
            _ => None,
        }
    }
}

/// How a single value is written where a list is wanted.
fn as_list(path: &KeyPath, items: Schema<'_>, text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let words = words.join(", ");
    match path.steps().last() {
        Some(Step::Index(_)) => {
            let list = quoted(&format!("[[{words}]]"));
            format!("each item of this list is a list itself: write {list}")
        }
        _ if items.takes("array") => {
            format!("write a list of lists: {}", quoted(&format!("[[{words}]]")))
        }
        _ => format!("write a list: {}", quoted(&format!("[{words}]"))),
    }
}
