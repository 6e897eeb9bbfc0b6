//! The times at which reads of robots.txt were watched, and the live version: a time that is not covered is a gap, in which one may have
//! been missed.
//!
//! **A gap is a read that may have been.** Every time in which reads were not watched is judged as a read of whatever
//! was live then, and a crawler is accused only if each candidate for its last read accuses it. Each file covers the
//! time since the one before was written, quiet days included, and no file covers another's: one that is gone leaves a
//! gap. The version across a gap is certain if its process says so (`live_since`), not because both ends agree. Hosts
//! that a config gives to another site are a gap from the moment at which it answers for them.

use serde::{Deserialize, Serialize};

use super::judgement::Gap;
use super::row::Second;

/// Longer than between two ticks of a process that runs: it was suspended, or the clock was set.
const LONGEST_TICK: Second = 30;

/// Watches of a site that are held while nothing can be written: forgotten ones become gaps.
const MOST_HELD: usize = 256;

/// A time in which every read was counted, and one version was live.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Watch {
    pub(crate) from: Second,
    pub(crate) to: Second,
    /// The version that was live; none where there is none, or one for each host.
    pub(crate) version: Option<String>,
    /// When the process that watched began to serve the site with the hosts it has: between two watches of one process more is
    /// certain than between those of two.
    pub(crate) process: Second,
    /// If nothing was watched before it: since when the process has shown no other version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) live_since: Option<Second>,
}

/// A time of which counts may be missing, because a file was damaged or another server answered for a part of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Lost {
    pub(crate) from: Second,
    pub(crate) to: Second,
}

/// Whether reads are seen at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Sight {
    #[default]
    Clear,
    /// Enforcement is off, or counts were lost.
    Blind,
}

/// The watches of one site, the newest last.
#[derive(Clone, Debug, Default)]
pub(super) struct Watches {
    pub(super) list: Vec<Watch>,
    /// Seconds of which a part was not watched.
    pub(super) lost: Vec<Lost>,
    process: Second,
    is_blind: bool,
    /// Whether a watch began since they were last written.
    has_begun: bool,
}

impl Lost {
    /// Both, and the time between them.
    pub(super) fn and(self, other: Self) -> Self {
        Self { from: self.from.min(other.from), to: self.to.max(other.to) }
    }
}

impl Watches {
    /// Those of a process that began then to serve the site.
    pub(super) fn of(process: Second) -> Self {
        Self { process, ..Self::default() }
    }

    /// From the last moment until now the site was not served, or not for all of its hosts: another may have shown another version.
    pub(super) fn interrupt(&mut self, now: Second) {
        self.process = now;
        let Some(last) = self.list.last_mut() else { return };
        // In the second of the last moment requests may have come after it.
        if last.from < last.to {
            last.to -= 1;
        } else {
            // It is written down already, or is all that was watched.
            self.lost.push(Lost { from: last.to, to: last.to });
            self.bound_lost();
        }
    }

    /// The site is served again, after an interruption.
    pub(super) const fn resume(&mut self, now: Second) {
        self.process = now;
    }

    fn bound_lost(&mut self) {
        if self.lost.len() > MOST_HELD {
            self.lost = self.lost.drain(..).reduce(Lost::and).into_iter().collect();
        }
    }

    /// Adds a moment. Returns whether another version is live than before.
    pub(super) fn add(&mut self, now: Second, version: Option<&str>, sight: Sight) -> bool {
        let was_blind = std::mem::replace(&mut self.is_blind, sight == Sight::Blind);
        let (mut is_other, mut from, mut live_since) = (true, now, None);
        if let Some(last) = self.list.last_mut() {
            is_other = last.version.as_deref() != version;
            let is_of_process = last.process == self.process;
            let is_next = is_of_process && (last.to..=last.to + LONGEST_TICK).contains(&now);
            let is_seen = is_next && !self.is_blind && !was_blind;
            if !is_other && is_seen {
                last.to = now;
                return false;
            }
            if !is_other && self.is_blind {
                // Nothing is seen at this moment, and nothing else is live than before.
                return false;
            }
            if is_seen {
                // Seen without a gap: a read since then is of one of both versions.
                from = last.to;
            }
            if !is_other && is_of_process {
                live_since = Some(last.to);
            }
        }
        self.has_begun = true;
        let (version, process) = (version.map(str::to_owned), self.process);
        self.list.push(Watch { from, to: now, version, process, live_since });
        is_other
    }

    /// Whether there is something that is to be written soon.
    pub(super) const fn are_changed(&self) -> bool {
        self.has_begun || !self.lost.is_empty()
    }

    /// Takes back lost times that could not be written.
    pub(super) fn put_back_lost(&mut self, lost: Vec<Lost>) {
        self.lost.extend(lost);
        self.bound_lost();
    }

    /// Takes back what could not be written.
    pub(super) fn put_back(&mut self, mut watches: Vec<Watch>) {
        merge(&mut watches, &self.list);
        let surplus = watches.len().saturating_sub(MOST_HELD);
        watches.drain(..surplus);
        if let Some(first) = watches.first_mut().filter(|_| surplus > 0) {
            // Nothing is certain of what was live in the times that are forgotten.
            first.process = first.from;
            first.live_since = None;
        }
        self.list = watches;
        self.has_begun = true;
    }

    /// Forgets what is written down. The last one goes on from there: no line of a file is in another, so that one that is removed
    /// leaves a gap.
    pub(super) fn forget_written(&mut self) {
        let keep = self.list.len().saturating_sub(1);
        self.list.drain(..keep);
        self.lost.clear();
        if let Some(last) = self.list.last_mut() {
            (last.from, last.live_since) = (last.to, None);
        }
        self.has_begun = false;
    }
}

