//! What one client session sees of the servers, each known by its place in the config.
//!
//! ```text
//!   at open:  unhealthy ─────────────▶ excluded ── with `live`, when it is well ─▶ connecting
//!             half-open, slot taken ─▶ late ────── when a slot is free ──────────▶ connecting
//!             anything else ─────────▶ connecting ─▶ joined ◀─ connected, or failed ─┐
//!                                          ├ failed ─▶ excluded                      │
//!                                          └ still connecting at the first list ─▶ slow
//! ```
//! Rules kept here:
//! - A server that is unhealthy when the session opens, or cannot be connected to then, is
//!   excluded for the life of the session: not listed, not found, not reached. With
//!   `visibility: live` it is out only while it is unhealthy.
//! - A server that fails later stays listed (`session`): its calls say that it is unavailable.
//! - Only the first list or find of a session waits for servers that are still connecting:
//!   [`Waits::known`] for one whose catalogue is known, else until the server's first attempt since
//!   start has ended, at most [`Waits::unknown`]; after a failed one nobody waits ([`Contact`]).
//! - A known server that is still connecting after that wait is slow, not dead: it is listed from
//!   its catalogue. If its connection fails only then, that is a failure in mid-session: the calls
//!   that waited for it fail, its tools stay, and a later call may succeed.
//! - A call waits for its own server only, as long as connecting to it may take.
//! - Whoever joins after the client has looked is told of with `list_changed`, debounced.
//!
//! Left to others: the connections (`link.rs`), permits (`health.rs`), the lists (`catalogue.rs`).

use tidegate_core::time::{Millis, Now};

use crate::{cause::Cause, health::Standing};

/// Whether a session's tools follow health while it lasts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Visibility {
    /// Decided when the session opens.
    #[default]
    Session,
    /// Followed, with `list_changed`.
    Live,
    /// Followed at every list, find and call, each of which may wait like the first of a session:
    /// the client has none.
    Request,
}

impl Visibility {
    /// Whether tools come and go with health.
    #[must_use]
    pub const fn follows_health(self) -> bool {
        !matches!(self, Self::Session)
    }
}

/// How long a session waits, and for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waits {
    /// `connect_wait`: for a server whose catalogue is known.
    pub known: Millis,
    /// `connect_timeout`: for the first attempt since start of any other.
    pub unknown: Millis,
    /// `call_timeout`: of the first call, for a child of the session's own.
    pub child: Millis,
    /// How long changes are gathered before the client hears of them.
    pub debounce: Millis,
}

impl Default for Waits {
    fn default() -> Self {
        Self {
            known: Millis(500),
            unknown: Millis::seconds(5),
            child: Millis::seconds(60),
            // Servers that come up together are one change; a person does not notice the delay.
            debounce: Millis(100),
        }
    }
}

/// How the latest attempt to reach a server ended: one per server, shared by all sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Contact {
    /// None has ended since start.
    #[default]
    Untried,
    /// It succeeded.
    Reached,
    /// It failed.
    Failed,
}

/// What a session is told of a server when it meets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Its health.
    pub standing: Standing,
    /// How long connecting to it may take: of a group, to all of its members in turn.
    pub connect_within: Millis,
    /// Whether every session has a child process of its own.
    pub is_own_child: bool,
}

/// What is known of a server whenever a session considers waiting for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// How the latest attempt ended.
    pub contact: Contact,
    /// Whether its tools are known.
    pub has_catalogue: bool,
}

/// What a server is to a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seat {
    /// Not known to be bad; its connection is being made.
    Connecting,
    /// Its connection takes longer than a list waits; it is listed from its catalogue.
    Slow,
    /// It takes part.
    Joined,
    /// Half-open with every slot taken: its trial will tell.
    Late,
    /// It does not take part, for this reason.
    Excluded(Cause),
}

/// What the owner of a session does after an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// Nothing.
    Nothing,
    /// The server's connection is to be made.
    Connect,
    /// The client's lists have changed; [`Session::list_changed_at`] says when to tell.
    Changed,
}

/// Whether a call may go to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// It may: the core and the link are next.
    Go,
    /// The server is still connecting: ask again when it has, at the latest at this moment.
    Wait(Now),
    /// It may not: `backend "NAME" unavailable: CAUSE`.
    Refused(Cause),
}

/// A call that wants to go to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// When it came.
    pub began: Now,
    /// Whether it has been told to wait before.
    pub has_waited: bool,
}

/// A server's place after a reload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carried {
    /// It was there before, at this place.
    Kept(usize),
    /// It is new, or not the same server any more.
    Added(Arrival),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SessionSlot {
    seat: Seat,
    connect_within: Millis,
    is_own_child: bool,
    /// It had joined when the session came from another replica: it stays listed whatever happens.
    was_joined: bool,
    /// Joined, but unhealthy now (`live` only).
    is_hidden: bool,
    /// Why it could not be connected to while it was slow: the calls that waited hear it.
    late_failure: Option<Cause>,
}

