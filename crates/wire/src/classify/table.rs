//! What error bodies say, as data: the one place that knows providers' words.
//!
//! The first row that matches decides, so narrow rows stand before wide ones. A row exists only
//! where the body says something else than the status line; the golden corpus has an answer for
//! every row.
//!
//! A status of 200 stands for every 2xx with an error inside, also as the first event of a stream.

use tidegate_core::outcome::OutcomeKind::{
    self, AuthRejected, ClientFault, Exhausted, ModelGone, Overloaded, RateLimited, Timeout,
    TooLong,
};

use super::Api;

/// Where a row looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// An identifier: code, type, status, reason. All of it, letter case aside.
    Word,
    /// The id of a violated quota. A part of it.
    Quota,
    /// The message, from its beginning; `*` stands for a run without white space. A caller who
    /// is echoed further on can say nothing here.
    Message,
}

/// One row.
#[derive(Debug)]
pub struct Row {
    /// The protocol it belongs to; all if absent.
    pub api: Option<Api>,
    /// The statuses it may come with.
    pub statuses: &'static [u16],
    /// Where to look.
    pub place: Place,
    /// What must stand there.
    pub text: &'static str,
    /// What it means.
    pub kind: OutcomeKind,
    /// Who says so, and why it means that.
    pub note: &'static str,
}

const fn word(
    statuses: &'static [u16],
    text: &'static str,
    kind: OutcomeKind,
    note: &'static str,
) -> Row {
    Row { api: None, statuses, place: Place::Word, text, kind, note }
}

const fn message(
    statuses: &'static [u16],
    text: &'static str,
    kind: OutcomeKind,
    note: &'static str,
) -> Row {
    Row { api: None, statuses, place: Place::Message, text, kind, note }
}

const fn quota(text: &'static str, kind: OutcomeKind, note: &'static str) -> Row {
    Row { api: None, statuses: MONEY, place: Place::Quota, text, kind, note }
}

impl Row {
    const fn of(self, api: Api) -> Self {
        Self { api: Some(api), ..self }
    }
}

/// Where "the purse is empty" may hide.
const MONEY: &[u16] = &[200, 400, 403, 429];
/// Where "no such model" may hide.
const MODEL: &[u16] = &[200, 400, 403, 404];
/// Where the caller's own fault may hide behind another class.
const FAULT: &[u16] = &[200, 403, 500];
/// Where "too long for the context" may hide.
const LENGTH: &[u16] = &[200, 400, 413];
/// A key that is refused with the status of a bad request.
const KEY: &[u16] = &[200, 400];

