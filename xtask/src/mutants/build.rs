//! Builds a crate with its faults in a copy of the workspace, and finds out which of them do not
//! compile.
//!
//! An error of the compiler inside the changed copy of a body is that fault's. An error elsewhere
//! in a woven function says that the function cannot be woven (it is called in a constant, say):
//! its faults are left to `cargo mutants`, which builds the crate anew for each.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, bail, ensure};
use serde_json::Value;

use super::faults::Fault;
use super::weave::{self, Woven, WovenFile};
use super::{Others, Subject};
use crate::{docs, install, say};

/// How often the crate is compiled until no fault is in the way; the compiler tells errors in
/// about four stages.
const ROUNDS_MAX: usize = 24;

/// The copy of the workspace.
pub(super) struct Bed {
    pub(super) tree: PathBuf,
    pub(super) target: PathBuf,
}

/// A program with tests.
pub(super) struct TestProgram {
    pub(super) path: PathBuf,
    /// Its tests use sockets and the clock.
    pub(super) is_timed: bool,
}

/// A crate that was built with its faults.
pub(super) struct Built {
    /// The programs with its tests.
    pub(super) programs: Vec<TestProgram>,
    /// The function that each fault is in.
    pub(super) function_of: BTreeMap<usize, usize>,
    pub(super) unviable: BTreeSet<usize>,
    /// What could not be woven.
    pub(super) left: BTreeSet<usize>,
}

impl Bed {
    /// Copies the workspace.
    pub(super) fn new(folder: &Path) -> anyhow::Result<Self> {
        let bed = Self { tree: folder.join("tree"), target: folder.join("target") };
        if bed.tree.exists() {
            fs::remove_dir_all(&bed.tree).context("cannot remove the last copy")?;
        }
        copy(&docs::root(), &bed.tree)?;
        Ok(bed)
    }

    /// Builds the crate in `sources` with all its faults but those that do not compile.
    pub(super) fn build(&self, subject: &Subject, faults: &[Fault]) -> anyhow::Result<Built> {
        let mut weaving = Weaving::new(faults);
        for _ in 0..ROUNDS_MAX {
            let woven = self.write(&weaving)?;
            let checked = self.cargo(&["check", "-p", subject.package, "--lib"])?;
            if checked.status.success() {
                let programs = self.programs(subject)?;
                let function_of = function_of(&woven);
                let Weaving { unviable, mut left, .. } = weaving;
                let is_woven = |it: &usize| function_of.contains_key(it) || unviable.contains(it);
                left.extend((1..=faults.len()).filter(|it| !is_woven(it)));
                return Ok(Built { programs, function_of, unviable, left });
            }
            let before = (weaving.unviable.len(), weaving.left.len());
            let said = weaving.blame(&woven, &checked);
            let after = (weaving.unviable.len(), weaving.left.len());
            say::line(&format!("{} do not compile, {} cannot be woven", after.0, after.1));
            ensure!(before != after, "the woven crate does not compile:\n{said}");
        }
        bail!("the woven crate does not compile after {ROUNDS_MAX} rounds");
    }

    fn write(&self, weaving: &Weaving<'_>) -> anyhow::Result<BTreeMap<String, WovenFile>> {
        let mut next = 0;
        let mut woven = BTreeMap::new();
        for (file, numbers) in weaving.by_file() {
            let source = install::read(&docs::root().join(&file))?;
            let done = weave::file(&source, weaving.faults, &numbers, &mut next);
            write(&self.tree.join(&file), &done.text)?;
            woven.insert(file, done);
        }
        let Some(first) = weaving.faults.first() else { bail!("there are no faults") };
        let (sources, _) = first.file.split_once("/src/").context("a file outside of `src`")?;
        let root = format!("{sources}/src/lib.rs");
        let text = match woven.get(&root) {
            Some(done) => done.text.clone(),
            None => install::read(&docs::root().join(&root))?,
        };
        write(&self.tree.join(&root), &format!("{text}\npub(crate) mod woven_faults;\n"))?;
        write(&self.tree.join(format!("{sources}/src/woven_faults.rs")), weave::SUPPORT)?;
        Ok(woven)
    }

    fn programs(&self, subject: &Subject) -> anyhow::Result<Vec<TestProgram>> {
        let packages = ["test", "--no-run", "-p", subject.package];
        let Others { packages: others, tests } = &subject.others;
        let words = [&packages[..], others, subject.tests, tests].concat();
        let built = self.cargo(&words)?;
        ensure!(built.status.success(), "the tests do not compile:\n{}", rendered(&built));
        let program = |it: &Value| {
            let path = PathBuf::from(it["executable"].as_str()?);
            let is_timed = it["manifest_path"].as_str()?.ends_with("crates/server/Cargo.toml");
            Some(TestProgram { path, is_timed })
        };
        Ok(messages(&built).iter().filter_map(program).collect())
    }

