//! The report as text: graph, trace and table.

use tidegate_config::duration::written;
use tidegate_core::time::Millis;

use super::TimelineReport;
use crate::{
    form::RenderOptions,
    lanes::{Lane, LaneGlyphs, Mark, Picture},
    paint::Tone,
    timeline::{
        judge::{percent, seconds, short},
        painter::Painter,
        tally::Tally,
        trace::TraceEntry,
    },
};

/// Lanes, counters, expectations.
pub(super) fn graph(report: &TimelineReport, options: &RenderOptions) -> String {
    let glyphs = LaneGlyphs::of(options.ascii);
    let mut lines = header(report, options.width, glyphs);
    let picture = picture(report, options);
    lines.extend(picture.draw(options.width, glyphs, options.paint()));
    lines.push(picture.legend(glyphs));
    lines.push(String::new());
    lines.extend(counters(&report.tally, options.width));
    lines.extend(expectations(report, options, glyphs));
    lines.push(String::new());
    lines.join("\n")
}

/// The trace in place of the lanes.
pub(super) fn traced(
    report: &TimelineReport,
    entries: &[TraceEntry],
    options: &RenderOptions,
) -> String {
    let glyphs = LaneGlyphs::of(options.ascii);
    let mut lines = header(report, options.width, glyphs);
    lines.extend(entries.iter().map(|it| it.line(options.ascii)));
    if entries.is_empty() {
        lines.push("nothing changed, and no request hopped, in this time".to_owned());
    }
    lines.push(String::new());
    lines.extend(counters(&report.tally, options.width));
    lines.extend(expectations(report, options, glyphs));
    lines.push(String::new());
    lines.join("\n")
}

