//! The part of a state directory that belongs to one site.

mod loading;

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use super::disk::Disk;
use super::error::{Problem, ProblemKind, Problems, StateError, StateListeners};
use super::json;
use super::lock::{FolderLock, LockHold};
use super::record_file::LiveRecord;
use super::switch_file::SwitchFile;
use super::writer::{QueueMembership, StateJob, StateWriter};
use crate::live::reload::MAX_HISTORY;
use crate::live::{AcceptedVersions, Durability, Enforcement, HistoryEntry, Mutex, Pending, Remembered, VersionHash};

const STATE: &str = "state.json";
const HISTORY: &str = "history.jsonl";
const RECORD: &str = "live";

/// Maximum size of the history file, in bytes. A larger file is rewritten with only the newest
/// entries.
const MAX_HISTORY_BYTES: u64 = 128 << 10;

/// Reads and writes the state of one site. All sites share one writer. When a `SiteState` is
/// dropped, it writes all changes that are not written yet.
pub(in crate::live) struct SiteState {
    pub(super) store: Arc<SiteStore>,
    pub(super) writer: Arc<StateWriter>,
    /// Keeps the folder locked. `SiteState::drop` runs before the fields are dropped, so it can
    /// still write changes.
    #[expect(dead_code, reason = "dropping this field releases the lock")]
    pub(super) hold: Arc<LockHold>,
}

pub(super) struct SiteStore {
    disk: Disk,
    lock: Arc<FolderLock>,
    folder: PathBuf,
    /// When the directory was opened. Older temporary files are from another process.
    began: SystemTime,
    /// The problems of the site. The stored message about an unwritten history contains only the
    /// cause of the error; [`SiteStore::unwritten_message`] adds the number of unwritten entries,
    /// which changes often.
    pub(super) problems: Problems,
    membership: Mutex<QueueMembership>,
    /// The changes that are not written yet. The mutex is never locked while the disk is accessed.
    unwritten: Mutex<Unwritten>,
    /// What this process has read from the files in the folder or written to them. The mutex is
    /// locked while files of the site are written.
    written: Mutex<Written>,
    switch: SwitchFile,
    /// Time of the last history entry, if that time was far in the future when the history was
    /// loaded.
    pub(super) ahead: Mutex<Option<SystemTime>>,
}

#[derive(Default)]
struct Written {
    /// The versions whose bytes are in the folder, and how durably the bytes were written; `None`
    /// if the file with the bytes may have been removed.
    bytes: HashMap<VersionHash, Option<Durability>>,
    record: Option<LiveRecord>,
    stamp: u64,
}

#[derive(Default)]
struct Unwritten {
    state: Option<Arc<SavedState>>,
    /// A record of the live version that must be written although `state.json` is already on disk.
    /// The record is written as soon as possible, because the disk may fill up.
    record: Option<LiveRecord>,
    entries: VecDeque<HistoryEntry>,
    /// Number of history entries that were removed from the front of `entries` so far.
    begun: usize,
    /// Number of history entries that were dropped before they were written, because `entries` has
    /// a maximum length.
    lost: usize,
}

struct SavedState {
    versions: AcceptedVersions,
    pending: Option<Pending>,
    durability: Durability,
}

impl SiteState {
    pub(in crate::live) fn load(&self, now: SystemTime) -> Remembered {
        let remembered = self.store.load(now);
        self.write_soon();
        remembered
    }

    /// Stores the versions in memory. Does not block: the writer's thread writes the versions
    /// later.
    pub(in crate::live) fn save(&self, versions: AcceptedVersions, pending: Option<Pending>, durability: Durability) {
        let before = {
            let mut unwritten = self.store.unwritten.lock();
            // If this change replaces an unwritten change, it must be written at least as durably
            // as that change.
            let durability = unwritten.state.as_ref().map_or(durability, |before| before.durability.max(durability));
            unwritten.state.replace(Arc::new(SavedState { versions, pending, durability }))
        };
        // The replaced state is dropped after the lock is released. This state may hold the last
        // reference to a large file, and freeing a large file takes time.
        drop(before);
    }

    /// Stores a history entry in memory. Does not block: the writer's thread writes the entry
    /// later.
    pub(in crate::live) fn append(&self, entry: HistoryEntry) {
        let mut unwritten = self.store.unwritten.lock();
        unwritten.entries.push_back(entry);
        unwritten.bound();
    }

    /// Writes all changes that are not written yet, on this thread.
    pub(in crate::live) fn write(&self) {
        if !self.store.write() {
            self.writer.enqueue_retry(self.store.clone());
        }
    }

