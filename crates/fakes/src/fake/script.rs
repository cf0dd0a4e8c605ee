//! What a fake does, call after call and as time goes by.
//!
//! Who decides about a call, first found:
//! 1. `keys`: a call without one of them is rejected; a key whose step is not `ok` gets that step.
//! 2. The model name, if it is a word of the grammar (`model_name.rs`).
//! 3. `steps`, one call after the other, until they are used up (or over again: `repeat_steps`).
//! 4. `phases`, by the time since the script was set (over again: `repeat_phases`).
//! 5. A plain good answer.
//!
//! A `GET` (a list of models, a probe) uses up no step: a test that counts calls must not depend
//! on probes. Phases and keys count for it too.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;

use super::step::{Step, duration};

/// What a fake does. `Script::default()` answers everything at once.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Script {
    /// The name it answers with.
    pub name: String,
    /// The keys it takes, and what each is good for; none: it takes every call.
    pub keys: BTreeMap<String, Step>,
    /// What it does with the first calls, in order.
    pub steps: Vec<Step>,
    /// Whether `steps` begins again when it is used up.
    pub repeat_steps: bool,
    /// What it does from which moment on, in order of `at`.
    pub phases: Vec<Step>,
    /// After how long `phases` begins again; `0s`: never.
    #[serde(deserialize_with = "duration")]
    pub repeat_phases: Duration,
    /// The models it lists.
    pub models: Vec<String>,
    /// Whether a model name may ask for a behaviour.
    pub model_names: bool,
    /// Answers everything with bytes rendered once, looking at the model name and the stream flag
    /// only, and records nothing: for benches. Only the first phase (or none) counts.
    pub plain: bool,
    /// How many calls are kept for reading.
    pub record: usize,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            name: "fake".to_owned(),
            keys: BTreeMap::new(),
            steps: Vec::new(),
            repeat_steps: false,
            phases: Vec::new(),
            repeat_phases: Duration::ZERO,
            models: vec!["fake-small".to_owned(), "fake-large".to_owned()],
            model_names: true,
            plain: false,
            record: 1000,
        }
    }
}

impl Script {
    /// Does the same with every call.
    #[must_use]
    pub fn always(step: Step) -> Self {
        Self { phases: vec![step], ..Self::default() }
    }

    /// Does these things in order, then answers well.
    #[must_use]
    pub fn steps(steps: Vec<Step>) -> Self {
        Self { steps, ..Self::default() }
    }

    /// Answers everything at once with the same bytes, for benches.
    #[must_use]
    pub fn plain() -> Self {
        Self { plain: true, record: 0, ..Self::default() }
    }

    /// The name it answers with.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = name.to_owned();
        self
    }

    /// Understands a script written as JSON.
    ///
    /// # Errors
    /// A lowercase fragment that says what is wrong and where.
    pub fn from_json(text: &[u8]) -> Result<Self, String> {
        let script: Self = serde_json::from_slice(text)
            .map_err(|error| format!("the script cannot be understood: {error}"))?;
        let steps = [("steps", &script.steps), ("phases", &script.phases)];
        for (list, steps) in steps {
            for (index, step) in steps.iter().enumerate() {
                if let Some(complaint) = step.complaint() {
                    return Err(format!("`{list}[{index}]`: {complaint}"));
                }
            }
        }
        let mut of_keys = script.keys.iter();
        let complaint = of_keys.find_map(|(key, step)| Some((key, step.complaint()?)));
        match complaint {
            Some((key, complaint)) => Err(format!("`keys.{key}`: {complaint}")),
            None => Ok(script),
        }
    }

    /// The step of the n-th call (from 0), while there are any.
    pub(super) fn step_of_call(&self, call: u64) -> Option<&Step> {
        let times = |step: &Step| u64::from(step.times.unwrap_or(1));
        let round: u64 = self.steps.iter().map(times).sum();
        let mut left = if self.repeat_steps && round > 0 { call % round } else { call };
        self.steps.iter().find(|step| {
            let is_it = left < times(step);
            left = left.saturating_sub(times(step));
            is_it
        })
    }

    /// The phase at a moment since the script was set: the latest that has begun.
    pub(super) fn phase_at(&self, elapsed: Duration) -> Option<&Step> {
        let round_ms = self.repeat_phases.as_millis();
        let elapsed_ms = elapsed.as_millis();
        let elapsed_ms = if round_ms > 0 { elapsed_ms % round_ms } else { elapsed_ms };
        let begun = self.phases.iter().filter(|phase| phase.at.as_millis() <= elapsed_ms);
        // The later one in the list wins a tie: it was written as the correction.
        begun.max_by_key(|phase| phase.at)
    }
}

