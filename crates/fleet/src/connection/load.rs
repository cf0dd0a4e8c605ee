//! Beginning anew: where the stream ends, what others hold, what this replica holds.
//!
//! The store tells nobody what it lost. A *marker*, a random value that the first replica puts into
//! an empty store, does: one that is new, or not the known one, means that the store has lost its
//! data.

use std::convert::Infallible;
use std::time::Duration;

use redis::{Cmd, Value};
use tidegate_core::time::{Millis, Now};
use tidegate_runtime::rng;

use super::{
    Connection,
    read::{PAGE_PAUSE, Places},
    write::bound,
};
use crate::{
    codec::News,
    layout::{DAY_MS, StoreKeys},
    link::StoreError,
    marker::{self, FoundMarker},
    reply,
    scripts::ORDER_DIGITS,
    stats::Rejected,
};

/// Small facts that are loaded, at most.
const FACTS_MAX: u64 = 20_000;
/// Pins that are loaded, at most: as many as a core keeps.
const PINS_MAX: u64 = 100_000;
/// Values that are read at a time.
const PAGE: usize = 256;
/// Pins that are written again at a time.
const PIN_PAGE: usize = 256;
/// No more than so much waits to be told before the next page of pins.
const QUEUE_HALF: usize = 4096;
/// What has no end is written again this often, so that it outlives its day.
const RENEW_EVERY: Millis = Millis::minutes(60);
/// A marker that is younger than this is of a store that has just lost its data.
const YOUNG_MS: u64 = 10_000;

