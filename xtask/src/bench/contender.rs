//! The programs under load: started on their core, with their settings from `bench/`, and stopped.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};

use super::{tools::Tools, usage::Cores};
use crate::docs;

/// Between two looks at a program that starts or ends.
const PAUSE: Duration = Duration::from_millis(20);
/// How often a program that starts is looked at.
const START_LOOKS: u32 = 6000;

/// A program that serves. It is stopped when this value is dropped.
#[derive(Debug)]
pub(super) struct Contender {
    pub(super) name: &'static str,
    child: Child,
    /// Plain answers.
    pub(super) port: u16,
    /// Streams; the same as `port` where one listener serves both.
    pub(super) stream_port: u16,
    /// The model name that leads to the streams' upstream; `None` for a contender of which only
    /// plain answers are measured.
    pub(super) stream_model: Option<&'static str>,
}

/// The ports of what stands behind the contenders.
#[derive(Clone, Copy, Debug)]
pub(super) struct Upstreams {
    pub(super) plain: u16,
    pub(super) stream: u16,
}

impl Contender {
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Contender {
    fn drop(&mut self) {
        // nginx's master takes its worker along on SIGTERM, but not when it is killed.
        let pid = self.child.id().to_string();
        drop(Command::new("kill").arg(&pid).status());
        for _ in 0..50 {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            pause();
        }
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The fast upstream: nginx with a fixed answer, beside the load.
pub(super) fn upstream(tools: &Tools, folder: &Path) -> anyhow::Result<Contender> {
    let port = free_port()?;
    let folder = settings(folder, "upstream.conf", &[("PORT", port)])?;
    let mut command = Command::new(&tools.nginx);
    command.arg("-p").arg(&folder).arg("-c").arg(folder.join("upstream.conf"));
    start("direct", command, port, port, Some("bench"))
}

/// What every contender is started with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arena<'a> {
    pub(super) tools: &'a Tools,
    pub(super) folder: &'a Path,
    pub(super) cores: &'a Cores,
    pub(super) upstreams: Upstreams,
}

impl Arena<'_> {
    /// nginx as a plain proxy.
    pub(super) fn nginx(&self) -> anyhow::Result<Contender> {
        self.plain_proxy("nginx", &self.tools.nginx, "nginx.conf", |command, folder| {
            command.arg("-p").arg(folder).arg("-c").arg(folder.join("nginx.conf"));
        })
    }

    /// Envoy as a plain proxy.
    pub(super) fn envoy(&self) -> anyhow::Result<Contender> {
        self.plain_proxy("envoy", &self.tools.envoy, "envoy.yaml", |command, folder| {
            command.args(["--concurrency", "1", "--disable-hot-restart", "--log-level", "error"]);
            command.arg("-c").arg(folder.join("envoy.yaml"));
        })
    }

    /// HAProxy as a plain proxy.
    pub(super) fn haproxy(&self) -> anyhow::Result<Contender> {
        self.plain_proxy("haproxy", &self.tools.haproxy, "haproxy.cfg", |command, folder| {
            command.args(["-db", "-q", "-f"]).arg(folder.join("haproxy.cfg"));
        })
    }

    /// A program that forwards without looking: a listener for plain answers, one for streams.
    fn plain_proxy(
        &self,
        name: &'static str,
        program: &Path,
        file: &str,
        arguments: impl FnOnce(&mut Command, &Path),
    ) -> anyhow::Result<Contender> {
        let (port, stream_port) = (free_port()?, free_port()?);
        let folder = settings(self.folder, file, &values(port, stream_port, self.upstreams))?;
        let mut command = pinned(program, self.cores);
        arguments(&mut command, &folder);
        start(name, command, port, stream_port, Some("bench"))
    }

    /// LiteLLM's proxy, another gateway for LLMs. Its streams are left out: 64 paced ones are more
    /// than one of its workers carries.
    pub(super) fn litellm(&self, program: &Path) -> anyhow::Result<Contender> {
        let port = free_port()?;
        let folder = settings(self.folder, "litellm.yaml", &values(port, port, self.upstreams))?;
        let mut command = pinned(program, self.cores);
        command.arg("--config").arg(folder.join("litellm.yaml"));
        command.args(["--host", "127.0.0.1", "--num_workers", "1", "--telemetry", "False"]);
        command.args(["--port", &port.to_string()]).env("LITELLM_LOG", "ERROR");
        // Otherwise it fetches a list of prices from the internet when it starts.
        command.env("LITELLM_LOCAL_MODEL_COST_MAP", "True").stderr(Stdio::null());
        start("litellm", command, port, port, None)
    }

    /// This gateway.
    pub(super) fn tidegate(&self, binary: &Path) -> anyhow::Result<Contender> {
        let (port, admin_port) = (free_port()?, free_port()?);
        let mut values = values(port, port, self.upstreams);
        values.push(("ADMIN_PORT", admin_port));
        let folder = settings(self.folder, "tidegate.yaml", &values)?;
        let mut command = pinned(binary, self.cores);
        command.args(["serve", "--threads", "1", "-c"]).arg(folder.join("tidegate.yaml"));
        start("tidegate", command, port, port, Some("bench-stream"))
    }
}

fn values(port: u16, stream_port: u16, upstreams: Upstreams) -> Vec<(&'static str, u16)> {
    vec![
        ("PORT", port),
        ("STREAM_PORT", stream_port),
        ("UPSTREAM", upstreams.plain),
        ("STREAM_UPSTREAM", upstreams.stream),
    ]
}

/// Fills `@NAME@` of a settings file and writes it into a folder of its own, which is returned.
fn settings(
    folder: &Path,
    name: &str,
    values: &[(&'static str, u16)],
) -> anyhow::Result<std::path::PathBuf> {
    let file = docs::root().join("bench").join(name);
    let mut text = std::fs::read_to_string(&file)
        .with_context(|| format!("cannot read `{}`", file.display()))?;
    // The comment at the top names the places and is not one of them.
    for (key, value) in values {
        text = text.replace(&format!("@{key}@"), &value.to_string());
    }
    let folder = folder.join(format!("run-{}", name.split('.').next().unwrap_or(name)));
    std::fs::create_dir_all(&folder).context("cannot make a folder below `target/bench`")?;
    std::fs::write(folder.join(name), text).context("cannot write settings")?;
    Ok(folder)
}

fn pinned(program: &Path, cores: &Cores) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", &cores.contender]).arg(program);
    command
}

fn start(
    name: &'static str,
    mut command: Command,
    port: u16,
    stream_port: u16,
    stream_model: Option<&'static str>,
) -> anyhow::Result<Contender> {
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .with_context(|| format!("cannot start {name}"))?;
    let mut contender = Contender { name, child, port, stream_port, stream_model };
    // Most take a second; LiteLLM loads its modules for half a minute.
    for _ in 0..START_LOOKS {
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return Ok(contender);
        }
        if let Ok(Some(status)) = contender.child.try_wait() {
            bail!("{name} ended at once with {status}; what it said stands above");
        }
        pause();
    }
    bail!("{name} does not listen on port {port} after {} s", (PAUSE * START_LOOKS).as_secs())
}

#[expect(clippy::disallowed_methods, reason = "there is nothing to wait on but the process")]
fn pause() {
    std::thread::sleep(PAUSE);
}

/// A port that nobody listens on.
pub(super) fn free_port() -> anyhow::Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0").context("no free port")?;
    Ok(listener.local_addr().context("a bound socket has an address")?.port())
}
