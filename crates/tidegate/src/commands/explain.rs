//! `tidegate explain CODE`: the page of a diagnostic, offline.
//!
//! The pages stand beside the checks that give the diagnostics, in the libraries; this verb finds
//! and prints them.

use clap::Args;
use serde_json::json;
use tidegate_config::codes::{self, Code};

use crate::exit::Exit;
use crate::printer::Printer;
use crate::wrap;

const EXAMPLES: &str = "\
Examples:
  tidegate explain TG010    one page
  tidegate explain          every code with its title";

/// Why? What does this diagnostic mean?
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ExplainArgs {
    /// A diagnostic's code, such as TG010; none: list all
    code: Option<String>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Prints a page, or the list of codes.
pub(crate) fn run(args: &ExplainArgs, printer: &Printer) -> Exit {
    let Some(wanted) = args.code.as_deref() else {
        printer.result(&list(args.json));
        return Exit::Done;
    };
    let Some(code) = all().into_iter().find(|code| code.id.eq_ignore_ascii_case(wanted)) else {
        printer.error(&format!("no diagnostic has the code `{wanted}`"));
        printer.hint("`tidegate explain` lists every code");
        return Exit::Usage;
    };
    if args.json {
        printer.result(&format!("{:#}", object(code)));
    } else {
        let text = wrap::wrap(code.text, printer.width());
        printer.result(&format!("{}: {}\n\n{text}", code.id, code.title));
    }
    Exit::Done
}

/// Every code of every library, in the order of the numbers.
fn all() -> Vec<&'static Code> {
    let shared = codes::ALL.iter().copied().flatten().copied();
    let mut all: Vec<_> = shared.chain(tidegate_sim::codes::ALL.iter().copied()).collect();
    all.sort_by_key(|code| code.id);
    all
}

fn list(is_json: bool) -> String {
    if is_json {
        return format!(
            "{:#}",
            json!({ "codes": all().into_iter().map(object).collect::<Vec<_>>() })
        );
    }
    all().iter().map(|code| format!("{}  {}\n", code.id, code.title)).collect()
}

fn object(code: &Code) -> serde_json::Value {
    json!({ "code": code.id, "title": code.title, "text": code.text })
}
