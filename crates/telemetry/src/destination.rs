//! Where a collector is, as `telemetry.otlp` says.
//!
//! Port 4318 or a path means OTLP over HTTP, with `/v1/traces` and `/v1/metrics` below the path;
//! anything else is gRPC, whose port is 4317.
//!
//! A collector stands beside the gateway as a rule, so its name may resolve to a private address.

use std::path::Path;

use http::Uri;
use tidegate_config::secret::ProcessEnvironment;
use tidegate_net::upstream::{Origin, tls};

/// The usual port of OTLP over gRPC.
const GRPC_PORT: u16 = 4317;
/// The usual port of OTLP over HTTP.
const HTTP_PORT: u16 = 4318;

/// What is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Spans.
    Traces,
    /// Counters, gauges and histograms.
    Metrics,
}

/// Where a collector is, and what it speaks.
#[derive(Clone, Debug)]
pub struct Destination {
    pub(crate) origin: Origin,
    /// Host and port, as requests name them.
    pub(crate) authority: String,
    pub(crate) scheme: &'static str,
    /// The path that OTLP over HTTP is below; none for gRPC.
    base: Option<String>,
}

/// Why a url is of no use.
#[derive(Debug, thiserror::Error)]
pub enum DestinationError {
    /// It cannot be read.
    #[error("`telemetry.otlp` is not a url with a host: write it as `http://127.0.0.1:4317`")]
    NotAUrl,
    /// TLS cannot be set up.
    #[error("TLS to the collector cannot be set up: {0}")]
    Tls(String),
}

impl Destination {
    /// Reads a url.
    ///
    /// # Errors
    /// It is no url, or TLS cannot be set up.
    pub fn parse(url: &str) -> Result<Self, DestinationError> {
        let uri: Uri = url.parse().map_err(|_| DestinationError::NotAUrl)?;
        // A bare `4317` or `collector:4317` reads as an authority: without a scheme it is no url.
        if uri.scheme().is_none() {
            return Err(DestinationError::NotAUrl);
        }
        let host = uri.host().ok_or(DestinationError::NotAUrl)?;
        let path = uri.path().trim_end_matches('/');
        let path = ["/v1/traces", "/v1/metrics"]
            .iter()
            .find_map(|signal| path.strip_suffix(signal).map(|base| (base, true)))
            .unwrap_or((path, !path.is_empty()));
        let is_http = path.1 || uri.port_u16() == Some(HTTP_PORT);
        let is_secure = uri.scheme_str() == Some("https");
        let usual_port = match (is_secure, is_http) {
            (true, _) => 443,
            (false, true) => HTTP_PORT,
            (false, false) => GRPC_PORT,
        };
        let port = uri.port_u16().unwrap_or(usual_port);
        let secured = || tls(None, Path::new(""), &ProcessEnvironment);
        let tls = is_secure.then(secured).transpose().map_err(DestinationError::Tls)?;
        Ok(Self {
            origin: Origin { host: host.to_owned(), port, allow_private: true, tls },
            authority: format!("{host}:{port}"),
            scheme: if is_secure { "https" } else { "http" },
            base: is_http.then(|| path.0.to_owned()),
        })
    }

    /// Whether it speaks gRPC.
    #[must_use]
    pub fn is_grpc(&self) -> bool {
        self.base.is_none()
    }

    /// The path that a signal is posted to.
    #[must_use]
    pub fn path(&self, signal: Signal) -> String {
        let (service, name) = match signal {
            Signal::Traces => ("trace.v1.TraceService", "traces"),
            Signal::Metrics => ("metrics.v1.MetricsService", "metrics"),
        };
        match &self.base {
            None => format!("/opentelemetry.proto.collector.{service}/Export"),
            Some(base) => format!("{base}/v1/{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(url: &str, is_grpc: bool, authority: &str, path: &str) {
        let read = Destination::parse(url).expect("a url");
        assert_eq!(read.is_grpc(), is_grpc, "{url}");
        assert_eq!(read.authority, authority, "{url}");
        assert_eq!(read.path(Signal::Traces), path, "{url}");
    }

    #[test]
    fn the_port_or_a_path_says_what_a_collector_speaks() {
        let grpc = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
        check("http://127.0.0.1:4317", true, "127.0.0.1:4317", grpc);
        check("http://127.0.0.1:4317/", true, "127.0.0.1:4317", grpc);
        check("http://collector", true, "collector:4317", grpc);
        check("https://[::1]", true, "[::1]:443", grpc);
        check("http://127.0.0.1:4318", false, "127.0.0.1:4318", "/v1/traces");
        check("http://c:9/v1/traces", false, "c:9", "/v1/traces");
        check("http://c:9/v1/metrics/", false, "c:9", "/v1/traces");
        check("https://c/otlp", false, "c:443", "/otlp/v1/traces");
        let http = Destination::parse("http://c/otlp/").expect("a url");
        assert_eq!(http.path(Signal::Metrics), "/otlp/v1/metrics");
        assert!(Destination::parse("4317").is_err());
    }
}
