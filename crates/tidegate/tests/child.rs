//! `tidegate __child` with real processes: whatever happens to the gateway or the program, nothing
//! of the program is left.
//!
//! The program of these tests starts a child in its own group, one in a session of its own, and a
//! daemon whose parent is gone; it says their process numbers in its first line. `/proc` is asked
//! what is left: a zombie counts as left.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

/// Echoes lines and starts relatives, which end by themselves should a test leave them. Arguments:
/// `stubborn` ignores TERM and the end of input, `deaf` does not read it, `short` ends by itself
/// with code 3.
const PROGRAM: &str = r#"
import os, signal, subprocess, sys
mood = sys.argv[1]
if mood in ("stubborn", "deaf"):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen(["sleep", "60"])
moved = subprocess.Popen(["sleep", "60"], start_new_session=True)
daemon = subprocess.run(["sh", "-c", "sleep 60 >/dev/null & echo $!"], stdout=subprocess.PIPE,
                        start_new_session=True, text=True).stdout.strip()
print(os.getpid(), child.pid, moved.pid, daemon, flush=True)
if mood == "short":
    os._exit(3)
if mood != "deaf":
    for line in sys.stdin:
        print(line, end="", flush=True)
while mood in ("stubborn", "deaf"):
    signal.pause()
for it in (child, moved):
    it.kill(); it.wait()
os.kill(int(daemon), signal.SIGKILL)
"#;

/// Starts the real warden as a gateway does and waits to be killed.
const GATEWAY: &str = r#"
import signal, socket, subprocess, sys
ours, theirs = socket.socketpair()
warden = subprocess.Popen([sys.argv[1], "__child", "--", *sys.argv[2:]], stdin=theirs)
theirs.close()
print(warden.pid, flush=True)
signal.pause()
"#;

/// A warden whose gateway is the test.
struct Warden {
    process: Child,
    socket: UnixStream,
    output: BufReader<ChildStdout>,
    words: BufReader<UnixStream>,
}

impl Warden {
    fn start(argv: &[&str]) -> Self {
        let (socket, theirs) = UnixStream::pair().expect("a pair of sockets");
        let mut process = Command::new(env!("CARGO_BIN_EXE_tidegate"))
            .args(["__child", "--"])
            .args(argv)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let output = BufReader::new(process.stdout.take().expect("stdout is piped"));
        let words = BufReader::new(socket.try_clone().expect("a second handle"));
        Self { process, socket, output, words }
    }

    fn of_program(mood: &str) -> (Self, Vec<u32>) {
        let mut warden = Self::start(&["python3", "-c", PROGRAM, mood]);
        let relatives = numbers(&warden.line());
        assert_eq!(relatives.len(), 4);
        assert!(warden.word().starts_with("started "));
        (warden, relatives)
    }

    fn line(&mut self) -> String {
        line(&mut self.output)
    }

    fn word(&mut self) -> String {
        line(&mut self.words)
    }

    /// Waits for the warden's own end.
    fn reap(mut self) -> Option<i32> {
        self.process.wait().expect("it can be waited for").code()
    }
}

fn line(from: &mut impl BufRead) -> String {
    let mut line = String::new();
    from.read_line(&mut line).expect("a line of text");
    line.trim_end().to_owned()
}

fn numbers(line: &str) -> Vec<u32> {
    line.split(' ').map(|number| number.parse().expect("a process number")).collect()
}

fn exists(process: u32) -> bool {
    Path::new(&format!("/proc/{process}")).exists()
}

/// Waits until no process is left; which are left after `limit`?
fn left(processes: &[u32], limit: Duration) -> Vec<u32> {
    let step = Duration::from_millis(10);
    let steps = limit.as_millis() / step.as_millis();
    for _ in 0..steps {
        if !processes.iter().any(|&it| exists(it)) {
            break;
        }
        pause(step);
    }
    processes.iter().copied().filter(|&it| exists(it)).collect()
}

#[expect(clippy::disallowed_methods, reason = "a process tells only its parent of its end")]
fn pause(step: Duration) {
    std::thread::sleep(step);
}

fn kill(signal: &str, process: u32) {
    let line = format!("kill -{signal} {process}");
    assert!(Command::new("sh").args(["-c", &line]).status().expect("a shell").success());
}

/// Less than a stubborn program would have if it were asked to end: it was killed.
const AT_ONCE: Duration = Duration::from_secs(3);
const SOON: Duration = Duration::from_secs(5);

#[test]
fn input_and_output_pass_and_the_end_of_input_ends_a_program_in_good_order() {
    let (mut warden, relatives) = Warden::of_program("good");
    warden.socket.write_all(b"{\"id\":1}\n").expect("the warden takes input");
    assert_eq!(warden.line(), "{\"id\":1}");
    let long = "x".repeat(1 << 20);
    warden.socket.write_all(format!("{long}\n").as_bytes()).expect("the warden takes input");
    assert_eq!(warden.line(), long);
    warden.socket.shutdown(Shutdown::Write).expect("the socket is open");
    assert_eq!(warden.word(), "code 0");
    assert_eq!(warden.reap(), Some(0));
    assert_eq!(left(&relatives, AT_ONCE), []);
}

