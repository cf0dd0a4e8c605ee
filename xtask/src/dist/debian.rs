//! The Debian package: the binary, its systemd unit, manual pages, completions and examples.
//!
//! Rules kept here:
//! - It is built by `dpkg-deb` alone, from a folder that holds nothing but its files. Files belong
//!   to root and carry the time of the last commit, so the same commit gives the same bytes.
//! - It needs the C library of the version that the binary asks for, and root certificates.
//! - It brings no config and starts nothing: a gateway without a config of its operator's would
//!   only fail.
//! - The result is unpacked and its binary run before it counts.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

use crate::docs;
use crate::install::{quietly, read};

const DPKG_HELP: &str = "install dpkg (it is part of Debian and Ubuntu)";
const READELF_HELP: &str = "install binutils (they come with gcc)";
const GZIP_HELP: &str = "install gzip";

/// Where files of the repository go: mode, source, place.
const FILES: [(u32, &str, &str); 6] = [
    (0o644, "ops/systemd/tidegate.service", "usr/lib/systemd/system/tidegate.service"),
    (0o644, "docs/example.yaml", "usr/share/doc/tidegate/examples/tidegate.yaml"),
    (0o644, "docs/tidegate.schema.json", "usr/share/doc/tidegate/tidegate.schema.json"),
    (0o644, "ops/prometheus/alerts.yaml", "usr/share/doc/tidegate/examples/alerts.yaml"),
    (0o644, "ops/grafana/tidegate.json", "usr/share/doc/tidegate/examples/grafana.json"),
    (0o644, "LICENSE", "usr/share/doc/tidegate/copyright"),
];

/// Where the files go that the binary wrote about itself.
const COMPLETIONS: [(&str, &str); 3] = [
    ("tidegate", "usr/share/bash-completion/completions/tidegate"),
    ("_tidegate", "usr/share/zsh/vendor-completions/_tidegate"),
    ("tidegate.fish", "usr/share/fish/vendor_completions.d/tidegate.fish"),
];

/// Builds the package in `folder`, where binary, pages and completions are already; its file name.
pub(super) fn build(folder: &Path, version: &str) -> anyhow::Result<String> {
    let root = folder.join("package");
    drop(fs::remove_dir_all(&root));
    let binary = folder.join("tidegate");
    place(0o755, &binary, &root.join("usr/bin/tidegate"))?;
    for (mode, from, to) in FILES {
        place(mode, &docs::root().join(from), &root.join(to))?;
    }
    let share = folder.join("share");
    for (from, to) in COMPLETIONS {
        place(0o644, &share.join("completions").join(from), &root.join(to))?;
    }
    manual(&share.join("man").join("man1"), &root.join("usr/share/man/man1"))?;
    let mut dpkg = Command::new("dpkg");
    let architecture = quietly(dpkg.arg("--print-architecture"), DPKG_HELP)?.trim().to_owned();
    let mut readelf = Command::new("readelf");
    let versions = readelf.args(["--version-info", "--wide"]).arg(&binary);
    let libc = libc_of(&quietly(versions, READELF_HELP)?).context("the binary needs no libc")?;
    let installed_kib = size_of_folder(&root)? / 1024;
    let control = control(version, &architecture, &libc, installed_kib);
    let control_folder = root.join("DEBIAN");
    fs::create_dir_all(&control_folder).context("cannot make the package's folder")?;
    fs::write(control_folder.join("control"), control).context("cannot write the control file")?;
    let name = format!("tidegate_{version}_{architecture}.deb");
    let package = folder.join(&name);
    let mut pack = Command::new("dpkg-deb");
    pack.args(["--root-owner-group", "--build"]).arg(&root).arg(&package);
    quietly(pack.env("SOURCE_DATE_EPOCH", commit_time()), DPKG_HELP)?;
    inspect(&package, folder)?;
    fs::remove_dir_all(&root).context("cannot remove the package's folder")?;
    Ok(name)
}

fn place(mode: u32, from: &Path, to: &Path) -> anyhow::Result<()> {
    let whole = || format!("cannot copy {} into the package", from.display());
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent).with_context(whole)?;
    }
    fs::copy(from, to).with_context(whole)?;
    fs::set_permissions(to, fs::Permissions::from_mode(mode)).with_context(whole)
}

/// Debian wants manual pages compressed.
fn manual(from: &Path, to: &Path) -> anyhow::Result<()> {
    for entry in fs::read_dir(from).context("there are no manual pages")?.flatten() {
        place(0o644, &entry.path(), &to.join(entry.file_name()))?;
        let mut gzip = Command::new("gzip");
        quietly(gzip.args(["-9", "-n", "-f"]).arg(to.join(entry.file_name())), GZIP_HELP)?;
    }
    Ok(())
}

fn control(version: &str, architecture: &str, libc: &str, installed_kib: u64) -> String {
    format!(
        "Package: tidegate\n\
         Version: {version}\n\
         Architecture: {architecture}\n\
         Maintainer: The Tidegate authors <tidegate@localhost>\n\
         Installed-Size: {installed_kib}\n\
         Depends: libc6 (>= {libc}), libgcc-s1, ca-certificates\n\
         Section: net\n\
         Priority: optional\n\
         Description: gateway for LLM providers and MCP servers\n\
         \x20Tidegate stands in front of LLM providers and MCP servers and keeps agents working\n\
         \x20when those backends fail: circuit breakers, rate-limit windows, failover inside the\n\
         \x20request, a dashboard, and a simulator that runs the same routing code.\n"
    )
}

