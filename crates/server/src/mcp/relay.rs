//! What becomes of each request that servers answer: which server, under which name, and how its
//! answer, or its absence, is told to the client.
//!
//! Rules kept here:
//! - A tool of a server that is down, or that this session goes without, is *unavailable* and
//!   never *unknown*: the catalogue knows names regardless of health.
//! - What a server answers goes back as it came; only the id is the client's own.
//! - A tool's failure is a tool's result; everything else is an error of the protocol.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use tidegate_mcp::{
    call::{Code, Errand, Unavailable},
    cause::Cause,
    message::{self, INVALID_PARAMS, Id, Params, RESOURCE_NOT_FOUND},
    raw::Fields,
    session::Entry,
};

use super::{
    client::Client,
    link::{Answered, Ask, Link},
    party::Party,
    search::{self, Taken},
    stream::Stream,
};

/// A request of a client's that a server answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relayed {
    CallTool,
    ReadResource,
    Subscribe,
    Unsubscribe,
    GetPrompt,
    Complete,
}

impl Relayed {
    pub(crate) fn of_method(method: &str) -> Option<Self> {
        Some(match method {
            "tools/call" => Self::CallTool,
            "resources/read" => Self::ReadResource,
            "resources/subscribe" => Self::Subscribe,
            "resources/unsubscribe" => Self::Unsubscribe,
            "prompts/get" => Self::GetPrompt,
            "completion/complete" => Self::Complete,
            _ => return None,
        })
    }

    const fn method(self) -> &'static str {
        match self {
            Self::CallTool => "tools/call",
            Self::ReadResource => "resources/read",
            Self::Subscribe => "resources/subscribe",
            Self::Unsubscribe => "resources/unsubscribe",
            Self::GetPrompt => "prompts/get",
            Self::Complete => "completion/complete",
        }
    }
}

/// Where a request goes, with params as its server knows them.
struct Way {
    place: usize,
    params: Box<RawValue>,
    errand: Errand,
    progress: Option<Box<RawValue>>,
    /// How the tool is described to clients, if it is one.
    tool: Option<Arc<str>>,
}

/// A request that goes nowhere: an error's code and words.
type Refused = (i64, String);

/// Has a request answered; the whole message for the client.
pub(crate) async fn relay(
    client: &Rc<Client>,
    stream: &Rc<Stream>,
    what: Relayed,
    id: &Id,
    params: Option<&RawValue>,
) -> String {
    client.first_look().await;
    let wrapped = match what {
        Relayed::CallTool if search::is_on(client) => search::take(client, params).await,
        _ => Taken::Not,
    };
    let params = match &wrapped {
        Taken::Answer(result) => return message::result(id, result),
        Taken::Call(params) => Some(&**params),
        Taken::Not => params,
    };
    let mut way = way_of(client, what, params);
    if matches!(way, Err((INVALID_PARAMS | RESOURCE_NOT_FOUND, _))) {
        // A program that is only just starting may be the one that has it.
        client.children_up(longest_start(client)).await;
        way = way_of(client, what, params);
    }
    match way {
        Ok(way) => answer(client, stream, what, id, way).await,
        Err((code, message)) => message::error(Some(id), code, &message, None),
    }
}

async fn answer(
    client: &Rc<Client>,
    stream: &Rc<Stream>,
    what: Relayed,
    id: &Id,
    way: Way,
) -> String {
    let answered = match client.enter(way.place).await {
        Entry::Go => match client.link(way.place) {
            Some(link) => {
                let party = Party {
                    client: Rc::downgrade(client),
                    stream: Rc::clone(stream),
                    progress: way.progress,
                    asked: Cell::new(0),
                };
                note_subscription(client, &link, what, &way.params);
                let ask = Ask {
                    method: what.method(),
                    params: Some(way.params),
                    errand: way.errand,
                    party: Some(Rc::new(party)),
                };
                link.ask(ask).await
            }
            None => Answered::Unavailable(unavailable(client, way.place, Cause::Closing)),
        },
        Entry::Refused(cause) => Answered::Unavailable(unavailable(client, way.place, cause)),
        Entry::Wait(_) => Answered::Unavailable(unavailable(client, way.place, Cause::Busy)),
    };
    match answered {
        Answered::Reply(reply) => {
            let (part, is_result) = match &reply {
                Ok(part) => (part, true),
                Err(part) => (part, false),
            };
            // It was a part of a message that has been read.
            match serde_json::from_slice::<&RawValue>(part) {
                Ok(value) if is_result => message::answer(id, Ok(value)),
                Ok(value) => message::answer(id, Err(value)),
                Err(_) => {
                    let malformed = unavailable(client, way.place, Cause::Malformed);
                    failed(way.tool.as_deref(), id, &malformed)
                }
            }
        }
        Answered::Unavailable(unavailable) => failed(way.tool.as_deref(), id, &unavailable),
    }
}

fn failed(tool: Option<&str>, id: &Id, unavailable: &Unavailable) -> String {
    if let Some(tool) = tool {
        let fields = Fields::parse(tool, &[]);
        let has_schema = fields.is_ok_and(|it| it.get("outputSchema").is_some());
        let result = match has_schema {
            true => unavailable.schema_tool_result(),
            false => unavailable.tool_result(),
        };
        return message::result(id, &result.to_string());
    }
    let error = RawValue::from_string(unavailable.rpc_error().to_string());
    let error = error.expect("an error object is JSON");
    message::answer(id, Err(&error))
}

fn unavailable(client: &Client, place: usize, cause: Cause) -> Unavailable {
    let server = client.server(place).map(|server| server.name.to_string()).unwrap_or_default();
    Unavailable { server, cause, retry_after: None, code: Code::BackendUnavailable }
}

