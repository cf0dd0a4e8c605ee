//! A recording from its file: every text becomes a type, or a problem with its place.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tidegate_core::{
    commit::CommitCause,
    outcome::{Outcome, OutcomeKind},
    route::Needs,
    time::{Millis, Now},
};

use super::{
    Moment, RecordedAction, RecordedAttempt, RecordedProbe, RecordedRequest, Recording, StartState,
};
use crate::timeline::{
    decisions::{ChoiceLine, choice_line},
    file::recording::{ArrivalFile, AttemptFile, NeedsFile, RecordingFile},
};

/// The form that this version reads.
const VERSION: u32 = 1;

/// A recording whose requests have no route yet, or what is wrong: the path of a key below
/// `recording`, and a sentence.
pub(in crate::timeline) fn read(file: &RecordingFile) -> Result<Recording, (String, String)> {
    if file.version != VERSION {
        let words = format!(
            "this program reads recordings of version {VERSION}, and this one has version {}",
            file.version
        );
        return Err(("version".to_owned(), words));
    }
    let seed = file.jitter_seed.as_deref().map(hexadecimal).transpose();
    let seed = seed.map_err(|words| ("jitter_seed".to_owned(), words))?;
    let mut sessions: BTreeMap<[String; 3], u32> = BTreeMap::new();
    let mut arrivals = Vec::with_capacity(file.arrivals.len());
    for (index, it) in file.arrivals.iter().enumerate() {
        let place = |words| (format!("arrivals[{index}]"), words);
        let session = it.session.as_ref().map(|session| {
            // A session is one of its route: pins of two routes have nothing to do with each other.
            let key = [it.route.clone(), it.caller.clone(), session.clone()];
            let next = sessions.len() as u32;
            *sessions.entry(key).or_insert(next)
        });
        arrivals.push(request(it, session).map_err(place)?);
    }
    if let Some(index) = arrivals.windows(2).position(|pair| pair[1].at < pair[0].at) {
        let words = "this request came before the one above it".to_owned();
        return Err((format!("arrivals[{}]", index + 1), words));
    }
    // They are listed as they ended. Of two in one millisecond the one that was chosen for first
    // may have pinned the session of the other.
    arrivals.sort_by_key(|it| (it.at, it.attempts.first().map_or(0, |first| first.chosen.n)));
    let mut names = vec![(String::new(), String::new()); sessions.len()];
    for ([_, caller, session], index) in sessions {
        names[index as usize] = (caller, session);
    }
    let probes = file.probes.as_ref().map(|list| {
        let probe = |it: &crate::timeline::file::recording::ProbedFile| RecordedProbe {
            at: moment(it.at, it.n),
            provider: it.provider.clone(),
            status: it.status,
        };
        list.iter().map(probe).collect()
    });
    let actions = file.actions.iter().map(|it| RecordedAction {
        at: Now(it.at),
        deed: it.deed.clone(),
        backend: it.backend.clone(),
        until: it.until.map(Now),
    });
    let start = file.start.iter().map(|it| StartState {
        backend: it.backend.clone(),
        state: it.state.clone(),
        until: it.until.map(Now),
    });
    Ok(Recording {
        jitter_seed: seed,
        start: start.collect(),
        arrivals,
        probes,
        actions: actions.collect(),
        sessions: names,
        notes: Vec::new(),
    })
}

const fn moment(at: u64, n: u64) -> Moment {
    Moment { at: Now(at), n }
}

fn request(it: &ArrivalFile, session: Option<u32>) -> Result<RecordedRequest, String> {
    let attempts: Result<Vec<RecordedAttempt>, String> = it.attempts.iter().map(attempt).collect();
    Ok(RecordedRequest {
        id: it.id.clone(),
        at: Now(it.at),
        route_name: it.route.clone(),
        route: 0,
        session: session.unwrap_or(u32::MAX),
        is_stream: it.stream,
        patience: it.patience.map(Millis),
        deadline: it.deadline.map(Millis),
        needs: needs(&it.needs)?,
        attempts: attempts?,
        end: it.end.clone(),
        status: it.status,
        tokens: it.tokens,
    })
}

fn needs(it: &NeedsFile) -> Result<Needs, String> {
    let value = json!({
        "tools": it.tools,
        "vision": it.vision,
        "documents": it.documents,
        "json_schema": it.json_schema,
        "reasoning": it.reasoning,
        "context": it.context,
        "protocol": it.protocol,
        "kind": it.kind,
        "converts_to": it.converts_to,
    });
    serde_json::from_value(value).map_err(|problem| format!("`needs`: {problem}"))
}

fn attempt(it: &AttemptFile) -> Result<RecordedAttempt, String> {
    let kind: OutcomeKind = word(&it.outcome, "outcome")?;
    let committed = it.committed.as_deref().map(commit_cause).transpose()?;
    let outcome = Outcome {
        kind,
        status: it.status,
        error_status: it.error_status,
        retry_after: it.retry_after.map(Millis),
    };
    let line = choice_line(&ChoiceLine {
        at: Now(it.at),
        backend: &it.backend,
        key: it.key,
        rank: it.rank,
        by: &it.by,
        pin: it.pin.as_deref().unwrap_or("none"),
        is_trial: it.trial,
        is_last_resort: it.last_resort,
        outcome: &it.outcome,
        status: it.status,
    });
    Ok(RecordedAttempt {
        backend: it.backend.clone(),
        chosen: moment(it.at, it.n),
        draw: hexadecimal(&it.draw)?,
        head: it.head.map(|at| moment(at, it.head_n)),
        released: it.released.map(|at| moment(at, it.released_n)),
        committed,
        first_content: it.first_content.map(Millis),
        ended: moment(it.ended, it.ended_n),
        outcome,
        is_left: it.left,
        line,
    })
}

fn word<T: DeserializeOwned>(text: &str, key: &str) -> Result<T, String> {
    serde_json::from_value(Value::from(text)).map_err(|problem| format!("`{key}`: {problem}"))
}

fn commit_cause(text: &str) -> Result<CommitCause, String> {
    let found = CommitCause::ALL.into_iter().find(|it| it.word() == text);
    found.ok_or_else(|| format!("`committed`: there is no cause `{text}`"))
}

fn hexadecimal(text: &str) -> Result<u64, String> {
    u64::from_str_radix(text, 16)
        .map_err(|_| format!("`{text}` is no number in hexadecimal digits"))
}
