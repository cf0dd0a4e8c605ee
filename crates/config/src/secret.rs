//! Secrets: references in files, values only in memory.
//!
//! A file names a secret ([`SecretRef`]): `env:NAME` or `file:path`. A literal is accepted, with a
//! warning by `check`. Resolving gives a [`Secret`], which can be used but not printed.
//!
//! Rules kept here:
//! - A `Secret` has no `Serialize`, and `Debug` and `Display` print `<redacted>`. A literal
//!   reference prints so too: what a file holds by mistake must not reach a log either.
//! - [`SecretRef::name`] is what makes a key "the same" after a reload. A literal's name is a
//!   fingerprint of it, so that a changed literal is a changed key.
//! - The outside world is an [`Environment`], so that tests need no process environment.
//! - A secret file is small (64 KiB) and one trailing line break is not part of the secret.

use std::{
    borrow::Cow,
    fmt, fs,
    hash::{Hash, Hasher},
    io::Read,
    path::{Path, PathBuf},
};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::diagnostic::quoted;

/// The schema format that makes the decoder parse a scalar as a secret reference.
pub(crate) const FORMAT: &str = "tidegate-secret";

/// The largest secret file: certificates fit, a log file taken by mistake does not.
const MAX_FILE_BYTES: u64 = 64 * 1024;

const REDACTED: &str = "<redacted>";

/// Where a secret is to be found.
#[derive(Clone, PartialEq, Eq)]
pub enum SecretRef {
    /// In an environment variable.
    Env(String),
    /// In a file; a relative path starts at the config file's folder.
    File(PathBuf),
    /// In the config file itself.
    Literal(Secret),
}

impl SecretRef {
    /// Understands the text of a reference.
    ///
    /// # Errors
    /// A lowercase fragment that says what is wrong; it never repeats a literal.
    pub fn parse(text: &str) -> Result<Self, String> {
        if let Some(name) = text.strip_prefix("env:") {
            let is_name = !name.is_empty() && !name.contains(['=', '\0', ' ', '$']);
            return is_name.then(|| Self::Env(name.to_owned())).ok_or_else(|| {
                format!("{} names no environment variable: write `env:NAME`", quoted(text))
            });
        }
        if let Some(path) = text.strip_prefix("file:") {
            let path = Some(path).filter(|path| !path.is_empty());
            return path
                .map(|path| Self::File(PathBuf::from(path)))
                .ok_or_else(|| "`file:` names no file: write `file:path`".to_owned());
        }
        if text.is_empty() {
            return Err("a secret cannot be empty: write `env:NAME` or `file:path`".to_owned());
        }
        Ok(Self::Literal(Secret(text.to_owned())))
    }

    /// A name that can be shown and compared: the reference, or a literal's fingerprint.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Env(name) => format!("env:{name}"),
            Self::File(path) => format!("file:{}", path.display()),
            Self::Literal(secret) => format!("literal:{:08x}", secret.fingerprint()),
        }
    }

    /// Whether the secret stands in the file itself.
    #[must_use]
    pub const fn is_literal(&self) -> bool {
        matches!(self, Self::Literal(_))
    }

    /// Fetches the secret.
    ///
    /// # Errors
    /// A lowercase fragment that says why there is none; it never repeats a secret.
    pub fn resolve(&self, environment: &dyn Environment, folder: &Path) -> Result<Secret, String> {
        let text = match self {
            Self::Literal(secret) => return Ok(secret.clone()),
            Self::Env(name) => environment
                .variable(name)
                .ok_or_else(|| format!("the environment variable {} is not set", quoted(name)))?,
            Self::File(path) => environment.file(&folder.join(path))?,
        };
        let trimmed = text.strip_suffix('\n').unwrap_or(&text);
        let trimmed = trimmed.strip_suffix('\r').unwrap_or(trimmed);
        if trimmed.is_empty() {
            return Err(format!("{} is empty", quoted(&self.name())));
        }
        Ok(Secret(trimmed.to_owned()))
    }
}

impl fmt::Display for SecretRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_literal() { f.write_str(REDACTED) } else { f.write_str(&self.name()) }
    }
}

impl fmt::Debug for SecretRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for SecretRef {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for SecretRef {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(de::Error::custom)
    }
}

impl JsonSchema for SecretRef {
    fn schema_name() -> Cow<'static, str> {
        "SecretRef".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A secret: `env:NAME` or `file:path`; a literal works, with a warning.",
            "type": "string",
            "format": FORMAT,
            "minLength": 1,
            "examples": ["env:GROQ_API_KEY", "file:key.txt"],
        })
    }
}

