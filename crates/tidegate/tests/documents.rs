//! Every `$ tidegate …` in a console block of the documents prints what stands below it.
//!
//! A picture of the program in a document is either true or a failing test. After a change that is
//! meant, `TIDEGATE_UPDATE_DOCUMENTS=1 cargo test -p tidegate --test documents` writes them anew.
//!
//! Only the result (stdout) is compared; commands that are not `tidegate` are left alone.
//!
//! Commands in shell blocks have no output to compare. Those of every document must exist, with all
//! their options; those that the README says to try on the demo must work on it, and those of the
//! pages for operators on a gateway with the targets that the pages speak of.

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use support::served::Served;

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

/// The lines of shell blocks, those that go on joined, comments left out.
fn shell_lines(document: &str) -> Vec<String> {
    let (mut lines, mut is_shell, mut open) = (Vec::new(), false, String::new());
    for line in document.lines().map(str::trim) {
        if line.starts_with("```") {
            is_shell = matches!(line, "```sh" | "```console");
            continue;
        }
        let line = line.strip_prefix("$ ").unwrap_or(line);
        let line = line.split(" #").next().unwrap_or(line).trim_end();
        if is_shell {
            open.push_str(line.strip_suffix('\\').unwrap_or(line));
            if !line.ends_with('\\') {
                lines.push(std::mem::take(&mut open));
            }
        }
    }
    lines
}

/// What stands between backticks in ordinary text.
fn inline_code(document: &str) -> Vec<String> {
    let mut spans = Vec::new();
    let mut is_block = false;
    for line in document.lines() {
        is_block ^= line.trim_start().starts_with("```");
        if !is_block {
            spans.extend(line.split('`').skip(1).step_by(2).map(str::to_owned));
        }
    }
    spans
}

/// The words behind `tidegate`, if a line runs it, up to the end of that command.
fn arguments(line: &str) -> Option<Vec<&str>> {
    let mut words = line.split_whitespace().skip_while(|word| word.contains('='));
    words.next().filter(|word| *word == "tidegate")?;
    Some(words.take_while(|word| !matches!(*word, "|" | ">" | "&&" | ";")).collect())
}

#[test]
fn every_command_of_the_documents_exists_with_its_options() {
    let folder = fs::read_dir(root().join("docs")).expect("the documents").flatten();
    let pages = folder.map(|it| it.path()).filter(|it| it.extension().is_some_and(|it| it == "md"));
    let others = ["README.md", "ops/README.md", "CONTRIBUTING.md"].map(|it| root().join(it));
    let mut help: BTreeMap<String, String> = BTreeMap::new();
    let mut found = 0;
    for page in pages.chain(others) {
        let text = fs::read_to_string(&page).expect("a document");
        for line in shell_lines(&text).into_iter().chain(inline_code(&text)) {
            let Some(words) = arguments(&line).filter(|it| it.first() != Some(&"help")) else {
                continue;
            };
            let verb: Vec<&str> = match words.as_slice() {
                ["tools", kind, ..] => vec!["tools", *kind],
                [verb, ..] if !verb.starts_with('-') => vec![*verb],
                _ => Vec::new(),
            };
            let known = help.entry(verb.join(" ")).or_insert_with(|| {
                let asked = support::run(support::program(&root()).args(&verb).arg("--help"));
                assert_eq!(asked.code, Some(0), "{}: `{line}`: {asked:?}", page.display());
                asked.stdout
            });
            for option in words.iter().filter(|word| word.starts_with("--")) {
                let option = option.split('=').next().unwrap_or(option);
                let is_known = known.contains(option) || option == "--version";
                assert!(is_known, "{}: `{line}` has no {option}", page.display());
            }
            found += 1;
        }
    }
    assert!(found > 40, "only {found} commands were found");
}

