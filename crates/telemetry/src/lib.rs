//! Traces and metrics to an OpenTelemetry collector (`telemetry:`), over OTLP.
//!
//! - [`exporter`]: the thread that takes decisions out of the journal's queue and sends them.
//! - [`destination`]: what the config's url means; `send`: one message to a collector, over gRPC
//!   or HTTP.
//! - [`spans`]: a decision as spans; [`figures`]: the metrics of `/metrics` as OTLP has them;
//!   [`attribute`] and [`sender`] are parts of both, and `protobuf` is how they are written.
//!
//! Rules of the crate:
//! - The journal is the only source. Nothing of the data plane knows of this crate, and what the
//!   journal does not hold (bodies, headers, keys, addresses) cannot be exported (I13).
//! - A collector that is slow, wrong or gone costs records, which are counted, and nothing else.
//!
//! Why the messages are written here and not by OpenTelemetry's SDK: the SDK makes spans while code
//! runs, with clocks and ids of its own, and keeps metrics of its own. Here both exist already.

pub mod attribute;
pub mod destination;
pub mod exporter;
pub mod figures;
mod protobuf;
mod send;
pub mod sender;
pub mod spans;
