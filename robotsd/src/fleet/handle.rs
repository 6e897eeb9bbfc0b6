//! The fleet's interface to other modules. This module sets the kill switches of the process, makes
//! the changes that operators request, and reports the state of the fleet.
//!
//! **An off switch takes effect even if writing to the store and to the disk fails.** The off
//! switch is sent to the store before the kill switches are set and the member is saved to disk,
//! because these two steps may take a while. If writing to the store fails, the process keeps the
//! off switch. As soon as the process can read the store again, it writes the off switch to the
//! store.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use data_encoding::HEXLOWER;
use parking_lot::Mutex;
use tokio_rustls::rustls::crypto::ring;
use tower_robots::internals::Attribution;
use tower_robots::live::{Enforcement, KillSwitch};
use tower_robots::source::LiveBuilder;

use super::asks::{TaskReceivers, TaskSenders, WriteAnswers};
use super::document::{Document, Field, Stamp, Write, WriteAnswer, WriteCall};
use super::member::{DocumentState, Member, ReadOutcome};
use super::replica_status::{Heartbeat, MAX_HEARTBEAT_AGE, StateAndReason};
use crate::config::FleetSettings;
use crate::date::rfc3339;
use crate::files;
use crate::log::{Log, LogEvent, LogLevel};
use crate::report::{FleetEntry, FleetReport, ReplicaState, ServedVersions};

/// Name of the file in the state directory that contains what the replica knows about the fleet.
const FILE: &str = "fleet.json";

/// Number of bytes reserved at the end of the file, so that about fifty off switches can be stored
/// even if the disk is full.
const RESERVED_BYTES: usize = 8 << 10;

#[derive(Debug)]
pub(crate) struct Fleet {
    pub(super) settings: FleetSettings,
    file: Option<PathBuf>,
    pub(super) log: Log,
    pub(super) member: Mutex<Member>,
    /// Lock that is held while the file is written, because only one thread may write it at a time.
    saving: Mutex<()>,
    every_site: KillSwitch,
    /// Whether another process with the same replica name has replaced this process. The other
    /// process now sends the heartbeats.
    pub(crate) is_replaced: AtomicBool,
    /// Kill switches of the open sites, by name of the site (or `SITE/HOST`).
    sites: Mutex<HashMap<String, KillSwitch>>,
    pub(super) store: Mutex<StoreView>,
    pub(super) asks: TaskSenders,
    /// Receiving ends of the channels; `None` after the threads have taken them.
    pub(super) asked: Mutex<Option<TaskReceivers>>,
}

#[derive(Debug)]
pub(crate) struct SentDecision {
    pub(crate) writes: usize,
    answer: WriteAnswers,
}

/// Maximum time that the old and the new process both send heartbeats during an upgrade.
const MAX_OVERLAP: Duration = Duration::from_secs(4);

#[derive(Clone, Debug, Default)]
pub(super) struct StoreView {
    pub(super) document_state: DocumentState,
    pub(super) document: Option<Document>,
    pub(super) read: Option<SystemTime>,
    /// Whether the document was read successfully in the last attempt.
    is_read: bool,
    /// First and last time when another process sent heartbeats with this replica's name. If the
    /// last such heartbeat is older than [`MAX_HEARTBEAT_AGE`], the next one sets both times.
    other: Option<(Instant, Instant)>,
    read_problem: Option<String>,
    write_problem: Option<String>,
    /// Number of entries that the store has lost and this replica writes back.
    lost: usize,
    file_problem: Option<String>,
    pub(super) replicas: Arc<BTreeMap<String, Heartbeat>>,
    /// Time of the last heartbeat by the clock of the store, as Unix time in seconds.
    pub(super) now: u64,
    /// Time when reading heartbeats began or resumed. After an interruption, the last heartbeats of
    /// all replicas are old, although the replicas may be running.
    heartbeats_since: Option<Instant>,
    /// Missing replicas, with the times of their last heartbeats.
    pub(super) missing: BTreeMap<String, u64>,
}

