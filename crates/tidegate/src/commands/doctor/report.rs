//! The file of `--report`: the findings, the machine and the config, without secrets.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use serde_json::{Value, json};
use tidegate_config::Config;
use tidegate_config::redact::redacted;

/// Only its owner reads a report, until somebody decides otherwise.
const MODE: u32 = 0o600;

/// Writes the report into a new file.
pub(super) fn write(path: &Path, mut report: Value, config: Option<&Config>) -> io::Result<()> {
    report["machine"] = json!({
        "system": std::env::consts::OS,
        "architecture": std::env::consts::ARCH,
        "threads": std::thread::available_parallelism().map_or(0, usize::from),
    });
    let file = config.and_then(|config| serde_json::to_value(&config.file).ok());
    report["config"] = file.map_or(Value::Null, |file| redacted("", file));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(MODE).open(path)?;
    file.write_all(format!("{report:#}\n").as_bytes())
}
