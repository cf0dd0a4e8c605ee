//! Looks for the config file: the one that was named (`--config`, else `TIDEGATE_CONFIG`), else
//! `tidegate.yaml` or `tidegate.yml` in the working folder, else in the user's config folder
//! (`$XDG_CONFIG_HOME/tidegate`, `~/.config/tidegate`).
//!
//! A file that was named is taken whether it exists or not: reading it says what is wrong, and
//! another file must never stand in for it silently. Nothing is read here.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// The names a config file has where nobody named one, the usual one first.
const NAMES: [&str; 2] = ["tidegate.yaml", "tidegate.yml"];

/// Names the config file where no argument does.
const VARIABLE: &str = "TIDEGATE_CONFIG";

/// There is no config file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NotFound {
    /// Where it was looked for.
    pub(crate) places: Vec<PathBuf>,
    /// A file in the working folder that may have been meant.
    pub(crate) look_alike: Option<PathBuf>,
}

impl NotFound {
    /// What was looked for, in words.
    pub(crate) fn message(&self) -> String {
        let shown: Vec<_> =
            self.places.iter().map(|path| format!("`{}`", path.display())).collect();
        match &self.look_alike {
            Some(path) => format!(
                "no config file: there is no `{}`, but there is a `{}`",
                NAMES[0],
                path.display()
            ),
            None => format!("no config file: there is no {}", shown.join(" and no ")),
        }
    }
}

/// The config file to use, or where it was looked for.
pub(crate) fn config_file(named: Option<&Path>) -> Result<PathBuf, NotFound> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(path) = named.map(Path::to_owned).or_else(|| variable(VARIABLE).map(PathBuf::from))
    {
        return Ok(path);
    }
    let folders = folders(variable);
    let named = |folder: &PathBuf| NAMES.map(|name| folder.join(name));
    let found = folders.iter().flat_map(named).find(|path| path.symlink_metadata().is_ok());
    found.ok_or_else(|| NotFound {
        places: folders.iter().map(|folder| folder.join(NAMES[0])).collect(),
        look_alike: look_alike(Path::new(".")),
    })
}

/// Where a file is looked for, in order.
fn folders(variable: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let folder = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    // The XDG rules: a relative XDG_CONFIG_HOME is invalid and counts as unset.
    let user = folder("XDG_CONFIG_HOME")
        .filter(|path| path.is_absolute())
        .or_else(|| folder("HOME").map(|home| home.join(".config")));
    let here = PathBuf::new();
    std::iter::once(here).chain(user.map(|path| path.join("tidegate"))).collect()
}

/// The first file of a folder, by name, that looks like a config file under another name.
fn look_alike(folder: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?.flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| is_look_alike(name)).min().map(PathBuf::from)
}

fn is_look_alike(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.starts_with("tidegate") && (name.contains(".yaml") || name.contains(".yml"))
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::{config_file, folders, is_look_alike};

    fn check(xdg: &str, home: &str, expected: &[&str]) {
        let found = folders(|name| match name {
            "XDG_CONFIG_HOME" => Some(xdg.into()),
            "HOME" => Some(home.into()),
            _ => None,
        });
        let expected: Vec<_> = expected.iter().map(PathBuf::from).collect();
        assert_eq!(found, expected, "XDG_CONFIG_HOME={xdg} HOME={home}");
    }

    #[test]
    fn the_working_folder_comes_before_the_users_config_folder() {
        check("/x", "/h", &["", "/x/tidegate"]);
    }

    #[test]
    fn an_empty_or_relative_config_home_falls_back_to_the_home_folder() {
        check("", "/h", &["", "/h/.config/tidegate"]);
        check("rel", "/h", &["", "/h/.config/tidegate"]);
        check("", "", &[""]);
    }

    #[test]
    fn a_named_file_is_taken_even_if_it_does_not_exist() {
        let named = Path::new("no/such.yaml");
        assert_eq!(config_file(Some(named)), Ok(named.to_owned()));
    }

    #[test]
    fn a_file_that_is_nearly_called_so_is_recognised() {
        for name in ["tidegate.prod.yaml", "Tidegate.yaml", "tidegate.yaml.txt", "tidegate.YML"] {
            assert!(is_look_alike(name), "{name}");
        }
        for name in ["config.yaml", "tidegate.toml", "tidegate", "my-tidegate.yaml"] {
            assert!(!is_look_alike(name), "{name}");
        }
    }
}
