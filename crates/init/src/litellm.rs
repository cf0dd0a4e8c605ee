//! A LiteLLM `config.yaml`: deployments become targets, model groups routes, fallbacks tiers.
//!
//! | LiteLLM | here |
//! |---|---|
//! | deployments of one `model_name` | the targets of a route's first tier, or by `order` of its tiers |
//! | `fallbacks`, `default_fallbacks` | further tiers |
//! | `model_group_alias` | `match` of the route |
//! | `routing_strategy`, `weight` | `pick`, `weights` |
//! | `allowed_fails`, and the pause after them | `health.failure_threshold`, `health.open_for` |
//! | `timeout` | `timeouts.total` of a provider; of the router: `deadline` of every route |
//! | `master_key` | `keys` |
//! | `mcp_servers` | `mcp.servers` |

mod deployment;
mod settings;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use self::deployment::Deployment;
use crate::{draft::Draft, item::Item, mcp_servers, notes::Notes, secrets::Variables};

/// What the reading of one file shares.
pub(crate) struct Reading<'a> {
    pub(crate) draft: Draft,
    pub(crate) variables: &'a mut Variables,
    pub(crate) notes: &'a mut Notes,
}

/// Reads a LiteLLM config.
pub(crate) fn import(root: &Item<'_>, variables: &mut Variables, notes: &mut Notes) -> Draft {
    let mut draft = Draft::default();
    draft.heading(&[
        "The config of a Tidegate gateway, written by `tidegate init` for a LiteLLM config.",
        "`tidegate check` checks it, `tidegate serve` serves it; see `tidegate help config`.",
    ]);
    draft.comment("routes", &[
        "Clients ask for a route as for a model. The first tier is tried first, the next one if it",
        "has nothing healthy; targets in one tier share the traffic.",
    ]);
    let mut reading = Reading { draft, variables, notes };
    let deployments = reading.deployments(root);
    reading.routes(&deployments);
    for (key, item) in root.entries() {
        match key {
            "model_list" => {}
            "router_settings" => reading.router(&item),
            "litellm_settings" => reading.library(&item),
            "general_settings" => reading.general(&item),
            "mcp_servers" => {
                mcp_servers::add_all(&item, &mut reading.draft, reading.variables, reading.notes);
            }
            "environment_variables" => {
                reading.notes.drop(&item, "set these variables in the gateway's environment");
            }
            _ => reading.notes.drop(&item, "there is no such setting"),
        }
    }
    reading.draft
}

impl Reading<'_> {
    fn deployments(&mut self, root: &Item<'_>) -> Vec<Deployment> {
        let Some(list) = root.get("model_list") else { return Vec::new() };
        if list.items().is_empty() {
            self.notes.drop(&list, "it is not a list of deployments");
        }
        list.items().iter().filter_map(|item| self.deployment(item)).collect()
    }

    /// One route per model group, in the order of the file.
    fn routes(&mut self, deployments: &[Deployment]) {
        let mut groups: Vec<&str> = Vec::new();
        for deployment in deployments {
            if !groups.contains(&deployment.group.as_str()) {
                groups.push(&deployment.group);
            }
        }
        for group in groups {
            let members = deployments.iter().filter(|it| it.group == group);
            let mut tiers: BTreeMap<u64, Vec<Value>> = BTreeMap::new();
            let mut weights = Map::new();
            for member in members {
                let tier = tiers.entry(member.order).or_default();
                let target = json!(member.target);
                if !tier.contains(&target) {
                    tier.push(target);
                }
                if let Some(weight) = member.weight {
                    weights.insert(member.target.clone(), json!(weight));
                }
            }
            let mut seen: Vec<Value> = Vec::new();
            let mut route = Map::new();
            let tiers = tiers.into_values().map(|tier| distinct(tier, &mut seen));
            let tiers: Vec<Value> = tiers.filter(|tier| tier != &json!([])).collect();
            route.insert("tiers".to_owned(), Value::Array(tiers));
            if !weights.is_empty() {
                route.insert("pick".to_owned(), json!("weighted"));
                route.insert("weights".to_owned(), Value::Object(weights));
            }
            let first = deployments.iter().find(|it| it.group == group);
            let origin = first.map_or((1, String::new()), |it| it.origin.clone());
            self.draft.route(group, Value::Object(route), origin);
        }
    }
}

/// The targets of a tier that stand in no tier before it.
pub(super) fn distinct(tier: Vec<Value>, seen: &mut Vec<Value>) -> Value {
    let fresh: Vec<Value> = tier.into_iter().filter(|target| !seen.contains(target)).collect();
    seen.extend(fresh.iter().cloned());
    Value::Array(fresh)
}

#[cfg(test)]
mod tests;
