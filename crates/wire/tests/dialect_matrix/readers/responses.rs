//! OpenAI Responses.

use serde_json::{Map, Value};

use crate::asked::{Asked, Choice, Piece, Speaker, list, parsed, schema, text};
use crate::seen::{Seen, SeenCall, SeenFrame, SeenUsage, count, must};

pub(crate) fn asked(body: &Value) -> Asked {
    let mut asked = Asked { system: text(&body["instructions"]), ..Asked::default() };
    if let Value::String(said) = &body["input"] {
        asked.say(Speaker::User, vec![Piece::Text(said.clone())]);
    }
    for item in list(&body["input"]) {
        match item["type"].as_str().unwrap_or("message") {
            "function_call" => asked.say(
                Speaker::Model,
                vec![Piece::Call {
                    id: text(&item["call_id"]),
                    name: text(&item["name"]),
                    arguments: parsed(&item["arguments"]),
                }],
            ),
            "function_call_output" => {
                let id = text(&item["call_id"]);
                let said = joined(&item["output"]);
                asked.say(Speaker::User, vec![Piece::Result { id, text: said }]);
            }
            _ => {
                let is_model = item["role"] == "assistant";
                let speaker = if is_model { Speaker::Model } else { Speaker::User };
                let pieces = match &item["content"] {
                    Value::String(said) => vec![Piece::Text(said.clone())],
                    parts => list(parts).iter().map(|part| piece(part, is_model)).collect(),
                };
                asked.say(speaker, pieces);
            }
        }
    }
    for tool in list(&body["tools"]) {
        assert_eq!(tool["strict"], false, "a tool is strict unless it says otherwise");
        let input = schema(&tool["parameters"]);
        asked.tools.push((text(&tool["name"]), text(&tool["description"]), input));
    }
    asked.choice = match &body["tool_choice"] {
        Value::String(word) => Some(match word.as_str() {
            "none" => Choice::Never,
            "required" => Choice::Any,
            _ => Choice::Auto,
        }),
        Value::Object(named) => Some(Choice::Named(text(&named["name"]))),
        _ => None,
    };
    asked.parallel = body["parallel_tool_calls"].as_bool();
    asked.max_tokens = body["max_output_tokens"].as_u64();
    asked.output_schema = body["text"]["format"].get("schema").cloned();
    asked.thinks = body["reasoning"]["effort"].is_string();
    asked
}

fn joined(content: &Value) -> String {
    match content {
        Value::String(said) => said.clone(),
        other => {
            let texts: Vec<String> = list(other).iter().map(|part| text(&part["text"])).collect();
            texts.join("\n")
        }
    }
}

fn piece(part: &Value, is_model: bool) -> Piece {
    match part["type"].as_str() {
        Some("input_image") => Piece::Image(text(&part["image_url"])),
        kind => {
            let expected = if is_model { "output_text" } else { "input_text" };
            assert_eq!(kind, Some(expected), "each side has its own kind of text");
            Piece::Text(text(&part["text"]))
        }
    }
}

pub(crate) fn seen(body: &Value) -> Result<Seen, String> {
    must(body["object"] == "response" && body["id"].is_string(), "no response")?;
    must(body["created_at"].is_number() && body["error"].is_null(), "no `created_at`")?;
    let status = text(&body["status"]);
    let stop = match status.as_str() {
        "completed" => status,
        "incomplete" => format!("incomplete: {}", text(&body["incomplete_details"]["reason"])),
        _ => return Err(format!("status {status}")),
    };
    let mut seen = Seen { stop, usage: usage(&body["usage"]), ..Seen::default() };
    for item in list(&body["output"]) {
        must(item["id"].is_string(), "an item without id")?;
        match item["type"].as_str() {
            Some("message") => {
                for part in list(&item["content"]) {
                    seen.text.push_str(&text(&part["text"]));
                    seen.refusal.push_str(&text(&part["refusal"]));
                    let is_text = part["type"] == "output_text";
                    must(!is_text || part["annotations"].is_array(), "no annotations")?;
                }
            }
            Some("reasoning") => {
                for part in list(&item["summary"]) {
                    must(part["type"] == "summary_text", "a summary of unknown kind")?;
                    seen.thinking.push_str(&text(&part["text"]));
                }
            }
            Some("function_call") => seen.calls.push(SeenCall {
                id: text(&item["call_id"]),
                name: text(&item["name"]),
                arguments: parsed(&item["arguments"]),
            }),
            _ => return Err(format!("an item of unknown kind: {item}")),
        }
    }
    Ok(seen)
}

fn usage(usage: &Value) -> Option<SeenUsage> {
    let found = SeenUsage {
        input: count(&usage["input_tokens"]),
        cached: count(&usage["input_tokens_details"]["cached_tokens"]),
        output: count(&usage["output_tokens"]),
        reasoning: count(&usage["output_tokens_details"]["reasoning_tokens"]),
    };
    let total = count(&usage["total_tokens"]);
    (usage.is_object() && total == found.input + found.output).then_some(found)
}

