//! What the core is told before it starts: health settings, backends, routes.
//!
//! These are *resolved* settings: nothing is optional because it was left unwritten. The config
//! crate and the simulator both produce them; the core never sees a file.
//!
//! [`HealthSettings::problems`] is the one place that knows which values make no sense, so a
//! config file, a scenario's `policy` and a test are refused by the same rule.

use serde::{Deserialize, Serialize};

use crate::{
    names::{Fingerprint, FleetSettings},
    time::Millis,
};

/// How one backend's health is judged. `Default` gives the production defaults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HealthSettings {
    /// Strikes in a row that open the breaker.
    pub failure_threshold: u32,
    /// Share of failed samples that opens the breaker; 0 switches the ratio rule off.
    pub failure_ratio: f64,
    /// Samples needed before the ratio is judged.
    pub min_samples: u32,
    /// How far back the ratio rule looks.
    pub window: Millis,
    /// How long a strike is remembered; 0 = until a success.
    pub strike_memory: Millis,
    /// How long an opened breaker stays open.
    pub open_for: Millis,
    /// Factor on `open_for` for each re-open since the breaker was last closed.
    pub open_growth: f64,
    /// Up to this share of the open period is added at random.
    pub open_jitter: f64,
    /// The longest open period, before jitter.
    pub open_max: Millis,
    /// Consecutive trial successes that close a half-open breaker.
    pub recovery_threshold: u32,
    /// Trials a half-open breaker admits at once.
    pub trial_permits: u32,
    /// How long a recovered target leaves sessions pinned to a lower tier where they are.
    pub promotion_hold: Millis,
    /// Window after a 429 that does not say when to come back.
    pub rate_limit_window: Millis,
    /// How long a rejected key is excluded.
    pub auth_window: Millis,
    /// How long an exhausted key is excluded.
    pub exhausted_window: Millis,
    /// How long a target is excluded whose model does not exist.
    pub model_gone_window: Millis,
}

impl Default for HealthSettings {
    fn default() -> Self {
        Self {
            failure_threshold: 3,
            failure_ratio: 0.5,
            min_samples: 20,
            window: Millis::seconds(30),
            strike_memory: Millis::minutes(10),
            open_for: Millis::seconds(30),
            open_growth: 1.0,
            open_jitter: 0.0,
            open_max: Millis::minutes(5),
            recovery_threshold: 3,
            trial_permits: 1,
            promotion_hold: Millis::seconds(60),
            rate_limit_window: Millis::seconds(30),
            auth_window: Millis::seconds(30),
            exhausted_window: Millis::minutes(5),
            model_gone_window: Millis::minutes(5),
        }
    }
}

/// A setting that makes no sense, named by its config key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SettingProblem {
    /// The config key, e.g. `failure_threshold`.
    pub key: &'static str,
    /// What is wrong with it, as a lowercase fragment.
    pub rule: &'static str,
}

impl HealthSettings {
    /// Every value that makes no sense; empty when the settings can be used.
    #[must_use]
    pub fn problems(&self) -> Vec<SettingProblem> {
        let at_least_one = "must be at least 1";
        let a_share = "must be between 0 and 1";
        let rules = [
            (self.failure_threshold < 1, "failure_threshold", at_least_one),
            (self.min_samples < 1, "min_samples", at_least_one),
            (self.recovery_threshold < 1, "recovery_threshold", at_least_one),
            (self.trial_permits < 1, "trial_permits", at_least_one),
            (
                !(self.open_growth >= 1.0 && self.open_growth.is_finite()),
                "open_growth",
                at_least_one,
            ),
            (!(0.0..=1.0).contains(&self.failure_ratio), "failure_ratio", a_share),
            (!(0.0..=1.0).contains(&self.open_jitter), "open_jitter", a_share),
            (self.open_max < self.open_for, "open_max", "must not be shorter than open_for"),
        ];
        rules
            .into_iter()
            .filter(|(broken, ..)| *broken)
            .map(|(_, key, rule)| SettingProblem { key, rule })
            .collect()
    }
}

/// Everything the core needs to know to start, or to go on after a reload.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// Hosts that can be reached or not; targets refer to them by index.
    pub endpoints: Vec<EndpointSettings>,
    /// Credentials; targets refer to them by index.
    pub keys: Vec<KeySettings>,
    /// Targets and MCP servers; routes refer to them by index.
    pub backends: Vec<BackendSettings>,
    /// Routes by name.
    pub routes: Vec<RouteSettings>,
    /// At most this many pins are kept.
    pub max_pins: usize,
    /// How much of an answer may be held back.
    pub hold_limits: HoldLimits,
    /// What makes this replica one of a fleet; `None` = it stands alone.
    pub fleet: Option<FleetSettings>,
}

