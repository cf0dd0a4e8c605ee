//! `docs/diagnostics.md`: the page of every diagnostic, as `tidegate explain` prints it.

use tidegate_config::codes::{self, Code};

const INTRODUCTION: &str = "\
# Diagnostics

What `tidegate check` and `tidegate sim` say about files, by code. `tidegate explain CODE` prints
the same text offline. This page is generated: `cargo xtask docs` writes it.
";

/// The text of the page.
pub(crate) fn page() -> String {
    let shared = codes::ALL.iter().copied().flatten().copied();
    let mut all: Vec<&Code> = shared.chain(tidegate_sim::codes::ALL.iter().copied()).collect();
    all.sort_by_key(|code| code.id);
    let section = |code: &&Code| format!("\n## {}: {}\n\n{}\n", code.id, code.title, code.text);
    let sections: String = all.iter().map(section).collect();
    format!("{INTRODUCTION}{sections}")
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_code_has_a_section() {
        let page = super::page();
        for code in tidegate_config::codes::ALL.iter().copied().flatten() {
            assert!(page.contains(&format!("\n## {}: ", code.id)), "{}", code.id);
        }
        for code in tidegate_sim::codes::ALL {
            assert!(page.contains(&format!("\n## {}: ", code.id)), "{}", code.id);
        }
    }
}
