//! `tidegate tools eval`: how well the search finds what labelled requests ask for.
//!
//! It needs no gateway: it reads two files, makes an index and asks it everything. The formats and
//! the figures are those of [`tidegate_search::eval`].

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fmt::Write as _, fs};

use clap::Args;
use serde_json::json;
use tidegate_search::eval::{self, BadLine, Case, DEPTH, DEPTHS, Figures};
use tidegate_search::{Answer, Index, Query, Reading, Sentences};
use tidegate_sentence::Encoder;

use crate::exit::Exit;
use crate::printer::Printer;

/// Times that each request is asked; the quickest counts, so that what else the machine does
/// counts little.
const RUNS: usize = 5;

/// How well does the search find what labelled requests ask for?
#[derive(Debug, Args)]
pub(super) struct EvalArgs {
    /// Tools, one JSON object per line: server, name, description, schema
    #[arg(long, value_name = "FILE")]
    tools: PathBuf,
    /// Requests, one JSON object per line: query, gold (a list of `server/name`)
    #[arg(long, value_name = "FILE")]
    queries: PathBuf,
    /// Rank by this sentence model too where the ranking is not clear: an ONNX file with
    /// `tokenizer.json` beside it
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// What was found out.
struct EvalReport {
    figures: Figures,
    tools: usize,
    build: Duration,
    /// Per request, sorted.
    times: Vec<Duration>,
}

/// Asks every request and prints the figures.
pub(super) fn run(args: &EvalArgs, printer: &Printer) -> Exit {
    let read = || -> Result<_, String> {
        Ok((load(&args.tools, eval::tools)?, load(&args.queries, eval::cases)?))
    };
    let (tools, cases) = match read() {
        Ok(read) => read,
        Err(problem) => {
            printer.error(&problem);
            printer.hint("both files are JSON lines; `tidegate tools eval --help` says of what");
            return Exit::Unreadable;
        }
    };
    let model = match args.model.as_deref().map(Encoder::load).transpose() {
        Ok(model) => model,
        Err(problem) => {
            printer.error(&problem.to_string());
            return Exit::Unreadable;
        }
    };
    let report = measure(tools, &cases, model.as_ref());
    printer.result(&if args.json { as_json(&report) } else { as_table(&report) });
    Exit::Done
}

fn load<T>(path: &Path, read: impl Fn(&str) -> Result<T, BadLine>) -> Result<T, String> {
    let shown = path.display();
    let text =
        fs::read_to_string(path).map_err(|error| format!("cannot read `{shown}`: {error}"))?;
    read(&text).map_err(|error| format!("`{shown}`, {error}"))
}

fn measure(
    tools: Vec<tidegate_search::Document>,
    cases: &[Case],
    model: Option<&Encoder>,
) -> EvalReport {
    let count = tools.len();
    let start = now();
    let index = Index::build(tools);
    let build = now().duration_since(start);
    let sentences = model.map(|model| (model, sentences(&index, model)));
    let mut figures = Figures::default();
    let mut times = Vec::with_capacity(cases.len());
    for case in cases {
        let query = Query { description: &case.query, ..Query::default() };
        let mut least = Duration::MAX;
        let mut answer = Answer::default();
        for _ in 0..RUNS {
            let start = now();
            answer = index.search(&query, &|_| true, DEPTH);
            if let Some((model, sentences)) = sentences.as_ref().filter(|_| !answer.is_clear())
                && let Some(request) = model.encode(&case.query)
            {
                let reading = Some(Reading { sentences, request: &request });
                answer = index.search(&Query { reading, ..query }, &|_| true, DEPTH);
            }
            least = least.min(now().duration_since(start));
        }
        times.push(least);
        figures.count(&index, case, &answer);
    }
    times.sort_unstable();
    EvalReport { figures, tools: count, build, times }
}

/// The vectors of all tools and servers.
fn sentences(index: &Index, model: &Encoder) -> Sentences {
    let texts = index.sentence_texts();
    let encode = |texts: &[String]| texts.iter().map(|text| model.encode(text)).collect::<Vec<_>>();
    index.sentences(model.dimensions(), &encode(&texts.tools), &encode(&texts.servers))
}

#[expect(clippy::disallowed_methods, reason = "this command measures real time")]
fn now() -> Instant {
    Instant::now()
}

impl EvalReport {
    /// The time that so many of a hundred requests stay within, in microseconds.
    fn percentile_us(&self, percent: usize) -> f64 {
        let at = (self.times.len() * percent / 100).min(self.times.len().saturating_sub(1));
        let time = self.times.get(at).copied().unwrap_or_default();
        (time.as_secs_f64() * 1e7).round() / 10.0
    }
}

fn as_json(report: &EvalReport) -> String {
    let Figures { n, lost, unanswerable, declined, .. } = report.figures;
    let [hit1, hit3, hit5, hit10] = report.figures.shares();
    let mut object = json!({
        "n": n, "hit1": hit1, "hit3": hit3, "hit5": hit5, "hit10": hit10,
        "mrr": report.figures.mrr(),
        "p50_us": report.percentile_us(50), "p99_us": report.percentile_us(99),
        "tools": report.tools, "build_ms": report.build.as_secs_f64() * 1e3, "lost": lost,
    });
    if unanswerable > 0 {
        object["unanswerable"] = unanswerable.into();
        object["declined"] = declined.into();
    }
    object.to_string()
}

fn as_table(report: &EvalReport) -> String {
    let figures = &report.figures;
    let mut out = format!("{} requests over {} tools\n\n", figures.n, report.tools);
    for ((hits, share), depth) in figures.hits.iter().zip(figures.shares()).zip(DEPTHS) {
        let (low, high) = eval::interval(*hits, figures.n);
        let (share, low, high) = (share * 100.0, low * 100.0, high * 100.0);
        _ = writeln!(out, "hit at {depth:<4} {share:5.1} %   95 % between {low:.1} and {high:.1}");
    }
    _ = writeln!(out, "mrr         {:5.3}", figures.mrr());
    if figures.unanswerable > 0 {
        let (declined, all) = (figures.declined, figures.unanswerable);
        _ = writeln!(
            out,
            "declined    {declined} of {all} without an answer, {} with one",
            figures.lost
        );
    }
    let (p50, p99) = (report.percentile_us(50), report.percentile_us(99));
    _ = write!(
        out,
        "time        p50 {p50:.0} µs, p99 {p99:.0} µs, index {:.0} ms",
        report.build.as_secs_f64() * 1e3
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOLS: &str = r#"{"server":"files","name":"read_file","description":"Read a file"}
{"server":"mail","name":"send_message","description":"Send a message to somebody"}"#;

    #[test]
    fn the_figures_are_fractions_and_the_keys_are_fixed() {
        let tools = eval::tools(TOOLS).expect("two tools");
        let cases = r#"{"query":"read my file","gold":["files/read_file"]}"#;
        let report = measure(tools, &eval::cases(cases).expect("one request"), None);
        let value: serde_json::Value = serde_json::from_str(&as_json(&report)).expect("an object");
        assert_eq!((value["n"].as_u64(), value["hit1"].as_f64()), (Some(1), Some(1.0)));
        for key in ["hit3", "hit5", "hit10", "mrr", "p50_us", "p99_us"] {
            assert!(value[key].is_number(), "{key}");
        }
        assert!(as_table(&report).contains("hit at 1    100.0 %"), "{}", as_table(&report));
    }

    #[test]
    fn no_requests_at_all_give_figures_and_no_panic() {
        let report = measure(Vec::new(), &[], None);
        assert!(as_json(&report).contains("\"n\":0") && as_table(&report).contains("0 requests"));
    }
}
