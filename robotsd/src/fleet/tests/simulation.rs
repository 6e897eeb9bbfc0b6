//! Simulates a fleet: replicas, one store, and the messages between them. Messages are lost,
//! delayed and duplicated, and the store is reset to earlier states. Replicas restart with their
//! disk, with an older copy of the disk, or without a disk. Single fields are damaged, IDs are
//! reused, and floods of notices keep replicas busy. The members and the timers of their readers
//! are the real code. Only the store is simulated.
//!
//! For each replica, the simulation tracks the off switches, tombstones and accepted versions that
//! the replica has read and must therefore know. [`Planted`] faults check that the simulation
//! detects violations.

mod planted;
mod shown;
mod step;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use self::planted::{PLANTED, Planted};
use self::shown::{MARKS, SCOPES, Shown, bits, id, marks, scope, site_of};
use self::step::{Message, Step};
use super::super::document::{Accept, Document, EVERY_SITE, Stamp, Write, WriteCall};
use super::super::member::{DocumentState, Member, ReadOutcome};
use super::super::reader::ReadTimer;
use super::super::test_store::PlayedStore;
use super::harness::{Random, World, simulate, steps};

/// Number of simulated schedules, each with [`LENGTH`] steps. By default, a run simulates only a
/// twentieth of this number.
const SCHEDULES: u64 = 100_000;
const LENGTH: usize = 24;

/// Maximum time until an off switch in the store takes effect on every replica that reads it.
const EVERYWHERE: Duration = Duration::from_secs(2);

/// Number of earlier states of the store that a step can reset the store to.
const REMEMBERED: usize = 12;

struct Replica {
    timer: ReadTimer,
    /// When the current flood of notices to the replica ends.
    busy: Instant,
    member: Member,
    shown: Shown,
    document_state: DocumentState,
    is_disk_full: bool,
    disk: Option<(Member, Shown)>,
}

struct Fleet<const PLANT: usize> {
    store: PlayedStore,
    /// Previous states of the store.
    before: Vec<Option<Document>>,
    replicas: Vec<Replica>,
    under_way: Vec<Message>,
    /// Replicas that the current step has changed.
    changed: BTreeSet<usize>,
    /// Counter for unique IDs, tags and epochs.
    number: u64,
    /// The site and hash of each accepted version, by its ID.
    accepted: BTreeMap<String, (String, String)>,
    now: Instant,
    /// When each off switch appeared in the store.
    since: BTreeMap<u8, Instant>,
}

impl Replica {
    fn new(now: Instant, at: usize) -> Self {
        Self {
            timer: ReadTimer::new(now, at as f64 / 4.0),
            busy: now,
            member: Member::default(),
            shown: Shown::default(),
            document_state: DocumentState::Unknown,
            is_disk_full: false,
            disk: None,
        }
    }
}

fn by() -> Stamp {
    Stamp { by: "p".to_owned(), ..Stamp::default() }
}

/// Returns the rev and the ID, which together identify an accepted version of a site.
fn identity(accept: &Accept) -> (u64, &str) {
    (accept.stamp.rev, &accept.id)
}

/// Returns a copy of a member with changed JSON, for a planted fault.
fn changed(member: &Member, change: impl FnOnce(&mut serde_json::Value)) -> Member {
    let mut value = serde_json::to_value(member).unwrap();
    change(&mut value);
    serde_json::from_value(value).unwrap()
}

impl<const PLANT: usize> Fleet<PLANT> {
    const FAULT: Planted = PLANTED[PLANT];

    fn next(&mut self) -> u64 {
        self.number += 1;
        self.number
    }

    fn send(&mut self, at: usize, writes: impl IntoIterator<Item = Write>) {
        for write in writes {
            let tag = self.next().to_string();
            self.under_way.extend(self.replicas[at].member.call(write, &tag).map(Message::Write));
        }
    }

    fn call_others(&mut self, at: usize, message: impl Fn(usize) -> Message) {
        let others = (0..self.replicas.len()).filter(|other| *other != at);
        self.under_way.extend(others.map(message));
    }

    /// Stores the member of a replica on its disk, unless the disk is full.
    fn save(&mut self, at: usize) {
        self.changed.insert(at);
        let replica = &mut self.replicas[at];
        if !replica.is_disk_full {
            replica.disk = Some((replica.member.clone(), replica.shown.clone()));
        }
    }

    fn remember(&mut self) {
        self.before.push(self.store.0.clone());
        if self.before.len() > REMEMBERED {
            self.before.remove(0);
        }
    }

