//! `tidegate tools list|call|search|eval`: a running gateway's tools, and how they are found.
//!
//! It speaks to `/mcp` as any client would: at `--url`, else `TIDEGATE_URL`, else where the config
//! that `serve` would take listens. The key comes from `TIDEGATE_KEY`. The talking itself is
//! [`tidegate_mcp_shell::guest`]'s.
//!
//! | what happened | exit code |
//! |---|---|
//! | there is a result | 0 |
//! | the tool failed, the gateway refused, or no tool fits | 1 |
//! | arguments that are none | 2 |
//! | no gateway answers | 4 |

mod arguments;
mod call;
mod eval;
pub(super) mod gate;
mod list;
mod search;

use clap::{Args, Subcommand};

use crate::exit::Exit;
use crate::printer::Printer;

const EXAMPLES: &str = "\
Examples:
  tidegate tools list
  tidegate tools call tides_echo text=hello
  tidegate tools call files_read_file '{\"path\": \"/data/a.txt\"}'
  tidegate tools search \"when is high water\" --explain

The key for a gateway that wants one is read from TIDEGATE_KEY.

Next: `tidegate check --connect` shows which servers can be reached";

/// Which tools does a running gateway offer, and what do they answer?
///
/// Exit code 0: there is a result; 1: the tool failed or was refused, or none fits; 4: no gateway
/// answers.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ToolsArgs {
    #[command(subcommand)]
    verb: Verb,
}

/// What to do with tools.
#[derive(Debug, Subcommand)]
enum Verb {
    /// Which tools are offered?
    List(list::ListArgs),
    /// What does this tool answer?
    Call(call::CallArgs),
    /// Which tool does this?
    ///
    /// Asks a running gateway; if none answers, the servers of the config.
    Search(search::SearchArgs),
    /// How well does the search find what labelled requests ask for?
    Eval(eval::EvalArgs),
}

/// Asks the gateway.
pub(crate) fn run(args: &ToolsArgs, printer: &Printer) -> Exit {
    match &args.verb {
        Verb::List(args) => list::run(args, printer),
        Verb::Call(args) => call::run(args, printer),
        Verb::Search(args) => search::run(args, printer),
        Verb::Eval(args) => eval::run(args, printer),
    }
}

/// A server's words, fit for a terminal: control characters other than line breaks and tabs are
/// escaped, so that a tool cannot move the cursor or hide a line. `--json` has them all.
fn calm(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '\t' => out.push(character),
            _ if character.is_control() => out.extend(character.escape_default()),
            _ => out.push(character),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::calm;

    #[test]
    fn what_could_talk_to_a_terminal_is_escaped_and_lines_stay() {
        assert_eq!(calm("a\tb\nc\u{1b}[2Jd\r"), "a\tb\nc\\u{1b}[2Jd\\r");
        assert_eq!(calm("häfen ⚓"), "häfen ⚓");
    }
}
