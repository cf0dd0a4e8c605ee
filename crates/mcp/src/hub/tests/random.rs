//! Random programs of events, each from a seed: whatever happens, the rules of sessions hold.
//!
//! Rules that are checked:
//! - Every request is answered exactly once.
//! - A call that is not harmless to repeat is given to servers at most once (I10).
//! - A server that a session goes without is not reached by that session's calls.
//! - When everything has ended nothing is left: no call, no exchange, no link, no connection.
//!
//! `TIDEGATE_SEEDS=100000 cargo test -p tidegate-mcp random_programs` runs more of them; a failure
//! names its seed, and `TIDEGATE_SEED=N` runs that one alone.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use tidegate_core::time::Millis;

use super::bed::{Bed, Manner, Seeded};
use crate::{
    hub::{Event, HttpMethod, McpAnswerBody, Random as _, RequestToken, ServerAccess},
    session::Visibility,
};

const STEPS: usize = 60;
const NAMES: [&str; 3] = ["a", "b", "c"];
const TOOLS: [&str; 4] = ["echo", "read", "wait", "ask"];

/// One program at work.
struct Program {
    bed: Bed,
    dice: Seeded,
    sessions: Vec<String>,
    tokens: Vec<RequestToken>,
    /// Calls under way that a client may cancel or leave: session, id, token.
    calls: Vec<(String, u64, RequestToken)>,
    /// What each call was: its session, its tool, its server.
    made: BTreeMap<u64, (String, &'static str, &'static str)>,
    /// Servers that a session goes without, from the call that was told so.
    excluded: BTreeSet<(String, &'static str)>,
    next: u64,
}

impl Program {
    fn new(seed: u64) -> Self {
        let mut dice = Seeded(seed);
        let count = 2 + below(&mut dice, 2);
        let mut bed = Bed::new(&NAMES[..count]);
        let is_group = below(&mut dice, 4) == 0;
        for at in 0..count {
            bed.servers[at].is_stateless = below(&mut dice, 3) == 0;
            bed.settings.servers[at].max_calls = 1 + below(&mut dice, 3);
            if !bed.servers[at].is_stateless && !is_group && below(&mut dice, 3) == 0 {
                let is_shared = below(&mut dice, 2) == 0;
                bed.settings.servers[at].access = ServerAccess::Child { is_shared };
            }
        }
        bed.settings.children_max = 64;
        bed.settings.call_timeout = Millis::seconds(10);
        if below(&mut dice, 3) == 0 {
            bed.settings.visibility = Visibility::Live;
        }
        let bed = if is_group { bed.grouped() } else { bed };
        let mut program = Self {
            bed: bed.start(),
            dice,
            sessions: Vec::new(),
            tokens: Vec::new(),
            calls: Vec::new(),
            made: BTreeMap::new(),
            excluded: BTreeSet::new(),
            next: 0,
        };
        program.bed.random = Seeded(seed ^ 0xABCD);
        program
    }

    fn below(&mut self, bound: usize) -> usize {
        below(&mut self.dice, bound)
    }

    fn session(&mut self) -> Option<String> {
        let count = self.sessions.len();
        if count == 0 {
            return None;
        }
        let at = self.below(count);
        Some(self.sessions[at].clone())
    }

    /// A tool's name as clients know it, its own name and its server.
    fn tool(&mut self) -> (String, &'static str, &'static str) {
        let at = self.below(self.bed.servers.len());
        let tool = TOOLS[self.below(TOOLS.len())];
        let server = self.bed.servers[at].name;
        let is_group = self.bed.settings.groups.len() == 1;
        let name = if is_group { tool.to_owned() } else { format!("{server}_{tool}") };
        (name, tool, server)
    }

    fn step(&mut self) {
        match self.below(18) {
            0 | 1 if self.sessions.len() < 6 => {
                let can = if self.below(2) == 0 { json!({}) } else { json!({"elicitation": {}}) };
                let session = self.bed.open_with(can);
                self.sessions.push(session);
            }
            2 => {
                if let Some(session) = self.session() {
                    let token = self.bed.send(HttpMethod::Delete, &session, None);
                    self.tokens.push(token);
                    self.sessions.retain(|it| *it != session);
                }
            }
            3..=6 => self.call(),
            7 => self.call_stateless(),
            8 => {
                if let Some(session) = self.session() {
                    let list = json!({"jsonrpc": "2.0", "id": 5000, "method": "tools/list"});
                    let token = self.bed.post(&session, &list);
                    self.tokens.push(token);
                }
            }
            9 | 10 => self.answer_held(),
            11 => {
                let at = self.below(self.bed.servers.len());
                let manners = [Manner::Works, Manner::Dead, Manner::Silent, Manner::Forgetful];
                self.bed.servers[at].manner = manners[self.below(manners.len())];
            }
            12 => {
                let at = self.below(self.bed.servers.len());
                self.bed.break_connections(at);
            }
            13 => self.leave(),
            14 => {
                let span = Millis([10, 200, 1000, 6000, 40_000][self.below(5)]);
                self.bed.pass(span);
            }
            15 => self.bed.reload(),
            16 => {
                let (token, at) = (self.token(), self.below(self.bed.servers.len()));
                let server = self.bed.servers[at].name.into();
                self.bed.tell(Event::Probe { token, server });
            }
            _ => {
                if let Some(session) = self.session() {
                    let token = self.bed.send(HttpMethod::Get, &session, None);
                    self.tokens.push(token);
                }
            }
        }
        self.note_excluded();
    }

    fn token(&mut self) -> RequestToken {
        self.bed.next_token += 1;
        RequestToken(self.bed.next_token)
    }

