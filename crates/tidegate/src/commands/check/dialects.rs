//! Which clients each route serves, and what they would lose on which target.
//!
//! Whether a target is asked is the core's decision, and what a conversion costs is found out by
//! the converters themselves (`tidegate_wire::prospect`), so that a check says what the
//! gateway will do.

use serde_json::{Map, Value, json};
use tidegate_config::{Config, provider_url};
use tidegate_core::route::Needs;
use tidegate_core::settings::Abilities;
use tidegate_wire::convert::target::TargetProfile;
use tidegate_wire::operation::needs_of_path;
use tidegate_wire::prospect::{CLIENT_DIALECTS, ClientDialect, Prospect, prospect};

/// How many fields a line of the summary names; the document has all of them.
const TOLD_MAX: usize = 6;

/// What clients of each dialect meet on one route.
pub(super) struct Service {
    route: String,
    targets: Vec<TargetService>,
}

/// What they meet at one target.
struct TargetService {
    id: String,
    prospects: Vec<(ClientDialect, Prospect)>,
    /// What no request may bring there, as phrases.
    lacks: Vec<&'static str>,
}

/// The services of all routes, in the order of the file.
pub(super) fn services(config: &Config) -> Vec<Service> {
    let routes = config.file.routes.iter();
    routes
        .map(|(name, route)| {
            let targets = route.tiers.iter().flatten();
            let targets = targets.filter_map(|id| target(config, id)).collect();
            Service { route: name.clone(), targets }
        })
        .collect()
}

fn target(config: &Config, id: &str) -> Option<TargetService> {
    let (provider, model) = id.split_once('/')?;
    let url = provider_url(provider, config.file.providers.get(provider)?);
    let host = url.split_once("://").map_or("", |(_, rest)| rest);
    let host = host.split(['/', ':', '?']).next().unwrap_or_default();
    let profile = TargetProfile { model, host };
    let abilities = abilities_of(config, id)?;
    let prospects = CLIENT_DIALECTS.map(|client| (client, prospect(client, abilities, &profile)));
    let everything = Needs {
        tools: true,
        vision: true,
        documents: true,
        json_schema: true,
        reasoning: true,
        ..Needs::default()
    };
    let lacks = everything.lacks(abilities).map(|ability| ability.lack()).collect();
    Some(TargetService { id: id.to_owned(), prospects: prospects.into(), lacks })
}

fn abilities_of<'a>(config: &'a Config, id: &str) -> Option<&'a Abilities> {
    config.settings.backends.iter().find(|it| it.id == id).map(|it| &it.abilities)
}

/// The dialects of a route's clients, those together that the same targets can serve: outages are
/// the same for them. A route that serves no text has one group, of nobody in particular.
pub(super) fn groups(config: &Config, targets: &[String]) -> Vec<Vec<ClientDialect>> {
    let able = |client: ClientDialect| -> Vec<bool> {
        let needs = needs_of_path(client.path);
        let is_able = |id: &String| {
            abilities_of(config, id).is_some_and(|abilities| needs.lacking(abilities).is_none())
        };
        targets.iter().map(is_able).collect()
    };
    let mut groups: Vec<(Vec<bool>, Vec<ClientDialect>)> = Vec::new();
    for client in CLIENT_DIALECTS {
        let able = able(client);
        match groups.iter_mut().find(|(known, _)| *known == able) {
            Some((_, clients)) => clients.push(client),
            None => groups.push((able, vec![client])),
        }
    }
    let is_served = |able: &[bool]| able.iter().any(|it| *it);
    let served = groups.into_iter().filter(|(able, _)| is_served(able));
    let mut served: Vec<_> = served.map(|(_, clients)| clients).collect();
    if served.is_empty() {
        served.push(Vec::new());
    }
    served
}

impl Service {
    /// The dialects that some target of the route serves, as it came or converted.
    fn served(&self) -> Vec<&'static str> {
        let is_served = |client: &ClientDialect| {
            let mut prospects = self.targets.iter().flat_map(|it| &it.prospects);
            prospects.any(|(it, found)| it == client && !matches!(found, Prospect::Never(_)))
        };
        CLIENT_DIALECTS.iter().filter(|it| is_served(it)).map(|it| it.word).collect()
    }

    /// The lines of the summary.
    fn lines(&self) -> String {
        let served = self.served();
        let mut out = match served.is_empty() {
            true => format!("  {} serves no client that wants text\n", self.route),
            false => format!("  {} serves {} clients\n", self.route, served.join(", ")),
        };
        // Targets of which the same is to be said share a line.
        let mut said: Vec<(Vec<&str>, Vec<String>)> = Vec::new();
        for target in &self.targets {
            let clauses = target.clauses();
            match said.iter_mut().find(|(_, known)| *known == clauses) {
                Some((ids, _)) => ids.push(&target.id),
                None => said.push((vec![&target.id], clauses)),
            }
        }
        for (ids, clauses) in said.iter().filter(|(_, clauses)| !clauses.is_empty()) {
            out.push_str(&format!("    {}\n", ids.join(", ")));
            for clause in clauses {
                out.push_str(&format!("      {clause}\n"));
            }
        }
        out
    }

    fn json(&self) -> Value {
        let target = |it: &TargetService| (it.id.clone(), it.json());
        let targets: Map<String, Value> = self.targets.iter().map(target).collect();
        json!({ "serves": self.served(), "targets": targets })
    }
}

impl TargetService {
    /// What is to be said of it in the summary.
    fn clauses(&self) -> Vec<String> {
        let mut clauses: Vec<String> = Vec::new();
        if !self.lacks.is_empty() {
            clauses.push(self.lacks.join(", "));
        }
        for (client, prospect) in &self.prospects {
            match prospect {
                Prospect::AsItCame => {}
                Prospect::Never(lack) => {
                    clauses.push(format!("{} clients: {}", client.word, lack.lack()));
                }
                Prospect::Converted { lost, refused, .. } => {
                    let lost = told("lose", lost);
                    let refused = told("cannot use", refused);
                    let said: Vec<String> = lost.into_iter().chain(refused).collect();
                    if !said.is_empty() {
                        clauses.push(format!("{} clients {}", client.word, said.join("; ")));
                    }
                }
            }
        }
        clauses
    }

    fn json(&self) -> Value {
        let client = |(client, prospect): &(ClientDialect, Prospect)| {
            let shown = match prospect {
                Prospect::AsItCame => json!({ "sent": "as it came" }),
                Prospect::Converted { pair, lost, refused } => {
                    json!({ "sent": pair, "lost": lost, "refused": refused })
                }
                Prospect::Never(lack) => json!({ "sent": null, "why": lack.lack() }),
            };
            (client.word.to_owned(), shown)
        };
        let clients: Map<String, Value> = self.prospects.iter().map(client).collect();
        json!({ "lacks": self.lacks, "clients": clients })
    }
}

/// `lose a, b and 3 more`; none if there is nothing.
fn told(verb: &str, things: &[String]) -> Option<String> {
    let shown = things.iter().take(TOLD_MAX).map(String::as_str).collect::<Vec<_>>().join(", ");
    match things.len().saturating_sub(TOLD_MAX) {
        0 if things.is_empty() => None,
        0 => Some(format!("{verb} {shown}")),
        more => Some(format!("{verb} {shown} and {more} more")),
    }
}

/// The lines of all routes.
pub(super) fn lines(services: &[Service]) -> String {
    services.iter().map(Service::lines).collect()
}

/// The document of all routes, by name.
pub(super) fn document(services: &[Service]) -> Value {
    Value::Object(services.iter().map(|it| (it.route.clone(), it.json())).collect())
}
