//! Keys of `_meta` that belong to the protocol, and the revision that has them.

/// The revision without sessions.
pub const STATELESS_VERSION: &str = "2026-07-28";
/// The key for the version of a request.
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// The key for who asks.
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// The key for what that client can be asked.
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The key for the level from which on log lines are wanted.
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
