//! What would become of each route in the outages that come with the program.
//!
//! The simulator plays every outage with the targets of a route, in tier order, by the code that
//! routes in production. An outage is survived if no more clients fail than the outage itself
//! allows, as its own expectation says.
//!
//! Rules kept here:
//! - Keys count as present: a machine that checks a config need not have them.
//! - At most [`MAX_ROUTES`] routes are played, so that a check stays quick.

use std::path::Path;

use serde_json::{Value, json};
use tidegate_config::secret::Environment;
use tidegate_config::source::Source;
use tidegate_sim::builtin;
use tidegate_sim::scenario::Scenario;
use tidegate_wire::operation::needs_of_path;

use super::dialects;

/// The outages among the examples; the other examples are about the ways to pick.
const OUTAGES: [&str; 8] = [
    "brownout",
    "hard-outage",
    "429-storm",
    "recovery-herd",
    "metastable",
    "gray",
    "long-soak",
    HOPELESS,
];

/// Every backend fails in it, so no config survives it.
const HOPELESS: &str = "total-loss";

/// A check should take seconds, and every route plays eight outages.
const MAX_ROUTES: usize = 16;

/// What would become of one route.
pub(super) struct Prediction {
    pub(super) route: String,
    /// The dialects of the clients that it is about; empty: all that the route serves.
    clients: Vec<&'static str>,
    targets: usize,
    outages: Vec<Outage>,
}

/// What would become of a route in one outage.
struct Outage {
    name: &'static str,
    requests: u64,
    client_failures: u64,
    is_survived: bool,
}

/// Plays the outages with every route of a sound config.
pub(super) fn predict(source: &Source) -> Vec<Prediction> {
    let Some(mut config) = tidegate_config::load(source, &EverySecret).config else {
        return Vec::new();
    };
    let routes = config.file.routes.iter().take(MAX_ROUTES);
    let routes: Vec<(String, Vec<String>)> = routes
        .map(|(name, route)| (name.clone(), route.tiers.iter().flatten().cloned().collect()))
        .collect();
    let mut predictions = Vec::new();
    for (route, targets) in routes {
        let groups = dialects::groups(&config, &targets);
        // The simulator plays the default route of a config.
        config.file.default_route = Some(route.clone());
        for group in &groups {
            let needs = group.first().map(|it| needs_of_path(it.path)).unwrap_or_default();
            let play = |name: &&'static str| {
                let Some(Scenario::Timeline(timeline)) = builtin::get(name)?.scenario() else {
                    return None;
                };
                let timeline = timeline.with_config(source.name(), &config).ok()?;
                Some(outage(name, &timeline.with_needs(needs).run(0).to_json()))
            };
            let is_for_all = groups.len() == 1;
            let clients = group.iter().filter(|_| !is_for_all).map(|it| it.word).collect();
            let outages = OUTAGES.iter().filter_map(play).collect();
            let (route, targets) = (route.clone(), targets.len());
            predictions.push(Prediction { route, clients, targets, outages });
        }
    }
    predictions
}

fn outage(name: &'static str, report: &Value) -> Outage {
    let count = |key: &str| report[key].as_u64().unwrap_or(0);
    let expectations = report["expectations"].as_array().into_iter().flatten();
    let is_about_clients =
        |it: &&Value| it["wanted"].as_str().is_some_and(|it| it.starts_with("client failures"));
    let mut about_clients = expectations.filter(is_about_clients);
    let is_kept = about_clients.all(|it| it["held"] == true);
    Outage {
        name,
        requests: count("requests"),
        client_failures: count("client_failures"),
        is_survived: is_kept && name != HOPELESS,
    }
}

impl Prediction {
    fn survived(&self) -> usize {
        self.outages.iter().filter(|outage| outage.is_survived).count()
    }

    /// The outages that another config could survive.
    fn lost(&self) -> impl Iterator<Item = &Outage> {
        self.outages.iter().filter(|outage| !outage.is_survived && outage.name != HOPELESS)
    }

    /// Why outages are not survived, in words; none if all are that can be.
    fn why(&self) -> Option<String> {
        self.lost().next()?;
        Some(if self.targets < 2 {
            "the route has a single target: nothing else can answer while that is down".to_owned()
        } else {
            "too few of its targets are healthy at the same time: add a tier at another provider"
                .to_owned()
        })
    }

    /// The prediction in JSON.
    pub(super) fn json(&self) -> Value {
        let outage = |it: &Outage| {
            json!({
                "scenario": it.name,
                "survived": it.is_survived,
                "requests": it.requests,
                "client_failures": it.client_failures,
            })
        };
        json!({
            "route": self.route,
            "clients": self.clients,
            "survived": self.survived(),
            "of": self.outages.len(),
            "why": self.why(),
            "outages": self.outages.iter().map(outage).collect::<Vec<_>>(),
        })
    }
}

/// The lines of the summary; empty if there is no route.
pub(super) fn lines(predictions: &[Prediction], file: &str) -> String {
    let mut out = String::new();
    for prediction in predictions {
        let (route, all) = (&prediction.route, prediction.outages.len());
        let survived = prediction.survived();
        let clients = match prediction.clients.join(", ") {
            words if words.is_empty() => words,
            words => format!(" for {words} clients"),
        };
        out.push_str(&format!(
            "  {route} survives {survived} of {all} built-in outages{clients}\n"
        ));
        for Outage { name, requests, client_failures, .. } in prediction.lost() {
            let failed = format!("{client_failures} of {requests} requests fail");
            out.push_str(&format!("    not {name}: {failed}\n"));
        }
        if let Some(why) = prediction.why() {
            out.push_str(&format!("    {why}\n"));
        }
    }
    if !predictions.is_empty() {
        out.push_str(&format!(
            "  {HOPELESS} cannot be survived by any config; see `tidegate sim NAME -c {file}`\n"
        ));
    }
    out
}

/// An environment in which every variable and file is there.
struct EverySecret;

impl Environment for EverySecret {
    fn variable(&self, _: &str) -> Option<String> {
        Some("present".to_owned())
    }

    fn file(&self, _: &Path) -> Result<String, String> {
        Ok("present".to_owned())
    }
}
