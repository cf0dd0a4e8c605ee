//! What becomes of each request that servers answer: which server, under which name, and how its
//! answer, or its absence, is told to the client.
//!
//! Rules kept here:
//! - A tool of a server that is down, or that this session goes without, is *unavailable* and
//!   never *unknown*: the catalogue knows names regardless of health.
//! - What a server answers goes back as it came, but for what only one of two eras knows.
//! - A tool's failure is a tool's result; everything else is an error of the protocol.
//!
//! `bridge` has what it takes when client and server speak different eras, `replicas` what it takes
//! to have one of several equivalent servers answer.

mod bridge;
mod replicas;

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::value::RawValue;
use tidegate_mcp::{
    call::{Code, Errand, TooManyCalls, Unavailable},
    cause::Cause,
    message::{INVALID_PARAMS, Params, RESOURCE_NOT_FOUND, error_object},
    raw::{Fields, quoted},
    session::Entry,
    stateless::{Envelope, heading, mirror},
};

use super::{
    client::Client,
    group::Group,
    large::Large,
    link::{Answered, Ask, Link},
    party::{Desk, Party},
    search::{self, Taken},
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

/// A request of a client's, and what came with it.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) params: Option<&'a RawValue>,
    /// Its arguments, if they were set aside.
    pub(crate) large: Option<&'a Large>,
    /// Where the client waits for everything that a server says.
    pub(crate) desk: &'a Rc<Desk>,
    /// What a request of the stateless era says of its sender, and its headers.
    pub(crate) envelope: Option<&'a Envelope>,
    pub(crate) heads: &'a [(String, String)],
}

/// The text of a `result`, or of an `error`.
pub(crate) type Made = Result<String, String>;

/// Where a request goes, with params as its server knows them.
struct Way {
    /// A reload may move it, so it is not known by its place.
    group: Group,
    params: Box<RawValue>,
    errand: Errand,
    progress: Option<Box<RawValue>>,
    /// How the tool is described to clients, if it is one.
    tool: Option<Arc<str>>,
    /// Headers that repeat arguments.
    mirrored: Vec<(String, String)>,
}

/// A request that goes nowhere: an error's code and words.
type Refused = (i64, String);

/// Has a request answered.
pub(crate) async fn relay(client: &Rc<Client>, what: Relayed, asked: Asked<'_>) -> Made {
    // The search looks into arguments.
    let large = asked.large.filter(|_| search::is_on(client));
    let whole = large.and_then(|large| large.restore(asked.params));
    let asked = match &whole {
        Some(params) => Asked { params: Some(params), large: None, ..asked },
        None => asked,
    };
    let wrapped = match what {
        Relayed::CallTool if search::is_on(client) => search::take(client, asked.params).await,
        _ => Taken::Not,
    };
    let asked = match &wrapped {
        Taken::Answer(result) => return Ok(result.clone()),
        Taken::Call(params) => Asked { params: Some(&**params), heads: &[], ..asked },
        Taken::Not => asked,
    };
    let is_wrapped = matches!(wrapped, Taken::Call(_));
    let mut way = way_of(client, what, &asked, is_wrapped);
    let is_unknown =
        |way: &Result<Way, Refused>| matches!(way, Err((INVALID_PARAMS | RESOURCE_NOT_FOUND, _)));
    if is_unknown(&way) {
        // A server whose lists are not known yet may have it.
        client.first_look().await;
        way = way_of(client, what, &asked, is_wrapped);
    }
    if is_unknown(&way) {
        // A program that is only just starting may be the one that has it.
        client.children_up(longest_start(client)).await;
        way = way_of(client, what, &asked, is_wrapped);
    }
    match way {
        Ok(way) => answer(client, what, &asked, way).await,
        Err((code, message)) => match unreached(client, what, &asked) {
            Some(group) => never_reached(client, what, &group).await,
            None => Err(error_object(code, &message, not_found(code, asked.params).as_deref())),
        },
    }
}

/// The data of an error about a resource that nobody has: its uri.
fn not_found(code: i64, params: Option<&RawValue>) -> Option<String> {
    let params = Params::parse(params).ok().filter(|_| code == RESOURCE_NOT_FOUND)?;
    Some(serde_json::json!({ "uri": params.text("uri")? }).to_string())
}

/// The server that a request is about by the prefix of its name, if nobody knows what it offers.
fn unreached(client: &Client, what: Relayed, asked: &Asked<'_>) -> Option<Group> {
    let params = Params::parse(asked.params).ok()?;
    let name = match what {
        Relayed::CallTool | Relayed::GetPrompt => params.text("name"),
        Relayed::Complete => params.reference().ok()?.text("name"),
        Relayed::ReadResource | Relayed::Subscribe | Relayed::Unsubscribe => None,
    };
    let place = client.catalogue().unreached_owner(&name?)?;
    client.group(place).filter(|_| client.may_use(place))
}