/// A provider's host.
#[derive(Clone, Debug, PartialEq)]
pub struct EndpointSettings {
    /// Its name in snapshots and transitions: the provider's.
    pub id: String,
    /// What makes it the same endpoint after a reload: its url.
    pub identity: String,
    /// Its breaker's settings. Only the streak rule is used: the ratio rule is off for endpoints.
    pub health: HealthSettings,
    /// What replicas call it: the first name is told, all are recognised (those of older secrets).
    /// Empty = nothing about it is told or heard.
    pub fleet_names: Vec<Fingerprint>,
}

/// A credential. The core knows its name, its reference and a fingerprint, never its value.
#[derive(Clone, Debug, PartialEq)]
pub struct KeySettings {
    /// Its name in snapshots and transitions, e.g. `anthropic#2`.
    pub id: String,
    /// What makes it the same key after a reload: provider and reference, `anthropic env:KEY_A`.
    pub identity: String,
    /// What a session's pin remembers it by.
    pub fingerprint: KeyFingerprint,
    /// What replicas call it: the first name is told, all are recognised (those of older secrets).
    /// Empty = nothing about it is told or heard.
    pub fleet_names: Vec<Fingerprint>,
}

/// A number made from a credential's value, by a keyed hash outside the core. Equal values have
/// equal numbers while the process runs; it is never shown.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct KeyFingerprint(pub u64);

impl std::fmt::Debug for KeyFingerprint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeyFingerprint(..)")
    }
}

/// A target or an MCP server.
#[derive(Clone, Debug, PartialEq)]
pub struct BackendSettings {
    /// `provider/model`, or `mcp:NAME`.
    pub id: String,
    /// What makes it the same backend after a reload besides its keys: url and model, or command.
    pub identity: String,
    /// Index into [`Settings::endpoints`]; MCP servers have none.
    pub endpoint: Option<usize>,
    /// Indices into [`Settings::keys`]; empty means one nameless credential of its own.
    pub keys: Vec<usize>,
    /// How its health is judged.
    pub health: HealthSettings,
    /// The longest a streaming attempt may take to its first content (connect included).
    pub first_content_within: Millis,
    /// The longest an attempt that does not stream may take to its result.
    pub answer_within: Millis,
    /// What it can do.
    pub abilities: Abilities,
    /// What replicas call it: the first name is told, all are recognised (those of older secrets).
    /// Empty = nothing about it is told or heard.
    pub fleet_names: Vec<Fingerprint>,
}

/// What a target can do; unknown means able.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Abilities {
    /// Whether it takes tool definitions.
    pub tools: Option<bool>,
    /// Whether it takes images.
    pub vision: Option<bool>,
    /// Whether it takes documents, such as PDF files.
    pub documents: Option<bool>,
    /// Whether it can be held to a JSON schema.
    pub json_schema: Option<bool>,
    /// Whether it reasons before it answers, as far as a request asks for it.
    pub reasoning: Option<bool>,
    /// Its context window in tokens.
    pub context: Option<u64>,
    /// The protocol it speaks; unknown means all.
    pub protocol: Option<Protocol>,
    /// The kinds of request it serves; unknown means all.
    pub serves: Option<Kinds>,
    /// Whether a request that has to be converted goes to its Responses API rather than to Chat
    /// Completions, if it serves both: its model can do more there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub prefers_responses: bool,
}

/// A wire protocol, as far as routing cares: who can understand a request as it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// OpenAI's.
    OpenAi,
    /// Anthropic's.
    Anthropic,
    /// Google's.
    Gemini,
}

/// A kind of request, as far as routing cares: some hosts serve only some of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Chat completions.
    Chat,
    /// Responses.
    Responses,
    /// Embeddings.
    Embeddings,
    /// Text completions.
    Completions,
    /// Other known kinds of inference, such as moderations, images and audio.
    Relayed,
    /// Whatever else names a model.
    Other,
}

/// A set of kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kinds(u8);

impl Kinds {
    /// Every kind that is known to be inference: all but [`Kind::Other`].
    pub const KNOWN: Self = Self((1 << Kind::Other as u8) - 1);

    /// These and one more.
    #[must_use]
    pub const fn with(self, kind: Kind) -> Self {
        Self(self.0 | (1 << kind as u8))
    }

    /// These but one.
    #[must_use]
    pub const fn without(self, kind: Kind) -> Self {
        Self(self.0 & !(1 << kind as u8))
    }

    /// Whether a kind is among them.
    #[must_use]
    pub const fn has(self, kind: Kind) -> bool {
        self.0 & (1 << kind as u8) != 0
    }
}

impl FromIterator<Kind> for Kinds {
    fn from_iter<I: IntoIterator<Item = Kind>>(kinds: I) -> Self {
        kinds.into_iter().fold(Self::default(), Self::with)
    }
}

