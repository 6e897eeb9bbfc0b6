//! What a site knows again, read from a state directory.

use std::fs;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::super::disk::{self, Durability};
use super::super::json;
use super::super::record::{self, Record};
use super::{HISTORY, Notes, RECORD, STATE, State, Written};
use crate::live::enforcement::Enforcement;
use crate::live::gate::Pending;
use crate::live::history::History;
use crate::live::version_hash::VersionHash;
use crate::live::versions::{Fate, Version, Versions};

/// What a site knows again.
#[derive(Default)]
pub(crate) struct Remembered {
    pub(crate) versions: Versions,
    pub(crate) pending: Option<Pending>,
    pub(crate) history: History,
    pub(crate) enforcement: Enforcement,
    /// What was live last, as far as that is known.
    pub(crate) was_live: WasLive,
}

/// What was live when the process before ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum WasLive {
    /// The current one of the versions that are remembered.
    Current,
    /// Nothing says what.
    #[default]
    Unknown,
    /// Another one, accepted then, whose bytes are not there.
    Other(VersionHash, SystemTime),
}

impl Remembered {
    /// What another handle of the same site has published and nobody has written yet.
    fn with(self, state: &State) -> Self {
        let State { versions, pending, durability: _ } = state;
        Self { versions: versions.clone(), pending: pending.clone(), was_live: WasLive::Current, ..self }
    }
}

impl Notes {
    /// Everything that is there and whole. What could not be written yet is newer than what is there. The site may be open
    /// already, as where a config is reloaded: nothing is written while this reads, and what is published meanwhile counts.
    pub(super) fn load(&self, now: SystemTime) -> Remembered {
        let mut written = self.written();
        let (mut enforcement, trouble) = disk::read_switch(&self.folder);
        self.note(trouble);
        let mut history = self.load_history(now);
        let state = {
            let unwritten = self.unwritten();
            enforcement = unwritten.switch.unwrap_or(enforcement);
            unwritten.entries.iter().cloned().for_each(|entry| history.push(entry));
            unwritten.state.clone()
        };
        let remembered = Remembered { enforcement, history, ..Remembered::default() };
        match state {
            Some(state) => remembered.with(&state),
            None => self.load_versions(&mut written, remembered, now),
        }
    }

    fn load_versions(&self, written: &mut Written, mut remembered: Remembered, now: SystemTime) -> Remembered {
        let path = self.folder.join(STATE);
        let bytes = disk::read(&path).unwrap_or_else(|trouble| {
            self.note(Some(trouble));
            None
        });
        let listed = bytes.and_then(|bytes| {
            let modified = fs::metadata(&path).and_then(|metadata| metadata.modified()).ok();
            let listed = json::read(&bytes, modified, now);
            if listed.is_none() {
                self.note(Some(format!("{}: this is damaged and ignored", path.display())));
            }
            listed
        });
        let stamp = listed.as_ref().map_or(0, |listed| listed.stamp);
        let mut damaged = WasLive::Unknown;
        if let Some(listed) = listed {
            let last = listed.versions.iter().rfind(|version| version.is_accepted());
            let last = last.map(|last| (last.hash, last.since));
            let versions = listed.versions.into_iter();
            let versions =
                versions.filter_map(|version| self.bytes(written, version.hash).map(|bytes| version.with(bytes)));
            remembered.versions = Versions::from_list(versions.collect());
            let current = remembered.versions.current().map(|version| version.hash);
            damaged = match last {
                Some((hash, since)) if current != Some(hash) => WasLive::Other(hash, since),
                _ => WasLive::Unknown,
            };
            let pending = listed.pending;
            remembered.pending =
                pending.and_then(|pending| self.bytes(written, pending.hash).map(|bytes| pending.with(bytes)));
        }
        self.load_record(written, stamp, damaged, remembered, now)
    }

