//! The binary as a user meets it: what is printed where, and the exit code.
//!
//! Each test runs the real program in an empty folder with an empty environment, so nothing of
//! the machine leaks into the result. What `check` says about particular mistakes is tested in
//! the config crate; here only that it is said, and where.

mod support;

use std::process::Stdio;

use support::{Run, folder, program, run};

/// Runs the program with `args` in an empty folder.
fn tidegate(test: &str, args: &[&str]) -> Run {
    run(program(&folder(test)).args(args))
}

#[test]
fn short_help_is_one_screen_of_24_lines_and_80_columns() {
    let mut command = program(&folder("short-help"));
    let help = run(command.arg("-h").env("COLUMNS", "80"));
    assert_eq!(help.code, Some(0));
    insta::assert_snapshot!("short-help", help.stdout);
    assert!(help.stdout.lines().count() <= 24, "{}", help.stdout);
}

#[test]
fn long_help_of_the_program_and_each_verb_is_as_committed() {
    for verb in [
        "",
        "check",
        "completions",
        "doctor",
        "drain",
        "explain",
        "help",
        "hold",
        "init",
        "man",
        "mcp",
        "probe",
        "reload",
        "reset",
        "resume",
        "schema",
        "sim",
        "status",
        "tools",
    ] {
        let args: Vec<&str> = [verb, "--help"].into_iter().filter(|arg| !arg.is_empty()).collect();
        let mut command = program(&folder("long-help"));
        let help = run(command.args(&args).env("COLUMNS", "80"));
        assert_eq!(help.code, Some(0), "{args:?}");
        insta::assert_snapshot!(format!("long-help-{verb}"), help.stdout);
    }
}

#[test]
fn help_pages_are_as_committed() {
    for topic in ["breaker", "config", "exit-codes", "scenarios"] {
        let page = tidegate("help-pages", &["help", topic]);
        assert_eq!((page.code, page.stderr.as_str()), (Some(0), ""), "{topic}");
        insta::assert_snapshot!(format!("help-{topic}"), page.stdout);
    }
}

#[test]
fn the_manual_has_a_page_for_the_program_and_for_each_command_of_its_help() {
    let page = tidegate("man", &["man"]);
    assert_eq!((page.code, page.stderr.as_str()), (Some(0), ""));
    assert!(page.stdout.contains(".TH tidegate 1"), "{}", page.stdout);
    for section in ["NAME", "SYNOPSIS", "\"EXIT STATUS\"", "ENVIRONMENT", "FILES"] {
        assert!(page.stdout.contains(&format!(".SH {section}")), "{section}: {}", page.stdout);
    }
    let help = tidegate("man", &["-h"]).stdout;
    let verbs = help.split("Commands:\n").nth(1).and_then(|it| it.split("\n\n").next());
    let verbs = verbs.expect("a list of commands").lines();
    let verbs: Vec<&str> = verbs.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(verbs.contains(&"check"), "{verbs:?}");
    for verb in verbs {
        let title = format!("tidegate\\-{verb}(1)");
        assert!(page.stdout.contains(&title), "{title}: {}", page.stdout);
        let own = tidegate("man", &["man", verb]);
        assert_eq!(own.code, Some(0), "{verb}");
        assert!(own.stdout.contains(&format!(".TH tidegate-{verb} 1")), "{}", own.stdout);
    }
    for name in ["chekc", "__fake"] {
        assert_eq!(tidegate("man", &["man", name]).code, Some(2), "{name}");
    }
}

#[test]
fn help_fits_terminals_of_60_80_and_120_columns() {
    for args in [&["-h"][..], &["sim", "-h"], &["help", "breaker"], &["explain", "TG010"]] {
        for columns in [60, 80, 120] {
            let mut command = program(&folder("widths"));
            let text = run(command.args(args).env("COLUMNS", columns.to_string())).stdout;
            let prose = text.split("Examples:").next().expect("split gives a first part");
            let widest = prose.lines().map(|line| line.chars().count()).max();
            assert!(widest.is_some_and(|widest| widest <= columns), "{columns}: {text}");
        }
    }
}

