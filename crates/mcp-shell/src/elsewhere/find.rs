//! One request for a session that is not here, from its lookup to its answer.

use std::sync::Arc;

use tidegate_mcp::hub::{LastWords, McpAnswer};
use tidegate_mcp::shared_session::AbsenceVerdict;
use tokio::sync::mpsc;

use super::{
    Told, WaitingRequest, broke_off,
    carry::{self, Carried},
    not_now, refuse,
};
use crate::{
    event_body::ClientNews,
    fleet::{LookedUp, NotForwarded, PeerRequest, Replica, SessionFleet},
};

/// How long the head of a stream waits for a first event.
pub(crate) const HEAD_WAITS: std::time::Duration = std::time::Duration::from_millis(20);

/// How often a record is looked up for one request, and how long the first pause in between is;
/// each is twice as long as the one before. An owner that has let a session go may have done so a
/// moment before the store knows.
const LOOKS_MAX: u32 = 5;
const PAUSE: std::time::Duration = std::time::Duration::from_millis(10);

/// What a search goes by.
pub(crate) struct Search {
    pub(crate) fleet: Arc<dyn SessionFleet>,
    pub(crate) me: u128,
    pub(crate) clients: mpsc::UnboundedSender<ClientNews>,
    /// What the client hears if the answer is lost.
    pub(crate) words: Option<LastWords>,
}

/// What became of a request that was handed to a replica.
enum HandedOn {
    /// It is answered.
    Done,
    /// It is not, and the session may be looked up again.
    Again(WaitingRequest),
    /// It is not, and the replica is gone.
    Gone(WaitingRequest),
    /// It is not, and the replica cannot be reached, though it may live.
    Unreached(WaitingRequest),
}

impl Search {
    /// Sees to a request; what is left to do for whoever owns the sessions here.
    pub(crate) async fn run(self, mut waiting: WaitingRequest) -> Option<Told> {
        let session = waiting.request.session.clone()?;
        let mut unreached = None;
        for look in 0..LOOKS_MAX {
            if look > 0 {
                tokio::time::sleep(PAUSE * (1 << (look - 1))).await;
            }
            let record = match self.fleet.load(&session).await {
                LookedUp::Found(record) => record,
                LookedUp::Absent(absent) => match absent.verdict() {
                    AbsenceVerdict::NoSession => return Some(Told::Here(waiting)),
                    AbsenceVerdict::Unknown(reason) => {
                        refuse(waiting.answer, not_now(reason));
                        return None;
                    }
                },
                LookedUp::Away(reason) => {
                    refuse(waiting.answer, not_now(reason));
                    return None;
                }
            };
            let owner = match &record.owner {
                None => return Some(Told::Free(waiting, record)),
                Some(owner) if owner.instance == self.me => {
                    return Some(Told::Mine(waiting, record));
                }
                Some(owner) => owner.clone(),
            };
            let held = Some((owner.instance, record.epoch));
            if unreached == held {
                refuse(waiting.answer, not_now("its owner cannot be reached"));
                return None;
            }
            waiting = match self.hand_on(waiting, &owner).await {
                HandedOn::Done => return None,
                HandedOn::Gone(waiting) => return Some(Told::Free(waiting, record)),
                HandedOn::Again(waiting) => waiting,
                // It may have let the session go a moment ago.
                HandedOn::Unreached(waiting) => {
                    unreached = held;
                    waiting
                }
            };
        }
        refuse(waiting.answer, not_now("its owner does not know it"));
        None
    }

    /// Sees to a request for a call that is parked at another replica.
    pub(crate) async fn run_parked(self, waiting: WaitingRequest, owner: Replica) -> Option<Told> {
        match self.hand_on(waiting, &owner).await {
            HandedOn::Done => None,
            // The call went with its replica: the Hub says that it is not known.
            HandedOn::Gone(waiting) | HandedOn::Again(waiting) => Some(Told::Here(waiting)),
            HandedOn::Unreached(waiting) => {
                refuse(waiting.answer, not_now("its owner cannot be reached"));
                None
            }
        }
    }

    async fn hand_on(&self, waiting: WaitingRequest, owner: &Replica) -> HandedOn {
        let WaitingRequest { request, mut answer, tries } = waiting;
        let forwarded = self.fleet.forward(owner, PeerRequest::of(&request));
        let forwarded = tokio::select! {
            forwarded = forwarded => forwarded,
            // Its client has left: so does the request.
            () = answer.closed() => return HandedOn::Done,
        };
        let waiting = |answer| WaitingRequest { request, answer, tries };
        match forwarded {
            Ok(got) => {
                match carry::hand_back(got, answer, &self.clients, self.words.as_ref()).await {
                    Carried::Done => HandedOn::Done,
                    Carried::Lost(answer) => HandedOn::Again(waiting(answer)),
                }
            }
            Err(NotForwarded::NotMine) => HandedOn::Again(waiting(answer)),
            Err(NotForwarded::Gone) => HandedOn::Gone(waiting(answer)),
            Err(NotForwarded::Unreachable) => {
                let signs = self.fleet.signs_of(owner.instance).await;
                match signs.is_some_and(|signs| signs.is_gone()) {
                    true => HandedOn::Gone(waiting(answer)),
                    false => HandedOn::Unreached(waiting(answer)),
                }
            }
            Err(NotForwarded::Broken) => match &self.words {
                Some(words) if !words.may_repeat => {
                    refuse(answer, McpAnswer::json(200, words.message.clone()));
                    HandedOn::Done
                }
                Some(_) => HandedOn::Again(waiting(answer)),
                None => {
                    refuse(answer, broke_off());
                    HandedOn::Done
                }
            },
        }
    }
}
