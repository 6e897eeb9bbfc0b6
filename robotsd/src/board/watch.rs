//! Records watches. A watch is a period during which every fetch of robots.txt was recorded and the
//! live version did not change. All times without a watch are gaps: fetches at these times may be
//! missing from the records.
//!
//! **A gap counts as a possible fetch.** In every gap, a crawler may have fetched the version that
//! was live at that time. So a crawler is accused only if each possible last fetch is evidence
//! against it. The watches in a file cover the time since the previous write, including days
//! without counts. The watches of two files never overlap, so a missing file leaves a gap.
//!
//! The version during a gap is certain only if the same process was running before and after the
//! gap, and recorded that it served no other version (`live_since`). Equal versions before and
//! after the gap are not enough, because another version may have been live during the gap. If a
//! reload changes the hosts of a site, the moment of the reload is a gap for this site, because
//! another site may have served another version on the new hosts.

use serde::{Deserialize, Serialize};

use super::judgement::Gap;
use super::row::Second;

/// Maximum time between two calls of [`Watches::add`], in seconds. If the time between two calls is
/// longer, the process was suspended, or the clock was changed.
const MAX_TICK: Second = 30;

/// Maximum number of watches of a site that are kept in memory while writing fails. If there are
/// more watches, the oldest watches are dropped, and their time becomes a gap.
const MAX_QUEUED: usize = 256;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Watch {
    pub(crate) from: Second,
    pub(crate) to: Second,
    /// `None` if no version was live, or if each host had its own version.
    pub(crate) version: Option<String>,
    /// Time when the process began to serve the site with its current hosts. This time also
    /// identifies the process.
    pub(crate) process: Second,
    /// For a watch after a gap: the process has served only this version since this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) live_since: Option<Second>,
}

/// A period with incomplete counts, because a file was damaged, or because another server responded
/// for part of the period.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Lost {
    pub(crate) from: Second,
    pub(crate) to: Second,
}

/// Whether fetches of robots.txt are currently recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Sight {
    #[default]
    Clear,
    /// Fetches are not recorded, because enforcement is off, no version is live, or counts were
    /// lost.
    Blind,
}

/// Watches that are not written yet, the newest last.
#[derive(Clone, Debug, Default)]
pub(super) struct Watches {
    pub(super) list: Vec<Watch>,
    pub(super) lost: Vec<Lost>,
    process: Second,
    is_blind: bool,
    /// Whether a watch has begun since the last write.
    has_begun: bool,
}

impl Lost {
    /// Returns the shortest period that covers both periods.
    pub(super) fn and(self, other: Self) -> Self {
        Self { from: self.from.min(other.from), to: self.to.max(other.to) }
    }
}

impl Watches {
    /// Creates an empty list. `process` is the time when this process began to serve the site.
    pub(super) fn of(process: Second) -> Self {
        Self { process, ..Self::default() }
    }

    /// Records that since the last call of `add`, the site or one of its hosts was not served, so
    /// another server may have served another version.
    pub(super) fn interrupt(&mut self, now: Second) {
        self.process = now;
        let Some(last) = self.list.last_mut() else { return };
        // Another server may have responded in the last second of the watch, so this second is
        // removed.
        if last.from < last.to {
            last.to -= 1;
        } else {
            // A watch of one second cannot be shortened, so its time is recorded as lost.
            self.lost.push(Lost { from: last.to, to: last.to });
            self.limit_lost();
        }
    }

    pub(super) const fn resume(&mut self, now: Second) {
        self.process = now;
    }

    fn limit_lost(&mut self) {
        if self.lost.len() > MAX_QUEUED {
            self.lost = self.lost.drain(..).reduce(Lost::and).into_iter().collect();
        }
    }

