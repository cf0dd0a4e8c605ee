//! Generated files: what is made from code, where it is kept, and whether it is fresh.
//!
//! Generated files are committed, so that a reader without a toolchain sees them and a change
//! shows up as a diff. [`GENERATORS`] is the list: a path from the repository's root and the
//! function that gives the file's text. A generator is pure: same code, same text.
//!
//! One page is written by a test instead, because it says what the test found: the matrix of
//! dialects ([`MATRIX`]).

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use tidegate_journal::api::schema;

use crate::say;
use crate::stage::Stage;

/// A committed file and the function that writes its text.
struct Generator {
    path: &'static str,
    text: fn() -> String,
}

/// Every generated file of the repository.
const GENERATORS: &[Generator] = &[
    Generator { path: "docs/diagnostics.md", text: crate::diagnostics::page },
    Generator { path: "docs/config.md", text: tidegate_config::schema::config_reference },
    Generator {
        path: "docs/tidegate.schema.json",
        text: tidegate_config::schema::json_schema_text,
    },
    Generator {
        path: "docs/sim-trace.schema.json",
        text: tidegate_sim::sequence::trace::schema_text,
    },
    Generator { path: "docs/sim-mcp.schema.json", text: tidegate_sim::mcp::trace::schema_text },
    Generator {
        path: "docs/sim-replay.schema.json",
        text: tidegate_sim::timeline::compare::schema_text,
    },
    Generator { path: "web/demo/recording.json", text: crate::recording::text },
    Generator { path: "docs/api/snapshot.schema.json", text: schema::snapshot },
    Generator { path: "docs/api/events.schema.json", text: schema::events },
    Generator { path: "docs/api/decisions.schema.json", text: schema::decisions },
    Generator { path: "docs/api/decision.schema.json", text: schema::decision },
    Generator { path: "docs/api/timeline.schema.json", text: schema::timeline },
    Generator { path: "docs/api/fleet.schema.json", text: schema::fleet },
    Generator { path: "docs/api/incident.schema.json", text: schema::incident },
    Generator { path: "docs/api/explain-backend.schema.json", text: schema::explain_backend },
    Generator { path: "docs/api/explain-request.schema.json", text: schema::explain_request },
    Generator { path: "docs/api/action.schema.json", text: schema::action },
    Generator { path: "docs/api/reload.schema.json", text: schema::reload },
];

/// The test that fills `docs/dialect-matrix.md`, or compares it.
const MATRIX: &[&str] =
    &["test", "-q", "-p", "tidegate-wire", "--test", "dialect_matrix", "every_cell"];

/// Makes the test write its page.
const WRITE_PAGE: &str = "TIDEGATE_WRITE_PAGE";

/// Writes every generated file whose text changed.
pub(crate) fn write() -> anyhow::Result<()> {
    for generator in stale(&root(), GENERATORS)? {
        let path = root().join(generator.path);
        fs::write(&path, (generator.text)())
            .with_context(|| format!("cannot write `{}`", generator.path))?;
        say::line(&format!("wrote {}", generator.path));
    }
    Stage::cargo("dialect matrix", MATRIX).with_env(WRITE_PAGE, "1").run().map(|_| ())
}

/// Fails, naming each file, if a generated file is not what its generator gives.
pub(crate) fn check() -> anyhow::Result<()> {
    let stale: Vec<_> = stale(&root(), GENERATORS)?.iter().map(|one| one.path).collect();
    if !stale.is_empty() {
        bail!("stale: {}; run `cargo xtask docs`", stale.join(", "));
    }
    Stage::cargo("dialect matrix", MATRIX).run().map(|_| ())
}

/// The generators whose file is missing or differs.
fn stale<'a>(root: &Path, generators: &'a [Generator]) -> anyhow::Result<Vec<&'a Generator>> {
    let mut stale = Vec::new();
    for generator in generators {
        let path = root.join(generator.path);
        let is_fresh = match fs::read_to_string(&path) {
            Ok(text) => text == (generator.text)(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => false,
            Err(error) => return Err(error).context(format!("cannot read `{}`", generator.path)),
        };
        if !is_fresh {
            stale.push(generator);
        }
    }
    Ok(stale)
}

/// The repository's root: the folder above this crate.
pub(crate) fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_owned()
}

#[cfg(test)]
mod tests {
    use super::{GENERATORS, Generator, root, stale};

    #[test]
    fn every_generated_file_is_fresh() {
        let stale: Vec<_> =
            stale(&root(), GENERATORS).expect("readable").iter().map(|one| one.path).collect();
        assert!(stale.is_empty(), "stale: {stale:?}; run `cargo xtask docs`");
    }

    #[test]
    fn a_file_with_other_text_and_a_missing_file_are_stale() {
        let wrong = Generator { path: "Cargo.toml", text: || "not this".to_owned() };
        let missing = Generator { path: "no/such/file", text: String::new };
        let generators = [wrong, missing];
        assert_eq!(stale(&root(), &generators).expect("readable").len(), 2);
    }
}