    /// Makes the writer's thread write all changes that are not written yet.
    pub(in crate::live) fn write_soon(&self) {
        if !self.store.is_written() {
            self.writer.call(self.store.clone());
        }
    }

    /// Writes the kill switch. If the write fails, it is retried later.
    pub(in crate::live) fn set_enforcement(&self, enforcement: Enforcement) -> Result<(), StateError> {
        let written = self.store.switch.set(enforcement, &self.store.lock, &self.store.problems);
        if written.is_err() {
            self.writer.enqueue_retry(self.store.clone());
        }
        written
    }

    pub(in crate::live) fn unread_switch(&self) -> Option<String> {
        self.store.problems.get(ProblemKind::UnreadSwitch)
    }

    /// Stores the problem that the live version may be older than the version that was live before
    /// the restart. `None` means that the problem has ended.
    pub(in crate::live) fn is_behind(&self, problem: Option<String>) {
        self.store.problems.set(ProblemKind::Behind, problem);
    }

    /// Returns the problems of the site, without waiting for the disk.
    pub(in crate::live) fn problems(&self) -> Vec<Problem> {
        let mut problems = self.store.problems.all();
        for problem in problems.iter_mut().filter(|problem| problem.kind == ProblemKind::History) {
            problem.text = self.store.unwritten_message(&problem.text);
        }
        problems
    }
}

impl Drop for SiteState {
    fn drop(&mut self) {
        if self.writer.is_stuck() {
            // Changes are not written here, because the write would probably hang and keep the
            // process from ending.
            return;
        }
        if !self.store.is_written() {
            self.write();
        }
    }
}

impl StateJob for SiteStore {
    fn membership(&self) -> &Mutex<QueueMembership> {
        &self.membership
    }

    /// Writes all changes that are not written yet. Changes that could not be written are kept for
    /// the next attempt.
    fn write(&self) -> bool {
        let Some(_writing) = self.lock.writing() else { return true };
        // `written` is locked before the changes are copied, so that of two concurrent writes, the
        // write with the newer state runs last.
        let mut written = self.written.lock();
        let (state, record, entries, begun) = {
            let unwritten = self.unwritten.lock();
            (unwritten.state.clone(), unwritten.record.clone(), unwritten.entries.clone(), unwritten.begun)
        };
        if let Some(state) = state {
            let (saved, recorded) = self.save(&mut written, &state);
            if saved.is_ok() {
                let mut unwritten = self.unwritten.lock();
                unwritten.record = recorded.is_err().then(|| LiveRecord::of(&state.versions));
                unwritten.state.take_if(|newest| Arc::ptr_eq(newest, &state));
            }
            self.report_save(saved, recorded);
        } else if let Some(record) = record {
            let recorded = self.record(&mut written, &record, Durability::Process);
            if recorded.is_ok() {
                self.unwritten.lock().record = None;
            }
            self.report_save(Ok(()), recorded);
        }
        if !entries.is_empty() {
            let (count, result) = self.append(&entries);
            self.unwritten.lock().remove_written(begun + count);
            let cause = result.err().map(|error| error.cause.to_string());
            // Listeners are not notified if only the number of unwritten entries changes.
            self.problems.set_shown(ProblemKind::History, cause, |cause| self.unwritten_message(cause));
        }
        drop(written);
        self.switch.write(&self.problems);
        self.is_written()
    }
}

impl Unwritten {
    fn is_empty(&self) -> bool {
        let Self { state, record, entries, begun: _, lost: _ } = self;
        state.is_none() && record.is_none() && entries.is_empty()
    }

    fn bound(&mut self) {
        while self.entries.len() > MAX_HISTORY {
            self.entries.pop_front();
            self.begun += 1;
            self.lost += 1;
        }
    }

    /// Removes the history entries before the entry with the number `end`, because these entries
    /// are now on disk.
    fn remove_written(&mut self, end: usize) {
        while self.begun < end && self.entries.pop_front().is_some() {
            self.begun += 1;
        }
        if self.entries.is_empty() {
            self.lost = 0;
        }
    }
}

impl SiteStore {
    pub(super) fn new(
        disk: Disk,
        lock: Arc<FolderLock>,
        folder: PathBuf,
        site: &str,
        began: SystemTime,
        listeners: &Arc<StateListeners>,
    ) -> Self {
        Self {
            switch: SwitchFile::new(&disk, &folder),
            disk,
            lock,
            folder,
            began,
            problems: Problems::new(Some(site), listeners),
            membership: Mutex::default(),
            unwritten: Mutex::default(),
            written: Mutex::default(),
            ahead: Mutex::default(),
        }
    }

    fn is_written(&self) -> bool {
        self.unwritten.lock().is_empty() && self.switch.unwritten().is_none()
    }