    fn cargo(&self, words: &[&str]) -> anyhow::Result<Output> {
        let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut cargo = Command::new(program);
        cargo.args(words).args(["--locked", "--message-format", "json"]).current_dir(&self.tree);
        cargo.env("CARGO_TARGET_DIR", &self.target).env("RUSTFLAGS", "--cap-lints=allow");
        // A function with many copies is large: to optimise one took minutes, and most copies are
        // run for less than a second.
        cargo.env("CARGO_PROFILE_DEV_DEBUG", "0").env("CARGO_PROFILE_DEV_OPT_LEVEL", "0");
        cargo.output().context("cannot start cargo")
    }
}

/// Which faults are woven so far.
struct Weaving<'a> {
    faults: &'a [Fault],
    unviable: BTreeSet<usize>,
    left: BTreeSet<usize>,
}

impl<'a> Weaving<'a> {
    fn new(faults: &'a [Fault]) -> Self {
        let is_left = |fault: &Fault| fault.function.as_ref().is_none_or(|it| it.is_opaque);
        let outside = |(index, fault)| is_left(fault).then_some(index + 1);
        let left = faults.iter().enumerate().filter_map(outside).collect();
        Self { faults, unviable: BTreeSet::new(), left }
    }

    /// Every file with faults, also one that has none left: it must be written again.
    fn by_file(&self) -> BTreeMap<String, BTreeSet<usize>> {
        let mut by_file: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
        for (index, fault) in self.faults.iter().enumerate() {
            let numbers = by_file.entry(fault.file.clone()).or_default();
            let number = index + 1;
            if !self.unviable.contains(&number) && !self.left.contains(&number) {
                numbers.insert(number);
            }
        }
        by_file
    }

    /// Puts the compiler's errors to faults and functions; the text of those that fit nowhere.
    fn blame(&mut self, woven: &BTreeMap<String, WovenFile>, checked: &Output) -> String {
        let mut rest = String::new();
        for error in messages(checked).iter().map(|it| &it["message"]) {
            if error["level"] != "error" {
                continue;
            }
            let spans = error["spans"].as_array().map(Vec::as_slice).unwrap_or_default();
            let mut is_placed = false;
            for span in spans.iter().filter(|it| it["is_primary"] == true) {
                is_placed |= self.blame_span(woven, span);
            }
            if !is_placed && error["code"]["code"] == "E0015" {
                let text = error["message"].as_str().unwrap_or_default();
                let called = text.split('`').nth(1).and_then(|it| it.rsplit("::").next());
                is_placed = self.leave(woven, |it| Some(it.name.as_str()) == called);
            }
            if !is_placed {
                rest.push_str(error["rendered"].as_str().unwrap_or_default());
            }
        }
        rest
    }

    fn blame_span(&mut self, woven: &BTreeMap<String, WovenFile>, span: &Value) -> bool {
        let outermost = outermost(span);
        let file = outermost["file_name"].as_str().and_then(|it| woven.get(it));
        let at = outermost["byte_start"].as_u64().and_then(|it| usize::try_from(it).ok());
        let (Some(file), Some(at)) = (file, at) else { return false };
        let Some(function) = file.functions.values().find(|it| it.extent.contains(&at)) else {
            return false;
        };
        match function.copies.iter().find(|(_, copy)| copy.contains(&at)) {
            Some((number, _)) => self.unviable.insert(*number),
            None => {
                return self
                    .leave(woven, |it| it.extent == function.extent && it.name == function.name);
            }
        };
        true
    }

    fn leave(
        &mut self,
        woven: &BTreeMap<String, WovenFile>,
        is_it: impl Fn(&Woven) -> bool,
    ) -> bool {
        let before = self.left.len();
        let functions = woven.values().flat_map(|it| it.functions.values());
        self.left.extend(functions.filter(|it| is_it(it)).flat_map(|it| it.copies.keys()));
        self.left.len() > before
    }
}

/// Where the code stands that a macro made.
fn outermost(span: &Value) -> &Value {
    match &span["expansion"]["span"] {
        Value::Null => span,
        call => outermost(call),
    }
}

fn function_of(woven: &BTreeMap<String, WovenFile>) -> BTreeMap<usize, usize> {
    let functions = woven.values().flat_map(|it| &it.functions);
    functions.flat_map(|(number, it)| it.copies.keys().map(|fault| (*fault, *number))).collect()
}

fn messages(output: &Output) -> Vec<Value> {
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn rendered(output: &Output) -> String {
    let texts = messages(output);
    let texts = texts.iter().filter_map(|it| it["message"]["rendered"].as_str());
    texts.chain([String::from_utf8_lossy(&output.stderr).as_ref()]).collect()
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write `{}`", path.display()))
}

/// Copies a folder, but not what was built and not the history.
fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    let whole = || format!("cannot copy `{}`", from.display());
    fs::create_dir_all(to).with_context(whole)?;
    for entry in fs::read_dir(from).with_context(whole)? {
        let entry = entry.with_context(whole)?;
        let name = entry.file_name();
        let target = to.join(&name);
        if entry.file_type().with_context(whole)?.is_dir() {
            if ![".git", "target", "node_modules"].map(OsStr::new).contains(&name.as_os_str()) {
                copy(&entry.path(), &target)?;
            }
        } else {
            fs::copy(entry.path(), target).with_context(whole)?;
        }
    }
    Ok(())
}
