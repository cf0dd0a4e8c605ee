//! The fleet as this replica sees it, for the operator's API.

use tidegate_core::hint::Heard;
use tidegate_fleet::stats::{FactKind, Rejected};
use tidegate_journal::api::fleet::{
    FactView, FleetStoreView, FleetView, RejectedView, ReplicaView,
};

use crate::gateway::Gateway;

/// The fleet; `None` for a gateway that stands alone.
pub fn fleet_view(gateway: &Gateway) -> Option<FleetView> {
    let fleet = gateway.fleet.get()?;
    let (stats, identity, now) = (fleet.stats(), fleet.identity(), gateway.now());
    let store_ms = stats.store_ms(now).unwrap_or_default();
    let heard_from = stats.heard_from();
    let roster = fleet.roster();
    let own = roster.replicas.iter().find(|it| it.0 == identity.instance);
    let own_sha = own.map(|it| it.1.config_sha.clone());
    let mut replicas: Vec<ReplicaView> = roster
        .replicas
        .into_iter()
        .map(|(instance, beat)| {
            let heard = heard_from.get(&instance.replica());
            ReplicaView {
                is_self: instance == identity.instance,
                instance: instance.to_string(),
                has_same_config: own_sha.as_ref().is_none_or(|it| *it == beat.config_sha),
                up_ms: store_ms.saturating_sub(beat.started_ms),
                heartbeat_age_ms: store_ms.saturating_sub(beat.told_at_ms),
                replica: beat.replica,
                version: beat.version,
                config_sha: beat.config_sha,
                peer_url: beat.peer_url,
                lag_ms: beat.lag_ms,
                queued: beat.queued,
                facts_heard: heard.map_or(0, |it| it.facts),
                last_fact: heard.map(|it| it.kind.word().to_owned()),
                last_fact_age_ms: heard.map(|it| now.since(it.last).0),
            }
        })
        .collect();
    let order = |it: &ReplicaView| (it.replica.clone(), it.instance.clone());
    replicas.sort_by_key(order);
    let facts = FactKind::ALL.map(|kind| FactView {
        fact: kind.word().to_owned(),
        told: stats.told_count(kind),
        taken: stats.heard_count(kind, Heard::Taken),
        heard: Heard::ALL
            .into_iter()
            .filter(|heard| *heard != Heard::Own)
            .map(|heard| stats.heard_count(kind, heard))
            .sum(),
    });
    let rejected = Rejected::ALL.map(|why| RejectedView {
        reason: why.word().to_owned(),
        count: stats.rejected_count(why),
    });
    Some(FleetView {
        fleet: fleet.name().to_owned(),
        replica: identity.replica.clone(),
        instance: identity.instance.to_string(),
        peer_url: fleet.peer_url().map(str::to_owned),
        store: FleetStoreView {
            url: fleet.store(),
            is_up: stats.is_up(),
            problem: fleet.problem(),
            links: stats.link_count(),
            gaps: stats.gap_count(),
        },
        queued: fleet.queued() as u64,
        dropped: stats.dropped_count(),
        lag_ms: stats.lag_ms(),
        replicas,
        foreign: roster.foreign as u64,
        facts: facts.into(),
        rejected: rejected.into(),
    })
}
