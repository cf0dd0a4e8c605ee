//! The graph: a line per step, and the state of every server below it.
//!
//! ```text
//! #4  call         s1 github_get_issue ✗ backend_unavailable: connection refused
//!        state: github=closed/healthy   files=closed/healthy
//! ```

use super::trace::{CallTrace, McpStep, McpTrace};
use crate::sequence::glyphs::{Glyphs, clean};

/// The graph of a trace.
pub(super) fn graph(trace: &McpTrace, glyphs: &Glyphs) -> String {
    let Glyphs { yes, no, dots, .. } = glyphs;
    let names: Vec<_> = trace.servers.iter().map(|name| clean(name)).collect();
    let mut out = title(trace);
    out.push_str(&format!(
        "servers: {}\nlegend:  {yes}=answered   {no}=error, the server named\n\n",
        names.join("  ")
    ));
    for (number, step) in (1..).zip(&trace.steps) {
        if step.step == "advance" {
            out.push_str(&format!(
                "        {dots} advance {} (breaker + health clocks move) {dots}\n",
                step.what
            ));
        } else {
            let what = clean(&step.what);
            let result = result(step, glyphs);
            let line = format!("#{number:<2} {:<12} {what} {result}", step.step);
            out.push_str(&format!("{}\n", line.trim_end()));
        }
        if !step.told.is_empty() {
            let told = clean(&step.told.join(", ")).into_owned();
            out.push_str(&format!("       list_changed: {told}\n"));
        }
        out.push_str(&format!("       state: {}\n", states(step)));
    }
    out
}

/// The first line of graph and table.
pub(super) fn title(trace: &McpTrace) -> String {
    let name = clean(&trace.scenario);
    format!("MCP scenario \"{name}\"  visibility={}\n", trace.visibility)
}

/// What came out of a step; empty where nothing can.
pub(super) fn result(step: &McpStep, glyphs: &Glyphs) -> String {
    if let Some(tools) = &step.tools {
        let tools = clean(&tools.join(", ")).into_owned();
        return format!("{} [{tools}]", glyphs.yes);
    }
    // Calls that were made at once and ended alike are one entry.
    let mut groups: Vec<(String, usize)> = Vec::new();
    for call in &step.calls {
        let text = ending(call, glyphs);
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

fn ending(call: &CallTrace, glyphs: &Glyphs) -> String {
    let took = match call.took_ms {
        0 => String::new(),
        took => format!(" ({took}ms)"),
    };
    let via: Vec<_> = call.attempts.iter().map(|it| clean(&it.server)).collect();
    let via = if via.is_empty() { String::new() } else { format!(" via {}", via.join(", ")) };
    let Some(error) = call.error else { return format!("{}{via}{took}", glyphs.yes) };
    let server = call.server.as_ref().map(|it| format!(" {}", clean(it))).unwrap_or_default();
    let cause = call.cause.as_ref().map(|it| format!(": {it}")).unwrap_or_default();
    format!("{} {}{server}{via}{cause}{took}", glyphs.no, error.word())
}

fn states(step: &McpStep) -> String {
    let states = step.breaker_after.iter().zip(step.health_after.values());
    let states = states.map(|((id, breaker), health)| {
        format!("{}={}/{}", clean(id), breaker.word(), health.word())
    });
    states.collect::<Vec<_>>().join("   ")
}