#[test]
fn a_program_that_ignores_the_end_of_input_and_term_is_killed() {
    let (mut warden, relatives) = Warden::of_program("stubborn");
    warden.socket.shutdown(Shutdown::Write).expect("the socket is open");
    assert_eq!(warden.word(), "signal 9");
    assert_eq!(warden.reap(), Some(0));
    assert_eq!(left(&relatives, SOON), []);
}

#[test]
fn dropping_the_socket_kills_everything_at_once() {
    for mood in ["stubborn", "deaf"] {
        let (warden, mut everybody) = Warden::of_program(mood);
        everybody.push(warden.process.id());
        // Input that nobody reads must not hide that the gateway is gone.
        warden.socket.set_nonblocking(true).expect("an option of sockets");
        while mood == "deaf" && (&warden.socket).write(&[b'x'; 65536]).is_ok() {}
        let Warden { mut process, socket, output, words } = warden;
        drop((socket, words));
        assert_eq!(left(&everybody[..4], AT_ONCE), [], "{mood}");
        assert_eq!(process.wait().expect("it can be waited for").code(), Some(0));
        drop(output);
    }
}

#[test]
fn kill_9_of_the_gateway_leaves_no_process() {
    let mut gateway = Command::new("python3")
        .args(["-c", GATEWAY, env!("CARGO_BIN_EXE_tidegate"), "python3", "-c", PROGRAM, "stubborn"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("python starts");
    let mut output = BufReader::new(gateway.stdout.take().expect("stdout is piped"));
    // The warden's number and the program's line come in either order.
    let (one, other) = (line(&mut output), line(&mut output));
    let everybody: Vec<u32> = [numbers(&one), numbers(&other)].concat();
    assert_eq!(everybody.len(), 5);
    assert!(everybody.iter().all(|&it| exists(it)));
    gateway.kill().expect("it runs");
    gateway.wait().expect("it was killed");
    // The warden is handed to whoever adopts orphans here, who may leave it a zombie.
    let left = left(&everybody, SOON);
    assert!(left.iter().all(|&it| is_zombie_warden(it)), "{left:?}");
}

fn is_zombie_warden(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.is_empty() || stat.contains("(tidegate) Z")
}

#[test]
fn what_a_program_leaves_running_ends_with_it() {
    let (mut warden, relatives) = Warden::of_program("short");
    assert_eq!(warden.word(), "code 3");
    // First this: the output would end too when they end by themselves.
    assert_eq!(left(&relatives, SOON), []);
    let mut rest = String::new();
    warden.output.read_to_string(&mut rest).expect("the output ends");
    assert_eq!(warden.reap(), Some(0));
}

#[test]
fn term_to_the_warden_ends_the_program_too() {
    let (warden, relatives) = Warden::of_program("stubborn");
    kill("TERM", warden.process.id());
    assert_eq!(warden.reap(), Some(0));
    assert_eq!(left(&relatives, SOON), []);
}

#[test]
fn an_adopted_orphan_is_reaped_while_the_program_runs() {
    let (warden, relatives) = Warden::of_program("good");
    let (daemon, others) = relatives.split_last().expect("four of them");
    kill("KILL", *daemon);
    assert_eq!(left(&[*daemon], AT_ONCE), []);
    assert!(others.iter().all(|&it| exists(it)));
    drop(warden.socket);
    drop(warden.words);
}

#[test]
fn a_program_that_does_not_exist_is_told_by_its_error_number() {
    let mut warden = Warden::start(&["/no/such/program"]);
    assert_eq!(warden.word(), "failed 2");
    assert_eq!(warden.reap(), Some(5));
}

#[test]
fn s36_arguments_arrive_as_they_are() {
    let say = "import sys; print(sys.argv[1:])";
    let mut warden = Warden::start(&["python3", "-c", say, "; rm -rf x", "$(id)", "|", "--help"]);
    assert_eq!(warden.line(), "['; rm -rf x', '$(id)', '|', '--help']");
    assert!(warden.word().starts_with("started "));
    assert_eq!(warden.word(), "code 0");
}

#[test]
fn s38_a_program_has_a_limit_of_descriptors_and_a_group_of_its_own() {
    let say = "import os, resource as r; print(*r.getrlimit(r.RLIMIT_NOFILE), os.getpgid(0) == \
               os.getpid())";
    let mut warden = Warden::start(&["python3", "-c", say]);
    let line = warden.line();
    let limits: Vec<&str> = line.split(' ').collect();
    assert!(limits[0].parse::<u32>().is_ok_and(|soft| soft <= 1024), "{line}");
    assert!(limits[1].parse::<u32>().is_ok_and(|hard| hard <= 4096), "{line}");
    assert_eq!(limits[2], "True");
}
