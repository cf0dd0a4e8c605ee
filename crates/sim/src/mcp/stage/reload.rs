//! A reload: servers that stay keep their health, their connections and their seats; others leave
//! or are new to every session.

use std::sync::Arc;

use tidegate_mcp::session::{Carried, Seat};

use super::{Server, ServerPlan, Stage, settings};

impl Stage<'_> {
    pub(super) fn reload(&mut self, plans: Option<&[ServerPlan]>) {
        let same: Vec<ServerPlan> = self.servers.iter().map(|it| it.plan.clone()).collect();
        let plans = plans.unwrap_or(&same);
        let places: Vec<Option<usize>> = plans.iter().map(|it| self.place(&it.name)).collect();
        self.hang_up_on_leavers(&places);
        let mut old: Vec<Option<Server>> =
            std::mem::take(&mut self.servers).into_iter().map(Some).collect();
        let server = |(plan, place): (&ServerPlan, &Option<usize>)| {
            let kept = place.and_then(|it| old[it].take());
            kept.map_or_else(|| Server::new(plan), |it| it.reloaded(plan))
        };
        self.servers = plans.iter().zip(&places).map(server).collect();
        let settings = settings(self.scenario, &self.servers);
        self.core = self.core.reload(self.now, &settings);
        for running in self.calls.values_mut() {
            let place = |server| places.iter().position(|it| *it == Some(server));
            running.moved(place);
        }
        for session in self.clients.keys().cloned().collect::<Vec<_>>() {
            self.reload_session(&session, &places);
        }
        let before = self.catalogue.version();
        self.publish();
        // Names depend on who is configured, so another config may change everybody's.
        let is_renamed = self.catalogue.version() != before;
        for server in 0..self.servers.len() {
            self.fetch_listing(server);
            if is_renamed {
                self.tell_of_offers(server);
            }
        }
    }

    fn reload_session(&mut self, session: &str, places: &[Option<usize>]) {
        let names: Vec<Arc<str>> = self.servers.iter().map(Server::name).collect();
        let carried = |(server, place): (usize, &Option<usize>)| match place {
            Some(place) => Carried::Kept(*place),
            None => Carried::Added(self.arrival(server)),
        };
        let carried: Vec<Carried> = places.iter().enumerate().map(carried).collect();
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
        client.session.reload(now, &carried);
        let is_new = |server: &usize| {
            places[*server].is_none() && client.session.seat(*server) == Seat::Connecting
        };
        for server in (0..places.len()).filter(is_new).collect::<Vec<_>>() {
            self.take_in(session, server);
        }
        self.expect_list_changed(session);
    }

    /// Servers without a place in the new config: their connections end.
    fn hang_up_on_leavers(&mut self, places: &[Option<usize>]) {
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
        if self.plan.health != plan.health {
            // The auditor knows one set of rules; from here on nobody follows this server.
            self.books = None;
        }
        self.world.tools.clone_from(&plan.tools);
        self.plan = plan.clone();
        self
    }
}
