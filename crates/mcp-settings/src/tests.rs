//! The words of a file and what they mean.

use serde_json::{Map, Value, json};
use tidegate_config::file::ToolCallFile;
use tidegate_core::time::Millis;

use super::*;

fn tool(args: Value) -> ToolCallFile {
    let args: Map<String, Value> = args.as_object().cloned().unwrap_or_default();
    ToolCallFile { name: Some("pi\"ng".to_owned()), args }
}

#[test]
fn the_defaults_of_the_file_are_those_of_the_machine() {
    assert_eq!(keepalive(&KeepaliveFile::default()), KeepaliveSettings::default());
}

#[test]
fn a_keepalive_means_what_its_file_says() {
    let file = KeepaliveFile {
        method: Some(KeepaliveMethod::None),
        every: Millis::seconds(7).into(),
        timeout: Millis::seconds(2).into(),
        failures: 0,
        quiet: Millis::minutes(3).into(),
        ..KeepaliveFile::default()
    };
    let settings = keepalive(&file);
    assert_eq!(settings.method, Method::None);
    let times = (settings.every, settings.timeout, settings.quiet);
    assert_eq!(times, (Millis::seconds(7), Millis::seconds(2), Millis::minutes(3)));
    assert_eq!(settings.failures, 1, "zero would disable it before anything has failed");
}

#[test]
fn a_tool_is_called_only_by_the_method_tool() {
    let with = |method| {
        let tool = Some(tool(json!({"deep": [1, null]})));
        KeepaliveFile { method, tool, ..KeepaliveFile::default() }
    };
    assert_eq!(keepalive_call(&with(None)), None);
    assert_eq!(keepalive_call(&with(Some(KeepaliveMethod::Ping))), None);
    let call = keepalive_call(&with(Some(KeepaliveMethod::Tool))).expect("it calls a tool");
    let call: Value = serde_json::from_str(&call).expect("it is JSON");
    assert_eq!(call, json!({"name": "pi\"ng", "arguments": {"deep": [1, null]}}));
}
