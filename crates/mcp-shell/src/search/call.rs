//! What `call_tool` really asks for.
//!
//! Rules kept here:
//! - The forms that models send by mistake are understood: `name` and `arguments`, arguments as a
//!   text of JSON or beside the name, the whole call wrapped once more. Arguments that stand in two
//!   places are refused: none is ever dropped silently.
//! - Arguments are checked against the tool's own schema before the call goes anywhere, and what is
//!   wrong with them is told with the tool's parameters. What [`schema`] cannot decide passes, and
//!   so does everything under a schema larger than [`SCHEMA_MAX`]: the server will check it.

use serde_json::{Map, Value, value::RawValue};
use tidegate_mcp::{
    catalogue::Offered,
    hub::{SearchView, SeenGroup},
    message::Params,
    raw::{Fields, quoted},
    schema,
};
use tidegate_search::{CALL, FIND, signature};

/// What models call the name of the tool.
const NAMES: &[&str] = &["tool_name", "name", "tool"];
/// Larger schemas are not read.
const SCHEMA_MAX: usize = 256 * 1024;

/// The params of the call that a `call_tool` stands for.
pub(super) fn unwrapped(view: &SearchView, params: &Params<'_>) -> Result<Box<RawValue>, String> {
    let arguments = params.get("arguments").map(|it| serde_json::from_str::<Value>(it.get()));
    let Some(Ok(Value::Object(arguments))) = arguments else {
        return Err(format!("`{CALL}` needs `tool_name`, and `parameters` as an object"));
    };
    let (name, parameters) = wanted(arguments)?;
    let catalogue = &view.catalogue;
    let is = |place: usize, what: fn(&SeenGroup) -> bool| view.servers.get(place).is_some_and(what);
    let offered = catalogue.tool(&name).filter(|it| is(it.server, |it| it.is_allowed));
    let is_unreached = || {
        let owner = catalogue.unreached_owner(&name);
        owner.is_some_and(|place| is(place, |it| it.is_allowed))
    };
    let Some(offered) = offered else {
        if is_unreached() {
            // The call says that its server is unavailable.
            return call_of(&name, &Value::Object(parameters), params);
        }
        let nearest = catalogue.nearest_tool(&name, |place| is(place, |it| it.is_seen));
        let hint = nearest.map(|it| format!(" Did you mean `{it}`?")).unwrap_or_default();
        let shown: String = name.chars().take(80).collect();
        return Err(format!("There is no tool `{shown}`.{hint} `{FIND}` knows which there are."));
    };
    let parameters = Value::Object(parameters);
    check(offered, &parameters)?;
    call_of(&name, &parameters, params)
}

