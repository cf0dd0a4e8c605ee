//! What a source file imports and declares.
//!
//! A scanner, not a parser: it knows words, `::`, braces and commas, and leaves out comments,
//! strings and modules under `#[cfg(test)]`. That is enough to tell imports, and needs no crate.

/// A path as it is used: `use crate::a::{B as C}` names `[a, B]` under the name `C`.
#[derive(Debug, PartialEq, Eq)]
pub struct Used {
    /// From the root of the crate.
    pub path: Vec<String>,
    /// What it is called from here on, if it is imported.
    pub name: Option<String>,
}

/// Every path in a text that begins with `crate`, `self`, `super` or, in the root of a crate, with
/// an import, for a file that is this module.
pub fn paths(text: &str, module: &[String]) -> Vec<Used> {
    let tokens = tokens(text);
    let mut found = Vec::new();
    let mut scan = Scan { tokens: &tokens, at: 0 };
    // The modules inside the file, each with the number of braces that were open before it.
    let mut inner: Vec<(String, usize)> = Vec::new();
    let mut depth = 0;
    while let Some(token) = scan.next() {
        match token {
            "{" => depth += 1,
            "}" => {
                depth -= 1;
                while inner.last().is_some_and(|(_, outside)| *outside >= depth) {
                    inner.pop();
                }
            }
            "mod" if scan.peek(1) == Some("{") => {
                if scan.is_after_cfg_test() {
                    scan.at += 1;
                    scan.skip_block();
                } else {
                    let name = scan.next().unwrap_or_default().to_owned();
                    inner.push((name, depth));
                }
            }
            "crate" | "self" | "super"
                if scan.peek(0) == Some("::") && !scan.is_inside_a_path() =>
            {
                let mut base: Vec<String> = module.to_vec();
                base.extend(inner.iter().map(|(name, _)| name.clone()));
                scan.at -= 1;
                scan.path(base, &mut found);
            }
            "use" if module.is_empty() && inner.is_empty() => {
                let is_own = matches!(scan.peek(0), Some("crate" | "self" | "super"));
                if !is_own {
                    scan.path(Vec::new(), &mut found);
                }
            }
            _ => {}
        }
    }
    found
}

/// The types that a text declares: structs, enums, traits and names for types. Types of a trait's
/// implementation are not declared there.
pub fn types(text: &str) -> Vec<String> {
    let tokens = tokens(text);
    let mut found = Vec::new();
    let mut scan = Scan { tokens: &tokens, at: 0 };
    let mut depth = 0;
    // How many braces were open before the implementation or trait that this is inside of.
    let mut inside: Option<usize> = None;
    while let Some(token) = scan.next() {
        match token {
            "{" => depth += 1,
            "}" => {
                depth -= 1;
                inside = inside.filter(|outside| *outside < depth);
            }
            "mod" if scan.peek(1) == Some("{") && scan.is_after_cfg_test() => {
                scan.at += 1;
                scan.skip_block();
            }
            "struct" | "enum" | "trait" | "type" if scan.peek(0).is_some_and(is_word) => {
                if token != "type" || inside.is_none() {
                    found.extend(scan.peek(0).map(str::to_owned));
                }
                if token == "trait" {
                    inside = inside.or(Some(depth));
                }
            }
            "impl" => inside = inside.or(Some(depth)),
            // An `impl Trait` of a signature ends with the signature.
            ";" | ")" if inside == Some(depth) => inside = None,
            _ => {}
        }
    }
    found
}

struct Scan<'a> {
    tokens: &'a [String],
    at: usize,
}