    fn call(&mut self) {
        let Some(session) = self.session() else { return };
        let (name, tool, server) = self.tool();
        self.next += 1;
        let number = self.next;
        self.made.insert(number, (session.clone(), tool, server));
        let params = json!({"name": name, "arguments": {"n": number}});
        let message =
            json!({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params});
        let token = self.bed.post(&session, &message);
        self.tokens.push(token);
        self.calls.push((session, number, token));
    }

    fn call_stateless(&mut self) {
        let (name, tool, server) = self.tool();
        self.next += 1;
        let number = self.next;
        self.made.insert(number, (String::new(), tool, server));
        let params = json!({"name": name, "arguments": {"n": number}});
        let can = json!({"elicitation": {}});
        let token = self.bed.post_stateless(number, "tools/call", params.clone(), &can);
        self.tokens.push(token);
        let state = self.bed.answers.get(&token).and_then(|it| match &it.body {
            McpAnswerBody::Json(bytes) => serde_json::from_slice::<Value>(bytes).ok(),
            _ => None,
        });
        let state = state.map(|it| it["result"]["requestState"].clone());
        if let Some(state) = state.filter(|it| it.is_string() && self.below(2) == 0) {
            let mut back = params;
            back["requestState"] = state;
            back["inputResponses"] = json!({"question-1": {"action": "accept"}});
            let token = self.bed.post_stateless(number, "tools/call", back, &can);
            self.tokens.push(token);
        }
    }

    /// A server answers one of the calls that it holds.
    fn answer_held(&mut self) {
        let at = self.below(self.bed.servers.len());
        let count = self.bed.servers[at].held.len();
        if count > 0 {
            let which = self.below(count);
            let (connection, call) = self.bed.servers[at].held.remove(which);
            if self.bed.connections.contains_key(&connection) {
                self.bed.reply(connection, call, Ok(json!({"content": []})));
                self.bed.settle();
            }
        }
    }

    /// A client cancels a call, or its connection goes.
    fn leave(&mut self) {
        let count = self.calls.len();
        if count == 0 {
            return;
        }
        let which = self.below(count);
        let (session, id, token) = self.calls.swap_remove(which);
        if self.below(2) == 0 {
            let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
                "params": {"requestId": id}});
            let token = self.bed.post(&session, &cancel);
            self.tokens.push(token);
        } else if let Some(McpAnswerBody::Events(reader)) =
            self.bed.answers.get(&token).map(|it| &it.body)
        {
            let reader = *reader;
            self.bed.tell(Event::ReaderGone { reader });
        }
    }

    /// Sessions that were told that they go without a server.
    fn note_excluded(&mut self) {
        if self.bed.settings.visibility != Visibility::Session {
            return;
        }
        for (session, number, token) in &self.calls {
            let Some(answer) = self.bed.answers.get(token) else { continue };
            let McpAnswerBody::Events(reader) = answer.body else { continue };
            let told = self.bed.streams.get(&reader).map(|it| it.concat()).unwrap_or_default();
            if told.contains("unhealthy when the session opened") {
                let Some(&(_, _, server)) = self.made.get(number) else { continue };
                if self.excluded.insert((session.clone(), server)) {
                    // Calls before this one may have been sent by then.
                    let next = self.next;
                    self.made
                        .retain(|it, made| *it > next || made.0 != *session || made.2 != server);
                }
            }
        }
    }

    /// Everything ends, and the rules have held.
    fn finish(mut self) {
        for (number, servers) in &self.bed.delivered {
            let Some((session, tool, server)) = self.made.get(number) else { continue };
            if *tool != "read" {
                assert!(servers.len() <= 1, "call {number} of `{tool}` was given to {servers:?}");
            }
            let is_without = self.excluded.contains(&(session.clone(), *server));
            let is_alone = self.bed.settings.groups.len() > 1;
            assert!(!is_without || !is_alone, "call {number} reached {servers:?}");
        }
        for server in &mut self.bed.servers {
            server.manner = Manner::Works;
        }
        self.bed.pass(Millis::minutes(6));
        let sizes = self.bed.hub.sizes();
        assert_eq!((sizes.exchanges, sizes.calls, sizes.joins), (0, 0, 0), "{sizes:?}");
        for token in &self.tokens {
            let is_answered = self.bed.answers.contains_key(token);
            assert!(is_answered, "{token:?} was never answered");
        }
        let readers: Vec<_> = self.bed.streams.keys().copied().collect();
        for reader in readers {
            self.bed.tell(Event::ReaderGone { reader });
        }
        self.bed.tell(Event::Close);
        assert!(self.bed.is_closed, "{:?}", self.bed.hub.sizes());
        let sizes = self.bed.hub.sizes();
        assert_eq!((sizes.clients, sizes.links, sizes.connections), (0, 0, 0), "{sizes:?}");
        assert_eq!((sizes.readers, sizes.joins), (0, 0), "{sizes:?}");
    }
}

fn below(dice: &mut Seeded, bound: usize) -> usize {
    usize::try_from(dice.draw() % bound as u64).expect("it is below a small number")
}

fn run(seed: u64) {
    let mut program = Program::new(seed);
    for _ in 0..STEPS {
        program.step();
    }
    program.finish();
}

#[test]
#[expect(clippy::print_stderr, reason = "whoever sees it fail wants the seed")]
fn random_programs_keep_the_rules_of_sessions() {
    let number = |name: &str| std::env::var(name).ok().and_then(|it| it.parse::<u64>().ok());
    if let Some(seed) = number("TIDEGATE_SEED") {
        return run(seed);
    }
    for seed in 0..number("TIDEGATE_SEEDS").unwrap_or(1000) {
        if let Err(panic) = std::panic::catch_unwind(|| run(seed)) {
            eprintln!("again: TIDEGATE_SEED={seed} cargo test -p tidegate-mcp random_programs");
            std::panic::resume_unwind(panic);
        }
    }
}