/// The params of a plain call of a tool.
fn call_of(name: &str, arguments: &Value, params: &Params<'_>) -> Result<Box<RawValue>, String> {
    let meta =
        params.get("_meta").map(|it| format!(r#","_meta":{}"#, it.get())).unwrap_or_default();
    let json = format!(r#"{{"name":{},"arguments":{arguments}{meta}}}"#, quoted(name));
    RawValue::from_string(json).map_err(|error| error.to_string())
}

/// Whether the tool that a `call_tool` names is in the catalogue.
pub(super) fn is_known(view: &SearchView, params: &Params<'_>) -> bool {
    let arguments = params.get("arguments").map(|it| serde_json::from_str::<Value>(it.get()));
    let Some(Ok(Value::Object(arguments))) = arguments else { return true };
    wanted(arguments).is_ok_and(|(name, _)| view.catalogue.tool(&name).is_some())
}

/// The name and the arguments, in whatever form they came.
fn wanted(mut arguments: Map<String, Value>) -> Result<(String, Map<String, Value>), String> {
    // Wrapped once more: `{"parameters": {"tool_name": …, …}}`.
    for _ in 0..2 {
        let outer = NAMES.iter().find_map(|key| arguments.get(*key));
        let inner = ["parameters", "arguments"].into_iter().find_map(|key| arguments.get(key));
        let is_wrapper = outer.is_none_or(|name| name == CALL);
        match inner {
            Some(Value::Object(inner)) if is_wrapper && inner.contains_key("tool_name") => {
                arguments = inner.clone();
            }
            _ => break,
        }
    }
    let mut take = |keys: &[&str]| keys.iter().find_map(|key| arguments.remove(*key));
    let name = take(NAMES);
    let parameters = take(&["parameters", "arguments", "args", "input"]);
    let Some(Value::String(name)) = name else {
        return Err(format!("`{CALL}` needs `tool_name`: a name that `{FIND}` gave"));
    };
    let parameters = match parameters {
        // Beside the name.
        None | Some(Value::Null) => return Ok((name, arguments)),
        Some(Value::Object(given)) if given.is_empty() => return Ok((name, arguments)),
        Some(_) if !arguments.is_empty() => {
            let beside: Vec<String> = arguments.keys().map(|key| format!("`{key}`")).collect();
            return Err(format!(
                "put all arguments of `{name}` into `parameters`: {} stands beside it",
                beside.join(", ")
            ));
        }
        Some(Value::Object(parameters)) => parameters,
        Some(Value::String(text)) => serde_json::from_str(&text)
            .map_err(|_| "`parameters` must be an object, and is a text".to_owned())?,
        Some(_) => return Err("`parameters` must be an object".to_owned()),
    };
    Ok((name, parameters))
}

/// Checks arguments against the tool's own schema.
fn check(offered: &Offered, parameters: &Value) -> Result<(), String> {
    let fields = Fields::parse(&offered.raw, &[]).unwrap_or_default();
    let takes = fields.get("inputSchema").filter(|it| it.get().len() <= SCHEMA_MAX);
    let Some(takes) = takes.and_then(|it| serde_json::from_str::<Value>(it.get()).ok()) else {
        return Ok(());
    };
    let problems = schema::problems(&takes, parameters);
    if problems.is_empty() {
        return Ok(());
    }
    let told: Vec<String> = problems.iter().map(|problem| format!("- {problem}")).collect();
    let name = &offered.name;
    Err(format!(
        "The arguments of `{name}` do not fit, so it was not called:\n{}\nIt takes: {}",
        told.join("\n"),
        signature(&takes)
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: Value) -> Result<(String, Map<String, Value>), String> {
        let Value::Object(map) = value else { panic!("an object") };
        wanted(map)
    }

    #[test]
    fn the_forms_that_models_send_by_mistake_are_understood() {
        let expected = ("t".to_owned(), json!({"a": 1}).as_object().expect("a map").clone());
        for form in [
            json!({"tool_name": "t", "parameters": {"a": 1}}),
            json!({"name": "t", "arguments": {"a": 1}}),
            json!({"tool_name": "t", "parameters": "{\"a\": 1}"}),
            json!({"parameters": {"tool_name": "t", "parameters": {"a": 1}}}),
            json!({"name": "call_tool", "parameters": {"tool_name": "t", "parameters": {"a": 1}}}),
            json!({"tool_name": "t", "a": 1}),
            json!({"tool_name": "t", "parameters": {}, "a": 1}),
            json!({"parameters": {"tool_name": "t", "a": 1}}),
            json!({"arguments": {"tool_name": "t", "arguments": {"a": 1}}}),
        ] {
            assert_eq!(read(form.clone()), Ok(expected.clone()), "{form}");
        }
        assert_eq!(read(json!({"tool_name": "t"})).map(|it| it.1.len()), Ok(0));
        for form in [
            json!({}),
            json!({"tool_name": 1}),
            json!({"tool_name": "t", "parameters": [1]}),
            json!({"tool_name": "t", "parameters": {"a": 1}, "b": 2}),
        ] {
            assert!(read(form.clone()).is_err(), "{form}");
        }
    }

    #[test]
    fn a_tool_that_takes_a_tool_name_itself_is_not_unwrapped() {
        let form = json!({"tool_name": "t", "parameters": {"tool_name": "x", "other": 1}});
        assert_eq!(read(form).map(|it| it.0), Ok("t".to_owned()));
    }
}
