//! One site's part of a state directory.

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
use super::writer::{QueuePlace, StateJob, StateWriter};
use crate::live::reload::MAX_HISTORY;
use crate::live::{AcceptedVersions, Durability, Enforcement, HistoryEntry, Mutex, Pending, Remembered, VersionHash};

const STATE: &str = "state.json";
const HISTORY: &str = "history.jsonl";
const RECORD: &str = "live";

/// Octets of history beyond which it is written anew with what is kept of it.
const MAX_HISTORY_OCTETS: u64 = 128 << 10;

/// Reads the state of one site, and has it written: by one thread for all sites, or at the latest when this is dropped.
pub(in crate::live) struct SiteState {
    pub(super) store: Arc<SiteStore>,
    pub(super) writer: Arc<StateWriter>,
    /// Last: the parts before write when they are dropped, before it is unlocked.
    #[expect(dead_code, reason = "kept for its drop")]
    pub(super) hold: Arc<LockHold>,
}

/// The state of a site on disk, and the part that is yet to be written.
pub(super) struct SiteStore {
    disk: Disk,
    lock: Arc<FolderLock>,
    folder: PathBuf,
    /// When the directory was opened: older unfinished files are of another process.
    began: SystemTime,
    /// Of the history only the cause: how many entries wait changes all the time.
    pub(super) problems: Problems,
    place: Mutex<QueuePlace>,
    /// Held for a moment only.
    unwritten: Mutex<Unwritten>,
    /// The content of the folder. Held while anything is written.
    written: Mutex<Written>,
    switch: SwitchFile,
    /// When its last entry was made, if that lay ahead of the clock when it was loaded.
    pub(super) ahead: Mutex<Option<SystemTime>>,
}

#[derive(Default)]
struct Written {
    /// The bytes that stand in the folder and their durability, so that none is written twice; `None` where they may be gone.
    bytes: HashMap<VersionHash, Option<Durability>>,
    record: Option<LiveRecord>,
    stamp: u64,
}

/// The changes since the last write, and those that could not be written. It holds one state and no more entries than
/// the history, however many come.
#[derive(Default)]
struct Unwritten {
    state: Option<Arc<SavedState>>,
    /// The record where it is not what the state says that is written: later there may be no room for it.
    record: Option<LiveRecord>,
    entries: VecDeque<HistoryEntry>,
    /// How many entries came before the first of these.
    begun: usize,
    /// Entries that waited too long, because more came than are kept.
    lost: usize,
}

struct SavedState {
    versions: AcceptedVersions,
    pending: Option<Pending>,
    durability: Durability,
}

impl SiteState {
    /// Loads every file that is whole.
    pub(in crate::live) fn load(&self, now: SystemTime) -> Remembered {
        let remembered = self.store.load(now);
        self.write_soon();
        remembered
    }

    /// Takes the versions to be written down. Waits for nothing.
    pub(in crate::live) fn save(&self, versions: AcceptedVersions, pending: Option<Pending>, durability: Durability) {
        let before = {
            let mut unwritten = self.store.unwritten.lock();
            // A change that was not written yet keeps the durability it needs.
            let durability = unwritten.state.as_ref().map_or(durability, |before| before.durability.max(durability));
            unwritten.state.replace(Arc::new(SavedState { versions, pending, durability }))
        };
        // It may hold the last of a large file.
        drop(before);
    }

    /// Takes an entry to be added to the history on disk. Waits for nothing.
    pub(in crate::live) fn append(&self, entry: HistoryEntry) {
        let mut unwritten = self.store.unwritten.lock();
        unwritten.entries.push_back(entry);
        unwritten.bound();
    }

    /// Writes now what is not written yet.
    pub(in crate::live) fn write(&self) {
        if !self.store.write() {
            self.writer.call_later(self.store.clone());
        }
    }

    /// Has the writer's thread write what is not written yet.
    pub(in crate::live) fn write_soon(&self) {
        if !self.store.is_written() {
            self.writer.call(self.store.clone());
        }
    }

    /// Writes the kill switch down, now or as soon as that can be done.
    pub(in crate::live) fn set_enforcement(&self, enforcement: Enforcement) -> Result<(), StateError> {
        let written = self.store.switch.set(enforcement, &self.store.lock, &self.store.problems);
        if written.is_err() {
            self.writer.call_later(self.store.clone());
        }
        written
    }

    /// Why the kill switch was taken for off although no operator turned it.
    pub(in crate::live) fn unread_switch(&self) -> Option<String> {
        self.store.problems.get(ProblemKind::UnreadSwitch)
    }

