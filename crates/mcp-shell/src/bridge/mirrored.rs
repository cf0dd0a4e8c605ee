//! Tools that want arguments in headers, as lists told of them.
//!
//! A client that speaks over pipes knows nothing of headers, so the bridge looks at the lists that
//! pass. Only tools with such a wish are kept, and not more than [`TOOLS_MAX`].

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use memchr::memmem;
use serde::Deserialize;
use serde_json::value::RawValue;
use tidegate_mcp::raw::Fields;

/// Far more tools with such a wish than any known server has.
const TOOLS_MAX: usize = 1000;
/// What a definition with a wish holds.
const WISH: &[u8] = b"x-mcp-header";

/// What is known of tools.
#[derive(Debug, Default)]
pub(super) struct Mirrored(RefCell<BTreeMap<String, Rc<str>>>);

/// What is read of an answer to `tools/list`.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page<'a> {
    #[serde(borrow, default)]
    tools: Vec<&'a RawValue>,
    #[serde(default)]
    next_cursor: Option<String>,
}

impl Mirrored {
    /// Looks at an answer to `tools/list`; where its next page begins, if there is one.
    pub(super) fn see(&self, answer: &[u8]) -> Option<String> {
        #[derive(Deserialize)]
        struct ListAnswer<'a> {
            #[serde(borrow)]
            result: Page<'a>,
        }
        let page = serde_json::from_slice::<ListAnswer<'_>>(answer).ok()?.result;
        let mut known = self.0.borrow_mut();
        for tool in page.tools {
            let Some(name) = Fields::of(tool, &[]).ok().and_then(|tool| tool.text("name")) else {
                continue;
            };
            let has_wish = memmem::find(tool.get().as_bytes(), WISH).is_some();
            if has_wish && (known.len() < TOOLS_MAX || known.contains_key(&name)) {
                known.insert(name, tool.get().into());
            } else {
                known.remove(&name);
            }
        }
        page.next_cursor
    }

    /// The definition of a tool that has such a wish.
    pub(super) fn tool(&self, name: &str) -> Option<Rc<str>> {
        self.0.borrow().get(name).map(Rc::clone)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tools_with_a_wish_are_known_until_a_list_says_otherwise() {
        let mirrored = Mirrored::default();
        let wish = json!({"properties": {"a": {"type": "string", "x-mcp-header": "A"}}});
        let list = |schema: &serde_json::Value| {
            let tools = json!([{"name": "go", "inputSchema": schema}, {"name": "stay"}, 7]);
            json!({"id": 1, "result": {"tools": tools, "nextCursor": "2"}}).to_string()
        };
        assert_eq!(mirrored.see(list(&wish).as_bytes()), Some("2".to_owned()));
        assert!(mirrored.tool("go").is_some_and(|tool| tool.contains("x-mcp-header")));
        assert!(mirrored.tool("stay").is_none());
        mirrored.see(list(&json!({})).as_bytes());
        assert!(mirrored.tool("go").is_none());
        assert_eq!(mirrored.see(b"no answer"), None);
    }
}
