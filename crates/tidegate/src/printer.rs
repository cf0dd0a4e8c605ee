//! The only place that prints.
//!
//! Rules:
//! - stdout carries the result and nothing else, stderr the talk: notes, progress, errors;
//! - `-q` silences notes, `-v` adds details; results and errors are never silenced;
//! - colour is stripped unless `--color`, `NO_COLOR`, `CLICOLOR_FORCE` or a terminal asks for it;
//! - a reader who closes the pipe has what it wanted: printing stops quietly and the run is a
//!   success ([`Printer::exit`]). Any other write error is told and makes the run fail.
//!
//! Every text printed ends with exactly one newline.

use std::cell::Cell;
use std::io::{self, ErrorKind, Write};

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};

use crate::exit::Exit;
use crate::wrap;

/// How much talk there is on stderr.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Talk {
    /// `-q`: errors only.
    Quiet,
    /// Notes and errors.
    Normal,
    /// `-v`: details too.
    Verbose,
}

/// Which characters a terminal can draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// Lanes and frames in Unicode.
    Unicode,
    /// `--ascii`, or a terminal whose locale is not UTF-8.
    Ascii,
}

/// What became of the texts printed so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Printed,
    ReaderGone,
    Lost,
}

/// Prints results and talk; see the module's rules.
pub(crate) struct Printer {
    talk: Talk,
    colour: ColorChoice,
    look: Look,
    fate: Cell<Fate>,
}

impl Printer {
    /// A printer as the flags ask for it.
    pub(crate) fn new(talk: Talk, colour: ColorChoice, look: Look) -> Self {
        Self { talk, colour, look, fate: Cell::new(Fate::Printed) }
    }

    /// The printer of a run whose flags were not read.
    pub(crate) fn plain() -> Self {
        Self::new(Talk::Normal, ColorChoice::Auto, Look::Unicode)
    }

    /// Prints a part of the result on stdout.
    pub(crate) fn result(&self, text: &str) {
        if self.fate.get() != Fate::Printed {
            return;
        }
        let mut out = AutoStream::new(io::stdout().lock(), self.colour);
        if let Err(error) = write_text(&mut out, text) {
            if error.kind() == ErrorKind::BrokenPipe {
                self.fate.set(Fate::ReaderGone);
            } else {
                self.fate.set(Fate::Lost);
                self.error(&format!("cannot write the result: {error}"));
            }
        }
    }

    /// Says something that helps but is not the result.
    pub(crate) fn note(&self, text: &str) {
        if self.talk >= Talk::Normal {
            self.to_stderr(text);
        }
    }

    /// Somebody who can say notes later, when this printer is out of reach.
    pub(crate) fn talker(&self) -> Talker {
        Talker { talk: self.talk, colour: self.colour }
    }

    /// Says something only a curious reader wants.
    pub(crate) fn detail(&self, text: &str) {
        if self.talk >= Talk::Verbose {
            self.to_stderr(text);
        }
    }

    /// Says why a command cannot do what it was asked: `error: ...`.
    pub(crate) fn error(&self, text: &str) {
        let red = Style::new().bold().fg_color(Some(AnsiColor::Red.into()));
        self.to_stderr(&format!("{red}error{red:#}: {text}"));
    }

    /// Says the next thing to type, after a blank line: `hint: ...`.
    pub(crate) fn hint(&self, text: &str) {
        let cyan = Style::new().bold().fg_color(Some(AnsiColor::Cyan.into()));
        self.to_stderr(&format!("\n{cyan}hint{cyan:#}: {text}"));
    }

    /// Prints a whole text of the argument parser or the panic report on stderr, as it is.
    pub(crate) fn talk(&self, text: &str) {
        self.to_stderr(text);
    }

    /// Whether stdout keeps colour, for renderers that choose their own styles.
    pub(crate) fn has_colour(&self) -> bool {
        let choice = match self.colour {
            ColorChoice::Auto => AutoStream::choice(&io::stdout()),
            chosen => chosen,
        };
        choice != ColorChoice::Never
    }

    /// Whether `-q` was given: then nothing but errors is said.
    pub(crate) fn is_quiet(&self) -> bool {
        self.talk == Talk::Quiet
    }

    /// Whether to draw with ASCII characters only.
    pub(crate) fn is_ascii(&self) -> bool {
        self.look == Look::Ascii
    }

