//! One site's part of a state directory.

use std::collections::HashSet;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use super::disk::{self, Durability};
use super::{StateError, json};
use crate::source::enforcement::Enforcement;
use crate::source::gate::Pending;
use crate::source::hash::Hash;
use crate::source::history::{History, HistoryEntry};
use crate::source::versions::Versions;

const STATE: &str = "state.json";
const HISTORY: &str = "history.jsonl";

/// Octets of history beyond which it is written anew with what is kept of it.
const MAX_HISTORY_OCTETS: u64 = 128 << 10;

/// Reads and writes what one site remembers.
pub(in crate::source) struct SiteState {
    folder: PathBuf,
    /// What was damaged when it was read, and why the last write failed.
    trouble: Mutex<[Option<String>; 2]>,
    /// The bytes that stand in the folder, so that none is written twice.
    written: Mutex<HashSet<Hash>>,
}

/// What a site knows again.
#[derive(Default)]
pub(in crate::source) struct Remembered {
    pub(in crate::source) versions: Versions,
    pub(in crate::source) pending: Option<Pending>,
    pub(in crate::source) history: History,
    pub(in crate::source) enforcement: Enforcement,
}

impl SiteState {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder, trouble: Mutex::default(), written: Mutex::default() }
    }

    /// Everything that is there and whole.
    pub(in crate::source) fn load(&self, now: SystemTime) -> Remembered {
        let (enforcement, trouble) = disk::read_switch(&self.folder);
        self.note(trouble);
        let mut remembered = Remembered { enforcement, history: self.load_history(now), ..Remembered::default() };
        let path = self.folder.join(STATE);
        let bytes = disk::read(&path).unwrap_or_else(|trouble| {
            self.note(Some(trouble));
            None
        });
        let Some(bytes) = bytes else { return remembered };
        let Some(listed) = json::read(&bytes, now) else {
            self.note(Some(format!("{}: this is damaged and ignored", path.display())));
            return remembered;
        };
        let versions = listed.versions.into_iter();
        let versions = versions.filter_map(|version| self.bytes(version.hash).map(|bytes| version.with(bytes)));
        remembered.versions = Versions::from_list(versions.collect());
        let pending = listed.pending;
        remembered.pending = pending.and_then(|pending| self.bytes(pending.hash).map(|bytes| pending.with(bytes)));
        remembered
    }

    /// Writes down which versions there are; their bytes before, and what is not needed any more goes after.
    pub(in crate::source) fn save(&self, versions: &Versions, pending: Option<&Pending>, durability: Durability) {
        let kept = versions.iter().map(|version| (version.hash, &version.bytes));
        let kept: Vec<_> = kept.chain(pending.map(|pending| (pending.hash(), pending.bytes()))).collect();
        let result = (|| {
            for (hash, bytes) in &kept {
                if !self.written().contains(hash) {
                    disk::write(&self.path_of(*hash), bytes, durability)?;
                    self.written().insert(*hash);
                }
            }
            disk::write(&self.folder.join(STATE), &json::write(versions, pending), durability)
        })();
        if self.told(result).is_ok() {
            let kept: HashSet<Hash> = kept.iter().map(|(hash, _)| *hash).collect();
            let gone: Vec<Hash> = self.written().iter().filter(|hash| !kept.contains(hash)).copied().collect();
            for hash in gone {
                // Nothing refers to it; one that stays costs its size.
                let _ = fs::remove_file(self.path_of(hash));
                self.written().remove(&hash);
            }
        }
    }

    /// Adds an entry to the history on disk; one that has grown is written anew with what `history` holds of it.
    pub(in crate::source) fn append(&self, entry: &HistoryEntry, history: &History) {
        let path = self.folder.join(HISTORY);
        let is_grown = fs::metadata(&path).is_ok_and(|metadata| metadata.len() >= MAX_HISTORY_OCTETS);
        let result = if is_grown {
            let lines: Vec<u8> = history.iter().flat_map(json::write_entry).collect();
            disk::write(&path, &lines, Durability::Process)
        } else {
            append(&path, &json::write_entry(entry))
        };
        let _ = self.told(result);
    }

    /// Writes the kill switch down.
    pub(in crate::source) fn set_enforcement(&self, enforcement: Enforcement) -> Result<(), StateError> {
        self.told(disk::write_switch(&self.folder, enforcement))
    }

    /// What is wrong, if anything is.
    pub(in crate::source) fn trouble(&self) -> Option<String> {
        let [damaged, unwritten] = self.troubles().clone();
        unwritten.or(damaged)
    }

    fn load_history(&self, now: SystemTime) -> History {
        let mut history = History::default();
        let path = self.folder.join(HISTORY);
        match disk::read(&path) {
            Ok(bytes) => {
                let bytes = bytes.unwrap_or_default();
                let entries = bytes.split(|byte| *byte == b'\n').filter_map(|line| json::read_entry(line, now));
                entries.for_each(|entry| history.push(entry));
                if !matches!(*bytes, [] | [.., b'\n']) {
                    // The last line was cut: the next one must not become a part of it.
                    let _ = self.told(append(&path, b"\n"));
                }
            }
            Err(trouble) => self.note(Some(trouble)),
        }
        history
    }

    /// The bytes of a version, if they are what their name says.
    fn bytes(&self, hash: Hash) -> Option<Arc<[u8]>> {
        let path = self.path_of(hash);
        match disk::read(&path) {
            Ok(Some(bytes)) if Hash::of(&bytes) == hash => {
                self.written().insert(hash);
                return Some(bytes.into());
            }
            Ok(Some(_)) => self.note(Some(format!("{}: this is damaged and ignored", path.display()))),
            Ok(None) => self.note(Some(format!("{}: this is missing", path.display()))),
            Err(trouble) => self.note(Some(trouble)),
        }
        None
    }

    fn path_of(&self, hash: Hash) -> PathBuf {
        self.folder.join(format!("{}.txt", hash.hex()))
    }

    fn written(&self) -> MutexGuard<'_, HashSet<Hash>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, trouble: Option<String>) {
        if let Some(trouble) = trouble {
            #[cfg(feature = "tracing")]
            tracing::warn!("{trouble}");
            self.troubles()[0] = Some(trouble);
        }
    }

    /// A write that succeeds ends the trouble of the one before.
    fn told(&self, result: Result<(), StateError>) -> Result<(), StateError> {
        let trouble = result.as_ref().err().map(ToString::to_string);
        let mut troubles = self.troubles();
        #[cfg(feature = "tracing")]
        if let Some(trouble) = trouble.as_ref().filter(|trouble| troubles[1].as_ref() != Some(trouble)) {
            tracing::warn!("{trouble}");
        }
        troubles[1] = trouble;
        result
    }

    fn troubles(&self) -> MutexGuard<'_, [Option<String>; 2]> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lines are short enough to be written at once; one that is cut by the end of the process is skipped when read.
fn append(path: &Path, line: &[u8]) -> Result<(), StateError> {
    let open = || OpenOptions::new().create(true).append(true).open(path);
    let file = open().or_else(|_| {
        fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
        open()
    });
    file.and_then(|mut file| file.write_all(line)).map_err(|cause| StateError::new(path, cause))
}
