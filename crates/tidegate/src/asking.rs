//! A sign of life while many are asked: a line on a terminal, after a second, gone at the end.

use std::io::{self, IsTerminal};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tidegate_server::connect::Progress;

use crate::printer::Printer;

/// What takes longer than this wants a sign of life.
const PATIENCE_MS: u64 = 1000;

/// The line.
pub(crate) struct Asking {
    bar: ProgressBar,
    may_draw: bool,
}

impl Asking {
    /// Nothing is drawn yet; nothing ever is where stderr is no terminal, or with `-q`.
    pub(crate) fn begin(printer: &Printer) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        Self { bar, may_draw: io::stderr().is_terminal() && !printer.is_quiet() }
    }

    /// Shows how far it is.
    pub(crate) fn show(&self, progress: Progress) {
        if !self.may_draw || progress.since.0 < PATIENCE_MS {
            return;
        }
        let bar = &self.bar;
        if bar.is_hidden() {
            let words = "asking: {pos} of {len} answered, {msg} so far";
            let style = ProgressStyle::with_template(words);
            bar.set_style(style.expect("the template is well formed"));
            bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        bar.set_length(progress.all as u64);
        bar.set_position(progress.ended as u64);
        bar.set_message(format!("{}s", progress.since.0 / 1000));
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