#[test]
fn what_the_readme_tries_on_the_demo_works() {
    let here = support::folder("documents-demo");
    let served = Served::start(&here, &["--demo"]);
    let readme = fs::read_to_string(root().join("README.md")).expect("the README");
    let mut tried = 0;
    for line in shell_lines(&readme) {
        let is_for_demo = arguments(&line)
            .is_some_and(|words| matches!(words.first(), Some(&("tools" | "status" | "explain"))));
        if !is_for_demo {
            continue;
        }
        // A shell takes the quotes away.
        let line = line.replacen("tidegate", env!("CARGO_BIN_EXE_tidegate"), 1);
        let mut shell = std::process::Command::new("/bin/sh");
        shell.args(["-c", &line]).current_dir(&here).env_clear();
        shell.env("TIDEGATE_URL", format!("http://{}", served.address));
        shell.env("TIDEGATE_ADMIN_URL", format!("http://{}", served.admin));
        let done = support::run(&mut shell);
        assert_eq!(done.code, Some(0), "{line}: {done:?}");
        assert!(!done.stdout.is_empty(), "{line}: {done:?}");
        tried += 1;
    }
    assert!(tried >= 5, "only {tried} commands were tried");
}

/// Pages whose commands are tried, and how many of them there are at least.
const TRIED: &[(&str, usize)] = &[
    ("docs/install.md", 3),
    ("docs/failover.md", 6),
    ("docs/operating.md", 8),
    ("docs/simulator.md", 3),
];

/// The targets that the pages speak of, inside the process.
const PAGES_CONFIG: &str = "\
listen: 127.0.0.1:0
admin: { listen: '127.0.0.1:0', token: env:TIDEGATE_ADMIN_TOKEN }
providers: { openai: { api: fake }, anthropic: { api: fake }, ollama: { api: fake } }
routes:
  fast:
    tiers: [[openai/gpt-5, anthropic/claude-sonnet-4], [ollama/qwen]]
default_route: fast
";

#[test]
fn what_the_pages_tell_an_operator_to_type_works() {
    let here = support::folder("documents-pages");
    for file in ["tidegate.yaml", "candidate.yaml"] {
        fs::write(here.join(file), PAGES_CONFIG).expect("the folder takes files");
    }
    let token = ("TIDEGATE_ADMIN_TOKEN", "a-long-random-text-for-a-test");
    let mut serve = support::program(&here);
    serve.args(["serve", "--listen", ":0", "--admin-listen", "localhost:0"]);
    let served = Served::spawn(serve.env(token.0, token.1));
    assert!(served.chat("fast", "").starts_with("HTTP/1.1 200"));
    for (name, least) in TRIED {
        let page = fs::read_to_string(root().join(name)).expect("the page");
        let mut tried = 0;
        for line in shell_lines(&page) {
            // It serves already; a first config and a history have tests of their own.
            let is_left = |words: &[&str]| {
                matches!(words.first(), Some(&("serve" | "init")))
                    || words.contains(&"--from-history")
            };
            let Some(words) = arguments(&line).filter(|words| !is_left(words)) else { continue };
            let mut shell = std::process::Command::new("/bin/sh");
            let program = env!("CARGO_BIN_EXE_tidegate");
            shell.args(["-c", &line.replacen("tidegate", program, 1)]);
            shell.current_dir(&here).env_clear().env(token.0, token.1);
            shell.env("TIDEGATE_ADMIN_URL", format!("http://{}", served.admin));
            let done = support::run(&mut shell);
            // An outage may have expectations that do not hold for another config.
            let is_outage = matches!(words.as_slice(), ["sim", "hard-outage", ..]);
            let is_fine = done.code == Some(0) || is_outage && done.code == Some(1);
            assert!(is_fine, "{name}: `{line}`: {done:?}");
            assert!(!done.stdout.is_empty() || words.contains(&"-o"), "{name}: `{line}`: {done:?}");
            tried += 1;
        }
        assert!(tried >= *least, "{name}: only {tried} commands were tried");
    }
}
