//! The warden: the process between the gateway and a server's program, which makes sure that the
//! program and all it started are gone when the gateway is.
//!
//! ```text
//!   gateway ══ socket ══▶ warden ── pipe ──▶ program        (the program's stdin)
//!   gateway ◀═ words ════ warden
//!   gateway ◀──────────── pipe ───────────── program        (stdout and stderr, untouched)
//! ```
//! Why a process: nobody can act after `kill -9` of the gateway but somebody else, and a program
//! may ignore the end of its stdin. The socket is the warden's stdin. It carries the program's
//! input one way and the warden's `word`s the other, and its end tells two stories apart:
//!
//! | the gateway | the warden |
//! |---|---|
//! | shuts its sending side | closes the program's stdin, waits, asks by TERM, waits, kills |
//! | is gone, or has dropped the socket | kills at once |
//!
//! Rules kept here:
//! - The warden has the program's environment and no other; it holds no secret of the gateway's.
//! - It ends only when nothing of the program is left, as far as can be seen (`family`), and it
//!   leaves no zombie.
//! - When the program has ended by itself, whatever it left running is ended too.
//! - One thread, one `poll`: an idle warden costs nothing.
//!
//! Left to others: restarting (the gateway), and the meaning of what passes through.

mod family;
pub(crate) mod word;

use std::ffi::OsString;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::ChildStdin;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use tidegate_core::time::{Millis, Now};
use tidegate_runtime::clock::Clock;

use self::family::Family;
use self::word::Word;

/// How long a program may take to end by itself once its stdin is closed, and once more after it
/// was asked by TERM. Servers end within milliseconds; two seconds let one save its state.
pub(crate) const GRACE: Millis = Millis::seconds(2);
/// How long what a program left running may take to end after TERM.
const LEFTOVER_GRACE: Millis = Millis(500);
/// How often leftovers are looked for while an end is awaited: they tell nobody of their own.
const LOOK_EVERY: Millis = Millis(50);
/// Input on its way to the program.
const BUFFER_BYTES: usize = 64 * 1024;
/// The descriptors a program may have: soft and hard, the usual defaults of a login. The gateway's
/// own limits are far higher and are not handed on.
const DESCRIPTORS: (u64, u64) = (1024, 4096);

/// Runs the program `argv` and stands by until it and all it started are gone.
///
/// # Errors
/// If the program cannot be started; the gateway has been told so.
pub fn stand_by(argv: &[OsString]) -> io::Result<()> {
    let control = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut warden = match start(argv, &control) {
        Ok(warden) => warden,
        Err(error) => {
            say(&control, Word::Failed(error.raw_os_error().unwrap_or_default()));
            return Err(error);
        }
    };
    warden.say(Word::Started(warden.family.leader_id()));
    warden.watch();
    warden.family.kill();
    warden.tell_end();
    Ok(())
}

fn start(argv: &[OsString], control: &UnixStream) -> io::Result<Warden> {
    // Before the program starts, so that no end of it can be missed.
    let (children, told) = (signals(&[SIGCHLD])?, signals(&[SIGTERM, SIGINT, SIGHUP])?);
    family::adopt_orphans();
    limit_descriptors();
    let (family, input) = Family::start(argv)?;
    let control = control.try_clone()?;
    control.set_nonblocking(true)?;
    rustix::io::ioctl_fionbio(&input, true)?;
    Ok(Warden {
        control,
        children,
        told,
        family,
        input: Some(input),
        pending: Vec::with_capacity(BUFFER_BYTES),
        written: 0,
        is_input_over: false,
        is_end_told: false,
        phase: Phase::Serving,
        clock: Clock::start(),
    })
}

/// A stream that becomes readable when one of these signals arrives.
fn signals(numbers: &[i32]) -> io::Result<UnixStream> {
    let (reader, writer) = UnixStream::pair()?;
    reader.set_nonblocking(true)?;
    for &number in numbers {
        signal_hook::low_level::pipe::register(number, writer.try_clone()?)?;
    }
    Ok(reader)
}

/// A limit that cannot be set is one that stands lower already.
fn limit_descriptors() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let (soft, hard) = DESCRIPTORS;
    let maximum = getrlimit(Resource::Nofile).maximum.map_or(hard, |maximum| maximum.min(hard));
    let limit = Rlimit { current: Some(soft.min(maximum)), maximum: Some(maximum) };
    let _ = setrlimit(Resource::Nofile, limit);
}

/// Tells the gateway. One that is gone hears nothing, and is seen to be gone elsewhere.
fn say(mut control: &UnixStream, word: Word) {
    drop(control.write_all(format!("{word}\n").as_bytes()));
}

/// What is being waited for.
#[derive(Clone, Copy, Debug)]
enum Phase {
    /// The end of the input or of the program.
    Serving,
    /// The program's own end, after the end of its input.
    Leaving { until: Now },
    /// The end of everything that was asked by TERM.
    Asked { until: Now },
}

/// The gateway's end of the socket, seen from here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gateway {
    Present,
    Gone,
}

struct Warden {
    control: UnixStream,
    /// Readable when a child of ours has ended.
    children: UnixStream,
    /// Readable when somebody asks the warden itself to end.
    told: UnixStream,
    family: Family,
    /// The program's stdin, while somebody reads it and more may come.
    input: Option<ChildStdin>,
    pending: Vec<u8>,
    /// How much of `pending` the program has.
    written: usize,
    is_input_over: bool,
    is_end_told: bool,
    phase: Phase,
    clock: Clock,
}

