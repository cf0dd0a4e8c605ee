//! What a request's end means to the person who asked, decided once for metrics and records.
//!
//! A client was *hurt* when it got no whole answer and neither its request nor its own departure
//! is the reason.

use tidegate_core::attempt::End;

/// How a request went, for whoever made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestResult {
    /// A whole answer.
    Ok,
    /// The request was at fault, or asked for what no target can do.
    ClientFault,
    /// The client went away.
    Cancelled,
    /// Refused before it was routed: no key, no such model, too large.
    Refused,
    /// No whole answer, and the client is not to blame.
    Failed,
}

impl RequestResult {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 5] =
        [Self::Ok, Self::ClientFault, Self::Cancelled, Self::Refused, Self::Failed];

    /// The word in metrics and JSON.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::ClientFault => "client_fault",
            Self::Cancelled => "cancelled",
            Self::Refused => "refused",
            Self::Failed => "failed",
        }
    }
}

/// Why a client was hurt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientFailure {
    /// The answer broke after its first content.
    Broken,
    /// A rejected key of ours was shown to the client.
    AuthSurfaced,
    /// The route allows no more hops.
    HopLimit,
    /// The route's budget of hops was spent.
    BudgetSpent,
    /// The request's time was over.
    Deadline,
    /// The client would not wait any longer.
    OutOfPatience,
    /// Every candidate was over its limit of last resorts.
    LastResortLimit,
    /// No candidate was left.
    NothingLeft,
    /// The gateway itself was at fault.
    Gateway,
}

impl ClientFailure {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 9] = [
        Self::Broken,
        Self::AuthSurfaced,
        Self::HopLimit,
        Self::BudgetSpent,
        Self::Deadline,
        Self::OutOfPatience,
        Self::LastResortLimit,
        Self::NothingLeft,
        Self::Gateway,
    ];

    /// The word in metrics and JSON.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Broken => "broken",
            Self::AuthSurfaced => "auth_surfaced",
            Self::HopLimit => "hop_limit",
            Self::BudgetSpent => "budget_spent",
            Self::Deadline => "deadline",
            Self::OutOfPatience => "out_of_patience",
            Self::LastResortLimit => "last_resort_limit",
            Self::NothingLeft => "nothing_left",
            Self::Gateway => "gateway",
        }
    }
}

/// How a request ended for its client, and why the client was hurt if it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientVerdict {
    /// How it went.
    pub result: RequestResult,
    /// Why the client was hurt.
    pub failure: Option<ClientFailure>,
}

impl ClientVerdict {
    /// `end` is the plan's; `None` for a request that never had a plan.
    #[must_use]
    pub const fn of(status: u16, end: Option<End>) -> Self {
        let failure = match end {
            Some(End::Answered) => return Self::plain(RequestResult::Ok),
            Some(End::ClientFault | End::NothingAble) => {
                return Self::plain(RequestResult::ClientFault);
            }
            Some(End::Cancelled) => return Self::plain(RequestResult::Cancelled),
            Some(End::Broken) => ClientFailure::Broken,
            Some(End::AuthSurfaced) => ClientFailure::AuthSurfaced,
            Some(End::HopLimit) => ClientFailure::HopLimit,
            Some(End::BudgetSpent) => ClientFailure::BudgetSpent,
            Some(End::Deadline) => ClientFailure::Deadline,
            Some(End::OutOfPatience) => ClientFailure::OutOfPatience,
            Some(End::LastResortLimit) => ClientFailure::LastResortLimit,
            Some(End::NothingLeft) => ClientFailure::NothingLeft,
            None if status >= 500 => ClientFailure::Gateway,
            None if status >= 400 => return Self::plain(RequestResult::Refused),
            None => return Self::plain(RequestResult::Ok),
        };
        Self { result: RequestResult::Failed, failure: Some(failure) }
    }

    const fn plain(result: RequestResult) -> Self {
        Self { result, failure: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_hurts_a_client_is_a_client_failure() {
        let check = |status, end, result: RequestResult, failure: Option<ClientFailure>| {
            let expected = ClientVerdict { result, failure };
            assert_eq!(ClientVerdict::of(status, end), expected, "{status} {end:?}");
        };
        check(200, Some(End::Answered), RequestResult::Ok, None);
        check(400, Some(End::ClientFault), RequestResult::ClientFault, None);
        check(400, Some(End::NothingAble), RequestResult::ClientFault, None);
        check(499, Some(End::Cancelled), RequestResult::Cancelled, None);
        check(404, None, RequestResult::Refused, None);
        check(200, None, RequestResult::Ok, None);
        let failed = RequestResult::Failed;
        check(500, None, failed, Some(ClientFailure::Gateway));
        check(200, Some(End::Broken), failed, Some(ClientFailure::Broken));
        check(401, Some(End::AuthSurfaced), failed, Some(ClientFailure::AuthSurfaced));
        check(429, Some(End::NothingLeft), failed, Some(ClientFailure::NothingLeft));
    }

    #[test]
    fn a_place_in_all_is_the_variants_number() {
        let results = RequestResult::ALL.iter().enumerate();
        assert!(results.into_iter().all(|(index, it)| *it as usize == index));
        let failures = ClientFailure::ALL.iter().enumerate();
        assert!(failures.into_iter().all(|(index, it)| *it as usize == index));
    }
}
