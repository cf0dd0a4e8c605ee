//! What a model name that a client sends leads to.
//!
//! In this order: the route of exactly that name; the first route in the file with a pattern that
//! fits; `provider/model` of a configured provider (one candidate, no failover); for a name
//! without a slash, or none at all, the default route. Anything else is not found, and the answer
//! lists what exists.

use crate::{file::ConfigFile, glob};

/// What a model name leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination<'a> {
    /// A route.
    Route(&'a str),
    /// One target of a configured provider, without failover.
    Target {
        /// The provider.
        provider: &'a str,
        /// The model, as the provider calls it.
        model: &'a str,
    },
}

/// A model name that leads nowhere, and what exists instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: routes are {}{}", missing(asked), listed(routes), direct(providers))]
pub struct NotFound {
    /// What was asked for; empty if nothing was.
    pub asked: String,
    /// The routes there are.
    pub routes: Vec<String>,
    /// The providers there are.
    pub providers: Vec<String>,
}

impl NotFound {
    /// The same for somebody who may use some routes only: what exists besides is not for them to
    /// know. A provider is shown to whoever may use all of its models.
    #[must_use]
    pub fn shown_to(mut self, may_use: impl Fn(&str) -> bool) -> Self {
        self.routes.retain(|route| may_use(route));
        self.providers.retain(|provider| may_use(&format!("{provider}/*")));
        self
    }
}

fn missing(asked: &str) -> String {
    match asked {
        "" => "no model was named, and there is no default route".to_owned(),
        asked => format!("model `{asked}` does not exist"),
    }
}

fn direct(providers: &[String]) -> String {
    match providers {
        [] => String::new(),
        providers => format!("; `provider/model` works for {}", listed(providers)),
    }
}

fn listed(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// Finds what a model name leads to. An empty name counts as none.
///
/// # Errors
/// [`NotFound`], which lists what exists.
pub fn destination<'a>(
    file: &'a ConfigFile,
    asked: Option<&'a str>,
) -> Result<Destination<'a>, NotFound> {
    let name = asked.unwrap_or_default();
    if let Some((route, _)) = file.routes.get_key_value(name) {
        return Ok(Destination::Route(route));
    }
    let fits = |pattern: &String| glob::parse(pattern).is_ok_and(|glob| glob.matches(name));
    let by_pattern = file.routes.iter().find(|(_, route)| route.matches.iter().any(fits));
    if let Some((route, _)) = by_pattern.filter(|_| !name.is_empty()) {
        return Ok(Destination::Route(route));
    }
    match name.split_once('/') {
        Some((provider, model)) if !model.is_empty() => {
            if let Some((provider, _)) = file.providers.get_key_value(provider) {
                return Ok(Destination::Target { provider, model });
            }
        }
        Some(_) => {}
        None => {
            if let Some(route) = &file.default_route {
                return Ok(Destination::Route(route));
            }
        }
    }
    Err(NotFound {
        asked: name.to_owned(),
        routes: file.routes.keys().cloned().collect(),
        providers: file.providers.keys().cloned().collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{document::parse, shape::decode, source::Source};

    const FILE: &str = "
providers: {groq: {api: openai}, mana: {api: fake}}
routes:
  fast: {match: [gpt-*], tiers: [[groq/a]]}
  mana/long-form: {match: [gpt-4, 'x/*'], tiers: [[groq/b]]}
";

    fn check(extra: &str, asked: Option<&str>, expected: Option<&Destination<'_>>) {
        let text = format!("{FILE}{extra}");
        let document = parse(&Source::new("t", &text)).document.expect("YAML");
        let file: ConfigFile = decode(&document).0.expect("a config");
        let found = destination(&file, asked);
        assert_eq!(found.as_ref().ok(), expected, "{asked:?} gave {found:?}");
    }

    #[test]
    fn names_are_tried_in_order() {
        let fast = Destination::Route("fast");
        let long_form = Destination::Route("mana/long-form");
        check("", Some("fast"), Some(&fast));
        check("", Some("mana/long-form"), Some(&long_form));
        check("", Some("gpt-4"), Some(&fast));
        check("", Some("x/y"), Some(&long_form));
        check("", Some("groq/a/b"), Some(&Destination::Target { provider: "groq", model: "a/b" }));
        check("", Some("mana/x"), Some(&Destination::Target { provider: "mana", model: "x" }));
    }

    #[test]
    fn the_default_route_is_for_names_without_a_slash_only() {
        let default = "default_route: fast";
        let fast = Destination::Route("fast");
        check(default, None, Some(&fast));
        check(default, Some(""), Some(&fast));
        check(default, Some("whatever"), Some(&fast));
        check(default, Some("nobody/whatever"), None);
        check(default, Some("groq/"), None);
        check("", None, None);
        check("", Some("whatever"), None);
    }

    #[test]
    fn not_found_lists_what_exists() {
        let file = ConfigFile::default();
        let said = destination(&file, Some("x")).map_err(|error| error.to_string());
        assert_eq!(said, Err("model `x` does not exist: routes are none".to_owned()));
        let missing = NotFound {
            asked: String::new(),
            routes: vec!["fast".to_owned(), "slow".to_owned()],
            providers: vec!["groq".to_owned()],
        };
        let all = "no model was named, and there is no default route: routes are `fast`, `slow`; \
                   `provider/model` works for `groq`";
        assert_eq!(missing.to_string(), all);
        let few = "no model was named, and there is no default route: routes are `fast`";
        assert_eq!(missing.shown_to(|name| name == "fast").to_string(), few);
    }
}
