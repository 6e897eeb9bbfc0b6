//! The fleet as the other rooms have it: the switches that it turns, the changes that an operator makes, and its report.
//!
//! **A mark is in force whatever can be written**: the store is asked for it while the switches are turned and the state directory is
//! written, which may take its time. What the store does not take is kept, and written once the store is read.

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

use super::asks::{Asked, Asks, WriteAnswers};
use super::document::{Document, Field, Stamp, Write, WriteAnswer, WriteCall};
use super::member::{Member, Seen, Standing};
use super::standing::{Heartbeat, SILENT, StateAndReason};
use crate::config::FleetSettings;
use crate::date::rfc3339;
use crate::files;
use crate::log::{Log, LogEvent, LogLevel};
use crate::report::{FleetEntry, FleetReport, ReplicaState, ServedVersions};

/// The file of the state directory that has what the replica knows.
const FILE: &str = "fleet.json";

/// Free bytes at the end of the file: some fifty marks are kept in it on a disk that is full.
const ROOM: usize = 8 << 10;

/// A process as a member of its fleet.
#[derive(Debug)]
pub(crate) struct Fleet {
    pub(super) settings: FleetSettings,
    file: Option<PathBuf>,
    pub(super) log: Log,
    pub(super) member: Mutex<Member>,
    /// Held while the file is written.
    saving: Mutex<()>,
    every_site: KillSwitch,
    /// Another process has its place, and its name: that one says what the replica has.
    pub(crate) is_replaced: AtomicBool,
    /// Of every site, and host of one, that was opened.
    sites: Mutex<HashMap<String, KillSwitch>>,
    pub(super) store: Mutex<StoreView>,
    pub(super) asks: Asks,
    /// Until the threads take it.
    pub(super) asked: Mutex<Option<Asked>>,
}

/// What an operator decided, on its way to the store.
#[derive(Debug)]
pub(crate) struct Decision {
    /// The number of entries that it changes.
    pub(crate) writes: usize,
    answer: WriteAnswers,
}

/// Longer than a process and the one that takes its place both say what the replica has.
const AT_ONCE: Duration = Duration::from_secs(4);

/// What was seen of the store last.
#[derive(Clone, Debug, Default)]
pub(super) struct StoreView {
    pub(super) standing: Standing,
    pub(super) document: Option<Document>,
    /// When it was read last.
    pub(super) read: Option<SystemTime>,
    /// Whether that was the last attempt.
    is_read: bool,
    /// When a heartbeat of another process was found under its name: first, and last, with no long gap between.
    other: Option<(Instant, Instant)>,
    /// Why it cannot be read.
    read_trouble: Option<String>,
    /// Why it cannot be written.
    write_trouble: Option<String>,
    /// How many entries are to be written back.
    lost: usize,
    file_trouble: Option<String>,
    pub(super) replicas: Arc<BTreeMap<String, Heartbeat>>,
    /// The clock of the store at the last heartbeat.
    pub(super) now: u64,
    /// Since when they are heard without a gap: behind one, all seem silent.
    hearing: Option<Instant>,
    /// Those that are silent, and when they were heard last.
    pub(super) missing: BTreeMap<String, u64>,
}

impl StoreView {
    /// Why the store cannot be read, or written.
    pub(super) fn trouble(&self) -> Option<&String> {
        self.read_trouble.as_ref().or(self.write_trouble.as_ref())
    }

    /// How the replica stands. Two processes with one name come first: the others take them for one.
    pub(super) fn state(&self) -> StateAndReason {
        // For a moment a process meets the one that takes its place.
        let is_other = |(first, last): (Instant, Instant)| last.elapsed().as_secs() < SILENT && last - first >= AT_ONCE;
        if !self.other.is_some_and(is_other) {
            return self.standing.state();
        }
        let why = "another process has the name of this replica: give each of them its own `replica` in [fleet]";
        (ReplicaState::Doubled, Some(why.to_owned()))
    }
}

