//! Which uris a template of RFC 6570 can stand for.
//!
//! The text between expressions must be there, in order; an expression stands for any text, also
//! for none. That lets through more than the template makes, which its server then refuses. Time
//! is that of searching each piece of text once.

/// A template, as the texts between its expressions.
#[derive(Clone, Debug)]
pub(super) struct Template {
    /// At least one; between each two is an expression.
    texts: Vec<String>,
}

impl Template {
    /// Any text is a template; a brace that is never closed is text.
    pub(super) fn new(template: &str) -> Self {
        let mut texts = Vec::new();
        let mut rest = template;
        while let Some((before, after)) = rest.split_once('{') {
            let Some((_, behind)) = after.split_once('}') else { break };
            texts.push(before.to_owned());
            rest = behind;
        }
        texts.push(rest.to_owned());
        Self { texts }
    }

    /// How much of a uri it spells out.
    pub(super) fn literal_len(&self) -> usize {
        self.texts.iter().map(String::len).sum()
    }

    /// Whether a uri fits.
    pub(super) fn matches(&self, uri: &str) -> bool {
        let [first, between @ .., last] = self.texts.as_slice() else {
            return self.texts.iter().all(|text| text == uri);
        };
        let Some(rest) = uri.strip_prefix(first.as_str()) else { return false };
        let Some(mut rest) = rest.strip_suffix(last.as_str()) else { return false };
        for text in between {
            let Some(at) = rest.find(text.as_str()) else { return false };
            rest = &rest[at + text.len()..];
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_of_all_levels_stand_for_text() {
        for (template, uri, expected) in [
            ("file:///{path}", "file:///a/b", true),
            ("file:///{path}", "http://a", false),
            ("test://t/{id}/data", "test://t/7/data", true),
            ("test://t/{id}/data", "test://t/7/date", false),
            ("db://{t}/{+row}{?q,r}", "db://a/b/c?q=1", true),
            ("a{x}b{y}a", "aba", true),
            ("a{x}a", "a", false),
            ("plain", "plain", true),
            ("plain", "plainer", false),
            ("{any}", "", true),
            ("open{brace", "open{brace", true),
        ] {
            assert_eq!(Template::new(template).matches(uri), expected, "{template} {uri}");
        }
    }
}
