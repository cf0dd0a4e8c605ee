//! What a writer of requests must know of the target.

use super::notes::Notes;
use super::request::Effort;

/// The target of a converted request.
#[derive(Clone, Copy, Debug)]
pub struct TargetProfile<'a> {
    /// The model's name at the provider.
    pub model: &'a str,
    /// The host of the provider's address, by which servers with oddities are known.
    pub host: &'a str,
}

/// How the names of models begin that are not OpenAI's and that Azure serves beside OpenAI's.
const OTHER_MAKERS: [&str; 15] = [
    "claude",
    "codestral",
    "cohere",
    "command",
    "deepseek",
    "glm",
    "gpt-oss",
    "grok",
    "jamba",
    "kimi",
    "llama",
    "meta-",
    "ministral",
    "mistral",
    "phi-",
];

/// What becomes of a level of effort in a request with tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EffortBesideTools {
    /// It is taken.
    Taken,
    /// It is refused.
    Refused,
    /// It must be `none`.
    MustBeOff,
}

impl TargetProfile<'_> {
    /// The model's name without a path before it.
    fn name(&self) -> &str {
        self.model.rsplit('/').next().unwrap_or(self.model)
    }

    /// Whether the model is one of OpenAI's that think, and refuse settings of sampling.
    #[must_use]
    pub fn is_openai_reasoning_model(&self) -> bool {
        let name = self.name();
        let is_five = name.starts_with("gpt-5") && !name.contains("chat");
        is_five || is_o_series(name) || name.contains("codex")
    }

    /// Whether the model is one of OpenAI's that anybody may run, and that think.
    #[must_use]
    pub fn is_open_reasoning_model(&self) -> bool {
        self.name().starts_with("gpt-oss")
    }

    /// Whether the model is one of OpenAI's that do not think, and refuse to be told how much.
    #[must_use]
    pub fn is_openai_plain_model(&self) -> bool {
        let name = self.name();
        let is_known = ["gpt-3", "gpt-4", "chatgpt"].iter().any(|it| name.starts_with(it));
        is_known || (name.starts_with("gpt-5") && name.contains("chat"))
    }

    /// Whether the model is of the o-series, which refuses to be told about parallel calls.
    #[must_use]
    pub fn is_of_o_series(&self) -> bool {
        is_o_series(self.name())
    }

    /// The number behind the point of a name like `gpt-5.6-mini`.
    fn minor(&self) -> Option<u32> {
        let rest = self.name().strip_prefix("gpt-5.")?;
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    }

    /// What Chat Completions does with a level of effort beside tools. From GPT-5.4 on it refuses
    /// both together, and from GPT-5.6 on it wants to be told that there shall be no reasoning,
    /// because otherwise there is.
    #[must_use]
    pub fn effort_beside_tools(&self) -> EffortBesideTools {
        match self.minor() {
            Some(4 | 5) => EffortBesideTools::Refused,
            Some(6..) => EffortBesideTools::MustBeOff,
            _ => EffortBesideTools::Taken,
        }
    }

    /// OpenAI's word for this much thinking that is nearest to it among those the model takes.
    ///
    /// Checked on 17 November 2026 against OpenAI's guide to reasoning, Microsoft's list of levels
    /// by model and answers of the API that public code quotes. Not confirmed: `max`, which GPT-5.6
    /// is said to have above `xhigh`, so that it is never sent.
    #[must_use]
    pub fn effort_word(&self, effort: Effort, notes: &mut Notes) -> &'static str {
        let name = self.name();
        let minor = self.minor();
        let is_first_five = name.starts_with("gpt-5") && minor.is_none();
        // Models of this kind always think, and the first of them in one way only.
        let is_pro = name.starts_with("gpt-5") && name.contains("-pro");
        let nearest = match effort {
            _ if is_pro && is_first_five => Effort::High,
            Effort::Off | Effort::Minimal | Effort::Low if is_pro => Effort::Medium,
            Effort::Off if minor.is_some() && !name.contains("codex") => Effort::Off,
            Effort::Off | Effort::Minimal if is_first_five && !name.contains("codex") => {
                Effort::Minimal
            }
            Effort::Off | Effort::Minimal if self.is_openai_reasoning_model() => Effort::Low,
            Effort::Highest if minor.is_some_and(|it| it > 1) || name.contains("codex-max") => {
                Effort::Highest
            }
            Effort::Highest => Effort::High,
            other => other,
        };
        if nearest != effort {
            notes.clamped("reasoning", "this model has no such level of effort");
        }
        nearest.openai_word()
    }

    /// Whether the model is known to be none of OpenAI's own.
    #[must_use]
    pub fn is_of_another_maker(&self) -> bool {
        let name = self.name().to_ascii_lowercase();
        OTHER_MAKERS.iter().any(|maker| name.starts_with(maker))
    }
}

/// `o1`, `o3-mini` and the like.
fn is_o_series(name: &str) -> bool {
    let rest = name.strip_prefix('o');
    rest.is_some_and(|rest| rest.starts_with(|letter: char| letter.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_asked_for_a_level_that_it_has() {
        let check = |model: &str, effort: Effort, expected: &str, is_noted: bool| {
            let mut notes = Notes::default();
            let target = TargetProfile { model, host: "" };
            assert_eq!(target.effort_word(effort, &mut notes), expected, "{model} {effort:?}");
            assert_eq!(!notes.as_slice().is_empty(), is_noted, "{model} {effort:?}");
        };
        check("o3", Effort::Off, "low", true);
        check("o4-mini", Effort::Medium, "medium", false);
        check("gpt-5-mini", Effort::Off, "minimal", true);
        check("gpt-5-codex", Effort::Minimal, "low", true);
        check("gpt-5.1", Effort::Off, "none", false);
        check("gpt-5.3-codex", Effort::Off, "low", true);
        check("gpt-5-pro", Effort::Low, "high", true);
        check("gpt-5.4-pro", Effort::Low, "medium", true);
        check("gpt-5.4-pro", Effort::Highest, "xhigh", false);
        check("gpt-5.1", Effort::Highest, "high", true);
        check("gpt-5.2", Effort::Highest, "xhigh", false);
        check("gpt-5.10-mini", Effort::Highest, "xhigh", false);
        check("gpt-oss-120b", Effort::Minimal, "minimal", false);
        let is_reasoning = |model| TargetProfile { model, host: "" }.is_openai_reasoning_model();
        assert!(is_reasoning("o3") && is_reasoning("openai/gpt-5.1"));
        assert!(!is_reasoning("gpt-5-chat-latest") && !is_reasoning("gpt-4.1"));
    }
}