/// What a client hears of a server that was never reached: it is unavailable, and why.
async fn never_reached(client: &Client, what: Relayed, group: &Group) -> Made {
    let cause = match client.enter(group).await {
        Entry::Refused(cause) => cause,
        // It has just come, and its lists are not there yet.
        Entry::Go | Entry::Wait(_) => Cause::Busy,
    };
    let tool = (what == Relayed::CallTool).then_some("{}");
    let unavailable = unavailable(group, cause);
    tell_failure(client, what, &unavailable);
    failed(tool, &unavailable)
}

async fn answer(client: &Rc<Client>, what: Relayed, asked: &Asked<'_>, way: Way) -> Made {
    let entered = match client.enter(&way.group).await {
        Entry::Go => Ok(()),
        Entry::Refused(cause) => Err(cause),
        Entry::Wait(_) => Err(Cause::Busy),
    };
    let answered = match entered {
        Ok(()) => {
            asked.desk.set_progress(way.progress);
            let party = Rc::new(Party {
                client: Rc::downgrade(client),
                desk: Rc::clone(asked.desk),
                info: asked.envelope.and_then(|it| it.info.clone()),
                level: match asked.envelope {
                    Some(envelope) => envelope.log_level.clone(),
                    None => client.level.borrow().clone(),
                },
                mirrored: way.mirrored,
                large: asked.large.cloned(),
            });
            let ask = Ask {
                method: what.method(),
                params: Some(way.params),
                errand: way.errand,
                party: Some(party),
            };
            asked_of(client, &way.group, what, ask).await
        }
        Err(cause) => Answered::Unavailable(unavailable(&way.group, cause)),
    };
    match answered {
        // It was a part of a message that has been read.
        Answered::Reply(Ok(part)) => Ok(String::from_utf8_lossy(&part).into_owned()),
        Answered::Reply(Err(part)) => Err(String::from_utf8_lossy(&part).into_owned()),
        Answered::Unavailable(unavailable) => {
            tell_failure(client, what, &unavailable);
            failed(way.tool.as_deref(), &unavailable)
        }
    }
}

/// The line about a request that its server could not answer, unless there were many just now.
fn tell_failure(client: &Client, what: Relayed, unavailable: &Unavailable) {
    let gateway = &client.ground.worker.gateway;
    let kind = format!("mcp:{}", unavailable.server);
    let Some(suppressed) = gateway.line_limit.admit(gateway.now(), &kind) else { return };
    tracing::warn!(
        server = unavailable.server,
        method = what.method(),
        code = unavailable.code.word(),
        cause = unavailable.cause.to_string(),
        caller = Some(&*client.caller().name).filter(|it| !it.is_empty()),
        suppressed = Some(suppressed).filter(|count| *count > 0),
        "an MCP server could not answer a client"
    );
}

/// Has a request answered by a server, or by one of a group.
async fn asked_of(client: &Rc<Client>, group: &Group, what: Relayed, ask: Ask) -> Answered {
    let Some(server) = group.alone() else {
        return replicas::ask(client, group, what, ask).await;
    };
    let Some(link) = client.link_to(server) else {
        return Answered::Unavailable(unavailable(group, Cause::Closing));
    };
    server.refresh(&link, &client.hello);
    match prepared(client, &link, what, &ask) {
        Some(answered) => answered,
        None => bridge::ask(client, &link, ask).await,
    }
}

/// What a link must know before a request goes over it; the answer, if the server is not asked.
fn prepared(client: &Client, link: &Link, what: Relayed, ask: &Ask) -> Option<Answered> {
    if let Some(params) = &ask.params {
        note_subscription(client, link, what, params);
    }
    let is_noted = matches!(what, Relayed::Subscribe | Relayed::Unsubscribe);
    (link.is_stateless() && is_noted).then(|| Answered::Reply(Ok(Bytes::from_static(b"{}"))))
}

fn failed(tool: Option<&str>, unavailable: &Unavailable) -> Made {
    let Some(tool) = tool else { return Err(unavailable.rpc_error().to_string()) };
    Ok(match has_output_schema(tool) {
        true => unavailable.schema_tool_result().to_string(),
        false => unavailable.tool_result().to_string(),
    })
}

fn unavailable(group: &Group, cause: Cause) -> Unavailable {
    let server = group.name.to_string();
    Unavailable { server, cause, retry_after: None, code: Code::BackendUnavailable }
}

/// What a client hears whose caller has as many calls under way as it may have.
pub(crate) fn busy(client: &Client, method: &str, params: Option<&RawValue>) -> Made {
    let busy = TooManyCalls::default();
    if Relayed::of_method(method) != Some(Relayed::CallTool) {
        return Err(busy.rpc_error().to_string());
    }
    let name = Params::parse(params).ok().and_then(|params| params.text("name"));
    let catalogue = client.catalogue();
    let tool = name.and_then(|name| catalogue.tool(&name).map(|it| Arc::clone(&it.raw)));
    let tool = tool.as_deref().unwrap_or_default();
    Ok(match has_output_schema(tool) {
        true => busy.schema_tool_result().to_string(),
        false => busy.tool_result().to_string(),
    })
}

