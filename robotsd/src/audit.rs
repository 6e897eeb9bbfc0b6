//! The audit file. It records who made or requested each change, and which requests were refused.
//! The file has one JSON object per line, and only the owner of the file can read it.
//!
//! Accepting a version, rolling back and turning enforcement on have two records with the same ID.
//! The first record, `started`, is written before the action; if it cannot be written, the action
//! is refused. The second record contains the outcome. All other actions have only the record with
//! the outcome, so a full disk cannot prevent an operator from turning enforcement off.

use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use tower_robots::internals::is_cut;

use crate::date::rfc3339_millis;
use crate::files;
use crate::render;

pub(crate) const AUDIT_FILE: &str = "audit.jsonl";

/// Maximum length of strings from clients in a record, in characters.
const MAX_TEXT_LENGTH: usize = 300;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct AuditRecord {
    pub(crate) event: String,
    /// Random ID, which both records of an action share.
    pub(crate) id: String,
    pub(crate) ts: String,
    /// Name of a token, name of a user that a proxy authenticated, or user ID such as `uid 1000`;
    /// `None` if unknown.
    pub(crate) who: Option<String>,
    /// How the client was identified: `socket`, `token`, `certificate`, `proxy`, or `address` (only
    /// the address is known). For actions without a client: `command` (a command while no robotsd
    /// was running) or `file` (a change of the config).
    pub(crate) how: String,
    pub(crate) from: Option<String>,
    /// Name of this replica, or the host name of this machine.
    pub(crate) replica: String,
    /// Path of the request without its leading slash: `enforce`, `accept`, `rollback`, `reload`,
    /// `upgrade`, or the path of a refused GET request. `mode` if the config changed a mode.
    pub(crate) action: String,
    /// Name of the site; `*` for all sites; `None` if the action concerns the whole process.
    pub(crate) site: Option<String>,
    /// State before the action: the position of the kill switch (`on` or `off`), the hash of the
    /// live version, or the mode.
    pub(crate) before: Option<String>,
    /// State after the action, in the same form as `before`.
    pub(crate) after: Option<String>,
    pub(crate) reason: Option<String>,
    /// Result of the action: `started`, `done`, `failed` or `refused`.
    pub(crate) result: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
    /// Number of earlier refusals that were not recorded because of the limit per hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) left_out: Option<usize>,
}

impl AuditRecord {
    pub(crate) fn new(how: &str, action: &str) -> Self {
        let now = SystemTime::now();
        Self {
            event: "audit".to_owned(),
            id: format!("{:016x}", RandomState::new().hash_one(now)),
            ts: rfc3339_millis(now),
            how: how.to_owned(),
            action: action.to_owned(),
            ..Self::default()
        }
    }

    pub(crate) fn with_result(&self, result: &str) -> Self {
        Self { ts: rfc3339_millis(SystemTime::now()), result: result.to_owned(), ..self.clone() }
    }
}

pub(crate) fn cut(text: &str) -> String {
    render::truncated(text, MAX_TEXT_LENGTH)
}

/// Returns the host name of this machine, which is the default name of the replica.
pub(crate) fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Appends a record, and syncs the file to the disk. Blocks.
pub(crate) fn append(path: &Path, record: &AuditRecord) -> Result<(), String> {
    let written = || {
        let mut line = serde_json::to_vec(record)?;
        line.push(b'\n');
        let mut file = open(path)?;
        // If the previous line is incomplete, for example because the disk was full, the record
        // must begin on a new line.
        if is_cut(&mut file)? {
            line.insert(0, b'\n');
        }
        // The line is written with a single call, because another process may append to the file at
        // the same time.
        file.write_all(&line)?;
        file.sync_data()
    };
    written().map_err(|error| format!("{}: the audit file cannot be written: {error}", path.display()))
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).append(true);
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let folder = files::folder_of(path);
            fs::create_dir_all(folder)?;
            let file = options.create(true).open(path)?;
            // If root creates the file, but robotsd runs as another user, robotsd must still be
            // able to write to the file. The file therefore gets the owner of its folder.
            if let Ok(of) = fs::metadata(folder) {
                use std::os::unix::fs::{MetadataExt, fchown};
                let _ = fchown(&file, Some(of.uid()), Some(of.gid()));
            }
            Ok(file)
        }
        opened => opened,
    }
}

/// Reads an audit file. Returns the last record of each ID, and the number of invalid lines.
pub(crate) fn read(path: &Path) -> io::Result<(Vec<AuditRecord>, usize)> {
    let (file, _) = files::open(path)?;
    let (mut records, mut broken) = (Vec::<AuditRecord>::new(), 0);
    let mut places = std::collections::HashMap::new();
    for line in BufReader::new(file).split(b'\n') {
        let line = line?;
        match serde_json::from_slice::<AuditRecord>(&line) {
            Ok(record) => match places.get(&record.id) {
                Some(at) => records[*at] = record,
                None => {
                    places.insert(record.id.clone(), records.len());
                    records.push(record);
                }
            },
            Err(_) if line.is_empty() => {}
            Err(_) => broken += 1,
        }
    }
    Ok((records, broken))
}

pub(crate) fn audit_path(configured: Option<PathBuf>, state_dir: Option<&Path>) -> Option<PathBuf> {
    configured.or_else(|| state_dir.map(|folder| folder.join(AUDIT_FILE)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_read_once_with_its_result_even_after_a_truncated_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("made/audit.jsonl");
        let [first, second] = ["accept", "enforce"].map(|action| AuditRecord::new("token", action));
        append(&path, &first.with_result("started")).unwrap();
        append(&path, &second.with_result("done")).unwrap();
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"{\"event\":\"audit\",\"id\":\"").unwrap();
        append(&path, &first.with_result("failed")).unwrap();
        let (records, broken) = read(&path).unwrap();
        let found: Vec<_> = records.iter().map(|record| (&*record.action, &*record.result)).collect();
        assert_eq!((found, broken), (vec![("accept", "failed"), ("enforce", "done")], 1));
        assert_eq!((&records[0].id, records[0].id.len()), (&first.id, 16));
        assert!(append(Path::new("/proc/no/such"), &first).unwrap_err().contains("the audit file cannot be written"));
    }

    #[test]
    fn only_the_owner_can_read_the_audit_file() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        append(&path, &AuditRecord::new("token", "accept")).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
