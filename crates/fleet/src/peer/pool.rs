//! Channels to other replicas, kept for the next request.
//!
//! Why it exists: a connection and its handshake cost three exchanges and two key agreements, and
//! behind a balancer without stickiness two requests of three go to another replica.
//!
//! Rules kept here:
//! - A channel carries one request at a time, and is kept only after an answer that came whole.
//! - A kept channel is asked whether it lives before it is given a request, so that it is known of
//!   every request whether it was handed over. One that does not answer is ended together with the
//!   others that lead to the same instance, and a new connection decides what became of it.
//! - Channels lead to one instance: another one at the same url is never mistaken for it.
//! - Few are kept, and none for long: the oldest one makes room.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tidegate_runtime::{clock::timer_now, task};
use tokio::time::{Instant, sleep, timeout};

use super::channel::{Channel, FrameKind};
use crate::identity::InstanceId;

/// Channels to one instance that are kept; as many requests are on their way to it at a time before
/// one has to connect.
const PER_INSTANCE_MAX: usize = 16;
/// Channels that are kept.
const IDLE_MAX: usize = 256;
/// How long a channel is kept. The other side keeps it longer, so that it is this one that ends it.
const KEPT_FOR: Duration = Duration::from_secs(30);
/// How long a kept channel may take to say that it lives: as long as a connection may take.
const ALIVE_WITHIN: Duration = Duration::from_secs(1);

/// The channels that are kept.
#[derive(Clone)]
pub(super) struct IdleChannels(Arc<Mutex<IdlePool>>);

impl Default for IdleChannels {
    fn default() -> Self {
        Self::kept_for(KEPT_FOR)
    }
}

struct IdlePool {
    kept_for: Duration,
    /// The one that was used last stands last.
    channels: VecDeque<IdleChannel>,
    /// A task is there to end those that nobody takes.
    is_swept: bool,
}

struct IdleChannel {
    url: String,
    instance: InstanceId,
    since: Instant,
    channel: Channel,
}

impl IdleChannel {
    fn leads_to(&self, url: &str, instance: InstanceId) -> bool {
        self.instance == instance && self.url == url
    }
}

impl IdleChannels {
    /// None yet, of those that are kept for so long.
    pub(super) fn kept_for(kept_for: Duration) -> Self {
        let channels = VecDeque::new();
        Self(Arc::new(Mutex::new(IdlePool { kept_for, channels, is_swept: false })))
    }

    /// A channel to an instance that lives, if one is kept.
    pub(super) async fn take(&self, url: &str, instance: InstanceId) -> Option<Channel> {
        let mut channel = self.lock().take(url, instance)?;
        match timeout(ALIVE_WITHIN, is_alive(&mut channel)).await {
            Ok(true) => Some(channel),
            Ok(false) | Err(_) => {
                self.lock().channels.retain(|it| !it.leads_to(url, instance));
                None
            }
        }
    }

    /// Keeps a channel for the next request.
    pub(super) fn keep(&self, url: String, instance: InstanceId, channel: Channel) {
        let mut pool = self.lock();
        pool.keep(IdleChannel { url, instance, since: timer_now(), channel });
        if !std::mem::replace(&mut pool.is_swept, true) {
            let every = pool.kept_for;
            drop(pool);
            task::spawn("idle channels to replicas", sweep(Arc::downgrade(&self.0), every));
        }
    }

    /// How many are kept.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.lock().channels.len()
    }

    fn lock(&self) -> MutexGuard<'_, IdlePool> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl IdlePool {
    fn take(&mut self, url: &str, instance: InstanceId) -> Option<Channel> {
        self.end_old();
        let at = self.channels.iter().rposition(|it| it.leads_to(url, instance))?;
        self.channels.remove(at).map(|it| it.channel)
    }

    fn keep(&mut self, idle: IdleChannel) {
        self.end_old();
        let same = |it: &IdleChannel| it.leads_to(&idle.url, idle.instance);
        let count = self.channels.iter().filter(|it| same(it)).count();
        if count >= PER_INSTANCE_MAX
            && let Some(oldest) = self.channels.iter().position(same)
        {
            self.channels.remove(oldest);
        } else if self.channels.len() >= IDLE_MAX {
            self.channels.pop_front();
        }
        self.channels.push_back(idle);
    }

    fn end_old(&mut self) {
        let now = timer_now();
        let is_old = |it: &IdleChannel| now.duration_since(it.since) >= self.kept_for;
        while self.channels.front().is_some_and(is_old) {
            self.channels.pop_front();
        }
    }
}

async fn is_alive(channel: &mut Channel) -> bool {
    let asked = channel.send(FrameKind::Ping, &[]).await;
    asked.is_ok() && matches!(channel.next().await, Ok((FrameKind::Pong, _)))
}

/// Ends what nobody takes, until nothing is kept.
async fn sweep(pool: Weak<Mutex<IdlePool>>, every: Duration) {
    loop {
        sleep(every).await;
        let Some(pool) = pool.upgrade() else { return };
        let mut pool = pool.lock().unwrap_or_else(PoisonError::into_inner);
        pool.end_old();
        if pool.channels.is_empty() {
            pool.is_swept = false;
            return;
        }
    }
}
