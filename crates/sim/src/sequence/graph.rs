//! The graph: two lines per request, one per advance. The default picture of a sequence.
//!
//! ```text
//! #1  session1 openai/gpt-5.4 ✗500  →  openai/gpt-5.5 ✓200   →  client=200
//!        state: openai/gpt-5.4=closed/healthy   openai/gpt-5.5=closed/healthy   pin=openai/gpt-5.4
//! ```
//! The spacing is part of the format: people compare and search such texts.

use tidegate_core::outcome::OutcomeKind;

use super::{
    glyphs::{Glyphs, clean, state},
    trace::{RequestTrace, StepTrace, Trace},
};
use crate::paint::{Paint, Tone};

/// The graph of a trace.
pub(super) fn graph(trace: &Trace, glyphs: &Glyphs, paint: Paint) -> String {
    let Glyphs { yes, no, arrow, dots } = glyphs;
    let mut out = title(trace);
    out.push_str(&format!(
        "services: {}\n\
         legend:   {yes}=2xx committed   {no}=non-2xx (buffered/terminal)   \
         {arrow}=in-request failover hop\n\n",
        clean(&trace.services.join("  ")),
    ));
    let mut number = 0;
    for step in &trace.steps {
        match step {
            StepTrace::Advance(span) => {
                let text = format!("{dots} advance {span} (breaker + health clocks move) {dots}");
                out.push_str(&format!("        {}\n", paint.apply(Tone::Change, &text)));
            }
            StepTrace::Trace(request) => {
                number += 1;
                out.push_str(&request_line(number, request, glyphs, paint));
                out.push_str(&state_line(request, paint));
            }
        }
    }
    out
}

/// The first line of graph and table.
pub(super) fn title(trace: &Trace) -> String {
    format!(
        "LB scenario \"{}\"  tactic={}  affinity={}s\n",
        clean(&trace.rule),
        trace.tactic,
        trace.affinity_secs,
    )
}

fn request_line(number: usize, request: &RequestTrace, glyphs: &Glyphs, paint: Paint) -> String {
    let Glyphs { yes, no, arrow, .. } = glyphs;
    let endings = request.statuses.iter().zip(&request.outcomes);
    let attempts: Vec<String> = request
        .attempts
        .iter()
        .zip(endings)
        .map(|(id, (status, outcome))| {
            let is_success = outcome.0 == OutcomeKind::Success;
            let (tone, mark) = if is_success { (Tone::Good, yes) } else { (Tone::Trouble, no) };
            format!("{} {}", clean(id), paint.apply(tone, &format!("{mark}{status}")))
        })
        .collect();
    let is_answered = (200..300).contains(&request.final_status);
    let tone = if is_answered { Tone::Good } else { Tone::Bad };
    format!(
        "#{number:<2} {:<8} {}   {arrow}  {}\n",
        session(request),
        attempts.join(&format!("  {arrow}  ")),
        paint.apply(tone, &format!("client={}", request.final_status)),
    )
}

fn state_line(request: &RequestTrace, paint: Paint) -> String {
    let states = request.breaker_after.iter().zip(request.health_after.values());
    let mut states: Vec<String> = states
        .map(|((id, breaker), health)| format!("{}={}", clean(id), state(*breaker, *health, paint)))
        .collect();
    if !request.pin_after.is_empty() {
        states.push(format!("pin={}", clean(&request.pin_after)));
    }
    format!("       state: {}\n", states.join("   "))
}

/// The session's name, or `-`.
pub(super) fn session(request: &RequestTrace) -> String {
    if request.session.is_empty() { "-".to_owned() } else { clean(&request.session).into_owned() }
}
