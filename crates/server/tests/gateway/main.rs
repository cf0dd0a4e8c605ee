//! The gateway over real sockets: a client that trusts nothing on one side, scripted providers on
//! the other, the whole process's data plane in between.
//!
//! `bed.rs` starts gateways, `client.rs` is the client, `upstream.rs` a provider that sends
//! exactly the bytes it is given, `secure.rs` one behind TLS. Every other file is one subject; a
//! test's name is the claim it proves.

mod abilities;
mod admission;
mod bad_dialects;
mod bad_input;
mod bed;
mod bytes;
mod collector;
mod compressed;
mod connections;
mod convert;
mod convert_pairs;
mod dialect_truth;
mod events;
mod failover;
mod final_errors;
mod forms;
mod gemini;
mod h2;
mod held_state;
mod hold;
mod journal;
mod keys;
mod life;
mod names;
mod nothing;
mod oddities;
mod operations;
mod other_kinds;
mod outage;
mod patience;
mod protobuf;
mod rate_limits;
mod resend;
mod secrets;
mod secure;
mod serves;
mod sessions;
mod streams;
mod telemetry;
mod threads;
mod tls;
mod tls_listener;
mod upstream;
mod waiting;
