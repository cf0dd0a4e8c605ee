//! How each configured server is reached, under the key by which the Hub knows it.
//!
//! Rules kept here:
//! - A server keeps its key over a reload while its part of the config, its secrets and the
//!   timeouts stay the same; otherwise it is another one.
//! - A server that cannot be used as configured stops nothing: it is told once, and every session
//!   goes without it.

use std::cell::Cell;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use tidegate_config::{
    file::ServerFile,
    secret::{Environment, SecretRef},
};
use tidegate_core::{outcome::OutcomeKind, time::Millis};
use tidegate_gateway::live::Live;
use tidegate_mcp::{
    cause::Cause,
    hub::{ResumedUpstream, ServerAccess, ServerKey, TransportKind},
};
use tidegate_mcp_settings::answer_max;

use super::{
    carrier::Carrier,
    http::{HttpPlace, HttpTransport},
    runtime::McpRuntime,
    sse::SseTransport,
    stdio::{Children, StdioSettings, StdioTransport, own_warden},
    transport::{EventSender, Failure},
};

/// How a server is reached.
enum ServerTransport {
    Http(Rc<HttpPlace>),
    Child(StdioSettings),
    /// It cannot be used as configured, and why not.
    Unusable(String),
}

/// One configured server.
struct Server {
    key: ServerKey,
    name: String,
    /// As it was configured: whether a reload changed it.
    file: ServerFile,
    /// A digest of its secrets: one that was exchanged makes it another server.
    secrets: [u8; 32],
    /// How long a call, and connecting, may take.
    timeouts: (Millis, Millis),
    transport: ServerTransport,
    /// The largest message that is taken from it.
    answer_max: Rc<Cell<usize>>,
}

/// The servers of the config.
#[derive(Default)]
pub(crate) struct Servers {
    all: Vec<Server>,
    last_key: u64,
}

impl Servers {
    /// Takes over a config: the key and the access of each server of these names, in their order.
    pub(crate) fn follow<'a>(
        &mut self,
        runtime: &McpRuntime,
        live: &Live,
        names: impl Iterator<Item = (&'a String, &'a ServerFile)>,
    ) -> Vec<(ServerKey, ServerAccess, Arc<str>)> {
        let mut before = std::mem::take(&mut self.all);
        for (name, file) in names {
            let secrets = secrets(runtime, live, file);
            let timeouts = timeouts(live);
            let is_same = |it: &Server| {
                it.name == *name
                    && it.file == *file
                    && it.secrets == secrets
                    && it.timeouts == timeouts
            };
            let server = match before.iter().position(is_same) {
                Some(at) => {
                    let known = before.swap_remove(at);
                    known.follow_limits(live);
                    known
                }
                None => {
                    self.last_key += 1;
                    let answer_max = Rc::new(Cell::new(answer_max(&live.file.limits)));
                    let transport = ServerTransport::new(runtime, live, (name, file), &answer_max);
                    Server {
                        key: ServerKey(self.last_key),
                        name: name.clone(),
                        file: file.clone(),
                        secrets,
                        timeouts,
                        transport,
                        answer_max,
                    }
                }
            };
            self.all.push(server);
        }
        self.all.iter().map(|it| (it.key, it.access(), it.place())).collect()
    }

    /// Why a server cannot be used as configured, if it cannot.
    pub(crate) fn unusable(&self, name: &str) -> Option<&str> {
        match &self.all.iter().find(|it| it.name == name)?.transport {
            ServerTransport::Unusable(reason) => Some(reason),
            ServerTransport::Http(_) | ServerTransport::Child(_) => None,
        }
    }

    /// Begins a connection. Whether it is open at once; otherwise that is told.
    pub(crate) fn open(
        &self,
        runtime: &McpRuntime,
        key: ServerKey,
        options: OpenOptions,
        events: EventSender,
    ) -> Result<(Carrier, IsOpen), Failure> {
        let server = self.all.iter().find(|it| it.key == key);
        let switched_off = Failure::of(Cause::SwitchedOff, OutcomeKind::Cancelled);
        let server = server.ok_or(switched_off)?;
        let (pool, clock) = (Rc::clone(&runtime.worker.pool), runtime.gateway().clock);
        let within = options.within;
        match (&server.transport, options.transport) {
            (ServerTransport::Http(place), TransportKind::Configured) => {
                let place = Rc::clone(place);
                let transport = HttpTransport::open(place, pool, clock, within, events);
                if let Some(resumed) = &options.resume {
                    transport.resume(resumed);
                }
                Ok((Carrier::Http(transport), IsOpen::AtOnce))
            }
            (ServerTransport::Http(place), TransportKind::LegacySse) => {
                let place = Rc::clone(place);
                let transport = SseTransport::open(place, pool, clock, within, events);
                Ok((Carrier::Sse(transport), IsOpen::WhenTold))
            }
            (ServerTransport::Child(settings), _) => {
                let transport = StdioTransport::open(settings, &options.children, events)?;
                Ok((Carrier::Stdio(transport), IsOpen::WhenTold))
            }
            (ServerTransport::Unusable(_), _) => Err(switched_off),
        }
    }
}

