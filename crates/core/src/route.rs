//! A route at work: its candidates in tier order, its cursors and its budget.

use std::sync::Arc;

use crate::{
    backend::Backend,
    budget::Budget,
    last_resort::TokenBucket,
    mark::ActiveMark,
    read::Read,
    settings::{
        Abilities, HoldLimits, HoldSettings, Kind, Membership, OnAuthError, PinMode, Protocol,
        RouteSettings, Tactic,
    },
    sync::{AtomicU32, Ordering},
    time::{Millis, Now},
    wire_format::{SentAs, WireFormat, WireFormats},
};
use serde::{Deserialize, Serialize};

/// What a request needs of a target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Needs {
    /// It brings tool definitions.
    pub tools: bool,
    /// It brings images.
    pub vision: bool,
    /// It is this many tokens long, where known.
    pub context: u64,
    /// The protocol it is written in; `None` = one that every target understands.
    pub protocol: Option<Protocol>,
    /// What kind of request it is; `None` = one that every target serves.
    pub kind: Option<Kind>,
    /// The formats that it can be converted to for a target that does not take it as it came.
    #[serde(default, skip_serializing_if = "WireFormats::is_empty")]
    pub converts_to: WireFormats,
}

/// An ability a target lacks for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ability {
    /// Taking tool definitions.
    Tools,
    /// Taking images.
    Vision,
    /// A context window that is large enough.
    Context,
    /// Speaking the request's protocol.
    Protocol,
    /// Serving this kind of request.
    Kind,
}

impl Ability {
    /// What a target without it does, after its name.
    #[must_use]
    pub const fn lack(self) -> &'static str {
        match self {
            Self::Tools => "takes no tools",
            Self::Vision => "takes no images",
            Self::Context => "has too short a context",
            Self::Protocol => "speaks another protocol, which the request cannot be converted to",
            Self::Kind => "does not serve this endpoint",
        }
    }
}

impl Needs {
    /// What `abilities` lacks, if anything. Unknown means able.
    #[must_use]
    pub fn lacking(&self, abilities: &Abilities) -> Option<Ability> {
        if let Err(ability) = self.sent_as(abilities) {
            return Some(ability);
        }
        if self.tools && abilities.tools == Some(false) {
            return Some(Ability::Tools);
        }
        if self.vision && abilities.vision == Some(false) {
            return Some(Ability::Vision);
        }
        abilities.context.is_some_and(|limit| self.context > limit).then_some(Ability::Context)
    }

    /// How a target of these abilities gets the request: as it came if it understands that, else
    /// converted to the first format that it serves.
    ///
    /// # Errors
    /// It understands neither; what it lacks.
    pub fn sent_as(&self, abilities: &Abilities) -> Result<SentAs, Ability> {
        let speaks = |asked: Option<Protocol>| {
            asked.zip(abilities.protocol).is_none_or(|(asked, spoken)| asked == spoken)
        };
        let serves = |kind: Option<Kind>| {
            kind.zip(abilities.serves).is_none_or(|(kind, served)| served.has(kind))
        };
        let lack = match (speaks(self.protocol), serves(self.kind)) {
            (true, true) => return Ok(SentAs::AsItCame),
            (true, false) => Ability::Kind,
            (false, _) => Ability::Protocol,
        };
        let mut formats = WireFormat::ALL.into_iter().filter(|it| self.converts_to.has(*it));
        let fitting = formats.find(|it| speaks(Some(it.protocol())) && serves(it.kind()));
        fitting.map(SentAs::Converted).ok_or(lack)
    }
}

/// A backend's place in a route.
#[derive(Debug)]
pub(crate) struct Candidate {
    pub(crate) backend: Arc<Backend>,
    pub(crate) tier: u16,
    pub(crate) weight: u32,
    pub(crate) membership: Membership,
    /// Shared by all places of the same backend in the route, and with the route after a reload.
    pub(crate) last_resorts: Arc<TokenBucket>,
}

/// Why a backend of the route is no candidate for a request, whatever its health.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Barred {
    Inactive,
    Unconfigured,
    SwitchedOff(ActiveMark),
    Lacks(Ability),
}

impl Candidate {
    pub(crate) fn barred(&self, now: Now, needs: &Needs) -> Option<Barred> {
        match self.membership {
            Membership::Inactive => return Some(Barred::Inactive),
            Membership::Unconfigured => return Some(Barred::Unconfigured),
            Membership::Active => {}
        }
        if let Some(standing) = self.backend.health.off.active(now) {
            return Some(Barred::SwitchedOff(standing));
        }
        needs.lacking(&self.backend.abilities).map(Barred::Lacks)
    }

