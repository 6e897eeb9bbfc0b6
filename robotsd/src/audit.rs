//! The audit: who changed what, and who was refused to, as lines of JSON that only their owner reads.
//!
//! Accepting, rolling back and turning enforcement on are there twice under one id: as `started`, so that none is done that cannot be
//! written down, and with the outcome. Anything else is written afterwards: nothing keeps enforcement from being turned off.

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

/// Its name in the state directory.
pub(crate) const AUDIT_FILE: &str = "audit.jsonl";

/// Characters of a text that a client chose.
const LONGEST: usize = 300;

/// Who wanted what, and what came of it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct AuditRecord {
    pub(crate) event: String,
    /// The same in both lines of a change.
    pub(crate) id: String,
    pub(crate) ts: String,
    /// The name of a token or of a proxy's user, or `uid 1000`; none where that is not known.
    pub(crate) who: Option<String>,
    /// `socket`, `token`, `certificate`, `proxy`, `address` (anyone may), `command` (no robotsd ran), `file` (the config).
    pub(crate) how: String,
    /// The address of the client.
    pub(crate) from: Option<String>,
    /// The name of the replica, or of the machine.
    pub(crate) replica: String,
    /// The path without its slash: `enforce`, `accept`, `rollback`, `reload`, `upgrade`, or of a refused question; `mode` of a config.
    pub(crate) action: String,
    /// `*` for every site; none where it is about the process.
    pub(crate) site: Option<String>,
    /// The position of the switch, the hash of the version that was live, or the mode; and the one now.
    pub(crate) before: Option<String>,
    pub(crate) after: Option<String>,
    /// As the client gives it.
    pub(crate) reason: Option<String>,
    /// `started`, `done`, `failed`, `refused`.
    pub(crate) result: String,
    /// Why it was refused, or failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
    /// Refusals before this one that are not written: there were too many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) left_out: Option<usize>,
}

impl AuditRecord {
    /// An attempt at something, now, on this machine.
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

    /// The same, with what came of it by now.
    pub(crate) fn with(&self, result: &str) -> Self {
        Self { ts: rfc3339_millis(SystemTime::now()), result: result.to_owned(), ..self.clone() }
    }
}

/// A text of a client, cut where it is long.
pub(crate) fn cut(text: &str) -> String {
    render::cut(text, LONGEST)
}

/// The name of this machine, as the kernel has it: that of a replica, unless `[fleet]` has another.
pub(crate) fn machine() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Appends a record, which is on the disk then. Blocks.
pub(crate) fn append(path: &Path, record: &AuditRecord) -> Result<(), String> {
    let written = || {
        let mut line = serde_json::to_vec(record)?;
        line.push(b'\n');
        let mut file = open(path)?;
        // A full disk may have cut the line before: it is not to take this one with it.
        if is_cut(&mut file)? {
            line.insert(0, b'\n');
        }
        // In one piece: another process may write too.
        file.write_all(&line)?;
        file.sync_data()
    };
    written().map_err(|error| format!("{}: the audit cannot be written: {error}", path.display()))
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
            // Made by root for a robotsd that runs as another user, who has to write it too.
            if let Ok(of) = fs::metadata(folder) {
                use std::os::unix::fs::{MetadataExt, fchown};
                let _ = fchown(&file, Some(of.uid()), Some(of.gid()));
            }
            Ok(file)
        }
        opened => opened,
    }
}

/// The records of a file, each with the last that is known of it, and how many lines are none.
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

/// Where the audit is: as the config says, else in the state directory.
pub(crate) fn place(of_config: Option<PathBuf>, state_dir: Option<&Path>) -> Option<PathBuf> {
    of_config.or_else(|| state_dir.map(|folder| folder.join(AUDIT_FILE)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_read_once_with_its_outcome_also_behind_a_line_that_was_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("made/audit.jsonl");
        let [first, second] = ["accept", "enforce"].map(|action| AuditRecord::new("token", action));
        append(&path, &first.with("started")).unwrap();
        append(&path, &second.with("done")).unwrap();
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"{\"event\":\"audit\",\"id\":\"").unwrap();
        append(&path, &first.with("failed")).unwrap();
        let (records, broken) = read(&path).unwrap();
        let found: Vec<_> = records.iter().map(|record| (&*record.action, &*record.result)).collect();
        assert_eq!((found, broken), (vec![("accept", "failed"), ("enforce", "done")], 1));
        assert_eq!((&records[0].id, records[0].id.len()), (&first.id, 16));
        assert!(append(Path::new("/proc/no/such"), &first).unwrap_err().contains("the audit cannot be written"));
    }

    #[test]
    fn only_its_owner_reads_it() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        append(&path, &AuditRecord::new("token", "accept")).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
