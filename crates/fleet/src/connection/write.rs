//! The writer: what this replica has to tell, one entry of the stream at a time.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use redis::Cmd;
use tidegate_core::{hint::Hint, time::Millis};

use super::Connection;
use crate::{
    codec::{Entry, News},
    fleet::Fleet,
    layout::{DAY_MS, StoreKeys, lives_ms},
    link::StoreError,
    outbox::{Batch, Waiting},
    scripts::{ORDER_DIGITS, Script},
    seal::hex,
    session_record::SessionHeard,
    stats::FactKind,
};

/// The stream's length: at a hundred entries a second, two minutes.
const STREAM_MAX: u64 = 10_000;
/// A store that is full is asked again after this.
const FULL: Duration = Duration::from_secs(1);

impl Connection<'_> {
    /// Writes what there is to tell, for ever.
    pub(super) async fn write_loop(&self) -> Result<Infallible, StoreError> {
        let outbox = &self.fleet.outbox;
        loop {
            outbox.ready(self.fleet.start.clock).await;
            let mut batch = outbox.take();
            if batch.is_empty() {
                continue;
            }
            match self.write(&mut batch).await {
                Ok(()) => {
                    self.fleet.stats.answered(self.fleet.now());
                    self.is_no_longer_full();
                }
                Err(problem) => {
                    outbox.put_back(batch);
                    self.is_full(problem)?;
                    tokio::time::sleep(FULL).await;
                }
            }
        }
    }

    /// Takes what can be written out of a batch as it is written.
    async fn write(&self, batch: &mut Batch) -> Result<(), StoreError> {
        if !batch.hints.is_empty() || !batch.events.is_empty() {
            self.tell(batch).await?;
            let kinds = batch.hints.iter().map(|it| FactKind::of(&it.hint.fact));
            self.fleet.count_told(kinds.chain(batch.events.iter().map(|_| FactKind::Session)));
            batch.hints.clear();
            batch.events.clear();
        }
        let mut records = self.records();
        while let Some((name, write)) = batch.sessions.last() {
            match &write.record {
                Some(record) => {
                    if !records.put(name, write.epoch, record).await?
                        && let Some(event) = records.claimed(name).await?
                    {
                        self.fleet.sessions().hear(SessionHeard::Event(event));
                    }
                }
                None => records.delete(name, write.epoch).await?,
            }
            let written = batch.sessions.pop();
            if let Some(event) = written.and_then(|(_, write)| write.event) {
                self.fleet.outbox.add_event(event);
            }
        }
        Ok(())
    }

    async fn tell(&self, batch: &Batch) -> Result<(), StoreError> {
        let Fleet { layout, stats, start, .. } = &**self.fleet;
        let now = self.fleet.now();
        let unknown = || StoreError::Unfit("the store's time is not known".to_owned());
        let told_at_ms = stats.store_ms(now).ok_or_else(unknown)?;
        let aged = |it: &Waiting| Hint { age: now.since(it.made_at), ..it.hint };
        let hints: Vec<Hint> = batch.hints.iter().map(aged).collect();
        let writer = start.identity.instance.replica();
        let number = self.memory.number.get() + 1;
        self.memory.number.set(number);
        let of_hints = hints.iter().copied().map(News::Hint);
        let news = of_hints.chain(batch.events.iter().cloned().map(News::Session)).collect();
        let entry = Entry { writer, number, told_at_ms, news };
        let random = || StoreError::Unfit("the system gives no random numbers".to_owned());
        let seal = |name: &[u8], entry: &Entry| {
            start.secrets.seal(name, &entry.encode()).ok_or_else(random)
        };
        let StoreKeys { stream, index, pin_index, .. } = &self.store_keys[0];
        let mut keys = vec![stream.clone(), index.clone(), pin_index.clone()];
        let mut values = Vec::new();
        for hint in hints.iter().filter(|hint| hint.fact.is_state()) {
            let name = layout.value_name(&hint.fact.subject());
            let key = layout.value_key(&name.0);
            let began_ms = told_at_ms.saturating_sub(hint.age.0);
            let order = hex(&hint.precedence(began_ms).sort_key());
            debug_assert_eq!(order.len(), ORDER_DIGITS);
            let news = vec![News::Hint(*hint)];
            let kept = Entry { writer, number: 0, told_at_ms, news };
            let value = seal(&bound(&key, &order), &kept)?;
            let lives = lives_ms(&hint.fact).saturating_sub(hint.age.0).max(1);
            let index = if FactKind::of(&hint.fact) == FactKind::Pin { 3 } else { 2 };
            values.push((order, value, lives, name.0, told_at_ms.saturating_add(lives), index));
            keys.push(key);
        }
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let mut command = self.scripts.command(Script::Tell, &keys);
        command.arg(STREAM_MAX).arg(seal(stream.as_bytes(), &entry)?).arg(DAY_MS);
        for (order, value, lives, member, ends, index) in values {
            command.arg(order).arg(value).arg(lives).arg(member).arg(ends).arg(index);
        }
        self.link.clone().ask::<i64>(&command).await.map(drop)
    }

    /// The last words: what waits, and that this replica is gone.
    pub(super) async fn leave(&self) {
        while !self.fleet.outbox.is_empty() {
            let mut batch = self.fleet.outbox.take();
            if self.write(&mut batch).await.is_err() {
                return;
            }
        }
        let instance = self.fleet.start.identity.instance;
        let mut command = Cmd::new();
        command.arg("DEL").arg(self.fleet.layout.heartbeat(instance));
        drop(self.link.clone().ask::<i64>(&command).await);
        let mut command = Cmd::new();
        command.arg("ZREM").arg(self.fleet.layout.replicas()).arg(instance.to_string());
        drop(self.link.clone().ask::<i64>(&command).await);
    }

    /// A store that is full is read on; anything else ends the connection.
    pub(super) fn is_full(&self, problem: StoreError) -> Result<(), StoreError> {
        let StoreError::Full = problem else { return Err(problem) };
        self.fleet.stats.missed_beat();
        if self.fleet.set_problem(Some(problem.to_string())) {
            let store = self.fleet.store();
            tracing::warn!(store, "the fleet's store is full: nothing new is told");
        }
        Ok(())
    }

    pub(super) fn is_no_longer_full(&self) {
        if self.fleet.set_problem(None) {
            tracing::info!(store = self.fleet.store(), "the fleet's store takes values again");
        }
    }
}

