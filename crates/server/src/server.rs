//! A running gateway: its threads, and how it starts, reloads and stops.
//!
//! N threads carry the data plane, each with a runtime, a listener and connections of its own; one
//! more carries the admin listener and the probes. Nothing runs that this file did not start, and
//! [`Server::stop`] waits for all of it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tidegate_config::{
    Overrides,
    diagnostic::Diagnostic,
    file::LogFormat,
    secret::Environment,
    source::{Source, read_file},
};
use tidegate_fleet::connection;
use tidegate_gateway::{
    fixed::Fixed,
    gateway::Gateway,
    live::Live,
    log::{self, AlreadyLogging},
    prepare::{Asked, StartError, prepare_for},
    private::Private,
    worker::Worker,
};
use tidegate_llm::own_request::ask_route;
use tidegate_mcp_shell as mcp;
use tidegate_net::connection::handover::way;
use tidegate_operator::{
    control,
    reload::{self, ReloadCause, Reloaded},
};
use tidegate_runtime::{
    clock::Clock,
    phase::{Phase, settling},
};
use tokio::runtime::LocalOptions;
use tokio::sync::{oneshot, watch};

use crate::{
    fleet, listen,
    peers::{self, FleetSessions},
    worker::{self, McpSeats, ThreadLimits},
};

/// What a gateway is started with.
pub struct Start {
    /// The config's text.
    pub source: Source,
    /// The file it was read from; `None` for the built-in demo.
    pub path: Option<PathBuf>,
    /// Where secrets come from.
    pub environment: Arc<dyn Environment + Send + Sync>,
    /// Threads of the data plane; zero = one per core.
    pub threads: usize,
}

/// A running gateway.
pub struct Server {
    gateway: Arc<Gateway>,
    environment: Arc<dyn Environment + Send + Sync>,
    address: SocketAddr,
    admin_address: SocketAddr,
    phase: watch::Sender<Phase>,
    threads: Vec<JoinHandle<()>>,
    /// It ends last: what the others still tell has to be written.
    fleet: Option<JoinHandle<()>>,
    drain: Duration,
    warnings: Vec<Diagnostic>,
    /// The line to the MCP thread.
    mcp: Option<mcp::McpHandle>,
}

/// The probe of an MCP server.
type Probing = Pin<Box<dyn Future<Output = Option<bool>>>>;

/// How long streams have to say that the drain is over: an event each, to clients that read.
const LAST_WORDS: Duration = Duration::from_millis(500);

impl Server {
    /// Starts to serve.
    ///
    /// # Errors
    /// The config is not sound, or an address is taken.
    pub fn start(start: Start) -> Result<Self, StartError> {
        Self::begin(start, None, Overrides::default(), None)
    }

    /// Starts to serve as a replica of a fleet that is made by whoever starts it: for tests.
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub fn start_in_fleet(
        start: Start,
        fleet: Arc<dyn mcp::fleet::SessionFleet>,
    ) -> Result<Self, StartError> {
        Self::begin(start, None, Overrides::default(), Some(fleet))
    }

    /// Starts to serve where the command line says, in place of the config, now and after every
    /// reload.
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub fn start_at(start: Start, overrides: Overrides) -> Result<Self, StartError> {
        Self::begin(start, None, overrides, None)
    }

    /// Starts to serve one client of this process only.
    ///
    /// # Errors
    /// The config is not sound.
    pub fn start_private(start: Start, private: Private) -> Result<Self, StartError> {
        Self::begin(start, Some(private), Overrides::default(), None)
    }