/// What one client session sees.
#[derive(Clone, Debug)]
pub struct Session {
    visibility: Visibility,
    waits: Waits,
    places: Vec<SessionSlot>,
    first_look: Option<Now>,
    /// Whether the client has an answer that a change could make stale.
    was_shown: bool,
    changed_at: Option<Now>,
    is_closed: bool,
}

impl Session {
    /// A session that opens now; one arrival per server, in the order of the config. The
    /// connections of [`Session::connecting`] are to be made.
    #[must_use]
    pub fn open(visibility: Visibility, waits: Waits, servers: &[Arrival]) -> Self {
        Self {
            visibility,
            waits,
            places: servers.iter().map(SessionSlot::of).collect(),
            first_look: None,
            was_shown: false,
            changed_at: None,
            is_closed: false,
        }
    }

    /// The servers whose connections are being made.
    pub fn connecting(&self) -> impl Iterator<Item = usize> + '_ {
        let is_connecting = |place: &SessionSlot| place.seat == Seat::Connecting;
        (0..self.places.len()).filter(move |&server| is_connecting(&self.places[server]))
    }

    /// What a server is to this session. One without a place is closing.
    #[must_use]
    pub fn seat(&self, server: usize) -> Seat {
        let place = self.places.get(server).filter(|_| !self.is_closed);
        place.map_or(Seat::Excluded(Cause::Closing), |place| place.seat)
    }

    /// Whether the server's tools, resources and prompts are listed and found.
    #[must_use]
    pub fn sees(&self, server: usize) -> bool {
        !self.is_closed && self.places.get(server).is_some_and(SessionSlot::is_visible)
    }

    /// Its connection is there.
    pub fn connected(&mut self, now: Now, server: usize) -> News {
        let Some(place) = self.places.get_mut(server) else { return News::Nothing };
        match place.seat {
            Seat::Connecting => {
                place.seat = Seat::Joined;
                self.note_change(now)
            }
            // It is listed already.
            Seat::Slow => {
                place.seat = Seat::Joined;
                News::Nothing
            }
            Seat::Joined | Seat::Late | Seat::Excluded(_) => News::Nothing,
        }
    }

    /// Its connection could not be made. Later losses are not the session's business.
    pub fn connect_failed(&mut self, now: Now, server: usize, cause: Cause) -> News {
        let Some(place) = self.places.get_mut(server) else { return News::Nothing };
        match place.seat {
            Seat::Connecting if place.was_joined => {
                place.seat = Seat::Joined;
                place.late_failure = Some(cause);
                News::Nothing
            }
            Seat::Connecting => {
                let was_visible = place.is_visible();
                place.seat = Seat::Excluded(cause);
                if was_visible { self.note_change(now) } else { News::Nothing }
            }
            Seat::Slow => {
                place.seat = Seat::Joined;
                place.late_failure = Some(cause);
                News::Nothing
            }
            Seat::Joined | Seat::Late | Seat::Excluded(_) => News::Nothing,
        }
    }

    /// A look at its health: after a transition, and with `live` at every list, find and call.
    pub fn follow(&mut self, now: Now, server: usize, standing: Standing) -> News {
        let is_live = self.visibility.follows_health();
        let Some(place) = self.places.get_mut(server) else { return News::Nothing };
        match (place.seat, Seat::at_open(standing)) {
            (Seat::Late, Seat::Connecting) => {
                place.seat = Seat::Connecting;
                News::Connect
            }
            (Seat::Excluded(_), Seat::Connecting) if is_live => {
                place.seat = Seat::Connecting;
                News::Connect
            }
            (Seat::Late, Seat::Excluded(cause)) => {
                place.seat = Seat::Excluded(cause);
                News::Nothing
            }
            (Seat::Joined, now_at) if is_live => {
                let is_hidden = matches!(now_at, Seat::Excluded(_));
                let was_hidden = std::mem::replace(&mut place.is_hidden, is_hidden);
                if is_hidden == was_hidden { News::Nothing } else { self.note_change(now) }
            }
            _ => News::Nothing,
        }
    }

    /// What a server offers has changed.
    pub fn offers_changed(&mut self, now: Now, server: usize) -> News {
        if self.sees(server) { self.note_change(now) } else { News::Nothing }
    }

    /// A list or find begins: the first one starts the time that may be waited.
    pub fn look(&mut self, now: Now) {
        if self.visibility == Visibility::Request {
            self.first_look = Some(now);
        }
        self.first_look.get_or_insert(now);
    }

    /// A list is about to be given: whoever joins from here on is told of, and a server that the
    /// first list waited for in vain is slow. `has_catalogue` says whose tools are known.
    pub fn shown(&mut self, has_catalogue: impl Fn(usize) -> bool) {
        if self.is_first_look() {
            for (server, place) in self.places.iter_mut().enumerate() {
                let is_late = place.seat == Seat::Connecting && !place.is_own_child;
                if is_late && has_catalogue(server) {
                    place.seat = Seat::Slow;
                }
            }
        }
        self.was_shown = true;
    }

    /// Until when a list or find waits for a server; `None` = it does not.
    #[must_use]
    pub fn may_wait(&self, now: Now, server: usize, known: Known) -> Option<Now> {
        let span = match (known.has_catalogue, known.contact) {
            (true, _) => self.waits.known,
            (false, Contact::Untried) => self.waits.unknown,
            (false, Contact::Reached | Contact::Failed) => return None,
        };
        let is_due = self.seat(server) == Seat::Connecting && self.is_first_look();
        let until = self.first_look.unwrap_or(now).after(span);
        (is_due && !now.reached(until)).then_some(until)
    }

    /// Whether the client has not seen a list that stands for the rest of its session.
    fn is_first_look(&self) -> bool {
        !self.was_shown || self.visibility == Visibility::Request
    }

    /// Whether a call may go to a server now.
    #[must_use]
    pub fn entry(&self, now: Now, caller: Caller, server: usize) -> Entry {
        match self.seat(server) {
            Seat::Joined => match self.places[server].late_failure {
                Some(cause) if caller.has_waited => Entry::Refused(cause),
                Some(_) | None => Entry::Go,
            },
            Seat::Late => Entry::Refused(Cause::CircuitOpen),
            Seat::Excluded(Cause::Closing) => Entry::Refused(Cause::Closing),
            Seat::Excluded(_) if self.visibility == Visibility::Session => {
                Entry::Refused(Cause::ExcludedAtOpen)
            }
            Seat::Excluded(cause) => Entry::Refused(cause),
            Seat::Connecting | Seat::Slow => {
                let place = &self.places[server];
                let is_own_child = place.is_own_child;
                let span = if is_own_child { self.waits.child } else { place.connect_within };
                let until = caller.began.after(span);
                let late = Entry::Refused(Cause::TimedOut(span));
                if now.reached(until) { late } else { Entry::Wait(until) }
            }
        }
    }

    /// When the client is to hear `list_changed`, if it is.
    #[must_use]
    pub fn list_changed_at(&self) -> Option<Now> {
        self.changed_at.map(|at| at.after(self.waits.debounce))
    }

    /// Whether the client is to hear `list_changed` now; if so, it counts as told.
    pub fn tell_list_changed(&mut self, now: Now) -> bool {
        let is_due = self.list_changed_at().is_some_and(|at| now.reached(at));
        if is_due {
            self.changed_at = None;
        }
        is_due
    }

    /// The config changed: one entry per server of the new one, in its order.
    pub fn reload(&mut self, now: Now, servers: &[Carried]) -> News {
        let seen = |session: &Self| session.places.iter().filter(|it| it.is_visible()).count();
        let before = seen(self);
        let places = servers.iter().map(|carried| match carried {
            Carried::Kept(place) => self.places.get(*place).copied().unwrap_or(SessionSlot::LOST),
            Carried::Added(arrival) => SessionSlot::of(arrival),
        });
        self.places = places.collect();
        // Nothing becomes visible by a reload alone: new servers have to connect first.
        if seen(self) == before { News::Nothing } else { self.note_change(now) }
    }

    /// It ends: no call goes anywhere.
    pub fn close(&mut self) {
        self.is_closed = true;
        self.changed_at = None;
    }

    fn note_change(&mut self, now: Now) -> News {
        if !self.was_shown || self.is_closed {
            return News::Nothing;
        }
        self.changed_at.get_or_insert(now);
        News::Changed
    }
}

