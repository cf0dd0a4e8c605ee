//! `tidegate man [COMMAND]`: the manual page of the program or of one command, in roff.
//!
//! The pages are made from the same data as the help texts, so they cannot differ from them. Only
//! the page of the program has more: exit codes, files and variables.

use std::io;

use clap::Args;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use crate::exit::Exit;
use crate::printer::Printer;

const EXAMPLES: &str = "\
Examples:
  tidegate man | man -l -
  tidegate man check > /usr/local/share/man/man1/tidegate-check.1";

/// Variables that the program reads, and what each is for.
const VARIABLES: &[(&str, &str)] = &[
    ("TIDEGATE_CONFIG", "The config file, where no argument names one."),
    ("TIDEGATE_URL", "The gateway that `tools` and `mcp` speak to."),
    ("TIDEGATE_ADMIN_URL", "The admin listener that `status`, `explain` and the verbs ask."),
    ("TIDEGATE_ADMIN_TOKEN", "The token of that listener, which every change needs."),
    ("TIDEGATE_KEY", "The key for a gateway that asks for one."),
    ("NO_COLOR, CLICOLOR_FORCE", "Whether output is coloured, where --color does not say."),
];

/// Files that the program looks for.
const FILES: &[(&str, &str)] = &[
    ("tidegate.yaml", "The config file in the working folder."),
    ("~/.config/tidegate/tidegate.yaml", "The config file of the user (see XDG_CONFIG_HOME)."),
];

/// Print the manual page of the program or of one command (roff)
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ManArgs {
    /// A command, such as check; none: the program
    command: Option<String>,
}

/// Prints the page, for the words of this command line.
pub(crate) fn run(args: &ManArgs, words: clap::Command, printer: &Printer) -> Exit {
    // The page is the long help: what `-h` has no room for belongs here.
    let mut program = words.mut_args(|arg| arg.hide_short_help(false));
    program.build();
    let page = match args.command.as_deref() {
        None => page_of_program(program),
        Some(name) => {
            let shown = program.find_subcommand(name).filter(|command| !command.is_hide_set());
            let Some(command) = shown.cloned() else {
                printer.error(&format!("no command is called `{name}`"));
                printer.hint("`tidegate -h` lists the commands");
                return Exit::Usage;
            };
            let mut page = Vec::new();
            Man::new(command).render(&mut page).map(|()| page)
        }
    };
    match page {
        Ok(page) => {
            printer.result(&String::from_utf8_lossy(&page));
            Exit::Done
        }
        Err(error) => {
            printer.error(&format!("the page cannot be made: {error}"));
            Exit::No
        }
    }
}

fn page_of_program(program: clap::Command) -> io::Result<Vec<u8>> {
    let man = Man::new(program);
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    man.render_subcommands_section(&mut page)?;
    let exits = Exit::ALL.map(|exit| (exit.code().to_string(), exit.meaning().to_owned()));
    section("EXIT STATUS", &exits).to_writer(&mut page)?;
    section("ENVIRONMENT", VARIABLES).to_writer(&mut page)?;
    section("FILES", FILES).to_writer(&mut page)?;
    man.render_extra_section(&mut page)?;
    man.render_version_section(&mut page)?;
    Ok(page)
}

/// A list of words, each with its meaning below.
fn section(title: &str, entries: &[(impl AsRef<str>, impl AsRef<str>)]) -> Roff {
    let mut section = Roff::new();
    section.control("SH", [title]);
    for (word, meaning) in entries {
        section.control("TP", []);
        section.text([clap_mangen::roff::bold(word.as_ref())]);
        section.text([roman(meaning.as_ref())]);
    }
    section
}