    /// Reports that the served version is older than the one that was live, or that it is no longer.
    pub(in crate::live) fn is_behind(&self, problem: Option<String>) {
        self.store.problems.set(ProblemKind::Behind, problem);
    }

    /// The problems. It waits for no disk.
    pub(in crate::live) fn problems(&self) -> Vec<Problem> {
        let mut problems = self.store.problems.all();
        for problem in problems.iter_mut().filter(|problem| problem.kind == ProblemKind::History) {
            problem.text = self.store.waiting(&problem.text);
        }
        problems
    }
}

impl Drop for SiteState {
    fn drop(&mut self) {
        if self.writer.is_stuck() {
            // A stuck write would hold up the end of the process too.
            return;
        }
        if !self.store.is_written() {
            self.write();
        }
    }
}

impl StateJob for SiteStore {
    fn place(&self) -> &Mutex<QueuePlace> {
        &self.place
    }

    /// Writes what has come since the last time. A change that cannot be written waits.
    fn write(&self) -> bool {
        let Some(_writing) = self.lock.writing() else { return true };
        // First, so that the last state taken is the last written.
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
            self.unwritten.lock().are_written(begun + count);
            let cause = result.err().map(|error| error.cause.to_string());
            // A different number of waiting entries is no event.
            self.problems.set_shown(ProblemKind::History, cause, |cause| self.waiting(cause));
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

    /// The history keeps no more of them either.
    fn bound(&mut self) {
        while self.entries.len() > MAX_HISTORY {
            self.entries.pop_front();
            self.begun += 1;
            self.lost += 1;
        }
    }

    /// Entries before this one are in the history.
    fn are_written(&mut self, end: usize) {
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
            place: Mutex::default(),
            unwritten: Mutex::default(),
            written: Mutex::default(),
            ahead: Mutex::default(),
        }
    }

    /// Whether nothing is left to write.
    fn is_written(&self) -> bool {
        self.unwritten.lock().is_empty() && self.switch.unwritten().is_none()
    }

    /// Writes down which versions there are: first which one is live, which mostly takes no room; then their bytes,
    /// and files that are not needed any more are removed last. Returns the results for the state and for the record.
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
                    // Nothing refers to it; one that cannot be removed costs its size.
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
            // Always of the folder: which of its files fails first changes from one attempt to the next.
            (Err(StateError { cause, .. }), _) => {
                let folder = self.folder.display();
                Some(format!(
                    "{folder}: cannot be written, so a restart forgets the live version: {cause}; it is tried again"
                ))
            }
            (Ok(()), Err(StateError { path, cause, .. })) => Some(format!(
                "{}: cannot be written, so a restart does not know of versions that go live while other writes fail too: \
                 {cause}; it is tried again",
                path.display()
            )),
        };
        self.problems.set(ProblemKind::Save, problem);
    }

    /// Writes down what is live, if that is not what is written there.
    fn record(&self, written: &mut Written, record: &LiveRecord, durability: Durability) -> Result<(), StateError> {
        if written.record.as_ref() == Some(record) {
            return Ok(());
        }
        let stamp = written.next_stamp(self.disk.clock.now());
        super::record_file::write(&self.disk, &self.folder.join(RECORD), stamp, record, durability)?;
        written.record = Some(record.clone());
        Ok(())
    }

    /// Adds to the history on disk, and returns how many entries were added; a history that has grown is written anew with
    /// its last entries.
    fn append(&self, entries: &VecDeque<HistoryEntry>) -> (usize, Result<(), StateError>) {
        let path = self.folder.join(HISTORY);
        let is_grown = self.disk.length(&path).is_some_and(|length| length >= MAX_HISTORY_OCTETS);
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

    /// The problem of the history on disk.
    fn waiting(&self, cause: &str) -> String {
        let path = self.folder.join(HISTORY);
        let (count, lost) = {
            let unwritten = self.unwritten.lock();
            (unwritten.entries.len(), unwritten.lost)
        };
        let entries = match count {
            1 => "1 entry of it waits".to_owned(),
            count => format!("{count} entries of it wait"),
        };
        let lost = match lost {
            0 => String::new(),
            lost => format!(" and {lost} before them are lost"),
        };
        format!("{}: cannot be written, so {entries}{lost}: {cause}; it is tried again", path.display())
    }

    fn path_of(&self, hash: VersionHash) -> PathBuf {
        self.folder.join(format!("{}.txt", hash.hex()))
    }
}

impl Written {
    /// A stamp that is newer than any before it, whatever the clock does.
    fn next_stamp(&mut self, now: SystemTime) -> u64 {
        let now = u64::try_from(json::millis(now)).unwrap_or_default();
        self.stamp = now.max(self.stamp + 1);
        self.stamp
    }
}
