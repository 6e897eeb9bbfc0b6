//! The accepted versions of a site, in the order in which they were accepted. They are kept for
//! rollbacks, for comparisons with a new version, and to find out how long each rule has existed.

use std::time::{Duration, SystemTime};

use robots_core::keywords;

use super::{Version, VersionHash};

/// Maximum number of versions that are kept per site.
pub(in crate::live) const MAX_VERSIONS: usize = 8;

/// Maximum total size, in bytes, of all versions except rolled-back versions and the last two
/// accepted versions.
const MAX_BYTES: usize = 4 << 20;

#[derive(Clone, Debug)]
pub(in crate::live) struct AcceptedVersion {
    pub(in crate::live) version: Version,
    /// When the version was first accepted.
    pub(in crate::live) since: SystemTime,
    pub(in crate::live) standing: AcceptedState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::live) enum AcceptedState {
    /// The version is live, or was replaced by a later version.
    Accepted,
    /// The version was rolled back, and goes live again only if an operator accepts it.
    RolledBack,
    /// The version was rolled back, but the content of the source has changed since then, so the
    /// version may go live again without an operator.
    Superseded,
}

keywords!(AcceptedState, "the state of an accepted version", {
    Accepted = "accepted",
    RolledBack = "held",
    Superseded = "left",
});

#[derive(Clone, Debug, Default)]
pub(in crate::live) struct AcceptedVersions {
    pub(in crate::live) list: Vec<AcceptedVersion>,
    /// Whether the source's server has removed the robots.txt, so that no version is live. The
    /// accepted versions are kept even then, for comparisons with a later robots.txt.
    pub(in crate::live) is_absent: bool,
}

impl AcceptedVersion {
    pub(in crate::live) const fn hash(&self) -> VersionHash {
        self.version.hash()
    }
}

impl AcceptedVersions {
    pub(in crate::live) fn iter(&self) -> impl Iterator<Item = &AcceptedVersion> {
        self.list.iter()
    }

    pub(in crate::live) fn current(&self) -> Option<&AcceptedVersion> {
        self.accepted().next()
    }

    pub(in crate::live) fn before(&self) -> Option<&AcceptedVersion> {
        self.accepted().nth(1)
    }

    pub(in crate::live) fn is_rolled_back(&self, hash: VersionHash) -> bool {
        self.list.iter().any(|version| version.hash() == hash && version.standing == AcceptedState::RolledBack)
    }

    /// Adds a version, or makes an earlier version current again. An earlier version keeps the date
    /// of its first acceptance.
    pub(in crate::live) fn accept(&mut self, mut version: AcceptedVersion, grace: Duration, now: SystemTime) {
        if let Some(at) = self.list.iter().position(|known| known.hash() == version.hash()) {
            version.since = self.list.remove(at).since.min(version.since);
        }
        version.standing = AcceptedState::Accepted;
        self.list.push(version);
        self.remove_excess(grace, now);
    }

    pub(in crate::live) fn roll_back(&mut self) -> Option<AcceptedVersion> {
        self.before()?;
        let current = self.list.iter_mut().rfind(|version| version.standing == AcceptedState::Accepted)?;
        current.standing = AcceptedState::RolledBack;
        Some(current.clone())
    }

    /// Allows rolled-back versions to go live again, because the content of the source has changed.
    /// Returns whether there were any rolled-back versions.
    pub(in crate::live) fn supersede(&mut self) -> bool {
        let held = self.list.iter_mut().filter(|version| version.standing == AcceptedState::RolledBack);
        held.fold(false, |_, version| {
            version.standing = AcceptedState::Superseded;
            true
        })
    }

    /// Marks the versions with these hashes as rolled back, and all other versions as not rolled
    /// back.
    pub(in crate::live) fn set_rolled_back(&mut self, hashes: &[VersionHash]) {
        for version in &mut self.list {
            match (hashes.contains(&version.hash()), version.standing) {
                (true, _) => version.standing = AcceptedState::RolledBack,
                (false, AcceptedState::RolledBack) => version.standing = AcceptedState::Superseded,
                (false, AcceptedState::Accepted | AcceptedState::Superseded) => {}
            }
        }
    }

    /// Makes an earlier version the current one. Returns whether the version was found.
    pub(in crate::live) fn make_current(&mut self, hash: VersionHash) -> bool {
        let Some(at) = self.list.iter().position(|version| version.hash() == hash) else { return false };
        if self.current().is_none_or(|current| current.hash() != hash) {
            let version = self.list.remove(at);
            self.list.push(AcceptedVersion { standing: AcceptedState::Accepted, ..version });
        }
        true
    }

    pub(in crate::live) fn set_modified(&mut self, hash: VersionHash, modified: Option<SystemTime>) {
        if let Some(known) = self.list.iter_mut().find(|known| known.hash() == hash) {
            known.version.modified = modified;
        }
    }