    fn begin(
        start: Start,
        private: Option<Private>,
        overrides: Overrides,
        fleet: Option<Arc<dyn mcp::fleet::SessionFleet>>,
    ) -> Result<Self, StartError> {
        let (source, path) = (&start.source, start.path.clone());
        let asked = Asked { private: private.as_ref(), overrides };
        let (live, warnings) = prepare_for(asked, source, path, &*start.environment, None)?;
        let fixed = Fixed::of(&live.file);
        let listen = live.file.listen.0;
        let admin_listen = live.file.admin.listen.0;
        let peer_listen = live.file.state.as_ref().and_then(|it| it.peer_listen).map(|it| it.0);
        let drain = Duration::from_millis(live.file.shutdown.drain.millis().0);
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let count = if start.threads == 0 { cores } else { start.threads };
        let limits = ThreadLimits::of(&live.file.limits, count);
        let bind = |address, count| {
            listen::bind(address, count).map_err(|cause| StartError::Listen { address, cause })
        };
        let sockets = bind(listen, count)?;
        let admin_socket = bind(admin_listen, 1)?.remove(0);
        let bound = |socket: &std::net::TcpListener, address| {
            socket.local_addr().map_err(|cause| StartError::Listen { address, cause })
        };
        let address = bound(&sockets[0], listen)?;
        let admin_address = bound(&admin_socket, admin_listen)?;
        let (mut peer_socket, mut peer_address) = (None, None);
        if let Some(listen) = peer_listen {
            let socket = bind(listen, 1)?.remove(0);
            peer_address = Some(bound(&socket, listen)?);
            peer_socket = Some(socket);
        }
        let gateway = Arc::new(Gateway::new(live, Clock::start(), address, admin_address));
        if let Some(private) = private {
            drop(gateway.private.set(private));
        }
        drop(gateway.fixed.set((fixed, overrides)));
        gateway.keep_records();
        let (phase, watched) = watch::channel(Phase::Serving);
        let mut server = Self {
            gateway: Arc::clone(&gateway),
            environment: start.environment,
            address,
            admin_address,
            phase,
            threads: Vec::new(),
            fleet: None,
            drain,
            warnings,
            mcp: None,
        };
        let (handle, arrivals) = mcp::line();
        server.mcp = Some(handle.clone());
        let (to_mcp, arriving) = way(limits.mcp_seats);
        let (settling_workers, settled_workers) = settling();
        for (number, socket) in sockets.into_iter().enumerate() {
            let (gateway, mcp) = (Arc::clone(&gateway), (handle.clone(), to_mcp.clone()));
            let phase = (watched.clone(), settling_workers.clone());
            server.thread(format!("worker-{number}"), move || async move {
                if let Err(error) = worker::run(gateway, mcp, socket, limits, phase).await {
                    tracing::error!(%error, "a worker cannot listen");
                }
            })?;
        }
        drop(settling_workers);
        // Dropped when the MCP side has ended: the listener for other replicas closes last.
        let (mcp_end, mcp_ended) = oneshot::channel::<()>();
        let mut sessions = fleet;
        if let Some(joined) = fleet::join(&gateway, peer_address.map(|it| it.port())) {
            sessions = Some(FleetSessions::new(&joined));
            if let Some(socket) = peer_socket {
                let (joined, handle) = (Arc::clone(&joined), handle.clone());
                server.thread("peers".to_owned(), move || {
                    peers::run(socket, joined, handle, mcp_ended)
                })?;
            }
            let (shared, phase) = (Arc::clone(&gateway), watched.clone());
            let run = move || connection::run(joined, fleet::ears(shared), phase);
            server.fleet = Some(start_thread("fleet".to_owned(), run)?);
        }
        let environment = Arc::clone(&server.environment);
        let (shared, phase) = (Arc::clone(&gateway), watched.clone());
        let (secrets, own_handle) = (Arc::clone(&environment), handle.clone());
        server.thread("mcp".to_owned(), move || async move {
            let worker = Rc::new(Worker::new(shared));
            let (settling, settled) = settling();
            let arriving = (arriving, (settled_workers, settling));
            let seats = McpSeats::new(&worker, own_handle, limits, phase.clone(), arriving);
            let ask_route = ask_route(&worker);
            let runtime = mcp::McpRuntime::in_fleet(worker, ask_route, secrets, sessions);
            mcp::run(runtime, arrivals, (phase, settled)).await;
            drop(mcp_end);
            seats.drained().await;
        })?;
        server.thread("control".to_owned(), move || {
            let probe_server = Box::new(move |name: String| -> Probing {
                let handle = handle.clone();
                Box::pin(async move { handle.probe(&name).await })
            });
            control::run(gateway, admin_socket, probe_server, environment, watched)
        })?;
        Ok(server)
    }

