//! `tidegate completions SHELL`: prints the completion script of a shell.

use clap::Args;
use clap_complete::Shell;

use crate::exit::Exit;
use crate::printer::Printer;

const EXAMPLES: &str = "\
Examples:
  tidegate completions bash > ~/.local/share/bash-completion/completions/tidegate
  tidegate completions fish > ~/.config/fish/completions/tidegate.fish";

/// How does my shell complete tidegate's words?
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// The shell to write for
    shell: Shell,
}

/// Prints the script, for the words of this command line.
pub(crate) fn run(args: &CompletionsArgs, mut words: clap::Command, printer: &Printer) -> Exit {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut words, "tidegate", &mut script);
    printer.result(&String::from_utf8_lossy(&script));
    Exit::Done
}
