//! Why an upstream's answer broke.

/// What went wrong with a connection while it carried a request or its answer.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    /// What came is not HTTP/1.1 as this client accepts it; the text names the rule that it breaks.
    #[error("malformed answer: {0}")]
    Malformed(&'static str),
    /// The connection ended before the answer did.
    #[error("the connection ended early")]
    Ended,
    /// The connection failed.
    #[error("the connection failed")]
    Io(#[source] std::io::Error),
    /// An HTTP/2 connection or stream failed.
    #[error("the http/2 stream failed")]
    H2(#[source] hyper::Error),
}

impl UpstreamError {
    /// Whether the other side spoke, but not HTTP.
    #[must_use]
    pub fn is_parse(&self) -> bool {
        match self {
            Self::Malformed(_) => true,
            Self::Ended | Self::Io(_) => false,
            Self::H2(error) => error.is_parse(),
        }
    }
}
