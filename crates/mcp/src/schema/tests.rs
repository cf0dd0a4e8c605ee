//! Each rule by values that fit, break it, or are not for us to judge.

use serde_json::{Value, json};

use super::{PROBLEMS_MAX, problems};

/// The problems, one a line; empty for arguments that pass.
fn told(schema: &Value, value: &Value) -> String {
    let problems = problems(schema, value);
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

fn check(cases: &[(Value, Value, &str)]) {
    for (schema, value, expected) in cases {
        assert_eq!(told(schema, value), *expected, "{schema} for {value}");
    }
}

#[test]
fn a_value_has_one_of_the_types() {
    check(&[
        (json!({"type": "string"}), json!("a"), ""),
        (json!({"type": "string"}), json!(1), "must be a string, and is a number: `1`"),
        (json!({"type": "integer"}), json!("5"), "must be an integer, and is a string: `\"5\"`"),
        (json!({"type": "integer"}), json!(1.0), ""),
        (json!({"type": "integer"}), json!(1.5), "must be an integer, and is a number: `1.5`"),
        (json!({"type": "number"}), json!(1), ""),
        (json!({"type": ["string", "null"]}), json!(null), ""),
        (
            json!({"type": ["string", "null"]}),
            json!(true),
            "must be a string or null, and is a boolean: `true`",
        ),
        (json!({"type": "object"}), json!([1]), "must be an object, and is an array of 1"),
        (json!({"type": "array"}), json!({}), "must be an array, and is an object"),
        (json!({"type": "boolean"}), json!(null), "must be a boolean, and is null"),
        (json!({"type": "any"}), json!(1), ""),
        (json!({"type": ["string", "any"]}), json!(1), ""),
        (json!({"type": []}), json!(1), ""),
    ]);
}

#[test]
fn a_value_is_one_of_those_listed() {
    let many: Vec<u32> = (0..20).collect();
    check(&[
        (json!({"enum": ["a", "b"]}), json!("b"), ""),
        (json!({"enum": ["a", 1]}), json!("c"), "must be one of `\"a\"`, `1`, and is `\"c\"`"),
        (json!({"enum": [1]}), json!(1.0), ""),
        (
            json!({"enum": many}),
            json!(20),
            "must be one of `0`, `1`, `2`, `3`, `4`, `5`, `6`, `7`, … (20 in all), and is `20`",
        ),
        (json!({"enum": [{"a": 1, "b": [2]}]}), json!({"b": [2.0], "a": 1}), ""),
        (
            json!({"enum": [{"a": 1}]}),
            json!({"b": 1}),
            "must be one of an object, and is an object",
        ),
        (json!({"enum": []}), json!(1), ""),
        (json!({"const": null}), json!(null), ""),
        (json!({"const": "x"}), json!("y"), "must be `\"x\"`, and is `\"y\"`"),
    ]);
}

#[test]
fn numbers_and_sizes_keep_their_bounds() {
    check(&[
        (json!({"minimum": 1, "maximum": 3}), json!(1), ""),
        (json!({"minimum": 1}), json!(0), "must be at least `1`, and is `0`"),
        (json!({"maximum": 2.5}), json!(3), "must be at most `2.5`, and is `3`"),
        (json!({"exclusiveMinimum": 1}), json!(1), "must be more than `1`, and is `1`"),
        (json!({"exclusiveMaximum": 1}), json!(1.0), "must be less than `1`, and is `1.0`"),
        (json!({"minimum": 1, "exclusiveMinimum": true}), json!(1), ""),
        (json!({"minimum": "1"}), json!(0), ""),
        (json!({"minimum": 1}), json!("0"), ""),
        (json!({"multipleOf": 0.01}), json!(19.99), ""),
        (json!({"multipleOf": 0.01}), json!(0.005), "must be a multiple of `0.01`, and is `0.005`"),
        (json!({"minLength": 2, "maxLength": 2}), json!("éü"), ""),
        (json!({"maxLength": 1}), json!("ab"), "must have at most 1 characters, and has 2"),
        (json!({"minItems": 1}), json!([]), "must have at least 1 items, and has 0"),
        (json!({"maxProperties": 0}), json!({"a": 1}), "must have at most 0 properties, and has 1"),
    ]);
}

#[test]
fn objects_have_the_properties_that_are_wanted_and_no_other() {
    let closed =
        json!({"properties": {"count": {"type": "integer"}}, "additionalProperties": false});
    check(&[
        (json!({"required": ["a", "b"]}), json!({"b": 1}), "`a` is missing"),
        (json!({"required": true}), json!({}), ""),
        (closed.clone(), json!({"count": 1}), ""),
        (closed.clone(), json!({"cuont": 1}), "there is no `cuont` to give; did you mean `count`?"),
        (closed, json!({"other": 1}), "there is no `other` to give"),
        (
            json!({"additionalProperties": {"type": "string"}}),
            json!({"a/b": 1}),
            "`/a~1b`: must be a string, and is a number: `1`",
        ),
        (
            json!({"patternProperties": {"^x": {}}, "additionalProperties": false}),
            json!({"y": 1}),
            "",
        ),
        (
            json!({"dependentRequired": {"a": ["b"]}}),
            json!({"a": 1}),
            "`b` is missing, which `a` needs",
        ),
        (json!({"dependentRequired": {"a": ["b"]}}), json!({"c": 1}), ""),
        (
            json!({"properties": {"a": {"properties": {"b": {"type": "null"}}}}}),
            json!({"a": {"b": 1}}),
            "`/a/b`: must be null, and is a number: `1`",
        ),
        (json!({"properties": {"a": false}}), json!({"a": 1}), "`/a`: nothing is taken here"),
    ]);
}

#[test]
fn arrays_have_the_items_that_are_wanted() {
    let pair = json!({"prefixItems": [{"type": "string"}], "items": {"type": "integer"}});
    check(&[
        (json!({"items": {"minimum": 1}}), json!([1, 0]), "`/1`: must be at least `1`, and is `0`"),
        (pair.clone(), json!(["a", 1]), ""),
        (pair, json!([1, "a"]), {
            "`/0`: must be a string, and is a number: `1`\n`/1`: must be an integer, and is a \
             string: `\"a\"`"
        }),
        (json!({"items": [{"type": "null"}]}), json!([null, 1]), ""),
        (json!({"items": false}), json!([]), ""),
        (json!({"uniqueItems": true}), json!([1, "1", [1], {"a": 1}]), ""),
        (json!({"uniqueItems": true}), json!([1, 2, 1.0]), "items 0 and 2 are equal: `1.0`"),
        (json!({"uniqueItems": false}), json!([1, 1]), ""),
    ]);
}

#[test]
fn alternatives_are_told_by_the_one_that_is_meant() {
    let optional = json!({"anyOf": [{"type": "string"}, {"type": "null"}]});
    let listed = json!({"anyOf": [{"type": "array", "items": {"type": "string"}},
        {"type": "null"}]});
    let two = json!({"anyOf": [{"required": ["id"]}, {"required": ["name"]}]});
    check(&[
        (optional.clone(), json!(null), ""),
        (optional, json!(1), "must be a string or null, and is a number: `1`"),
        (listed, json!([1]), "`/0`: must be a string, and is a number: `1`"),
        (two.clone(), json!({"id": 1}), ""),
        (two, json!({}), "fits none of 2 forms: `id` is missing; or `name` is missing"),
        (json!({"oneOf": [{"type": "integer"}, {"minimum": 2}]}), json!(1), ""),
        (
            json!({"oneOf": [{"type": "integer"}, {"minimum": 2}]}),
            json!(3),
            "fits more than one of the forms of which one is to fit",
        ),
        (json!({"anyOf": []}), json!(1), ""),
        (json!({"allOf": [{"minimum": 2}, {"maximum": 0}]}), json!(1), {
            "must be at least `2`, and is `1`\nmust be at most `0`, and is `1`"
        }),
        (
            json!({"not": {"type": "string"}}),
            json!("a"),
            "is of the form that is ruled out by `not`",
        ),
        (json!({"not": {"type": "string"}}), json!(1), ""),
    ]);
}

#[test]
fn a_condition_leads_to_one_of_its_two_ends() {
    let schema = json!({
        "if": {"properties": {"kind": {"const": "file"}}, "required": ["kind"]},
        "then": {"required": ["path"]},
        "else": {"required": ["url"]},
    });
    check(&[
        (schema.clone(), json!({"kind": "file", "path": "a"}), ""),
        (schema.clone(), json!({"kind": "file"}), "`path` is missing"),
        (schema, json!({"kind": "web"}), "`url` is missing"),
        (json!({"if": {"pattern": "a"}, "then": false, "else": false}), json!("a"), ""),
    ]);
}

#[test]
fn what_cannot_be_decided_passes_wherever_it_stands() {
    check(&[
        (json!({"pattern": "^a$"}), json!("b"), ""),
        (json!({"not": {"pattern": "^a$"}}), json!("b"), ""),
        (json!({"oneOf": [{"format": "uri"}, {"type": "string"}]}), json!("b"), ""),
        (json!({"anyOf": [{"contains": {}}, {"type": "string"}]}), json!([]), ""),
        (json!({"not": {"$ref": "https://example.com/a"}}), json!("b"), ""),
        (json!({"$ref": "other.json#/a"}), json!("b"), ""),
        (json!({"$ref": "#/nowhere"}), json!("b"), ""),
        (json!({"$ref": "#anchor"}), json!("b"), ""),
        (json!({"$ref": "#/%zz"}), json!("b"), ""),
        (json!("no schema"), json!("b"), ""),
        // A problem beside it is still a problem.
        (
            json!({"pattern": "^a$", "maxLength": 0}),
            json!("b"),
            "must have at most 0 characters, and has 1",
        ),
    ]);
}

#[test]
fn references_within_the_document_are_followed() {
    let tree = json!({
        "$defs": {"node": {"type": "object", "properties": {
            "next": {"$ref": "#/$defs/node"}, "name": {"type": "string"}}}},
        "$ref": "#/$defs/node",
    });
    let odd = json!({"definitions": {"a/b c": {"type": "null"}},
        "items": {"$ref": "#/definitions/a~1b%20c"}});
    let moved = json!({"$defs": {"a": {"$id": "https://example.com/x", "type": "null"}},
        "$ref": "#/$defs/a"});
    check(&[
        (tree.clone(), json!({"next": {"next": {"name": "a"}}}), ""),
        (tree, json!({"next": {"next": {"name": 1}}}), {
            "`/next/next/name`: must be a string, and is a number: `1`"
        }),
        (odd, json!([1]), "`/0`: must be null, and is a number: `1`"),
        (moved, json!(1), ""),
    ]);
}

#[test]
fn beside_a_reference_of_an_old_draft_nothing_counts() {
    let schema = |draft: &str| {
        json!({"$schema": draft, "definitions": {"any": true},
            "properties": {"a": {"$ref": "#/definitions/any", "type": "string"}}})
    };
    let value = json!({"a": 1});
    check(&[
        (schema("http://json-schema.org/draft-07/schema#"), value.clone(), ""),
        (
            schema("https://json-schema.org/draft/2020-12/schema"),
            value,
            "`/a`: must be a string, and is a number: `1`",
        ),
    ]);
}

#[test]
fn rules_that_an_old_draft_does_not_have_decide_nothing_in_it() {
    for (draft, rules, value) in [
        ("draft-07", json!({"prefixItems": [false]}), json!([1])),
        ("draft-07", json!({"dependentRequired": {"a": ["b"]}}), json!({"a": 1})),
        ("draft-06", json!({"if": true, "then": false}), json!(1)),
        ("draft-04", json!({"const": 1}), json!(2)),
    ] {
        let mut old = rules.clone();
        old["$schema"] = json!(format!("http://json-schema.org/{draft}/schema#"));
        assert_eq!(told(&old, &value), "", "{old}");
        assert_ne!(told(&rules, &value), "", "{rules}");
    }
}

#[test]
fn long_values_and_many_problems_are_told_in_short() {
    let found = problems(&json!({"items": {"const": "x".repeat(500)}}), &json!(vec!["y"; 50]));
    assert_eq!(found.len(), PROBLEMS_MAX);
    assert!(found.iter().all(|it| it.what.len() < 200), "{found:?}");
}
