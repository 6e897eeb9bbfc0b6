//! A simple model of publishing. It predicts which version is served, which one is pending, what
//! the status shows, and what a restart finds. A robots.txt is only a number here, and there are no
//! hashes, rules, files or locks.
//!
//! The model of the disk is a set of possible states, because a write that seems to have failed may
//! have succeeded.

use std::time::{Duration, SystemTime};

use crate::live::RejectionKind;

/// The number of a valid robots.txt. A file with a number from [`SHUT`] on blocks everyone.
pub(super) type Text = u8;
pub(super) const TEXTS: Text = 8;
pub(super) const SHUT: Text = 6;

/// Length of the grace periods of a site that has grace periods.
pub(super) const GRACE: Duration = Duration::from_secs(3 * 86400);

/// The time of the machine's clock, which may be set, and of the steady clock, which cannot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Now {
    pub(super) clock: SystemTime,
    pub(super) steady: Duration,
}

/// The content of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held {
    Text(Text),
    /// Unusable content: half a file, an HTML page, or no file.
    Broken(RejectionKind),
    /// The server responds that there is no robots.txt.
    Absent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ModelGate {
    Open,
    /// Refuses a version that blocks everyone, or that allows everyone after a version that blocked
    /// everyone.
    Comparing,
    /// Like `Comparing`, but accepts one version, which is listed in the gate.
    Accepting(Text),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ModelOutcome {
    Published(Text),
    Unchanged(Text),
    Absent,
    Kept(RejectionKind),
    Gated(Waiting),
    /// The hash does not match the pending version, or there is no version to roll back to.
    NoSuchVersion,
}

/// A pending version, and whether it was rolled back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waiting {
    pub(super) text: Text,
    pub(super) is_rolled_back: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ModelStanding {
    Accepted,
    /// The version was rolled back, and does not go live again by itself.
    Held,
    /// The version was rolled back, but may go live again, because the source had other content
    /// after the rollback.
    Free,
}

/// A version that was accepted once.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Known {
    text: Text,
    since: SystemTime,
    standing: ModelStanding,
}

/// Which version was live when the previous process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LiveBefore {
    /// The version that was accepted last.
    Last,
    Unknown,
    /// A version whose bytes are lost.
    Lost(Text),
}

/// The expected state of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Model {
    /// The accepted versions, in the order of acceptance.
    known: Vec<Known>,
    /// Whether the server has removed the robots.txt, so that no version is live.
    is_absent: bool,
    waiting: Option<Waiting>,
    /// Whether the current gate has examined the pending version.
    is_examined: bool,
    live: Option<Text>,
    before: LiveBefore,
    gate: ModelGate,
    has_grace: bool,
    /// When the grace period ends, as a time of the machine's clock and of the steady clock.
    grace: Option<(SystemTime, Duration)>,
    reported: ModelOutcome,
    is_behind: bool,
}

/// The status and notifications that the model predicts for a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) outcome: ModelOutcome,
    pub(super) is_news: bool,
    pub(super) live: Option<Text>,
    pub(super) waiting: Option<Waiting>,
    /// The version that a rollback would publish.
    pub(super) before: Option<Text>,
    pub(super) grace_end: Option<SystemTime>,
    /// Whether the status reports that the served version may be older than before the restart.
    pub(super) is_behind: bool,
}

impl Model {
    pub(super) fn new(gate: ModelGate, has_grace: bool) -> Self {
        Self {
            known: Vec::new(),
            is_absent: false,
            waiting: None,
            is_examined: false,
            live: None,
            before: LiveBefore::Unknown,
            gate,
            has_grace,
            grace: None,
            reported: ModelOutcome::Kept(RejectionKind::Missing),
            is_behind: false,
        }
    }

    /// Opens a site: publishes its source or, if impossible, the version accepted last.
    pub(super) fn start(&mut self, held: Held, now: Now) -> (ModelOutcome, bool) {
        let last = self.last();
        let outcome = self.decide(held, now);
        let is_unfetched = outcome == ModelOutcome::Kept(RejectionKind::NotFetched);
        if is_unfetched {
            self.is_behind = false;
        }
        match (outcome, last) {
            (ModelOutcome::Published(_), _) => self.is_behind = false,
            (_, Some(_)) if is_unfetched && self.is_absent => {}
            (_, Some(last)) => {
                self.show(last, now);
                if self.before != LiveBefore::Last {
                    self.is_behind = true;
                }
            }
            (_, None) => {}
        }
        self.reported = outcome;
        (outcome, !is_unfetched)
    }