    /// What the record knows that the state does not: what went live, or was rolled back, and could not be written down.
    /// `damaged` is the version that the state has for the current one and whose bytes are not there.
    fn load_record(
        &self,
        written: &mut Written,
        stamp: u64,
        damaged: WasLive,
        mut remembered: Remembered,
        now: SystemTime,
    ) -> Remembered {
        let record = record::read(&self.folder.join(RECORD), now).unwrap_or_else(|trouble| {
            self.note(Some(trouble));
            None
        });
        let newest = record.as_ref().map_or(0, |(stamp, _)| *stamp);
        written.stamp = written.stamp.max(newest).max(stamp);
        written.record = record.as_ref().map(|(_, record)| record.clone());
        let (mut state, mut unrecorded) = (None, None);
        match record {
            Some((newest, Record { live, since, held })) if newest > stamp => {
                remembered.versions.hold(&held);
                let missing = live.filter(|hash| !remembered.versions.bring_back(*hash));
                let recovered = missing.map(|hash| (hash, self.recovered(written, hash, since)));
                if let Some((hash, None)) = recovered {
                    remembered.was_live = WasLive::Other(hash, since);
                } else {
                    if let Some((_, Some(version))) = recovered {
                        remembered.versions.accept(version, Duration::ZERO, now);
                    }
                    // What is live was accepted: it waits no longer, as the older state says.
                    remembered.pending.take_if(|pending| live == Some(pending.hash()));
                    remembered.was_live = WasLive::Current;
                    let (versions, pending) = (remembered.versions.clone(), remembered.pending.clone());
                    state = Some(Arc::new(State { versions, pending, durability: Durability::Process }));
                }
            }
            _ if damaged != WasLive::Unknown => remembered.was_live = damaged,
            Some((_, record)) => {
                remembered.was_live = WasLive::Current;
                // It could not be overwritten when the state could be.
                unrecorded = Some(Record::of(&remembered.versions)).filter(|now| *now != record);
            }
            None => unrecorded = remembered.versions.current().map(|_| Record::of(&remembered.versions)),
        }
        let mut unwritten = self.unwritten();
        if let Some(newer) = unwritten.state.clone() {
            return remembered.with(&newer);
        }
        unwritten.state = state;
        if unrecorded.is_some() {
            unwritten.record = unrecorded;
        }
        remembered
    }

    /// A version whose bytes were written and whose place in the state was not.
    fn recovered(&self, written: &mut Written, hash: VersionHash, since: SystemTime) -> Option<Version> {
        let path = self.path_of(hash);
        let bytes = disk::read(&path).ok()??;
        if VersionHash::of(&bytes) != hash {
            return None;
        }
        written.bytes.insert(hash, Durability::Process);
        let origin = path.to_string_lossy().into();
        Some(Version { hash, bytes: bytes.into(), origin, modified: None, since, fate: Fate::Accepted })
    }

    pub(super) fn load_history(&self, now: SystemTime) -> History {
        let mut history = History::default();
        let path = self.folder.join(HISTORY);
        match disk::read(&path) {
            Ok(bytes) => {
                let bytes = bytes.unwrap_or_default();
                let entries = bytes.split(|byte| *byte == b'\n').filter_map(|line| json::read_entry(line, now));
                entries.for_each(|entry| history.push(entry));
            }
            Err(trouble) => self.note(Some(trouble)),
        }
        history
    }

    /// The bytes of a version, if they are what their name says.
    fn bytes(&self, written: &mut Written, hash: VersionHash) -> Option<Arc<[u8]>> {
        let path = self.path_of(hash);
        match disk::read(&path) {
            Ok(Some(bytes)) if VersionHash::of(&bytes) == hash => {
                written.bytes.insert(hash, Durability::Process);
                return Some(bytes.into());
            }
            Ok(Some(_)) => self.note(Some(format!("{}: this is damaged and ignored", path.display()))),
            Ok(None) => self.note(Some(format!("{}: this is missing", path.display()))),
            Err(trouble) => self.note(Some(trouble)),
        }
        None
    }
}
