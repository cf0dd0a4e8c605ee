//! A session that another replica opened goes on here.
//!
//! | what it had | what becomes of it |
//! |---|---|
//! | a server over HTTP, with or without a session of its own | goes on in that session |
//! | the same, at another place than here | is greeted anew, and its state is reported as lost |
//! | a program, or a server of the first transport | the same |
//! | a server without sessions | the gateway's own link, as ever |
//! | a server that it went without | it still does |
//! | streams | begin anew, with one `list_changed` per list |
//!
//! Rules kept here:
//! - Nothing is sent that the owner before may have sent: no `initialize` in a session that goes
//!   on, no number of a request twice.
//! - Who has no right to call here, or no room, does not get the session.

use std::sync::Arc;

use super::client::{Introduction, ServerSlot};
use super::effect::{Effect, TransportKind};
use super::ids::{ClientId, LinkId, ServerId};
use super::profile::ClientProfile;
use super::record::{Adoption, LinkRecord, ResumedUpstream, ServerRecord, SessionRecord};
use super::{Env, Hub};
use crate::{
    era::Era,
    link::Want,
    listing::ServerInfo,
    message::Version,
    raw::Fields,
    session::{Arrival, KeptSeat},
};

/// What a client is told when its session has moved: it may have missed any of them.
const CHANGED: [&str; 3] = [
    "notifications/tools/list_changed",
    "notifications/resources/list_changed",
    "notifications/prompts/list_changed",
];

impl Hub {
    /// Goes on with a session.
    pub(super) fn adopt(&mut self, env: &mut Env<'_>, adoption: Adoption) {
        let Adoption { session, epoch, record } = adoption;
        if self.is_closing || self.is_releasing || self.holds(&session) {
            return;
        }
        let caller: Arc<str> = record.caller.as_str().into();
        let Some(rights) = self.rights_of(&caller) else { return };
        let Some(version) = Version::parse(&record.version) else { return };
        let Ok(params) = Fields::of(&record.params, &[]) else { return };
        if self.make_room(env, &caller, &rights).is_err() {
            return;
        }
        let profile = Arc::new(ClientProfile::of_client(&params, version));
        let intro = Introduction {
            id: Arc::clone(&session),
            caller,
            rights,
            version,
            profile: self.shared_profile(profile),
            visibility: self.settings.visibility,
            epoch,
        };
        let seats: Vec<(Arrival, KeptSeat)> = self
            .groups
            .iter()
            .map(|group| {
                let arrival = self.arrival(env, group, &intro.rights);
                let is_open = self.is_usable(group) && intro.rights.may_use(&group.name);
                let known = server_record(&record, &group.name).filter(|_| is_open);
                (arrival, known.map_or(KeptSeat::Coming, |it| it.seat))
            })
            .collect();
        let client = self.insert_client(env, intro, &seats);
        if let Some(kept) = self.clients.get_mut(client) {
            kept.level.clone_from(&record.level);
            kept.subscriptions.clone_from(&record.subscriptions);
        }
        self.sessions.insert(session, client);
        self.count_sessions();
        for slot in 0..seats.len() {
            self.adopt_slot(env, client, slot, &record);
        }
        self.connect_slots(env, client);
        CHANGED.iter().for_each(|method| self.notify_client(client, method, None));
        self.note_record(client);
    }

    /// A client's links to a server, or group of servers, as the owner before had them.
    fn adopt_slot(&mut self, env: &Env<'_>, client: ClientId, slot: usize, record: &SessionRecord) {
        let Some(group) = self.group_at(client, slot) else { return };
        let Some(known) = server_record(record, &group.name) else { return };
        if !self.may_use(client, slot) {
            return;
        }
        let stays = known.stays.as_ref().and_then(|it| self.member_named(&group, it));
        if let Some(kept) = self.clients.get_mut(client).and_then(|it| it.slots.get_mut(slot)) {
            kept.stays = stays;
        }
        for link in &known.links {
            if let Some(server) = self.member_named(&group, &link.member) {
                self.adopt_link(env, (client, slot), server, (link, record.level.as_deref()));
            }
        }
    }

    fn adopt_link(
        &mut self,
        env: &Env<'_>,
        (client, slot): (ClientId, usize),
        server: ServerId,
        (record, level): (&LinkRecord, Option<&str>),
    ) {
        let Some(configured) = self.servers.get(server) else { return };
        // What all share is not this session's to go on with.
        if configured.is_shared_child() || !configured.is_usable() {
            return;
        }
        let is_there = !configured.is_child() && *configured.settings.place == *record.place;
        let Some(kept) = self.clients.get(client) else { return };
        let profile = Arc::clone(&kept.profile);
        let link = self.link_for(env.now, server, Some(client), profile);
        if let Some(kept) = self.links.get_mut(link) {
            kept.machine.regain();
            kept.level = level.map(str::to_owned);
            kept.subscriptions.clone_from(&record.subscriptions);
        }
        if let Some(resumed) = record.upstream.as_ref().filter(|_| is_there) {
            self.resume_link(env, link, server, (resumed, record));
        }
        let slots = self.clients.get_mut(client).map(|it| &mut it.slots);
        let slot = slots.and_then(|it: &mut Vec<ServerSlot>| it.get_mut(slot));
        if let Some(slot) = slot
            && let Some(at) = slot.position(server)
        {
            slot.links[at] = Some(link);
        }
    }

    /// A link goes on in the session that another replica began.
    fn resume_link(
        &mut self,
        env: &Env<'_>,
        link: LinkId,
        server: ServerId,
        (resumed, record): (&ResumedUpstream, &LinkRecord),
    ) {
        let Some(configured) = self.servers.get(server) else { return };
        let (key, within) = (configured.settings.key, configured.connect_timeout);
        let connection = self.new_connection(link, server);
        if let Some(talk) = self.connections.get_mut(connection) {
            talk.era = Era::Sessions;
            talk.session.clone_from(&resumed.session);
            talk.version = Some(resumed.version.clone());
        }
        let Some(kept) = self.links.get_mut(link) else { return };
        let Want::Connect(generation) = kept.machine.want() else { return };
        kept.machine.connected(generation);
        // It is the session that the client has known all along.
        kept.machine.tell_new();
        kept.talk = Some((generation, connection));
        kept.info = Some(Arc::new(ServerInfo {
            version: resumed.version.clone(),
            capabilities: record.capabilities.clone(),
            server_info: None,
            instructions: None,
        }));
        (kept.made_at, kept.heard_at, kept.sent_at) = (env.now, env.now, env.now);
        let transport = TransportKind::Configured;
        let resume = Some(Box::new(resumed.clone()));
        let open =
            Effect::Open { connection, server: key, transport, within, caller: None, resume };
        self.out.push(open);
    }
}

fn server_record<'a>(record: &'a SessionRecord, name: &str) -> Option<&'a ServerRecord> {
    record.servers.iter().find(|it| it.name == name)
}