/// What a value is sealed under: its key, and what decides between it and another one.
pub(super) fn bound(key: &str, order: &str) -> Vec<u8> {
    [key.as_bytes(), b" ", order.as_bytes()].concat()
}

/// The url that others reach this replica at, if the config does not say it: the address that the
/// store is reached from.
pub(super) async fn find_own_address(fleet: &Arc<Fleet>) {
    let (None, Some(port)) = (&fleet.start.identity.peer_url, fleet.start.peer_port) else {
        return;
    };
    let Some((host, store_port)) = fleet.start.url.nodes.first() else { return };
    let resolving = tokio::net::lookup_host((host.as_str(), *store_port));
    let within = Duration::from_millis(Millis::seconds(2).0);
    let Ok(Ok(mut found)) = tokio::time::timeout(within, resolving).await else { return };
    let Some(store) = found.next() else { return };
    let any: std::net::IpAddr = match store {
        std::net::SocketAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
        std::net::SocketAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
    };
    // Nothing is sent: the system only says which way it would go.
    let Ok(socket) = tokio::net::UdpSocket::bind((any, 0)).await else { return };
    if socket.connect(store).await.is_ok()
        && let Ok(own) = socket.local_addr()
    {
        let address = std::net::SocketAddr::new(own.ip(), port);
        drop(fleet.found_url.set(format!("http://{address}")));
    }
}