/// The newest version of the C library that a binary asks for, in `readelf`'s words.
fn libc_of(version_info: &str) -> Option<String> {
    let names = version_info.split("GLIBC_").skip(1);
    let versions = names.filter_map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let numbers = rest[..end].split('.').map(str::parse).collect::<Result<Vec<u32>, _>>();
        numbers.ok()
    });
    let newest = versions.max()?;
    Some(newest.iter().map(u32::to_string).collect::<Vec<_>>().join("."))
}

fn size_of_folder(folder: &Path) -> anyhow::Result<u64> {
    let entries = fs::read_dir(folder).context("cannot list the package's folder")?.flatten();
    let size = |path: PathBuf| match path.is_dir() {
        true => size_of_folder(&path),
        false => Ok(fs::metadata(&path).context("cannot look at a file of the package")?.len()),
    };
    entries.map(|entry| size(entry.path())).sum()
}

/// The time of the last commit; the beginning of time outside of a repository.
fn commit_time() -> String {
    let mut git = Command::new("git");
    let told = git.args(["log", "-1", "--format=%ct"]).current_dir(docs::root()).output();
    let told = told.map(|it| String::from_utf8_lossy(&it.stdout).trim().to_owned());
    told.ok().filter(|it| !it.is_empty()).unwrap_or_else(|| "0".to_owned())
}

/// What the package must hold.
fn wanted() -> Vec<String> {
    let plain = FILES.iter().map(|it| it.2).chain(COMPLETIONS.iter().map(|it| it.1));
    let pages = ["usr/bin/tidegate", "usr/share/man/man1/tidegate.1.gz"];
    let verbs = ["check", "serve", "sim", "doctor"]
        .map(|it| format!("usr/share/man/man1/tidegate-{it}.1.gz"));
    plain.chain(pages).map(str::to_owned).chain(verbs).collect()
}

/// Whether the package holds everything, owned by root, and its binary runs.
fn inspect(package: &Path, folder: &Path) -> anyhow::Result<()> {
    let list = quietly(Command::new("dpkg-deb").arg("--contents").arg(package), DPKG_HELP)?;
    judge(&list)?;
    let unpacked = folder.join("unpacked");
    drop(fs::remove_dir_all(&unpacked));
    let mut unpack = Command::new("dpkg-deb");
    quietly(unpack.arg("--extract").arg(package).arg(&unpacked), DPKG_HELP)?;
    let help = "the binary of the package does not run here";
    let binary = unpacked.join("usr/bin/tidegate");
    let version = quietly(Command::new(&binary).arg("--version"), help)?;
    ensure!(version.starts_with("tidegate "), "the packed binary calls itself `{version}`");
    let sim = quietly(Command::new(&binary).args(["sim", "hard-outage"]), help)?;
    ensure!(sim.contains("every expectation held"), "the packed simulator fails: {sim}");
    let unit = read(&unpacked.join("usr/lib/systemd/system/tidegate.service"))?;
    ensure!(unit.contains("ExecStart=/usr/bin/tidegate "), "the unit starts another program");
    fs::remove_dir_all(&unpacked).context("cannot remove the unpacked package")
}

/// Reads `dpkg-deb`'s list of contents.
fn judge(list: &str) -> anyhow::Result<()> {
    for path in wanted() {
        let has = list.lines().any(|line| line.ends_with(&format!(" ./{path}")));
        ensure!(has, "the package has no `{path}`");
    }
    let foreign = list.lines().find(|line| !line.contains(" root/root "));
    ensure!(foreign.is_none(), "a file of the package does not belong to root: {foreign:?}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{control, judge, libc_of, wanted};

    #[test]
    fn the_newest_version_of_the_c_library_is_what_the_package_needs() {
        let told = "  Name: GLIBC_2.9\n  Name: GLIBC_2.34  Flags: none\n  Name: GLIBC_2.2.5\n";
        assert_eq!(libc_of(told).as_deref(), Some("2.34"));
        assert_eq!(libc_of("Name: GCC_3.0"), None);
    }

    #[test]
    fn a_package_without_a_file_or_with_a_foreign_owner_is_refused() {
        let line = |path: &String| format!("-rw-r--r-- root/root  1 2026-01-01 00:00 ./{path}\n");
        let whole: String = wanted().iter().map(line).collect();
        assert!(judge(&whole).is_ok());
        let without: String = wanted().iter().skip(1).map(line).collect();
        assert!(judge(&without).is_err());
        assert!(judge(&whole.replace("root/root", "me/me")).is_err());
    }

    #[test]
    fn the_control_file_is_one_that_dpkg_reads() {
        let text = control("1.2.3", "amd64", "2.34", 7);
        for line in ["Package: tidegate", "Version: 1.2.3", "Depends: libc6 (>= 2.34), "] {
            assert!(text.lines().any(|it| it.starts_with(line)), "{text}");
        }
        let is_field = |it: &str| it.starts_with(' ') || it.split_once(": ").is_some();
        assert!(text.lines().all(is_field) && text.ends_with('\n'), "{text}");
    }
}
