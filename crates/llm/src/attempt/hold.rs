//! Holding a stream back until it is worth committing to.
//!
//! Nothing of a stream is released before the core commits it: at its first content, or later where
//! its route holds more. What goes wrong meanwhile is a failure of this attempt only.
//!
//! Rules kept here:
//! - The core is told of every chunk and of every event with content, and says when to commit; the
//!   end of a route's hold and the client's patience are waited for here.
//! - What goes wrong before the commit is a failover, also after the first content: an error event,
//!   a break, an early end, silence, what is no JSON.
//!
//! Left to others: what happens after the commit (`committed_body.rs`), answers that do not stream
//! (`attempt.rs`).

use std::time::Duration;

use tidegate_core::{
    commit::{AnswerForm, CommitCause},
    outcome::OutcomeKind,
};
use tidegate_gateway::provider::Target;
use tidegate_runtime::clock::timer_now;
use tidegate_wire::events::{EventReader, Step};
use tokio::time::Instant;

use super::{AttemptOptions, AttemptResult, Interrupt, PendingResponse, error_event};
use crate::request_context::RequestContext;

/// What a chunk brought before the commit.
enum Seen {
    /// Not enough yet.
    Nothing,
    /// What commits it.
    Enough(CommitCause),
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
        context.answers_as(AnswerForm::Events);
        loop {
            let mut deadline = match self.last_content_at {
                None => self.timers.first_content(),
                Some(last) => self.timers.idle(last),
            };
            let held_for = context.held_for().map(|it| Duration::from_millis(it.0));
            let release = held_for.and_then(|it| timer_now().checked_add(it));
            let release = release.filter(|end| *end <= deadline.at);
            deadline.at = release.unwrap_or(deadline.at);
            let data = match self.chunk(context, deadline).await {
                Err(Interrupt::Commit) => return self.commit(context, CommitCause::Patience),
                Err(Interrupt::Waited(limit)) if release.is_some() && !limit.is_patience() => {
                    return self.commit(context, CommitCause::HeldTime);
                }
                Err(interrupt) => {
                    return AttemptResult::Failed(self.interrupted(context, interrupt));
                }
                Ok(None) => return self.ended(context),
                Ok(Some(data)) => data,
            };
            let Some(reader) = &mut self.events else { continue };
            reader.feed(data);
            let seen = see(reader, context, &mut self.last_content_at);
            self.held.extend(reader.take().into_iter().filter(|it| !it.is_empty()));
            let detail = match seen {
                Seen::Enough(cause) => return self.commit(context, cause),
                Seen::End(Step::Complete) => return self.complete(context),
                Seen::End(Step::Failed(event)) => {
                    let converter = self.converter.as_deref();
                    let failure = error_event(target, options, self.head, &event, converter);
                    return AttemptResult::Failed(failure);
                }
                Seen::End(Step::TooLong) => "an event is too long",
                Seen::End(_) => "malformed stream",
                Seen::Nothing => match context.commit_due() {
                    None => continue,
                    Some(cause) => return self.commit(context, cause),
                },
            };
            return AttemptResult::Failed(self.failed(OutcomeKind::Transport, detail));
        }
    }

    /// The body ended before anything of it was released.
    fn ended(mut self, context: &mut RequestContext) -> AttemptResult {
        let Some(reader) = &mut self.events else { return self.complete(context) };
        if reader.finish() {
            let closing = reader.closing();
            let rest = reader.take().into_iter().chain([closing]);
            self.held.extend(rest.filter(|it| !it.is_empty()));
            return self.complete(context);
        }
        let failure = if reader.has_content() {
            self.failed(OutcomeKind::Transport, "the stream ended early")
        } else {
            self.failed(OutcomeKind::ServerError, "a stream without content or end")
        };
        AttemptResult::Failed(failure)
    }

    /// From here on there is no way back.
    fn commit(mut self, context: &mut RequestContext, cause: CommitCause) -> AttemptResult {
        if cause == CommitCause::HoldFull
            && let Some(id) = context.resolved()
        {
            context.worker.gateway.metrics.hold_overflow(&id);
        }
        context.commit(cause);
        if let Some(reader) = &mut self.events {
            reader.commit();
        }
        AttemptResult::Passing(Box::new(self))
    }

    /// The stream is over, in good order, before anything of it was released.
    fn complete(self, context: &mut RequestContext) -> AttemptResult {
        context.commit(CommitCause::Complete);
        self.whole(context)
    }
}

/// Looks at the events of a chunk, up to the one that decides; what follows it stays in the reader.
fn see(
    reader: &mut EventReader,
    context: &mut RequestContext,
    last_content_at: &mut Option<Instant>,
) -> Seen {
    while let Some(step) = reader.next_event() {
        match step {
            Step::Quiet => {}
            Step::Content => {
                *last_content_at = Some(timer_now());
                context.content_event();
                if let Some(cause) = context.commit_due() {
                    return Seen::Enough(cause);
                }
            }
            end => return Seen::End(end),
        }
    }
    Seen::Nothing
}
