//! Whether what clients need can be said to a target of another dialect at all.
//!
//! A target may be able to do each thing that requests need and still refuse them together: models
//! before Gemini 3 give no JSON beside tools. The converters know it, so a sample of what clients
//! need is converted as the data plane converts their requests. A target that cannot be asked is
//! taken to lack what was needed, which is how the core gets to know of it.

use serde_json::{Value, json};
use tidegate_core::{route::Needs, settings::Abilities, settings::Settings, wire_format::SentAs};
use tidegate_wire::{
    convert::{
        pair::{DialectPair, dialect_of},
        target::TargetProfile,
    },
    dialect::Dialect,
};

/// Takes abilities from the targets that cannot be asked what these requests need.
pub(super) fn fit(settings: &mut Settings, needs: &Needs) {
    for backend in &mut settings.backends {
        let model = backend.id.split_once('/').map_or("", |(_, model)| model);
        if is_refused(needs, &backend.abilities, model) {
            deny(needs, &mut backend.abilities);
        }
    }
}

fn is_refused(needs: &Needs, abilities: &Abilities, model: &str) -> bool {
    let Ok(SentAs::Converted(format)) = needs.sent_as(abilities) else { return false };
    // Whose client sends it makes no difference to what a target can be asked. Chat Completions can
    // be asked everything that a scenario knows, so there is no sample for it.
    let Some(pair) = DialectPair::new(Dialect::OpenAiChat, dialect_of(format)) else {
        return false;
    };
    let target = TargetProfile { model, host: "" };
    pair.request(sample(needs).to_string().as_bytes(), &target, 0).is_err()
}

/// A request of Chat Completions that needs this.
fn sample(needs: &Needs) -> Value {
    let mut parts = vec![json!({"type": "text", "text": "hi"})];
    if needs.vision {
        let url = "data:image/png;base64,AAAA";
        parts.push(json!({"type": "image_url", "image_url": {"url": url}}));
    }
    if needs.documents {
        let data = "data:application/pdf;base64,AAAA";
        parts.push(json!({"type": "file", "file": {"filename": "a.pdf", "file_data": data}}));
    }
    let mut body = json!({"messages": [{"role": "user", "content": parts}]});
    if needs.tools {
        body["tools"] = json!([{"type": "function", "function": {"name": "f"}}]);
    }
    if needs.json_schema {
        let schema = json!({"name": "n", "schema": {"type": "object"}});
        body["response_format"] = json!({"type": "json_schema", "json_schema": schema});
    }
    if needs.reasoning {
        body["reasoning_effort"] = json!("high");
    }
    body
}

/// Denies one thing that was needed, so that the target is no candidate.
fn deny(needs: &Needs, abilities: &mut Abilities) {
    let denied = match needs {
        Needs { json_schema: true, .. } => &mut abilities.json_schema,
        Needs { documents: true, .. } => &mut abilities.documents,
        Needs { vision: true, .. } => &mut abilities.vision,
        Needs { reasoning: true, .. } => &mut abilities.reasoning,
        _ => &mut abilities.tools,
    };
    *denied = Some(false);
}
