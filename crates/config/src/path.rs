//! Key paths: the address of a value in a file, as in `routes.fast.tiers[1][0]`.
//!
//! Every diagnostic names one, so that a person, a script reading `--json` and the span lookup of
//! [`Document`](crate::document::Document) speak of the same place.
//!
//! Rules kept here:
//! - A key that would be ambiguous when printed (it holds a dot, a bracket, a quote or a space, or
//!   is empty) is printed in double quotes: `targets."qwen2.5:7b"`.
//! - A path is only an address: nothing says that the file holds something there.

use std::fmt;

/// The address of a value in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyPath(Vec<Step>);

/// One step of a [`KeyPath`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// Into a map, by key.
    Key(String),
    /// Into a list, by position from 0.
    Index(usize),
}

impl KeyPath {
    /// The whole file.
    #[must_use]
    pub const fn root() -> Self {
        Self(Vec::new())
    }

    /// The path one key deeper: `KeyPath::root().key("routes").key("fast")`.
    #[must_use]
    pub fn key(&self, key: impl Into<String>) -> Self {
        self.with(Step::Key(key.into()))
    }

    /// The path one list position deeper.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        self.with(Step::Index(index))
    }

    /// The steps from the root.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.0
    }

    /// Whether this is the whole file.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The path one step up; the root's is the root.
    #[must_use]
    pub fn parent(&self) -> Self {
        Self(self.0[..self.0.len().saturating_sub(1)].to_vec())
    }

    pub(crate) fn push(&mut self, step: Step) {
        self.0.push(step);
    }

    pub(crate) fn pop(&mut self) {
        self.0.pop();
    }

    fn with(&self, step: Step) -> Self {
        let mut longer = self.clone();
        longer.0.push(step);
        longer
    }
}

impl From<&str> for KeyPath {
    /// A path of one key.
    fn from(key: &str) -> Self {
        Self::root().key(key)
    }
}

impl fmt::Display for KeyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, step) in self.0.iter().enumerate() {
            match step {
                Step::Index(index) => write!(f, "[{index}]")?,
                Step::Key(key) => {
                    if position > 0 {
                        f.write_str(".")?;
                    }
                    if is_ambiguous(key) { write!(f, "{key:?}")? } else { f.write_str(key)? }
                }
            }
        }
        Ok(())
    }
}

fn is_ambiguous(key: &str) -> bool {
    let special =
        |c: char| matches!(c, '.' | '[' | ']' | '"') || c.is_whitespace() || c.is_control();
    key.is_empty() || key.contains(special)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_prints_as_it_would_be_said() {
        let path = KeyPath::root().key("routes").key("fast").key("tiers").index(1).index(0);
        assert_eq!(path.to_string(), "routes.fast.tiers[1][0]");
        assert_eq!(path.parent().to_string(), "routes.fast.tiers[1]");
        assert_eq!(KeyPath::root().to_string(), "");
        assert_eq!(KeyPath::root().parent(), KeyPath::root());
    }

    #[test]
    fn an_ambiguous_key_is_quoted() {
        let targets = KeyPath::from("targets");
        assert_eq!(targets.key("qwen2.5:7b").to_string(), r#"targets."qwen2.5:7b""#);
        assert_eq!(targets.key("").to_string(), r#"targets."""#);
        assert_eq!(targets.key("mana/long-form").to_string(), "targets.mana/long-form");
    }
}