    /// Records the version that is live at `now`: extends the last watch, or begins a new one.
    /// Returns whether the live version has changed.
    pub(super) fn add(&mut self, now: Second, version: Option<&str>, sight: Sight) -> bool {
        let was_blind = std::mem::replace(&mut self.is_blind, sight == Sight::Blind);
        let (mut is_other, mut from, mut live_since) = (true, now, None);
        if let Some(last) = self.list.last_mut() {
            is_other = last.version.as_deref() != version;
            let is_of_process = last.process == self.process;
            let is_next = is_of_process && (last.to..=last.to + MAX_TICK).contains(&now);
            let is_seen = is_next && !self.is_blind && !was_blind;
            if !is_other && is_seen {
                last.to = now;
                return false;
            }
            if !is_other && self.is_blind {
                // While fetches are not recorded, the watch is not extended. A new watch is not
                // needed, because the live version has not changed.
                return false;
            }
            if is_seen {
                // There is no gap between the last watch and the new watch, because every fetch
                // between the two watches got one of their two versions.
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

    pub(super) const fn are_changed(&self) -> bool {
        self.has_begun || !self.lost.is_empty()
    }

    /// Adds the lost periods again after they could not be written to a file.
    pub(super) fn put_back_lost(&mut self, lost: Vec<Lost>) {
        self.lost.extend(lost);
        self.limit_lost();
    }

    /// Adds the watches again after they could not be written to a file.
    pub(super) fn put_back(&mut self, mut watches: Vec<Watch>) {
        merge(&mut watches, &self.list);
        let surplus = watches.len().saturating_sub(MAX_QUEUED);
        watches.drain(..surplus);
        if let Some(first) = watches.first_mut().filter(|_| surplus > 0) {
            // The watches before `first` were dropped, so the version before `first` is no longer
            // certain.
            first.process = first.from;
            first.live_since = None;
        }
        self.list = watches;
        self.has_begun = true;
    }

    /// Removes the written watches, and leaves an empty watch that begins at the end of the last
    /// written watch. The watches of two files therefore never overlap, and a deleted file leaves a
    /// gap.
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

/// Adds the watches in `others`. If one of these watches begins during or at the end of a watch of
/// the same process and version, the two watches are joined.
pub(super) fn merge(watches: &mut Vec<Watch>, others: &[Watch]) {
    for other in others {
        let continues = |own: &&mut Watch| {
            let is_same = own.process == other.process && own.version == other.version;
            is_same && (own.from..=own.to).contains(&other.from)
        };
        match watches.iter_mut().rfind(continues) {
            Some(own) => own.to = own.to.max(other.to),
            None => watches.push(other.clone()),
        }
    }
}

/// Returns the gaps of one process: the lost periods, and the times before, between and after the
/// watches.
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
        // Another version may have been live during the lost period.
        gaps.iter_mut().filter(|gap| gap.from <= *to && *from <= gap.to).for_each(|gap| gap.version = None);
        // The gap begins one second earlier, so that it includes requests in the second `from`.
        gaps.push(Gap { from: from.saturating_sub(1), to: *to, version: None });
    }
    gaps
}

/// Returns the gap between two watches; `None` if `watch` begins at the end of `before`.
fn gap_between(before: &Watch, watch: &Watch) -> Option<Gap> {
    // Between the end of one process and the start of the next, another server may have served
    // another version, even if less than a second passed.
    if before.process != watch.process {
        let (from, to) = (before.to.min(watch.from), before.to.max(watch.from));
        return Some(Gap { from, to: to.max(from.saturating_add(1)), version: None });
    }
    if before.to >= watch.from {
        return None;
    }
    // Equal versions before and after the gap do not prove that no other version was live: a
    // deleted file may have contained a watch with another version.
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
    fn uninterrupted_time_with_one_version_is_one_watch() {
        let watches =
            watched(&[(1, "1", Sight::Clear), (2, "1", Sight::Clear), (3, "2", Sight::Clear), (4, "2", Sight::Clear)]);
        assert_eq!(watches.len(), 2);
        assert_eq!(between(&watches), []);
    }

    #[test]
    fn a_pause_is_a_gap_whose_version_is_known_if_it_did_not_change() {
        let watches = watched(&[(1, "1", Sight::Clear), (2, "1", Sight::Clear), (90, "1", Sight::Clear)]);
        assert_eq!(between(&watches), [(2, 90, Some("1".to_owned()))]);
        let watches = watched(&[(1, "1", Sight::Clear), (90, "2", Sight::Clear)]);
        assert_eq!(between(&watches), [(1, 90, None)]);
    }

    /// While the process did not run or did not record requests, another server may have served
    /// another version.
    #[test]
    fn the_version_in_a_gap_is_known_only_within_one_process() {
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
    fn a_version_change_while_reads_are_not_recorded_is_remembered() {
        let blind = Sight::Blind;
        let same = [(1, "1", Sight::Clear), (2, "1", blind), (3, "1", blind), (4, "1", Sight::Clear)];
        assert_eq!(between(&watched(&same)), [(1, 4, Some("1".to_owned()))]);
        let other = [(1, "1", Sight::Clear), (2, "2", blind), (3, "1", blind), (4, "1", Sight::Clear)];
        assert_eq!(between(&watched(&other)), [(1, 2, None), (2, 3, None), (3, 4, Some("1".to_owned()))]);
    }
}