/// A secret's value. It can be used, but not printed or serialized.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The value itself. Every use of this is a place to look at in a review.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// 32 bits that change when the value does and do not give it away.
    fn fingerprint(&self) -> u32 {
        // SipHash with fixed keys: the same value gives the same name in every process.
        #[expect(deprecated, reason = "the successor has random keys, and this needs fixed ones")]
        let mut hasher = std::hash::SipHasher::new_with_keys(0x7469_6465, 0x6761_7465);
        self.0.hash(&mut hasher);
        // The low half of the hash is as good as the whole.
        hasher.finish() as u32
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

/// Where references are looked up.
pub trait Environment {
    /// The value of an environment variable.
    fn variable(&self, name: &str) -> Option<String>;

    /// The text of a file.
    ///
    /// # Errors
    /// A lowercase fragment that says why it cannot be read.
    fn file(&self, path: &Path) -> Result<String, String>;

    /// Whether every user of the machine can read a file. An environment without users says no.
    fn is_readable_by_others(&self, _: &Path) -> bool {
        false
    }

    /// Whether its values are made up, so that nothing can be said about their form.
    fn is_assumed(&self) -> bool {
        false
    }
}

/// The process environment and the file system.
#[derive(Clone, Copy, Debug)]
pub struct ProcessEnvironment;

impl Environment for ProcessEnvironment {
    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn file(&self, path: &Path) -> Result<String, String> {
        let shown = quoted(&path.display().to_string());
        let refused = |error: std::io::Error| format!("{shown} cannot be read: {error}");
        if !fs::metadata(path).map_err(refused)?.is_file() {
            return Err(format!("{shown} is not a file"));
        }
        let mut text = String::new();
        let file = fs::File::open(path).map_err(refused)?;
        file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text).map_err(refused)?;
        if text.len() as u64 > MAX_FILE_BYTES {
            return Err(format!("{shown} is larger than 64 KiB"));
        }
        Ok(text)
    }

    #[cfg(unix)]
    fn is_readable_by_others(&self, path: &Path) -> bool {
        use std::os::unix::fs::PermissionsExt;
        const READ_BY_OTHERS: u32 = 0o004;
        fs::metadata(path).is_ok_and(|found| found.permissions().mode() & READ_BY_OTHERS != 0)
    }
}

/// An environment of a few fixed variables and files, for tests and for runs that must not look
/// at the machine.
#[derive(Clone, Debug, Default)]
pub struct FixedEnvironment {
    /// Variables by name.
    pub variables: Vec<(String, String)>,
    /// Files by path.
    pub files: Vec<(PathBuf, String)>,
}

impl Environment for FixedEnvironment {
    fn variable(&self, name: &str) -> Option<String> {
        self.variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
    }

    fn file(&self, path: &Path) -> Result<String, String> {
        let found = self.files.iter().find(|(known, _)| known == path);
        let missing = || format!("{} does not exist", quoted(&path.display().to_string()));
        found.map(|(_, text)| text.clone()).ok_or_else(missing)
    }
}

/// An environment that has everything, for runs that send nothing: a simulated gateway needs no
/// real keys.
#[derive(Clone, Copy, Debug)]
pub struct AssumedEnvironment;

impl Environment for AssumedEnvironment {
    fn variable(&self, name: &str) -> Option<String> {
        Some(format!("assumed value of {name}"))
    }

    fn file(&self, path: &Path) -> Result<String, String> {
        Ok(format!("assumed content of {}", path.display()))
    }

    fn is_assumed(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn world() -> FixedEnvironment {
        FixedEnvironment {
            variables: vec![("A".into(), "sk-a".into()), ("EMPTY".into(), String::new())],
            files: vec![(PathBuf::from("conf/key.txt"), "sk-file\r\n".into())],
        }
    }

    fn resolve(text: &str) -> Result<String, String> {
        let reference = SecretRef::parse(text)?;
        reference.resolve(&world(), Path::new("conf")).map(|secret| secret.expose().to_owned())
    }

    #[test]
    fn references_are_resolved_and_files_are_relative_to_the_config() {
        assert_eq!(resolve("env:A").as_deref(), Ok("sk-a"));
        assert_eq!(resolve("file:key.txt").as_deref(), Ok("sk-file"));
        assert_eq!(resolve("sk-literal").as_deref(), Ok("sk-literal"));
        assert!(resolve("env:B").is_err_and(|said| said.contains("`B` is not set")));
        assert!(resolve("env:EMPTY").is_err_and(|said| said.contains("is empty")));
        assert!(resolve("file:none").is_err_and(|said| said.contains("does not exist")));
        assert!(resolve("env:").is_err() && resolve("file:").is_err() && resolve("").is_err());
    }

    #[test]
    fn nothing_prints_a_secret() {
        let literal = SecretRef::parse("sk-literal").expect("a literal");
        let secret = literal.resolve(&world(), Path::new("")).expect("a literal resolves");
        let json = serde_json::to_string(&literal).expect("a string");
        for text in [format!("{literal:?} {literal} {secret:?} {secret}"), literal.name(), json] {
            assert!(!text.contains("sk-"), "{text}");
        }
    }

    #[test]
    fn a_changed_literal_is_a_changed_name() {
        let name = |text| SecretRef::parse(text).expect("a literal").name();
        assert_ne!(name("sk-one"), name("sk-two"));
        assert_eq!(name("sk-one"), name("sk-one"));
    }
}