#[cfg(test)]
mod tests {
    use super::super::step::Act;
    use super::*;

    fn status_of(step: Option<&Step>) -> Option<u16> {
        step.and_then(|step| step.status)
    }

    #[test]
    fn steps_are_taken_in_order_and_then_used_up_or_repeated() {
        let steps = vec![Step::status(500).times(2), Step::status(429)];
        let mut script = Script::steps(steps);
        let taken = |script: &Script| -> Vec<Option<u16>> {
            (0..5).map(|call| status_of(script.step_of_call(call))).collect()
        };
        assert_eq!(taken(&script), [Some(500), Some(500), Some(429), None, None]);
        script.repeat_steps = true;
        assert_eq!(taken(&script), [Some(500), Some(500), Some(429), Some(500), Some(500)]);
        script.steps.clear();
        assert_eq!(taken(&script), [None; 5]);
    }

    #[test]
    fn a_phase_lasts_until_the_next_and_all_begin_again() {
        let at = Duration::from_secs;
        let script = Script {
            phases: vec![Step::status(500).at(at(10)), Step::status(503).at(at(20))],
            repeat_phases: at(30),
            ..Script::default()
        };
        let seen = |second| status_of(script.phase_at(at(second)));
        assert_eq!([seen(0), seen(9), seen(10), seen(19)], [None, None, Some(500), Some(500)]);
        assert_eq!(
            [seen(20), seen(29), seen(30), seen(40)],
            [Some(503), Some(503), None, Some(500)]
        );
    }

    #[test]
    fn a_script_is_read_from_json() {
        let text = br#"{"name": "ebb", "repeat_phases": "3m",
            "steps": [{"do": "status", "status": 429, "retry_after": "-1", "times": 3}],
            "phases": [{"at": "40s", "do": "cut", "after": 3, "token_gap": "20ms"}]}"#;
        let script = Script::from_json(text).expect("it is sound");
        assert_eq!(script.steps[0].retry_after.as_deref(), Some("-1"));
        assert_eq!(script.phases[0].act, Act::Cut);
        assert_eq!(script.phases[0].token_gap, Duration::from_millis(20));
        assert_eq!(script.repeat_phases, Duration::from_secs(180));
    }

    #[test]
    fn a_bad_script_is_refused_with_the_place_of_the_mistake() {
        let cases = [
            (r#"{"step": []}"#, "unknown field `step`"),
            (r#"{"steps": [{"do": "explode"}]}"#, "unknown variant `explode`"),
            (r#"{"steps": [{"latency": "-5s"}]}"#, "a duration cannot be negative: `-5s`"),
            (r#"{"steps": [{}, {"status": 99}]}"#, "`steps[1]`: `99` is no final status"),
            (r#"{"phases": [{"tokens": 4000000000}]}"#, "`phases[0]`: an answer has at most"),
            (r#"{"keys": {"k": {"retry_after": "a\nb"}}}"#, "`keys.k`: `retry-after` cannot"),
            ("", "EOF"),
        ];
        for (text, words) in cases {
            let said = Script::from_json(text.as_bytes()).expect_err(text);
            assert!(said.contains(words), "{text}: {said}");
        }
    }
}