    fn write(&mut self, call: &WriteCall) -> Result<(), String> {
        self.remember();
        if let (Planted::AcceptOverwritesDocument, Write::Accept(..)) = (Self::FAULT, &call.write)
            && let [.., earlier, _] = &*self.before
        {
            self.store.0.clone_from(earlier);
        }
        self.store.write(call);
        let none = Document::default();
        let [before, now] =
            [self.before.last().and_then(Option::as_ref), self.store.0.as_ref()].map(|of| of.unwrap_or(&none));
        let kept = bits(&now.marks) | bits(&now.lifted);
        if bits(&before.marks) & !kept != 0 || bits(&before.lifted) & !bits(&now.lifted) != 0 {
            return Err(format!("the write {call:?} removed an off switch or a tombstone from the document"));
        }
        let is_back =
            |(site, own): (&String, &Accept)| now.accepts.get(site).is_none_or(|new| new.stamp.rev < own.stamp.rev);
        if before.accepts.iter().any(is_back) {
            return Err(format!("the write {call:?} reset an accept"));
        }
        self.look();
        Ok(())
    }

    /// Updates `since` after the store has changed.
    fn look(&mut self) {
        let there = self.store.0.as_ref().map_or(0, |document| bits(&document.marks));
        self.since.retain(|mark, _| there & 1 << mark != 0);
        for mark in marks(there) {
            self.since.entry(mark).or_insert(self.now);
        }
    }

    /// Advances the time. Replicas read the store whenever their timers are due.
    fn pass(&mut self, time: Duration) -> Result<(), String> {
        let until = self.now + time;
        loop {
            let due = |replica: &Replica| self.now + replica.timer.wait(self.now);
            let next = (0..self.replicas.len()).min_by_key(|at| due(&self.replicas[*at]));
            let (at, due) = next.map(|at| (at, due(&self.replicas[at]))).unwrap();
            if due > until {
                break;
            }
            self.now = due;
            let Replica { timer, busy, .. } = &mut self.replicas[at];
            if Self::FAULT == Planted::NoticesRestartTimer && *busy > due {
                timer.restart(*busy);
                continue;
            }
            timer.restart(due);
            self.read(at)?;
        }
        self.now = until;
        let Some(document) = &self.store.0 else { return Ok(()) };
        for (mark, since) in self.since.iter().filter(|(_, since)| self.now.duration_since(**since) >= EVERYWHERE) {
            let reads = |epoch: &str| document.epoch.is_empty() || document.epoch == epoch;
            let late = self.replicas.iter().position(|Replica { member, shown, .. }| {
                member.epoch().is_some_and(reads) && (bits(member.marks()) | shown.lifted) & 1 << mark == 0
            });
            if let Some(at) = late {
                let time = self.now.duration_since(*since);
                return Err(format!("off switch {mark} has been in the store for {time:?}, but replica {at} is late"));
            }
        }
        Ok(())
    }

    /// Delivers a document to a replica. Returns the replica's writes for lost entries.
    fn see(&mut self, to: usize, read: Option<&Document>) -> Vec<Write> {
        let replica = &mut self.replicas[to];
        let before = (Self::FAULT == Planted::AcceptEndsMark).then(|| replica.member.accepts().clone());
        let is_damaged = read.is_some_and(|read| !read.damaged.is_empty());
        let is_hidden = Self::FAULT == Planted::DamageHidesDocument && is_damaged && replica.member.is_known();
        let seen = if is_hidden { ReadOutcome::default() } else { replica.member.seen(read) };
        replica.document_state = seen.document_state;
        if let Some(read) = read {
            replica.shown.document(read);
            let is_own = replica.shown.epoch.as_ref() == Some(&read.epoch);
            match (Self::FAULT, before) {
                (_, Some(before)) => {
                    let is_new = |site: &&String| before.get(*site) != replica.member.accepts().get(*site);
                    let sites: Vec<_> = replica.member.accepts().keys().filter(is_new).cloned().collect();
                    replica.member = changed(&replica.member, |member| {
                        let marks = member["marks"].as_object_mut().unwrap();
                        marks.retain(|_, mark| sites.iter().all(|site| mark["scope"] != **site));
                    });
                }
                (Planted::AnyAccept, _) if is_own => {
                    let accepts = serde_json::to_value(&read.accepts).unwrap();
                    replica.member = changed(&replica.member, |member| member["accepts"] = accepts);
                }
                _ => {}
            }
        }
        self.save(to);
        seen.write_back
    }

