//! One look at one server, as the gateway's own connection would have it, and gone again.
//!
//! For `check --connect`: the same server, link and shelf that serve clients, so that what is found
//! here is what a gateway would find.
//!
//! Rules kept here:
//! - A visit ends within its limits, and leaves nothing: no session, no child. Wait for
//!   [`all_left`] before the thread ends.
//! - What a server offers is looked at as for a client without capabilities.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tidegate_config::file::{McpFile, ServerFile};
use tidegate_core::time::Millis;
use tidegate_mcp::{cause::Cause, listing::Listing};

use super::{
    ground::Ground,
    hello::Hello,
    link::{Link, Owner},
    server::Server,
};

/// How long a program may take to start and answer: longer than most, shorter than a person who
/// waits for a table.
const CHILD_WITHIN: Millis = Millis::seconds(20);
/// How long all lists may take.
const LISTS_WITHIN: Millis = Millis::seconds(20);
/// How long the last program may take to be gone; its warden kills it before that.
const GONE_WITHIN: Duration = Duration::from_secs(10);

/// Why a visit brought nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoVisit {
    /// The server cannot be used as configured.
    Unusable(String),
    /// It cannot be reached.
    Unreached(Cause),
    /// It answered, but its lists did not come.
    NoLists,
}

/// Connects, looks at everything it offers, and says goodbye.
pub async fn visit(
    ground: &Rc<Ground>,
    name: &str,
    file: &ServerFile,
    mcp: &McpFile,
) -> Result<Arc<Listing>, NoVisit> {
    let server = Server::new(ground, name, file, mcp);
    if let Some(reason) = server.unusable() {
        return Err(NoVisit::Unusable(reason.to_owned()));
    }
    let link = Link::new(ground, &server, Hello::own(), Owner::Gateway);
    let within = server.initialize_within();
    let within = if server.is_child() { within.min(CHILD_WITHIN) } else { within };
    let listing = match link.bring_up(within).await {
        Ok(()) => {
            let within = Duration::from_millis(LISTS_WITHIN.min(server.call_timeout).0);
            // A server that says nothing more has no listing on its shelf.
            drop(tokio::time::timeout(within, server.lists_known(&link, &link.hello)).await);
            server.shelf.listing(link.hello.profile_in(link.era())).ok_or(NoVisit::NoLists)
        }
        Err(unavailable) => Err(NoVisit::Unreached(unavailable.cause)),
    };
    link.close().await;
    listing
}

/// Waits until no program that a visit started is left.
pub async fn all_left(ground: &Ground) {
    let left = async {
        while ground.children.running() > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    // What is still there then dies with this process: its warden sees to it.
    drop(tokio::time::timeout(GONE_WITHIN, left).await);
}