    /// Reads the source. `is_asked` is true if a caller requested the reload.
    pub(super) fn consider(&mut self, held: Held, is_asked: bool, now: Now) -> (ModelOutcome, bool) {
        let outcome = self.decide(held, now);
        let is_live = |outcome| matches!(outcome, ModelOutcome::Published(_) | ModelOutcome::Unchanged(_));
        let is_the_same = outcome == self.reported || is_live(outcome) && is_live(self.reported);
        let is_news = is_asked || matches!(outcome, ModelOutcome::Published(_)) || !is_the_same;
        self.report(outcome);
        (outcome, is_news)
    }

    fn decide(&mut self, held: Held, now: Now) -> ModelOutcome {
        let text = match held {
            Held::Broken(kind) => return ModelOutcome::Kept(kind),
            Held::Absent => {
                (self.live, self.grace) = (None, None);
                self.is_absent = self.last().is_some();
                return ModelOutcome::Absent;
            }
            Held::Text(text) => text,
        };
        if self.live == Some(text) {
            if self.waiting.take().is_some() {
                self.free();
            }
            return ModelOutcome::Unchanged(text);
        }
        if let Some(waiting) = self.waiting.filter(|waiting| waiting.text == text)
            && (self.is_examined || waiting.is_rolled_back)
        {
            return ModelOutcome::Gated(waiting);
        }
        let is_rolled_back = self.known.iter().any(|known| known.text == text && known.standing == ModelStanding::Held);
        let was_live = self.last() == Some(text) || self.before == LiveBefore::Lost(text);
        if is_rolled_back || !was_live && self.refuses(text) {
            return ModelOutcome::Gated(self.wait(Waiting { text, is_rolled_back }));
        }
        self.free();
        self.publish(text, now)
    }

    /// Accepts a version for an operator. Succeeds only if the version is pending.
    pub(super) fn accept(&mut self, text: Text, now: Now) -> (ModelOutcome, bool) {
        match self.waiting {
            Some(waiting) if waiting.text == text => {
                let outcome = self.publish(text, now);
                self.report(outcome);
                (outcome, true)
            }
            _ => (ModelOutcome::NoSuchVersion, false),
        }
    }

    /// Rolls back to the previous version for an operator. The rolled-back version does not go live
    /// again by itself.
    pub(super) fn roll_back(&mut self, now: Now) -> (ModelOutcome, bool) {
        let Some(before) = self.last_but(1) else { return (ModelOutcome::NoSuchVersion, false) };
        let left = self.known.iter_mut().rfind(|known| known.standing == ModelStanding::Accepted).unwrap();
        left.standing = ModelStanding::Held;
        let text = left.text;
        self.wait(Waiting { text, is_rolled_back: true });
        self.show(before, now);
        let outcome = ModelOutcome::Published(before);
        self.report(outcome);
        (outcome, true)
    }

    pub(super) fn set_gate(&mut self, gate: ModelGate) {
        (self.gate, self.is_examined) = (gate, false);
    }

    pub(super) fn seen(&self, (outcome, is_news): (ModelOutcome, bool), now: Now) -> Seen {
        Seen {
            outcome,
            is_news,
            live: self.live,
            waiting: self.waiting,
            before: self.last_but(1),
            // The grace period is not prolonged if the clock is set back.
            grace_end: self
                .grace
                .filter(|(end, over)| now.clock < *end && now.steady < *over)
                .map(|(end, over)| end.min(now.clock + (over - now.steady))),
            is_behind: self.is_behind,
        }
    }

    pub(super) const fn live(&self) -> Option<Text> {
        self.live
    }

    pub(super) const fn waiting(&self) -> Option<Waiting> {
        self.waiting
    }

    /// Returns the state of a site that is opened again, in the same process or in the next one.
    fn anew(saved: &Saved, before: LiveBefore, site: &Self, now: Now) -> Self {
        let mut known = saved.known.clone();
        // Dates in the future are changed to the current time.
        known.iter_mut().for_each(|known| known.since = known.since.min(now.clock));
        let new = Self::new(site.gate, site.has_grace);
        Self { known, is_absent: saved.is_absent, waiting: saved.waiting, before, ..new }
    }