impl StoreView {
    /// Returns the reason why the store cannot be read or written; `None` if it can be read and
    /// written.
    pub(super) fn problem(&self) -> Option<&String> {
        self.read_problem.as_ref().or(self.write_problem.as_ref())
    }

    /// Returns the state of the replica. If another process has the same replica name, the state
    /// reports only this problem, because the fleet cannot distinguish the two processes.
    pub(super) fn state(&self) -> StateAndReason {
        // During an upgrade, two processes of this replica send heartbeats for a short time.
        let is_other = |(first, last): (Instant, Instant)| {
            last.elapsed().as_secs() < MAX_HEARTBEAT_AGE && last - first >= MAX_OVERLAP
        };
        if !self.other.is_some_and(is_other) {
            return self.document_state.state();
        }
        let why = "another process has the same replica name: set a different `replica` in [fleet] for each process";
        (ReplicaState::Doubled, Some(why.to_owned()))
    }
}

impl Fleet {
    /// Creates the fleet from the file in the state directory. If the file is missing or
    /// unreadable, nothing is enforced on any site until the document is read.
    pub(crate) fn open(settings: &FleetSettings, state_dir: Option<&Path>, log: &Log) -> Arc<Self> {
        let (asks, asked) = TaskSenders::new();
        let fleet = Self {
            settings: settings.clone(),
            file: state_dir.map(|folder| folder.join(FILE)),
            log: log.clone(),
            member: Mutex::default(),
            saving: Mutex::default(),
            every_site: KillSwitch::default(),
            is_replaced: AtomicBool::new(false),
            sites: Mutex::default(),
            store: Mutex::default(),
            asks,
            asked: Mutex::new(Some(asked)),
        };
        fleet.read_file();
        Arc::new(fleet)
    }