impl Fleet {
    /// What the state directory has of it. Every site that joins is off where that cannot be read, or is not there.
    pub(crate) fn open(settings: &FleetSettings, state_dir: Option<&Path>, log: &Log) -> Arc<Self> {
        let (asks, asked) = Asks::new();
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

    /// Reads what another process has written since, whose place this one takes.
    pub(crate) fn read_file(&self) {
        let Some(file) = &self.file else { return self.follow() };
        let read = match files::read(file) {
            Ok(octets) => serde_json::from_slice(&octets).map_err(|error| error.to_string()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Member::default()),
            Err(error) => Err(error.to_string()),
        };
        let member = read.unwrap_or_else(|error| {
            let message =
                format!("{}: {error}: nothing is enforced until the fleet's document is read", file.display());
            self.warn(&*message);
            self.store.lock().file_trouble = Some(message);
            Member::default()
        });
        let standing = if member.is_known() { Standing::Current } else { Standing::Unknown };
        self.store.lock().standing = standing;
        *self.member.lock() = member;
        self.follow();
    }

    /// Has a robots.txt of this name follow the marks for it.
    pub(crate) fn join<S>(&self, builder: LiveBuilder<S>, name: &str) -> LiveBuilder<S> {
        let switch = self.sites.lock().entry(name.to_owned()).or_default().clone();
        self.follow_site(name, &switch);
        builder.additional_kill_switch(&self.every_site).additional_kill_switch(&switch)
    }

    /// Changes what is known. In force when it returns, and written to the state directory if that takes it. Blocks.
    pub(super) fn change<R>(&self, change: impl FnOnce(&mut Member) -> R) -> R {
        let (made, is_changed) = self.change_member(change);
        if is_changed {
            self.follow();
            self.save();
        }
        made
    }

    /// The same for a decision of an operator. The store is asked at once: the history of many sites, or a disk, may take longer.
    fn decide(&self, change: impl FnOnce(&mut Member) -> Vec<Write>) -> Decision {
        let (writes, is_changed) = self.change_member(change);
        let calls = self.calls(writes);
        let decision = Decision { writes: calls.len(), answer: self.asks.write(calls) };
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
        follow(&self.every_site, || self.unknown(), || self.member.lock().is_every_site_off());
        // The lock is held over no turn, which may wait for a disk.
        let sites: Vec<_> = self.sites.lock().iter().map(|(name, switch)| (name.clone(), switch.clone())).collect();
        sites.iter().for_each(|(name, switch)| self.follow_site(name, switch));
    }

    fn follow_site(&self, name: &str, switch: &KillSwitch) {
        follow(switch, || None, || self.member.lock().is_marked(name));
    }

    fn save(&self) {
        let Some(file) = &self.file else { return };
        let _saving = self.saving.lock();
        let text = serde_json::to_vec(&*self.member.lock()).unwrap_or_default();
        // A full disk takes no new file: there the one that it has is overwritten.
        let written = files::replace(file, &files::with_room(&text, ROOM));
        let written = written.or_else(|error| files::overwrite(file, &text).map_err(|_| error));
        let trouble = written.err().map(|error| format!("{}: {error}", file.display()));
        let before = std::mem::replace(&mut self.store.lock().file_trouble, trouble.clone());
        if let Some(trouble) = trouble.filter(|trouble| before.as_ref() != Some(trouble)) {
            self.warn(trouble);
        }
    }

    pub(super) fn warn(&self, message: impl Into<String>) {
        self.log.say_at(LogLevel::Warn, LogEvent::Fleet, message);
    }

    /// Takes what comes of a document. Blocks.
    pub(super) fn saw(&self, read: Result<Option<Document>, String>) -> Vec<WriteCall> {
        let seen = match &read {
            Ok(document) => self.change(|member| member.seen(document.as_ref())),
            Err(why) => Seen { standing: Standing::Rejected(why.clone()), ..Seen::default() },
        };
        for change in &seen.changes {
            self.log.say(LogEvent::Fleet, change);
        }
        {
            let mut store = self.store.lock();
            if store.standing != seen.standing {
                let (state, why) = seen.standing.state();
                let level = if seen.standing == Standing::Current { LogLevel::Info } else { LogLevel::Warn };
                let why = why.map(|why| format!(": {why}")).unwrap_or_default();
                let message = format!("fleet {:?} is {}{why}", self.settings.name, state.as_str());
                self.log.say_at(level, LogEvent::Fleet, message);
            }
            store.standing = seen.standing;
            store.document = read.ok().flatten();
        }
        let lost = seen.write_back.len();
        let before = std::mem::replace(&mut self.store.lock().lost, lost);
        if lost != 0 && lost != before {
            self.warn(format!("entries that the store has lost and that are written back: {lost}"));
        }
        self.calls(seen.write_back)
    }

    /// What the replicas say, by the clock of the store. Blocks: there may be much of it.
    pub(super) fn hear(&self, now: u64, replicas: Vec<Field>) {
        // Nearly all serve the same.
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
        let is_settled = store.hearing.get_or_insert_with(Instant::now).elapsed().as_secs() > SILENT;
        let silent = replicas.iter().filter(|(name, beat)| {
            beat.is_missing(now) && **name != self.settings.replica && (is_settled || store.missing.contains_key(*name))
        });
        let missing = silent.map(|(name, beat)| (name.clone(), beat.at)).collect();
        store.missing = missing;
        // The reader of the document waits for this lock: the others are dropped without it.
        let before = std::mem::replace(&mut store.replicas, replicas);
        drop(store);
        drop(before);
    }

    /// A heartbeat of another process was the last under the name of this replica.
    pub(super) fn meets_another(&self) {
        let mut store = self.store.lock();
        let before = store.state().0;
        let lately = store.other.filter(|(_, last)| last.elapsed().as_secs() < SILENT);
        store.other = Some((lately.map_or_else(Instant::now, |(first, _)| first), Instant::now()));
        let (state, why) = store.state();
        drop(store);
        why.into_iter().filter(|_| before != state).for_each(|why| self.warn(why));
    }

    /// The document was read, or why not.
    pub(super) fn was_read(&self, trouble: Option<String>) {
        let is_back = self.note(|store| {
            store.is_read = trouble.is_none();
            if store.is_read {
                store.read = Some(SystemTime::now());
            }
            let before = std::mem::replace(&mut store.read_trouble, trouble);
            before.is_some() && store.is_read
        });
        if is_back {
            // So can it be written, perhaps.
            self.asks.ask_beat();
        }
    }

    /// The store was written, or why not.
    pub(super) fn was_written(&self, trouble: Option<String>) {
        self.note(|store| store.write_trouble = trouble);
    }

    /// Changes what is seen of the store, and logs whether there is trouble if that has changed.
    fn note<R>(&self, change: impl FnOnce(&mut StoreView) -> R) -> R {
        let mut store = self.store.lock();
        let before = store.trouble().cloned();
        let made = change(&mut store);
        let trouble = store.trouble().cloned();
        if trouble.is_some() {
            store.hearing = None;
        }
        drop(store);
        if trouble != before {
            let (level, message) = match &trouble {
                None => (LogLevel::Info, "the store of the fleet is read and written".to_owned()),
                Some(why) => (LogLevel::Warn, format!("{why}; the last document stays in force")),
            };
            self.log.say_at(level, LogEvent::Fleet, message);
        }
        made
    }

    pub(super) fn calls(&self, writes: Vec<Write>) -> Vec<WriteCall> {
        let member = self.member.lock();
        writes.into_iter().filter_map(|write| member.call(write, &random())).collect()
    }

    /// Turns enforcement of a scope off by a mark. It is off when this returns. Blocks.
    ///
    /// # Errors
    ///
    /// The id was used before, so nothing is turned off.
    pub(crate) fn turn_off(&self, id: &str, scope: &str, by: &Attribution) -> Result<Decision, String> {
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

    /// Lifts every mark of a scope that is known here. Blocks.
    pub(crate) fn lift(&self, scope: &str, by: &Attribution) -> Decision {
        let stamp = stamp(by);
        self.decide(|member| {
            let marks = member.marks().iter().filter(|(_, mark)| mark.scope == scope).map(|(name, _)| name.clone());
            let marks: Vec<_> = marks.collect();
            marks.iter().map(|name| member.lift(name, stamp.clone())).collect()
        })
    }

    /// Waits until the store has a decision, and the document is read then.
    ///
    /// # Errors
    ///
    /// Why the store does not have it.
    pub(crate) async fn stored(&self, Decision { writes, answer }: Decision) -> Result<(), String> {
        if writes == 0 { Err(self.nothing_to_write()) } else { self.written(answer).await.map(drop) }
    }

    fn nothing_to_write(&self) -> String {
        format!("no document of fleet {:?} is known here: `robotsd fleet init` makes one", self.settings.name)
    }

    /// Accepts a version for the fleet, in place of the one that is accepted as far as is known here.
    pub(crate) fn accept(&self, site: &str, hash: &str, by: &Attribution) -> Vec<WriteCall> {
        let accept = self.member.lock().accept(site, &random(), hash, stamp(by));
        self.calls(vec![accept])
    }

    /// Whether every site is off by it, and that is a decision.
    pub(crate) fn is_off(&self) -> bool {
        let member = self.member.lock();
        member.is_known() && member.is_every_site_off()
    }

    /// That no document was ever read, so that nothing is enforced.
    pub(crate) fn unknown(&self) -> Option<String> {
        let (of, store) = (&self.settings.name, self.settings.store.place());
        let why =
            format!("fleet {of:?}: no document of it is known, so nothing is enforced until it is read from {store}");
        (!self.member.lock().is_known()).then_some(why)
    }

    /// Whether it outlives the process.
    pub(crate) fn is_kept(&self) -> bool {
        self.file.is_some() && self.store.lock().file_trouble.is_none()
    }

    /// Has the store written, and the document read then.
    ///
    /// # Errors
    ///
    /// Why it was not written.
    pub(crate) async fn ask(&self, calls: Vec<WriteCall>) -> Result<Vec<WriteAnswer>, String> {
        if calls.is_empty() { Err(self.nothing_to_write()) } else { self.written(self.asks.write(calls)).await }
    }

    async fn written(&self, answer: WriteAnswers) -> Result<Vec<WriteAnswer>, String> {
        let answers = answer.await.unwrap_or_else(|_| Err("the thread of the fleet has ended".to_owned()))?;
        self.asks.read().await;
        let refused = answers.iter().find_map(|answer| match answer {
            WriteAnswer::Conflict(rev) => Some(format!(
                "the store has another entry than this replica, of rev {rev}: look at `robotsd status --fleet`, and try again"
            )),
            WriteAnswer::Foreign(epoch) => Some(format!("the document in the store is of another fleet, epoch {epoch}")),
            WriteAnswer::Written(_) | WriteAnswer::Kept => None,
        });
        refused.map_or(Ok(answers), Err)
    }

    /// Reads the document, and hears the replicas, at the same time. An error is a trouble of the report.
    pub(crate) async fn look(&self) {
        tokio::join!(self.asks.read(), self.asks.beat());
    }

    /// Takes this replica from the list: the process ends.
    pub(crate) async fn leave(&self) {
        self.asks.leave().await;
    }

    /// When the document was read last.
    pub(crate) fn read(&self) -> Option<SystemTime> {
        self.store.lock().read
    }

    /// That it goes on without what the store has; none before the store was asked, or where it has never read a document.
    pub(crate) fn trouble(&self) -> Option<String> {
        let store = self.store.lock();
        let (state, why) = match store.state() {
            (ReplicaState::Current, _) if !store.is_read => {
                let why = store.trouble()?;
                (ReplicaState::Stale, format!("{why}; the last document stays in force"))
            }
            (ReplicaState::Unknown, _) => return None,
            (state, why) => (state, why?),
        };
        Some(format!("fleet {:?} is {}: {why}", self.settings.name, state.as_str()))
    }

    pub(crate) fn report(&self) -> FleetReport {
        let member = self.member.lock().clone();
        // The reader of the document waits for this lock, and there may be much to report.
        let store = self.store.lock().clone();
        let own_name = &self.settings.replica;
        let sites = store.replicas.get(own_name).map(|own| own.sites.clone()).unwrap_or_default();
        // The others are as they were when it was read last.
        let state = match store.state().0 {
            ReplicaState::Current if !store.is_read => ReplicaState::Stale,
            state => state,
        };
        let of_own = if store.trouble().is_some() { ReplicaState::Stale } else { state };
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
            troubles: store.trouble().into_iter().chain(&store.file_trouble).cloned().collect(),
            marks: member.marks().values().map(|mark| entry(&mark.scope, &mark.id, &mark.stamp)).collect(),
            accepts: member.accepts().iter().map(|(site, accept)| entry(site, &accept.hash, &accept.stamp)).collect(),
            replicas,
        }
    }
}

/// Turns a switch as is wanted; again, where that has changed meanwhile.
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

/// 64 random bits in hex.
pub(crate) fn random() -> String {
    let mut octets = [0; 8];
    // Without randomness no connection with TLS is made either; a tag that repeats only delays a reader.
    let _ = ring::default_provider().secure_random.fill(&mut octets);
    HEXLOWER.encode(&octets)
}
