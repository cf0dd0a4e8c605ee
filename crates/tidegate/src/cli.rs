//! What can be typed: the flags every verb has, and the list of verbs.
//!
//! `-h` is one screen of 24 lines: the verbs of every day with their questions, the others by name.
//! Flags about output are in `--help` only.
//!
//! Each verb's own arguments stand in its module under [`crate::commands`]. The doc comments here
//! and there are the help texts a user reads, so they follow the rules for such texts: short, in
//! the words of the lexicon, without a full stop.

use std::io::{IsTerminal, stdout};

use anstream::ColorChoice;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};

use crate::commands::act::Deed;
use crate::commands::{
    act, check, child, completions, doctor, explain, fake, fake_mcp, help, init, man, mcp, schema,
    serve, sim, status, tools,
};
use crate::exit::Exit;
use crate::printer::{Look, Printer, Talk};

/// The seven verbs of every day with the question each answers, then the others by name: all of it
/// fits on one screen. A test compares it with the verbs that exist.
const SCREEN: &str = "\
{about}

{usage-heading} {usage}

Commands:
  init     Write a first config from API keys or other files
  check    Is this config sound?
  serve    Serve until told to stop; without a config a demo
  sim      What would happen in this outage?
  status   Who is hurt? What is broken, when does it heal?
  explain  Why? (a backend, a request, a code)
  doctor   Is everything in order here?

On a gateway:  drain, hold, resume, reset, probe, reload
More:          mcp, tools, schema, completions, man, help

Options:
{options}{after-help}";

const EXAMPLES: &str = "\
Try:  `tidegate serve`, `tidegate status`, `tidegate sim`
Next: `tidegate help config`, `tidegate help VERB`";

/// An AI gateway that stays up when its backends do not, and can prove it on your laptop
///
/// It routes LLM and MCP requests around trouble, says why, and simulates any outage with the
/// code that routes: what `tidegate sim` shows is what production does.
#[derive(Debug, Parser)]
#[command(
    name = "tidegate",
    version,
    disable_help_subcommand = true,
    arg_required_else_help = true,
    about = "An AI gateway that stays up when its backends do not",
    after_help = EXAMPLES,
    help_template = SCREEN,
    max_term_width = 100
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) look: LookArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Write a first config, from API keys or another product's file
    Init(init::InitArgs),
    /// Is this config sound?
    Check(check::CheckArgs),
    /// Serve until told to stop
    Serve(serve::ServeArgs),
    /// What would happen in this outage?
    Sim(sim::SimArgs),
    /// Is anyone hurt? What is broken, and when does it heal?
    Status(status::StatusArgs),
    /// Why? (a backend, a request, where one would go, a code)
    Explain(explain::ExplainArgs),
    /// Is everything in order here? (config, secrets, ports, providers)
    Doctor(doctor::DoctorArgs),
    /// Send nothing to a backend, for a while
    Drain(act::LeaseArgs),
    /// Hold a backend's breaker open, for a while
    Hold(act::LeaseArgs),
    /// End a drain or a hold
    Resume(act::ActArgs),
    /// Close a backend's breaker and forget what stands against it
    Reset(act::ActArgs),
    /// Ask a backend now whether it answers
    Probe(act::ActArgs),
    /// Read the config again
    Reload(act::ReloadArgs),
    /// Speak MCP on stdin and stdout, for desktop clients
    Mcp(mcp::McpArgs),
    /// Which tools does a running gateway offer? (MCP: list, call)
    Tools(tools::ToolsArgs),
    /// What may a config file hold? (JSON Schema)
    Schema(schema::SchemaArgs),
    /// How does my shell complete tidegate's words?
    Completions(completions::CompletionsArgs),
    /// Print the manual page of the program or of one command (roff)
    Man(man::ManArgs),
    /// How does this work? (config, scenarios, breaker, exit-codes)
    Help(help::HelpArgs),
    /// Answer like a provider (for tests)
    #[command(name = "__fake", hide = true)]
    Fake(fake::FakeArgs),
    /// Answer like an MCP server (for tests)
    #[command(name = "__fake-mcp", hide = true)]
    FakeMcp(fake_mcp::FakeMcpArgs),
    /// Stand between the gateway and a server's program
    #[command(name = "__child", hide = true)]
    Child(child::ChildArgs),
}

