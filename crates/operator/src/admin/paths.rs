//! Every path of the admin listener, in one table that says which of them change something.
//!
//! Tests walk the same table, so a new path cannot be left without its rule (S35).

use http::{Method, StatusCode, Uri};
use tidegate_gateway::admin_token::AdminAccess;
use tidegate_net::read_body::Refusal;
use tidegate_text::percent::decoded_name;

/// What is behind a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Endpoint {
    Page,
    Metrics,
    Snapshot,
    Events,
    Decisions,
    Decision,
    Timeline,
    Fleet,
    Incident,
    Explain,
    Login,
    Logout,
    Session,
    Reload,
    Backend(Deed),
}

/// What an operator may do to a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    Drain,
    Hold,
    Probe,
    Reset,
    Resume,
}

impl Deed {
    /// The word in paths and logs.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Drain => "drain",
            Self::Hold => "hold",
            Self::Probe => "probe",
            Self::Reset => "reset",
            Self::Resume => "resume",
        }
    }
}

/// One path.
pub(super) struct Row {
    pub(super) method: Method,
    /// `{id}` stands for the name of a backend or a request, percent-encoded.
    pub(super) pattern: &'static str,
    pub(super) access: AdminAccess,
    endpoint: Endpoint,
}

const fn row(
    method: Method,
    pattern: &'static str,
    access: AdminAccess,
    endpoint: Endpoint,
) -> Row {
    Row { method, pattern, access, endpoint }
}

/// All of them.
pub(super) static TABLE: [Row; 19] = [
    row(Method::GET, "/", AdminAccess::Reads, Endpoint::Page),
    row(Method::GET, "/metrics", AdminAccess::Reads, Endpoint::Metrics),
    row(Method::GET, "/api/snapshot", AdminAccess::Reads, Endpoint::Snapshot),
    row(Method::GET, "/api/events", AdminAccess::Reads, Endpoint::Events),
    row(Method::GET, "/api/decisions", AdminAccess::Reads, Endpoint::Decisions),
    row(Method::GET, "/api/decisions/{id}", AdminAccess::Reads, Endpoint::Decision),
    row(Method::GET, "/api/timeline", AdminAccess::Reads, Endpoint::Timeline),
    row(Method::GET, "/api/fleet", AdminAccess::Reads, Endpoint::Fleet),
    row(Method::GET, "/api/incident", AdminAccess::Reads, Endpoint::Incident),
    row(Method::GET, "/api/session", AdminAccess::Reads, Endpoint::Session),
    row(Method::POST, "/api/login", AdminAccess::SignsIn, Endpoint::Login),
    row(Method::POST, "/api/logout", AdminAccess::SignsIn, Endpoint::Logout),
    // It changes nothing; the question is only too long for an address.
    row(Method::POST, "/api/explain", AdminAccess::Reads, Endpoint::Explain),
    row(Method::POST, "/api/reload", AdminAccess::Changes, Endpoint::Reload),
    row(
        Method::POST,
        "/api/backends/{id}/drain",
        AdminAccess::Changes,
        Endpoint::Backend(Deed::Drain),
    ),
    row(
        Method::POST,
        "/api/backends/{id}/hold",
        AdminAccess::Changes,
        Endpoint::Backend(Deed::Hold),
    ),
    row(
        Method::POST,
        "/api/backends/{id}/probe",
        AdminAccess::Changes,
        Endpoint::Backend(Deed::Probe),
    ),
    row(
        Method::POST,
        "/api/backends/{id}/reset",
        AdminAccess::Changes,
        Endpoint::Backend(Deed::Reset),
    ),
    row(
        Method::POST,
        "/api/backends/{id}/resume",
        AdminAccess::Changes,
        Endpoint::Backend(Deed::Resume),
    ),
];

/// A path that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MatchedPath {
    pub(super) endpoint: Endpoint,
    pub(super) access: AdminAccess,
    pattern: &'static str,
    /// The name in it, decoded.
    pub(super) id: Option<String>,
}

/// What is at a path.
pub(super) fn find(method: &Method, path: &str) -> Result<MatchedPath, Refusal> {
    let mut is_known = false;
    for row in &TABLE {
        let Some(id) = matched(row.pattern, path) else { continue };
        is_known = true;
        if row.method == *method {
            return Ok(MatchedPath {
                endpoint: row.endpoint,
                access: row.access,
                pattern: row.pattern,
                id,
            });
        }
    }
    if is_known {
        return Err(Refusal::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "this path does not take this method",
        ));
    }
    Err(Refusal::new(StatusCode::NOT_FOUND, "there is nothing at this path"))
}

/// Whether a path fits, and the id in it.
fn matched(pattern: &str, path: &str) -> Option<Option<String>> {
    let Some((before, after)) = pattern.split_once("{id}") else {
        return (pattern == path).then_some(None);
    };
    let id = path.strip_prefix(before)?.strip_suffix(after)?;
    decoded_name(id).filter(|id| !id.is_empty()).map(Some)
}

/// The address with a plain word for the id, which may hold escapes that no other path has.
pub(super) fn without_id(uri: &Uri, found: Option<&MatchedPath>) -> Uri {
    let Some(found) = found.filter(|found| found.id.is_some()) else { return uri.clone() };
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let path = format!("{}{query}", found.pattern.replace("{id}", "id"));
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = path.parse().ok();
    Uri::from_parts(parts).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_may_be_percent_encoded_or_plain() {
        for path in ["/api/backends/one%2Fsmall%3A7b/drain", "/api/backends/one/small:7b/drain"] {
            let found = find(&Method::POST, path).expect("a path");
            assert_eq!(found.id.as_deref(), Some("one/small:7b"));
            assert_eq!(found.endpoint, Endpoint::Backend(Deed::Drain));
            let uri: Uri = format!("{path}?a=b").parse().expect("a uri");
            assert_eq!(without_id(&uri, Some(&found)), "/api/backends/id/drain?a=b");
        }
    }

    #[test]
    fn broken_escapes_and_hidden_controls_name_nothing() {
        for id in ["%", "%2", "%zz", "%+1", "%0a", "%00", "%ff", ""] {
            let path = format!("/api/backends/{id}/drain");
            assert!(find(&Method::POST, &path).is_err(), "{id}");
        }
    }

    #[test]
    fn a_wrong_method_is_told_from_a_wrong_path() {
        let status = |method, path| find(&method, path).err().map(|it| it.status.as_u16());
        assert_eq!(status(Method::GET, "/api/reload"), Some(405));
        assert_eq!(status(Method::GET, "/api/nothing"), Some(404));
        assert_eq!(status(Method::GET, "/metrics"), None);
    }
}