fn has_output_schema(tool: &str) -> bool {
    Fields::parse(tool, &[]).is_ok_and(|it| it.get("outputSchema").is_some())
}

/// Which server, and what it is to be asked. A call that was wrapped in another has no headers of
/// its own.
fn way_of(
    client: &Client,
    what: Relayed,
    asked: &Asked<'_>,
    is_wrapped: bool,
) -> Result<Way, Refused> {
    let flawed = |flaw: tidegate_mcp::raw::Flaw| (INVALID_PARAMS, format!("params: {flaw}"));
    let mut params = Params::parse(asked.params).map_err(flawed)?;
    let mut described = None;
    let mut mirrored = Vec::new();
    let (place, errand) = match what {
        Relayed::CallTool => {
            let (place, errand, raw) = tool(client, &mut params)?;
            // Only a tool that wants arguments repeated in headers has them looked into.
            let large = asked.large.filter(|_| raw.contains(mirror::KEY));
            let large = large.and_then(Large::value);
            let arguments = large.as_deref().or_else(|| params.get("arguments"));
            if asked.envelope.is_some() && !is_wrapped {
                let checked = mirror::check_call(&raw, arguments, asked.heads);
                checked.map_err(|refused| (refused.code, refused.message))?;
            }
            mirrored = repeated(&raw, arguments, asked.heads);
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
    let gone = || (INVALID_PARAMS, "its server has just been taken away".to_owned());
    let group = client.group(place).ok_or_else(gone)?;
    Ok(Way { group, params, errand, progress, tool: described, mirrored })
}

/// The headers that repeat a call's arguments, and those of the client's that are not understood.
fn repeated(
    tool: &str,
    arguments: Option<&RawValue>,
    heads: &[(String, String)],
) -> Vec<(String, String)> {
    let mut all = mirror::headers(tool, arguments);
    let is_known = |name: &str| all.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
    let others = heads.iter().filter(|(name, _)| name.starts_with(heading::PARAM));
    let others: Vec<_> = others.filter(|(name, _)| !is_known(name)).cloned().collect();
    all.extend(others);
    all
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
    place_of_uri(client, &uri).ok_or_else(|| {
        let mut message = format!("resource not found: `{}`", shown(&uri));
        let catalogue = client.catalogue();
        let groups = (0..).map_while(|place| Some((place, client.group(place)?)));
        for (_, group) in
            groups.filter(|(at, _)| client.may_use(*at) && catalogue.is_unreached(*at))
        {
            message.push_str(&format!(
                "; server `{}`, which may have it, was never reached",
                group.name
            ));
        }
        (RESOURCE_NOT_FOUND, message)
    })
}

/// Who has a resource: who lists it, who has a template for it, or the only one who may have any.
/// Where several may, also one that was never reached, nobody is asked at random.
fn place_of_uri(client: &Client, uri: &str) -> Option<usize> {
    let catalogue = client.catalogue();
    let found = catalogue.server_of(uri).filter(|place| client.may_use(*place));
    found.or_else(|| {
        let groups = (0..).map_while(|place| Some((place, client.group(place)?)));
        let usable = groups.filter(|(place, group)| client.may_use(*place) && group.is_usable());
        let may_have = |group: &Group| {
            group.listing(&client.hello).is_none_or(|listing| listing.info.can("resources"))
        };
        let able: Vec<usize> = usable.filter(|(_, it)| may_have(it)).map(|(at, _)| at).collect();
        match *able {
            [] => None,
            [only] => Some(only),
            _ => None,
        }
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
    let is_wanted = match what {
        Relayed::Subscribe => true,
        Relayed::Unsubscribe => false,
        _ => return,
    };
    // What a shared server tells goes to those who asked for it.
    if link.server.is_shared_child() || link.is_stateless() {
        client.set_subscribed(&uri, is_wanted);
    }
    if link.is_stateless() {
        let is_wanted = client.ground.hub().is_some_and(|hub| hub.is_subscribed(&uri));
        link.subscribe(&uri, is_wanted);
    } else if !link.server.is_shared_child() {
        match is_wanted {
            true => _ = link.subscriptions.borrow_mut().insert(uri),
            false => _ = link.subscriptions.borrow_mut().remove(&uri),
        }
    }
}

/// Sees to it that a client without a session hears of a resource, or does not any more.
pub(crate) async fn subscribe(client: &Rc<Client>, uri: &str, is_wanted: bool) {
    let method = if is_wanted { Relayed::Subscribe } else { Relayed::Unsubscribe };
    let params = RawValue::from_string(format!(r#"{{"uri":{}}}"#, quoted(uri))).ok();
    let desk = Desk::new(&client.streams.standing());
    let params = params.as_deref();
    let asked = Asked { params, large: None, desk: &desk, envelope: None, heads: &[] };
    // What cannot be subscribed to is never told of; the client is told so by silence.
    drop(relay(client, method, asked).await);
}

fn longest_start(client: &Client) -> Duration {
    let places = (0..).map_while(|place| client.group(place));
    let longest = places.map(|group| group.initialize_within().0).max();
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
