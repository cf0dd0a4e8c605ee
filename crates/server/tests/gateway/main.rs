//! The gateway over real sockets: a client that trusts nothing on one side, scripted providers on
//! the other, the whole process's data plane in between.
//!
//! `bed.rs` starts gateways, `client.rs` is the client, `upstream.rs` a provider that sends
//! exactly the bytes it is given, `secure.rs` one behind TLS. Every other file is one subject; a
//! test's name is the claim it proves.

mod admission;
mod bad_input;
mod bed;
mod bytes;
mod compressed;
mod connections;
mod convert;
mod convert_pairs;
mod failover;
mod final_errors;
mod forms;
mod gemini;
mod h2;
mod hold;
mod keys;
mod life;
mod names;
mod nothing;
mod operations;
mod outage;
mod patience;
mod rate_limits;
mod resend;
mod secrets;
mod secure;
mod serves;
mod sessions;
mod streams;
mod tls;
mod tls_listener;
mod upstream;
mod waiting;
