//! The query of an admin request: names and values, percent-encoding undone.
//!
//! A name that a path does not take is refused, so that a filter with a typing error is not
//! answered with everything.

use tidegate_config::duration::Duration;
use tidegate_core::time::{Millis, Now};
use tidegate_runtime::clock::Clock;
use tidegate_text::percent::decoded_name;

/// The pairs of a query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    /// Reads a query; says what is wrong with it.
    pub(super) fn read(query: Option<&str>, known: &[&str]) -> Result<Self, String> {
        let mut pairs = Vec::new();
        for pair in query.unwrap_or_default().split('&').filter(|it| !it.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let decoded = |text: &str| decoded_name(&text.replace('+', "%20"));
            let (Some(name), Some(value)) = (decoded(name), decoded(value)) else {
                return Err("the query has a broken percent-encoding".to_owned());
            };
            if !known.contains(&name.as_str()) {
                return Err(format!("the query takes {}", listed(known)));
            }
            pairs.push((name, value));
        }
        Ok(Self(pairs))
    }

    /// The value of a name; an empty one is none.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// A number, within bounds.
    pub(super) fn number(
        &self,
        name: &str,
        (least, most): (u64, u64),
    ) -> Result<Option<u64>, String> {
        let Some(value) = self.get(name) else { return Ok(None) };
        match value.parse::<u64>() {
            Ok(number) if (least..=most).contains(&number) => Ok(Some(number)),
            _ => Err(format!("`{name}` is a number from {least} to {most}")),
        }
    }

    /// A moment: milliseconds since 1970, or a span before now such as `15m`. What is before the
    /// gateway's start is its start.
    pub(super) fn moment(
        &self,
        name: &str,
        clock: &Clock,
        now: Now,
    ) -> Result<Option<Now>, String> {
        let Some(value) = self.get(name) else { return Ok(None) };
        if let Ok(unix_ms) = value.parse::<u64>() {
            let started = clock.unix_ms_of(Now::ZERO);
            return Ok(Some(Now(unix_ms.saturating_sub(started))));
        }
        let span = self.span(name)?;
        Ok(span.map(|span| Now(now.0.saturating_sub(span.0))))
    }

    /// A moment that was given as milliseconds since 1970.
    pub(super) fn unix_ms(&self, name: &str) -> Option<u64> {
        self.get(name).and_then(|value| value.parse().ok())
    }

    /// A span such as `15m`.
    pub(super) fn span(&self, name: &str) -> Result<Option<Millis>, String> {
        let Some(value) = self.get(name) else { return Ok(None) };
        match Duration::parse(value) {
            Ok(span) => Ok(Some(span.millis())),
            Err(problem) => Err(format!("`{name}`: {problem}")),
        }
    }
}

fn listed(known: &[&str]) -> String {
    match known {
        [] => "no parameters at this path".to_owned(),
        _ => format!("`{}`", known.join("`, `")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_decoded_and_unknown_names_refused() {
        let query =
            Query::read(Some("backend=a%2Fb&limit=5&caller="), &["backend", "limit", "caller"]);
        let query = query.expect("it is sound");
        assert_eq!(query.get("backend"), Some("a/b"));
        assert_eq!(query.get("caller"), None);
        assert_eq!(query.number("limit", (1, 10)), Ok(Some(5)));
        assert!(query.number("limit", (6, 10)).is_err());
        let unknown = Query::read(Some("rout=x"), &["route"]);
        assert_eq!(unknown, Err("the query takes `route`".to_owned()));
        assert!(Query::read(Some("route=%zz"), &["route"]).is_err());
    }

    #[test]
    fn a_moment_is_a_time_or_a_span_before_now() {
        let clock = Clock::start();
        let query = |text: &str| Query::read(Some(text), &["since"]).expect("it is sound");
        let moment = |text: &str| query(text).moment("since", &clock, Now(60_000));
        assert_eq!(moment("since=45s"), Ok(Some(Now(15_000))));
        assert_eq!(moment("since=1h"), Ok(Some(Now(0))));
        let unix = format!("since={}", clock.unix_ms_of(Now(7)));
        assert_eq!(moment(&unix), Ok(Some(Now(7))));
        assert_eq!(moment("since=0"), Ok(Some(Now(0))));
        assert_eq!(moment(""), Ok(None));
        assert!(moment("since=soon").is_err());
    }
}