/// The table.
pub static ROWS: &[Row] = &[
    // Quota and credit.
    word(MONEY, "insufficient_quota", Exhausted, "OpenAI: looks like a rate limit, is money"),
    word(MONEY, "billing_hard_limit_reached", Exhausted, "OpenAI: the account's own limit"),
    word(MONEY, "billing_not_active", Exhausted, "OpenAI: the account is not paid for"),
    word(MONEY, "credit_balance_exhausted", Exhausted, "no credit left"),
    word(MONEY, "enforced_spend_limit_reached", Exhausted, "Anthropic: the workspace's limit"),
    word(MONEY, "billing_error", Exhausted, "Anthropic: payment trouble, mostly with a 402"),
    word(MONEY, "ServiceQuotaExceededException", Exhausted, "Bedrock: the account's quota"),
    message(MONEY, "Your credit balance is too low", Exhausted, "Anthropic: a 400 about money"),
    message(MONEY, "You have reached your specified API usage limits", Exhausted, "Anthropic"),
    message(MONEY, "Key limit exceeded", Exhausted, "OpenRouter: the key's own limit, a 403"),
    message(MONEY, "Your newly created team doesn't have any credits", Exhausted, "xAI: a 403"),
    message(MONEY, "Your team * has either used all available credits", Exhausted, "xAI"),
    message(MONEY, "Out of call volume quota", Exhausted, "Azure: the gateway's quota, a 403"),
    quota("PerDay", Exhausted, "Gemini: comes back tomorrow, hours away"),
    message(MONEY, "Quota exceeded for metric: *, limit: 0", Exhausted, "Gemini: never allowed"),
    quota("PerMinute", RateLimited, "Gemini: comes back within the minute"),
    word(KEY, "RESOURCE_EXHAUSTED", RateLimited, "Gemini: 429 by another name"),
    message(&[429], "You exceeded your current quota", Exhausted, "OpenAI and likenesses")
        .of(Api::OpenAi),
    // Keys.
    word(KEY, "API_KEY_INVALID", AuthRejected, "Gemini: a refused key is a 400"),
    word(KEY, "invalid_api_key", AuthRejected, "OpenAI likenesses with a 400"),
    word(KEY, "authentication_error", AuthRejected, "Anthropic and DeepSeek, inside a 200"),
    message(KEY, "Incorrect API key provided", AuthRejected, "xAI: a 400"),
    word(KEY, "UnrecognizedClientException", AuthRejected, "Bedrock: unknown key"),
    word(KEY, "ExpiredTokenException", AuthRejected, "Bedrock: the session's key has expired"),
    // Models.
    word(MODEL, "model_not_found", ModelGone, "OpenAI, Groq; a 403 if the project may not use it"),
    word(MODEL, "model_decommissioned", ModelGone, "Groq: a 400"),
    word(MODEL, "DeploymentNotFound", ModelGone, "Azure: no such deployment"),
    word(MODEL, "invalid_model", ModelGone, "Mistral: a 400"),
    word(MODEL, "FTUFormNotFilled", ModelGone, "Bedrock: the model is not granted"),
    message(MODEL, "Model use case details have not been submitted", ModelGone, "Bedrock: same"),
    message(MODEL, "The provided model identifier is invalid", ModelGone, "Bedrock: a 400"),
    message(MODEL, "You don't have access to the model", ModelGone, "Bedrock: a 403, not our key"),
    message(MODEL, "The model `*` does not exist", ModelGone, "OpenAI, vLLM"),
    message(MODEL, "The model `*` has been deprecated", ModelGone, "OpenAI: retired"),
    message(MODEL, "model '*' not found", ModelGone, "Ollama"),
    message(MODEL, "model \"*\" not found", ModelGone, "Ollama, older"),
    message(MODEL, "models/* is not found", ModelGone, "Gemini"),
    message(MODEL, "Model Not Exist", ModelGone, "DeepSeek: a 400"),
    message(MODEL, "* is not a valid model ID", ModelGone, "OpenRouter: a 400"),
    message(MODEL, "No endpoints found for", ModelGone, "OpenRouter: nobody serves it"),
    message(MODEL, "model: ", ModelGone, "Anthropic: its whole message is the name")
        .of(Api::Anthropic),
    // Too long for the target's context; another may have a larger one.
    word(LENGTH, "context_length_exceeded", TooLong, "OpenAI, Azure, Groq"),
    word(LENGTH, "exceed_context_size_error", TooLong, "llama.cpp"),
    word(&[413], "request_too_large", TooLong, "Anthropic: more bytes than it takes"),
    message(LENGTH, "This model's maximum context length is", TooLong, "vLLM, DeepSeek, SGLang"),
    message(LENGTH, "This model's maximum prompt length is", TooLong, "xAI"),
    message(LENGTH, "This endpoint's maximum context length is", TooLong, "OpenRouter"),
    message(LENGTH, "The decoder prompt (length *) is longer than", TooLong, "vLLM, newer"),
    message(LENGTH, "Prompt contains * tokens", TooLong, "Mistral"),
    message(LENGTH, "too many tokens:", TooLong, "Cohere"),
    message(LENGTH, "prompt is too long", TooLong, "Anthropic"),
    message(LENGTH, "input length and `max_tokens` exceed context limit", TooLong, "Anthropic"),
    message(LENGTH, "The input token count (*) exceeds the maximum", TooLong, "Gemini"),
    message(LENGTH, "The input token count exceeds the maximum", TooLong, "Gemini, older"),
    message(LENGTH, "Input is too long for requested model", TooLong, "Bedrock"),
    // More bytes or pixels than the target takes; vendors differ in that too.
    message(LENGTH, "messages.*: image exceeds", TooLong, "Anthropic: bytes of one image"),
    message(
        LENGTH,
        "messages.*: At least one of the image dimensions",
        TooLong,
        "Anthropic: pixels",
    ),
    message(
        LENGTH,
        "Request payload size exceeds the limit",
        TooLong,
        "Gemini: bytes of all parts",
    ),
    word(LENGTH, "image_too_large", TooLong, "OpenAI: one image"),
    word(LENGTH, "image_file_too_large", TooLong, "OpenAI: the same, for its bytes"),
    // The caller's fault where the status line says otherwise.
    word(&[403, 500], "context_length_exceeded", ClientFault, "never the backend's fault"),
    word(FAULT, "content_filter", ClientFault, "Azure: going elsewhere would get round a policy"),
    word(FAULT, "ResponsibleAIPolicyViolation", ClientFault, "Azure: the inner code"),
    word(FAULT, "content_policy_violation", ClientFault, "OpenAI: the same for images"),
    word(FAULT, "moderation_blocked", ClientFault, "OpenAI: the same"),
    word(FAULT, "flagged_input", ClientFault, "OpenRouter: moderation, a 403"),
    word(FAULT, "invalid_prompt", ClientFault, "OpenAI: refused for what it asks"),
    // Limits and trouble where the status line says otherwise.
    word(&[200, 400, 403], "rate_limit_exceeded", RateLimited, "OpenAI, inside a stream"),
    word(&[200, 400, 403], "rate_limit_error", RateLimited, "Anthropic, inside a stream"),
    word(&[200, 400], "ThrottlingException", RateLimited, "Bedrock, also inside a stream"),
    word(&[200, 500], "overloaded_error", Overloaded, "Anthropic, inside a stream"),
    word(&[200, 500], "server_is_overloaded", Overloaded, "OpenAI, inside a stream"),
    word(&[200], "ServiceUnavailableException", Overloaded, "Bedrock, inside a stream"),
    word(&[200, 504], "timeout_error", Timeout, "Anthropic: its own deadline"),
    word(&[200, 504], "DEADLINE_EXCEEDED", Timeout, "Gemini: its own deadline"),
    word(&[200], "ModelTimeoutException", Timeout, "Bedrock, inside a stream"),
];