    pub(crate) fn read(&self, now: Now, index: usize, tactic: Tactic) -> Read {
        let mut read = Read::of(&self.backend, now, (index as u16, self.tier, self.weight), tactic);
        read.is_over_limit =
            read.rank.is_limited() && self.last_resorts.free_from(now).is_none_or(|at| at > now);
        read
    }
}

/// One route.
#[derive(Debug)]
pub struct Route {
    pub(crate) name: Arc<str>,
    /// In tier order, inside a tier in file order.
    pub(crate) candidates: Vec<Candidate>,
    pub(crate) tactic: Tactic,
    pub(crate) affinity_ttl: Millis,
    pub(crate) pin: PinMode,
    pub(crate) deadline: Millis,
    pub(crate) max_hops: u32,
    pub(crate) patience_share: f64,
    pub(crate) on_auth_error: OnAuthError,
    pub(crate) hold: HoldSettings,
    pub(crate) hold_limits: HoldLimits,
    pub(crate) budget: Arc<Budget>,
    /// For each tier: the candidate index from which `round_robin` looks next.
    cursors: Arc<[AtomicU32]>,
}

/// A route holds at most this many members: candidates are numbered in sixteen bits.
pub const MEMBERS_MAX: usize = 4096;

impl Route {
    pub(crate) fn new(
        settings: &RouteSettings,
        hold_limits: HoldLimits,
        backends: &[Arc<Backend>],
    ) -> Self {
        let mut candidates: Vec<Candidate> = Vec::new();
        for (tier, members) in settings.tiers.iter().enumerate() {
            for member in members {
                let backend = &backends[member.backend];
                let same = candidates.iter().find(|it| it.backend.number == backend.number);
                let last_resorts = match same {
                    Some(same) => Arc::clone(&same.last_resorts),
                    None => Arc::new(TokenBucket::new(settings.last_resort)),
                };
                candidates.push(Candidate {
                    last_resorts,
                    backend: Arc::clone(backend),
                    tier: tier as u16,
                    weight: member.weight,
                    membership: member.membership,
                });
            }
        }
        candidates.truncate(MEMBERS_MAX);
        Self {
            name: settings.name.as_str().into(),
            candidates,
            tactic: settings.tactic,
            affinity_ttl: settings.affinity_ttl,
            pin: settings.pin,
            deadline: settings.deadline,
            max_hops: settings.max_hops,
            patience_share: settings.patience_share,
            on_auth_error: settings.on_auth_error,
            hold: settings.hold,
            hold_limits,
            budget: Arc::new(Budget::new(settings.budget)),
            cursors: settings.tiers.iter().map(|_| AtomicU32::new(0)).collect(),
        }
    }

    /// Goes on where `old` stopped: counting hops and last resorts, if their settings are the same,
    /// and in turn, if the members are.
    pub(crate) fn continue_from(&mut self, old: &Self) {
        if self.budget.settings() == old.budget.settings() {
            self.budget = Arc::clone(&old.budget);
        }
        for candidate in &mut self.candidates {
            let number = candidate.backend.number;
            let same = old.candidates.iter().find(|it| it.backend.number == number);
            let same = same.map(|it| &it.last_resorts);
            if let Some(same) = same.filter(|it| it.settings() == candidate.last_resorts.settings())
            {
                candidate.last_resorts = Arc::clone(same);
            }
        }
        let members = |route: &Self| -> Vec<(u16, u32)> {
            route.candidates.iter().map(|it| (it.tier, it.backend.number)).collect()
        };
        if members(self) == members(old) {
            self.cursors = Arc::clone(&old.cursors);
        }
    }

    /// The name a client asks for.
    #[must_use]
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The backend behind a candidate's number, as in [`Read::candidate`].
    #[must_use]
    pub fn backend(&self, candidate: u16) -> &Arc<Backend> {
        &self.candidates[usize::from(candidate)].backend
    }

    /// The number of the candidate with this backend.
    pub(crate) fn position(&self, backend: &str) -> Option<u16> {
        let position = self.candidates.iter().position(|it| *it.backend.id == *backend);
        position.map(|index| index as u16)
    }

    /// The names of its backends, in tier order.
    pub fn members(&self) -> impl Iterator<Item = &Arc<str>> {
        self.candidates.iter().map(|it| &it.backend.id)
    }

    pub(crate) fn cursor(&self, tier: u16) -> u32 {
        self.cursors.get(usize::from(tier)).map_or(0, |cursor| cursor.load(Ordering::Relaxed))
    }

    /// Every pick moves the cursor of its tier to just past the picked one.
    pub(crate) fn move_cursor(&self, read: &Read) {
        if self.tactic == Tactic::RoundRobin
            && let Some(cursor) = self.cursors.get(usize::from(read.tier))
        {
            cursor.store(u32::from(read.candidate) + 1, Ordering::Relaxed);
        }
    }
}
