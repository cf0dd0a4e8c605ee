//! What the config alone says, where no gateway runs.

use serde_json::json;
use tidegate_config::model_name::{Destination, destination};
use tidegate_console::words::calm;
use tidegate_core::core::Core;
use tidegate_core::plan::RequestSpec;
use tidegate_core::route::Needs;
use tidegate_core::time::Now;
use tidegate_journal::api::explain::{ExplanationView, WhatIf, WhatIfCandidate};

use super::super::admin::Gateway;
use super::{ExplainArgs, say_offline, settings};
use crate::exit::Exit;
use crate::printer::Printer;

/// Says that nothing is known, where there is no config either.
fn nothing(gateway: &Gateway, why: &str, printer: &Printer) -> Exit {
    printer.error(&format!("no gateway answers at `{}`: {why}", gateway.client.url()));
    let codes = "`tidegate explain` lists the codes";
    printer.hint(&format!("`tidegate serve` starts one; `--admin URL` asks another; {codes}"));
    Exit::Unreachable
}

/// Where a backend stands in the config, and the settings that will decide about it.
pub(super) fn backend(
    what: &str,
    gateway: &Gateway,
    why: &str,
    is_json: bool,
    printer: &Printer,
) -> Result<Exit, Exit> {
    let Some((source, config)) = &gateway.config else {
        return Err(nothing(gateway, why, printer));
    };
    let server = format!("mcp:{what}");
    let ids: Vec<&str> = config.settings.backends.iter().map(|it| it.id.as_str()).collect();
    let servers: Vec<String> =
        config.file.mcp.servers.keys().map(|it| format!("mcp:{it}")).collect();
    let mut ids = ids.into_iter().chain(servers.iter().map(String::as_str));
    let is_it = |id: &&str| {
        let parts = id.split_once('/');
        *id == what || *id == server || parts.is_some_and(|(it, model)| it == what || model == what)
    };
    let Some(id) = ids.find(is_it) else { return Err(nothing(gateway, why, printer)) };
    let routes: Vec<&str> = config
        .file
        .routes
        .iter()
        .filter(|(_, route)| route.tiers.iter().flatten().any(|it| it == id))
        .map(|(name, _)| name.as_str())
        .collect();
    let list = settings::of(source, config, id);
    if is_json {
        let settings: Vec<_> = list
            .iter()
            .map(|it| json!({ "name": it.name, "value": it.value, "place": it.place }))
            .collect();
        let shown = json!({ "backend": id, "live": false, "routes": routes, "settings": settings });
        printer.result(&format!("{shown:#}"));
    } else {
        say_offline(gateway, why, printer);
        let mut text = format!("{}\n  routes: {}\n", calm(id), routes.join(", "));
        for it in &list {
            text.push_str(&format!("  {} {} ({})\n", it.name, it.value, it.place));
        }
        printer.result(&text);
    }
    Ok(Exit::Done)
}

/// Where a request would go if the gateway had just started.
pub(super) fn where_to(
    args: &ExplainArgs,
    gateway: &Gateway,
    why: &str,
    printer: &Printer,
) -> Result<WhatIf, Exit> {
    let (Some((_, config)), Some(model)) = (&gateway.config, &args.model) else {
        return Err(nothing(gateway, why, printer));
    };
    let name = match destination(&config.file, Some(model)) {
        Ok(Destination::Route(name)) => name,
        Ok(Destination::Target { provider, model }) => {
            let id = format!("{provider}/{model}");
            say_offline(gateway, why, printer);
            return Ok(direct(&id, model));
        }
        Err(problem) => {
            printer.error(&problem.to_string());
            printer.hint("`tidegate check` lists the routes");
            return Err(Exit::No);
        }
    };
    let core = Core::new(&config.settings, 0);
    let Some(route) = core.route(name) else { return Err(nothing(gateway, why, printer)) };
    let needs = Needs { tools: args.tools, vision: args.vision, ..Needs::default() };
    let spec = RequestSpec {
        caller: &args.caller,
        session: &args.session,
        needs,
        ..RequestSpec::default()
    };
    let explanation = core.explain(route, Now::ZERO, &spec, 0);
    let candidates = explanation.candidates.iter().map(|it| WhatIfCandidate {
        backend: it.backend.to_string(),
        tier: it.tier,
        verdict: serde_json::to_value(&it.verdict).unwrap_or_default(),
        obstacles: obstacles(&it.verdict),
        why: None,
        since_unix_ms: None,
    });
    let pin = serde_json::to_value(explanation.pin).unwrap_or_default();
    say_offline(gateway, why, printer);
    Ok(WhatIf {
        model: Some(model.clone()),
        server: None,
        route: Some(name.to_owned()),
        asked_model: None,
        explanation: ExplanationView {
            candidates: candidates.collect(),
            pin: pin.as_str().unwrap_or("none").to_owned(),
            rank: explanation.rank.map(|it| it.0),
        },
    })
}

fn obstacles(
    verdict: &tidegate_core::explain::Verdict,
) -> Vec<tidegate_journal::api::decision::ObstacleView> {
    use tidegate_core::explain::Verdict;
    let list = match verdict {
        Verdict::Skipped(list) => list.as_slice(),
        Verdict::Chosen { .. } | Verdict::Held => &[],
    };
    let view =
        |it: &tidegate_core::explain::Obstacle| tidegate_journal::api::decision::ObstacleView {
            kind: "config".to_owned(),
            reason: None,
            phrase: it.phrase().to_owned(),
            until_unix_ms: None,
        };
    list.iter().map(view).collect()
}

/// A target that a client names is asked itself.
fn direct(id: &str, model: &str) -> WhatIf {
    let candidate = WhatIfCandidate {
        backend: id.to_owned(),
        tier: 0,
        verdict: json!({ "chosen": { "is_last_resort": false } }),
        obstacles: Vec::new(),
        why: None,
        since_unix_ms: None,
    };
    WhatIf {
        model: Some(id.to_string()),
        server: None,
        route: Some("direct".to_owned()),
        asked_model: Some(model.to_owned()),
        explanation: ExplanationView {
            candidates: vec![candidate],
            pin: "none".to_owned(),
            rank: Some(0),
        },
    }
}