impl Connection<'_> {
    /// Loads what others hold, has written again what this replica holds, and says where to read
    /// on. Pins follow in the background.
    pub(super) async fn sync(&self) -> Result<Places, StoreError> {
        let is_lost = self.look_at_marker().await?;
        let mut places = Places::new();
        for StoreKeys { stream, .. } in &self.store_keys {
            let mut command = Cmd::new();
            command.arg("XREVRANGE").arg(stream).arg("+").arg("-").arg("COUNT").arg(1);
            let answer: Value = self.link.clone().ask(&command).await?;
            let last = reply::entries(answer).and_then(|entries| entries.into_iter().next());
            places.push((stream.clone(), last.map_or_else(|| "0-0".to_owned(), |it| it.id)));
        }
        self.memory.numbers.borrow_mut().clear();
        for keys in &self.store_keys {
            self.load(&keys.index, FACTS_MAX).await?;
        }
        self.renew_holdings();
        self.pins_are_lost.set(is_lost | self.fleet.outbox.take_incomplete());
        self.pins_due.notify_one();
        Ok(places)
    }

    /// What may take its time: pins, and renewing what has no end.
    pub(super) async fn background_loop(&self) -> Result<Infallible, StoreError> {
        loop {
            let spread = rng::draw() % (RENEW_EVERY.0 / 4);
            let renewal = Duration::from_millis(RENEW_EVERY.0 + spread);
            tokio::select! {
                () = self.pins_due.notified() => {
                    for keys in &self.store_keys {
                        self.load(&keys.pin_index, PINS_MAX).await?;
                    }
                    if self.pins_are_lost.take() {
                        self.renew_pins().await;
                    }
                }
                () = tokio::time::sleep(renewal) => {
                    self.renew_holdings();
                    self.renew_indexes().await?;
                }
            }
        }
    }

    /// Has the store keep its indexes for another day: pins may live longer than nothing is told.
    async fn renew_indexes(&self) -> Result<(), StoreError> {
        let StoreKeys { index, pin_index, .. } = &self.store_keys[0];
        for key in [index, pin_index] {
            let mut command = Cmd::new();
            command.arg("PEXPIRE").arg(key).arg(DAY_MS);
            self.link.clone().ask::<Value>(&command).await?;
        }
        Ok(())
    }

    fn renew_holdings(&self) {
        self.fleet.tell(&mut self.ears.holdings(), self.fleet.now());
    }

    async fn renew_pins(&self) {
        let mut after = None;
        loop {
            let (mut pins, next) = self.ears.held_pins(after, PIN_PAGE);
            self.fleet.tell(&mut pins, self.fleet.now());
            if next.is_none() {
                return;
            }
            after = next;
            while self.fleet.outbox.len() > QUEUE_HALF {
                tokio::time::sleep(PAGE_PAUSE).await;
            }
            tokio::task::yield_now().await;
        }
    }

    /// Hears everything that an index lists, from its end: what is written meanwhile goes there, so
    /// that it pushes what is still to be read back, and nothing past the reader.
    async fn load(&self, index: &str, max: u64) -> Result<(), StoreError> {
        let mut link = self.link.clone();
        let mut from = 0;
        while from < max {
            let mut command = Cmd::new();
            command.arg("ZREVRANGE").arg(index).arg(from).arg(from + PAGE as u64 - 1);
            let answer: Value = link.ask(&command).await?;
            let members: Vec<String> = reply::list(answer)
                .unwrap_or_default()
                .into_iter()
                .filter_map(reply::text)
                .collect();
            let is_last = members.len() < PAGE;
            from += members.len() as u64;
            // An index that somebody else wrote names anything.
            let is_name = |name: &&String| {
                name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
            };
            let keys: Vec<String> = members
                .iter()
                .filter(is_name)
                .map(|name| self.fleet.layout.value_key(name))
                .collect();
            if !keys.is_empty() {
                let mut command = Cmd::new();
                command.arg("MGET").arg(&keys);
                let answer: Value = link.ask(&command).await?;
                for (key, value) in keys.iter().zip(reply::list(answer).unwrap_or_default()) {
                    self.take_value(key, value);
                }
            }
            if is_last {
                break;
            }
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    fn take_value(&self, key: &str, value: Value) {
        let Some(value) = reply::bytes(value) else { return };
        let Some((order, sealed)) = value.split_at_checked(ORDER_DIGITS) else {
            return self.reject(Rejected::Form);
        };
        let Ok(order) = std::str::from_utf8(order) else { return self.reject(Rejected::Form) };
        let Some(entry) = self.opened(&bound(key, order), sealed) else { return };
        let now = self.fleet.now();
        let store_ms = self.fleet.stats.store_ms(now).unwrap_or_default();
        let age = Millis(store_ms.saturating_sub(entry.told_at_ms));
        for news in &entry.news {
            if let News::Hint(hint) = news
                && hint.fact.is_state()
            {
                self.hear(entry.writer, hint, age);
            }
        }
    }

    /// Whether the store has lost its data since it was last seen, or has just begun.
    async fn look_at_marker(&self) -> Result<bool, StoreError> {
        let now = self.fleet.now();
        let store_ms = self.fleet.stats.store_ms(now).unwrap_or_default();
        let mut found = self.read_marker().await?;
        if found.is_none() {
            let key = &self.store_keys[0].marker;
            let mut value = [0; 24];
            let random = |_| StoreError::Unfit("the system gives no random numbers".to_owned());
            aws_lc_rs::rand::fill(&mut value[..16]).map_err(random)?;
            value[16..].copy_from_slice(&store_ms.to_be_bytes());
            let sealed = self.fleet.start.secrets.seal(key.as_bytes(), &value).unwrap_or_default();
            let mut command = Cmd::new();
            command.arg("SET").arg(key).arg(sealed).arg("NX").arg("PX").arg(DAY_MS);
            match self.link.clone().ask::<Value>(&command).await {
                Ok(_) => {}
                Err(problem) => self.is_full(problem)?,
            }
            // Somebody else may have been quicker.
            found = self.read_marker().await?;
        }
        let Some(marker) = found else { return Ok(false) };
        let written_ms = marker.get(16..24).and_then(|it| <[u8; 8]>::try_from(it).ok());
        let written_ms = written_ms.map_or(0, u64::from_be_bytes);
        let age = store_ms.saturating_sub(written_ms);
        let before = self.memory.marker.replace(marker.clone());
        let is_other = before.as_ref().is_some_and(|before| *before != marker);
        if is_other || age < YOUNG_MS {
            self.fleet.stats.restarted(Now(now.0.saturating_sub(age.min(now.0))));
        }
        if is_other {
            // The heartbeats of the others are lost too.
            self.fleet.stats.missed_beat();
            let store = self.fleet.store();
            tracing::warn!(store, "the fleet's store has lost its data: it is written again");
        }
        Ok(is_other)
    }

    async fn read_marker(&self) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.found_marker().await?.value)
    }

    /// The marker that the store has now; one that does not open is counted.
    pub(super) async fn found_marker(&self) -> Result<FoundMarker, StoreError> {
        let secrets = &self.fleet.start.secrets;
        let found = marker::read(&mut self.link.clone(), secrets, &self.store_keys).await?;
        if found.is_foreign {
            self.reject(Rejected::Secret);
        }
        Ok(found)
    }
}
