//! The heartbeat: that this replica is there, who else is, and what time it is at the store.

use std::convert::Infallible;
use std::sync::PoisonError;
use std::time::Duration;

use futures_util::future::try_join_all;
use redis::{Cmd, Value};
use tidegate_core::time::{Millis, Now};
use tidegate_runtime::rng;

use super::Connection;
use crate::{
    heartbeat::{EVERY_MS, Heartbeat, LIVES_MS, REPLICAS_MAX, Roster},
    identity::InstanceId,
    layout::{DAY_MS, StoreKeys},
    link::StoreError,
    reply,
    stats::Rejected,
};

/// A replica that has not been heard for so long is not listed any more.
const FORGOTTEN_MS: u64 = 60_000;
/// The store's time is not taken from an answer that was longer under way.
const ROUND_TRIP_MAX: Millis = Millis(500);
/// Another replica of the same name counts once it has been there together with this one for so
/// long: a replica that was restarted is seen for a moment beside itself.
const TOGETHER_MS: u64 = 15_000;

impl Connection<'_> {
    /// Renews the heartbeat, for ever.
    pub(super) async fn beat_loop(&self) -> Result<Infallible, StoreError> {
        loop {
            // A tenth more or less, so that a fleet does not beat in step.
            let spread = rng::draw() % (EVERY_MS / 5);
            let wait = EVERY_MS - EVERY_MS / 10 + spread;
            tokio::time::sleep(Duration::from_millis(wait)).await;
            self.beat().await?;
        }
    }

    /// Says once that this replica is there, and looks who else is.
    pub(super) async fn beat(&self) -> Result<(), StoreError> {
        self.read_time().await?;
        match self.write_beat().await {
            Ok(()) => {
                let now = self.fleet.now();
                self.fleet.stats.answered(now);
                self.fleet.stats.beat(now);
            }
            Err(problem) => self.is_full(problem)?,
        }
        // The connection may have stood all the while: a store can be emptied, or be replaced by
        // an empty one. Whoever reads on sees to it.
        let found = self.found_marker().await?;
        if self.memory.marker.is_lost(&found) {
            let stats = &self.fleet.stats;
            stats.restarted(self.fleet.now());
            stats.missed_beat();
        }
        self.read_roster().await
    }

    async fn read_time(&self) -> Result<(), StoreError> {
        let mut command = Cmd::new();
        command.arg("TIME");
        let asked = self.fleet.now();
        let answer: Value = self.link.clone().ask(&command).await?;
        let answered = self.fleet.now();
        let nonsense = || StoreError::Answer("not a time".to_owned());
        let (seconds, micros) = reply::pair(answer).ok_or_else(nonsense)?;
        let number = |text: Vec<u8>| String::from_utf8(text).ok()?.parse::<u64>().ok();
        let (seconds, micros) = number(seconds).zip(number(micros)).ok_or_else(nonsense)?;
        let store_ms = seconds.saturating_mul(1000).saturating_add(micros / 1000);
        let is_known = self.fleet.stats.store_ms(answered).is_some();
        if !is_known || answered.since(asked) <= ROUND_TRIP_MAX {
            let middle = Now(asked.0.midpoint(answered.0));
            self.fleet.stats.set_store_ms(middle, store_ms);
        }
        Ok(())
    }

    async fn write_beat(&self) -> Result<(), StoreError> {
        let (fleet, start) = (self.fleet, &self.fleet.start);
        let now = fleet.now();
        let store_ms = fleet.stats.store_ms(now).unwrap_or_default();
        let beat = Heartbeat {
            replica: start.identity.replica.clone(),
            version: start.version.to_owned(),
            config_sha: self.ears.config_sha(),
            peer_url: fleet.peer_url().map(str::to_owned),
            started_ms: store_ms.saturating_sub(now.0),
            told_at_ms: store_ms,
            lag_ms: fleet.stats.lag_ms(),
            queued: fleet.queued() as u64,
        };
        let instance = start.identity.instance;
        let key = fleet.layout.heartbeat(instance);
        let random = || StoreError::Unfit("the system gives no random numbers".to_owned());
        let sealed = start.secrets.seal(key.as_bytes(), &beat.encode()).ok_or_else(random)?;
        let replicas = fleet.layout.replicas();
        let StoreKeys { index, pin_index, .. } = &self.store_keys[0];
        let long_ago = store_ms.saturating_sub(FORGOTTEN_MS);
        let mut commands = vec![
            command("SET", &key, |it| it.arg(sealed).arg("PX").arg(LIVES_MS)),
            command("ZADD", &replicas, |it| it.arg(store_ms).arg(instance.to_string())),
        ];
        for (key, until) in [(&replicas, long_ago), (index, store_ms), (pin_index, store_ms)] {
            let until = format!("({until}");
            commands.push(command("ZREMRANGEBYSCORE", key, |it| it.arg("-inf").arg(until)));
        }
        let markers = self.store_keys.iter().map(|it| &it.marker);
        for key in markers.chain([&replicas]) {
            commands.push(command("PEXPIRE", key, |it| it.arg(DAY_MS)));
        }
        // None needs the answer to another: all of them are on their way at once.
        let asked = commands.iter().map(|command| async {
            let mut link = self.link.clone();
            link.ask::<Value>(command).await
        });
        try_join_all(asked).await.map(drop)
    }

    async fn read_roster(&self) -> Result<(), StoreError> {
        let (fleet, mut link) = (self.fleet, self.link.clone());
        let mut command = Cmd::new();
        command.arg("ZREVRANGE").arg(fleet.layout.replicas()).arg(0).arg(REPLICAS_MAX - 1);
        let answer: Value = link.ask(&command).await?;
        let known: Vec<InstanceId> = reply::list(answer)
            .unwrap_or_default()
            .into_iter()
            .filter_map(reply::text)
            .filter_map(|text| InstanceId::parse(&text))
            .collect();
        let mut roster = Roster { read_at: Some(fleet.now()), ..Roster::default() };
        if !known.is_empty() {
            let keys: Vec<String> = known.iter().map(|it| fleet.layout.heartbeat(*it)).collect();
            let mut command = Cmd::new();
            command.arg("MGET").arg(&keys);
            let answer: Value = link.ask(&command).await?;
            let beats = reply::list(answer).unwrap_or_default().into_iter().map(reply::bytes);
            for ((instance, key), beat) in known.into_iter().zip(&keys).zip(beats) {
                let Some(beat) = beat else { continue };
                let opened = fleet.start.secrets.open(key.as_bytes(), &beat).ok();
                match opened.and_then(|bytes| Heartbeat::decode(&bytes)) {
                    Some(beat) => roster.replicas.push((instance, beat)),
                    None => {
                        roster.foreign += 1;
                        self.reject(Rejected::Secret);
                    }
                }
            }
        }
        self.warn_of_namesake(&roster);
        *fleet.roster.lock().unwrap_or_else(PoisonError::into_inner) = roster;
        Ok(())
    }

    /// Two replicas of one name do no harm, but nobody can tell them apart.
    fn warn_of_namesake(&self, roster: &Roster) {
        let own = &self.fleet.start.identity;
        let now = self.fleet.now();
        let Some(store_ms) = self.fleet.stats.store_ms(now) else { return };
        let started_ms = store_ms.saturating_sub(now.0);
        let is_namesake = |(instance, beat): &&(InstanceId, Heartbeat)| {
            let together_ms = beat.told_at_ms.saturating_sub(beat.started_ms.max(started_ms));
            *instance != own.instance && beat.replica == own.replica && together_ms > TOGETHER_MS
        };
        if roster.replicas.iter().find(is_namesake).is_some()
            && !self.memory.is_warned.replace(true)
        {
            let replica = own.replica.as_str();
            tracing::warn!(
                replica,
                "another replica of this fleet has the same name: set `state.replica`"
            );
        }
    }
}

/// A command about a key, with what follows it.
fn command(word: &str, key: &str, rest: impl FnOnce(&mut Cmd) -> &mut Cmd) -> Cmd {
    let mut command = Cmd::new();
    rest(command.arg(word).arg(key));
    command
}
