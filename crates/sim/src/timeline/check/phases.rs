//! Phases into scripts.

use indexmap::IndexMap;
use tidegate_config::{
    codes::{BAD_VALUE, MISSING_KEY},
    diagnostic::{Diagnostic, quoted},
    duration::written,
    path::KeyPath,
};
use tidegate_core::time::{Millis, Now};

use super::ProblemCollector;
use crate::{
    codes::timeline as codes,
    timeline::{
        file::{BackendAction, PhaseFile},
        script::{Act, Pace, Phase, Script},
    },
};

/// An error is quicker than an answer.
const ERROR_AFTER: Millis = Millis(50);
/// A refused connection is quicker still.
const REFUSED_AFTER: Millis = Millis(5);
/// A process that is supervised is back after about this long.
const DOWN_FOR: Millis = Millis::seconds(5);
/// A broken answer has got this far.
const BROKEN_AFTER: u32 = 10;

/// The scripts of all backends, by name.
pub(super) fn scripts(
    backends: &IndexMap<String, Vec<PhaseFile>>,
    lasts: Millis,
    collector: &mut ProblemCollector<'_>,
) -> IndexMap<String, Script> {
    let here = KeyPath::from("backends");
    if collector.document.keys_at(&here).next().is_none() {
        let message = "`backends`: a timeline needs at least one backend";
        collector.refuse_key(&here, Diagnostic::error(&BAD_VALUE, message));
    }
    let mut scripts = IndexMap::new();
    for (id, phases) in backends {
        let path = here.key(id.clone());
        let has_both = id.split_once('/').is_some_and(|(p, m)| !p.is_empty() && !m.is_empty());
        if !has_both {
            let message = format!("{} is not `provider/model`", quoted(id));
            let diagnostic = Diagnostic::error(&BAD_VALUE, message)
                .label("a backend is named after its provider and model")
                .help(format!("write {}", quoted(&format!("{id}/model"))));
            collector.refuse_key(&path, diagnostic);
        }
        scripts.insert(id.clone(), script(phases, lasts, &path, collector));
    }
    scripts
}

/// A phase whose moment and action are known.
struct Readable<'a> {
    here: KeyPath,
    at: Now,
    action: BackendAction,
    /// Counted from 0.
    replica: Option<u32>,
    file: &'a PhaseFile,
}

/// The phases that can be read; the others have problems of their own.
fn readable<'a>(
    phases: &'a [PhaseFile],
    path: &KeyPath,
    collector: &mut ProblemCollector<'_>,
) -> Vec<Readable<'a>> {
    let mut all = Vec::new();
    for (index, file) in phases.iter().enumerate() {
        let here = path.index(index);
        for (key, is_read) in [("at", file.at.is_some()), ("do", file.action.is_some())] {
            let is_written = collector.document.node(&here.key(key)).is_some();
            if !is_read && !is_written {
                let message = format!("`{here}` has no key `{key}`");
                let diagnostic = Diagnostic::error(&MISSING_KEY, message)
                    .help("a phase is written `{ at: 2m, do: slow, factor: 12 }`");
                collector.refuse(&here, diagnostic);
            }
        }
        let (Some(at), Some(action)) = (&file.at, file.action) else { continue };
        let replica = file.replica.and_then(|it| collector.replica(&here.key("replica"), it));
        all.push(Readable { here, at: Now(at.millis().0), action, replica, file });
    }
    all
}

fn script(
    phases: &[PhaseFile],
    lasts: Millis,
    path: &KeyPath,
    collector: &mut ProblemCollector<'_>,
) -> Script {
    let mut script = Script { phases: Vec::new() };
    let mut pace = Pace::default();
    let phases = readable(phases, path, collector);
    if phases.first().is_none_or(|first| first.at > Now::ZERO || first.replica.is_some()) {
        script.phases.push(Phase::fine(Now::ZERO, pace));
    }
    for (index, it) in phases.iter().enumerate() {
        let Readable { here, at, action, file, .. } = it;
        let before = index.checked_sub(1).map(|before| phases[before].at);
        let written = written(Millis(at.0));
        if before.is_some_and(|before| *at <= before) {
            let message = format!("`{here}.at`: `{written}` is not after the phase before it");
            let diagnostic = Diagnostic::error(&codes::BAD_PHASE, message)
                .help("write phases in the order of time");
            collector.refuse(&here.key("at"), diagnostic);
        }
        if at.0 > lasts.0 {
            let message = format!("`{here}.at`: `{written}` is after the end of the timeline");
            collector.refuse(&here.key("at"), Diagnostic::warning(&codes::BAD_PHASE, message));
        }
        refuse_strays(it, collector);
        if *action == BackendAction::Ok {
            pace = paced(file);
        }
        script.phases.push(phase(it, pace, collector));
        let returns_at = at.after(file.down.as_ref().map_or(DOWN_FOR, |down| down.millis()));
        let next = phases.get(index + 1).map(|next| next.at);
        if *action == BackendAction::Restart && next.is_none_or(|next| returns_at < next) {
            let replica = it.replica;
            script.phases.push(Phase { replica, ..Phase::fine(returns_at, pace) });
        }
    }
    script
}

