//! `tidegate mcp`: an MCP server on stdin and stdout, for desktop clients.
//!
//! It carries messages to a gateway: the one at `--url` or `TIDEGATE_URL`, else the one that runs
//! by the config that `serve` would take, else one of its own by that config, inside this process.
//! What is carried, and how it ends, is [`tidegate_mcp_shell::bridge`]'s.
//!
//! | event | what happens |
//! |---|---|
//! | stdin ends | calls under way get a few seconds; then the end |
//! | nobody reads stdout | the end |
//! | SIGTERM, SIGINT | the end, without waiting for calls |
//! | SIGHUP, or the file changed | a gateway of its own reads the config again |
//!
//! Rules kept here:
//! - Nothing but messages goes to stdout: notes and the log go to stderr.
//! - Whoever named a gateway gets that one: none of its own is started in its place.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tidegate_config::secret::ProcessEnvironment;
use tidegate_config::source::Source;
use tidegate_gateway::private::Private;
use tidegate_mcp_shell::bridge::{self, Bridge, Pipes};
use tidegate_server::server::{Server, Start};

use super::serve::{self, FoundConfig};
use super::tools::gate::{self, Found, GateArgs};
use crate::exit::{self, Exit};
use crate::printer::Printer;

const EXAMPLES: &str = "\
Examples:
  tidegate mcp -c ~/tidegate.yaml       as a desktop client's config has it
  tidegate mcp --url http://host:8700   a gateway elsewhere

The key for a gateway that wants one is read from TIDEGATE_KEY.

Next: `tidegate tools list` shows what clients are offered";

/// Speak MCP on stdin and stdout, for desktop clients
///
/// Messages go to the gateway that runs by the config; where none answers, this process serves the
/// config itself, for this client only. It ends when stdin does.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct McpArgs {
    /// The config file; none: as `serve` finds it
    #[arg(short, long, value_name = "FILE", conflicts_with = "url")]
    config: Option<PathBuf>,
    /// A gateway that runs already; none: TIDEGATE_URL, else the config's
    #[arg(long, value_name = "URL")]
    url: Option<String>,
}

/// Carries messages until the client is done.
pub(crate) fn run(args: &McpArgs, printer: &Printer) -> Exit {
    let asked = GateArgs { url: args.url.clone(), config: args.config.clone() };
    let found = match gate::find(&asked, printer) {
        Ok(found) => found,
        Err(exit) => return exit,
    };
    let mut signals = match Signals::new([SIGHUP, SIGINT, SIGTERM]) {
        Ok(signals) => signals,
        Err(error) => {
            printer.error(&format!("cannot listen to signals: {error}"));
            return Exit::CannotStart;
        }
    };
    let key = gate::key();
    if found.is_named || bridge::answers(&found.url, key.as_deref()).unwrap_or(false) {
        printer.note(&format!("carrying messages to the gateway at {}", found.url));
        return match start(&found.url, key.as_deref(), printer) {
            Ok(bridge) => {
                serve::until_told(&mut signals, || !bridge.is_over());
                end(bridge, printer)
            }
            Err(exit) => exit,
        };
    }
    match own(args, key.as_deref(), &found, printer) {
        Ok(own) => own.run(&mut signals, printer),
        Err(exit) => exit,
    }
}

/// A gateway inside this process, for one client.
struct Own {
    server: Server,
    private: Private,
}

fn own(args: &McpArgs, key: Option<&str>, found: &Found, printer: &Printer) -> Result<Own, Exit> {
    let FoundConfig { source, path } = serve::config(args.config.as_deref(), printer)?;
    let private = Private::new(key).map_err(|reason| {
        printer.error(reason);
        Exit::CannotStart
    })?;
    let start = Start {
        source: source.clone(),
        path,
        environment: Arc::new(ProcessEnvironment),
        // One client has one thread's worth of traffic.
        threads: 1,
    };
    printer.note(&format!("no gateway answers at {}: serving {}", found.url, name(&source)));
    let server = Server::start_private(start, private.clone())
        .map_err(|error| serve::cannot_start(&source, &error, printer))?;
    if server.log().is_err() {
        printer.detail("the log was set up already");
    }
    Ok(Own { server, private })
}

impl Own {
    fn run(self, signals: &mut Signals, printer: &Printer) -> Exit {
        let url = format!("http://{}/mcp", self.server.address());
        let exit = match start(&url, Some(self.private.key()), printer) {
            Ok(bridge) => {
                let files = serve::FileWatches::new(&self.server);
                serve::follow(&self.server, signals, files, || !bridge.is_over());
                end(bridge, printer)
            }
            Err(exit) => exit,
        };
        self.server.stop();
        exit
    }
}

fn start(url: &str, key: Option<&str>, printer: &Printer) -> Result<Bridge, Exit> {
    let pipes = Pipes { input: Box::new(io::stdin()), output: Box::new(io::stdout()) };
    Bridge::start(url, key, pipes).map_err(|error| gate::explain(url, &error, printer))
}

fn end(bridge: Bridge, printer: &Printer) -> Exit {
    exit::end_when_asked_again();
    match bridge.stop() {
        Ok(()) => Exit::Done,
        Err(error) => {
            printer.error(&error.to_string());
            Exit::CannotStart
        }
    }
}

fn name(source: &Source) -> String {
    source.name().to_owned()
}
