//! The walk over a schema and a value, and its bounds.

use std::mem;

use serde_json::{Map, Value};
use tidegate_text::percent::decoded;

use super::{PROBLEMS_MAX, problem::Problem, value_path::ValuePath, verdict::Verdict};

/// Schemas inside each other, references included. Arguments are seldom ten deep.
pub(super) const DEPTH_MAX: usize = 64;
/// What one check may do: rules, names and values that are looked at. Some milliseconds at most.
const STEPS_MAX: usize = 100_000;
/// Bytes of a text that cost as much as one step.
const STEP_BYTES: usize = 64;
/// Rules that may refuse a value and are not understood here. All other unknown ones are notes.
const OPAQUE: &[&str] = &[
    "$dynamicRef",
    "$recursiveRef",
    "additionalItems",
    "contains",
    "dependencies",
    "dependentSchemas",
    "disallow",
    "divisibleBy",
    "extends",
    "format",
    "maxContains",
    "minContains",
    "pattern",
    "patternProperties",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// Rules that are notes in drafts before these.
const SINCE: &[(&str, u16)] = &[
    ("const", 6),
    ("dependentRequired", 2019),
    ("exclusiveMaximum", 6),
    ("exclusiveMinimum", 6),
    ("if", 7),
    ("prefixItems", 2020),
];

/// One check of one value.
pub(super) struct Check<'s> {
    root: &'s Value,
    /// Whether `#` means the root everywhere: no schema inside has an address of its own.
    is_one_document: bool,
    /// The draft that the schema names, by its number or year; else the one that MCP means.
    draft: u16,
    depth: usize,
    steps: usize,
    problems: Vec<Problem>,
}

/// One rule and what it is about.
#[derive(Clone, Copy)]
pub(super) struct Rule<'a> {
    /// The keyword.
    pub(super) name: &'a str,
    /// What is written under it.
    pub(super) says: &'a Value,
    /// All rules of the same schema.
    pub(super) beside: &'a Map<String, Value>,
    pub(super) value: &'a Value,
    pub(super) place: &'a ValuePath<'a>,
}

impl<'s> Check<'s> {
    /// A check by a schema.
    pub(super) fn new(root: &'s Value) -> Self {
        let named = root.get("$schema").and_then(Value::as_str).unwrap_or_default();
        let is_named = |(words, _): &&(&str, u16)| named.contains(words);
        let drafts =
            [("draft-03", 3), ("draft-04", 4), ("draft-06", 6), ("draft-07", 7), ("2019-09", 2019)];
        let draft = drafts.iter().find(is_named).map_or(2020, |(_, draft)| *draft);
        let address = if draft < 6 { "id" } else { "$id" };
        Self {
            root,
            is_one_document: !has_inside(root, address),
            draft,
            depth: 0,
            steps: STEPS_MAX,
            problems: Vec::new(),
        }
    }

    /// All that was found.
    pub(super) fn told(self) -> Vec<Problem> {
        self.problems
    }

    /// One schema, and everything in it, against one value.
    pub(super) fn visit(
        &mut self,
        schema: &Value,
        value: &Value,
        place: &ValuePath<'_>,
    ) -> Verdict {
        let rules = match schema {
            Value::Bool(true) => return Verdict::Fits,
            Value::Bool(false) => return self.breaks(place, "nothing is taken here"),
            Value::Object(rules) => rules,
            _ => return Verdict::Unknown,
        };
        // Enough problems mean that the verdict stands already.
        let is_enough = self.problems.len() >= PROBLEMS_MAX;
        if is_enough || self.depth == DEPTH_MAX || !self.spend(1) {
            return Verdict::Unknown;
        }
        self.depth += 1;
        // Beside a `$ref`, nothing counts up to draft 7.
        let alone = if self.draft <= 7 { rules.get_key_value("$ref") } else { None };
        let mut verdict = Verdict::Fits;
        for (name, says) in alone.into_iter().chain(rules.iter().filter(|_| alone.is_none())) {
            if !self.spend(1) {
                verdict = verdict.and(Verdict::Unknown);
                break;
            }
            verdict = verdict.and(self.rule(Rule { name, says, beside: rules, value, place }));
        }
        self.depth -= 1;
        verdict
    }

    /// The same, with the problems apart from those that are told.
    pub(super) fn try_out(&mut self, schema: &Value, rule: Rule<'_>) -> (Verdict, Vec<Problem>) {
        let kept = mem::take(&mut self.problems);
        let verdict = self.visit(schema, rule.value, rule.place);
        (verdict, mem::replace(&mut self.problems, kept))
    }

    fn rule(&mut self, rule: Rule<'_>) -> Verdict {
        let is_later = |(name, since): &(&str, u16)| *name == rule.name && *since > self.draft;
        if SINCE.iter().any(is_later) {
            return Verdict::Unknown;
        }
        match rule.name {
            "$ref" => self.reference(rule),
            "type" => self.kind(rule),
            "enum" => self.one_of_values(rule),
            "const" => self.constant(rule),
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => {
                self.number(rule)
            }
            "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties"
            | "maxProperties" => self.size(rule),
            "required" => self.required(rule),
            "dependentRequired" => self.dependent_required(rule),
            "properties" => self.properties(rule),
            "additionalProperties" => self.additional_properties(rule),
            "prefixItems" => self.first_items(rule),
            "items" => self.items(rule),
            "uniqueItems" => self.unique_items(rule),
            "allOf" => self.all_of(rule),
            "anyOf" => self.any_of(rule),
            "oneOf" => self.one_of(rule),
            "not" => self.not(rule),
            "if" => self.if_then_else(rule),
            name if OPAQUE.contains(&name) => Verdict::Unknown,
            _ => Verdict::Fits,
        }
    }

    /// The schema that a reference of this document leads to.
    pub(super) fn referred(&self, reference: &str) -> Option<&'s Value> {
        let pointer = reference.strip_prefix('#').filter(|_| self.is_one_document)?;
        self.root.pointer(&decoded(pointer)?)
    }

    /// Tells a problem, unless enough are told.
    pub(super) fn tell(&mut self, problem: Problem) -> Verdict {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(problem);
        }
        Verdict::Breaks
    }

    /// Tells a problem in words.
    pub(super) fn breaks(&mut self, place: &ValuePath<'_>, what: &str) -> Verdict {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(Problem::new(place.to_string(), what));
        }
        Verdict::Breaks
    }

    /// Whether there is something left to spend, after this.
    pub(super) fn spend(&mut self, steps: usize) -> bool {
        self.steps = self.steps.saturating_sub(steps);
        self.steps > 0
    }

    /// The same for looking at a text.
    pub(super) fn spend_on(&mut self, text: &str) -> bool {
        self.spend(1 + text.len() / STEP_BYTES)
    }
}

/// Whether a key has a text below the top, wherever. It may be data and no schema: then references
/// are not followed, which decides less.
fn has_inside(root: &Value, key: &str) -> bool {
    let mut left: Vec<&Value> = vec![root];
    while let Some(value) = left.pop() {
        match value {
            Value::Object(map) => {
                let is_root = std::ptr::eq(value, root);
                if !is_root && map.get(key).is_some_and(Value::is_string) {
                    return true;
                }
                left.extend(map.values());
            }
            Value::Array(items) => left.extend(items),
            _ => {}
        }
    }
    false
}
