//! The graph: a line per step, and the state of every server below it.
//!
//! ```text
//! #4  call         s1 github_get_issue ✗ backend_unavailable: connection refused
//!        state: github=closed/healthy   files=closed/healthy
//! ```

use super::trace::{CallTrace, McpStep, McpTrace, StepKeepalives};
use crate::{
    paint::{Paint, Tone},
    sequence::glyphs::{Glyphs, clean, state},
};

/// The graph of a trace.
pub(super) fn graph(trace: &McpTrace, glyphs: &Glyphs, paint: Paint) -> String {
    let Glyphs { yes, no, dots, .. } = glyphs;
    let names: Vec<_> = trace.servers.iter().map(|name| clean(name)).collect();
    let mut out = title(trace);
    out.push_str(&format!(
        "servers: {}\nlegend:  {yes}=answered   {no}=error, the server named\n\n",
        names.join("  ")
    ));
    for (number, step) in (1..).zip(&trace.steps) {
        if step.step == "advance" {
            let what = &step.what;
            let text = format!("{dots} advance {what} (breaker + health clocks move) {dots}");
            out.push_str(&format!("        {}\n", paint.apply(Tone::Change, &text)));
        } else {
            let what = clean(&step.what);
            let result = result(step, glyphs, paint);
            let line = format!("#{number:<2} {:<12} {what} {result}", step.step);
            out.push_str(&format!("{}\n", line.trim_end()));
        }
        if !step.told.is_empty() {
            let told = clean(&step.told.join(", ")).into_owned();
            out.push_str(&format!("       list_changed: {told}\n"));
        }
        for (server, keepalives) in &step.keepalives {
            let text = keepalive(keepalives, paint);
            out.push_str(&format!("       keepalive: {} {text}\n", clean(server)));
        }
        out.push_str(&format!("       state: {}\n", states(step, paint)));
    }
    out
}

/// The first line of graph and table.
pub(super) fn title(trace: &McpTrace) -> String {
    let name = clean(&trace.scenario);
    format!("MCP scenario \"{name}\"  visibility={}\n", trace.visibility)
}

/// What came out of a step; empty where nothing can.
pub(super) fn result(step: &McpStep, glyphs: &Glyphs, paint: Paint) -> String {
    if let Some(tools) = &step.tools {
        let tools = clean(&tools.join(", ")).into_owned();
        let poor = if step.good_match == Some(false) { " (no good match)" } else { "" };
        return format!("{} [{tools}]{poor}", paint.apply(Tone::Good, glyphs.yes));
    }
    // Calls that were made at once and ended alike are one entry.
    let mut groups: Vec<(String, usize)> = Vec::new();
    for call in &step.calls {
        let text = ending(call, glyphs, paint);
        match groups.iter_mut().find(|(known, _)| *known == text) {
            Some((_, count)) => *count += 1,
            None => groups.push((text, 1)),
        }
    }
    let groups = groups.into_iter().map(|(text, count)| match count {
        1 => text,
        count => format!("{count} x {text}"),
    });
    groups.collect::<Vec<_>>().join(", ")
}

fn ending(call: &CallTrace, glyphs: &Glyphs, paint: Paint) -> String {
    let took = match call.took_ms {
        0 => String::new(),
        took => format!(" ({took}ms)"),
    };
    let via: Vec<_> = call.attempts.iter().map(|it| clean(&it.server)).collect();
    let via = if via.is_empty() { String::new() } else { format!(" via {}", via.join(", ")) };
    let Some(error) = call.error else {
        return format!("{}{via}{took}", paint.apply(Tone::Good, glyphs.yes));
    };
    let server = call.server.as_ref().map(|it| format!(" {}", clean(it))).unwrap_or_default();
    let cause = call.cause.as_ref().map(|it| format!(": {it}")).unwrap_or_default();
    let failed = paint.apply(Tone::Bad, &format!("{} {}", glyphs.no, error.word()));
    format!("{failed}{server}{via}{cause}{took}")
}

/// `3 sent, 3 failed, disabled`: what happened to keepalives, and whether one is switched off.
fn keepalive(step: &StepKeepalives, paint: Paint) -> String {
    let counts = [
        (step.attempts, "sent", Tone::Plain),
        (step.successes, "answered", Tone::Plain),
        (step.failures, "failed", Tone::Trouble),
    ];
    let shown = counts.into_iter().filter(|(count, ..)| *count > 0);
    let mut words: Vec<String> =
        shown.map(|(count, word, tone)| paint.apply(tone, &format!("{count} {word}"))).collect();
    match step.disabled {
        0 => {}
        1 => words.push(paint.apply(Tone::Trouble, "disabled")),
        count => {
            words.push(paint.apply(Tone::Trouble, &format!("disabled on {count} connections")))
        }
    }
    words.join(", ")
}

fn states(step: &McpStep, paint: Paint) -> String {
    let states = step.breaker_after.iter().zip(step.health_after.values());
    let states = states.map(|((id, breaker), health)| {
        format!("{}={}", clean(id), state(*breaker, *health, paint))
    });
    states.collect::<Vec<_>>().join("   ")
}
