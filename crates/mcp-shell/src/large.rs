//! Large arguments of a call, kept out of the MCP thread's way until the call is sent.
//!
//! Rules kept here:
//! - A large body is read on a thread of its own kind: neither the MCP thread nor a worker, which
//!   both serve other clients. At most [`AT_ONCE`] at a time, because processors are everybody's.
//! - One copy is made, when the call is sent.
//!
//! Left to others: what is set aside, and how it comes back ([`tidegate_mcp::message::set_aside`]).

use std::sync::Arc;

use bytes::Bytes;
use tidegate_mcp::{
    hub::{LargeArguments, McpAnswer},
    message::{SetAside, set_aside},
};
use tidegate_net::secret::random_hex;
use tokio::sync::Semaphore;

/// Large bodies that are read at a time.
const AT_ONCE: usize = 2;

/// Reads large bodies.
#[derive(Clone, Debug)]
pub(crate) struct LargeReader(Arc<Semaphore>);

impl Default for LargeReader {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(AT_ONCE)))
    }
}

impl LargeReader {
    /// A large body as the MCP thread is to see it, and what was set aside of it.
    pub(crate) async fn read(
        &self,
        body: Bytes,
    ) -> Result<(Bytes, Option<LargeArguments>), McpAnswer> {
        let broken = || McpAnswer::refusal(500, "the request could not be read");
        let _turn = self.0.acquire().await.map_err(|_| broken())?;
        let read = tokio::task::spawn_blocking(move || {
            let token = format!("tidegate.aside.{}", random_hex::<16>()?);
            Some(match set_aside(&body, &token) {
                Ok(Some(SetAside { message, arguments })) => {
                    let arguments = body.slice_ref(arguments.as_bytes());
                    Ok((Bytes::from(message), Some(LargeArguments { token, arguments })))
                }
                Ok(None) => Ok((body, None)),
                Err(fault) => Err(McpAnswer::json(400, fault.to_answer())),
            })
        });
        read.await.ok().flatten().unwrap_or_else(|| Err(broken()))
    }
}