    /// Lets a replica read the store and write lost entries back. Returns `true` if there were no
    /// lost entries.
    fn read(&mut self, at: usize) -> Result<bool, String> {
        let read = self.store.0.clone();
        let lost = self.see(at, read.as_ref());
        let is_whole = lost.is_empty();
        for write in lost {
            let tag = self.next().to_string();
            if let Some(call) = self.replicas[at].member.call(write, &tag) {
                self.write(&call)?;
            }
        }
        Ok(is_whole)
    }

    fn turn_off(&mut self, at: usize, mark: u8) -> Result<(), String> {
        let Replica { member, shown, .. } = &mut self.replicas[at];
        let written = member.turn_off(&id(mark), scope(mark), by());
        if written.is_err() != (shown.lifted & 1 << mark != 0) {
            return Err(format!("replica {at} was shown {shown:?}, but returned {written:?} for off switch {mark}"));
        }
        let is_confirmed = written.is_ok() || Self::FAULT == Planted::ConfirmedUnseen;
        if is_confirmed && !member.is_off(site_of(mark)) {
            return Err(format!("replica {at} confirms off switch {mark}, but enforces"));
        }
        if let Ok(write) = written {
            shown.off(mark);
            self.save(at);
            self.send(at, [write]);
        }
        Ok(())
    }

    fn lift(&mut self, at: usize, mark: u8) {
        let replica = &mut self.replicas[at];
        replica.shown.lift(mark);
        let write = replica.member.lift(&format!("{}:{}", scope(mark), id(mark)), by());
        self.save(at);
        self.send(at, [write]);
    }

    fn arrive(&mut self, message: Message) -> Result<(), String> {
        match message {
            Message::Document { to, read } => {
                let lost = self.see(to, read.as_ref());
                self.send(to, lost);
            }
            Message::Write(call) => self.write(&call)?,
            Message::Off { to, mark } => self.turn_off(to, mark)?,
            Message::On { to, mark } => self.lift(to, mark),
        }
        Ok(())
    }

    fn damage(&mut self, number: usize) {
        let Some(document) = &self.store.0 else { return };
        let entries = document.marks.keys().map(|name| format!("off:{name}"));
        let entries = entries.chain(document.lifted.keys().map(|name| format!("lifted:{name}")));
        let entries = entries.chain(document.accepts.keys().map(|site| format!("accept:{site}")));
        let fields: Vec<_> = ["epoch", "rev"].map(str::to_owned).into_iter().chain(entries).collect();
        self.remember();
        self.store.damage(&fields[number % fields.len()], b"\xff");
    }

    fn repair(&mut self, at: usize) -> Result<(), String> {
        let Some(document) = self.store.0.clone().filter(|document| !document.damaged.is_empty()) else {
            return Ok(());
        };
        let member = &self.replicas[at].member;
        let known = member.epoch().map(str::to_owned);
        let Some(epoch) = known.or(Some(document.epoch.clone()).filter(|epoch| !epoch.is_empty())) else {
            return Ok(());
        };
        let write = Write::Repair(document.repairs(member.marks(), &by()));
        let is_own = document.epoch.is_empty() || document.epoch == epoch;
        let writes = member.restore(Some(&document));
        let tag = self.next().to_string();
        self.write(&WriteCall { epoch, floor: document.rev, tag, write })?;
        if is_own && self.store.0.as_ref().is_some_and(|document| !document.damaged.is_empty()) {
            return Err(format!("the document is still damaged after the repair: {:?}", self.store.0));
        }
        self.send(at, writes);
        Ok(())
    }

    /// Returns the replicas that `status` reports as synced: current, with the document's digest.
    fn synced(&self) -> Vec<&Replica> {
        let digest = self.store.0.as_ref().map(Document::digest);
        let is_equal =
            |replica: &&Replica| Self::FAULT == Planted::SyncedWithoutDigest || Some(replica.member.digest()) == digest;
        let current = self.replicas.iter().filter(|replica| replica.document_state == DocumentState::Current);
        current.filter(is_equal).collect()
    }

