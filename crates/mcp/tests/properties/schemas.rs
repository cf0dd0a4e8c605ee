//! Schemas and arguments that nobody sane would write: the check comes to an end, soon, and its
//! words stay short.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde_json::{Value, json};
use tidegate_mcp::schema::{PROBLEMS_MAX, problems};

use crate::support::cases;

/// Far above what a check takes in the slowest build, far below what a missing bound would.
const SOON: Duration = Duration::from_secs(20);

/// Checks, and holds what holds for every check.
#[expect(clippy::disallowed_methods, reason = "work without a bound shows as time alone")]
fn ends(schema: &Value, value: &Value) -> usize {
    let start = Instant::now();
    let found = problems(schema, value);
    assert!(start.elapsed() < SOON, "took {:?}", start.elapsed());
    assert!(found.len() <= PROBLEMS_MAX, "{found:?}");
    for problem in &found {
        assert!(problem.what.chars().count() <= 401, "{problem}");
        assert!(!problem.what.is_empty() && problem.at.len() < 20_000, "{problem}");
    }
    found.len()
}

fn small() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3_i64..4).prop_map(Value::from),
        prop::sample::select(vec![0.5, 0.1, 0.3, 1e300, -2.5]).prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        prop::sample::select(vec!["a", "b", "", "string", "object", "#", "#/$defs/a", "é"])
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let key = prop::sample::select(vec!["a", "b", "c"]).prop_map(str::to_owned);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map(key, inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Every keyword over anything: often a schema, as often nonsense.
fn nearly_schema() -> impl Strategy<Value = Value> {
    let words = vec![
        "$defs",
        "$id",
        "$ref",
        "$schema",
        "additionalProperties",
        "allOf",
        "anyOf",
        "const",
        "contains",
        "dependentRequired",
        "else",
        "enum",
        "exclusiveMinimum",
        "format",
        "if",
        "items",
        "maxItems",
        "maxLength",
        "maxProperties",
        "minLength",
        "minimum",
        "multipleOf",
        "not",
        "oneOf",
        "pattern",
        "patternProperties",
        "prefixItems",
        "properties",
        "required",
        "then",
        "type",
        "uniqueItems",
    ];
    let leaf = small();
    leaf.prop_recursive(5, 48, 5, move |inner| {
        let word = prop::sample::select(words.clone()).prop_map(str::to_owned);
        let name = prop::sample::select(vec!["a", "b"]).prop_map(str::to_owned);
        let object = |key: BoxedStrategy<String>, inner: BoxedStrategy<Value>| {
            prop::collection::hash_map(key, inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect()))
        };
        prop_oneof![
            3 => object(word.boxed(), inner.clone().boxed()),
            1 => object(name.boxed(), inner.clone().boxed()),
            1 => prop::collection::vec(inner, 0..4).prop_map(Value::from),
        ]
    })
}

proptest! {
    #![proptest_config(cases(512))]

    #[test]
    fn any_schema_comes_to_an_end_with_any_value(schema in nearly_schema(), value in small()) {
        ends(&schema, &value);
    }

    #[test]
    fn a_value_cannot_break_a_schema_and_its_negation(schema in nearly_schema(), value in small()) {
        // Inside a schema that is not the root, `#` would mean another one.
        let text = schema.to_string();
        prop_assume!(!text.contains("$ref") && !text.contains("$schema"));
        let breaks = ends(&schema, &value) > 0;
        let breaks_not = ends(&json!({ "not": schema }), &value) > 0;
        prop_assert!(!(breaks && breaks_not), "{} for {}", text, value);
    }
}

/// So many schemas inside each other, made without a parser's bound.
fn nested(key: &str, depth: usize) -> Value {
    (0..depth).fold(json!({"type": "string"}), |inner, _| match key {
        "allOf" | "anyOf" | "oneOf" => json!({ key: [inner.clone(), inner] }),
        _ => json!({ key: inner }),
    })
}

#[test]
fn references_in_a_circle_and_trees_of_them_end() {
    for schema in [
        json!({"$ref": "#"}),
        json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}},
            "$ref": "#/$defs/a"}),
        json!({"allOf": [{"$ref": "#"}, {"$ref": "#"}]}),
        json!({"anyOf": [{"$ref": "#"}, {"$ref": "#"}], "oneOf": [{"$ref": "#"}]}),
        json!({"not": {"$ref": "#"}}),
        json!({"if": {"$ref": "#"}, "then": {"$ref": "#"}, "else": {"$ref": "#"}}),
        json!({"items": {"$ref": "#"}, "allOf": [{"$ref": "#"}]}),
    ] {
        assert_eq!(ends(&schema, &json!([[1], [2]])), 0, "{schema}");
    }
}

#[test]
fn deep_schemas_end_and_decide_nothing_beyond_the_bound() {
    for key in ["not", "items", "additionalProperties", "if"] {
        ends(&nested(key, 120), &json!([1]));
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        ends(&nested(key, 14), &json!(1));
    }
    let deep = (0..120).fold(json!(1), |inner, _| json!([inner]));
    assert_eq!(ends(&json!({"items": {"$ref": "#"}, "type": "array"}), &deep), 0);
    assert_eq!(ends(&json!({"const": deep.clone()}), &deep), 0);
}

#[test]
fn huge_enums_objects_and_texts_end() {
    let names: Vec<String> = (0..20_000).map(|at| format!("name_{at}")).collect();
    let many: Value = names.iter().map(|name| (name.clone(), json!(1))).collect();
    let text = "é".repeat(2_000_000);
    let closed = json!({"properties": many.clone(), "additionalProperties": false});
    let others: Value = names.iter().map(|name| (format!("{name}x"), json!(1))).collect();
    let lengths: Vec<Value> = (0..5000).map(|_| json!({"maxLength": 1})).collect();
    for (schema, value) in [
        (json!({"items": {"enum": names.clone()}}), json!(vec!["nobody"; 20_000])),
        (json!({"uniqueItems": true}), json!(names)),
        (json!({"required": names.clone()}), json!({})),
        (closed.clone(), others.clone()),
        (json!({"anyOf": vec![closed; 3]}), others),
        (json!({"not": {"allOf": lengths}}), json!(text.clone())),
        (json!({"const": text.clone()}), json!(text)),
    ] {
        ends(&schema, &value);
    }
}
