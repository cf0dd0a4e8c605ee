//! What a writer of requests must know of the target.

/// The target of a converted request.
#[derive(Clone, Copy, Debug)]
pub struct TargetProfile<'a> {
    /// The model's name at the provider.
    pub model: &'a str,
    /// The host of the provider's address, by which servers with oddities are known.
    pub host: &'a str,
}