pub(crate) fn error(body: &Value) -> Option<(String, String)> {
    let error = body.get("error").filter(|error| error.is_object())?;
    Some((text(&error["type"]), text(&error["message"])))
}

/// `created`, `in_progress`, items one after the other with their parts, and the whole answer.
pub(crate) fn streamed(frames: &[SeenFrame]) -> Result<Seen, String> {
    let mut items: Vec<Value> = Vec::new();
    let mut open: Option<OpenItem> = None;
    let mut so_far = Seen::default();
    let mut end = None;
    for (number, frame) in frames.iter().enumerate() {
        let event = frame.json()?;
        must(end.is_none(), "something after the end")?;
        must(frame.name == event["type"].as_str().map(str::to_owned), "a name unlike its type")?;
        must(count(&event["sequence_number"]) == number as u64, "a number that jumps")?;
        let kind = text(&event["type"]);
        match (number, kind.as_str()) {
            (_, "error") => {
                so_far.error = error(&event);
                end = Some(so_far.clone());
            }
            (_, "response.failed") => {
                let error = &event["response"]["error"];
                so_far.error = Some((text(&error["code"]), text(&error["message"])));
                end = Some(so_far.clone());
            }
            (0, name) => must(name == "response.created", "no `response.created`")?,
            (1, name) => must(name == "response.in_progress", "no `response.in_progress`")?,
            (_, "response.completed" | "response.incomplete") => {
                must(open.is_none(), "an item is still open")?;
                let response = &event["response"];
                must(kind == format!("response.{}", text(&response["status"])), "another status")?;
                must(list(&response["output"]) == items, "the answer is not its items")?;
                end = Some(seen(response)?);
            }
            (_, "response.output_item.added") => {
                must(open.is_none(), "items overlap")?;
                must(count(&event["output_index"]) == items.len() as u64, "an index that jumps")?;
                open = Some(OpenItem::new(&event["item"]));
            }
            (_, "response.output_item.done") => {
                let item = open.take().ok_or("the end of no item")?;
                must(count(&event["output_index"]) == items.len() as u64, "another index")?;
                item.must_equal(&event["item"])?;
                items.push(event["item"].clone());
            }
            _ => {
                let item = open.as_mut().ok_or("an event of no item")?;
                must(event["item_id"] == item.id, "an event of another item")?;
                must(count(&event["output_index"]) == items.len() as u64, "another index")?;
                item.read(&kind, &event, &mut so_far)?;
            }
        }
    }
    end.ok_or_else(|| "the stream has no end".to_owned())
}

/// An item whose events are under way.
struct OpenItem {
    id: Value,
    kind: String,
    deltas: String,
    has_part: bool,
    is_done: bool,
}

impl OpenItem {
    fn new(item: &Value) -> Self {
        let (id, kind) = (item["id"].clone(), text(&item["type"]));
        Self { id, kind, deltas: String::new(), has_part: false, is_done: false }
    }

    fn read(&mut self, kind: &str, event: &Value, so_far: &mut Seen) -> Result<(), String> {
        let of = match kind {
            _ if kind.contains("function_call_arguments") => "function_call",
            _ if kind.contains("reasoning") => "reasoning",
            _ => "message",
        };
        must(of == self.kind, &format!("`{kind}` in a {}", self.kind))?;
        if kind.ends_with("_part.added") {
            must(!self.has_part, "a second part")?;
            self.has_part = true;
        } else if kind.ends_with("_part.done") {
            must(self.has_part && self.is_done, "a part ends before its text")?;
            let part = &event["part"];
            let whole = [text(&part["text"]), text(&part["refusal"])].concat();
            must(whole == self.deltas, "a part is not its deltas")?;
        } else if kind.ends_with(".delta") {
            must(self.has_part || of == "function_call", "a delta before its part")?;
            must(!self.is_done, "a delta after its end")?;
            let delta = text(&event["delta"]);
            must(!delta.is_empty(), "an empty delta")?;
            self.deltas.push_str(&delta);
            if kind == "response.output_text.delta" {
                so_far.text.push_str(&delta);
            }
        } else if kind.ends_with(".done") {
            let empty = Map::new();
            let fields = event.as_object().unwrap_or(&empty);
            let whole = ["text", "refusal", "arguments"].iter().find_map(|key| fields.get(*key));
            must(whole.is_some_and(|it| text(it) == self.deltas), "an end unlike its deltas")?;
            self.is_done = true;
        } else {
            return Err(format!("an unknown event: {kind}"));
        }
        Ok(())
    }

    fn must_equal(&self, item: &Value) -> Result<(), String> {
        must(item["id"] == self.id && text(&item["type"]) == self.kind, "another item ends")?;
        let whole = match self.kind.as_str() {
            "function_call" => text(&item["arguments"]),
            "reasoning" => text(&item["summary"][0]["text"]),
            _ => {
                let part = &item["content"][0];
                [text(&part["text"]), text(&part["refusal"])].concat()
            }
        };
        must(whole == self.deltas, "an item is not its deltas")
    }
}
