//! `GET /api/decisions` and `GET /api/decisions/{id}`.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use tidegate_core::{outcome::OutcomeKind, time::Now};
use tidegate_gateway::{gateway::Gateway, stores::Stores};
use tidegate_journal::{
    api::decision::DecisionList,
    question::{OlderQuestion, Question},
    request_id::{RequestId, SessionFingerprint},
    result::RequestResult,
};

use super::{Answer, error, json_of, query::Query};

/// What a list can be asked for by.
const KNOWN: &[&str] = &[
    "route", "backend", "outcome", "result", "caller", "kind", "session", "notable", "since",
    "until", "limit", "cursor",
];

/// What a cursor begins with that names a row of the history file.
const ROW: &str = "h";
/// How long a question waits for the disk.
const READ_WITHIN: Duration = Duration::from_secs(10);

const LIMIT: u64 = 100;
const LIMIT_MAX: u64 = 1000;

/// `GET /api/decisions`: from memory, and older ones from the history file.
pub(super) async fn list(gateway: &Arc<Gateway>, query: Option<&str>) -> Answer {
    let (question, row) = match question(gateway, query) {
        Ok(question) => question,
        Err(problem) => return error(StatusCode::BAD_REQUEST, &problem),
    };
    let has_history = gateway.stores.history_file().is_some();
    // Where a file has the rest, memory answers for as long as it has everything.
    let evicted = gateway.journal.evicted();
    let above = has_history.then_some(evicted);
    let (found, has_more) = match row {
        Some(_) => (Vec::new(), false),
        None => gateway.journal.decisions(&Question { above, ..question.clone() }),
    };
    let renderer = gateway.journal.renderer();
    let next = found.last().filter(|_| has_more).map(|(n, _)| n.to_string());
    let complete_since = gateway.clock.unix_ms_of(gateway.journal.size().complete_since);
    let mut list = DecisionList {
        decisions: found.iter().map(|(n, it)| renderer.short(*n, it)).collect(),
        next_cursor: next,
        from: "ring".to_owned(),
        complete_since_unix_ms: complete_since,
    };
    let room = question.limit - list.decisions.len();
    if !has_history || has_more || room == 0 {
        // The next page begins in the file.
        if has_history && !has_more {
            list.next_cursor = Some(format!("{ROW}{}", i64::MAX));
        }
        return json_of(&list);
    }
    let unix = |moment: Option<Now>| moment.map(|it| gateway.clock.unix_ms_of(it));
    let asked = OlderQuestion {
        since_unix_ms: question.since_unix_ms.or(unix(question.since)),
        until_unix_ms: question.until_unix_ms.or(unix(question.until)),
        in_memory: Some((gateway.journal.instance().to_owned(), evicted)),
        below_row: row,
        question: Question { limit: room, ..question },
    };
    match in_the_file(gateway, move |stores| stores.older(&asked)).await {
        Ok(page) => {
            list.from = if list.decisions.is_empty() { "history" } else { "both" }.to_owned();
            list.decisions.extend(page.decisions);
            list.next_cursor = page.next_row.map(|row| format!("{ROW}{row}"));
            json_of(&list)
        }
        Err(problem) => error(StatusCode::SERVICE_UNAVAILABLE, &problem),
    }
}

/// Reads the history file on a thread that may wait for the disk.
async fn in_the_file<T: Send + 'static>(
    gateway: &Arc<Gateway>,
    read: impl FnOnce(&Stores) -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    let of = Arc::clone(gateway);
    let reading = tokio::task::spawn_blocking(move || {
        of.stores.settle(&of.journal);
        read(&of.stores)
    });
    let told = |why: String| format!("the history file cannot be read: {why}");
    match tokio::time::timeout(READ_WITHIN, reading).await {
        Ok(Ok(read)) => read.map_err(told),
        Ok(Err(_)) => Err(told("reading it failed".to_owned())),
        Err(_) => Err(told("the disk is too slow".to_owned())),
    }
}

/// What is asked for, and the row of the history file to go on below.
fn question(gateway: &Gateway, query: Option<&str>) -> Result<(Question, Option<i64>), String> {
    let query = Query::read(query, KNOWN)?;
    let now: Now = gateway.now();
    let text = |name: &str| query.get(name).map(str::to_owned);
    let is_notable = match query.get("notable") {
        None | Some("false") => false,
        Some("true") => true,
        Some(_) => return Err("`notable` is `true` or `false`".to_owned()),
    };
    let outcomes = OutcomeKind::ALL.map(OutcomeKind::word);
    let results = RequestResult::ALL.map(RequestResult::word);
    let sets = [("outcome", &outcomes[..]), ("result", &results), ("kind", &["llm", "mcp"])];
    for (name, words) in sets {
        one_of(&query, name, words)?;
    }
    let session = query.get("session").and_then(SessionFingerprint::of);
    let row = query.get("cursor").and_then(|it| it.strip_prefix(ROW));
    let row = row.map(str::parse).transpose().map_err(|_| "`cursor` is not one of ours")?;
    let below = if row.is_some() { None } else { query.number("cursor", (0, u64::MAX))? };
    let question = Question {
        route: text("route"),
        backend: text("backend"),
        outcome: text("outcome"),
        result: text("result"),
        caller: text("caller"),
        kind: text("kind"),
        session,
        is_notable,
        since: query.moment("since", &gateway.clock, now)?,
        until: query.moment("until", &gateway.clock, now)?,
        since_unix_ms: query.unix_ms("since"),
        until_unix_ms: query.unix_ms("until"),
        below,
        above: None,
        limit: query.number("limit", (1, LIMIT_MAX))?.unwrap_or(LIMIT) as usize,
    };
    Ok((question, row))
}

/// A word that no decision has would find nothing, and leave the reader to guess why.
fn one_of(query: &Query, name: &str, words: &[&str]) -> Result<(), String> {
    match query.get(name) {
        Some(word) if !words.contains(&word) => {
            let words: Vec<String> = words.iter().map(|it| format!("`{it}`")).collect();
            Err(format!("`{name}` is one of {}", words.join(", ")))
        }
        _ => Ok(()),
    }
}

/// `GET /api/decisions/{id}`.
pub(super) async fn one(gateway: &Arc<Gateway>, id: &str) -> Answer {
    let Some(request) = RequestId::parse(id) else { return missing() };
    if let Some((n, decision)) = gateway.journal.find(request) {
        return json_of(&gateway.journal.renderer().full(n, &decision));
    }
    let id = request.to_string();
    match in_the_file(gateway, move |stores| stores.older_one(&id)).await {
        Ok(Some(decision)) => json_of(&decision),
        Ok(None) => missing(),
        Err(problem) => error(StatusCode::SERVICE_UNAVAILABLE, &problem),
    }
}

fn missing() -> Answer {
    let message = "there is no decision of this request: it may be older than what is kept";
    error(StatusCode::NOT_FOUND, message)
}