    /// Returns the possible states of a new site that replaces this one in the same process.
    pub(super) fn replaced(&self, is_sure: bool, now: Now) -> Vec<Self> {
        let mut before = vec![LiveBefore::Last];
        if !is_sure {
            before.extend([LiveBefore::Unknown, self.before]);
        }
        let anew = |before| Self::anew(&self.saved(), before, self, now).with_problems_of(self);
        before.into_iter().map(anew).collect()
    }

    /// Returns this state with the reported problems of `other`.
    pub(super) fn with_problems_of(self, other: &Self) -> Self {
        Self { is_behind: other.is_behind, ..self }
    }

    pub(super) fn saved(&self) -> Saved {
        Saved { known: self.known.clone(), is_absent: self.is_absent, waiting: self.waiting }
    }

    fn record(&self) -> Record {
        let held = self.known.iter().filter(|known| known.standing == ModelStanding::Held);
        let last = self.known.iter().rfind(|known| known.standing == ModelStanding::Accepted);
        let (live, held) = (last.map(|last| (last.text, last.since)), held.map(|known| known.text).collect());
        Record { live, held, is_absent: self.is_absent }
    }

    fn report(&mut self, outcome: ModelOutcome) {
        self.reported = outcome;
        if !matches!(outcome, ModelOutcome::Kept(_) | ModelOutcome::Gated(_)) {
            self.is_behind = false;
        }
    }

    fn publish(&mut self, text: Text, now: Now) -> ModelOutcome {
        accept(&mut self.known, text, now.clock);
        (self.waiting, self.before) = (None, LiveBefore::Last);
        self.show(text, now);
        ModelOutcome::Published(text)
    }

    /// Publishes a version. Its grace period starts when the version is first accepted, but never
    /// in the future.
    fn show(&mut self, text: Text, now: Now) {
        (self.live, self.is_absent) = (Some(text), false);
        self.known.iter_mut().for_each(|known| known.since = known.since.min(now.clock));
        let last = self.known.iter().rfind(|known| known.standing == ModelStanding::Accepted);
        let end = last.map(|last| last.since + GRACE).filter(|end| self.has_grace && *end > now.clock);
        self.grace = end.map(|end| (end, now.steady + end.duration_since(now.clock).unwrap_or_default()));
    }

    fn wait(&mut self, waiting: Waiting) -> Waiting {
        (self.waiting, self.is_examined) = (Some(waiting), true);
        waiting
    }

    /// Allows rolled-back versions to go live again, because the source has other content.
    fn free(&mut self) {
        let held = self.known.iter_mut().filter(|known| known.standing == ModelStanding::Held);
        held.for_each(|known| known.standing = ModelStanding::Free);
    }

    fn refuses(&self, text: Text) -> bool {
        match self.gate {
            ModelGate::Open => false,
            ModelGate::Accepting(accepted) if accepted == text => false,
            ModelGate::Comparing | ModelGate::Accepting(_) => {
                (text >= SHUT) != self.last().is_some_and(|last| last >= SHUT)
            }
        }
    }

    fn last(&self) -> Option<Text> {
        self.last_but(0)
    }

    fn last_but(&self, count: usize) -> Option<Text> {
        let accepted = self.known.iter().rev().filter(|known| known.standing == ModelStanding::Accepted);
        accepted.map(|known| known.text).nth(count)
    }
}

fn accept(known: &mut Vec<Known>, text: Text, now: SystemTime) {
    let before = known.iter().position(|known| known.text == text).map(|at| known.remove(at).since);
    let since = before.map_or(now, |before| before.min(now));
    known.push(Known { text, since, standing: ModelStanding::Accepted });
}

/// The content of a site's state file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Saved {
    known: Vec<Known>,
    is_absent: bool,
    waiting: Option<Waiting>,
}

/// The content of a site's record file, which may be newer than the state file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Record {
    live: Option<(Text, SystemTime)>,
    held: Vec<Text>,
    is_absent: bool,
}

