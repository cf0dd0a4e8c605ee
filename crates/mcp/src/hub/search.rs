//! Search mode as the Hub sees it: it hands out what a client may see, and takes an answer. The
//! ranking, the texts of the two tools and embeddings are the business of others.

use std::sync::Arc;

use serde_json::value::RawValue;

use super::ids::{CallId, ClientId};
use super::server::ServerGroup;
use super::{Effect, Env, Hub};
use crate::{
    catalogue::Catalogue,
    health::{self, Standing},
};

/// The tool that finds others.
pub const FIND_TOOL: &str = "find_tool";
/// The tool that calls what was found.
pub const CALL_TOOL: &str = "call_tool";

/// Something to search for, or to describe, on behalf of one client.
#[derive(Debug)]
pub struct SearchJob {
    /// Under which it is answered.
    pub job: u64,
    /// What is wanted.
    pub task: SearchTask,
    /// What the client may see.
    pub view: SearchView,
}

/// What is wanted of a search.
#[derive(Debug)]
pub enum SearchTask {
    /// The result of `tools/list`: the two tools and the pinned ones.
    /// Answered by [`SearchAnswer::Result`].
    Describe,
    /// The result of `find_tool` with these arguments. Answered by [`SearchAnswer::Result`].
    Find(Option<Box<RawValue>>),
    /// What a `call_tool` with these params stands for. Answered by [`SearchAnswer::Call`], or by
    /// [`SearchAnswer::Result`] with what is wrong with it, or by [`SearchAnswer::Unknown`] if the
    /// catalogue has no such tool and `may_look` says that there may be one in a moment.
    Unwrap {
        /// The params of the `tools/call`.
        params: Box<RawValue>,
        /// The client has not looked yet: lists may be on their way.
        may_look: bool,
    },
}

/// What one client may see.
#[derive(Clone, Debug)]
pub struct SearchView {
    /// Everything that all servers offer.
    pub catalogue: Arc<Catalogue>,
    /// The servers and groups, in the order of the catalogue.
    pub servers: Vec<SeenGroup>,
}

/// One server, or group, as a search sees it.
#[derive(Clone, Debug)]
pub struct SeenGroup {
    /// Its name.
    pub name: Arc<str>,
    /// What it says about itself.
    pub instructions: Arc<str>,
    /// Whether the client sees what it offers.
    pub is_seen: bool,
    /// Whether the client may know of it at all.
    pub is_allowed: bool,
    /// Whether a call would be sent at all.
    pub is_available: bool,
}

/// What came of a search.
#[derive(Debug)]
pub enum SearchAnswer {
    /// The text of a `result`.
    Result(String),
    /// The params of the call that is really meant.
    Call(Box<RawValue>),
    /// There is no such tool yet.
    Unknown,
}

impl Hub {
    /// Asks whoever searches on behalf of a call; the number of the job.
    pub(super) fn ask_search(
        &mut self,
        env: &mut Env<'_>,
        client: ClientId,
        call: CallId,
        task: SearchTask,
    ) -> u64 {
        self.next_job += 1;
        let job = self.next_job;
        self.searches.insert(job, call);
        let view = self.search_view(env, client);
        self.out.push(Effect::Search(Box::new(SearchJob { job, task, view })));
        job
    }

    fn search_view(&mut self, env: &Env<'_>, client: ClientId) -> SearchView {
        let catalogue = self.catalogue_of(client);
        let Some(kept) = self.clients.get(client) else {
            return SearchView { catalogue, servers: Vec::new() };
        };
        let slots = kept.slots.iter().enumerate();
        let servers = slots.map(|(slot, it)| SeenGroup {
            name: Arc::clone(&it.group.name),
            instructions: self.instructions(&it.group, &kept.profile),
            is_seen: self.sees(client, slot),
            is_allowed: self.may_use(client, slot),
            is_available: self.is_available(env, &it.group),
        });
        SearchView { catalogue, servers: servers.collect() }
    }

    /// Whether a call would be sent at all: the breaker lets it, and a program that ended is not
    /// waiting to be started again.
    fn is_available(&self, env: &Env<'_>, group: &ServerGroup) -> bool {
        let standing = health::standing(env.core, &group.name, env.now);
        let is_waiting =
            self.members(group).all(|it| it.is_child() && it.may_start_at(env.now) > env.now);
        !is_waiting && !matches!(standing, Standing::Unhealthy(..))
    }
}
