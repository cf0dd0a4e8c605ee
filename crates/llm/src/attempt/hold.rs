//! Holding a stream back until it is worth committing to.
//!
//! Nothing of a stream is released before its first content: what only announces is held, and what
//! goes wrong meanwhile is a failure of this attempt only. A route may ask for more (`hold`): until
//! so many events with content have come, or so much time has passed since the first one.
//!
//! Rules kept here:
//! - Of two limits of a hold the one that is reached first ends it; the end of the stream ends it
//!   too; and never is more held than the server's limit says, or longer than the client waits.
//! - What goes wrong before the commit is a failover, also after the first content: an error event,
//!   a break, an early end, silence, what is no JSON.
//! - The core is told of the first content at the commit, since that ends every chance of another
//!   attempt; the time it is told is that of the first content itself.
//!
//! Left to others: what happens after the commit (`committed_body.rs`), answers that do not stream
//! (`attempt.rs`).

use std::time::Duration;

use tidegate_config::file::RouteFile;
use tidegate_core::outcome::OutcomeKind;
use tidegate_gateway::provider::Target;
use tidegate_runtime::clock::timer_now;
use tidegate_wire::events::{EventReader, Step};
use tokio::time::Instant;

use super::{AttemptOptions, AttemptResult, Interrupt, PendingResponse, error_event};
use crate::{
    request_context::RequestContext,
    timers::{Deadline, Timers},
};

/// How far a stream is held beyond its first content; zero = no such limit.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Hold {
    tokens: u32,
    time: Duration,
}

impl Hold {
    /// What a route asks for; a direct request has none.
    pub(crate) fn of(route: Option<&RouteFile>) -> Self {
        let of_route = |it: &RouteFile| Self {
            tokens: it.hold.tokens,
            time: Duration::from_millis(it.hold.time.millis().0),
        };
        route.map(of_route).unwrap_or_default()
    }

    /// Whether anything is held beyond the first content.
    pub(crate) fn is_on(self) -> bool {
        self.tokens > 0 || !self.time.is_zero()
    }
}

/// What has come of a stream that is held.
#[derive(Debug)]
struct Holding {
    hold: Hold,
    /// Events with content.
    tokens: u32,
    /// When the first of them came, and the last.
    heard: Option<(Instant, Instant)>,
    bytes: usize,
}

impl Holding {
    fn new(hold: Hold) -> Self {
        Self { hold, tokens: 0, heard: None, bytes: 0 }
    }

    fn content(&mut self, now: Instant) {
        self.tokens = self.tokens.saturating_add(1);
        let (first, _) = self.heard.unwrap_or((now, now));
        self.heard = Some((first, now));
    }

    /// When the hold's time is over, if it has a time and that has begun.
    fn ends_at(&self) -> Option<Instant> {
        let (first, _) = self.heard.filter(|_| !self.hold.time.is_zero())?;
        first.checked_add(self.hold.time)
    }

    /// Whether enough has come to commit to it.
    fn is_enough(&self, now: Instant) -> bool {
        let is_counted = self.hold.tokens > 0 && self.tokens >= self.hold.tokens;
        let is_over = self.ends_at().is_some_and(|end| now >= end);
        self.heard.is_some() && (!self.hold.is_on() || is_counted || is_over)
    }

    /// What the attempt waits for: the first content, then the next.
    fn deadline(&self, timers: &Timers) -> Deadline {
        match self.heard {
            None => timers.first_content(),
            Some((_, last)) => timers.idle(last),
        }
    }
}

/// What a chunk brought before the commit.
enum Seen {
    /// Not enough yet.
    Nothing,
    /// Enough to commit to it.
    Enough,
    /// The end: a terminator, an error, or an event that cannot be read.
    End(Step),
}

impl PendingResponse {
    /// Holds a stream until there is enough of it to commit to it.
    pub(super) async fn hold_to_commit(
        mut self,
        context: &mut RequestContext,
        target: &Target,
        options: AttemptOptions,
    ) -> AttemptResult {
        let mut holding = Holding::new(options.hold);
        loop {
            let mut deadline = holding.deadline(&self.timers);
            let release = holding.ends_at().filter(|end| *end <= deadline.at);
            deadline.at = release.unwrap_or(deadline.at);
            let data = match self.chunk(context, deadline).await {
                Err(Interrupt::Commit) => return self.commit(context, &holding),
                Err(Interrupt::Waited(limit)) if release.is_some() && !limit.is_patience() => {
                    return self.commit(context, &holding);
                }
                Err(interrupt) => {
                    return AttemptResult::Failed(self.interrupted(context, interrupt));
                }
                Ok(None) => return self.ended(context, &holding),
                Ok(Some(data)) => data,
            };
            holding.bytes += data.len();
            let Some(reader) = &mut self.events else { continue };
            reader.feed(data);
            let seen = see(reader, &mut holding);
            self.held.extend(reader.take().into_iter().filter(|it| !it.is_empty()));
            let detail = match seen {
                Seen::Enough => return self.commit(context, &holding),
                Seen::End(Step::Complete) => return self.complete(context, &holding),
                Seen::End(Step::Failed(event)) => {
                    let converter = self.converter.as_ref();
                    let failure = error_event(target, options, self.head, &event, converter);
                    return AttemptResult::Failed(failure);
                }
                Seen::End(Step::TooLong) => "an event is too long",
                Seen::End(_) => "malformed stream",
                Seen::Nothing if holding.bytes <= options.hold_max => continue,
                Seen::Nothing => {
                    if let Some(id) = context.resolved() {
                        context.worker.gateway.metrics.hold_overflow(&id);
                    }
                    return self.commit(context, &holding);
                }
            };
            return AttemptResult::Failed(self.failed(OutcomeKind::Transport, detail));
        }
    }

    /// The body ended before anything of it was released.
    fn ended(mut self, context: &mut RequestContext, holding: &Holding) -> AttemptResult {
        let Some(reader) = &mut self.events else { return self.complete(context, holding) };
        if reader.finish() {
            let closing = reader.closing();
            let rest = reader.take().into_iter().chain([closing]);
            self.held.extend(rest.filter(|it| !it.is_empty()));
            return self.complete(context, holding);
        }
        let failure = if reader.has_content() {
            self.failed(OutcomeKind::Transport, "the stream ended early")
        } else {
            self.failed(OutcomeKind::ServerError, "a stream without content or end")
        };
        AttemptResult::Failed(failure)
    }

    /// From here on there is no way back.
    fn commit(mut self, context: &mut RequestContext, holding: &Holding) -> AttemptResult {
        context.commit();
        self.tell_content(context, holding);
        if let Some(reader) = &mut self.events {
            reader.commit();
        }
        AttemptResult::Passing(Box::new(self))
    }

    /// The stream is over, in good order, before anything of it was released.
    fn complete(mut self, context: &mut RequestContext, holding: &Holding) -> AttemptResult {
        self.tell_content(context, holding);
        self.whole(context)
    }

    fn tell_content(&mut self, context: &mut RequestContext, holding: &Holding) {
        if let Some((first, last)) = holding.heard {
            self.last_content_at = Some(last);
            context.content(self.timers.sent_before(first));
        }
    }
}

/// Looks at the events of a chunk, up to the one that decides; what follows it stays in the reader.
fn see(reader: &mut EventReader, holding: &mut Holding) -> Seen {
    while let Some(step) = reader.next_event() {
        match step {
            Step::Quiet => {}
            Step::Content => {
                let now = timer_now();
                holding.content(now);
                if holding.is_enough(now) {
                    return Seen::Enough;
                }
            }
            end => return Seen::End(end),
        }
    }
    Seen::Nothing
}
