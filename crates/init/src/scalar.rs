//! Text as a YAML scalar: plain where that is unambiguous, else in double quotes.

/// Words that YAML readers take for something other than text.
const RESERVED: &[&str] = &["true", "false", "null", "yes", "no", "on", "off", "y", "n", "~"];

/// The text as a scalar for block and flow style alike.
pub(crate) fn scalar(text: &str) -> String {
    if is_plain(text) { text.to_owned() } else { quoted(text) }
}

fn is_plain(text: &str) -> bool {
    let starts_well = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/');
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./@+:-".contains(c);
    let is_reserved = RESERVED.iter().any(|word| text.eq_ignore_ascii_case(word));
    is_duration(text)
        || starts_well && text.chars().all(plain) && !text.ends_with(':') && !is_reserved
}

/// `30s`, `1500ms`.
fn is_duration(text: &str) -> bool {
    let number = text.strip_suffix('s').map(|rest| rest.strip_suffix('m').unwrap_or(rest));
    number.is_some_and(|it| !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_digit()))
}

fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => out.extend(['\\', character]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => out.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use tidegate_config::{document::parse, source::Source};

    use super::scalar;

    #[test]
    fn every_text_is_read_back_as_it_was() {
        let texts = [
            "gpt-5-mini",
            "qwen2.5:7b",
            "openai/gpt-oss-20b",
            "env:A_KEY",
            "http://[::1]:8/v1",
            "-y",
            "*",
            "true",
            "No",
            "12",
            "1e3",
            "30s",
            "5ms",
            "s",
            "~",
            "",
            "a: b",
            "a #b",
            "a,b",
            "{x}",
            "x:",
            "say \"hi\"\\",
            "häfen ⚓",
            "line\nbreak\ttab\u{1b}\u{7f}\u{85}",
            " padded ",
            "@scope/pkg",
        ];
        for text in texts {
            for yaml in [format!("a: {}\n", scalar(text)), format!("a: [{}]\n", scalar(text))] {
                let source = Source::new("x", &yaml);
                let document = parse(&source).document.unwrap_or_else(|| panic!("{yaml}"));
                let item = crate::item::Item::root(&source, &document).get("a");
                let item = item.unwrap_or_else(|| panic!("{yaml}"));
                let read = item.texts().map_or_else(|| item.text(), |texts| texts.first().copied());
                assert_eq!(read, Some(text), "{yaml}");
            }
        }
    }
}
