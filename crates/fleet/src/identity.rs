//! Who a replica is: a random number of this run, which owns things, and a name for people.

use tidegate_core::names::ReplicaId;

/// One run of one replica, as the owner of things: 128 random bits, drawn at each start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstanceId(pub u128);

impl InstanceId {
    /// A fresh one; `None` if the system gives no random numbers.
    #[must_use]
    pub fn draw() -> Option<Self> {
        let mut bytes = [0; 16];
        aws_lc_rs::rand::fill(&mut bytes).ok()?;
        Some(Self(u128::from_be_bytes(bytes)))
    }

    /// From the 32 hexadecimal digits that [`Display`](std::fmt::Display) writes.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let is_hex = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_hex.then(|| u128::from_str_radix(text, 16).ok().map(Self)).flatten()
    }

    /// What the core calls the same replica.
    #[must_use]
    pub const fn replica(self) -> ReplicaId {
        ReplicaId(self.0)
    }
}

impl From<ReplicaId> for InstanceId {
    fn from(ReplicaId(number): ReplicaId) -> Self {
        Self(number)
    }
}

impl std::fmt::Display for InstanceId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// A replica as others know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Which run of it: what ownership goes by.
    pub instance: InstanceId,
    /// Its name, for people; two replicas may have the same one.
    pub replica: String,
    /// How other replicas reach it, if they can.
    pub peer_url: Option<String>,
}

/// The longest name of a host that is shown.
const NAME_MAX: usize = 64;

/// The name of this host, for a replica that has none of its own.
#[must_use]
pub fn host_name() -> String {
    let name = rustix::system::uname();
    let text: String = name.nodename().to_string_lossy().chars().take(NAME_MAX).collect();
    if text.is_empty() { "unnamed".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_is_written_and_read_back_and_no_two_are_the_same() {
        let (one, other) =
            (InstanceId::draw().expect("random"), InstanceId::draw().expect("random"));
        assert_ne!(one, other);
        assert_eq!(InstanceId::parse(&one.to_string()), Some(one));
        assert_eq!(InstanceId::parse(&InstanceId(1).to_string()), Some(InstanceId(1)));
        for wrong in ["", "1", &"g".repeat(32), &"+".repeat(32), &"0".repeat(33)] {
            assert_eq!(InstanceId::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_host_has_a_name() {
        assert!(!host_name().is_empty());
    }
}
