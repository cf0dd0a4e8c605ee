//! Keeping one client's connection alive: a task per link that asks the schedule
//! ([`tidegate_mcp::keepalive`]) what to do, and does it.
//!
//! Rules kept here:
//! - Real traffic postpones it; it never delays a call, since calls do not know of it.
//! - It ends at once with its link, also while an answer is being waited for: the task is dropped.
//! - Only a link that clients use is kept alive; the gateway's own is probed.

use std::rc::{Rc, Weak};
use std::time::Duration;

use serde_json::value::RawValue;
use tidegate_config::file::{KeepaliveFile, KeepaliveMethod};
use tidegate_core::{
    outcome::Outcome,
    time::{Millis, Now},
};
use tidegate_mcp::{
    era::Era,
    health::{self, Standing},
    keepalive::{Due, Ended, Keepalive, KeepaliveSettings, Method, Reason, Sign, sign_of},
    message::Params,
    raw::quoted,
};
use tidegate_runtime::{rng, task};

use super::{
    conversation::{Reply, Voice},
    link::{Link, Owner, read_error},
};

/// How late traffic, or a change of the link, may be noticed.
const LOOK_EVERY: Millis = Millis(250);

impl Link {
    /// Starts to keep it alive, if it is a client's own and so configured. Twice is harmless.
    pub(crate) fn keep_alive(&self) {
        let file = &self.server.file().keepalive;
        let is_off = file.method == Some(KeepaliveMethod::None);
        let is_shared = self.server.is_shared_child() || self.is_stateless();
        let is_used = matches!(self.owner, Owner::Client(_)) || is_shared;
        if is_off || !is_used || self.keepalive.borrow().is_some() {
            return;
        }
        let schedule = Keepalive::new(settings(file), self.ground.now(), rng::draw());
        let task = task::spawn_owned("mcp keepalive", run(self.downgrade(), schedule));
        *self.keepalive.borrow_mut() = Some(task);
    }

    /// Sends what the config asks for.
    async fn send_keepalive(&self, until: Now) -> Result<(), Reason> {
        let Some(talk) = self.conversation() else { return Err(Reason::Lost) };
        let within = until.since(self.ground.now());
        let file = &self.server.file().keepalive;
        let tool = file.tool.as_ref().filter(|_| file.method == Some(KeepaliveMethod::Tool));
        let reply = match tool {
            Some(tool) => {
                let name = tool.name.as_deref().unwrap_or_default();
                let args = serde_json::to_string(&tool.args).unwrap_or_default();
                let json = format!(r#"{{"name":{},"arguments":{args}}}"#, quoted(name));
                let params = RawValue::from_string(json).ok();
                let params = Params::parse(params.as_deref()).unwrap_or_default();
                talk.ask("tools/call", params, Voice::of(&self.hello), within).await
            }
            None => {
                let voice = Voice::of(&self.hello);
                talk.ask(self.ping(), Params::default(), voice, within).await
            }
        };
        match self.sign(reply, talk.era()) {
            Sign::Alive => Ok(()),
            Sign::Failed(reason) => Err(reason),
            Sign::Lost => {
                if let Some(generation) = self.generation_of(&talk) {
                    self.lost(generation);
                }
                self.reconnect().await
            }
        }
    }

    fn sign(&self, reply: Reply, spoken: Era) -> Sign {
        match self.doubted(reply, spoken) {
            Reply::Answer(Ok(_)) => sign_of(Ok(None)),
            Reply::Answer(Err(error)) => {
                let error = read_error(&error);
                sign_of(Ok(error.as_ref().map(|it| (it.code, it.message.as_str()))))
            }
            Reply::Failed(failure) => sign_of(Err(&failure)),
        }
    }

    /// Makes the connection again, by the link's single flight and with a permit.
    async fn reconnect(&self) -> Result<(), Reason> {
        let limit = self.server.initialize_within();
        self.bring_up(limit).await.map_err(|_| Reason::Lost)
    }

    fn is_open(&self) -> bool {
        let live = self.ground.live();
        let standing = health::standing(&live.core, &self.server.name, self.ground.now());
        matches!(standing, Standing::Unhealthy(tidegate_mcp::cause::Cause::CircuitOpen, _))
    }
}

async fn run(link: Weak<Link>, mut schedule: Keepalive) {
    let mut seen = link.upgrade().map(|link| (link.sent_at.get(), link.heard_at.get()));
    loop {
        let Some(due_at) = schedule.next_wakeup() else { return };
        let Some(link) = link.upgrade() else { return };
        let now = link.ground.now();
        follow_traffic(&link, &mut schedule, &mut seen, now);
        let state = link.machine.borrow().state();
        let due = schedule.tick(now, rng::draw(), state, link.is_open());
        let metrics = &link.ground.gateway().metrics;
        let name = Rc::clone(&link.server);
        let result = match due {
            Due::Nothing => {
                let wait = due_at.since(now).min(LOOK_EVERY).0.max(1);
                drop(link);
                tokio::time::sleep(Duration::from_millis(wait)).await;
                continue;
            }
            Due::Refused => {
                metrics.keepalive_attempt(&name.name);
                metrics.keepalive_failure(&name.name, Reason::Open.word());
                continue;
            }
            Due::Send(until) => {
                metrics.keepalive_attempt(&name.name);
                link.send_keepalive(until).await
            }
            Due::Reconnect => {
                metrics.keepalive_attempt(&name.name);
                link.reconnect().await
            }
        };
        end(&link, &mut schedule, result);
        seen = Some((link.sent_at.get(), link.heard_at.get()));
    }
}

fn end(link: &Link, schedule: &mut Keepalive, result: Result<(), Reason>) {
    let metrics = &link.ground.gateway().metrics;
    let server = &*link.server.name;
    let now = link.ground.now();
    match schedule.ended(now, rng::draw(), result) {
        Ended::Nothing => {}
        Ended::Success(took) => metrics.keepalive_success(server, took),
        Ended::Failure(reason) => metrics.keepalive_failure(server, reason.word()),
        Ended::Disabled { reason, is_charged } => {
            metrics.keepalive_failure(server, reason.word());
            metrics.keepalive_disabled(server);
            tracing::warn!(server, reason = reason.word(), "keepalive is off for a while");
            let generation = link.machine.borrow().generation();
            link.lost(generation);
            if is_charged {
                let live = link.ground.live();
                let outcome = Outcome::unanswered(reason.outcome());
                link.ground.with_notes(|notes| {
                    health::charge(&live.core, server, now, &outcome, notes);
                });
            }
        }
    }
}

/// Real traffic postpones the next one.
fn follow_traffic(link: &Link, schedule: &mut Keepalive, seen: &mut Option<(Now, Now)>, now: Now) {
    let traffic = (link.sent_at.get(), link.heard_at.get());
    let Some((sent, heard)) = seen.replace(traffic) else { return };
    if traffic.1 > heard {
        schedule.heard(now, rng::draw());
    } else if traffic.0 > sent {
        schedule.sent(now, rng::draw());
    }
}

fn settings(file: &KeepaliveFile) -> KeepaliveSettings {
    KeepaliveSettings {
        method: match file.method {
            None | Some(KeepaliveMethod::Ping) => Method::Ping,
            Some(KeepaliveMethod::Tool) => Method::Tool,
            Some(KeepaliveMethod::None) => Method::None,
        },
        every: file.every.millis(),
        jitter: file.jitter.fraction(),
        timeout: file.timeout.millis(),
        failures: file.failures.max(1),
        quiet: file.quiet.millis(),
    }
}
