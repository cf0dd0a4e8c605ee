//! A script under way: which call gets which step, and the answers that are rendered once.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use http::{HeaderMap, Method, header::CONTENT_TYPE, request::Parts};
use tidegate_runtime::clock::timer_now;
use tidegate_wire::{form, gemini::GeminiMethod};
use tokio::time::Instant;

use super::answer::Answer;
use super::ask::{Ask, Dialect, Glance, gemini_call};
use super::dialect;
use super::model_name;
use super::render::{Playback, render, whole};
use super::script::Script;
use super::step::{Act, Step};

/// Rendered answers that are kept for a plain script: every dialect for a few model names.
const MAX_RENDERED: usize = 64;

/// A script since it was set.
#[derive(Debug)]
pub(super) struct Course {
    pub(super) script: Script,
    since: Instant,
    taken: AtomicU64,
    rendered: Mutex<Vec<Rendered>>,
}

#[derive(Debug)]
struct Rendered {
    dialect: Dialect,
    is_stream: bool,
    model: String,
    reply: Playback,
}

impl Course {
    pub(super) fn start(script: Script) -> Self {
        let (taken, rendered) = (AtomicU64::new(0), Mutex::default());
        Self { script, since: timer_now(), taken, rendered }
    }

    /// What happens to a call.
    pub(super) fn reply(&self, number: u64, head: &Parts, body: &[u8]) -> Playback {
        let path = head.uri.path();
        if head.method == Method::GET {
            return self.reply_to_get(number, path, &head.headers);
        }
        let dialect = Dialect::of(path);
        if head.method != Method::POST {
            return refused(&Step::status(405), dialect, number);
        }
        if self.script.plain {
            return self.plain(dialect, path, body);
        }
        let content_type = head.headers.get(CONTENT_TYPE).map(|it| it.as_bytes());
        let asked = match content_type.and_then(form::boundary) {
            Some(Ok(boundary)) => Ask::read_form(dialect, body, boundary),
            _ => Ask::read(dialect, body).map(|ask| ask.named_by(path)),
        };
        let Some(ask) = asked else {
            return refused(&Step::status(400), dialect, number);
        };
        let step = self.step_for(&ask, &head.headers);
        render(&step, &ask, &Answer::new(number, &self.script.name, &ask, &step))
    }

    fn step_for(&self, ask: &Ask, headers: &HeaderMap) -> Step {
        if let Some(step) = self.step_of_key(headers) {
            return step;
        }
        let asked_for = self.script.model_names.then(|| model_name::step_of(&ask.model));
        if let Some(step) = asked_for.flatten() {
            return step;
        }
        let call = self.taken.fetch_add(1, Ordering::Relaxed);
        self.script.step_of_call(call).cloned().unwrap_or_else(|| self.phase())
    }

    /// What the call's key decides: rejected, a step of its own, or nothing.
    fn step_of_key(&self, headers: &HeaderMap) -> Option<Step> {
        if self.script.keys.is_empty() {
            return None;
        }
        let step = key_of(headers).and_then(|key| self.script.keys.get(key));
        match step {
            None => Some(Step::status(401)),
            Some(step) if step.act == Act::Ok => None,
            Some(step) => Some(step.clone()),
        }
    }

    fn phase(&self) -> Step {
        self.script.phase_at(self.since.elapsed()).cloned().unwrap_or_default()
    }

    /// Lists of models; whatever else a probe asks for does not exist.
    fn reply_to_get(&self, number: u64, path: &str, headers: &HeaderMap) -> Playback {
        let is_anthropic = headers.contains_key("anthropic-version");
        let dialect = match () {
            () if path.contains("/v1beta/") => Dialect::Gemini,
            () if is_anthropic => Dialect::Messages,
            () => Dialect::Chat,
        };
        let step = self.step_of_key(headers).unwrap_or_else(|| self.phase());
        let is_about_content = !matches!(
            step.act,
            Act::Status | Act::Redirect | Act::Close | Act::Reset | Act::NotHttp | Act::Hang
        );
        if !is_about_content {
            return refused(&step, dialect, number);
        }
        let path = path.trim_end_matches('/');
        let value = match path.rsplit_once("/models") {
            Some((_, "")) => dialect::models(&self.script.models, dialect),
            Some((_, id)) if id.starts_with('/') => dialect::model(&id[1..], dialect),
            _ => return refused(&Step::status(404), dialect, number),
        };
        let good = Step::ok().with_latency(step.latency);
        Playback::Play(whole(&good, Bytes::from(value.to_string())))
    }

    /// The same bytes for every request of a dialect and model.
    fn plain(&self, dialect: Dialect, path: &str, body: &[u8]) -> Playback {
        let glance: Glance<'_> = serde_json::from_slice(body).unwrap_or_default();
        let (mut model, mut is_stream) = (glance.model.unwrap_or_default(), glance.stream);
        if let Some(call) = gemini_call(path) {
            model = call.model.into();
            is_stream = call.method == GeminiMethod::StreamGenerateContent;
        }
        // Held for a look and a push; a panic elsewhere leaves a list that is still a list.
        let mut rendered = self.rendered.lock().unwrap_or_else(PoisonError::into_inner);
        let known = rendered.iter().find(|known| {
            known.dialect == dialect && known.is_stream == is_stream && known.model == model
        });
        if let Some(known) = known {
            return known.reply.clone();
        }
        let ask = Ask::blank(dialect, &model, is_stream);
        let step = self.script.phases.first().cloned().unwrap_or_default();
        let reply = render(&step, &ask, &Answer::new(0, &self.script.name, &ask, &step));
        if rendered.len() < MAX_RENDERED {
            let (model, reply) = (model.into_owned(), reply.clone());
            rendered.push(Rendered { dialect, is_stream, model, reply });
        }
        reply
    }
}

fn refused(step: &Step, dialect: Dialect, number: u64) -> Playback {
    let ask = Ask::blank(dialect, "", false);
    render(step, &ask, &Answer::new(number, "", &ask, step))
}

/// The key of a call, wherever its dialect puts it.
fn key_of(headers: &HeaderMap) -> Option<&str> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let bearer = text("authorization").and_then(|value| value.strip_prefix("Bearer "));
    bearer.or(text("x-api-key")).or(text("api-key")).or(text("x-goog-api-key"))
}