/// One route: ordered tiers of backends, and how a request walks them.
#[derive(Clone, Debug, PartialEq)]
pub struct RouteSettings {
    /// The name a client asks for.
    pub name: String,
    /// Tiers in order; tier 0 is tried first.
    pub tiers: Vec<Vec<MemberSettings>>,
    /// How one is picked inside a tier.
    pub tactic: Tactic,
    /// How long a session sticks; zero = off.
    pub affinity_ttl: Millis,
    /// What a pin follows.
    pub pin: PinMode,
    /// The longest a whole request may take, all attempts together.
    pub deadline: Millis,
    /// Hops beyond the first attempt.
    pub max_hops: u32,
    /// The share of a client's remaining patience that one silent attempt may use.
    pub patience_share: f64,
    /// The budget of hops that are not free.
    pub budget: BudgetSettings,
    /// How many attempts may go past the breaker or exclusion of one target.
    pub last_resort: LastResortSettings,
    /// Whether a rejected key ends the request.
    pub on_auth_error: OnAuthError,
    /// How far streams are held back beyond their first content.
    pub hold: HoldSettings,
}

impl Default for RouteSettings {
    fn default() -> Self {
        Self {
            name: String::new(),
            tiers: Vec::new(),
            tactic: Tactic::Random,
            affinity_ttl: Millis::minutes(30),
            pin: PinMode::Selected,
            deadline: Millis::minutes(10),
            max_hops: 8,
            patience_share: 0.6,
            budget: BudgetSettings::default(),
            last_resort: LastResortSettings::default(),
            on_auth_error: OnAuthError::FailOver,
            hold: HoldSettings::default(),
        }
    }
}

/// How far a stream is held back beyond its first content; zero = no such limit. The limit that is
/// reached first ends the hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HoldSettings {
    /// Until so many events with content have come.
    pub events: u32,
    /// Until so much time has passed since the first of them.
    pub time: Millis,
}

impl HoldSettings {
    /// Whether anything is held beyond the first content.
    #[must_use]
    pub const fn is_on(&self) -> bool {
        self.events > 0 || self.time.0 > 0
    }
}

/// How much of an answer may be held back before it is committed as it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HoldLimits {
    /// Of a stream.
    pub stream_bytes: u64,
    /// Of any other answer.
    pub answer_bytes: u64,
}

impl Default for HoldLimits {
    fn default() -> Self {
        Self { stream_bytes: 4 << 20, answer_bytes: 1 << 20 }
    }
}

/// A backend's place in a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberSettings {
    /// Index into [`Settings::backends`].
    pub backend: usize,
    /// Its share under the `weighted` tactic.
    pub weight: u32,
    /// Whether it may be used at all.
    pub membership: Membership,
}

/// Whether the config lets a backend take part in a route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Membership {
    /// It takes part.
    #[default]
    Active,
    /// Switched off in the file.
    Inactive,
    /// Its provider's key cannot be resolved.
    Unconfigured,
}

/// How one backend of a tier is picked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tactic {
    /// Each with the same chance.
    #[default]
    Random,
    /// In file order, one after the other.
    RoundRobin,
    /// At random in proportion to the weights.
    Weighted,
    /// The better of two by recent time to first content.
    LeastLatency,
    /// The one with the fewest attempts in flight.
    LeastBusy,
}

/// What a pin follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PinMode {
    /// The target selected first.
    #[default]
    Selected,
    /// The target whose success ended the request.
    Answered,
}

/// What a rejected key means for the client's request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnAuthError {
    /// The request goes on to another backend.
    #[default]
    FailOver,
    /// The first such answer ends the request and is what the client sees.
    Surface,
}

/// The budget of hops that are not free.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BudgetSettings {
    /// How far back hops and requests are counted.
    pub window: Millis,
    /// Hops allowed per request.
    pub ratio: f64,
    /// Hops allowed besides.
    pub floor: u32,
}

impl Default for BudgetSettings {
    fn default() -> Self {
        Self { window: Millis::seconds(10), ratio: 0.2, floor: 100 }
    }
}

/// The limit of attempts at one target of a route that go past a breaker or an exclusion: a token
/// bucket. Both zero: there are none.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LastResortSettings {
    /// How many may be made at once.
    pub burst: u32,
    /// How many come back every second.
    pub per_second: f64,
}

impl LastResortSettings {
    /// A limit that is never reached.
    pub const UNLIMITED: Self = Self { burst: u32::MAX, per_second: 1.0 };
}

impl Default for LastResortSettings {
    fn default() -> Self {
        Self { burst: 100, per_second: 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_sound() {
        assert_eq!(HealthSettings::default().problems(), Vec::new());
    }

    #[test]
    fn every_bad_value_is_named_by_its_key() {
        let bad = HealthSettings {
            failure_threshold: 0,
            min_samples: 0,
            recovery_threshold: 0,
            trial_permits: 0,
            open_growth: 0.5,
            failure_ratio: 1.5,
            open_jitter: f64::NAN,
            open_max: Millis(1),
            ..HealthSettings::default()
        };
        let keys: Vec<_> = bad.problems().into_iter().map(|problem| problem.key).collect();
        assert_eq!(
            keys,
            [
                "failure_threshold",
                "min_samples",
                "recovery_threshold",
                "trial_permits",
                "open_growth",
                "failure_ratio",
                "open_jitter",
                "open_max"
            ]
        );
    }
}
