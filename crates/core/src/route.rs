//! A route at work: its candidates in tier order, its cursors and its budget.

use std::sync::Arc;

use crate::{
    backend::Backend,
    budget::Budget,
    held_state::{HeldState, Holder, StateKind},
    last_resort::TokenBucket,
    mark::ActiveMark,
    names::{FleetSettings, HashKey, PinKey},
    pins::Pins,
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
    /// It brings documents, such as PDF files.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub documents: bool,
    /// It wants an answer that follows a JSON schema.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub json_schema: bool,
    /// It asks for reasoning.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reasoning: bool,
    /// It is this many tokens long, where known.
    pub context: u64,
    /// The protocol it is written in; `None` = one that every target understands.
    pub protocol: Option<Protocol>,
    /// What kind of request it is; `None` = one that every target serves.
    pub kind: Option<Kind>,
    /// The formats that it can be converted to for a target that does not take it as it came.
    #[serde(default, skip_serializing_if = "WireFormats::is_empty")]
    pub converts_to: WireFormats,
    /// What it refers to that only one provider has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<HeldState>,
}

/// An ability a target lacks for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ability {
    /// Taking tool definitions.
    Tools,
    /// Taking images.
    Vision,
    /// Taking documents.
    Documents,
    /// Following a JSON schema.
    JsonSchema,
    /// Reasoning.
    Reasoning,
    /// A context window that is large enough.
    Context,
    /// Speaking the request's protocol.
    Protocol,
    /// Serving this kind of request.
    Kind,
    /// Having the response that the request continues.
    PreviousResponse,
    /// Having the conversation that the request continues.
    Conversation,
    /// Having items that the request names by their ids.
    StoredItem,
    /// Having the thread of messages that the request continues.
    Thread,
    /// Having an uploaded file.
    File,
    /// Having cached content.
    CachedContent,
}

impl Ability {
    /// What a target without it does, after its name.
    #[must_use]
    pub const fn lack(self) -> &'static str {
        match self {
            Self::Tools => "takes no tools",
            Self::Vision => "takes no images",
            Self::Documents => "takes no documents",
            Self::JsonSchema => "follows no JSON schema",
            Self::Reasoning => "does not reason",
            Self::Context => "has too short a context",
            Self::Protocol => "speaks another protocol, which the request cannot be converted to",
            Self::Kind => "does not serve this endpoint",
            Self::PreviousResponse => "does not have the response of `previous_response_id`",
            Self::Conversation => "does not have the conversation of `conversation`",
            Self::StoredItem => "does not have the items that the request names by id",
            Self::Thread => "does not have the thread of `thread.previous_message_id`",
            Self::File => "does not have the uploaded file",
            Self::CachedContent => "does not have the content of `cachedContent`",
        }
    }

    /// What is lacking where state is held elsewhere; none for what a request can do without.
    const fn of_state(kind: StateKind) -> Option<Self> {
        Some(match kind {
            StateKind::PreviousResponse => Self::PreviousResponse,
            StateKind::Conversation => Self::Conversation,
            StateKind::StoredItem => Self::StoredItem,
            StateKind::Thread => Self::Thread,
            StateKind::File => Self::File,
            StateKind::CachedContent => Self::CachedContent,
            StateKind::SealedReasoning => return None,
        })
    }
}

impl Needs {
    /// The first of what `abilities` lacks, if anything. Unknown means able.
    #[must_use]
    pub fn lacking(&self, abilities: &Abilities) -> Option<Ability> {
        self.lacks(abilities).next()
    }

