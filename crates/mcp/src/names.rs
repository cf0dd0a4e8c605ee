//! Under which name each server's tools and prompts are offered.
//!
//! Rules kept here:
//! - A name is a function of the config and of the tool's own name. It never depends on health, on
//!   what else is known, or on the order in which servers answered.
//! - One server configured: names stay as they are.
//! - `prefix`: `server_tool`, at most [`NAME_MAX`] characters of `A-Z a-z 0-9 _ . -`. Where that
//!   plain name will not do, characters are replaced, the end is cut, and `_` with eight digits of
//!   a hash of server and tool is put at the end. It will not do if it is too long, holds other
//!   characters, looks like a name with such digits, or begins with the name of a longer-named
//!   server and `_`: `a_b_c` is the `c` of `a_b`, so the `b_c` of `a` is `a_b_c_` and digits. So
//!   no server can take another's name by naming a tool.
//! - `priority` and `manual`: own names. Who gets one that several have is [`crate::catalogue`]'s
//!   to say.
//! - `rename` comes before the prefix, and the filters before `rename`: they see a tool's own name.
//!   Both are about tools; prompts have neither.

use std::collections::BTreeMap;

use tidegate_text::glob::Glob;

use crate::listing::fingerprint;

/// Characters of an offered name: the limit of LLM APIs, which is stricter than the protocol's.
pub const NAME_MAX: usize = 64;
/// `_` and eight digits.
const SUFFIX_LEN: usize = 9;

/// How names are made when several servers are configured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Naming {
    /// `server_tool`.
    #[default]
    Prefix,
    /// Own names; the server that comes first in the config wins.
    Priority,
    /// Own names; a name that two servers have is offered by neither.
    Manual,
}

/// How names are made, and what each server's config says about its own.
#[derive(Clone, Debug, Default)]
pub struct NamingSettings {
    /// How they are made.
    pub naming: Naming,
    /// All configured servers in config order; their places are the servers' numbers.
    pub servers: Vec<ServerNames>,
}

/// One server's part of the config.
#[derive(Clone, Debug, Default)]
pub struct ServerNames {
    /// The server's name.
    pub name: String,
    /// Tools that are offered; none: all.
    pub include: Option<Vec<Glob>>,
    /// Tools that are not offered, after `include`.
    pub exclude: Vec<Glob>,
    /// Other names for tools, by their own name.
    pub rename: BTreeMap<String, String>,
}

impl ServerNames {
    /// A server without filters and renames.
    #[must_use]
    pub fn plain(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    /// Whether a tool is offered at all.
    #[must_use]
    pub fn offers(&self, own: &str) -> bool {
        let fits = |globs: &[Glob]| globs.iter().any(|glob| glob.matches(own));
        self.include.as_deref().is_none_or(fits) && !fits(&self.exclude)
    }

    /// A tool's name after `rename`.
    #[must_use]
    pub fn renamed<'a>(&'a self, own: &'a str) -> &'a str {
        self.rename.get(own).map_or(own, String::as_str)
    }
}

impl NamingSettings {
    /// The name under which a tool is offered; none if the filters leave it out.
    ///
    /// # Panics
    /// There is no such server.
    #[must_use]
    pub fn tool(&self, server: usize, own: &str) -> Option<String> {
        let names = &self.servers[server];
        names.offers(own).then(|| self.offered(server, names.renamed(own)))
    }

    /// The name under which a prompt is offered.
    ///
    /// # Panics
    /// There is no such server.
    #[must_use]
    pub fn prompt(&self, server: usize, own: &str) -> String {
        self.offered(server, own)
    }

    /// The server whose names begin like this one; with a single server, that one. Nothing is known
    /// of names without prefixes.
    #[must_use]
    pub fn owner_of(&self, name: &str) -> Option<usize> {
        if self.servers.len() == 1 {
            return Some(0);
        }
        let has_prefix = |prefix: &str| {
            name.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('_') && rest.len() > 1)
        };
        let owners = self.servers.iter().enumerate().filter(|(_, it)| has_prefix(&it.name));
        let longest = owners.max_by_key(|(_, it)| it.name.len());
        longest.filter(|_| self.naming == Naming::Prefix).map(|(server, _)| server)
    }

    fn offered(&self, server: usize, own: &str) -> String {
        match self.naming {
            Naming::Prefix if self.servers.len() > 1 => self.prefixed(server, own),
            Naming::Prefix | Naming::Priority | Naming::Manual => own.to_owned(),
        }
    }

