//! The parts of messages and tool results in the Responses API.

use serde_json::{Value, json};

use crate::convert::fault::{RequestFault, RequestResult};
use crate::convert::fields::{Fields, element_path};
use crate::convert::json_in::Json;
use crate::convert::notes::Notes;
use crate::convert::part::{Content, MediaSource, Part, Vendor};

/// What is wrong with data of another form.
const NO_DATA: &str = "must be an address on the web or `data:` with a media type and base64";

/// Reads what a message or a tool result says: a text, or a list of parts.
pub(super) fn read(
    fields: &mut Fields<'_>,
    key: &str,
    notes: &mut Notes,
) -> RequestResult<Vec<Part>> {
    match fields.take_json(key) {
        None => Ok(Vec::new()),
        Some(Json::String(text)) if text.is_empty() => Ok(Vec::new()),
        Some(Json::String(text)) => Ok(vec![Part::text(text)]),
        Some(Json::Array(values)) => {
            let path = fields.path(key);
            let mut parts = Vec::new();
            for (at, value) in values.into_iter().enumerate() {
                let fields = Fields::new(element_path(&path, at), value)?;
                parts.push(Part::new(part(fields, notes)?));
            }
            Ok(parts)
        }
        Some(_) => Err(fields.fault(key, "must be a string or an array")),
    }
}

fn part(mut fields: Fields<'_>, notes: &mut Notes) -> RequestResult<Content> {
    let kind = fields.required_string("type")?;
    let content =
        match kind.as_str() {
            "input_text" | "output_text" | "text" => Content::Text(fields.required_string("text")?),
            "refusal" => Content::Refusal(fields.required_string("refusal")?),
            "input_image" => {
                let detail = fields.string("detail")?;
                let source = match (fields.string("image_url")?, fields.string("file_id")?) {
                    (Some(url), _) => MediaSource::of_url(url)
                        .ok_or_else(|| fields.fault("image_url", NO_DATA))?,
                    (None, Some(id)) => MediaSource::File { vendor: Vendor::OpenAi, id },
                    (None, None) => return Err(fields.fault("image_url", "is missing")),
                };
                Content::Image { source, detail }
            }
            "input_file" => {
                let name = fields.string("filename")?;
                let data = fields.string("file_data")?;
                let url = fields.string("file_url")?;
                let source = match (data, url, fields.string("file_id")?) {
                    (Some(data), ..) if data.starts_with("data:") => MediaSource::of_url(data)
                        .ok_or_else(|| fields.fault("file_data", NO_DATA))?,
                    (Some(data), ..) => {
                        MediaSource::Base64 { media_type: "application/pdf".to_owned(), data }
                    }
                    (None, Some(url), _) => MediaSource::Url { url, media_type: None },
                    (None, None, Some(id)) => MediaSource::File { vendor: Vendor::OpenAi, id },
                    (None, None, None) => return Err(fields.fault("file_data", "is missing")),
                };
                Content::Document { source, name }
            }
            "input_audio" => {
                let Some(mut audio) = fields.object("input_audio")? else {
                    return Err(fields.fault("input_audio", "is missing"));
                };
                let data = audio.required_string("data")?;
                let format = audio.required_string("format")?;
                let media_type = format!("audio/{format}");
                Content::Audio(MediaSource::Base64 { media_type, data })
            }
            _ => return Err(fields.fault("type", "is not a kind of content that can be converted")),
        };
    fields.note_rest(notes);
    Ok(content)
}

/// Writes a part of a user's message or of a tool result.
///
/// # Errors
/// The API cannot say it.
pub(super) fn written(part: &Part) -> RequestResult<Option<Value>> {
    Ok(Some(match &part.content {
        Content::Text(text) => json!({"type": "input_text", "text": text}),
        Content::Image { source, detail } => {
            let detail = detail.as_deref().unwrap_or("auto");
            match source {
                MediaSource::Base64 { .. } | MediaSource::Url { .. } => json!({
                    "type": "input_image", "image_url": address(source), "detail": detail,
                }),
                MediaSource::File { vendor: Vendor::OpenAi, id } => {
                    json!({"type": "input_image", "file_id": id, "detail": detail})
                }
                MediaSource::File { .. } => return Err(foreign_file()),
                MediaSource::Text(_) => {
                    return Err(RequestFault::impossible("an image made of text"));
                }
            }
        }
        Content::Document { source, name } => {
            let name = name.as_deref().unwrap_or("document.pdf");
            match source {
                MediaSource::Base64 { .. } => json!({
                    "type": "input_file", "filename": name, "file_data": address(source),
                }),
                MediaSource::Url { url, .. } => json!({"type": "input_file", "file_url": url}),
                MediaSource::Text(text) => json!({"type": "input_text", "text": text}),
                MediaSource::File { vendor: Vendor::OpenAi, id } => {
                    json!({"type": "input_file", "file_id": id})
                }
                MediaSource::File { .. } => return Err(foreign_file()),
            }
        }
        Content::Audio(MediaSource::Base64 { media_type, data }) => {
            let format = media_type.rsplit('/').next().unwrap_or("wav");
            let format = if format == "mpeg" { "mp3" } else { format };
            json!({"type": "input_audio", "input_audio": {"data": data, "format": format}})
        }
        Content::Audio(_) => return Err(RequestFault::impossible("sound by its address")),
        Content::Thinking { .. }
        | Content::ToolCall(_)
        | Content::ToolResult(_)
        | Content::Refusal(_) => return Ok(None),
    }))
}

fn address(source: &MediaSource) -> String {
    match source {
        MediaSource::Base64 { media_type, data } => format!("data:{media_type};base64,{data}"),
        MediaSource::Url { url, .. } => url.clone(),
        MediaSource::Text(text) => text.clone(),
        MediaSource::File { id, .. } => id.clone(),
    }
}

fn foreign_file() -> RequestFault {
    RequestFault::impossible("a file that another vendor keeps")
}