/// Which server, and what it is to be asked.
fn way_of(client: &Client, what: Relayed, params: Option<&RawValue>) -> Result<Way, Refused> {
    let flawed = |flaw: tidegate_mcp::raw::Flaw| (INVALID_PARAMS, format!("params: {flaw}"));
    let mut params = Params::parse(params).map_err(flawed)?;
    let mut described = None;
    let (place, errand) = match what {
        Relayed::CallTool => {
            let (place, errand, raw) = tool(client, &mut params)?;
            described = Some(raw);
            (place, errand)
        }
        Relayed::GetPrompt => (prompt(client, &mut params)?, Errand::Repeatable),
        Relayed::Complete => (completion(client, &mut params)?, Errand::Repeatable),
        Relayed::ReadResource | Relayed::Subscribe | Relayed::Unsubscribe => {
            (resource(client, &params)?, Errand::Repeatable)
        }
    };
    let progress = params.progress_token();
    let params = RawValue::from_string(params.to_json());
    let params = params.map_err(|flaw| (INVALID_PARAMS, format!("params: {flaw}")))?;
    Ok(Way { place, params, errand, progress, tool: described })
}

fn tool(client: &Client, params: &mut Params<'_>) -> Result<(usize, Errand, Arc<str>), Refused> {
    let name = text(params, "name")?;
    let catalogue = client.catalogue();
    let offered = catalogue.tool(&name).filter(|it| client.may_use(it.server));
    let Some(offered) = offered else {
        let nearest = catalogue.nearest_tool(&name, |place| client.sees(place));
        let hint = nearest.map(|it| format!("; did you mean `{it}`?")).unwrap_or_default();
        return Err((INVALID_PARAMS, format!("unknown tool: `{}`{hint}", shown(&name))));
    };
    params.set_text("name", &offered.own);
    let errand = if offered.hints.may_replay() { Errand::Repeatable } else { Errand::Once };
    Ok((offered.server, errand, Arc::clone(&offered.raw)))
}

fn prompt(client: &Client, params: &mut Params<'_>) -> Result<usize, Refused> {
    let name = text(params, "name")?;
    let catalogue = client.catalogue();
    let offered = catalogue.prompt(&name).filter(|it| client.may_use(it.server));
    let offered =
        offered.ok_or_else(|| (INVALID_PARAMS, format!("unknown prompt: `{}`", shown(&name))))?;
    params.set_text("name", &offered.own);
    Ok(offered.server)
}

fn resource(client: &Client, params: &Params<'_>) -> Result<usize, Refused> {
    let uri = text(params, "uri")?;
    place_of_uri(client, &uri)
        .ok_or_else(|| (RESOURCE_NOT_FOUND, format!("resource not found: `{}`", shown(&uri))))
}

/// Who has a resource: who lists it, who has a template for it, or the only one who has any.
fn place_of_uri(client: &Client, uri: &str) -> Option<usize> {
    let catalogue = client.catalogue();
    let found = catalogue.server_of(uri).filter(|place| client.may_use(*place));
    found.or_else(|| {
        let links = client.links();
        let mut able = links.iter().filter(|(place, link)| {
            client.sees(*place) && link.info().is_some_and(|info| info.can("resources"))
        });
        let first = able.next()?.0;
        able.next().is_none().then_some(first)
    })
}

fn completion(client: &Client, params: &mut Params<'_>) -> Result<usize, Refused> {
    let wrong = |flaw| (INVALID_PARAMS, format!("params.ref: {flaw}"));
    let reference = params.reference().map_err(wrong)?;
    let (name, uri) = (reference.text("name"), reference.text("uri"));
    drop(reference);
    let catalogue = client.catalogue();
    if let Some(name) = name {
        let offered = catalogue.prompt(&name).filter(|it| client.may_use(it.server));
        let offered = offered
            .ok_or_else(|| (INVALID_PARAMS, format!("unknown prompt: `{}`", shown(&name))))?;
        params.set_reference("name", &offered.own).map_err(wrong)?;
        return Ok(offered.server);
    }
    let uri = uri.ok_or_else(|| (INVALID_PARAMS, "params.ref needs `name` or `uri`".to_owned()))?;
    let template = catalogue.template(&uri).filter(|it| client.may_use(it.server));
    let place = template.map(|it| it.server).or_else(|| place_of_uri(client, &uri));
    place.ok_or_else(|| (INVALID_PARAMS, format!("unknown resource: `{}`", shown(&uri))))
}

fn text(params: &Params<'_>, name: &str) -> Result<String, Refused> {
    params.text(name).ok_or_else(|| (INVALID_PARAMS, format!("params need a text `{name}`")))
}

/// A link remembers what its client subscribed to, for when it is made again.
fn note_subscription(client: &Client, link: &Link, what: Relayed, params: &RawValue) {
    let uri = Params::parse(Some(params)).ok().and_then(|params| params.text("uri"));
    let Some(uri) = uri else { return };
    // What a shared server tells goes to those who asked for it.
    let subscriptions = match link.server.is_shared_child() {
        true => &client.subscriptions,
        false => &link.subscriptions,
    };
    match what {
        Relayed::Subscribe => _ = subscriptions.borrow_mut().insert(uri),
        Relayed::Unsubscribe => _ = subscriptions.borrow_mut().remove(&uri),
        _ => {}
    }
}

fn longest_start(client: &Client) -> Duration {
    let places = (0..).map_while(|place| client.server(place));
    let longest = places.map(|server| server.initialize_within().0).max();
    Duration::from_millis(longest.unwrap_or_default())
}

/// A caller's text in a sentence of ours: not all of it if it is long.
fn shown(text: &str) -> String {
    const MAX: usize = 80;
    match text.char_indices().nth(MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