/// A row per backend.
pub(super) fn table(report: &TimelineReport) -> String {
    let head = ["backend", "tier", "state", "attempts", "answered", "share", "failed", "opens"];
    let mut rows = vec![head.map(str::to_owned)];
    let whole: u64 = report.tally.backends.iter().map(|it| it.answered).sum();
    for (backend, tier) in report.plot.world.cast() {
        let tally = &report.tally.backends[backend];
        rows.push([
            report.plot.world.settings.backends[backend].id.clone(),
            tier.to_string(),
            report.states[backend].word().to_owned(),
            tally.attempts.to_string(),
            tally.answered.to_string(),
            percent(tally.answered as f64 / whole.max(1) as f64),
            tally.failed.to_string(),
            tally.opens.to_string(),
        ]);
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..head.len()).map(|it| width(it).unwrap_or(0)).collect();
    let line = |row: &[String; 8]| {
        let cells = row.iter().zip(&widths);
        let cells: Vec<String> = cells.map(|(cell, width)| format!("{cell:<width$}")).collect();
        format!("{}\n", cells.join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

/// Every character outside of ASCII replaced: known ones by a spelling, others by a mark.
pub(super) fn to_ascii(text: &str) -> String {
    let spelled = text.replace('≤', "<=").replace('≥', ">=").replace('…', "...");
    spelled.chars().map(|c| if c.is_ascii() { c } else { '?' }).collect()
}

/// Name and story on the left, seed and length on the right.
fn header(report: &TimelineReport, width: usize, glyphs: &LaneGlyphs) -> Vec<String> {
    let plot = &report.plot;
    let story = match plot.about.as_str() {
        "" => plot.name.clone(),
        about => format!("{}: {about}", plot.name),
    };
    let facts = format!("seed {} {} {} simulated", report.seed, glyphs.dot, written(plot.lasts));
    let (left, right) = (story.chars().count(), facts.chars().count());
    let mut lines = if left + 2 + right <= width {
        vec![format!("{story}{}{facts}", " ".repeat(width - left - right))]
    } else {
        let mut lines =
            wrapped(&story.split(' ').map(str::to_owned).collect::<Vec<_>>(), " ", width);
        lines.push(facts);
        lines
    };
    lines.extend(plot.casting.iter().cloned());
    lines
}

pub(super) fn picture(report: &TimelineReport, options: &RenderOptions) -> Picture {
    let view = report.view(options);
    let mut painter = if report.is_whole(view) {
        report.tally.painter.clone()
    } else {
        report.again(view, false).tally.painter
    };
    let plot = &report.plot;
    let cast = plot.world.cast();
    let mut lanes: Vec<Lane> = cast
        .iter()
        .map(|&(backend, tier)| Lane {
            name: plot.world.settings.backends[backend].id.clone(),
            state: report.states[backend],
            shows_share: tier > 0,
            cells: painter.finish(backend),
        })
        .collect();
    if options.per_replica && plot.fleet.is_some() {
        lanes = replica_lanes(report, &mut painter);
    }
    let mut marks = marks(report);
    marks.retain(|mark| (view.from..=view.to).contains(&mark.at));
    Picture { from: view.from, to: view.to, lanes, marks }
}

/// A lane per replica and backend, the replicas of one backend together.
fn replica_lanes(report: &TimelineReport, painter: &mut Painter) -> Vec<Lane> {
    let plot = &report.plot;
    let mut lanes = Vec::new();
    for (backend, tier) in plot.world.cast() {
        for (replica, states) in report.replica_states.iter().enumerate() {
            let Some(lane) = report.tally.lane(replica, backend) else { continue };
            lanes.push(Lane {
                name: format!("{} r{}", plot.world.settings.backends[backend].id, replica + 1),
                state: states[backend],
                shows_share: tier > 0,
                cells: painter.finish(lane),
            });
        }
    }
    lanes
}

/// Phases and turns in the order of time.
fn marks(report: &TimelineReport) -> Vec<Mark> {
    let world = &report.plot.world;
    let has_many = world.scripts.iter().filter(|it| it.phases.len() > 1).count() > 1;
    let name = |backend: usize| {
        let id = &world.settings.backends[backend].id;
        let short = id.split_once('/').map_or(id.as_str(), |(provider, _)| provider);
        if has_many { format!(" {short}") } else { String::new() }
    };
    let mut marks = Vec::new();
    for (backend, script) in world.scripts.iter().enumerate() {
        for phase in script.phases.iter().skip(1) {
            let whom = phase.replica.map(|it| format!(" for replica {}", it + 1));
            let (at, whom) = (seconds(phase.at), whom.unwrap_or_default());
            let text = format!("{at}{} {}{whom}", name(backend), phase.word);
            marks.push(Mark { at: phase.at, text });
        }
    }
    for turn in &report.tally.turns {
        let text = format!("{}{} {}", seconds(turn.at), name(turn.backend), turn.text);
        marks.push(Mark { at: turn.at, text });
    }
    for cut in report.plot.fleet.iter().flat_map(|it| &it.cuts) {
        let number = cut.replica + 1;
        for (at, what) in [(cut.from, "is cut off"), (cut.to, "is back")] {
            marks.push(Mark { at, text: format!("{} replica {number} {what}", seconds(at)) });
        }
    }
    marks.sort_by_key(|mark| mark.at);
    marks
}

fn counters(tally: &Tally, width: usize) -> Vec<String> {
    let ok = tally.answered as f64 / tally.requests.max(1) as f64;
    let mut facts = vec![
        format!("requests {}", grouped(tally.requests)),
        format!("ok {}", percent(ok)),
        format!("hops {}", grouped(tally.hops)),
        format!("client-visible failures {}", grouped(tally.failures.count)),
        format!("p95 wait {}", short(tally.waits.quantile(0.95))),
        format!("worst wait {}", short(tally.waits.max)),
    ];
    let mut rare = |count: u64, what: &str| {
        if count > 0 {
            facts.push(format!("{what} {}", grouped(count)));
        }
    };
    rare(tally.sent - tally.requests, "client retries");
    rare(tally.last_resorts, "last resorts");
    rare(tally.budget_spent, "hops refused");
    rare(tally.sessions_moved, "sessions moved");
    rare(tally.bus.told, "hints told");
    rare(tally.bus.lost, "hints not delivered");
    wrapped(&facts, "   ", width)
}

fn expectations(
    report: &TimelineReport,
    options: &RenderOptions,
    glyphs: &LaneGlyphs,
) -> Vec<String> {
    let paint = options.paint();
    let pass = paint.apply(Tone::Good, &glyphs.pass.to_string());
    let fail = paint.apply(Tone::Bad, &glyphs.fail.to_string());
    let mut lines = Vec::new();
    for verdict in &report.verdicts {
        let sign = if verdict.holds { &pass } else { &fail };
        let words = [verdict.wanted.clone(), format!("({})", verdict.got)];
        let wanted = wrapped(&words, "   ", options.width.saturating_sub(4));
        for (number, line) in wanted.iter().enumerate() {
            let lead = if number == 0 { format!("  {sign} ") } else { "      ".to_owned() };
            lines.push(format!("{lead}{line}"));
        }
    }
    for violation in &report.violations {
        let at = written(Millis(violation.at.0));
        let (number, sentence) = (violation.invariant, &violation.sentence);
        lines.push(format!("  {fail} invariant {number} at {at}: {sentence}"));
    }
    if report.violations.is_empty() {
        lines.push(format!("  {pass} no invariant was broken"));
    }
    let missed = report.failures.len();
    if missed == 0 {
        lines.push(paint.apply(Tone::Good, "every expectation held"));
    } else {
        let noun = if missed == 1 { "expectation" } else { "expectations" };
        lines.push(paint.apply(Tone::Bad, &format!("{missed} {noun} failed")));
        lines.push(format!("replay: {}", report.replay()));
    }
    lines
}

/// Facts in as few lines as fit.
fn wrapped(facts: &[String], between: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for fact in facts {
        match lines.last_mut() {
            Some(line) if line.chars().count() + between.len() + fact.chars().count() <= width => {
                line.push_str(between);
                line.push_str(fact);
            }
            _ => lines.push(fact.clone()),
        }
    }
    lines
}

/// A number in groups of three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_by_three() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(12_000), "12 000");
        assert_eq!(grouped(1_234_567), "1 234 567");
    }
}