    /// Lets all replicas with the store's epoch read until nothing changes. Afterwards, they must
    /// agree.
    fn settle(&mut self) -> Result<(), String> {
        for _ in 0..self.replicas.len() + 2 {
            for at in 0..self.replicas.len() {
                self.read(at)?;
            }
        }
        for at in 0..self.replicas.len() {
            if !self.read(at)? {
                return Err(format!("replica {at} still has entries to write back"));
            }
        }
        let Some(document) = &self.store.0 else { return Ok(()) };
        let of_epoch = || self.replicas.iter().filter(|replica| replica.member.epoch() == Some(&document.epoch));
        let [marked, lifted] = of_epoch()
            .fold([0, 0], |[marked, lifted], Replica { shown, .. }| [marked | shown.marks, lifted | shown.lifted]);
        for replica in of_epoch() {
            if replica.shown.held() != marked & !lifted {
                return Err(format!(
                    "an off switch is missing on a replica: {:?}, expected {:?}",
                    replica.shown,
                    marked & !lifted
                ));
            }
            if replica.document_state == DocumentState::Current && replica.member.digest() != document.digest() {
                return Err(format!("{:?} is current, but differs from {document:?}", replica.member));
            }
        }
        self.compare()
    }

    /// Checks that all synced replicas know the same entries.
    fn compare(&self) -> Result<(), String> {
        for pair in self.synced().windows(2) {
            let [one, other] = [pair[0], pair[1]].map(|Replica { member, .. }| member);
            let is_same_accept = |(one, other): ((&String, &Accept), (&String, &Accept))| {
                one.0 == other.0 && identity(one.1) == identity(other.1)
            };
            let are_same = one.accepts().len() == other.accepts().len()
                && one.accepts().iter().zip(other.accepts()).all(is_same_accept);
            if !are_same || !one.marks().keys().eq(other.marks().keys()) {
                return Err(format!("two synced replicas differ: {one:?} and {other:?}"));
            }
        }
        Ok(())
    }

    /// Checks the properties that each replica must always have.
    fn check(&mut self) -> Result<(), String> {
        for at in std::mem::take(&mut self.changed) {
            let Replica { member, shown, .. } = &mut self.replicas[at];
            let counting = bits(member.marks());
            for mark in marks(shown.held()) {
                if counting & 1 << mark == 0 || !member.is_off(site_of(mark)) {
                    return Err(format!("replica {at} enforces despite off switch {mark}, which was not lifted"));
                }
            }
            if let Some(mark) = marks(shown.lifted & counting).next() {
                return Err(format!("replica {at} is off although it was shown that off switch {mark} was lifted"));
            }
            if let Some(mark) = marks(counting & !shown.held()).next() {
                return Err(format!("replica {at} is off because of off switch {mark}, which it was never shown"));
            }
            if member.epoch() != shown.epoch.as_deref()
                || member.is_off("c")
                    != (shown.epoch.is_none() || marks(counting).any(|mark| scope(mark) == EVERY_SITE))
            {
                return Err(format!("replica {at} has an epoch that it was not shown, or enforces without an epoch"));
            }
            for (site, (rev, id)) in &shown.accepts {
                let now = member.accepts().get(site).map(identity);
                if now.is_none_or(|(now, of)| now < *rev || now == *rev && of != id) {
                    return Err(format!("replica {at}: the accept of {site} was reset from {rev} ({id}) to {now:?}"));
                }
            }
            for (site, accept) in member.accepts() {
                if self.accepted.get(&accept.id) != Some(&(site.clone(), accept.hash.clone())) {
                    return Err(format!("replica {at} has an unknown accept of {site}: {accept:?}"));
                }
                let (rev, id) = identity(accept);
                if shown.accepts.get(site).is_none_or(|(known, _)| *known != rev) {
                    shown.accepts.insert(site.clone(), (rev, id.to_owned()));
                }
            }
        }
        Ok(())
    }
}

impl<const PLANT: usize> World for Fleet<PLANT> {
    /// Number of replicas.
    type Settings = usize;
    type Step = Step;

    fn settings(random: &mut Random) -> usize {
        *random.pick(&[2, 3, 4])
    }

    fn step(replicas: &usize, random: &mut Random) -> Step {
        let at = usize::try_from(random.below(*replicas as u64)).unwrap();
        let number = usize::try_from(random.below(1000)).unwrap();
        let direct = random.once_in(3);
        let mark = u8::try_from(random.below(u64::from(MARKS))).unwrap();
        random
            .weighted(&[
                (10, Step::Off { at, mark, direct }),
                (7, Step::On { at, direct }),
                (12, Step::Accept { at, site: number % 2 }),
                (3, Step::Restore { at }),
                (3, Step::Repair { at }),
                (6, Step::Damage(number)),
                (4, Step::Notices { at, time: 500 + number as u64 * 4 }),
                (10, Step::Pass(200 + number as u64 * 2)),
                (24, Step::Read { at }),
                (8, Step::Ask { at }),
                (30, Step::Deliver(number)),
                (6, Step::Lose(number)),
                (5, Step::Double(number)),
                (3, Step::Wipe),
                (6, Step::GoBack(number)),
                (1, Step::Replace),
                (3, Step::Disk { at, works: direct }),
                (6, Step::Restart { at, with_disk: number % 3 > 0 }),
                (6, Step::Status),
                (3, Step::Settle),
            ])
            .clone()
    }

