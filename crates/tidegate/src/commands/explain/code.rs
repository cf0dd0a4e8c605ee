//! The page of a diagnostic's or an error's code, offline.
//!
//! The pages of diagnostics stand beside the checks that give them, in the libraries. Those of
//! errors are the tables of `docs/troubleshooting.md`, which is part of the program.

use serde_json::json;
use tidegate_config::codes::{self, Code};

use crate::exit::Exit;
use crate::printer::Printer;
use crate::wrap;

const TROUBLESHOOTING: &str = include_str!("../../../../../docs/troubleshooting.md");

/// Every code of every library, in the order of the numbers.
fn all() -> Vec<&'static Code> {
    let shared = codes::ALL.iter().copied().flatten().copied();
    let mut all: Vec<_> = shared.chain(tidegate_sim::codes::ALL.iter().copied()).collect();
    all.sort_by_key(|code| code.id);
    all
}

/// An error that the gateway answers with.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ErrorPage {
    code: &'static str,
    /// The HTTP status, of LLM requests.
    status: Option<&'static str>,
    happened: &'static str,
    remedy: &'static str,
}

/// The rows of the tables of errors: `| 503 | code | … | … |` and `| code | … | … |`.
fn errors() -> Vec<ErrorPage> {
    let is_errors = |part: &&str| part.starts_with("Errors of");
    let parts = TROUBLESHOOTING.split("\n## ").filter(is_errors);
    parts.flat_map(str::lines).filter_map(error).collect()
}

fn error(line: &'static str) -> Option<ErrorPage> {
    let cells: Vec<&str> = line.strip_prefix('|')?.strip_suffix('|')?.split(" | ").collect();
    let cells: Vec<&str> = cells.into_iter().map(str::trim).collect();
    let (status, code, happened, remedy) = match cells.as_slice() {
        [status, code, happened, remedy] => (Some(*status), *code, *happened, *remedy),
        [code, happened, remedy] => (None, *code, *happened, *remedy),
        _ => return None,
    };
    let code = code.strip_prefix('`')?.strip_suffix('`')?;
    Some(ErrorPage { code, status, happened, remedy })
}

/// Prints the page of a code, if it is one.
pub(super) fn page(wanted: &str, is_json: bool, printer: &Printer) -> Option<Exit> {
    if let Some(code) = all().into_iter().find(|code| code.id.eq_ignore_ascii_case(wanted)) {
        if is_json {
            printer.result(&format!("{:#}", object(code)));
        } else {
            let text = wrap::wrap(code.text, printer.width());
            printer.result(&format!("{}: {}\n\n{text}", code.id, code.title));
        }
        return Some(Exit::Done);
    }
    let found: Vec<ErrorPage> = errors().into_iter().filter(|it| it.code == wanted).collect();
    if found.is_empty() {
        return None;
    }
    if is_json {
        let pages: Vec<_> = found.iter().map(error_object).collect();
        printer.result(&format!("{:#}", json!({ "errors": pages })));
    } else {
        let texts: Vec<String> = found.iter().map(|it| error_text(it, printer.width())).collect();
        printer.result(&texts.join("\n"));
    }
    Some(Exit::Done)
}

fn error_text(it: &ErrorPage, width: usize) -> String {
    let status = it.status.map(|status| format!(", status {status}")).unwrap_or_default();
    let text = format!("{}\n\nWhat to do: {}", it.happened, it.remedy);
    format!("{}{status}\n\n{}", it.code, wrap::wrap(&text, width))
}

fn error_object(it: &ErrorPage) -> serde_json::Value {
    let status: Option<u16> = it.status.and_then(|status| status.parse().ok());
    json!({ "code": it.code, "status": status, "what": it.happened, "remedy": it.remedy })
}

/// Every code with its title.
pub(super) fn list(is_json: bool) -> String {
    if is_json {
        let codes: Vec<_> = all().into_iter().map(object).collect();
        let errors: Vec<_> = errors().iter().map(error_object).collect();
        return format!("{:#}", json!({ "codes": codes, "errors": errors }));
    }
    let mut text: String =
        all().iter().map(|code| format!("{}  {}\n", code.id, code.title)).collect();
    text.push('\n');
    let mut names: Vec<&str> = errors().iter().map(|it| it.code).collect();
    names.dedup();
    text.push_str(&wrap::wrap(&format!("Errors of the gateway: {}", names.join(", ")), 80));
    text
}

fn object(code: &Code) -> serde_json::Value {
    json!({ "code": code.id, "title": code.title, "text": code.text })
}

#[cfg(test)]
mod tests {
    use super::errors;

    #[test]
    fn the_tables_of_the_page_are_read() {
        let all = errors();
        let found = all.iter().find(|it| it.code == "no_healthy_backend").expect("it is listed");
        assert_eq!(found.status, Some("503"));
        assert!(found.remedy.contains("attempts"), "{found:?}");
        let mcp = all.iter().find(|it| it.code == "result_unknown").expect("it is listed");
        assert_eq!(mcp.status, None);
        assert_eq!(all.iter().filter(|it| it.code == "timeout").count(), 2, "408 and 504");
    }
}
