//! Rules about what objects and arrays are made of.

use serde_json::{Map, Value};

use super::{
    check::{Check, Rule},
    problem::{cut, shown},
    verdict::Verdict,
};

/// Arrays with more items are not searched for equal ones: every pair is compared.
const UNIQUE_MAX: usize = 200;
/// Letters of a name that are shown.
const NAME_MAX: usize = 60;
/// Names that are compared with an unknown one, their letters, and what each costs: a table of
/// letters by letters.
const COMPARED_MAX: usize = 100;
const COMPARED_LETTERS: usize = 60;
const COMPARED_STEPS: usize = 60;

impl Check<'_> {
    /// `required`.
    pub(super) fn required(&mut self, rule: Rule<'_>) -> Verdict {
        let Value::Object(map) = rule.value else { return Verdict::Fits };
        self.names(rule, rule.says, map, "")
    }

    /// `dependentRequired`.
    pub(super) fn dependent_required(&mut self, rule: Rule<'_>) -> Verdict {
        let Value::Object(map) = rule.value else { return Verdict::Fits };
        let Value::Object(dependent) = rule.says else { return Verdict::Unknown };
        let mut verdict = Verdict::Fits;
        for (name, names) in dependent {
            if !self.spend_on(name) {
                return verdict.and(Verdict::Unknown);
            }
            if map.contains_key(name) {
                let why = format!(", which `{}` needs", cut(name, NAME_MAX));
                verdict = verdict.and(self.names(rule, names, map, &why));
            }
        }
        verdict
    }

    fn names(
        &mut self,
        rule: Rule<'_>,
        names: &Value,
        map: &Map<String, Value>,
        why: &str,
    ) -> Verdict {
        let Value::Array(names) = names else { return Verdict::Unknown };
        let mut verdict = Verdict::Fits;
        for name in names {
            let known = match name {
                Value::String(name) if self.spend_on(name) => {
                    Verdict::of(Some(map.contains_key(name)))
                }
                _ => Verdict::Unknown,
            };
            if let (Verdict::Breaks, Some(name)) = (known, name.as_str()) {
                let name = cut(name, NAME_MAX);
                self.breaks(rule.place, &format!("`{name}` is missing{why}"));
            }
            verdict = verdict.and(known);
        }
        verdict
    }

    /// `properties`.
    pub(super) fn properties(&mut self, rule: Rule<'_>) -> Verdict {
        let Value::Object(map) = rule.value else { return Verdict::Fits };
        let Value::Object(properties) = rule.says else { return Verdict::Unknown };
        let mut verdict = Verdict::Fits;
        for (name, schema) in properties {
            if !self.spend_on(name) {
                return verdict.and(Verdict::Unknown);
            }
            if let Some(value) = map.get(name) {
                verdict = verdict.and(self.visit(schema, value, &rule.place.key(name)));
            }
        }
        verdict
    }

    /// `additionalProperties`: those that neither `properties` nor a pattern names.
    pub(super) fn additional_properties(&mut self, rule: Rule<'_>) -> Verdict {
        let Value::Object(map) = rule.value else { return Verdict::Fits };
        let properties = match rule.beside.get("properties") {
            None => None,
            Some(Value::Object(properties)) => Some(properties),
            Some(_) => return Verdict::Unknown,
        };
        let has_patterns = rule.beside.contains_key("patternProperties");
        let mut verdict = Verdict::Fits;
        for (name, value) in map {
            if !self.spend_on(name) {
                return verdict.and(Verdict::Unknown);
            }
            if properties.is_some_and(|it| it.contains_key(name)) {
                continue;
            }
            let next = match rule.says {
                _ if has_patterns => Verdict::Unknown,
                Value::Bool(false) => {
                    let hint = properties.and_then(|it| self.nearest(name, it));
                    let hint = hint.map(|it| format!("; did you mean `{it}`?")).unwrap_or_default();
                    let name = cut(name, NAME_MAX);
                    self.breaks(rule.place, &format!("there is no `{name}` to give{hint}"))
                }
                schema => self.visit(schema, value, &rule.place.key(name)),
            };
            verdict = verdict.and(next);
        }
        verdict
    }

    /// The property that is meant by a name, with at most a third of the letters wrong.
    fn nearest<'p>(&mut self, written: &str, known: &'p Map<String, Value>) -> Option<&'p str> {
        let letters = |text: &str| text.chars().take(COMPARED_LETTERS + 1).count();
        let length = letters(written);
        if length > COMPARED_LETTERS || !self.spend(known.len()) {
            return None;
        }
        let allowed = (length / 3).max(1);
        let is_comparable = |name: &&String| {
            let letters = letters(name);
            letters <= COMPARED_LETTERS && letters.abs_diff(length) <= allowed
        };
        let names: Vec<_> = known.keys().filter(is_comparable).take(COMPARED_MAX).collect();
        if !self.spend(names.len() * COMPARED_STEPS) {
            return None;
        }
        let far = names.into_iter().map(|name| (strsim::osa_distance(written, name), name));
        let (_, name) = far.filter(|(far, _)| *far <= allowed).min_by_key(|(far, _)| *far)?;
        Some(name)
    }

    /// `prefixItems`: a schema for each of the first items.
    pub(super) fn first_items(&mut self, rule: Rule<'_>) -> Verdict {
        let Value::Array(items) = rule.value else { return Verdict::Fits };
        let Value::Array(schemas) = rule.says else { return Verdict::Unknown };
        let mut verdict = Verdict::Fits;
        for (at, (schema, item)) in schemas.iter().zip(items).enumerate() {
            if !self.spend(1) {
                return verdict.and(Verdict::Unknown);
            }
            verdict = verdict.and(self.visit(schema, item, &rule.place.item(at)));
        }
        verdict
    }

    /// `items`: a schema for the items after the first ones; a list of them in older drafts.
    pub(super) fn items(&mut self, rule: Rule<'_>) -> Verdict {
        let Value::Array(items) = rule.value else { return Verdict::Fits };
        if rule.says.is_array() {
            return self.first_items(rule);
        }
        let first = match rule.beside.get("prefixItems") {
            None => 0,
            Some(Value::Array(schemas)) => schemas.len(),
            Some(_) => return Verdict::Unknown,
        };
        let mut verdict = Verdict::Fits;
        for (at, item) in items.iter().enumerate().skip(first) {
            if !self.spend(1) {
                return verdict.and(Verdict::Unknown);
            }
            verdict = verdict.and(self.visit(rule.says, item, &rule.place.item(at)));
        }
        verdict
    }

    /// `uniqueItems`.
    pub(super) fn unique_items(&mut self, rule: Rule<'_>) -> Verdict {
        let Value::Array(items) = rule.value else { return Verdict::Fits };
        match rule.says {
            Value::Bool(false) => return Verdict::Fits,
            Value::Bool(true) if items.len() <= UNIQUE_MAX => {}
            _ => return Verdict::Unknown,
        }
        let mut verdict = Verdict::Fits;
        for (at, item) in items.iter().enumerate() {
            for (earlier, other) in items.iter().take(at).enumerate() {
                match self.equal(item, other) {
                    Some(false) => {}
                    None => verdict = Verdict::Unknown,
                    Some(true) => {
                        let what = format!("items {earlier} and {at} are equal: {}", shown(item));
                        return self.breaks(rule.place, &what);
                    }
                }
            }
        }
        verdict
    }
}