    /// Takes the terminal's screen until the value is dropped.
    pub(crate) fn screen(&self) -> Screen<'_> {
        self.raw(ENTER);
        Screen { printer: self }
    }

    /// Whether nobody reads the result any more.
    pub(crate) fn is_reader_gone(&self) -> bool {
        self.fate.get() == Fate::ReaderGone
    }

    /// Writes to the terminal as it is; colours are in the text only where the reader wants them.
    fn raw(&self, text: &str) {
        let mut out = io::stdout().lock();
        drop(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
    }

    /// Columns of the terminal; where there is none, `COLUMNS`, else 80.
    pub(crate) fn width(&self) -> usize {
        self.known_width().unwrap_or(80)
    }

    /// The same; none where there is neither, so that whoever reads a pipe gets whole lines.
    pub(crate) fn known_width(&self) -> Option<usize> {
        let columns = || std::env::var("COLUMNS").ok()?.parse().ok().filter(|width| *width > 0);
        let terminal = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
        terminal.or_else(columns)
    }

    /// A text of whole lines, fitted to the width where there is one.
    pub(crate) fn fitted(&self, text: String) -> String {
        match self.known_width() {
            Some(width) => wrap::hanging(&text, width),
            None => text,
        }
    }

    /// The exit code of a run that ended with `answer`, given what became of its output.
    pub(crate) fn exit(&self, answer: Exit) -> Exit {
        match self.fate.get() {
            Fate::Printed => answer,
            Fate::ReaderGone => Exit::Done,
            Fate::Lost => Exit::No,
        }
    }

    /// Trouble on stderr has nowhere to be told, so write errors are dropped.
    fn to_stderr(&self, text: &str) {
        let mut out = AutoStream::new(io::stderr().lock(), self.colour);
        drop(write_text(&mut out, text));
    }
}

/// A screen of the terminal that is drawn again and again, and left as it was found.
pub(crate) struct Screen<'a> {
    printer: &'a Printer,
}

/// Saves what the terminal shows and hides the cursor.
const ENTER: &str = "\u{1b}[?1049h\u{1b}[?25l";
/// Undoes both.
const LEAVE: &str = "\u{1b}[?25h\u{1b}[?1049l";
/// The first column of the first line.
const HOME: &str = "\u{1b}[H";
/// The rest of a line, and everything below.
const CLEAR_LINE: &str = "\u{1b}[K";
const CLEAR_BELOW: &str = "\u{1b}[J";

impl Screen<'_> {
    /// Shows these lines in place of those before, as far as the terminal has room.
    pub(crate) fn draw(&self, lines: &[String]) {
        let rows = terminal_size::terminal_size().map_or(24, |(_, rows)| usize::from(rows.0));
        let most = rows.saturating_sub(1).max(1);
        let mut shown: Vec<String> = lines
            .iter()
            .flat_map(|it| it.lines().map(str::to_owned).chain(it.is_empty().then(String::new)))
            .collect();
        if shown.len() > most {
            let hidden = shown.len() - most + 1;
            shown.truncate(most - 1);
            shown.push(format!("({hidden} more lines: make the terminal higher)"));
        }
        let mut text = String::from(HOME);
        for line in shown {
            text.push_str(&line);
            text.push_str(CLEAR_LINE);
            text.push_str("\r\n");
        }
        text.push_str(CLEAR_BELOW);
        self.printer.raw(&text);
    }
}

impl Drop for Screen<'_> {
    fn drop(&mut self) {
        self.printer.raw(LEAVE);
    }
}

/// Says notes where no printer can be borrowed: inside of what outlives a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Talker {
    talk: Talk,
    colour: ColorChoice,
}

impl Talker {
    /// Says something that helps but is not the result.
    pub(crate) fn note(self, text: &str) {
        Printer::new(self.talk, self.colour, Look::Unicode).note(text);
    }
}

fn write_text(out: &mut impl Write, text: &str) -> io::Result<()> {
    out.write_all(text.strip_suffix('\n').unwrap_or(text).as_bytes())?;
    out.write_all(b"\n")?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::{Fate, Printer, write_text};
    use crate::exit::Exit;

    #[test]
    fn a_text_ends_with_one_newline_whether_it_brought_one_or_not() {
        for text in ["a", "a\n"] {
            let mut out = Vec::new();
            write_text(&mut out, text).expect("memory takes all");
            assert_eq!(out, b"a\n");
        }
    }

    #[test]
    fn a_reader_who_left_makes_success_and_a_lost_result_failure() {
        let printer = Printer::plain();
        assert_eq!(printer.exit(Exit::Unreadable), Exit::Unreadable);
        printer.fate.set(Fate::ReaderGone);
        assert_eq!(printer.exit(Exit::No), Exit::Done);
        printer.fate.set(Fate::Lost);
        assert_eq!(printer.exit(Exit::Done), Exit::No);
    }
}