impl Command {
    /// Runs the verb that was typed.
    pub(crate) fn run(&self, printer: &Printer) -> Exit {
        match self {
            Self::Init(args) => init::run(args, printer),
            Self::Check(args) => check::run(args, printer),
            Self::Serve(args) => serve::run(args, printer),
            Self::Sim(args) => sim::run(args, printer),
            Self::Status(args) => status::run(args, printer),
            Self::Explain(args) => explain::run(args, printer),
            Self::Drain(args) => act::lease(Deed::Drain, args, printer),
            Self::Hold(args) => act::lease(Deed::Hold, args, printer),
            Self::Resume(args) => act::once(Deed::Resume, args, printer),
            Self::Reset(args) => act::once(Deed::Reset, args, printer),
            Self::Probe(args) => act::once(Deed::Probe, args, printer),
            Self::Reload(args) => act::reload(args, printer),
            Self::Doctor(args) => doctor::run(args, printer),
            Self::Mcp(args) => mcp::run(args, printer),
            Self::Tools(args) => tools::run(args, printer),
            Self::Schema(args) => schema::run(args, printer),
            Self::Completions(args) => completions::run(args, Cli::command(), printer),
            Self::Man(args) => man::run(args, Cli::command(), printer),
            Self::Help(args) => help::run(args, Cli::command(), printer),
            Self::Fake(args) => fake::run(args, printer),
            Self::FakeMcp(args) => fake_mcp::run(args, printer),
            Self::Child(args) => child::run(args),
        }
    }
}

/// Flags every verb has: how much is said, and how it looks.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct LookArgs {
    /// Say nothing but results and errors
    #[arg(short, long, global = true, conflicts_with = "verbose", hide_short_help = true)]
    quiet: bool,
    /// Say more
    #[arg(short, long, global = true, hide_short_help = true)]
    verbose: bool,
    /// Use colour auto (the default), always or never
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        hide_short_help = true,
        hide_default_value = true,
        hide_possible_values = true
    )]
    color: Colour,
    /// Draw with ASCII characters only
    #[arg(long, global = true, hide_short_help = true)]
    ascii: bool,
}

/// The values of `--color`.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Colour {
    Auto,
    Always,
    Never,
}

impl LookArgs {
    /// The printer these flags ask for.
    pub(crate) fn printer(&self) -> Printer {
        let talk = match (self.quiet, self.verbose) {
            (true, _) => Talk::Quiet,
            (false, true) => Talk::Verbose,
            (false, false) => Talk::Normal,
        };
        let colour = match self.color {
            Colour::Auto => ColorChoice::Auto,
            Colour::Always => ColorChoice::Always,
            Colour::Never => ColorChoice::Never,
        };
        // A file or pipe gets the same bytes whatever the locale; only a terminal can fail to
        // draw a character.
        let cannot_draw =
            stdout().is_terminal() && !is_utf8_locale(|name| std::env::var(name).ok());
        let look = if self.ascii || cannot_draw { Look::Ascii } else { Look::Unicode };
        Printer::new(talk, colour, look)
    }
}

/// Whether the locale's character set is UTF-8: the first variable that is set decides, as in
/// POSIX; if none is, UTF-8 is the better guess.
fn is_utf8_locale(variable: impl Fn(&str) -> Option<String>) -> bool {
    let set = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(variable);
    set.filter(|value| !value.is_empty())
        .map(|value| value.to_ascii_lowercase())
        .next()
        .is_none_or(|value| value.contains("utf-8") || value.contains("utf8"))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::{Cli, SCREEN, is_utf8_locale};

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_first_screen_names_every_command() {
        let lists: Vec<&str> = SCREEN.lines().skip_while(|it| *it != "Commands:").collect();
        let words: Vec<&str> =
            lists.iter().flat_map(|it| it.split([' ', ','])).filter(|it| !it.is_empty()).collect();
        for command in Cli::command().get_subcommands().filter(|it| !it.is_hide_set()) {
            assert!(words.contains(&command.get_name()), "{}", command.get_name());
        }
    }

    #[test]
    fn the_first_locale_variable_that_is_set_decides() {
        let check = |all: &'static str, lang: &'static str, expected| {
            let locale = |name: &str| match name {
                "LC_ALL" => Some(all.to_owned()),
                "LANG" => Some(lang.to_owned()),
                _ => None,
            };
            assert_eq!(is_utf8_locale(locale), expected, "LC_ALL={all} LANG={lang}");
        };
        check("", "en_GB.UTF-8", true);
        check("C", "en_GB.UTF-8", false);
        check("C.utf8", "C", true);
        check("", "", true);
        check("", "POSIX", false);
    }
}
