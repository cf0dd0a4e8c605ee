//! The stem of an English word: `creates`, `created` and `creation` share one.
//!
//! It is Porter's idea with fewer rules: endings of number and tense, then one ending that makes
//! nouns, adjectives or verbs, then a last `e`. A stem need not be a word; it need only be the same
//! for words that mean the same. Words of other scripts, with digits or of three letters and less
//! stay as they are.

/// Endings taken off once, longest first, with what stands in their place and how many groups of
/// vowels and consonants must be left before them.
const ENDINGS: &[(&str, &str, usize)] = &[
    ("ization", "ize", 1),
    ("ational", "ate", 1),
    ("iveness", "ive", 1),
    ("ication", "ic", 1),
    ("ation", "ate", 1),
    ("ement", "", 2),
    ("ator", "ate", 1),
    ("ance", "", 2),
    ("ence", "", 2),
    ("able", "", 2),
    ("ible", "", 2),
    ("ment", "", 1),
    ("ness", "", 1),
    ("ical", "ic", 1),
    ("iser", "ize", 1),
    ("izer", "ize", 1),
    ("ise", "ize", 2),
    ("yse", "yze", 1),
    ("ion", "", 1),
    ("er", "", 2),
    ("or", "", 2),
    ("ly", "", 1),
    ("al", "", 2),
];

/// The stem of a word in lower case.
pub(crate) fn stem(word: &str) -> String {
    let mut stem = word.to_owned();
    if stem.len() <= 3 || !stem.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return stem;
    }
    plural(&mut stem);
    tense(&mut stem);
    if let [.., before, b'y'] = stem.as_bytes()
        && !is_vowel(*before)
    {
        swap(&mut stem, 1, "i");
    }
    derived(&mut stem);
    if stem.ends_with('e') && measure(&stem[..stem.len() - 1]) >= 1 && stem.len() > 4 {
        stem.pop();
    }
    stem
}

/// A word in lower case without the ending of a plural: enough for names, which are not inflected.
pub(crate) fn singular(word: &str) -> String {
    let mut singular = word.to_owned();
    if singular.len() > 3 && singular.bytes().all(|byte| byte.is_ascii_lowercase()) {
        plural(&mut singular);
    }
    singular
}

fn plural(stem: &mut String) {
    if stem == "news" {
        // The one word of tools that looks like a plural and is none.
    } else if stem.ends_with("sses") {
        swap(stem, 2, "");
    } else if stem.ends_with("ies") {
        swap(stem, 3, if stem.len() > 4 { "y" } else { "ie" });
    } else if ["xes", "ches", "shes", "zes"].iter().any(|end| stem.ends_with(end)) {
        swap(stem, 2, "");
    } else if stem.ends_with('s')
        && !stem.ends_with("ss")
        && !stem.ends_with("us")
        && !stem.ends_with("is")
    {
        stem.pop();
    }
}

fn tense(stem: &mut String) {
    let cut = if stem.ends_with("eed") {
        return;
    } else if stem.ends_with("ing") {
        3
    } else if stem.ends_with("ed") {
        2
    } else {
        return;
    };
    let left = &stem[..stem.len() - cut];
    if left.len() < 3 || !has_vowel(left) {
        return;
    }
    swap(stem, cut, "");
    let bytes = stem.as_bytes();
    let last = bytes[bytes.len() - 1];
    let is_double = last == bytes[bytes.len() - 2];
    if is_double && !matches!(last, b'l' | b's' | b'z') && !is_vowel(last) {
        stem.pop();
    } else if ["at", "bl", "iz"].iter().any(|end| stem.ends_with(end)) {
        stem.push('e');
    }
}

fn derived(stem: &mut String) {
    for (ending, instead, least) in ENDINGS {
        let Some(left) = stem.strip_suffix(ending) else { continue };
        // `creation` is of `creat`, but `region` is not of `reg`.
        let is_own = *ending == "ion" && !left.ends_with(['s', 't']);
        // `deployment` is of `deploy`, but `comment` is not of `com`.
        let least_len = if *ending == "ment" { 5 } else { 3 };
        if measure(left) >= *least && left.len() >= least_len && !is_own {
            swap(stem, ending.len(), instead);
            return;
        }
    }
}

/// Replaces the last bytes, which are letters of ASCII.
fn swap(stem: &mut String, cut: usize, instead: &str) {
    stem.truncate(stem.len() - cut);
    stem.push_str(instead);
}

/// How often a vowel is followed by a consonant.
fn measure(text: &str) -> usize {
    let bytes = text.as_bytes();
    bytes.windows(2).filter(|pair| is_vowel(pair[0]) && !is_vowel(pair[1])).count()
}

fn has_vowel(text: &str) -> bool {
    text.bytes().any(is_vowel)
}

const fn is_vowel(byte: u8) -> bool {
    matches!(byte, b'a' | b'e' | b'i' | b'o' | b'u' | b'y')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_one_word_share_a_stem() {
        for forms in [
            &["create", "creates", "created", "creating", "creation"][..],
            &["delete", "deletes", "deleted", "deletion"],
            &["query", "queries", "querying"],
            &["deploy", "deployment", "deploys", "deployed"],
            &["stop", "stopped", "stopping"],
            &["translate", "translation", "translations", "translating"],
            &["box", "boxes"],
            &["search", "searches", "searching"],
        ] {
            for form in forms {
                assert_eq!(stem(form), stem(forms[0]), "{form}");
            }
        }
    }

    #[test]
    fn different_words_and_other_scripts_stay_apart() {
        for (one, other) in
            [("user", "use"), ("status", "state"), ("list", "listen"), ("news", "new")]
        {
            assert_ne!(stem(one), stem(other), "{one} {other}");
        }
        for word in ["s3", "aws", "über", "検索", ""] {
            assert_eq!(stem(word), word);
        }
    }
}
