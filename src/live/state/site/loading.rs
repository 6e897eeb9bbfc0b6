//! Loads the state of a site from disk.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::super::json;
use super::{HISTORY, RECORD, STATE, SavedState, SiteStore, Written};
use crate::live::state::error::ProblemKind;
use crate::live::state::record_file::{self, LiveRecord};
use crate::live::{
    AcceptedState, AcceptedVersion, AcceptedVersions, Durability, History, Pending, Remembered, Version, VersionHash,
    WasLive,
};

/// If the last history entry is more than this time in the future, a clock error is reported.
const CLOCK_ERROR: Duration = Duration::from_secs(3600);

/// Replaces the loaded versions with the newer versions that another handle of the site has not yet
/// written to disk.
fn with(remembered: Remembered, state: &SavedState) -> Remembered {
    let SavedState { versions, pending, durability: _ } = state;
    Remembered { versions: versions.clone(), pending: pending.clone(), was_live: WasLive::Current, ..remembered }
}

impl SiteStore {
    /// Loads every file that is not damaged. Changes that are not written yet take precedence over
    /// the files.
    ///
    /// The site may already be open, for example while a config is reloaded. Other handles of the
    /// site cannot write the files while this function reads them. A version that another handle
    /// publishes meanwhile is also returned.
    pub(super) fn load(&self, now: SystemTime) -> Remembered {
        let mut written = self.written.lock();
        self.disk.clean(&self.folder, self.began);
        let (mut enforcement, problem) = self.disk.read_switch(&self.folder);
        if problem.is_some() {
            self.problems.set(ProblemKind::UnreadSwitch, problem);
        }
        let mut history = self.load_history();
        let state = {
            let unwritten = self.unwritten.lock();
            enforcement = self.switch.unwritten().unwrap_or(enforcement);
            unwritten.entries.iter().cloned().for_each(|entry| history.push(entry));
            let last = history.iter().next_back().map(|entry| entry.when);
            *self.ahead.lock() = last.filter(|last| last.duration_since(now).is_ok_and(|ahead| ahead > CLOCK_ERROR));
            unwritten.state.clone()
        };
        let remembered = Remembered { enforcement, history, ..Remembered::default() };
        match state {
            Some(state) => with(remembered, &state),
            None => self.load_versions(&mut written, remembered, now),
        }
    }

    fn load_versions(&self, written: &mut Written, mut remembered: Remembered, now: SystemTime) -> Remembered {
        let path = self.folder.join(STATE);
        let listed = self.report_damage(self.disk.read(&path)).flatten().and_then(|bytes| {
            let listed = json::read(&bytes, self.disk.modified(&path), now);
            self.report_damage(listed.ok_or_else(|| damaged_file(&path)))
        });
        let stamp = listed.as_ref().map_or(0, |listed| listed.stamp);
        let mut damaged = WasLive::Unknown;
        if let Some(listed) = listed {
            let last = listed.versions.iter().rfind(|version| version.state == AcceptedState::Accepted);
            let last = last.map(|last| (last.hash, last.since));
            let versions = listed.versions.into_iter();
            let versions = versions.filter_map(|listed| {
                let version = self.version(written, &listed)?;
                Some(AcceptedVersion { version, since: listed.since, standing: listed.state })
            });
            remembered.versions = AcceptedVersions { list: versions.collect(), is_absent: listed.is_absent };
            let current = remembered.versions.current().map(AcceptedVersion::hash);
            damaged = match last {
                Some((hash, since)) if current != Some(hash) => WasLive::Other(hash, since),
                _ => WasLive::Unknown,
            };
            let pending = listed.pending;
            remembered.pending = pending.and_then(|listed| {
                let version = self.version(written, &listed)?;
                Some(Pending::new(version, listed.since.min(now), listed.state))
            });
        }
        self.load_record(written, stamp, damaged, remembered, now)
    }