    /// Saves the versions of the site. Writes the record of the live version first, because the
    /// record can usually be written even on a full disk. Returns two results: whether the list of
    /// versions was written, and whether the record was written.
    fn save(&self, written: &mut Written, state: &SavedState) -> (Result<(), StateError>, Result<(), StateError>) {
        let SavedState { versions, pending, durability } = state;
        let kept = versions.iter().map(|accepted| &accepted.version);
        let kept: Vec<_> = kept.chain(pending.iter().map(|pending| &pending.version)).collect();
        let recorded = self.record(written, &LiveRecord::of(versions), *durability);
        let saved = (|| {
            for version in &kept {
                let hash = version.hash();
                if written.bytes.get(&hash).is_none_or(|had| *had < Some(*durability)) {
                    self.disk.write(&self.path_of(hash), version.bytes(), *durability)?;
                    written.bytes.insert(hash, Some(*durability));
                }
            }
            let stamp = written.next_stamp(self.disk.clock.now());
            self.disk.write(&self.folder.join(STATE), &json::write(stamp, versions, pending.as_ref()), *durability)
        })();
        if saved.is_ok() {
            let kept: HashSet<VersionHash> = kept.iter().map(|version| version.hash()).collect();
            written.bytes.retain(|hash, _| {
                let stays = kept.contains(hash);
                if !stays {
                    self.disk.remove(&self.path_of(*hash));
                }
                stays
            });
        }
        (saved, recorded)
    }

    fn report_save(&self, saved: Result<(), StateError>, recorded: Result<(), StateError>) {
        let problem = match (saved, recorded) {
            (Ok(()), Ok(())) => None,
            // The message contains the path of the folder instead of the file. Each attempt may
            // fail at another file, and a changed message would notify the listeners again.
            (Err(StateError { cause, .. }), _) => {
                let folder = self.folder.display();
                Some(format!(
                    "{folder}: the folder cannot be written, so a restart forgets the live version: {cause}; the \
                     write is retried"
                ))
            }
            (Ok(()), Err(StateError { path, cause, .. })) => Some(format!(
                "{file}: the file cannot be written: {cause}; a restart needs this file if a later version cannot be \
                 saved; the write is retried",
                file = path.display()
            )),
        };
        self.problems.set(ProblemKind::Save, problem);
    }

    fn record(&self, written: &mut Written, record: &LiveRecord, durability: Durability) -> Result<(), StateError> {
        if written.record.as_ref() == Some(record) {
            return Ok(());
        }
        let stamp = written.next_stamp(self.disk.clock.now());
        super::record_file::write(&self.disk, &self.folder.join(RECORD), stamp, record, durability)?;
        written.record = Some(record.clone());
        Ok(())
    }

    /// Appends entries to the history on disk, and returns the number of added entries. A file that
    /// is too large is rewritten with only its last entries.
    fn append(&self, entries: &VecDeque<HistoryEntry>) -> (usize, Result<(), StateError>) {
        let path = self.folder.join(HISTORY);
        let is_grown = self.disk.length(&path).is_some_and(|length| length >= MAX_HISTORY_BYTES);
        if is_grown {
            let mut history = self.load_history();
            entries.iter().cloned().for_each(|entry| history.push(entry));
            let lines: Vec<u8> = history.iter().flat_map(json::write_entry).collect();
            let result = self.disk.write(&path, &lines, Durability::Process);
            (if result.is_ok() { entries.len() } else { 0 }, result)
        } else {
            let lines: Vec<_> = entries.iter().map(json::write_entry).collect();
            self.disk.append(&path, &lines)
        }
    }

    fn unwritten_message(&self, cause: &str) -> String {
        let path = self.folder.join(HISTORY);
        let (count, lost) = {
            let unwritten = self.unwritten.lock();
            (unwritten.entries.len(), unwritten.lost)
        };
        let entries = match count {
            1 => "1 entry of the history is not saved yet".to_owned(),
            count => format!("{count} entries of the history are not saved yet"),
        };
        let lost = match lost {
            0 => String::new(),
            lost => format!(" and {lost} earlier ones are lost"),
        };
        format!(
            "{file}: the file cannot be written, so {entries}{lost}: {cause}; the write is retried",
            file = path.display()
        )
    }

    fn path_of(&self, hash: VersionHash) -> PathBuf {
        self.folder.join(format!("{}.txt", hash.hex()))
    }
}

impl Written {
    /// Returns a stamp that is greater than all earlier stamps, even if the clock was set back.
    fn next_stamp(&mut self, now: SystemTime) -> u64 {
        let now = u64::try_from(json::millis(now)).unwrap_or_default();
        self.stamp = now.max(self.stamp + 1);
        self.stamp
    }
}