#[test]
fn a_usage_error_is_2_with_its_words_on_stderr() {
    for args in [
        &["chekc"][..],
        &[],
        &["sim", "one", "--all"],
        &["sim", "--json", "--table"],
        &["sim", "--seeds", "0"],
        &["sim", "--from", "-5s"],
        &["sim", "--from", "5 parsecs"],
        &["check", "a.yaml", "-c", "b.yaml"],
        &["tools"],
        &["tools", "call"],
        &["tools", "call", "x", "neither"],
        &["tools", "call", "x", "{"],
        &["tools", "call", "x", "--timeout", "soon"],
        &["tools", "list", "--url", "http://"],
        &["-q", "-v", "explain"],
        &["help", "breakers"],
        &["explain", "TG999"],
        &["completions", "cmd.exe"],
    ] {
        let wrong = tidegate("usage", args);
        assert_eq!((wrong.code, wrong.stdout.as_str()), (Some(2), ""), "{args:?}");
        assert!(!wrong.stderr.is_empty(), "{args:?}");
    }
}

#[test]
fn a_misspelt_verb_is_answered_with_the_right_one() {
    let wrong = tidegate("misspelt", &["chekc"]);
    assert!(wrong.stderr.contains("check"), "{}", wrong.stderr);
}

#[test]
fn version_is_a_result() {
    let version = tidegate("version", &["--version"]);
    assert_eq!(version.code, Some(0));
    assert_eq!(version.stdout, format!("tidegate {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn colour_follows_the_flag_then_no_color_then_force() {
    let check = |args: &[&str], env: &[(&str, &str)], is_coloured: bool| {
        let mut command = program(&folder("colour"));
        let said = run(command.args(args).args(["help", "nothing"]).envs(env.iter().copied()));
        assert_eq!(said.stderr.contains('\u{1b}'), is_coloured, "{args:?} {env:?}");
    };
    check(&[], &[], false);
    check(&[], &[("CLICOLOR_FORCE", "1")], true);
    check(&[], &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], false);
    check(&["--color", "always"], &[("NO_COLOR", "1")], true);
    check(&["--color", "never"], &[("CLICOLOR_FORCE", "1")], false);
}

#[test]
fn a_reader_who_closes_the_pipe_makes_a_quiet_success() {
    for args in [&["schema"][..], &["explain"], &["-h"], &["completions", "zsh"]] {
        let mut command = program(&folder("closed-pipe"));
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        command.args(args).stdout(writer).stderr(Stdio::piped());
        let child = command.spawn().expect("the program starts");
        let done = child.wait_with_output().expect("the program ends");
        assert_eq!(done.status.code(), Some(0), "{args:?}");
        assert_eq!(String::from_utf8_lossy(&done.stderr), "", "{args:?}");
    }
}

#[test]
fn every_code_of_a_diagnostic_has_a_page() {
    let list = tidegate("codes", &["explain"]).stdout;
    let first = list.lines().filter_map(|line| line.split_whitespace().next());
    let codes: Vec<&str> = first.filter(|word| word.starts_with("TG")).collect();
    assert!(codes.len() > 10, "{list}");
    assert!(codes.is_sorted(), "{codes:?}");
    for code in codes {
        let page = tidegate("codes", &["explain", code]);
        assert_eq!(page.code, Some(0), "{code}");
        assert!(page.stdout.lines().count() > 2, "{}", page.stdout);
    }
}

#[test]
fn a_page_is_found_in_any_case_and_as_json() {
    let page = tidegate("json-page", &["explain", "tg010", "--json"]);
    let page: serde_json::Value = serde_json::from_str(&page.stdout).expect("one document");
    assert_eq!(page["code"], "TG010");
}

#[test]
fn completions_know_the_verbs() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = tidegate("completions", &["completions", shell]);
        assert_eq!(script.code, Some(0), "{shell}");
        assert!(script.stdout.contains("explain"), "{shell}");
    }
}

#[test]
fn the_schema_is_one_json_document_about_the_config_file() {
    for args in [&["schema"][..], &["schema", "--json"]] {
        let schema = tidegate("schema", args);
        assert_eq!((schema.code, schema.stderr.as_str()), (Some(0), ""));
        let schema: serde_json::Value = serde_json::from_str(&schema.stdout).expect("one document");
        assert!(schema["properties"]["routes"].is_object(), "{schema:#}");
        assert_eq!(schema["additionalProperties"], false);
    }
}
