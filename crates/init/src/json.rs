//! JSON as editors write it (comments, trailing commas) into JSON that a YAML parser reads, line
//! for line, so that a place in the result is a place in the file.

/// The text with comments and trailing commas blanked, tabs as spaces, and pairs of surrogate
/// escapes as the character they mean, which YAML does not know. Lines stay where they are.
pub(crate) fn relaxed(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    // Where the last comma went, while only white space follows it.
    let mut comma = None;
    while let Some(first) = rest.chars().next() {
        let taken = match first {
            '"' => {
                comma = None;
                string(rest, &mut out)
            }
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => {
                let end = rest[2..].find("*/").map_or(rest.len(), |end| end + 4);
                out.extend(rest[..end].chars().filter(|c| *c == '\n'));
                end
            }
            _ => {
                match first {
                    ',' => comma = Some(out.len()),
                    '}' | ']' => {
                        if let Some(at) = comma.take() {
                            out.replace_range(at..=at, " ");
                        }
                    }
                    c if c.is_whitespace() => {}
                    _ => comma = None,
                }
                out.push(if first == '\t' { ' ' } else { first });
                first.len_utf8()
            }
        };
        rest = &rest[taken..];
    }
    out
}

/// Copies a string with its quotes, and says how many bytes it had.
fn string(rest: &str, out: &mut String) -> usize {
    let mut at = 1;
    out.push('"');
    while let Some(character) = rest[at..].chars().next() {
        if let Some((pair, length)) = surrogates(&rest[at..]) {
            out.push(pair);
            at += length;
            continue;
        }
        out.push(character);
        at += character.len_utf8();
        match character {
            '"' => break,
            '\\' => {
                if let Some(escaped) = rest[at..].chars().next() {
                    out.push(escaped);
                    at += escaped.len_utf8();
                }
            }
            _ => {}
        }
    }
    at
}

/// The character that two escapes mean together, and their length.
fn surrogates(text: &str) -> Option<(char, usize)> {
    const LENGTH: usize = "\\ud83d\\ude00".len();
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let pair = [unit(0)?, unit(6)?];
    let mut decoded = char::decode_utf16(pair);
    let character = decoded.next()?.ok()?;
    decoded.next().is_none().then_some((character, LENGTH))
}

#[cfg(test)]
mod tests {
    use super::relaxed;

    #[test]
    fn comments_and_trailing_commas_go_and_strings_and_lines_stay() {
        let text = "{ // one\n\t\"a\": \"//x /* \\\" ,}\", /* two\n */ \"b\": [1, 2, ], \n}\n";
        let plain = relaxed(text);
        assert_eq!(plain.lines().count(), text.lines().count());
        let value: serde_json::Value = serde_json::from_str(&plain).expect("JSON");
        assert_eq!(value, serde_json::json!({ "a": "//x /* \" ,}", "b": [1, 2] }));
        assert!(!plain.contains('\t'));
    }

    #[test]
    fn a_pair_of_surrogates_is_its_character_and_broken_text_ends() {
        assert_eq!(relaxed(r#""\ud83d\ude00 \u00e4 \ud83d""#), "\"😀 \\u00e4 \\ud83d\"");
        for broken in ["\"abc", "\"abc\\", "/* never", "/", "//", "\"\\ud83d\\u"] {
            relaxed(broken);
        }
    }
}