    /// Everything that `abilities` lacks.
    pub fn lacks(&self, abilities: &Abilities) -> impl Iterator<Item = Ability> {
        let unable = |is_needed: bool, is_able: Option<bool>| is_needed && is_able == Some(false);
        let is_too_short = abilities.context.is_some_and(|limit| self.context > limit);
        let state = self.state.filter(|_| !self.could_hold(abilities));
        let rows = [
            (unable(self.tools, abilities.tools), Ability::Tools),
            (unable(self.vision, abilities.vision), Ability::Vision),
            (unable(self.documents, abilities.documents), Ability::Documents),
            (unable(self.json_schema, abilities.json_schema), Ability::JsonSchema),
            (unable(self.reasoning, abilities.reasoning), Ability::Reasoning),
            (is_too_short, Ability::Context),
        ];
        let rows = rows.into_iter().filter(|(is_lacking, _)| *is_lacking).map(|(_, it)| it);
        let state = state.and_then(|state| Ability::of_state(state.kind));
        self.sent_as(abilities).err().into_iter().chain(state).chain(rows)
    }

    /// Whether a target of these abilities could hold the state that the request refers to: it gets
    /// the request in the format, or at least by the protocol, that the state belongs to.
    pub(crate) fn could_hold(&self, abilities: &Abilities) -> bool {
        let Some(state) = self.state else { return true };
        if state.kind.is_of_one_format() {
            return self.sent_as(abilities) == Ok(SentAs::AsItCame);
        }
        state.protocol.zip(abilities.protocol).is_none_or(|(state, spoken)| state == spoken)
    }

    /// These and what a body needs: the path says one half, the body the other.
    #[must_use]
    pub fn and_of_body(self, body: Self) -> Self {
        let Self { protocol, kind, converts_to, .. } = self;
        let of_path = |it: HeldState| HeldState { protocol: it.protocol.or(protocol), ..it };
        let state = body.state.map(of_path);
        Self { protocol, kind, converts_to, state, ..body }
    }

    /// How a target of these abilities gets the request: as it came if it understands that, else
    /// converted to the format that it prefers, or to the first that it serves.
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
        let fits = |it: &WireFormat| {
            self.converts_to.has(*it) && speaks(Some(it.protocol())) && serves(it.kind())
        };
        let preferred = abilities.prefers_responses.then_some(WireFormat::Responses);
        let fitting = preferred.filter(fits).or_else(|| WireFormat::ALL.into_iter().find(fits));
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
        self.lacks(needs).next().map(Barred::Lacks)
    }

    /// Everything that it lacks for a request.
    pub(crate) fn lacks(&self, needs: &Needs) -> impl Iterator<Item = Ability> {
        let held = needs.state.and_then(|state| state.holder.zip(Ability::of_state(state.kind)));
        let is_elsewhere =
            |holder| self.backend.endpoint_number.map(Holder::Endpoint) != Some(holder);
        let elsewhere = held.filter(|(holder, _)| is_elsewhere(*holder)).map(|(_, it)| it);
        let lacks = needs.lacks(&self.backend.abilities);
        let mut of_abilities = lacks.filter(move |it| Some(*it) != elsewhere);
        // What keeps a request at its provider is named before what it would need elsewhere.
        let first = elsewhere.or_else(|| of_abilities.next());
        first.into_iter().chain(of_abilities)
    }

    pub(crate) fn read(&self, now: Now, index: usize, tactic: Tactic) -> Read {
        let mut read = Read::of(&self.backend, now, (index as u16, self.tier, self.weight), tactic);
        read.is_over_limit =
            read.is_limited && self.last_resorts.free_from(now).is_none_or(|at| at > now);
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
    /// What makes its sessions those of a fleet.
    pub(crate) fleet: Option<Arc<FleetSettings>>,
    /// For each tier: the candidate index from which `round_robin` looks next.
    cursors: Arc<[AtomicU32]>,
}

/// The lots of one session: the same at every replica of a fleet, and nobody else's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lots<'a> {
    hash_key: &'a HashKey,
    session: PinKey,
}

impl Lots<'_> {
    pub(crate) fn of(&self, name: &[u8]) -> u64 {
        self.hash_key.lot(self.session, name)
    }
}

/// A route holds at most this many members: candidates are numbered in sixteen bits.
pub const MEMBERS_MAX: usize = 4096;