impl<'a> Scan<'a> {
    fn next(&mut self) -> Option<&'a str> {
        let token = self.tokens.get(self.at)?;
        self.at += 1;
        Some(token)
    }

    fn peek(&self, ahead: usize) -> Option<&'a str> {
        self.tokens.get(self.at + ahead).map(String::as_str)
    }

    /// Whether the word that was just read follows `::`.
    fn is_inside_a_path(&self) -> bool {
        self.at >= 2 && self.tokens[self.at - 2] == "::"
    }

    fn is_after_cfg_test(&self) -> bool {
        let before = &self.tokens[..self.at - 1];
        before.ends_with(&["#", "[", "cfg", "(", "test", ")", "]"].map(str::to_owned))
    }

    /// Reads to the end of the block that begins here.
    fn skip_block(&mut self) {
        let mut depth = 0;
        while let Some(token) = self.next() {
            match token {
                "{" => depth += 1,
                "}" if depth == 1 => return,
                "}" => depth -= 1,
                _ => {}
            }
        }
    }

    /// Reads a path, or a tree of them, that begins in a module.
    fn path(&mut self, mut base: Vec<String>, found: &mut Vec<Used>) {
        loop {
            match self.next() {
                Some("crate") => base.clear(),
                Some("self") => {}
                Some("super") => drop(base.pop()),
                Some("{") => {
                    while self.peek(0).is_some_and(|it| it != "}") {
                        self.path(base.clone(), found);
                        if self.peek(0) == Some(",") {
                            self.at += 1;
                        }
                    }
                    self.at += 1;
                    return;
                }
                Some("*") => return found.push(Used { path: base, name: None }),
                Some(word) if is_word(word) => base.push(word.to_owned()),
                _ => return self.at -= 1,
            }
            if self.peek(0) != Some("::") {
                let name = match (self.peek(0), self.peek(1)) {
                    (Some("as"), Some(name)) => {
                        self.at += 2;
                        Some(name.to_owned())
                    }
                    _ => base.last().cloned(),
                };
                return found.push(Used { path: base, name });
            }
            self.at += 1;
        }
    }
}

fn is_word(token: &str) -> bool {
    token.starts_with(|first: char| first.is_alphanumeric() || first == '_')
}

/// Words, `::` and single signs; no comments, no literals with quotes.
fn tokens(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let len = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if first == '"' {
            string_len(rest)
        } else if first == '\'' {
            char_len(rest)
        } else if let Some(len) = raw_string_len(rest) {
            len
        } else if is_word(rest) {
            let len = rest.find(|it: char| !it.is_alphanumeric() && it != '_');
            let len = len.unwrap_or(rest.len());
            found.push(rest[..len].to_owned());
            len
        } else if rest.starts_with("::") {
            found.push("::".to_owned());
            2
        } else {
            if !first.is_whitespace() {
                found.push(first.to_string());
            }
            first.len_utf8()
        };
        rest = &rest[len..];
    }
    found
}

/// The length of a string with its quotes.
fn string_len(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, sign) in text.char_indices().skip(1) {
        match sign {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The length of a character with its quotes, or of the quote alone where a lifetime follows.
fn char_len(text: &str) -> usize {
    let mut signs = text.char_indices().skip(1);
    match (signs.next(), signs.next()) {
        (Some((_, '\\')), Some((at, sign))) => {
            let from = at + sign.len_utf8();
            text[from..].find('\'').map_or(text.len(), |end| from + end + 1)
        }
        (Some(_), Some((at, '\''))) => at + 1,
        _ => 1,
    }
}

/// The length of a raw string or a string of bytes with its quotes, if that is what begins here.
fn raw_string_len(text: &str) -> Option<usize> {
    let prefix = ["br", "r", "b"].into_iter().find(|it| text.starts_with(it))?;
    let after = &text[prefix.len()..];
    let hashes = after.len() - after.trim_start_matches('#').len();
    let quoted = &after[hashes..];
    if !quoted.starts_with('"') || prefix == "b" && hashes > 0 {
        return None;
    }
    if prefix == "b" {
        return Some(prefix.len() + string_len(quoted));
    }
    let end = format!("\"{}", "#".repeat(hashes));
    let len = quoted[1..].find(&end).map_or(quoted.len(), |at| at + 1 + end.len());
    Some(prefix.len() + hashes + len)
}
