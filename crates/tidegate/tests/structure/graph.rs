//! Which module imports which, and the largest group of modules that all reach each other.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Modules and what they import.
#[derive(Debug, Default)]
pub struct Graph(BTreeMap<String, BTreeSet<String>>);

impl Graph {
    pub fn add(&mut self, importer: &str, imported: &str) {
        self.0.entry(importer.to_owned()).or_default().insert(imported.to_owned());
    }

    /// The modules of the largest cycle; empty if there is none.
    pub fn largest_cycle(&self) -> Vec<String> {
        let reached: BTreeMap<&String, BTreeSet<&String>> =
            self.0.keys().map(|module| (module, self.reached_from(module))).collect();
        let cycle = |module: &String| -> Vec<String> {
            let both = reached[module]
                .iter()
                .filter(|other| reached.get(**other).is_some_and(|back| back.contains(module)));
            both.map(|other| (*other).clone()).collect()
        };
        let cycles = self.0.keys().map(cycle);
        cycles.max_by_key(Vec::len).unwrap_or_default()
    }

    /// A way round a cycle, from its first module back to it.
    pub fn shown(&self, cycle: &[String]) -> String {
        let Some(first) = cycle.first() else { return String::new() };
        let mut before: BTreeMap<&String, &String> = BTreeMap::new();
        let mut waiting = VecDeque::from([first]);
        while let Some(module) = waiting.pop_front() {
            for next in self.0.get(module).into_iter().flatten() {
                if next == first {
                    let mut way = vec![first.as_str(), module.as_str()];
                    let mut at = module;
                    while let Some(previous) = before.get(at) {
                        way.push(previous);
                        at = previous;
                    }
                    way.reverse();
                    way.dedup();
                    return way.join(" → ");
                }
                if cycle.contains(next) && !before.contains_key(next) {
                    before.insert(next, module);
                    waiting.push_back(next);
                }
            }
        }
        cycle.join(", ")
    }

    fn reached_from(&self, module: &String) -> BTreeSet<&String> {
        let mut found = BTreeSet::new();
        let mut waiting: Vec<&String> = self.0.get(module).into_iter().flatten().collect();
        while let Some(next) = waiting.pop() {
            if found.insert(next) {
                waiting.extend(self.0.get(next).into_iter().flatten());
            }
        }
        found
    }
}
