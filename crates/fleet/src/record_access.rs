//! Questions about MCP sessions, asked of the store on the fleet's thread.

use redis::{Cmd, Value};
use tidegate_core::time::{Millis, Now};

use crate::{
    identity::InstanceId,
    layout::{Layout, StoreKeys},
    link::{Link, StoreError},
    marker::{self, KnownMarker},
    reply,
    scripts::{Script, Scripts},
    seal::{FleetSecrets, SealedName},
    session_record::{Absence, AwayReason, Claim, Liveness, Lookup, SessionEvent, SessionRecord},
    sessions::{SessionQuery, TakeOver},
    stats::{FleetStats, Rejected},
};

/// How long it is said that a session has ended: longer than its id is young.
const ENDED_MS: u64 = 60_000;

/// What a question is answered with.
#[derive(Clone)]
pub(crate) struct RecordAccess<'a> {
    pub(crate) link: Link,
    pub(crate) scripts: &'a Scripts,
    pub(crate) layout: &'a Layout,
    pub(crate) secrets: &'a FleetSecrets,
    pub(crate) stats: &'a FleetStats,
    pub(crate) marker: &'a KnownMarker,
    pub(crate) store_keys: &'a [StoreKeys],
    pub(crate) ttl_ms: u64,
}

impl RecordAccess<'_> {
    /// Answers one question, and says whether the store did. Whoever asked may have gone.
    pub(crate) async fn answer(mut self, query: SessionQuery, now: Now) -> bool {
        match query {
            SessionQuery::Load { names, opened_ago, reply } => {
                let found = self.load(&names, opened_ago, now).await;
                let is_answered = found.is_ok();
                drop(reply.send(found.map_or_else(|_| away(), |(lookup, _)| lookup)));
                is_answered
            }
            SessionQuery::Create { name, epoch, record, reply } => {
                let written = self.put(&name, epoch, &record).await;
                let is_answered = written.is_ok();
                let _ = reply.send(written.is_ok_and(|is_written| is_written));
                is_answered
            }
            SessionQuery::Claim { names, take, reply } => {
                let claim = self.claim(&names, &take, now).await;
                let is_answered = claim.is_ok();
                drop(reply.send(claim.unwrap_or(Claim::Away(AwayReason::Unreachable))));
                is_answered
            }
            SessionQuery::Liveness { instance, reply } => {
                let liveness = self.liveness(instance, now).await;
                let is_answered = liveness.is_ok();
                let _ = reply.send(liveness.ok());
                is_answered
            }
        }
    }

    async fn liveness(&mut self, instance: InstanceId, now: Now) -> Result<Liveness, StoreError> {
        let mut command = Cmd::new();
        command.arg("GET").arg(self.layout.heartbeat(instance));
        let has_heartbeat = self.link.ask::<Option<Vec<u8>>>(&command).await?.is_some();
        if !has_heartbeat {
            self.look_for_loss(now).await?;
        }
        let store_up_for = self.stats.steady_since().map(|since| now.since(since));
        Ok(Liveness { has_heartbeat, store_up_for })
    }

    /// Something is missing: the store may have lost everything since it was last looked at.
    async fn look_for_loss(&mut self, now: Now) -> Result<(), StoreError> {
        let found = marker::read(&mut self.link, self.secrets, self.store_keys).await?;
        if self.marker.is_lost(&found) {
            self.stats.restarted(now);
            self.stats.missed_beat();
        }
        Ok(())
    }

    /// Writes a record; `false` = one of a higher epoch is there.
    pub(crate) async fn put(
        &mut self,
        name: &SealedName,
        epoch: u64,
        record: &[u8],
    ) -> Result<bool, StoreError> {
        let key = self.layout.session_key(name);
        let sealed = self.sealed(&key, epoch, record)?;
        let mut command = self.scripts.command(Script::Put, &[&key]);
        command.arg(epoch.to_string()).arg(sealed).arg(self.ttl_ms);
        let written: i64 = self.link.ask(&command).await?;
        Ok(written == 1)
    }

    /// Whose a session is that somebody else has taken over.
    pub(crate) async fn claimed(
        &mut self,
        name: &SealedName,
    ) -> Result<Option<SessionEvent>, StoreError> {
        let found = self.load(std::slice::from_ref(name), None, Now(0)).await?.0;
        let Lookup::Found(SessionRecord { owner, epoch, .. }) = found else { return Ok(None) };
        let by = owner.map_or(InstanceId(0), |it| it.instance);
        Ok(Some(SessionEvent::Claimed { name: name.clone(), epoch, by }))
    }

    /// Deletes a record unless it has a higher epoch.
    pub(crate) async fn delete(&mut self, name: &SealedName, epoch: u64) -> Result<(), StoreError> {
        let key = self.layout.session_key(name);
        let mut command = self.scripts.command(Script::Delete, &[&key]);
        command.arg(epoch.to_string()).arg(epoch.saturating_add(1).to_string()).arg(ENDED_MS);
        self.link.ask::<i64>(&command).await.map(drop)
    }

    /// The record of the highest epoch under any of its names, and where it is.
    async fn load(
        &mut self,
        names: &[SealedName],
        opened_ago: Option<Millis>,
        now: Now,
    ) -> Result<(Lookup, Option<String>), StoreError> {
        let mut found: Option<(SessionRecord, String)> = None;
        let (mut is_sealed, mut is_ended) = (false, false);
        for name in names {
            let key = self.layout.session_key(name);
            let mut command = Cmd::new();
            command.arg("HMGET").arg(&key).arg("e").arg("v");
            let fields: Value = self.link.ask(&command).await?;
            let Some((epoch, value)) = reply::pair(fields) else { continue };
            if value.is_empty() {
                is_ended = true;
                continue;
            }
            match self.opened(&key, &epoch, &value) {
                Some(record) if found.as_ref().is_none_or(|it| it.0.epoch < record.epoch) => {
                    found = Some((record, key));
                }
                Some(_) => {}
                None => is_sealed = true,
            }
        }
        if found.is_none() && !is_ended {
            self.look_for_loss(now).await?;
        }
        let lost_ago = self.stats.restarted_at().map(|it| now.since(it));
        Ok(match found {
            Some((record, key)) => (Lookup::Found(record), Some(key)),
            None => (Lookup::Absent(Absence { is_ended, is_sealed, opened_ago, lost_ago }), None),
        })
    }

    async fn claim(
        &mut self,
        names: &[SealedName],
        take: &TakeOver,
        now: Now,
    ) -> Result<Claim, StoreError> {
        let (Lookup::Found(record), Some(key)) = self.load(names, None, now).await? else {
            return Ok(Claim::Missing);
        };
        if record.epoch != take.seen_epoch {
            return Ok(Claim::Lost(record));
        }
        let sealed = self.sealed(&key, take.epoch, &take.record)?;
        let mut command = self.scripts.command(Script::Claim, &[&key]);
        command.arg(take.seen_epoch.to_string()).arg(take.epoch.to_string());
        command.arg(sealed).arg(self.ttl_ms);
        Ok(match self.link.ask::<i64>(&command).await? {
            1 => Claim::Won,
            0 => match self.load(names, None, now).await?.0 {
                Lookup::Found(record) => Claim::Lost(record),
                Lookup::Absent(_) => Claim::Missing,
                Lookup::Away(why) => Claim::Away(why),
            },
            _ => Claim::Missing,
        })
    }

    /// The epoch stands beside the value for the store to compare, and is bound into its seal.
    fn sealed(&self, key: &str, epoch: u64, record: &[u8]) -> Result<Vec<u8>, StoreError> {
        let none = || StoreError::Unfit("the system gives no random numbers".to_owned());
        self.secrets.seal(bound(key, epoch).as_bytes(), record).ok_or_else(none)
    }

    fn opened(&self, key: &str, epoch: &[u8], value: &[u8]) -> Option<SessionRecord> {
        let epoch = std::str::from_utf8(epoch).ok().and_then(|text| text.parse().ok());
        let opened = epoch.and_then(|epoch| {
            let bytes = self.secrets.open(bound(key, epoch).as_bytes(), value).ok()?;
            SessionRecord::decode(epoch, &bytes)
        });
        if opened.is_none() && self.stats.reject(Rejected::Secret) {
            tracing::warn!("a session's record in the fleet's store does not open: it is ignored");
        }
        opened
    }
}

fn away() -> Lookup {
    Lookup::Away(AwayReason::Unreachable)
}

fn bound(key: &str, epoch: u64) -> String {
    format!("{key} {epoch}")
}