    fn prefixed(&self, server: usize, own: &str) -> String {
        let prefix = &self.servers[server].name;
        let plain = format!("{prefix}_{own}");
        let is_anothers = self.servers.iter().any(|other| {
            other.name.len() > prefix.len()
                && plain.strip_prefix(&other.name).is_some_and(|rest| rest.starts_with('_'))
        });
        let is_legal = plain.len() <= NAME_MAX && plain.chars().all(is_usable);
        if is_legal && !is_anothers && !looks_hashed(&plain) {
            return plain;
        }
        let kept = plain.chars().map(|c| if is_usable(c) { c } else { '_' });
        let mut name: String = kept.take(NAME_MAX - SUFFIX_LEN).collect();
        // The upper half: eight digits.
        let digits = fingerprint(&[prefix, own]) >> 32;
        name.push_str(&format!("_{digits:08x}"));
        name
    }
}

const fn is_usable(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-')
}

/// Whether a name ends as one does that was given digits.
fn looks_hashed(name: &str) -> bool {
    name.rsplit_once('_').is_some_and(|(_, end)| {
        end.len() == SUFFIX_LEN - 1 && end.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_tells_whose_a_name_is() {
        let prefix = settings(Naming::Prefix, &["a", "a_b"]);
        assert_eq!(prefix.owner_of("a_c"), Some(0));
        assert_eq!(prefix.owner_of("a_b_c"), Some(1), "the longest prefix");
        assert_eq!((prefix.owner_of("b_c"), prefix.owner_of("a_")), (None, None));
        assert_eq!(settings(Naming::Prefix, &["a"]).owner_of("anything"), Some(0));
        assert_eq!(settings(Naming::Priority, &["a", "b"]).owner_of("a_c"), None);
    }

    fn settings(naming: Naming, servers: &[&str]) -> NamingSettings {
        let servers = servers.iter().map(|name| ServerNames::plain(name)).collect();
        NamingSettings { naming, servers }
    }

    fn check(settings: &NamingSettings, server: usize, own: &str, expected: Option<&str>) {
        assert_eq!(settings.tool(server, own).as_deref(), expected, "{own}");
    }

    #[test]
    fn one_server_keeps_its_names() {
        let one = settings(Naming::Prefix, &["github"]);
        let long = "é ".repeat(90);
        check(&one, 0, "search", Some("search"));
        check(&one, 0, &long, Some(&long));
    }

    #[test]
    fn a_prefix_is_put_before_and_long_or_odd_names_end_in_digits() {
        let two = settings(Naming::Prefix, &["github", "files"]);
        check(&two, 0, "search", Some("github_search"));
        check(&two, 1, "a.b-c", Some("files_a.b-c"));
        check(&two, 1, "a b", Some("files_a_b_079ca856"));
        check(&two, 0, &"x".repeat(57), Some(&format!("github_{}", "x".repeat(57))));
        let cut = two.tool(0, &"x".repeat(58)).expect("offered");
        assert_eq!(cut.len(), NAME_MAX);
        assert_ne!(Some(cut), two.tool(0, &"x".repeat(59)), "the end still tells them apart");
    }

    #[test]
    fn no_tool_takes_the_name_of_another_servers() {
        let two = settings(Naming::Prefix, &["a", "a_b"]);
        check(&two, 1, "c", Some("a_b_c"));
        let hashed = two.tool(0, "b_c").expect("offered");
        assert!(hashed.starts_with("a_b_c_") && looks_hashed(&hashed), "{hashed}");
        let forged = hashed.strip_prefix("a_b_").expect("its beginning");
        assert_ne!(two.tool(1, forged), Some(hashed.clone()));
        assert_eq!(two.tool(0, "b"), Some("a_b".to_owned()));
    }

    #[test]
    fn filters_see_own_names_and_renames_come_before_the_prefix() {
        let glob = |text: &str| Glob::new(text);
        let mut two = settings(Naming::Prefix, &["github", "files"]);
        two.servers[0] = ServerNames {
            include: Some(vec![glob("repo_*"), glob("get")]),
            exclude: vec![glob("*_delete")],
            rename: [("get".to_owned(), "get_issue".to_owned())].into(),
            ..two.servers[0].clone()
        };
        check(&two, 0, "repo_list", Some("github_repo_list"));
        check(&two, 0, "repo_delete", None);
        check(&two, 0, "other", None);
        check(&two, 0, "get", Some("github_get_issue"));
        assert_eq!(two.prompt(0, "get"), "github_get");
    }

    #[test]
    fn priority_and_manual_use_own_names() {
        for naming in [Naming::Priority, Naming::Manual] {
            check(&settings(naming, &["a", "b"]), 1, "search", Some("search"));
        }
    }
}
