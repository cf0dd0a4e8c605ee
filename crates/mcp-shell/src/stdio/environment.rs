//! What a program sees of the gateway's environment: a short list, and the config's own additions.
//!
//! The gateway's environment holds providers' keys, so it is never handed on (S38). The list holds
//! what finding and running a program takes, and no more: it is the one that MCP's own libraries
//! hand on, without the terminal (there is none) and with locale, time zone and the folder for
//! temporary files. The config's `env` comes last and wins.

use std::ffi::OsString;

use tidegate_config::secret::Secret;

/// The variables that are handed on, where they are set. The doc of the key `env` names them.
const HANDED_ON: [&str; 9] =
    ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ", "TMPDIR"];

/// The whole environment of a program.
pub(super) fn environment(
    ours: impl Fn(&str) -> Option<OsString>,
    added: &[(String, Secret)],
) -> Vec<(OsString, OsString)> {
    let handed_on = HANDED_ON.iter().filter_map(|name| Some((name.into(), ours(name)?)));
    let added = added.iter().map(|(name, value)| (name.into(), value.expose().into()));
    handed_on.chain(added).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::secret;
    use super::*;

    #[test]
    fn s38_a_program_gets_the_list_and_the_configs_additions_only() {
        let ours = |name: &str| match name {
            "PATH" | "HOME" | "GROQ_API_KEY" | "AWS_SECRET_ACCESS_KEY" => {
                Some(OsString::from(format!("our {name}")))
            }
            _ => None,
        };
        let added = [("HOME".to_owned(), secret("/data")), ("TOKEN".to_owned(), secret("t0ken"))];
        let expected = [
            ("PATH", "our PATH"),
            ("HOME", "our HOME"),
            // Later ones win when a program is started.
            ("HOME", "/data"),
            ("TOKEN", "t0ken"),
        ];
        let expected = expected.map(|(name, value)| (name.into(), value.into()));
        assert_eq!(environment(ours, &added), expected);
    }
}
