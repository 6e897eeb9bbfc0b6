//! One site's part of a state directory.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use super::disk::{self, Durability};
use super::writer::Writer;
use super::{StateError, json};
use crate::source::enforcement::Enforcement;
use crate::source::gate::Pending;
use crate::source::hash::Hash;
use crate::source::history::{History, HistoryEntry, MAX_HISTORY};
use crate::source::versions::Versions;

const STATE: &str = "state.json";
const HISTORY: &str = "history.jsonl";

/// Octets of history beyond which it is written anew with what is kept of it.
const MAX_HISTORY_OCTETS: u64 = 128 << 10;

/// Reads what one site remembers, and sees to it that it is written down: by a thread that does so for all sites, or at
/// the latest when this is dropped.
pub(in crate::source) struct SiteState {
    notes: Arc<Notes>,
    writer: Arc<Writer>,
}

/// What a site has on disk, and what it has not yet.
pub(super) struct Notes {
    folder: PathBuf,
    /// What was damaged when it was read, and why the last write failed.
    trouble: Mutex<[Option<String>; 2]>,
    /// Held for a moment only.
    unwritten: Mutex<Unwritten>,
    /// The bytes that stand in the folder and what they outlive, so that none is written twice. Held while anything is
    /// written.
    written: Mutex<Written>,
}

type Written = HashMap<Hash, Durability>;

/// What has come since the last write. It holds one state and no more entries than the history, however many come.
#[derive(Default)]
struct Unwritten {
    state: Option<State>,
    entries: VecDeque<HistoryEntry>,
    /// Whether the writer was called for it.
    is_queued: bool,
}

struct State {
    versions: Versions,
    pending: Option<Pending>,
    durability: Durability,
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
    pub(super) fn new(folder: PathBuf, writer: Arc<Writer>) -> Self {
        Self { notes: Arc::new(Notes::new(folder)), writer }
    }

    /// Everything that is there and whole.
    pub(in crate::source) fn load(&self, now: SystemTime) -> Remembered {
        self.notes.load(now)
    }

    /// Sees to it that it is written down which versions there are.
    pub(in crate::source) fn save(&self, versions: Versions, pending: Option<Pending>, durability: Durability) {
        let before = {
            let mut unwritten = self.notes.unwritten();
            let before = unwritten.state.take();
            let durability = before.as_ref().map_or(durability, |before| before.durability.max(durability));
            unwritten.state = Some(State { versions, pending, durability });
            before
        };
        // It may hold the last of a large file.
        drop(before);
        self.writer.call(&self.notes);
    }

    /// Sees to it that an entry is added to the history on disk.
    pub(in crate::source) fn append(&self, entry: HistoryEntry) {
        {
            let mut unwritten = self.notes.unwritten();
            if unwritten.entries.len() >= MAX_HISTORY {
                unwritten.entries.pop_front();
            }
            unwritten.entries.push_back(entry);
        }
        self.writer.call(&self.notes);
    }

    /// Writes down now what has not been.
    pub(in crate::source) fn write(&self) {
        self.notes.write();
    }

    /// Writes the kill switch down.
    pub(in crate::source) fn set_enforcement(&self, enforcement: Enforcement) -> Result<(), StateError> {
        self.notes.told(disk::write_switch(&self.notes.folder, enforcement))
    }

    /// What is wrong, if anything is.
    pub(in crate::source) fn trouble(&self) -> Option<String> {
        let [damaged, unwritten] = self.notes.troubles().clone();
        unwritten.or(damaged)
    }
}

impl Drop for SiteState {
    fn drop(&mut self) {
        self.notes.write();
    }
}

impl Notes {
    fn new(folder: PathBuf) -> Self {
        Self { folder, trouble: Mutex::default(), unwritten: Mutex::default(), written: Mutex::default() }
    }

    /// Marks it as one that the writer was called for; whether it was already.
    pub(super) fn queue(&self) -> bool {
        std::mem::replace(&mut self.unwritten().is_queued, true)
    }

    /// Writes what has come since the last time. What could not be written comes again with the next state.
    pub(super) fn write(&self) {
        // First, so that what is taken last is written last.
        let mut written = self.written();
        let Unwritten { state, entries, .. } = std::mem::take(&mut *self.unwritten());
        if let Some(state) = state {
            self.save(&mut written, &state);
        }
        if !entries.is_empty() {
            self.append(&entries);
        }
    }

    /// Everything that is there and whole.
    fn load(&self, now: SystemTime) -> Remembered {
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
    fn save(&self, written: &mut Written, state: &State) {
        let State { versions, pending, durability } = state;
        let kept = versions.iter().map(|version| (version.hash, &version.bytes));
        let kept: Vec<_> = kept.chain(pending.iter().map(|pending| (pending.hash(), pending.bytes()))).collect();
        let result = (|| {
            for (hash, bytes) in &kept {
                if written.get(hash).is_none_or(|had| had < durability) {
                    disk::write(&self.path_of(*hash), bytes, *durability)?;
                    written.insert(*hash, *durability);
                }
            }
            disk::write(&self.folder.join(STATE), &json::write(versions, pending.as_ref()), *durability)
        })();
        if self.told(result).is_ok() {
            let kept: HashSet<Hash> = kept.iter().map(|(hash, _)| *hash).collect();
            written.retain(|hash, _| {
                let stays = kept.contains(hash);
                if !stays {
                    // Nothing refers to it; one that cannot be removed costs its size.
                    let _ = fs::remove_file(self.path_of(*hash));
                }
                stays
            });
        }
    }

    /// Adds to the history on disk; one that has grown is written anew with the last of it.
    fn append(&self, entries: &VecDeque<HistoryEntry>) {
        let path = self.folder.join(HISTORY);
        let is_grown = fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.len() >= MAX_HISTORY_OCTETS);
        let lines = |entries: &mut dyn Iterator<Item = &HistoryEntry>| -> Vec<u8> {
            entries.flat_map(json::write_entry).collect()
        };
        let result = if is_grown {
            let mut history = self.load_history(SystemTime::now());
            entries.iter().cloned().for_each(|entry| history.push(entry));
            disk::write(&path, &lines(&mut history.iter()), Durability::Process)
        } else {
            disk::append(&path, &lines(&mut entries.iter()))
        };
        let _ = self.told(result);
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
                    let _ = self.told(disk::append(&path, b"\n"));
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
                self.written().insert(hash, Durability::Process);
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

    fn unwritten(&self) -> MutexGuard<'_, Unwritten> {
        // Only whole values are put in.
        self.unwritten.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn written(&self) -> MutexGuard<'_, Written> {
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
