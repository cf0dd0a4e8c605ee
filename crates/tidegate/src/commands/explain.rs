//! `tidegate explain`: why?
//!
//! - a backend: why is it in this state, and when is it asked again?
//! - a request's id: why did it go where it went?
//! - `--model` and `--session`: where would the next request go, and why not elsewhere?
//! - a code: what does this diagnostic or error mean? Answered offline.
//!
//! A running gateway is asked where there is one. Without one, the config answers for a gateway
//! that has just started, and a note says so.

mod code;
mod offline;
mod settings;

use clap::Args;
use serde_json::{Value, json};
use tidegate_console::client::AskError;
use tidegate_console::explain as told;
use tidegate_console::words::calm;
use tidegate_journal::api::decision::DecisionFull;
use tidegate_journal::api::explain::{BackendStory, WhatIf};
use tidegate_journal::request_id::RequestId;
use tidegate_runtime::clock::Clock;

use super::admin::{self, AdminArgs, Gateway};
use crate::exit::Exit;
use crate::printer::Printer;

const EXAMPLES: &str = "\
Examples:
  tidegate explain anthropic/claude-opus      why is this backend in its state?
  tidegate explain req_4f1c...                why did this request go there?
  tidegate explain --model fast --session s42 where would the next one go?
  tidegate explain TG010                      what does this diagnostic mean?
  tidegate explain no_healthy_backend         what does this error mean?
  tidegate explain                            every code with its title";

/// Why? (a backend, a request, where one would go, a code)
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ExplainArgs {
    /// A backend, the id of a request, or a code; none: list all codes
    #[arg(value_name = "WHAT")]
    what: Option<String>,
    /// Where would a request for this model go?
    #[arg(long, value_name = "NAME", conflicts_with = "what")]
    model: Option<String>,
    /// Where would a call of this MCP server, or group of them, go?
    #[arg(long, value_name = "NAME", conflicts_with_all = ["what", "model"])]
    server: Option<String>,
    /// With `--model`: the session that it belongs to
    #[arg(
        long,
        value_name = "ID",
        default_value = "",
        hide_default_value = true,
        requires = "model"
    )]
    session: String,
    /// With `--model`: the caller who asks
    #[arg(
        long,
        value_name = "NAME",
        default_value = "",
        hide_default_value = true,
        requires = "model"
    )]
    caller: String,
    /// With `--model`: the request has tools
    #[arg(long, requires = "model")]
    tools: bool,
    /// With `--model`: the request has images
    #[arg(long, requires = "model")]
    vision: bool,
    #[command(flatten)]
    gateway: AdminArgs,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Prints the answer.
pub(crate) fn run(args: &ExplainArgs, printer: &Printer) -> Exit {
    let answered = match args.what.as_deref() {
        _ if args.model.is_some() || args.server.is_some() => where_to(args, printer),
        None => {
            printer.result(&code::list(args.json));
            return Exit::Done;
        }
        Some(what) => match code::page(what, args.json, printer) {
            Some(exit) => return exit,
            None if what.starts_with("req_") => request(what, args, printer),
            None => backend(what, args, printer),
        },
    };
    answered.unwrap_or_else(|exit| exit)
}

fn now() -> u64 {
    Clock::start().unix_ms()
}

fn request(id: &str, args: &ExplainArgs, printer: &Printer) -> Result<Exit, Exit> {
    if RequestId::parse(id).is_none() {
        let form = "`req_` and 32 digits of `0-9a-f`";
        printer.error(&format!("`{}` is not the id of a request, which is {form}", calm(id)));
        printer.hint(
            "every answer of the gateway has its id in `x-tidegate-request-id`; \
             `tidegate status` shows the latest failovers with theirs",
        );
        return Err(Exit::Usage);
    }
    let gateway = admin::find(&args.gateway, printer)?;
    let path = format!("/api/decisions/{id}");
    let found: Result<DecisionFull, AskError> = gateway.client.get(&path);
    let decision = found.map_err(|error| match error {
        AskError::NotFound(_) => {
            printer.error(&format!("the gateway has no record of `{id}`: it may be too old"));
            printer.hint(
                "`history:` in the config keeps records longer; `tidegate status` shows the latest",
            );
            Exit::No
        }
        other => gateway.explain(&other, printer),
    })?;
    if args.json {
        print_json(&decision, printer);
    } else {
        printer.result(&told::request(&decision, admin::look(printer)).join("\n"));
    }
    Ok(Exit::Done)
}

fn backend(what: &str, args: &ExplainArgs, printer: &Printer) -> Result<Exit, Exit> {
    if looks_like_code(what) {
        printer.error(&format!("no diagnostic has the code `{}`", calm(what)));
        printer.hint("`tidegate explain` lists every code");
        return Err(Exit::Usage);
    }
    let gateway = admin::find(&args.gateway, printer)?;
    let probe: Result<Value, AskError> = gateway.client.get("/api/session");
    if let Err(AskError::NoGateway(why)) = &probe {
        return offline::backend(what, &gateway, why, args.json, printer);
    }
    let id = gateway.backend(what, printer)?;
    let story: BackendStory = gateway
        .client
        .post("/api/explain", &json!({ "backend": id }))
        .map_err(|error| gateway.explain(&error, printer))?;
    if args.json {
        print_json(&story, printer);
        return Ok(Exit::Done);
    }
    let settings = gateway
        .config
        .as_ref()
        .map(|(source, config)| settings::of(source, config, &id))
        .unwrap_or_default();
    let lines = told::backend(&story, &settings, now(), admin::look(printer));
    printer.result(&lines.join("\n"));
    Ok(Exit::Done)
}

/// `TG999` is a code with a typing error rather than a backend.
fn looks_like_code(what: &str) -> bool {
    let digits = what.get(..2).filter(|it| it.eq_ignore_ascii_case("tg")).and(what.get(2..));
    digits.is_some_and(|it| !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit()))
}

fn where_to(args: &ExplainArgs, printer: &Printer) -> Result<Exit, Exit> {
    let gateway = admin::find(&args.gateway, printer)?;
    let question = match &args.server {
        Some(server) => json!({ "server": server }),
        None => json!({
            "model": args.model,
            "session": args.session,
            "caller": args.caller,
            "tools": args.tools,
            "vision": args.vision,
        }),
    };
    let answer: WhatIf = match gateway.client.post("/api/explain", &question) {
        Ok(answer) => answer,
        Err(AskError::NoGateway(why)) => offline::where_to(args, &gateway, &why, printer)?,
        Err(AskError::NotFound(why)) => {
            printer.error(&why);
            printer.hint("`tidegate status` shows every route and MCP server");
            return Err(Exit::No);
        }
        Err(other) => return Err(gateway.explain(&other, printer)),
    };
    if args.json {
        print_json(&answer, printer);
    } else {
        printer.result(&told::what_if(&answer, now(), admin::look(printer)).join("\n"));
    }
    Ok(Exit::Done)
}

/// Says that the config answers, and for what.
fn say_offline(gateway: &Gateway, why: &str, printer: &Printer) {
    let url = gateway.client.url();
    printer.note(&format!(
        "no gateway answers at {url} ({why}): this is what the config says of a fresh start"
    ));
}

fn print_json(shown: &impl serde::Serialize, printer: &Printer) {
    let value = serde_json::to_value(shown).unwrap_or_default();
    printer.result(&format!("{value:#}"));
}
