//! One look at one server, as the gateway's own connection would have it, and gone again.
//!
//! For `check --connect`: the same Hub and transports that serve clients, with this server only, so
//! that what is found here is what a gateway would find.
//!
//! Rules kept here:
//! - A visit ends within its limits, and leaves nothing: no session, no child. Wait for
//!   [`all_left`] before the thread ends.
//! - What a server offers is looked at as for a client without capabilities.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tidegate_core::time::Millis;
use tidegate_mcp::{
    cause::Cause,
    hub::{Event, FirstLook},
    listing::Listing,
};

use super::{driver::Driver, handle::NewsOfClients, runtime::McpRuntime, settings::Scope};

/// How long a visit may take beyond what the config allows for connecting and for one answer: some
/// pages of lists.
const SLACK: Millis = Millis::seconds(20);
/// How long its connection may take to end, and the last program to be gone; its warden kills it
/// before that.
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

/// Connects to the server of this name, looks at everything it offers, and ends the connection.
pub async fn visit(runtime: &Rc<McpRuntime>, name: &str) -> Result<Arc<Listing>, NoVisit> {
    let scope = Scope::Server(name.to_owned());
    let mut driver = Driver::new(Rc::clone(runtime), NewsOfClients::default(), scope);
    if let Some(reason) = driver.servers.unusable(name) {
        return Err(NoVisit::Unusable(reason.to_owned()));
    }
    let mcp = &runtime.live().file.mcp;
    let most = [mcp.connect_timeout.millis(), mcp.call_timeout.millis(), SLACK];
    let most = Millis(most.iter().map(|it| it.0).fold(0, u64::saturating_add));
    let looking = async {
        loop {
            match driver.hub().first_look(name) {
                Some(look) => break look,
                None => driver.step().await,
            }
        }
    };
    let looked = tokio::time::timeout(Duration::from_millis(most.0), looking).await;
    driver.tell(Event::Close);
    let closing = async {
        while !driver.is_closed() {
            driver.step().await;
        }
    };
    // What is left then ends with the driver.
    drop(tokio::time::timeout(GONE_WITHIN, closing).await);
    match looked {
        Ok(FirstLook { reached: Err(cause), .. }) => Err(NoVisit::Unreached(cause)),
        Ok(FirstLook { listing: Some(listing), .. }) => Ok(listing),
        Ok(FirstLook { listing: None, .. }) => Err(NoVisit::NoLists),
        Err(_) => Err(NoVisit::Unreached(Cause::TimedOut(most))),
    }
}

/// Waits until no program that a visit started is left.
pub async fn all_left(runtime: &McpRuntime) {
    let left = async {
        while runtime.children.running() > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    // What is still there then dies with this process: its warden sees to it.
    drop(tokio::time::timeout(GONE_WITHIN, left).await);
}
