//! The tables of the history file, and whether a file is one.

use std::io;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

/// What SQLite files of ours say in their head: `TGhi`.
const APPLICATION_ID: i64 = 0x5447_6869;
/// The version of the tables. A newer one is not touched.
const VERSION: i64 = 1;
/// How long another process that reads the file may hold us up.
const BUSY: Duration = Duration::from_secs(2);

/// What all SQLite files begin with.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

const TABLES: &str = "
CREATE TABLE decisions (
  row INTEGER PRIMARY KEY,
  id TEXT NOT NULL,
  instance TEXT NOT NULL,
  n INTEGER NOT NULL,
  at_unix_ms INTEGER NOT NULL,
  kind TEXT NOT NULL,
  route TEXT NOT NULL,
  caller TEXT NOT NULL,
  result TEXT NOT NULL,
  session TEXT,
  notable INTEGER NOT NULL,
  attempts TEXT NOT NULL,
  body TEXT NOT NULL
) STRICT;
CREATE INDEX decisions_at ON decisions (at_unix_ms);
CREATE INDEX decisions_id ON decisions (id);
CREATE TABLE events (
  row INTEGER PRIMARY KEY,
  instance TEXT NOT NULL,
  seq INTEGER NOT NULL,
  at_unix_ms INTEGER NOT NULL,
  name TEXT NOT NULL,
  body TEXT NOT NULL
) STRICT;
CREATE INDEX events_at ON events (at_unix_ms);
";

/// Why there is no history.
#[derive(Debug, thiserror::Error)]
pub enum HistoryProblem {
    /// It is some other file.
    #[error("the file is not a history of tidegate; name another file in `history.file`")]
    Foreign,
    /// A newer version wrote it.
    #[error(
        "the file has version {found}, and this program knows {VERSION}: update tidegate, or \
             name another file in `history.file`"
    )]
    Newer {
        /// Its version.
        found: i64,
    },
    /// SQLite says so.
    #[error("{0}")]
    Sqlite(#[from] rusqlite::Error),
    /// The file cannot be read.
    #[error("{0}")]
    Unreadable(io::Error),
    /// There is no thread to write with.
    #[error("no thread can be started: {0}")]
    Thread(io::Error),
}

/// Opens a file to write, and makes it if there is none.
pub(super) fn open(path: &Path) -> Result<Connection, HistoryProblem> {
    let is_new = check_head(path)?;
    if is_new {
        make_private(path).map_err(HistoryProblem::Unreadable)?;
    }
    let mut connection = Connection::open(path)?;
    connection.busy_timeout(BUSY)?;
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let application = number("application_id")?;
    if !is_new && application != APPLICATION_ID {
        return Err(HistoryProblem::Foreign);
    }
    let found = number("user_version")?;
    if found > VERSION {
        return Err(HistoryProblem::Newer { found });
    }
    if found == 0 {
        connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    }
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    if found == 0 {
        let transaction = connection.transaction()?;
        transaction.execute_batch(TABLES)?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", VERSION)?;
        transaction.commit()?;
    }
    // A damaged file is found now, and not by a query in the middle of an incident.
    let checked: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if checked != "ok" {
        // SQLite begins with a line that names the database.
        let checked = checked.lines().last().unwrap_or_default();
        return Err(rusqlite::Error::SqliteFailure(
            rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT),
            Some(format!("the file is damaged: {checked}; move it away")),
        )
        .into());
    }
    Ok(connection)
}

/// Opens a file to read.
pub(super) fn open_to_read(path: &Path) -> Result<Connection, HistoryProblem> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY)?;
    Ok(connection)
}

/// Opens a file that somebody names, which may be anything.
pub(super) fn open_named(path: &Path) -> Result<Connection, HistoryProblem> {
    if check_head(path)? {
        let problem =
            io::Error::new(io::ErrorKind::NotFound, "there is no such file, or it is empty");
        return Err(HistoryProblem::Unreadable(problem));
    }
    let connection = open_to_read(path)?;
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    if number("application_id")? != APPLICATION_ID {
        return Err(HistoryProblem::Foreign);
    }
    let found = number("user_version")?;
    if found > VERSION {
        return Err(HistoryProblem::Newer { found });
    }
    Ok(connection)
}

/// Whether the file has still to be made. One that is something else is refused before SQLite
/// could change it.
fn check_head(path: &Path) -> Result<bool, HistoryProblem> {
    use std::io::Read;
    let mut file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(HistoryProblem::Unreadable(error)),
    };
    let mut head = Vec::new();
    let read = (&mut file).take(MAGIC.len() as u64).read_to_end(&mut head);
    read.map_err(HistoryProblem::Unreadable)?;
    match head.as_slice() {
        [] => Ok(true),
        head if head == MAGIC => Ok(false),
        _ => Err(HistoryProblem::Foreign),
    }
}

/// Makes an empty file that only its owner can read: who used what is nobody else's business.
/// SQLite gives the write-ahead log beside it the same permissions, so they are set first.
fn make_private(path: &Path) -> io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    let file = options.open(path)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
    }
    drop(file);
    Ok(())
}