    /// Where the data plane listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The line to the MCP thread, for whoever hands requests of other replicas on.
    #[must_use]
    pub fn mcp(&self) -> Option<&mcp::McpHandle> {
        self.mcp.as_ref()
    }

    /// Where the admin listener listens.
    #[must_use]
    pub fn admin_address(&self) -> SocketAddr {
        self.admin_address
    }

    /// Makes this gateway's events the log of the process, as its config says.
    ///
    /// # Errors
    /// The process has a log already.
    pub fn log(&self) -> Result<(), AlreadyLogging> {
        let settings = log::start(&self.gateway.live.load().file.log, self.gateway.clock)?;
        drop(self.gateway.log.set(settings));
        Ok(())
    }

    /// How long a changed file must have settled before it is read again.
    #[must_use]
    pub fn debounce(&self) -> Duration {
        Duration::from_millis(self.gateway.live.load().file.reload.debounce.millis().0)
    }

    /// What an operator reads in two seconds: what is served, and where.
    #[must_use]
    pub fn banner(&self, is_ascii: bool) -> String {
        let live = self.gateway.live.load();
        let version = env!("CARGO_PKG_VERSION");
        let (name, named) = (config_name(&live), named_targets(&live));
        let dot = if is_ascii { "*" } else { "·" };
        let routes: Vec<&str> = live.file.routes.keys().map(String::as_str).collect();
        let servers: Vec<&str> = live.file.mcp.servers.keys().map(String::as_str).collect();
        let scheme = if live.file.tls.is_some() { "https" } else { "http" };
        let admin_scheme = if live.file.admin.tls.is_some() { "https" } else { "http" };
        let mcp = match servers.len() {
            0 => String::new(),
            _ => {
                let servers = servers.join(", ");
                format!("  mcp    {scheme}://{}/mcp   servers: {servers}\n", self.address)
            }
        };
        format!(
            "tidegate {version}  {name} (sha {})  {}, {}, {}\n\
             \x20 api    {scheme}://{}/v1    OpenAI, Anthropic and Gemini clients; models: {}\n\
             {mcp}\
             \x20 admin  {admin_scheme}://{}       dashboard {dot} /metrics {dot} /api/snapshot\n\
             serving\n",
            live.fingerprint,
            counted(named, "target"),
            counted(routes.len(), "route"),
            counted(servers.len(), "MCP server"),
            self.address,
            routes.join(", "),
            self.admin_address,
        )
    }

    /// Logs what is served and where, as one line, and what somebody should look at in the config.
    pub fn announce(&self, source: &Source) {
        let live = self.gateway.live.load();
        tracing::info!(
            version = env!("CARGO_PKG_VERSION"),
            config = config_name(&live),
            sha = live.fingerprint,
            targets = named_targets(&live),
            routes = live.file.routes.len(),
            servers = live.file.mcp.servers.len(),
            listen = %self.address,
            admin_listen = %self.admin_address,
            "serving"
        );
        reload::warnings(source, &self.warnings);
        self.announce_stores();
    }

    /// Logs which records are not kept although the config asks for it: their files were opened
    /// before there was a log.
    pub fn announce_stores(&self) {
        self.gateway.stores.announce();
    }

