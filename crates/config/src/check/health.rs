//! Health values, in every place where a `health` block may stand.
//!
//! The rules are the core's. What is added here is the place: the innermost block of the layers
//! that writes the value.

use std::collections::BTreeSet;

use super::Check;
use crate::{codes::config as codes, file::HealthFile, path::KeyPath};

/// A `health` block and where it stands.
#[derive(Clone)]
struct Layer<'a> {
    path: KeyPath,
    health: &'a HealthFile,
}

impl<'a> Check<'a> {
    pub(super) fn health(&mut self) {
        let file: &'a _ = self.file;
        let mut seen = BTreeSet::new();
        let top = Layer { path: KeyPath::from("health"), health: &file.health };
        self.layers(std::slice::from_ref(&top), &mut seen);
        for (name, provider) in &file.providers {
            let path = KeyPath::from("providers").key(name);
            let outer = Layer { path: path.key("health"), health: &provider.health };
            self.layers(&[top.clone(), outer.clone()], &mut seen);
            for (model, target) in &provider.targets {
                let path = path.key("targets").key(model).key("health");
                let inner = Layer { path, health: &target.health };
                self.layers(&[top.clone(), outer.clone(), inner], &mut seen);
            }
        }
        for (name, server) in &file.mcp.servers {
            let path = KeyPath::from("mcp").key("servers").key(name).key("health");
            let inner = Layer { path, health: &server.health };
            self.layers(&[top.clone(), inner], &mut seen);
        }
    }

    /// The problems of one stack of layers, each reported once however many stacks share it.
    fn layers(&mut self, layers: &[Layer<'a>], seen: &mut BTreeSet<KeyPath>) {
        let blocks: Vec<&HealthFile> = layers.iter().map(|layer| layer.health).collect();
        for problem in HealthFile::resolve(&blocks).problems() {
            // Which of two keys is wrong is the writer's choice: the innermost one is shown.
            let keys: &[&str] = match problem.key {
                "open_max" => &["open_max", "open_for"],
                ref key => std::slice::from_ref(key),
            };
            let places =
                layers.iter().rev().flat_map(|layer| keys.iter().map(|key| layer.path.key(*key)));
            let Some(place) = places.into_iter().find(|place| self.is_written(place)) else {
                continue;
            };
            if seen.insert(place.clone()) {
                let rule = format!("`{}` {}", problem.key, problem.rule);
                let message = format!("`{place}` makes no sense: {rule}");
                self.report(self.error(&codes::BAD_SETTING, &place, message).label(rule));
            }
        }
    }
}