/// Adds watches to those of a file. One that goes on is one with its beginning.
pub(super) fn merge(watches: &mut Vec<Watch>, others: &[Watch]) {
    for other in others {
        let goes_on = |own: &&mut Watch| {
            let is_same = own.process == other.process && own.version == other.version;
            is_same && (own.from..=own.to).contains(&other.from)
        };
        match watches.iter_mut().rfind(goes_on) {
            Some(own) => own.to = own.to.max(other.to),
            None => watches.push(other.clone()),
        }
    }
}

/// The gaps in one state directory: before, between and after its watches, and the lost reads.
pub(super) fn gaps(watches: &[Watch], lost: &[Lost]) -> Vec<Gap> {
    let mut watches: Vec<&Watch> = watches.iter().collect();
    watches.sort_by_key(|watch| (watch.from, watch.to));
    let mut gaps = Vec::new();
    let mut last: Option<&Watch> = None;
    for watch in watches {
        gaps.extend(match last {
            None => Some(Gap { from: 0, to: watch.from, version: None }),
            Some(last) => gap_between(last, watch),
        });
        if last.is_none_or(|last| last.to <= watch.to) {
            last = Some(watch);
        }
    }
    gaps.push(Gap { from: last.map_or(0, |last| last.to), to: Second::MAX, version: None });
    for Lost { from, to } in lost {
        // The version there is among those that may be missing.
        gaps.iter_mut().filter(|gap| gap.from <= *to && *from <= gap.to).for_each(|gap| gap.version = None);
        // From the second before, so that a request of the first second lies in it.
        gaps.push(Gap { from: from.saturating_sub(1), to: *to, version: None });
    }
    gaps
}

/// The gap between a watch and the next one; `None` if nothing is missing between them.
fn gap_between(before: &Watch, watch: &Watch) -> Option<Gap> {
    // Between two processes another server may have shown another version, also within a second.
    if before.process != watch.process {
        let (from, to) = (before.to.min(watch.from), before.to.max(watch.from));
        return Some(Gap { from, to: to.max(from.saturating_add(1)), version: None });
    }
    if before.to >= watch.from {
        return None;
    }
    // A watch between them may have been in a file that is gone.
    let is_certain = before.version == watch.version && watch.live_since.is_some_and(|at| at <= before.to);
    let version = if is_certain { before.version.clone() } else { None };
    Some(Gap { from: before.to, to: watch.from, version })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watched(moments: &[(Second, &str, Sight)]) -> Vec<Watch> {
        let mut watches = Watches::default();
        for (at, version, sight) in moments {
            watches.add(*at, Some(version), *sight);
        }
        watches.list
    }

    fn between(watches: &[Watch]) -> Vec<(Second, Second, Option<String>)> {
        let gaps = gaps(watches, &[]);
        gaps[1..gaps.len() - 1].iter().map(|gap| (gap.from, gap.to, gap.version.clone())).collect()
    }

    #[test]
    fn what_is_seen_without_a_break_is_one_watch() {
        let watches =
            watched(&[(1, "1", Sight::Clear), (2, "1", Sight::Clear), (3, "2", Sight::Clear), (4, "2", Sight::Clear)]);
        assert_eq!(watches.len(), 2);
        assert_eq!(between(&watches), []);
    }

    #[test]
    fn a_pause_and_a_clock_that_is_set_back_are_gaps() {
        let watches = watched(&[(1, "1", Sight::Clear), (2, "1", Sight::Clear), (90, "1", Sight::Clear)]);
        assert_eq!(between(&watches), [(2, 90, Some("1".to_owned()))]);
        let watches = watched(&[(1, "1", Sight::Clear), (90, "2", Sight::Clear)]);
        assert_eq!(between(&watches), [(1, 90, None)]);
    }

    /// A server that shows another version may have run between two processes, and a lost watch may have been of one that did.
    #[test]
    fn what_was_live_before_and_after_is_certain_within_one_process_alone() {
        let watch = |from, to, process| Watch { from, to, version: Some("1".into()), process, live_since: Some(10) };
        let version = |watches: &[Watch], lost: &[Lost]| gaps(watches, lost)[1].version.clone();
        let (one, other) = ([watch(1, 10, 1), watch(20, 30, 1)], [watch(1, 10, 1), watch(20, 30, 20)]);
        assert_eq!((version(&one, &[]), version(&other, &[])), (Some("1".to_owned()), None));
        let lost = Lost { from: 20, to: 30 };
        assert_eq!(version(&one, std::slice::from_ref(&lost)), None);
        let expected = Gap { from: 19, to: 30, version: None };
        assert_eq!(gaps(&one, &[lost]).last(), Some(&expected));
    }

    #[test]
    fn another_version_while_blind_is_not_forgotten() {
        let blind = Sight::Blind;
        let same = [(1, "1", Sight::Clear), (2, "1", blind), (3, "1", blind), (4, "1", Sight::Clear)];
        assert_eq!(between(&watched(&same)), [(1, 4, Some("1".to_owned()))]);
        let other = [(1, "1", Sight::Clear), (2, "2", blind), (3, "1", blind), (4, "1", Sight::Clear)];
        assert_eq!(between(&watched(&other)), [(1, 2, None), (2, 3, None), (3, 4, Some("1".to_owned()))]);
    }
}