    /// What somebody should look at in the config that it was started with.
    #[must_use]
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.warnings
    }

    /// Logs that it is about to end.
    pub fn tell_end(&self) {
        let drain = self.drain.as_secs();
        tracing::info!(drain_s = drain, "stopping: requests under way may finish first");
    }

    /// Whether the log is for machines.
    #[must_use]
    pub fn logs_json(&self) -> bool {
        self.gateway.live.load().file.log.format == LogFormat::Json
    }

    /// The files whose change means that the config has changed: its own, and those of secrets.
    #[must_use]
    pub fn watched_files(&self) -> Vec<PathBuf> {
        reload::watched(&self.gateway.live.load())
    }

    /// Takes a new config, or keeps the old one and says why. The log tells of either.
    ///
    /// # Errors
    /// The config is not sound; nothing has changed then.
    pub fn reload(&self, source: &Source) -> Result<Reloaded, StartError> {
        reload::reload(&self.gateway, source, &*self.environment, ReloadCause::Signal)
    }

    /// Reads the config file again. The log tells what came of it.
    pub fn read_again(&self, cause: ReloadCause) {
        let Some(path) = self.gateway.live.load().path.clone() else {
            return tracing::info!("the built-in demo has no config file to read again");
        };
        match read_file(&path) {
            // What went wrong is in the log, and the previous config serves on.
            Ok(source) => {
                drop(reload::reload(&self.gateway, &source, &*self.environment, cause));
            }
            Err(problem) => reload::unreadable(&self.gateway, &problem, cause),
        }
    }

    /// Stops accepting, lets what is under way finish for a while, and ends.
    pub fn stop(mut self) {
        drop(self.mcp.take());
        self.phase.send_replace(Phase::Draining);
        self.wait(self.drain);
        self.phase.send_replace(Phase::Ending);
        self.wait(LAST_WORDS);
        self.phase.send_replace(Phase::Stopped);
        for thread in self.threads.drain(..).chain(self.fleet.take()) {
            drop(thread.join());
        }
        self.gateway.export_metrics();
        self.gateway.stores.flush(&self.gateway.journal);
        if let Some(log) = self.gateway.log.get() {
            log.flush();
        }
    }

    /// Waits until every thread has ended, or for this long.
    fn wait(&self, most: Duration) {
        const STEP: Duration = Duration::from_millis(10);
        let mut waited = Duration::ZERO;
        while waited < most && !self.threads.iter().all(JoinHandle::is_finished) {
            #[expect(clippy::disallowed_methods, reason = "the drain is a wait with a deadline")]
            std::thread::sleep(STEP);
            waited += STEP;
        }
    }

    fn thread<F: Future<Output = ()>>(
        &mut self,
        name: String,
        run: impl FnOnce() -> F + Send + 'static,
    ) -> Result<(), StartError> {
        self.threads.push(start_thread(name, run)?);
        Ok(())
    }
}

/// A thread with a runtime of its own.
fn start_thread<F: Future<Output = ()>>(
    name: String,
    run: impl FnOnce() -> F + Send + 'static,
) -> Result<JoinHandle<()>, StartError> {
    std::thread::Builder::new()
        .name(name)
        .spawn(move || {
            // Its tasks stay on their thread, so the scheduler itself has them: a set of tasks
            // inside of one task would be a second scheduler in the first, and waking that one
            // takes a system call.
            let mut builder = tokio::runtime::Builder::new_current_thread();
            match builder.enable_all().build_local(LocalOptions::default()) {
                Ok(runtime) => runtime.block_on(run()),
                Err(error) => tracing::error!(%error, "a thread has no runtime"),
            }
        })
        .map_err(StartError::Thread)
}

fn config_name(live: &Live) -> String {
    let shown = |path: &PathBuf| path.display().to_string();
    live.path.as_ref().map_or_else(|| "the built-in demo".to_owned(), shown)
}

/// The targets that the config names.
fn named_targets(live: &Live) -> usize {
    live.targets.keys().filter(|id| !id.ends_with("/*")).count()
}

/// `1 route`, `2 routes`.
fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
