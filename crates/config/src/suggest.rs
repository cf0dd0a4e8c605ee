//! Did you mean …? The nearest of the names that exist.
//!
//! Rules kept here:
//! - Letters swapped, missing, doubled or mistyped count one each; upper and lower case are equal.
//! - A suggestion is near: at most a third of the name is wrong (and at least one letter may be).
//! - Ties go to the name that comes first, so the same file always gets the same answer.
//! - Very long names get none: the comparison is quadratic, and nobody mistypes 80 letters.

use crate::diagnostic::quoted;

/// Names longer than this are not compared.
const MAX_CHARS: usize = 80;

/// How many names a "known" list shows before it is cut.
const MAX_LISTED: usize = 24;

/// The existing name nearest to `written`, if one is near enough to be meant.
#[must_use]
pub fn nearest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = written.chars().count();
    if length == 0 || length > MAX_CHARS {
        return None;
    }
    let written = written.to_lowercase();
    let allowed = (length / 3).max(1);
    known
        .into_iter()
        .filter(|name| name.chars().count() <= MAX_CHARS)
        .map(|name| (strsim::damerau_levenshtein(&written, &name.to_lowercase()), name))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// A line of help: the nearest name, or else the list of those that exist; none if nothing does.
#[must_use]
pub fn did_you_mean<'a>(
    written: &str,
    known: impl IntoIterator<Item = &'a str> + Clone,
    what: &str,
) -> Option<String> {
    if let Some(name) = nearest(written, known.clone()) {
        return Some(format!("did you mean {}?", quoted(name)));
    }
    let names: Vec<&str> = known.into_iter().collect();
    if names.is_empty() {
        return None;
    }
    let listed: Vec<String> = names.iter().take(MAX_LISTED).map(|name| quoted(name)).collect();
    let rest = names.len().saturating_sub(MAX_LISTED);
    let tail = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    Some(format!("{what}: {}{tail}", listed.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_found_and_a_far_one_is_not() {
        let known = ["open_for", "open_max", "window"];
        assert_eq!(nearest("opne_for", known), Some("open_for"));
        assert_eq!(nearest("WINDOW", known), Some("window"));
        assert_eq!(nearest("elephant", known), None);
        assert_eq!(nearest("", known), None);
        assert_eq!(nearest(&"o".repeat(1_000_000), known), None);
    }

    #[test]
    fn without_a_near_name_the_known_ones_are_listed() {
        let help = did_you_mean("zzz", ["a", "b"], "known keys");
        assert_eq!(help.as_deref(), Some("known keys: `a`, `b`"));
        assert_eq!(did_you_mean("zzz", [], "known keys"), None);
    }
}
