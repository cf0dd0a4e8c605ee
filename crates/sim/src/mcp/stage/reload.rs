//! A reload: servers that stay keep their health, their connections and their seats; others leave
//! or are new to every session.

use std::sync::Arc;

use tidegate_mcp::session::{Carried, Seat};

use super::{Server, ServerPlan, Stage, groups::Place, settings};

impl Stage<'_> {
    pub(super) fn reload(&mut self, plans: Option<&[ServerPlan]>) {
        let same: Vec<ServerPlan> = self.servers.iter().map(|it| it.plan.clone()).collect();
        let plans = plans.unwrap_or(&same);
        let places: Vec<Place> = plans.iter().map(|it| self.place(&it.name)).collect();
        let stayed: Vec<Arc<str>> =
            places.iter().flatten().map(|it| self.servers[*it].name()).collect();
        let is_rejudged = |(plan, place): (&ServerPlan, &Place)| {
            place.is_some_and(|it| self.servers[it].plan.health != plan.health)
        };
        let rejudged: Vec<Arc<str>> = plans
            .iter()
            .zip(&places)
            .filter(|it| is_rejudged(*it))
            .map(|it| Arc::clone(&it.0.name))
            .collect();
        self.hang_up_on_leavers(&places);
        let mut old: Vec<Option<Server>> =
            std::mem::take(&mut self.servers).into_iter().map(Some).collect();
        let server = |(plan, place): (&ServerPlan, &Place)| {
            let kept = place.and_then(|it| old[it].take());
            kept.map_or_else(|| Server::new(plan), |it| it.reloaded(plan))
        };
        self.servers = plans.iter().zip(&places).map(server).collect();
        let seats = self.regroup(&stayed, &rejudged);
        let settings = settings(self.scenario, &self.servers, &self.groups);
        self.core = self.core.reload(self.now, &settings);
        for running in self.calls.values_mut() {
            let place = |server| places.iter().position(|it| *it == Some(server));
            running.moved(place, |group| seats.iter().position(|it| *it == Some(group)));
        }
        for session in self.clients.keys().cloned().collect::<Vec<_>>() {
            self.reload_session(&session, &places, &seats);
        }
        let before = self.catalogue.version();
        self.publish();
        // Names depend on who is configured, so another config may change everybody's.
        let is_renamed = self.catalogue.version() != before;
        for server in 0..self.servers.len() {
            self.fetch_listing(server);
        }
        for group in (0..self.groups.len()).filter(|_| is_renamed) {
            self.tell_of_offers(group);
        }
    }

    fn reload_session(&mut self, session: &str, places: &[Place], seats: &[Place]) {
        let names: Vec<Arc<str>> = self.servers.iter().map(Server::name).collect();
        let carried = |(group, seat): (usize, &Place)| match seat {
            Some(seat) => Carried::Kept(*seat),
            None => Carried::Added(self.arrival(group)),
        };
        let carried: Vec<Carried> = seats.iter().enumerate().map(carried).collect();
        let Some(old) = self.clients.get(session).map(|it| it.lines.clone()) else { return };
        let mut lines = Vec::new();
        for (place, name) in places.iter().zip(&names) {
            lines.push(match place {
                Some(place) => old[*place],
                None => self.new_line(session, name),
            });
        }
        let now = self.now;
        let Some(client) = self.clients.get_mut(session) else { return };
        client.lines = lines;
        let stays = |seat: &Place| seat.and_then(|it| client.stays[it].clone());
        client.stays = seats.iter().map(stays).collect();
        client.session.reload(now, &carried);
        let is_new = |group: &usize| {
            seats[*group].is_none() && client.session.seat(*group) == Seat::Connecting
        };
        for group in (0..seats.len()).filter(is_new).collect::<Vec<_>>() {
            self.take_in(session, group);
        }
        self.expect_list_changed(session);
    }

    /// Servers without a place in the new config: their connections end.
    fn hang_up_on_leavers(&mut self, places: &[Place]) {
        let stays = |server: usize| places.contains(&Some(server));
        let leavers: Vec<Arc<str>> = (0..self.servers.len())
            .filter(|server| !stays(*server))
            .map(|server| self.servers[server].name())
            .collect();
        let lines = self.lines.iter().filter(|(_, it)| leavers.contains(&it.server));
        for line in lines.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.hang_up(line);
        }
    }
}

impl Server {
    /// The same server with another config.
    fn reloaded(mut self, plan: &ServerPlan) -> Self {
        self.world.tools.clone_from(&plan.tools);
        self.plan = plan.clone();
        self
    }
}
