//! Writes the page of the matrix.

use crate::cells::Mark;
use crate::spoken::Spoken;

const HEAD: &str = "\
# Any client, any provider

Written by `cargo xtask docs`, which runs `crates/wire/tests/dialect_matrix` and writes down what
each cell did; the same test fails when this page and its findings differ. The samples are in
`tests/dialects`, written by hand in each vendor's format and read by small readers of their own.

Every cell is a test. It checks what the provider is asked (instructions, turns, images, tools with
their schemas, tool choice, limits) and what the client sees: the text, the calls with their parsed
arguments and ids, thinking, the stop reason, the usage with cached and reasoning tokens, and of a
stream the order of events that the client's dialect allows, with exactly one end.

| mark | meaning |
|---|---|
| = | client and provider speak the same dialect: bytes pass as they are |
| ✓ | works |
| ✓ 1 | works; the note below says what was lost or said otherwise, `x-tidegate-lost` names it |
| error | the client gets the error in the shape of its dialect, with its status and message |
| event | the client gets an error event of its dialect after what came before, and no terminator |
| next | nothing of the answer is used: the next target is asked |
| – 1 | impossible; the note says why |

*Thinking* is what a model shows of it; signatures and encrypted reasoning come back to their own
vendor and are dropped elsewhere. An *upstream error* is a status of 429. *Error mid-stream* is, for
a plain answer, an error inside a 200. A *cut stream* is cut between any two events and inside of
them, a plain answer in the middle.

";

/// A case, and its marks per provider, plain and stream; whether each is native stands before it.
pub(crate) type Row = (&'static str, Vec<(bool, Mark)>);

/// The page of these rows per client.
pub(crate) fn page(tables: &[(Spoken, Vec<Row>)]) -> String {
    let mut page = HEAD.to_owned();
    let mut notes: Vec<String> = Vec::new();
    for (client, rows) in tables {
        page.push_str(&format!("## A client of {}\n\n| |", client.title()));
        for upstream in Spoken::ALL {
            page.push_str(&format!(" {0} | {0}, stream |", upstream.title()));
        }
        page.push_str("\n|---|");
        page.push_str(&"---|".repeat(Spoken::ALL.len() * 2));
        page.push('\n');
        for (title, marks) in rows {
            page.push_str(&format!("| {title} |"));
            for (is_native, mark) in marks {
                page.push_str(&format!(" {} |", cell(*is_native, mark, &mut notes)));
            }
            page.push('\n');
        }
        page.push('\n');
    }
    page.push_str("## Notes\n\n");
    for (at, note) in notes.iter().enumerate() {
        page.push_str(&format!("{}. {note}\n", at + 1));
    }
    page
}

fn cell(is_native: bool, mark: &Mark, notes: &mut Vec<String>) -> String {
    match mark {
        Mark::Impossible(why) => format!("– {}", numbers(&[(*why).to_owned()], notes)),
        Mark::Works(_) if is_native => "=".to_owned(),
        Mark::Works(said) if said.is_empty() => "✓".to_owned(),
        Mark::Works(said) => format!("✓ {}", numbers(said, notes)),
        Mark::NextTarget => "next".to_owned(),
        Mark::ErrorShown => "error".to_owned(),
        Mark::ErrorEvent => "event".to_owned(),
    }
}

/// The numbers of notes, each given when it is first needed.
fn numbers(said: &[String], notes: &mut Vec<String>) -> String {
    let mut found: Vec<usize> = Vec::new();
    for one in said {
        let at = notes.iter().position(|note| note == one).unwrap_or_else(|| {
            notes.push(one.clone());
            notes.len() - 1
        });
        if !found.contains(&(at + 1)) {
            found.push(at + 1);
        }
    }
    found.sort_unstable();
    found.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