impl Route {
    pub(crate) fn new(
        settings: &RouteSettings,
        hold_limits: HoldLimits,
        backends: &[Arc<Backend>],
        fleet: Option<&Arc<FleetSettings>>,
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
            fleet: fleet.map(Arc::clone),
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

    /// The key that names its sessions to the fleet, if there is one.
    fn hash_key(&self) -> Option<&HashKey> {
        self.fleet.as_ref()?.hash_keys.first()
    }

    /// The name of a session.
    pub(crate) fn pin_key(&self, pins: &Pins, caller: &str, session: &str) -> PinKey {
        match self.hash_key() {
            None => pins.key(&self.name, caller, session),
            Some(hash_key) => hash_key.pin_key(&self.name, caller, session),
        }
    }

    /// What the names of its sessions begin with.
    pub(crate) fn tag(&self, pins: &Pins) -> u32 {
        self.hash_key().map_or_else(|| pins.tag(&self.name), |it| it.route_tag(&self.name))
    }

    /// While the fleet's secret is being replaced: a pin set under a name of an older one is found.
    pub(crate) fn rename_pin(&self, now: Now, pins: &Pins, caller: &str, session: &str) {
        let Some(fleet) = self.fleet.as_ref().filter(|it| it.hash_keys.len() > 1) else { return };
        let mut names = fleet.hash_keys.iter().map(|it| it.pin_key(&self.name, caller, session));
        let Some(new) = names.next() else { return };
        for old in names {
            pins.rename(now, old, new);
        }
    }

    /// How a session draws among things with names, where replicas are to agree on it.
    pub(crate) fn lots(&self, session: PinKey) -> Option<Lots<'_>> {
        let is_drawn = matches!(self.tactic, Tactic::Random | Tactic::Weighted);
        self.hash_key().filter(|_| is_drawn).map(|hash_key| Lots { hash_key, session })
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

    /// The tier of a candidate.
    #[must_use]
    pub fn tier(&self, candidate: u16) -> u16 {
        self.candidates[usize::from(candidate)].tier
    }

    /// How one backend of a tier is picked.
    #[must_use]
    pub fn tactic(&self) -> Tactic {
        self.tactic
    }

    /// The most hops beyond the first attempt.
    #[must_use]
    pub fn max_hops(&self) -> u32 {
        self.max_hops
    }

    /// The name of the provider that holds a request's state, if it is one of the route's.
    #[must_use]
    pub fn holder_name(&self, holder: Holder) -> Option<&Arc<str>> {
        let mut backends = self.candidates.iter().map(|it| &it.backend);
        let found = backends.find(|it| it.endpoint_number.map(Holder::Endpoint) == Some(holder));
        found.and_then(|it| it.endpoint.as_ref()).map(|it| &it.id)
    }

    /// Whether only the thread that a request continues keeps it from targets that could serve it.
    /// Clients with a thread know how to send the whole conversation instead.
    pub(crate) fn is_kept_by_thread(&self, needs: &Needs) -> bool {
        let Some(state) = needs.state.filter(|it| it.kind == StateKind::Thread) else {
            return false;
        };
        let holder = state.holder;
        let without = Needs { state: None, ..*needs };
        let mut members = self.candidates.iter().filter(|it| it.membership == Membership::Active);
        members.any(|it| {
            let is_holder = it.backend.endpoint_number.map(Holder::Endpoint) == holder;
            let could_hold = needs.could_hold(&it.backend.abilities);
            !(is_holder && could_hold) && it.lacks(&without).next().is_none()
        })
    }

    /// How a member gets a request that needs this; `None` if it understands it in no format, or
    /// is no member.
    #[must_use]
    pub fn sent_as(&self, backend: &str, needs: &Needs) -> Option<SentAs> {
        let member = self.candidates.iter().find(|it| *it.backend.id == *backend)?;
        needs.sent_as(&member.backend.abilities).ok()
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