/// How a connection is to be made.
pub(crate) struct OpenOptions {
    pub(crate) transport: TransportKind,
    /// How long making it may take.
    pub(crate) within: Millis,
    /// The session that is gone on with, over streamable HTTP.
    pub(crate) resume: Option<Box<ResumedUpstream>>,
    /// Among whose programs it counts, if it is one.
    pub(crate) children: Children,
}

/// When a connection is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IsOpen {
    AtOnce,
    WhenTold,
}

impl Server {
    fn access(&self) -> ServerAccess {
        match &self.transport {
            ServerTransport::Http(_) => ServerAccess::Http,
            ServerTransport::Child(_) => ServerAccess::Child { is_shared: self.file.shared },
            ServerTransport::Unusable(_) => ServerAccess::Unusable,
        }
    }

    /// Where it is, in a word that says so to replicas that reach the same server and to nobody
    /// else.
    fn place(&self) -> Arc<str> {
        let Some(url) = &self.file.url else { return Arc::default() };
        let digest: [u8; 32] = Sha256::digest(url.as_bytes()).into();
        let digits: String = digest[..16].iter().map(|byte| format!("{byte:02x}")).collect();
        digits.into()
    }

    /// A reload may have changed the largest message that is taken from it.
    fn follow_limits(&self, live: &Live) {
        let max = answer_max(&live.file.limits);
        self.answer_max.set(max);
        if let ServerTransport::Http(place) = &self.transport {
            place.set_answer_max(max);
        }
    }
}

impl ServerTransport {
    fn new(
        runtime: &McpRuntime,
        live: &Live,
        (name, file): (&str, &ServerFile),
        answer_max: &Rc<Cell<usize>>,
    ) -> Self {
        let folder = live.folder.as_path();
        let environment = &*runtime.environment;
        let mut file = std::borrow::Cow::Borrowed(file);
        if let Some(fake) = file.fake {
            file.to_mut().url = Some(runtime.fakes.url(name, fake));
        }
        let made = if file.command.is_some() {
            let settings = child(name, &file, folder, environment);
            settings
                .map(|it| Self::Child(StdioSettings { answer_max: Rc::clone(answer_max), ..it }))
        } else {
            HttpPlace::new(name, &file, folder, environment, &runtime.gateway().mark)
                .inspect(|place| place.set_answer_max(answer_max.get()))
                .map(|place| Self::Http(Rc::new(place)))
                .map_err(|it| it.to_string())
        };
        made.unwrap_or_else(|reason| {
            tracing::warn!(server = name, reason, "a server cannot be used as configured");
            Self::Unusable(reason)
        })
    }
}

/// What a program needs to be started.
fn child(
    name: &str,
    file: &ServerFile,
    folder: &Path,
    environment: &dyn Environment,
) -> Result<StdioSettings, String> {
    let secret = |(key, value): (&String, &SecretRef)| {
        let resolved = value.resolve(environment, folder);
        let problem = |problem| format!("server `{name}`: env `{key}`: {problem}");
        resolved.map(|it| (key.clone(), it)).map_err(problem)
    };
    let env = file.env.iter().map(secret).collect::<Result<_, String>>()?;
    let warden = own_warden().map_err(|error| format!("server `{name}`: {error}"))?;
    let command = file.command.clone().unwrap_or_default();
    Ok(StdioSettings { name: name.into(), command, env, warden, answer_max: Rc::default() })
}

fn timeouts(live: &Live) -> (Millis, Millis) {
    (live.file.mcp.call_timeout.millis(), live.file.mcp.connect_timeout.millis())
}

/// What the secrets of a server are now, without keeping them.
fn secrets(runtime: &McpRuntime, live: &Live, file: &ServerFile) -> [u8; 32] {
    let mut digest = Sha256::new();
    for (name, secret) in file.headers.iter().chain(&file.env) {
        digest.update(name.as_bytes());
        if let Ok(value) = secret.resolve(&*runtime.environment, &live.folder) {
            digest.update(value.expose().as_bytes());
        }
        digest.update([0]);
    }
    digest.finalize().into()
}
