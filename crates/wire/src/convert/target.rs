//! What a writer of requests must know of the target.

/// The target of a converted request.
#[derive(Clone, Copy, Debug)]
pub struct TargetProfile<'a> {
    /// The model's name at the provider.
    pub model: &'a str,
    /// The host of the provider's address, by which servers with oddities are known.
    pub host: &'a str,
}

/// Model families of OpenAI that think, and refuse settings of sampling.
const OPENAI_REASONING: [&str; 4] = ["o1", "o3", "o4", "gpt-5"];

/// Hosts whose servers take `max_completion_tokens`; elsewhere the older name is the known one.
const MAX_COMPLETION_TOKENS: [&str; 3] =
    ["api.openai.com", ".openai.azure.com", ".cognitiveservices.azure.com"];

impl TargetProfile<'_> {
    /// Whether the model is one of OpenAI's that think.
    #[must_use]
    pub fn is_openai_reasoning_model(&self) -> bool {
        let name = self.model.rsplit('/').next().unwrap_or(self.model);
        OPENAI_REASONING.iter().any(|family| name.starts_with(family))
    }

    /// Whether a limit of tokens has OpenAI's newer name. Their thinking models refuse the older.
    #[must_use]
    pub fn wants_max_completion_tokens(&self) -> bool {
        let is_known = MAX_COMPLETION_TOKENS.iter().any(|host| self.host.ends_with(host));
        is_known || self.is_openai_reasoning_model()
    }
}