fn paced(file: &PhaseFile) -> Pace {
    let pace = Pace::default();
    Pace {
        latency: file.latency.as_ref().map_or(pace.latency, |it| it.millis()),
        jitter: file.jitter.map_or(pace.jitter, |it| it.fraction()),
        tokens: file.tokens.unwrap_or(pace.tokens).max(1),
        token_gap: file.token_gap.as_ref().map_or(pace.token_gap, |it| it.millis()),
        capacity: file.capacity,
    }
}

fn phase(it: &Readable<'_>, pace: Pace, collector: &mut ProblemCollector<'_>) -> Phase {
    let Readable { here, at, action, file, .. } = it;
    let tokens = file.tokens.unwrap_or(BROKEN_AFTER);
    let act = match action {
        BackendAction::Ok => Act::Answer { factor: 1.0 },
        BackendAction::Slow => Act::Answer { factor: factor(file, here, collector) },
        BackendAction::Status => status(file, here, collector),
        BackendAction::Refuse | BackendAction::Restart => Act::Refuse,
        BackendAction::Hang => Act::Hang,
        BackendAction::Stall => Act::Stall { tokens },
        BackendAction::Truncate => Act::Truncate { tokens },
        BackendAction::ErrorEvent => Act::ErrorEvent,
        BackendAction::CommentsOnly => Act::CommentsOnly,
        BackendAction::Auth => Act::Status { status: 401, retry_after: None },
        BackendAction::Exhausted => Act::Status { status: 402, retry_after: None },
    };
    let usual = if act == Act::Refuse { REFUSED_AFTER } else { ERROR_AFTER };
    Phase {
        at: *at,
        replica: it.replica,
        word: action.word(),
        act,
        share: file.share.map_or(1.0, |share| share.fraction()),
        pace,
        error_after: file.latency.as_ref().map_or(usual, |it| it.millis()),
        cuts: *action == BackendAction::Restart,
    }
}

fn factor(file: &PhaseFile, here: &KeyPath, collector: &mut ProblemCollector<'_>) -> f64 {
    match file.factor {
        Some(factor) if factor > 0.0 && factor.is_finite() => factor,
        Some(factor) => {
            let message = format!("`{here}.factor`: `{factor}` is not above 0");
            collector.refuse(&here.key("factor"), Diagnostic::error(&codes::BAD_PHASE, message));
            1.0
        }
        None => {
            let message = format!("`{here}`: `do: slow` needs a `factor`");
            let diagnostic = Diagnostic::error(&codes::BAD_PHASE, message)
                .help("`factor: 12` makes everything twelve times slower");
            collector.refuse(&here.key("do"), diagnostic);
            1.0
        }
    }
}

fn status(file: &PhaseFile, here: &KeyPath, collector: &mut ProblemCollector<'_>) -> Act {
    let retry_after = file.retry_after.as_ref().map(|it| it.millis());
    match file.status {
        Some(status @ 300..=599) => Act::Status { status, retry_after },
        Some(status) => {
            let message = format!("`{here}.status`: `{status}` is not between 300 and 599");
            let diagnostic = Diagnostic::error(&codes::BAD_PHASE, message)
                .help("a backend that answers has `do: ok`");
            collector.refuse(&here.key("status"), diagnostic);
            Act::Status { status: 500, retry_after }
        }
        None => {
            let message = format!("`{here}`: `do: status` needs a `status`");
            collector.refuse(&here.key("do"), Diagnostic::error(&codes::BAD_PHASE, message));
            Act::Status { status: 500, retry_after }
        }
    }
}

/// A key that means nothing with its `do` would mislead whoever reads the file.
fn refuse_strays(it: &Readable<'_>, collector: &mut ProblemCollector<'_>) {
    let Readable { here, action, file, .. } = it;
    use BackendAction::{
        Auth, CommentsOnly, ErrorEvent, Exhausted, Hang, Ok, Refuse, Restart, Slow, Stall, Status,
        Truncate,
    };
    let errors = &[Ok, Status, Refuse, ErrorEvent, Auth, Exhausted][..];
    let faults = &[
        Slow,
        Status,
        Refuse,
        Hang,
        Stall,
        Truncate,
        ErrorEvent,
        CommentsOnly,
        Auth,
        Exhausted,
    ][..];
    let takes: &[(&str, bool, &[BackendAction])] = &[
        ("latency", file.latency.is_some(), errors),
        ("jitter", file.jitter.is_some(), &[Ok]),
        ("tokens", file.tokens.is_some(), &[Ok, Stall, Truncate]),
        ("token_gap", file.token_gap.is_some(), &[Ok]),
        ("capacity", file.capacity.is_some(), &[Ok]),
        ("factor", file.factor.is_some(), &[Slow]),
        ("status", file.status.is_some(), &[Status]),
        ("retry_after", file.retry_after.is_some(), &[Status]),
        ("down", file.down.is_some(), &[Restart]),
        ("share", file.share.is_some(), faults),
    ];
    for (key, is_written, actions) in takes {
        if *is_written && !actions.contains(action) {
            let word = action.word();
            let words: Vec<&str> = actions.iter().map(|it| it.word()).collect();
            let message = format!("`{here}`: `{key}` means nothing with `do: {word}`");
            let diagnostic = Diagnostic::error(&codes::BAD_PHASE, message)
                .label("remove it, or change what the phase does")
                .help(format!("it belongs to: {}", words.join(", ")));
            collector.refuse_key(&here.key(*key), diagnostic);
        }
    }
}
