//! Looks for the config file: the one that was named, else `tidegate.yaml` in the working
//! folder, else in the user's config folder (`$XDG_CONFIG_HOME/tidegate`, `~/.config/tidegate`).
//!
//! A file that was named is taken whether it exists or not: reading it says what is wrong, and
//! another file must never stand in for it silently. Nothing is read here.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The name a config file has where nobody named one.
const NAME: &str = "tidegate.yaml";

/// The config file to use, or the paths where there is none.
pub(crate) fn config_file(named: Option<&Path>) -> Result<PathBuf, Vec<PathBuf>> {
    if let Some(path) = named {
        return Ok(path.to_owned());
    }
    let places = places(|name| std::env::var_os(name));
    places.iter().find(|path| path.symlink_metadata().is_ok()).cloned().ok_or(places)
}

/// Where a file is looked for, in order.
fn places(variable: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let folder = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    // The XDG rules: a relative XDG_CONFIG_HOME is invalid and counts as unset.
    let user = folder("XDG_CONFIG_HOME")
        .filter(|path| path.is_absolute())
        .or_else(|| folder("HOME").map(|home| home.join(".config")));
    let here = PathBuf::from(NAME);
    std::iter::once(here).chain(user.map(|path| path.join("tidegate").join(NAME))).collect()
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::{config_file, places};

    fn check(xdg: &str, home: &str, expected: &[&str]) {
        let found = places(|name| match name {
            "XDG_CONFIG_HOME" => Some(xdg.into()),
            "HOME" => Some(home.into()),
            _ => None,
        });
        let expected: Vec<_> = expected.iter().map(PathBuf::from).collect();
        assert_eq!(found, expected, "XDG_CONFIG_HOME={xdg} HOME={home}");
    }

    #[test]
    fn the_working_folder_comes_before_the_users_config_folder() {
        check("/x", "/h", &["tidegate.yaml", "/x/tidegate/tidegate.yaml"]);
    }

    #[test]
    fn an_empty_or_relative_config_home_falls_back_to_the_home_folder() {
        check("", "/h", &["tidegate.yaml", "/h/.config/tidegate/tidegate.yaml"]);
        check("rel", "/h", &["tidegate.yaml", "/h/.config/tidegate/tidegate.yaml"]);
        check("", "", &["tidegate.yaml"]);
    }

    #[test]
    fn a_named_file_is_taken_even_if_it_does_not_exist() {
        let named = Path::new("no/such.yaml");
        assert_eq!(config_file(Some(named)), Ok(named.to_owned()));
    }
}