/// Possible contents of the disk: one of the states and one of the records. The numbers show the
/// order of the writes.
#[derive(Clone, Debug)]
pub(super) struct ModelDisk {
    states: Vec<(u64, Option<Saved>)>,
    records: Vec<(u64, Option<Record>)>,
    time: u64,
}

/// The numbers of the state and of the record that the site found when it was opened.
pub(super) type FoundAt = [u64; 2];

impl ModelDisk {
    pub(super) fn new() -> Self {
        Self { states: vec![(0, None)], records: vec![(0, None)], time: 0 }
    }

    /// Adds the states of these models to the possible contents of the disk.
    pub(super) fn may_have(&mut self, sites: &[Model]) {
        for site in sites {
            let (saved, record) = (Some(site.saved()), Some(site.record()));
            if self.states.last().map(|(_, last)| last) != Some(&saved) {
                self.time += 1;
                self.records.push((self.time, record));
                self.states.push((self.time, saved));
            }
        }
    }

    /// Replaces the possible contents of the disk with the complete states of these models.
    pub(super) fn has(&mut self, sites: &[Model]) {
        (self.states, self.records) = (Vec::new(), Vec::new());
        self.may_have(sites);
        if sites.iter().any(|site| site.known.is_empty()) {
            // No record is written if the state is empty.
            self.records.push((0, None));
        }
    }

    pub(super) fn is_sure(&self) -> bool {
        self.states.len() == 1 && self.records.len() == 1
    }

    /// Keeps only those possible contents of the disk that a site has found there.
    pub(super) fn was_found(&mut self, at: &[FoundAt]) {
        self.states.retain(|(time, _)| at.iter().any(|[state, _]| state == time));
        self.records.retain(|(time, _)| at.iter().any(|[_, record]| record == time));
    }

    /// Returns the states that a site may find when it is opened next.
    pub(super) fn found(&self, is_readable: bool, site: &Model, now: Now) -> Vec<(FoundAt, Model)> {
        let mut found = Vec::new();
        for (stated, state) in &self.states {
            for (recorded, record) in &self.records {
                let at = [*stated, *recorded];
                let nothing = Saved { known: Vec::new(), is_absent: false, waiting: None };
                let state = state.clone().unwrap_or_else(|| nothing.clone());
                let mut add = |state: &Saved, before| found.push((at, Model::anew(state, before, site, now)));
                match record {
                    Some(record) if recorded > stated => newer(&state, record, &mut add),
                    Some(_) => add(&state, LiveBefore::Last),
                    None => add(&state, LiveBefore::Unknown),
                }
                if !is_readable {
                    // Only a part of the disk may have been read, or nothing.
                    add(&state, LiveBefore::Unknown);
                    add(&nothing, last_of(&state).map_or(LiveBefore::Unknown, LiveBefore::Lost));
                    add(&nothing, LiveBefore::Unknown);
                    if let Some(record) = record {
                        newer(&nothing, record, &mut add);
                    }
                }
            }
        }
        found
    }
}

/// Adds the possible states if the record is newer than the state file. The record contains the
/// live version and the rolled-back versions. The bytes of the live version may be missing on disk.
fn newer(state: &Saved, record: &Record, add: &mut impl FnMut(&Saved, LiveBefore)) {
    let mut state = Saved { is_absent: record.is_absent, ..state.clone() };
    for known in &mut state.known {
        match (record.held.contains(&known.text), known.standing) {
            (true, _) => known.standing = ModelStanding::Held,
            (false, ModelStanding::Held) => known.standing = ModelStanding::Free,
            (false, _) => {}
        }
    }
    let Some((live, since)) = record.live else { return add(&state, LiveBefore::Last) };
    if !state.known.iter().any(|known| known.text == live) {
        add(&state, LiveBefore::Lost(live));
        accept(&mut state.known, live, since);
    } else if record.live.map(|(live, _)| live) != last_of(&state) {
        let at = state.known.iter().position(|known| known.text == live).unwrap();
        let known = state.known.remove(at);
        state.known.push(Known { standing: ModelStanding::Accepted, ..known });
    }
    state.waiting.take_if(|waiting| waiting.text == live);
    add(&state, LiveBefore::Last);
}

fn last_of(state: &Saved) -> Option<Text> {
    state.known.iter().rfind(|known| known.standing == ModelStanding::Accepted).map(|known| known.text)
}
