//! `cargo xtask dist`: the release binary as it is handed out.
//!
//! Rules kept here:
//! - Built from the lock file (`--locked`), with fat LTO, stripped. The same build with its names
//!   stays in `target/dist-build/release`, for profilers.
//! - It carries the list of the crates it was made of, as `cargo auditable` writes it (the section
//!   `.dep-v0`), so that `cargo audit bin`, Trivy or Syft can tell later whether an advisory
//!   concerns it.
//! - No path of the machine that built it is inside: two checkouts in different folders give the
//!   same bytes.
//! - Manual pages and completions lie beside it, made by the binary itself, and a Debian package
//!   of all of it ([`debian`]); `SHA256SUMS` has the sums of what is handed out.
//! - The result is looked at before it counts: a binary without the list, with symbols or with the
//!   folder's path in it is an error.

mod debian;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};

use crate::install::{self, CargoTool, quietly};
use crate::{deny, docs, say};

/// The tool that writes the list of crates, and the version of it that was tried.
const AUDITABLE: CargoTool = CargoTool { command: "auditable", version: "0.7.7" };

const CARGO_HELP: &str = "are crates within reach, and is rustup's stable toolchain installed?";
const READELF_HELP: &str = "install binutils (they come with gcc)";

/// Builds `target/dist/tidegate`, its package and their checksums.
pub(crate) fn run() -> anyhow::Result<()> {
    let metadata = deny::metadata()?;
    let target = metadata["target_directory"].as_str().context("cargo names no target folder")?;
    let target = Path::new(target);
    let tools = install::cargo_tool(target, &AUDITABLE)?;
    say::line("building with fat LTO: this takes some minutes");
    let built = build(target, &tools)?;
    let folder = target.join("dist");
    fs::create_dir_all(&folder).context("cannot make the folder of the result")?;
    let binary = folder.join("tidegate");
    let mut strip = Command::new("strip");
    quietly(strip.arg("--strip-all").arg("-o").arg(&binary).arg(&built), READELF_HELP)?;
    inspect(&binary)?;
    pages(&binary, &folder)?;
    let package = debian::build(&folder, version(&metadata)?)?;
    let mut sums = Command::new("sha256sum");
    let sums = sums.args(["tidegate", &package]).current_dir(&folder);
    let sums = quietly(sums, "install coreutils")?;
    fs::write(folder.join("SHA256SUMS"), &sums).context("cannot write the checksums")?;
    for name in ["tidegate", &package] {
        let path = folder.join(name);
        let size = fs::metadata(&path).map(|it| it.len()).unwrap_or(0);
        say::line(&format!("{} ({} KiB)", path.display(), size / 1024));
    }
    say::line(sums.trim_end());
    Ok(())
}

/// The version of the program.
fn version(metadata: &serde_json::Value) -> anyhow::Result<&str> {
    let packages = metadata["packages"].as_array().context("cargo lists no packages")?;
    let program = packages.iter().find(|it| it["name"] == "tidegate");
    program.and_then(|it| it["version"].as_str()).context("cargo does not know `tidegate`")
}

/// Shells whose completions are packed, and the file names they look for.
const COMPLETIONS: [(&str, &str); 3] =
    [("bash", "tidegate"), ("zsh", "_tidegate"), ("fish", "tidegate.fish")];

/// Writes manual pages and completions.
fn pages(binary: &Path, folder: &Path) -> anyhow::Result<()> {
    let help = "the binary that was built does not run here";
    let print = |args: &[&str]| quietly(Command::new(binary).args(args), help);
    let manual = folder.join("share").join("man").join("man1");
    fs::create_dir_all(&manual).context("cannot make the folder of manual pages")?;
    let program = print(&["man"])?;
    for verb in verbs(&program) {
        let page = print(&["man", verb])?;
        fs::write(manual.join(format!("tidegate-{verb}.1")), page)
            .context("cannot write a page")?;
    }
    fs::write(manual.join("tidegate.1"), &program).context("cannot write a page")?;
    let completions = folder.join("share").join("completions");
    fs::create_dir_all(&completions).context("cannot make the folder of completions")?;
    for (shell, name) in COMPLETIONS {
        let script = print(&["completions", shell])?;
        fs::write(completions.join(name), script).context("cannot write a completion")?;
    }
    Ok(())
}

/// The commands that the program's own page refers to.
fn verbs(page: &str) -> Vec<&str> {
    let lines = page.lines().filter_map(|line| line.strip_prefix("tidegate\\-"));
    lines.filter_map(|line| line.split('(').next()).collect()
}

fn build(target: &Path, tools: &Path) -> anyhow::Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let paths = std::iter::once(tools.to_owned()).chain(std::env::split_paths(&path));
    let path = std::env::join_paths(paths).context("a folder of PATH has an odd name")?;
    // A folder of its own: other flags than those of everyday builds would throw those away.
    let folder = target.join("dist-build");
    let mut build = cargo();
    build
        .args(["auditable", "build", "--release", "--locked", "-p", "tidegate", "--target-dir"])
        .arg(&folder)
        .env("PATH", path)
        // What is handed out is stripped afterwards: profilers need the names of this very build.
        .env("CARGO_PROFILE_RELEASE_STRIP", "none")
        .env("RUSTFLAGS", remapped()?);
    quietly(&mut build, CARGO_HELP)?;
    Ok(folder.join("release").join("tidegate"))
}

/// Flags that write neutral names for the folders of this machine.
fn remapped() -> anyhow::Result<String> {
    let root = docs::root();
    let home = std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo")));
    let home = home.context("neither CARGO_HOME nor HOME is set")?;
    Ok(format!(
        "--remap-path-prefix={}=/tidegate --remap-path-prefix={}=/cargo",
        root.display(),
        home.display()
    ))
}

/// Whether the binary is what this chore promises.
fn inspect(binary: &Path) -> anyhow::Result<()> {
    let mut readelf = Command::new("readelf");
    readelf.args(["--sections", "--wide"]).arg(binary);
    judge(&quietly(&mut readelf, READELF_HELP)?)?;
    let bytes = fs::read(binary).context("cannot read the binary")?;
    let root = docs::root();
    let root = root.to_string_lossy();
    let names_folder = bytes.windows(root.len()).any(|window| window == root.as_bytes());
    ensure!(!names_folder, "the binary names the folder `{root}` it was built in");
    Ok(())
}

/// Reads `readelf`'s list of sections.
fn judge(sections: &str) -> anyhow::Result<()> {
    if !sections.contains(".dep-v0") {
        bail!("the binary has no section `.dep-v0`: it does not list the crates it is made of");
    }
    if sections.contains(".symtab") {
        bail!("the binary is not stripped");
    }
    Ok(())
}

fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

#[cfg(test)]
mod tests {
    use super::{judge, verbs};

    #[test]
    fn the_verbs_are_read_from_the_programs_page() {
        let page = ".SH SUBCOMMANDS\n.TP\ntidegate\\-check(1)\nIs it?\n.TP\ntidegate\\-sim(1)\nx\n";
        assert_eq!(verbs(page), ["check", "sim"]);
    }

    #[test]
    fn a_binary_without_its_list_of_crates_or_with_symbols_is_refused() {
        assert!(judge("[12] .text\n[20] .dep-v0 PROGBITS").is_ok());
        assert!(judge("[12] .text").is_err());
        assert!(judge("[12] .text\n[20] .dep-v0\n[30] .symtab").is_err());
    }
}