    fn begin(replicas: &usize) -> Self {
        let (mut store, now) = (PlayedStore::default(), Instant::now());
        store.write(&WriteCall { epoch: "e".to_owned(), floor: 0, tag: "0".to_owned(), write: Write::Begin });
        Self {
            store,
            before: Vec::new(),
            replicas: (0..*replicas).map(|at| Replica::new(now, at)).collect(),
            under_way: Vec::new(),
            changed: BTreeSet::new(),
            number: 0,
            accepted: BTreeMap::new(),
            now,
            since: BTreeMap::new(),
        }
    }

    fn take(&mut self, step: &Step) -> Result<(), String> {
        let under_way = self.under_way.len();
        match *step {
            Step::Off { at, mark, direct } => {
                self.turn_off(at, mark)?;
                if direct {
                    self.call_others(at, |to| Message::Off { to, mark });
                }
            }
            Step::On { at, direct } => {
                for mark in marks(bits(self.replicas[at].member.marks())) {
                    self.lift(at, mark);
                    if direct {
                        self.call_others(at, |to| Message::On { to, mark });
                    }
                }
            }
            Step::Accept { at, site } => {
                let (id, hash, site) = (self.next().to_string(), format!("h{}", self.number), SCOPES[site + 1]);
                self.accepted.insert(id.clone(), (site.to_owned(), hash.clone()));
                let write = self.replicas[at].member.accept(site, &id, &hash, by());
                self.send(at, [write]);
            }
            Step::Restore { at } => {
                let writes = self.replicas[at].member.restore(self.store.0.as_ref());
                self.send(at, writes);
            }
            Step::Repair { at } => self.repair(at)?,
            Step::Damage(number) => self.damage(number),
            Step::Notices { at, time } => self.replicas[at].busy = self.now + Duration::from_millis(time),
            Step::Pass(time) => self.pass(Duration::from_millis(time))?,
            Step::Read { at } => drop(self.read(at)?),
            Step::Ask { at } => {
                self.under_way.push(Message::Document { to: at, read: self.store.0.clone() });
            }
            Step::Deliver(_) | Step::Lose(_) | Step::Double(_) if under_way == 0 => {}
            Step::Deliver(number) => {
                let message = self.under_way.remove(number % under_way);
                self.arrive(message)?;
            }
            Step::Lose(number) => drop(self.under_way.remove(number % under_way)),
            Step::Double(number) => self.under_way.push(self.under_way[number % under_way].clone()),
            Step::Wipe => {
                self.remember();
                self.store.0 = None;
            }
            Step::GoBack(number) if !self.before.is_empty() => {
                let earlier = self.before[number % self.before.len()].clone();
                self.remember();
                self.store.0 = earlier;
            }
            Step::GoBack(_) => {}
            Step::Replace => {
                self.remember();
                let epoch = format!("e{}", self.next());
                self.store.0 = None;
                self.store.write(&WriteCall { epoch, floor: 0, tag: "0".to_owned(), write: Write::Begin });
            }
            Step::Disk { at, works } => {
                self.replicas[at].is_disk_full = !works;
                self.save(at);
            }
            Step::Restart { at, with_disk } => {
                let Replica { disk, is_disk_full, .. } = &mut self.replicas[at];
                let (disk, is_disk_full) = (disk.take().filter(|_| with_disk), *is_disk_full);
                let (member, shown) = disk.clone().unwrap_or_default();
                // The member is stored in its serialized form, as in a state directory.
                let member = changed(&member, |member| {
                    if Self::FAULT == Planted::TombstonesForgotten {
                        member.as_object_mut().unwrap().remove("lifted");
                    }
                });
                self.replicas[at] = Replica { member, shown, is_disk_full, disk, ..Replica::new(self.now, at) };
                self.changed.insert(at);
            }
            Step::Status => self.compare()?,
            Step::Settle => self.settle()?,
        }
        self.look();
        self.check()
    }
}

#[test]
fn a_simulated_fleet_keeps_all_its_guarantees() {
    let schedules = if std::env::var_os("ROBOTSD_LONG").is_some() { SCHEDULES } else { SCHEDULES / 20 };
    simulate::<Fleet<0>>(steps(schedules * LENGTH as u64), LENGTH).expect_none("fleet");
}
