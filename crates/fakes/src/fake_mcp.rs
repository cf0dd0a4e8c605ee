//! A scripted MCP server: the backend of tests, benches and the demo.
//!
//! It speaks 2025-03-26, 2025-06-18 and 2025-11-25, and if its [`McpScript`] says so also
//! 2024-11-05 over one stream of events, or 2026-07-28 without sessions. It has tools, resources
//! and prompts, asks its client back (sampling, elicitation, roots), and misbehaves exactly as its
//! script says. What it received can be read, and so can what its client did wrong.
//!
//! Three ways to use it: as a [`FakeMcpServer`] on a socket of its own, as a child process
//! ([`serve_stdio`]), and inside the process over any stream of bytes (`serve`).
//!
//! ```text
//! http.rs, sse.rs, stdio.rs   the wire: one message in, a stream of messages out
//!   → talk.rs         one conversation: its handshake, its requests to the client, its streams
//!   → answer.rs       which method?  lists.rs (pages), call.rs (tools), questions.rs
//!   → stateless.rs    the era without sessions: what is checked, how results are dressed
//! script.rs, tool.rs  what it is told to be;  record.rs  what it saw
//! ```
//!
//! Rules kept here:
//! - It shares no parser with the gateway: a peer that misread the same way would prove nothing.
//!   So what it says is text made here, and what it hears is plain JSON.
//! - Nothing a client sends makes it panic; bodies and records have bounds.
//! - It has no timeouts of its own on purpose: hanging is one of its jobs. Whoever starts it ends
//!   it.

mod answer;
mod body;
mod call;
mod http;
mod lists;
mod questions;
mod record;
mod script;
mod server;
mod sse;
mod stateless;
mod stdio;
mod talk;
mod tool;

pub use record::{McpCounts, Received};
pub use script::{
    Era, Lost, McpScript, Opening, Outage, Ping, Prompt, Resource, StdioHabits, Transport,
};
pub use server::FakeMcpServer;
pub use stdio::serve_stdio;
pub use tool::{Hints, Tool, ToolAct};

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use serde_json::{Value, json};
use tidegate_runtime::clock::timer_now;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use record::Record;
use stateless::Listener;
use talk::Talk;

/// A fake MCP server: its script, its conversations, and what it saw.
#[derive(Debug)]
pub(crate) struct FakeMcp {
    started: Instant,
    script: ArcSwap<McpScript>,
    record: Record,
    talks: Mutex<BTreeMap<String, Arc<Talk>>>,
    /// Streams of `subscriptions/listen`, by a number of their own.
    listeners: Mutex<BTreeMap<u64, Listener>>,
    next_session: AtomicU64,
    /// Changes when the server dies: everything that serves a client ends then.
    life: watch::Sender<Life>,
}

/// Whether the server is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    /// It answers.
    Up,
    /// It has died; every connection is cut.
    Down,
}

impl FakeMcp {
    /// A fake with this script.
    pub(crate) fn new(script: McpScript) -> Arc<Self> {
        Arc::new(Self {
            started: timer_now(),
            record: Record::new(script.record),
            script: ArcSwap::from_pointee(script),
            talks: Mutex::default(),
            listeners: Mutex::default(),
            next_session: AtomicU64::new(1),
            life: watch::Sender::new(Life::Up),
        })
    }

    /// Sets another script and tells every client that all lists have changed.
    pub(crate) fn set_script(&self, script: McpScript) {
        self.script.store(Arc::new(script));
        for kind in ["tools", "resources", "prompts"] {
            self.tell_all(&format!("notifications/{kind}/list_changed"), None);
        }
    }

    /// Changes the tools and tells every client.
    fn change_tools(&self, change: impl FnOnce(&mut Vec<Tool>)) {
        let mut script = McpScript::clone(&self.script.load());
        change(&mut script.tools);
        self.script.store(Arc::new(script));
        self.tell_all("notifications/tools/list_changed", None);
    }

    /// Sends a notification to every client, on the stream that belongs to no request.
    fn tell_all(&self, method: &str, params: Option<Value>) {
        stateless::tell(self, method, params.as_ref());
        let message = notification(method, params);
        for talk in self.talks().values() {
            talk.tell(&message);
        }
    }

    /// Forgets every session, as a restart would; connections stay.
    pub(crate) fn lose_sessions(&self) {
        self.talks().clear();
    }

    /// Dies: sessions are forgotten and every connection is cut.
    pub(crate) fn go_down(&self) {
        self.life.send_replace(Life::Down);
        // Streams are cut before they are forgotten: ending one in good order is no crash.
        for talk in std::mem::take(&mut *self.talks()).values() {
            talk.cut_all();
        }
        for listener in std::mem::take(&mut *self.listeners()).values() {
            listener.cut();
        }
    }

    /// Ends every stream of `subscriptions/listen` in good order.
    pub(crate) fn end_listening(&self) {
        for listener in std::mem::take(&mut *self.listeners()).values() {
            listener.finish();
        }
    }

    /// Comes back, without a memory of sessions.
    pub(crate) fn come_up(&self) {
        self.life.send_replace(Life::Up);
    }

    fn is_up(&self) -> bool {
        *self.life.borrow() == Life::Up
    }

    /// Ends when the server dies.
    async fn death(&self) {
        let mut life = self.life.subscribe();
        // The sender is ours, so waiting cannot fail.
        drop(life.wait_for(|life| *life == Life::Down).await);
    }

    /// Begins a conversation; its id is new.
    fn begin(&self, version: &str) -> Arc<Talk> {
        let number = self.next_session.fetch_add(1, Ordering::Relaxed);
        let script = self.script.load();
        let name: String = script.name.chars().filter(char::is_ascii_alphanumeric).collect();
        // Without sessions there is one conversation that everybody shares.
        let id = if script.has_sessions { format!("{name}-{number:04}") } else { String::new() };
        let talk = Arc::new(Talk::new(id.clone(), version));
        self.talks().insert(id, Arc::clone(&talk));
        talk
    }

    fn talk(&self, id: &str) -> Option<Arc<Talk>> {
        self.talks().get(id).cloned()
    }

    /// Ends a conversation; whether there was one.
    fn end(&self, id: &str) -> bool {
        self.talks().remove(id).is_some()
    }

    fn listeners(&self) -> MutexGuard<'_, BTreeMap<u64, Listener>> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn talks(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Talk>>> {
        self.talks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Dies and comes back as the script says, for as long as this is awaited.
pub(crate) async fn run_outages(fake: Arc<FakeMcp>) {
    let Some(outage) = fake.script.load().outage else { return };
    loop {
        sleep(Duration::from_millis(outage.up_ms)).await;
        fake.go_down();
        sleep(Duration::from_millis(outage.down_ms)).await;
        fake.come_up();
    }
}

/// A notification as text.
fn notification(method: &str, params: Option<Value>) -> String {
    let mut message = json!({"jsonrpc": "2.0", "method": method});
    if let Some(params) = params {
        message["params"] = params;
    }
    message.to_string()
}