impl Warden {
    fn say(&self, word: Word) {
        say(&self.control, word);
    }

    /// Stands by until there is nothing to wait for.
    fn watch(&mut self) {
        loop {
            match self.turn() {
                Ok(Gateway::Present) => {}
                // An error here is one of `poll` itself: nothing can be watched any more.
                Ok(Gateway::Gone) | Err(_) => return,
            }
            if self.is_over() {
                return;
            }
        }
    }

    /// Waits for something to happen and takes note of it.
    fn turn(&mut self) -> io::Result<Gateway> {
        let wants_input = !self.is_input_over && self.pending.is_empty();
        let control_for = if wants_input { PollFlags::IN } else { PollFlags::empty() };
        let input_for = if self.pending.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
        let mut watched = vec![
            PollFd::new(&self.control, control_for),
            PollFd::new(&self.children, PollFlags::IN),
            PollFd::new(&self.told, PollFlags::IN),
        ];
        watched.extend(self.input.as_ref().map(|input| PollFd::new(input, input_for)));
        match poll(&mut watched, self.patience().as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let happened: Vec<PollFlags> = watched.iter().map(PollFd::revents).collect();
        let happened = |at: usize| happened.get(at).copied().unwrap_or(PollFlags::empty());
        if happened(0).intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
            return Ok(Gateway::Gone);
        }
        if happened(1).contains(PollFlags::IN) {
            drain(&self.children);
            self.family.reap_orphans();
        }
        if happened(2).contains(PollFlags::IN) {
            drain(&self.told);
            self.ask();
        }
        if happened(3).contains(PollFlags::ERR) {
            self.stop_input();
        }
        if happened(0).contains(PollFlags::IN) && self.take() == Gateway::Gone {
            return Ok(Gateway::Gone);
        }
        self.give();
        Ok(Gateway::Present)
    }

    fn patience(&self) -> Option<Timespec> {
        let is_patient = matches!(self.phase, Phase::Serving);
        (!is_patient).then(|| timespec(LOOK_EVERY))
    }

    /// Takes input from the gateway.
    fn take(&mut self) -> Gateway {
        self.pending.resize(BUFFER_BYTES, 0);
        let taken = self.control.read(&mut self.pending);
        self.pending.truncate(*taken.as_ref().unwrap_or(&0));
        match taken {
            Ok(0) => self.is_input_over = true,
            Ok(_) => {}
            Err(error) if is_for_later(&error) => {}
            Err(_) => return Gateway::Gone,
        }
        Gateway::Present
    }

    /// Gives the program what it takes without waiting.
    fn give(&mut self) {
        if let Some(input) = &mut self.input
            && !self.pending.is_empty()
        {
            match input.write(&self.pending[self.written..]) {
                Ok(count) => self.written += count,
                Err(error) if is_for_later(&error) => return,
                // It does not listen any more. It may still have something to say.
                Err(_) => self.input = None,
            }
        }
        if self.input.is_none() || self.written >= self.pending.len() {
            self.pending.clear();
            self.written = 0;
        }
        if self.is_input_over && self.pending.is_empty() {
            self.stop_input();
        }
    }

    fn stop_input(&mut self) {
        self.input = None;
        self.pending.clear();
        self.written = 0;
    }

    /// Goes on to the next phase when it is time; true when nothing is left or all patience is
    /// used up.
    fn is_over(&mut self) -> bool {
        let now = self.clock.now();
        let has_ended = self.family.leader_end().is_some();
        if has_ended {
            self.tell_end();
            if self.family.is_gone() {
                return true;
            }
        }
        match self.phase {
            Phase::Serving if has_ended => {
                self.ask();
                self.phase = Phase::Asked { until: now.after(LEFTOVER_GRACE) };
            }
            Phase::Serving if self.is_input_over => {
                self.phase = Phase::Leaving { until: now.after(GRACE) };
            }
            Phase::Leaving { until } if now >= until => self.ask(),
            Phase::Asked { until } => return now >= until,
            Phase::Serving | Phase::Leaving { .. } => {}
        }
        false
    }

    /// Asks everything of the program's to end.
    fn ask(&mut self) {
        if matches!(self.phase, Phase::Asked { .. }) {
            return;
        }
        self.stop_input();
        self.is_input_over = true;
        self.family.signal(Signal::TERM);
        self.phase = Phase::Asked { until: self.clock.now().after(GRACE) };
    }

    fn tell_end(&mut self) {
        if let Some(end) = self.family.leader_end()
            && !self.is_end_told
        {
            self.is_end_told = true;
            self.say(Word::Ended(end));
        }
    }
}

fn is_for_later(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// Empties a signal stream: several signals are one piece of news.
fn drain(mut stream: &UnixStream) {
    let mut bytes = [0; 64];
    while stream.read(&mut bytes).is_ok_and(|count| count == bytes.len()) {}
}

fn timespec(span: Millis) -> Timespec {
    let (seconds, rest) = (span.0 / 1000, span.0 % 1000);
    Timespec {
        tv_sec: i64::try_from(seconds).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from(rest * 1_000_000).expect("less than a second in nanoseconds"),
    }
}