    /// Changes acceptance dates that are in the future to `now`, because such dates would prolong
    /// the grace period. A date is in the future if the clock was set back after the acceptance.
    /// Returns whether any date was changed.
    pub(in crate::live) fn cap_acceptance_dates(&mut self, now: SystemTime) -> bool {
        let mut ahead = self.list.iter_mut().filter(|version| version.since > now).peekable();
        let are_there = ahead.peek().is_some();
        ahead.for_each(|version| version.since = now);
        are_there
    }

    fn accepted(&self) -> impl Iterator<Item = &AcceptedVersion> {
        self.list.iter().rev().filter(|version| version.standing == AcceptedState::Accepted)
    }

    /// Removes versions until the limits are met. If at least two versions are older than the grace
    /// period, removes the oldest version. If not, removes the version whose two neighbours were
    /// accepted closest to each other, so that the remaining versions are spread over the grace
    /// period. Never removes the last two accepted versions, and never a version that was rolled
    /// back.
    fn remove_excess(&mut self, grace: Duration, now: SystemTime) {
        loop {
            let kept: Vec<VersionHash> = self.accepted().take(2).map(|version| version.hash()).collect();
            let is_kept = |version: &AcceptedVersion| {
                version.standing == AcceptedState::RolledBack || kept.contains(&version.hash())
            };
            let bytes: usize =
                self.list.iter().filter(|version| !is_kept(version)).map(|version| version.version.bytes().len()).sum();
            if self.list.len() <= MAX_VERSIONS && bytes <= MAX_BYTES {
                return;
            }
            let mut all: Vec<&AcceptedVersion> = self.list.iter().collect();
            all.sort_by_key(|version| version.since);
            let is_due = |version: &AcceptedVersion| now.duration_since(version.since).is_ok_and(|age| age >= grace);
            let two_are_due = all.iter().filter(|version| is_due(version)).count() > 1;
            let since = |at: usize| all.get(at).map_or(now, |version| version.since);
            let gap = |at: &usize| since(at + 1).duration_since(since(at.saturating_sub(1))).unwrap_or_default();
            let mut candidates = (0..all.len()).filter(|at| !is_kept(all[*at]));
            let forgotten = if two_are_due {
                candidates.next()
            } else {
                // If no other version can be removed, the oldest version is removed. The age of its
                // rules is then forgotten, but the limits are more important.
                candidates.clone().skip(1).min_by_key(gap).or_else(|| candidates.next())
            };
            let Some(forgotten) = forgotten.map(|at| all[at].hash()) else { return };
            self.list.retain(|version| version.hash() != forgotten);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(86400);

    fn version(number: u32) -> AcceptedVersion {
        let version = Version::new(format!("# {number}\n").into_bytes(), &"it".into(), None);
        AcceptedVersion { version, since: day(number), standing: AcceptedState::Accepted }
    }

    fn day(number: u32) -> SystemTime {
        SystemTime::UNIX_EPOCH + DAY * number
    }

    fn days(versions: &AcceptedVersions) -> Vec<u64> {
        let days = versions.iter().map(|version| version.since.duration_since(SystemTime::UNIX_EPOCH));
        days.map(|age| age.expect("after 1970").as_secs() / 86400).collect()
    }

    #[test]
    fn a_rollback_returns_to_the_previous_version_and_holds_the_rolled_back_one() {
        let mut versions = AcceptedVersions::default();
        for number in 1..=3 {
            versions.accept(version(number), Duration::ZERO, day(number));
        }
        assert_eq!(versions.roll_back().map(|back| back.hash()), Some(version(3).hash()));
        assert_eq!(versions.current().map(|current| current.hash()), Some(version(2).hash()));
        assert!(versions.is_rolled_back(version(3).hash()));
        assert!(versions.roll_back().is_some());
        assert!(versions.roll_back().is_none(), "nothing was before the first");
        assert!(versions.is_rolled_back(version(2).hash()));
        versions.supersede();
        assert!(!versions.is_rolled_back(version(3).hash()));
        versions.accept(AcceptedVersion { since: day(9), ..version(2) }, Duration::ZERO, day(9));
        assert_eq!(versions.current().map(|current| current.since), Some(day(2)), "it is known since then");
        assert_eq!(versions.before().map(|before| before.hash()), Some(version(1).hash()));
    }

    #[test]
    fn the_version_that_the_grace_period_needs_least_is_dropped_first() {
        let mut versions = AcceptedVersions::default();
        for number in 1..=30 {
            versions.accept(version(number), Duration::ZERO, day(number));
        }
        assert_eq!(days(&versions), (23..=30).collect::<Vec<_>>(), "without a grace the oldest");
        let mut versions = AcceptedVersions::default();
        for number in 1..=60 {
            versions.accept(version(number), 20 * DAY, day(number));
        }
        let kept = days(&versions);
        assert_eq!(kept.len(), MAX_VERSIONS);
        assert_eq!(kept[6..], [59, 60]);
        assert!(kept.iter().filter(|day| **day <= 40).count() == 1, "one that is due: {kept:?}");
        assert!(kept.windows(2).all(|pair| pair[1] - pair[0] <= 19), "and some between: {kept:?}");
    }
}
