//! Every `$ tidegate …` in a console block of the documents prints what stands below it.
//!
//! A picture of the program in a document is either true or a failing test. After a change that is
//! meant, `TIDEGATE_UPDATE_DOCUMENTS=1 cargo test -p tidegate --test documents` writes them anew.
//!
//! Only the result (stdout) is compared; commands that are not `tidegate` are left alone.

mod support;

use std::fs;
use std::path::{Path, PathBuf};

const DOCUMENTS: &[&str] = &["README.md", "docs/mcp.md", "docs/routing.md", "docs/simulator.md"];
const UPDATE: &str = "TIDEGATE_UPDATE_DOCUMENTS";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The document with the output of every command as it really is.
fn with_real_output(document: &str, run: impl Fn(&str) -> String) -> String {
    let mut out = String::new();
    let mut lines = document.lines().peekable();
    let mut is_console = false;
    while let Some(line) = lines.next() {
        out.push_str(line);
        out.push('\n');
        if line.starts_with("```") {
            is_console = line == "```console";
        }
        let Some(command) = line.strip_prefix("$ tidegate ").filter(|_| is_console) else {
            continue;
        };
        while lines.peek().is_some_and(|next| !next.starts_with("$ ") && *next != "```") {
            lines.next();
        }
        for printed in run(command).trim_end().lines() {
            out.push_str(printed.trim_end());
            out.push('\n');
        }
    }
    out
}

fn print_of(command: &str) -> String {
    let arguments = command.split('#').next().unwrap_or(command).split_whitespace();
    support::run(support::program(&root()).args(arguments)).stdout
}

#[test]
fn every_console_block_shows_what_the_program_prints() {
    for name in DOCUMENTS {
        let path = root().join(name);
        let written = fs::read_to_string(&path).expect("the document is there");
        let real = with_real_output(&written, print_of);
        if std::env::var_os(UPDATE).is_some() {
            fs::write(&path, &real).expect("the document can be written");
            continue;
        }
        let command = format!("{UPDATE}=1 cargo test -p tidegate --test documents");
        assert_eq!(written, real, "{name} is not what the program prints; refresh: {command}");
    }
}

#[test]
fn a_block_that_differs_is_caught_and_other_commands_are_left_alone() {
    let document =
        "```console\n$ tidegate sim\nold\nlines\n$ cargo test\nkept\n```\n$ tidegate x\n";
    let real = with_real_output(document, |command| format!("ran {command}\n"));
    assert_eq!(
        real,
        "```console\n$ tidegate sim\nran sim\n$ cargo test\nkept\n```\n$ tidegate x\n"
    );
}

#[test]
fn every_error_code_of_the_gateway_is_explained() {
    let page = fs::read_to_string(root().join("docs/troubleshooting.md")).expect("the page");
    let table =
        fs::read_to_string(root().join("crates/wire/src/error_body.rs")).expect("the table");
    let rows = table.lines().filter(|line| line.trim_start().starts_with("Self::"));
    let codes: Vec<&str> = rows
        .filter_map(|line| line.split_once("=> (")?.1.split('"').nth(1))
        .chain(["no_healthy_backend", "backend_unavailable", "result_unknown", "busy"])
        .collect();
    assert!(codes.len() > 15, "the table of codes was not found: {codes:?}");
    for code in codes {
        assert!(page.contains(&format!("`{code}` | ")), "{code} is not in docs/troubleshooting.md");
    }
}
