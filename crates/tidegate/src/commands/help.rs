//! `tidegate help [TOPIC]`: pages about ideas, beside the help of each verb.
//!
//! A page is prose with examples, kept as a text file under `src/topics/` and filled to the
//! terminal's width. The page of exit codes is made from the codes themselves. The name of a verb
//! is a topic too: it prints that verb's long help.

use clap::Args;

use crate::exit::Exit;
use crate::printer::Printer;
use crate::wrap;

/// The pages that are files.
const PAGES: &[(&str, &str)] = &[
    ("breaker", include_str!("../topics/breaker.txt")),
    ("config", include_str!("../topics/config.txt")),
    ("scenarios", include_str!("../topics/scenarios.txt")),
];

const EXIT_CODES: &str = "exit-codes";

/// How does this work?
#[derive(Debug, Args)]
pub(crate) struct HelpArgs {
    /// config, scenarios, breaker, exit-codes, or a verb; none: the long help
    topic: Option<String>,
}

/// Prints the page; `verbs` is the command line that it is about.
pub(crate) fn run(args: &HelpArgs, mut verbs: clap::Command, printer: &Printer) -> Exit {
    let Some(topic) = args.topic.as_deref() else {
        printer.result(&verbs.render_long_help().to_string());
        return Exit::Done;
    };
    if let Some(page) = page(topic, &mut verbs, printer.width()) {
        printer.result(&page);
        return Exit::Done;
    }
    printer.error(&format!("no help about `{topic}`"));
    printer.hint(&format!("`tidegate help TOPIC` knows {}", topics(&verbs).join(", ")));
    Exit::Usage
}

/// The page about `topic`, filled to `width` columns.
fn page(topic: &str, verbs: &mut clap::Command, width: usize) -> Option<String> {
    if topic == EXIT_CODES {
        return Some(exit_codes(width));
    }
    if let Some((_, text)) = PAGES.iter().find(|(name, _)| *name == topic) {
        return Some(wrap::wrap(text, width));
    }
    verbs.build();
    verbs.find_subcommand_mut(topic).map(|verb| verb.render_long_help().to_string())
}

/// Everything `help` has a page about: ideas first, then verbs, without those for tests.
fn topics(verbs: &clap::Command) -> Vec<String> {
    let pages = PAGES.iter().map(|(name, _)| (*name).to_owned());
    let shown = verbs.get_subcommands().filter(|verb| !verb.is_hide_set());
    let verbs = shown.map(|verb| verb.get_name().to_owned());
    pages.chain([EXIT_CODES.to_owned()]).chain(verbs).collect()
}

fn exit_codes(width: usize) -> String {
    const INDENT: usize = 7;
    let mut page = String::from("Exit codes keep their meaning from version to version.\n\n");
    for exit in Exit::ALL {
        let words: Vec<&str> = exit.meaning().split_whitespace().collect();
        let meaning = wrap::fill(&words, width.saturating_sub(INDENT), 0);
        for (row, line) in meaning.lines().enumerate() {
            let code = if row == 0 { exit.code().to_string() } else { String::new() };
            page.push_str(&format!("  {code:>3}  {line}\n"));
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    fn page_of(topic: &str, width: usize) -> Option<String> {
        page(topic, &mut Cli::command(), width)
    }

    #[test]
    fn every_topic_has_a_page() {
        let topics = topics(&Cli::command());
        for topic in &topics {
            assert!(page_of(topic, 80).is_some_and(|text| text.lines().count() > 2), "{topic}");
        }
        assert_eq!(page_of("breakers", 80), None);
        assert!(!topics.iter().any(|topic| topic.starts_with("__")), "{topics:?}");
    }

    #[test]
    fn no_topic_page_is_wider_than_60_columns_if_the_terminal_is_not() {
        for topic in ["breaker", "config", "scenarios", "exit-codes"] {
            let text = page_of(topic, 60).expect("a topic");
            for line in text.lines() {
                assert!(line.chars().count() <= 60, "{topic}: {line}");
            }
        }
    }

    #[test]
    fn a_long_meaning_stays_in_its_column() {
        assert!(exit_codes(40).contains("\n       "), "{}", exit_codes(40));
    }
}