    /// Reads the file in the state directory again. The previous process may have changed the file
    /// during an upgrade.
    pub(crate) fn read_file(&self) {
        let Some(file) = &self.file else { return self.follow() };
        let read = match files::read(file) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| error.to_string()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Member::default()),
            Err(error) => Err(error.to_string()),
        };
        let member = read.unwrap_or_else(|error| {
            let message = format!(
                "{file} cannot be read: {error}; nothing is enforced until this replica has read the fleet's document \
                 from the store",
                file = file.display()
            );
            self.warn(&*message);
            self.store.lock().file_problem = Some(message);
            Member::default()
        });
        let document_state = if member.is_known() { DocumentState::Current } else { DocumentState::Unknown };
        self.store.lock().document_state = document_state;
        *self.member.lock() = member;
        self.follow();
    }

    /// Adds two kill switches to the builder of the site `name`: the switch of this site, and the
    /// switch for all sites.
    pub(crate) fn add_kill_switches<S>(&self, builder: LiveBuilder<S>, name: &str) -> LiveBuilder<S> {
        let switch = self.sites.lock().entry(name.to_owned()).or_default().clone();
        self.follow_site(name, &switch);
        builder.additional_kill_switch(&self.every_site).additional_kill_switch(&switch)
    }

    /// Changes what this replica knows. The change is in force when this function returns, and is
    /// stored if the state directory is writable. Blocks.
    pub(super) fn change<R>(&self, change: impl FnOnce(&mut Member) -> R) -> R {
        let (made, is_changed) = self.change_member(change);
        if is_changed {
            self.follow();
            self.save();
        }
        made
    }

    /// Makes the change that an operator has decided. Sends the writes to the store before it sets
    /// the kill switches and saves the member to disk, because these two steps may take a while.
    fn decide(&self, change: impl FnOnce(&mut Member) -> Vec<Write>) -> SentDecision {
        let (writes, is_changed) = self.change_member(change);
        let calls = self.calls(writes);
        let decision = SentDecision { writes: calls.len(), answer: self.asks.write(calls) };
        if is_changed {
            self.follow();
            self.save();
        }
        decision
    }

    fn change_member<R>(&self, change: impl FnOnce(&mut Member) -> R) -> (R, bool) {
        let mut member = self.member.lock();
        let before = member.clone();
        (change(&mut member), before != *member)
    }

    fn follow(&self) {
        follow(&self.every_site, || self.missing_document_message(), || self.member.lock().is_every_site_off());
        // The list is copied, because the lock must not be held while a kill switch waits for a
        // disk.
        let sites: Vec<_> = self.sites.lock().iter().map(|(name, switch)| (name.clone(), switch.clone())).collect();
        sites.iter().for_each(|(name, switch)| self.follow_site(name, switch));
    }

    fn follow_site(&self, name: &str, switch: &KillSwitch) {
        follow(switch, || None, || self.member.lock().is_site_off(name));
    }

    fn save(&self) {
        let Some(file) = &self.file else { return };
        let _saving = self.saving.lock();
        let text = serde_json::to_vec(&*self.member.lock()).unwrap_or_default();
        // If a new file cannot be created, for example because the disk is full, the old file is
        // overwritten.
        let written = files::replace_durably(file, &files::padded(&text, RESERVED_BYTES));
        let written = written.or_else(|error| files::overwrite(file, &text).map_err(|_| error));
        let problem = written.err().map(|error| format!("{}: {error}", file.display()));
        let before = std::mem::replace(&mut self.store.lock().file_problem, problem.clone());
        if let Some(problem) = problem.filter(|problem| before.as_ref() != Some(problem)) {
            self.warn(problem);
        }
    }

    pub(super) fn warn(&self, message: impl Into<String>) {
        self.log.write_message_at(LogLevel::Warn, LogEvent::Fleet, message);
    }

    /// Applies the result of reading the document. Returns the writes that restore entries that the
    /// store has lost. Blocks.
    pub(super) fn apply_read(&self, read: Result<Option<Document>, String>) -> Vec<WriteCall> {
        let seen = match &read {
            Ok(document) => self.change(|member| member.seen(document.as_ref())),
            Err(why) => ReadOutcome { document_state: DocumentState::Rejected(why.clone()), ..ReadOutcome::default() },
        };
        for change in &seen.changes {
            self.log.write_message(LogEvent::Fleet, change);
        }
        {
            let mut store = self.store.lock();
            if store.document_state != seen.document_state {
                let (state, why) = seen.document_state.state();
                let level = if seen.document_state == DocumentState::Current { LogLevel::Info } else { LogLevel::Warn };
                let why = why.map(|why| format!(": {why}")).unwrap_or_default();
                let message = format!("fleet {:?} is {}{why}", self.settings.name, state.as_str());
                self.log.write_message_at(level, LogEvent::Fleet, message);
            }
            store.document_state = seen.document_state;
            store.document = read.ok().flatten();
        }
        let lost = seen.write_back.len();
        let before = std::mem::replace(&mut self.store.lock().lost, lost);
        if lost != 0 && lost != before {
            self.warn(format!(
                "the store has lost entries of the fleet's document; this replica writes {lost} of them back"
            ));
        }
        self.calls(seen.write_back)
    }

    /// Stores the heartbeats of the replicas, and the time of the store's clock. Must run on a
    /// thread that may block, because parsing many heartbeats may take a long time.
    pub(super) fn store_heartbeats(&self, now: u64, replicas: Vec<Field>) {
        // Nearly all replicas serve the same versions, so equal maps share one copy to save memory.
        let mut versions: Vec<ServedVersions> = Vec::new();
        let replicas = replicas.into_iter().map(|(name, beat)| {
            let mut beat: Heartbeat = serde_json::from_slice(&beat).unwrap_or_else(|_| Heartbeat::unreadable(now));
            match versions.iter().find(|known| **known == beat.sites) {
                Some(same) => beat.sites = same.clone(),
                None => versions.push(beat.sites.clone()),
            }
            (String::from_utf8_lossy(&name).into_owned(), beat)
        });
        let replicas: Arc<BTreeMap<String, Heartbeat>> = Arc::new(replicas.collect());
        let mut store = self.store.lock();
        store.now = now;
        let is_settled =
            store.heartbeats_since.get_or_insert_with(Instant::now).elapsed().as_secs() > MAX_HEARTBEAT_AGE;
        let silent = replicas.iter().filter(|(name, beat)| {
            beat.is_missing(now) && **name != self.settings.replica && (is_settled || store.missing.contains_key(*name))
        });
        let missing = silent.map(|(name, beat)| (name.clone(), beat.at)).collect();
        store.missing = missing;
        // The old heartbeats are freed after the lock is released, because the document reader may
        // be waiting for the lock.
        let before = std::mem::replace(&mut store.replicas, replicas);
        drop(store);
        drop(before);
    }

    pub(super) fn note_other_process(&self) {
        let mut store = self.store.lock();
        let before = store.state().0;
        let lately = store.other.filter(|(_, last)| last.elapsed().as_secs() < MAX_HEARTBEAT_AGE);
        store.other = Some((lately.map_or_else(Instant::now, |(first, _)| first), Instant::now()));
        let (state, why) = store.state();
        drop(store);
        why.into_iter().filter(|_| before != state).for_each(|why| self.warn(why));
    }

    pub(super) fn record_read(&self, problem: Option<String>) {
        let is_back = self.note(|store| {
            store.is_read = problem.is_none();
            if store.is_read {
                store.read = Some(SystemTime::now());
            }
            let before = std::mem::replace(&mut store.read_problem, problem);
            before.is_some() && store.is_read
        });
        if is_back {
            // The store can be read again. Sending a heartbeat shows whether the store can be
            // written, too.
            self.asks.request_heartbeat();
        }
    }

    pub(super) fn record_write(&self, problem: Option<String>) {
        self.note(|store| store.write_problem = problem);
    }

    /// Changes the view of the store. Logs a line if a problem with the store has begun, changed or
    /// ended.
    fn note<R>(&self, change: impl FnOnce(&mut StoreView) -> R) -> R {
        let mut store = self.store.lock();
        let before = store.problem().cloned();
        let made = change(&mut store);
        let problem = store.problem().cloned();
        if problem.is_some() {
            store.heartbeats_since = None;
        }
        drop(store);
        if problem != before {
            let (level, message) = match &problem {
                None => (LogLevel::Info, "the store of the fleet can be read and written again".to_owned()),
                Some(why) => (LogLevel::Warn, format!("{why}; the replica keeps using the document that it read last")),
            };
            self.log.write_message_at(level, LogEvent::Fleet, message);
        }
        made
    }

    pub(super) fn calls(&self, writes: Vec<Write>) -> Vec<WriteCall> {
        let member = self.member.lock();
        writes.into_iter().filter_map(|write| member.call(write, &random())).collect()
    }

    /// Turns enforcement off for `scope`, with an off switch that has this `id`. When this function
    /// returns, enforcement is off on this replica. Blocks.
    ///
    /// # Errors
    ///
    /// Returns an error if an off switch with this ID was lifted before. In this case, enforcement
    /// is not turned off.
    pub(crate) fn turn_off(&self, id: &str, scope: &str, by: &Attribution) -> Result<SentDecision, String> {
        let mut refused = None;
        let decision = self.decide(|member| match member.turn_off(id, scope, stamp(by)) {
            Ok(write) => vec![write],
            Err(why) => {
                refused = Some(why);
                Vec::new()
            }
        });
        refused.map_or(Ok(decision), Err)
    }

    /// Lifts all off switches for `scope` that this replica knows. Blocks.
    pub(crate) fn lift(&self, scope: &str, by: &Attribution) -> SentDecision {
        let stamp = stamp(by);
        self.decide(|member| {
            let marks = member.marks().iter().filter(|(_, mark)| mark.scope == scope).map(|(name, _)| name.clone());
            let marks: Vec<_> = marks.collect();
            marks.iter().map(|name| member.lift(name, stamp.clone())).collect()
        })
    }

    /// Waits until the store contains the decision and the document has been read again.
    ///
    /// # Errors
    ///
    /// Returns the reason why the decision is not in the store.
    pub(crate) async fn stored(&self, SentDecision { writes, answer }: SentDecision) -> Result<(), String> {
        if writes == 0 { Err(self.nothing_to_write()) } else { self.written(answer).await.map(drop) }
    }

    fn nothing_to_write(&self) -> String {
        format!(
            "this replica has not read a document of fleet {fleet:?}: create one with `robotsd fleet init`",
            fleet = self.settings.name
        )
    }

    /// Returns the write that accepts a version for the fleet. The store executes this write only
    /// if the site's entry in the store is still the entry that this replica knows.
    pub(crate) fn accept(&self, site: &str, hash: &str, by: &Attribution) -> Vec<WriteCall> {
        let accept = self.member.lock().accept(site, &random(), hash, stamp(by));
        self.calls(vec![accept])
    }

    /// Reports whether an off switch for all sites is in force. Returns `false` if no document was
    /// ever read, although nothing is enforced without a document.
    pub(crate) fn is_off(&self) -> bool {
        let member = self.member.lock();
        member.is_known() && member.is_every_site_off()
    }

    /// Returns a message if this replica has never read a document.
    pub(crate) fn missing_document_message(&self) -> Option<String> {
        let (of, store) = (&self.settings.name, self.settings.store.place());
        let why =
            format!("fleet {of:?}: nothing is enforced until this replica has read the fleet's document from {store}");
        (!self.member.lock().is_known()).then_some(why)
    }

    /// Reports whether what this replica knows about the fleet will survive a restart.
    pub(crate) fn is_persistent(&self) -> bool {
        self.file.is_some() && self.store.lock().file_problem.is_none()
    }

    /// Reports whether the store could be read and written in the last attempts.
    pub(crate) fn is_store_up(&self) -> bool {
        self.store.lock().problem().is_none()
    }

    /// Executes writes in the store, and waits until the document has been read again.
    ///
    /// # Errors
    ///
    /// Returns the reason why the writes failed or were refused.
    pub(crate) async fn ask(&self, calls: Vec<WriteCall>) -> Result<Vec<WriteAnswer>, String> {
        if calls.is_empty() { Err(self.nothing_to_write()) } else { self.written(self.asks.write(calls)).await }
    }

    async fn written(&self, answer: WriteAnswers) -> Result<Vec<WriteAnswer>, String> {
        let answers = answer
            .await
            .unwrap_or_else(|_| Err("the thread that writes to the store of the fleet has ended".to_owned()))?;
        self.asks.read().await;
        let refused = answers.iter().find_map(|answer| match answer {
            WriteAnswer::Conflict(rev) => Some(format!(
                "another replica has changed the entry in the store (its revision is {rev} now): check `robotsd \
                 status --fleet`, and try again"
            )),
            WriteAnswer::Foreign(epoch) => {
                Some(format!("the document in the store belongs to another fleet (its epoch is {epoch})"))
            }
            WriteAnswer::Written(_) | WriteAnswer::NotNeeded => None,
        });
        refused.map_or(Ok(answers), Err)
    }

    /// Reads the document and the heartbeats at the same time. Errors are not returned; the report
    /// of the fleet contains them.
    pub(crate) async fn refresh(&self) {
        tokio::join!(self.asks.read(), self.asks.beat());
    }

    /// Removes the heartbeat of this replica from the store when the process ends.
    pub(crate) async fn leave(&self) {
        self.asks.leave().await;
    }

    pub(crate) fn last_read(&self) -> Option<SystemTime> {
        self.store.lock().read
    }

    /// Returns the reason why the replica does not follow the current document. `None` if the
    /// replica follows the current document, or has not tried to read the store yet.
    pub(crate) fn problem(&self) -> Option<String> {
        let store = self.store.lock();
        let (state, why) = match store.state() {
            (ReplicaState::Current, _) if !store.is_read => {
                let why = store.problem()?;
                (ReplicaState::Stale, format!("{why}; the replica keeps using the document that it read last"))
            }
            (ReplicaState::Unknown, _) => return None,
            (state, why) => (state, why?),
        };
        Some(format!("fleet {:?} is {}: {why}", self.settings.name, state.as_str()))
    }

    pub(crate) fn report(&self) -> FleetReport {
        let member = self.member.lock().clone();
        // The view is cloned, so that the lock is released immediately and the document reader does
        // not wait while the report is built.
        let store = self.store.lock().clone();
        let own_name = &self.settings.replica;
        let sites = store.replicas.get(own_name).map(|own| own.sites.clone()).unwrap_or_default();
        // If the last read failed, the state of this replica must not be `Current`.
        let state = match store.state().0 {
            ReplicaState::Current if !store.is_read => ReplicaState::Stale,
            state => state,
        };
        let of_own = if store.problem().is_some() { ReplicaState::Stale } else { state };
        let own = Heartbeat { at: store.now, state: of_own, ..Heartbeat::of(&member, store.state(), sites) };
        let others = store.replicas.iter().filter(|(name, _)| *name != own_name);
        let report = |(name, beat): (&String, &Heartbeat)| beat.report(name, store.now, store.document.as_ref());
        let mut replicas: Vec<_> = others.chain([(own_name, &own)]).map(report).collect();
        replicas.sort_by(|one, other| one.replica.cmp(&other.replica));
        let entry = |scope: &str, what: &str, Stamp { rev, by, at, why }: &Stamp| FleetEntry {
            scope: scope.to_owned(),
            what: what.to_owned(),
            rev: *rev,
            by: by.clone(),
            at: rfc3339(UNIX_EPOCH + Duration::from_secs(*at)),
            why: why.clone(),
        };
        FleetReport {
            name: self.settings.name.clone(),
            replica: self.settings.replica.clone(),
            store: self.settings.store.place(),
            state,
            epoch: member.epoch().map(str::to_owned),
            rev: store.document.as_ref().map(|document| document.rev),
            read: store.read.map(rfc3339),
            problems: store.problem().into_iter().chain(&store.file_problem).cloned().collect(),
            marks: member.marks().values().map(|mark| entry(&mark.scope, &mark.id, &mark.stamp)).collect(),
            accepts: member.accepts().iter().map(|(site, accept)| entry(site, &accept.hash, &accept.stamp)).collect(),
            replicas,
        }
    }
}

/// Turns enforcement off if `is_off` returns `true`, and on if it returns `false`. Calls `is_off`
/// again afterwards, and repeats both steps if the result has changed.
fn follow(switch: &KillSwitch, why: impl Fn() -> Option<String>, is_off: impl Fn() -> bool) {
    loop {
        let wanted = is_off();
        switch.set_enforcement_because(if wanted { Enforcement::Off } else { Enforcement::On }, why());
        if is_off() == wanted {
            return;
        }
    }
}

pub(super) fn stamp(by: &Attribution) -> Stamp {
    let at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    Stamp { rev: 0, by: by.who.clone().unwrap_or_default(), at, why: by.reason.clone() }
}

/// Returns 64 random bits in hex.
pub(crate) fn random() -> String {
    let mut bytes = [0; 8];
    // Errors are ignored. After an error, a tag may repeat, so readers of the document may notice a
    // change later, but this does little harm.
    let _ = ring::default_provider().secure_random.fill(&mut bytes);
    HEXLOWER.encode(&bytes)
}
