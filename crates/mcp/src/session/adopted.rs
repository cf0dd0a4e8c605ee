//! A session that another replica opened: who had joined stays listed, who was out stays out.

use serde::{Deserialize, Serialize};

use super::{Arrival, Seat, Session, SessionSlot, Visibility, Waits};
use crate::cause::Cause;

/// What a server is to a session, as far as another replica needs to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeptSeat {
    /// It is listed.
    Joined,
    /// It does not take part.
    Out,
    /// That is not known yet.
    Coming,
}

impl Session {
    /// A session that comes from another replica; per server what it is here, and was there.
    /// The connections of [`Session::connecting`] are to be made.
    #[must_use]
    pub fn adopt(visibility: Visibility, waits: Waits, servers: &[(Arrival, KeptSeat)]) -> Self {
        let mut session = Self::open(visibility, waits, &[]);
        let place = |(arrival, seat): &(Arrival, KeptSeat)| {
            let here = SessionSlot::of(arrival);
            match seat {
                KeptSeat::Coming => here,
                KeptSeat::Joined => {
                    SessionSlot { seat: Seat::Connecting, was_joined: true, ..here }
                }
                KeptSeat::Out => {
                    SessionSlot { seat: Seat::Excluded(Cause::ExcludedAtOpen), ..here }
                }
            }
        };
        session.places = servers.iter().map(place).collect();
        session
    }

    /// What another replica is to know of a server.
    #[must_use]
    pub fn kept_seat(&self, server: usize) -> KeptSeat {
        let Some(place) = self.places.get(server) else { return KeptSeat::Coming };
        match place.seat {
            Seat::Joined | Seat::Slow => KeptSeat::Joined,
            Seat::Connecting if place.was_joined => KeptSeat::Joined,
            Seat::Excluded(_) => KeptSeat::Out,
            Seat::Connecting | Seat::Late => KeptSeat::Coming,
        }
    }
}