impl Seat {
    const fn at_open(standing: Standing) -> Self {
        match standing {
            Standing::Healthy | Standing::HalfOpenFree => Self::Connecting,
            Standing::SlotTaken => Self::Late,
            Standing::Unhealthy(cause, _) => Self::Excluded(cause),
        }
    }
}

impl SessionSlot {
    const LOST: Self = Self {
        seat: Seat::Excluded(Cause::Closing),
        connect_within: Millis::ZERO,
        is_own_child: false,
        was_joined: false,
        is_hidden: false,
        late_failure: None,
    };

    const fn of(arrival: &Arrival) -> Self {
        let &Arrival { standing, connect_within, is_own_child } = arrival;
        let seat = Seat::at_open(standing);
        let (was_joined, is_hidden, late_failure) = (false, false, None);
        Self { seat, connect_within, is_own_child, was_joined, is_hidden, late_failure }
    }

    fn is_visible(&self) -> bool {
        match self.seat {
            Seat::Joined => !self.is_hidden,
            Seat::Slow => true,
            // Its calls wait for it, so what is known of it can be shown meanwhile.
            Seat::Connecting => self.is_own_child || self.was_joined,
            Seat::Late | Seat::Excluded(_) => false,
        }
    }
}

mod adopted;
#[cfg(test)]
mod tests;

pub use self::adopted::KeptSeat;
