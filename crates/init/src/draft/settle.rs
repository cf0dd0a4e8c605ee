//! Takes out of a draft what `tidegate check` would refuse, so that the rest can be used at once.
//!
//! What another product accepts may be an error here: a url without a scheme, a name with spaces.
//! The checks themselves are those of the config crate; this module only removes the smallest
//! named part (a provider, route, server, key) that an error is about, and says so.

use serde_json::{Map, Value};
use tidegate_config::{diagnostic::Diagnostic, path::Step, secret::Environment, source::Source};

use super::{Draft, Finished};
use crate::notes::{Kind, Note};

impl Draft {
    /// The finished config, or the errors that no removal could mend.
    ///
    /// # Errors
    /// The errors of a config that has nothing to serve, or that is wrong as a whole.
    pub fn finish(mut self, environment: &dyn Environment) -> Result<Finished, Vec<Diagnostic>> {
        let mut notes = Vec::new();
        loop {
            let text = self.text();
            let source = Source::new("tidegate.yaml", &text);
            let mut errors = tidegate_config::load(&source, environment).diagnostics;
            errors.retain(Diagnostic::is_error);
            if errors.is_empty() {
                let (counts, variables) = (self.counts(), self.variables());
                return Ok(Finished { text, counts, variables, notes });
            }
            let before = notes.len();
            notes.extend(errors.iter().filter_map(|error| self.remove_part_of(error)));
            if notes.len() == before {
                return Err(errors);
            }
        }
    }

    /// Removes the part that an error is about; none if it is about no part, or is gone already.
    fn remove_part_of(&mut self, error: &Diagnostic) -> Option<Note> {
        let keys: Vec<&str> = error.path.steps().iter().map_while(key).collect();
        let path: &[&str] = match keys.as_slice() {
            [section @ ("providers" | "routes" | "health"), name, ..] => &[section, name],
            ["mcp", "servers", name, ..] => &["mcp", "servers", name],
            [section @ ("keys" | "default_route"), ..] => &[section],
            _ => return None,
        };
        remove(&mut self.tree, path)?;
        let place = path.join(".");
        if let ["providers", name] = path {
            self.forget_targets_of(name);
        }
        let (line, origin) = self.origins.get(&place).cloned().unwrap_or((1, place));
        let help = error.help.first().map(|help| format!("; {help}")).unwrap_or_default();
        let reason = format!("{} ({}){help}", error.message, error.code.id);
        Some(Note { kind: Kind::NotCarriedOver, line, path: origin, reason })
    }

    /// Takes the targets of a provider that is gone out of every route.
    fn forget_targets_of(&mut self, provider: &str) {
        let prefix = format!("{provider}/");
        let is_gone = |it: &Value| it.as_str().is_some_and(|it| it.starts_with(&prefix));
        for route in self.routes().values_mut() {
            let Some(tiers) = route.get_mut("tiers").and_then(Value::as_array_mut) else {
                continue;
            };
            for tier in tiers.iter_mut().filter_map(Value::as_array_mut) {
                tier.retain(|target| !is_gone(target));
            }
            tiers.retain(|tier| tier.as_array().is_none_or(|tier| !tier.is_empty()));
            if let Some(weights) = route.get_mut("weights").and_then(Value::as_object_mut) {
                weights.retain(|target, _| !target.starts_with(&prefix));
            }
        }
    }
}

fn key(step: &Step) -> Option<&str> {
    match step {
        Step::Key(key) => Some(key),
        Step::Index(_) => None,
    }
}

fn remove(map: &mut Map<String, Value>, path: &[&str]) -> Option<Value> {
    match path {
        [] => None,
        [last] => map.shift_remove(*last),
        [first, rest @ ..] => remove(map.get_mut(*first)?.as_object_mut()?, rest),
    }
}
