//! `tidegate tools call`: what one tool answers.
//!
//! The text of the result goes to stdout. A tool that failed says so on stderr, and the exit code
//! is 1. What the tool tells while it works goes to stderr.

use clap::Args;
use serde_json::{Value, json};
use tidegate_config::duration::Duration;
use tidegate_mcp_shell::guest::GuestError;

use super::gate::{self, GateArgs};
use super::{arguments, calm};
use crate::exit::Exit;
use crate::printer::{Printer, Talker};

/// What does this tool answer?
///
/// A value that is JSON counts as that, any other is a text: `count=3 name=Ebb tags='["a"]'`.
#[derive(Debug, Args)]
pub(super) struct CallArgs {
    /// The tool, as `tidegate tools list` names it
    name: String,
    /// Its arguments: one JSON object, or KEY=VALUE words
    #[arg(value_name = "JSON | KEY=VALUE")]
    arguments: Vec<String>,
    /// How long it may take
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = Duration::parse)]
    timeout: Duration,
    #[command(flatten)]
    gate: GateArgs,
    /// Print the whole result as one JSON document
    #[arg(long)]
    json: bool,
}

/// Calls it and prints what came.
pub(super) fn run(args: &CallArgs, printer: &Printer) -> Exit {
    let arguments = match arguments::parse(&args.arguments) {
        Ok(arguments) => Value::Object(arguments).to_string(),
        Err(problem) => {
            printer.error(&problem);
            printer.hint("`tidegate tools call --help` shows how arguments are written");
            return Exit::Usage;
        }
    };
    let found = match gate::find(&args.gate, printer) {
        Ok(found) => found,
        Err(exit) => return exit,
    };
    let talker: Talker = printer.talker();
    let told = Box::new(move |line: &str| talker.note(&calm(line)));
    match found.gate.call(&args.name, &arguments, args.timeout.millis(), told) {
        Ok(result) => show(&result, args.json, printer),
        Err(GuestError::Refused { code, message, data }) if args.json => {
            let data = data.and_then(|data| serde_json::from_str::<Value>(&data).ok());
            let error = json!({ "code": code, "message": message, "data": data });
            printer.result(&format!("{:#}", json!({ "error": error })));
            Exit::No
        }
        Err(error) => gate::explain(&found.url, &error, printer),
    }
}

fn show(result: &str, is_json: bool, printer: &Printer) -> Exit {
    let value: Value = serde_json::from_str(result).unwrap_or_default();
    let has_failed = value["isError"] == true;
    if is_json {
        printer.result(&format!("{value:#}"));
    } else if has_failed {
        printer.error(&calm(&text(&value)));
        if value["structuredContent"]["backend"].is_string() {
            printer.hint("`tidegate check --connect` shows which servers can be reached");
        }
    } else {
        printer.result(&calm(&text(&value)));
    }
    if has_failed { Exit::No } else { Exit::Done }
}

/// The content as text; what is none is named.
fn text(result: &Value) -> String {
    let parts: Vec<String> = result["content"].as_array().into_iter().flatten().map(part).collect();
    match (parts.is_empty(), &result["structuredContent"]) {
        (true, Value::Null) => String::new(),
        (true, structured) => format!("{structured:#}"),
        (false, _) => parts.join("\n"),
    }
}

fn part(part: &Value) -> String {
    let word = |value: &Value| value.as_str().unwrap_or("?").to_owned();
    match part["type"].as_str().unwrap_or_default() {
        "text" => part["text"].as_str().unwrap_or_default().to_owned(),
        kind @ ("image" | "audio") => {
            let size = part["data"].as_str().map_or(0, str::len) / 4 * 3;
            format!("[{kind}: {}, about {size} bytes; `--json` has it]", word(&part["mimeType"]))
        }
        "resource_link" => format!("[resource: {}]", word(&part["uri"])),
        "resource" => match part["resource"]["text"].as_str() {
            Some(text) => text.to_owned(),
            None => format!("[resource: {}; `--json` has it]", word(&part["resource"]["uri"])),
        },
        kind => format!("[{kind}; `--json` has it]"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::text;

    #[test]
    fn content_is_shown_as_text_and_what_is_none_is_named() {
        let result = json!({"content": [
            {"type": "text", "text": "one"},
            {"type": "image", "mimeType": "image/png", "data": "AAAAAAAA"},
            {"type": "resource_link", "uri": "file:///a"},
            {"type": "resource", "resource": {"uri": "x:", "text": "two"}},
            {"type": "resource", "resource": {"uri": "x:b", "blob": "AA=="}},
        ], "structuredContent": {"n": 1}});
        let expected = "one\n[image: image/png, about 6 bytes; `--json` has it]\n\
                        [resource: file:///a]\ntwo\n[resource: x:b; `--json` has it]";
        assert_eq!(text(&result), expected);
        assert_eq!(
            text(&json!({"content": [], "structuredContent": {"n": 1}})),
            "{\n  \"n\": 1\n}"
        );
        assert_eq!(text(&json!({})), "");
    }
}