    /// Loads the record of the live version. If `state.json` could not be written after versions
    /// went live or were rolled back, applies these changes from the record. `damaged` is the
    /// current version in `state.json` if its bytes could not be read, and [`WasLive::Unknown`] if
    /// they could be read.
    fn load_record(
        &self,
        written: &mut Written,
        stamp: u64,
        damaged: WasLive,
        mut remembered: Remembered,
        now: SystemTime,
    ) -> Remembered {
        let record = self.report_damage(record_file::read(&self.disk, &self.folder.join(RECORD), now)).flatten();
        let newest = record.as_ref().map_or(0, |(stamp, _)| *stamp);
        written.stamp = written.stamp.max(newest).max(stamp);
        written.record = record.as_ref().map(|(_, record)| record.clone());
        let (mut state, mut unrecorded) = (None, None);
        match record {
            Some((newest, LiveRecord { live, since, held, is_absent })) if newest > stamp => {
                remembered.versions.set_rolled_back(&held);
                remembered.versions.is_absent = is_absent;
                let missing = live.filter(|hash| !remembered.versions.make_current(*hash));
                let recovered = missing.map(|hash| (hash, self.recovered(written, hash, since)));
                if let Some((hash, None)) = recovered {
                    remembered.was_live = WasLive::Other(hash, since);
                } else {
                    if let Some((_, Some(version))) = recovered {
                        remembered.versions.accept(version, Duration::ZERO, now);
                    }
                    // The older `state.json` may still list the live version as pending. The newer
                    // record shows that this version was accepted.
                    remembered.pending.take_if(|pending| live == Some(pending.hash()));
                    remembered.was_live = WasLive::Current;
                    let (versions, pending) = (remembered.versions.clone(), remembered.pending.clone());
                    state = Some(Arc::new(SavedState { versions, pending, durability: Durability::Process }));
                }
            }
            _ if damaged != WasLive::Unknown => remembered.was_live = damaged,
            Some((_, record)) => {
                remembered.was_live = WasLive::Current;
                // `state.json` is newer than the record, because the record could not be
                // overwritten. So the record must be written now.
                unrecorded = Some(LiveRecord::of(&remembered.versions)).filter(|now| *now != record);
            }
            None => unrecorded = remembered.versions.current().map(|_| LiveRecord::of(&remembered.versions)),
        }
        let mut unwritten = self.unwritten.lock();
        if let Some(newer) = unwritten.state.clone() {
            return with(remembered, &newer);
        }
        unwritten.state = state;
        if unrecorded.is_some() {
            unwritten.record = unrecorded;
        }
        remembered
    }

    /// Returns a version that is not in `state.json` yet; `None` if its bytes were not written.
    fn recovered(&self, written: &mut Written, hash: VersionHash, since: SystemTime) -> Option<AcceptedVersion> {
        let path = self.path_of(hash);
        let bytes = self.disk.read(&path).ok()??;
        let version = Version::new(bytes, &path.to_string_lossy().into(), None);
        if version.hash() != hash {
            return None;
        }
        written.bytes.insert(hash, Some(Durability::Process));
        Some(AcceptedVersion { version, since, standing: AcceptedState::Accepted })
    }

    /// Forgets what this process knows about the files in the folder, because another process may
    /// have removed files or written greater stamps.
    pub(in crate::live::state) fn forget_files(&self) {
        let now = self.disk.clock.now();
        let record = record_file::read(&self.disk, &self.folder.join(RECORD), now).ok().flatten();
        let listed = self.disk.read(&self.folder.join(STATE)).ok().flatten();
        let listed = listed.and_then(|bytes| json::read(&bytes, None, now)).map_or(0, |listed| listed.stamp);
        let mut written = self.written.lock();
        written.stamp = written.stamp.max(listed).max(record.map_or(0, |(stamp, _)| stamp));
        written.record = None;
        written.bytes.values_mut().for_each(|had| *had = None);
    }

    pub(super) fn load_history(&self) -> History {
        let mut history = History::default();
        let bytes = self.report_damage(self.disk.read(&self.folder.join(HISTORY))).flatten().unwrap_or_default();
        let entries = bytes.split(|byte| *byte == b'\n').filter_map(json::read_entry);
        entries.for_each(|entry| history.push(entry));
        history
    }

    /// Reads the bytes of a version. If the bytes do not match the hash of the version, reports the
    /// damage as a problem and returns `None`.
    fn version<T>(&self, written: &mut Written, listed: &json::Listed<T>) -> Option<Version> {
        let path = self.path_of(listed.hash);
        let bytes = self.report_damage(self.disk.read(&path))?;
        let bytes = self.report_damage(bytes.ok_or_else(|| format!("{}: the file is missing", path.display())))?;
        let version = Version::new(bytes, &listed.origin, listed.modified);
        let version = (version.hash() == listed.hash).then_some(version);
        let version = self.report_damage(version.ok_or_else(|| damaged_file(&path)))?;
        written.bytes.insert(listed.hash, Some(Durability::Process));
        Some(version)
    }

    /// Returns the content of a file from the result of a read. If the read failed, records the
    /// error as a problem and returns `None`.
    fn report_damage<T>(&self, read: Result<T, String>) -> Option<T> {
        read.inspect_err(|damage| self.problems.set(ProblemKind::Damaged, Some(damage.clone()))).ok()
    }
}

fn damaged_file(path: &Path) -> String {
    format!("{}: the file is damaged and is ignored", path.display())
}
