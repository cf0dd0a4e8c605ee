//! `routes`: the names that clients ask for, and the tiers of targets behind them.
//!
//! The words of the file (`round_robin`, `fail_over`) are enums here, and turn into the core's by
//! `From`, so that the file format and the core can change apart from each other.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tidegate_core::{
    settings::{
        BudgetSettings, HoldSettings, LastResortSettings, OnAuthError, PinMode, RouteSettings,
        Tactic,
    },
    time::Millis,
};

use crate::duration::Duration;

/// A model name that clients ask for, and the targets behind it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RouteFile {
    /// One line for humans.
    #[schemars(example = &"short answers, classification")]
    pub about: Option<String>,
    /// Further model names this route answers to; `*` and `?` stand for any text and any letter.
    #[serde(default, rename = "match")]
    #[schemars(example = json!(["gpt-4o-mini", "claude-*-haiku"]))]
    pub matches: Vec<String>,
    /// Tiers of targets (`provider/model`), the first tier is tried first.
    #[schemars(example = json!([["ollama/qwen2.5:7b"], ["groq/llama-3.1-8b-instant"]]))]
    pub tiers: Vec<Vec<String>>,
    /// How one target of a tier is picked.
    #[serde(default)]
    #[schemars(example = &"least_latency")]
    pub pick: Pick,
    /// Shares under `pick: weighted`, by target; 1 where nothing is said, 0 only as a last choice.
    #[serde(default)]
    #[schemars(example = json!({"groq/llama-3.1-8b-instant": 3}))]
    pub weights: IndexMap<String, u32>,
    /// How sessions stick to targets.
    #[serde(default)]
    pub affinity: AffinityFile,
    /// The longest a whole request may take, all attempts together.
    #[serde(default = "default_deadline")]
    #[schemars(example = &"2m")]
    pub deadline: Duration,
    /// Hops beyond the first attempt; 0: no failover.
    #[serde(default = "default_max_hops")]
    #[schemars(example = 3)]
    pub max_hops: u32,
    /// The share of a client's remaining patience (the timeout that its SDK sends) after which an
    /// attempt that is still silent is left for another target.
    #[serde(default = "default_patience_share")]
    #[schemars(example = 0.5)]
    pub patience_share: f64,
    /// The budget of hops that are not free.
    #[serde(default)]
    pub retry_budget: RetryBudgetFile,
    /// How many attempts may go past the breaker or exclusion of one target.
    #[serde(default)]
    pub last_resort: LastResortFile,
    /// What a rejected key means for the request.
    #[serde(default)]
    #[schemars(example = &"surface")]
    pub on_auth_error: OnAuthErrorWord,
    /// What is held of a stream before it is released, beyond the first content.
    #[serde(default)]
    pub hold: HoldFile,
}

fn default_deadline() -> Duration {
    RouteSettings::default().deadline.into()
}

fn default_max_hops() -> u32 {
    RouteSettings::default().max_hops
}

fn default_patience_share() -> f64 {
    RouteSettings::default().patience_share
}

/// How sessions stick to targets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AffinityFile {
    /// For how long, from a session's first request; 0s: not at all.
    #[schemars(example = &"30m")]
    pub ttl: Duration,
    /// What a pin follows.
    #[schemars(example = &"answered")]
    pub pin: PinWord,
}

impl Default for AffinityFile {
    fn default() -> Self {
        Self { ttl: RouteSettings::default().affinity_ttl.into(), pin: PinWord::Selected }
    }
}

/// The budget of hops that are not free.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RetryBudgetFile {
    /// How far back hops and requests are counted.
    #[schemars(example = &"10s")]
    pub window: Duration,
    /// Hops allowed per request.
    #[schemars(example = 0.2, range(min = 0))]
    pub ratio: f64,
    /// Hops allowed besides.
    #[schemars(example = 100)]
    pub floor: u32,
}

impl Default for RetryBudgetFile {
    fn default() -> Self {
        let BudgetSettings { window, ratio, floor } = BudgetSettings::default();
        Self { window: window.into(), ratio, floor }
    }
}

impl RetryBudgetFile {
    /// The core's settings for it.
    #[must_use]
    pub const fn settings(&self) -> BudgetSettings {
        BudgetSettings { window: self.window.millis(), ratio: self.ratio, floor: self.floor }
    }
}

/// The limit of last resorts: attempts at a target past its breaker or exclusion, made when nothing
/// better is left. Both keys 0: there are none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LastResortFile {
    /// How many may be made at once, for each target of the route.
    #[schemars(example = 10)]
    pub burst: u32,
    /// How many more may be made every second.
    #[schemars(example = 0.5, range(min = 0))]
    pub per_second: f64,
}

impl Default for LastResortFile {
    fn default() -> Self {
        let LastResortSettings { burst, per_second } = LastResortSettings::default();
        Self { burst, per_second }
    }
}

impl LastResortFile {
    /// The core's settings for it.
    #[must_use]
    pub const fn settings(&self) -> LastResortSettings {
        LastResortSettings { burst: self.burst, per_second: self.per_second }
    }
}

/// What is held of a stream before it is released, beyond the first content. What goes wrong
/// meanwhile is tried elsewhere; of two limits the one reached first ends the hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HoldFile {
    /// Until this many events with content have come; 0: no such limit.
    #[schemars(example = 16)]
    pub tokens: u32,
    /// Until this much time has passed since the first content; 0s: no such limit.
    #[schemars(example = &"200ms")]
    pub time: Duration,
}

impl Default for HoldFile {
    fn default() -> Self {
        Self { tokens: 0, time: Millis::ZERO.into() }
    }
}

impl HoldFile {
    /// The core's settings for it.
    #[must_use]
    pub const fn settings(&self) -> HoldSettings {
        HoldSettings { events: self.tokens, time: self.time.millis() }
    }
}

/// How one target of a tier is picked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Pick {
    /// Each with the same chance.
    #[default]
    Random,
    /// In file order, one after the other.
    RoundRobin,
    /// At random in proportion to `weights`.
    Weighted,
    /// The better of two by recent time to first content.
    LeastLatency,
    /// The one with the fewest attempts in flight.
    LeastBusy,
}

impl From<Pick> for Tactic {
    fn from(word: Pick) -> Self {
        match word {
            Pick::Random => Self::Random,
            Pick::RoundRobin => Self::RoundRobin,
            Pick::Weighted => Self::Weighted,
            Pick::LeastLatency => Self::LeastLatency,
            Pick::LeastBusy => Self::LeastBusy,
        }
    }
}

/// What a pin follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PinWord {
    /// The target selected first.
    #[default]
    Selected,
    /// The target whose success ended the request.
    Answered,
}

impl From<PinWord> for PinMode {
    fn from(word: PinWord) -> Self {
        match word {
            PinWord::Selected => Self::Selected,
            PinWord::Answered => Self::Answered,
        }
    }
}

/// What a rejected key means for the request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnAuthErrorWord {
    /// It goes on to another target.
    #[default]
    FailOver,
    /// It ends there, and the client sees the rejection.
    Surface,
}

impl From<OnAuthErrorWord> for OnAuthError {
    fn from(word: OnAuthErrorWord) -> Self {
        match word {
            OnAuthErrorWord::FailOver => Self::FailOver,
            OnAuthErrorWord::Surface => Self::Surface,
        }
    }
}
