//! Decides which version goes live. [`Publisher`] is a state machine without locks, files, clocks
//! or callbacks.
//!
//! 1. A candidate that is already live changes nothing, except that the pending version, if any, is
//!    discarded.
//! 2. A candidate that is already pending stays pending if the current gate has already examined
//!    it.
//! 3. A candidate that is not a robots.txt or is truncated is rejected, and the last good version
//!    stays live.
//! 4. A version that the gate refuses becomes pending until its hash is accepted.
//! 5. Any other candidate is published.
//!
//! **A rolled-back version becomes pending.** The status shows a rolled-back version like a version
//! that the gate refused, and the version goes live only if an operator accepts it.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use robots_core::internals::Grace;

use super::compile_cache::CompileSettings;
use super::grace::GracePeriod;
use super::reload::History;
use super::snapshot::Compiled;
use super::source::Durability;
use super::versions::{AcceptedState, AcceptedVersion, AcceptedVersions};
use super::{
    Candidate, CompileCache, Content, Enforcement, Gate, Objection, Pending, Rejection, RejectionKind, ReloadOutcome,
    Version, VersionHash, VersionHashPrefix,
};
use crate::agent::Registry;
use crate::check;
use crate::rules::{RobotsTxt, RuleSet};

/// The published version of a site, the pending version, and the versions that were accepted
/// before. The `CompileCache` keeps each compiled version as long as the publisher uses it.
pub(super) struct Publisher {
    settings: CompileSettings,
    cache: CompileCache,
    gate: Gate,
    pub(super) versions: AcceptedVersions,
    pub(super) was_live: WasLive,
    pub(super) pending: Option<Pending>,
    pending_compiled: Option<Arc<Compiled>>,
    /// Whether the current gate has examined the pending version.
    is_examined: bool,
    pub(super) content: Option<Arc<Content>>,
    pub(super) grace: GracePeriod,
    /// An earlier version that was parsed for a comparison, kept until the published content
    /// changes.
    parsed: Option<(VersionHash, RobotsTxt)>,
    unsaved: Option<Durability>,
}

/// Why a version could not be accepted or rolled back.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoSuchVersion {
    /// The pending version has another hash, or no version is pending.
    #[non_exhaustive]
    Waiting {
        /// The hash that the caller wanted to accept.
        requested: VersionHashPrefix,
        /// The pending version, if any.
        pending: Option<VersionHash>,
    },
    /// A rollback is impossible, because no version that was accepted before the current version is
    /// known.
    Before,
}

impl Publisher {
    pub(super) fn new(
        settings: CompileSettings,
        cache: CompileCache,
        gate: Gate,
        grace_length: Duration,
        (versions, pending, was_live): (AcceptedVersions, Option<Pending>, WasLive),
    ) -> Self {
        Self {
            settings,
            cache,
            gate,
            versions,
            was_live,
            pending,
            pending_compiled: None,
            is_examined: false,
            content: None,
            grace: GracePeriod::new(grace_length),
            parsed: None,
            unsaved: None,
        }
    }

    /// Publishes the first candidate. If the candidate cannot go live, publishes and returns a
    /// replacement: the last accepted version or, if there is none, the baseline of the gate. There
    /// is no replacement if the server had removed the robots.txt before the restart and nothing
    /// has been fetched since then.
    pub(super) fn start(&mut self, candidate: Candidate, now: SystemTime) -> (ReloadOutcome, Option<AcceptedVersion>) {
        let is_unfetched = matches!(&candidate, Candidate::Rejected(why) if why.kind == RejectionKind::NotFetched);
        let last = self.versions.current().cloned();
        let mut outcome = self.consider(candidate, now);
        let (ReloadOutcome::Kept { live, .. } | ReloadOutcome::Gated { live, .. }) = &mut outcome else {
            return (outcome, None);
        };
        if is_unfetched && self.versions.is_absent {
            return (outcome, None);
        }
        let last = last.or_else(|| self.accept_baseline(now));
        if let Some(last) = &last {
            *live = Some(last.hash());
            self.restore(&last.version, now);
        }
        (outcome, last)
    }

    fn accept_baseline(&mut self, now: SystemTime) -> Option<AcceptedVersion> {
        let bytes = self.gate.compared_with()?.bytes().clone();
        let version = Version::new(bytes, &Arc::from("the baseline"), None);
        let accepted = AcceptedVersion { version, since: now, standing: AcceptedState::Accepted };
        self.versions.accept(accepted.clone(), self.grace.length, now);
        self.unsaved.get_or_insert(Durability::Process);
        if !matches!(self.was_live, WasLive::Other(..)) {
            self.was_live = WasLive::Baseline;
        }
        Some(accepted)
    }

    pub(super) fn consider(&mut self, candidate: Candidate, now: SystemTime) -> ReloadOutcome {
        let live = self.live();
        let version = match candidate {
            Candidate::Version(version) => version,
            Candidate::Rejected(rejection) => return ReloadOutcome::Kept { rejection, live },
            Candidate::Absent { status } => {
                (self.content, self.grace.running) = (None, None);
                if self.versions.current().is_some() {
                    self.set_absent(true);
                }
                return ReloadOutcome::Absent { status };
            }
        };
        let hash = version.hash();
        if let Some(report) =
            self.content.as_ref().filter(|content| content.hash() == hash).map(|content| content.report().clone())
        {
            if self.clear_pending() {
                self.versions.supersede();
                self.unsaved = Some(Durability::Machine);
            }
            return ReloadOutcome::Unchanged { hash, report };
        }
        let is_examined = |pending: &&Pending| self.is_examined || pending.is_rolled_back();
        if let Some(pending) = self.pending.as_ref().filter(|pending| pending.hash() == hash).filter(is_examined) {
            return ReloadOutcome::Gated { pending: pending.clone(), live };
        }
        let robots = self.document(&version);
        if let Some(mut rejection) = Rejection::of(&robots, self.before(), &version.origin) {
            rejection.report = Some(check::check(&robots, &self.settings.check).into());
            return ReloadOutcome::Kept { rejection, live };
        }
        let compiled = self.cache.compile(hash, robots, &self.settings);
        let objections = self.objections(&version, &compiled);
        if objections.is_empty() {
            if self.versions.supersede() {
                // `supersede` has allowed rolled-back versions to go live again, which must be
                // saved. The change is marked as unsaved here, because `publish` marks nothing if
                // `version` is the version that was accepted last.
                self.unsaved.get_or_insert(Durability::Process);
            }
            return self.publish(version, compiled, now);
        }
        // If a pending version is examined again, for example after a restart, the time when it
        // became pending is kept.
        let since = self.pending.as_ref().filter(|before| before.hash() == hash).map_or(now, |before| before.since);
        let pending = Pending::new(version, since, objections).with_report(compiled.report.clone());
        self.set_pending(pending.clone(), Some(compiled));
        ReloadOutcome::Gated { pending, live }
    }

    pub(super) fn accept(
        &mut self,
        prefix: &VersionHashPrefix,
        now: SystemTime,
    ) -> Result<ReloadOutcome, NoSuchVersion> {
        let Some(pending) = self.pending.clone().filter(|pending| prefix.matches(&pending.hash())) else {
            let pending = self.pending.as_ref().map(Pending::hash);
            return Err(NoSuchVersion::Waiting { requested: prefix.clone(), pending });
        };
        let compiled = self.compile(&pending.version);
        let outcome = self.publish(pending.version.clone(), compiled, now);
        self.unsaved = Some(Durability::Machine);
        Ok(outcome)
    }

    /// Publishes the version that was accepted before the current version. The version that was
    /// current becomes pending.
    pub(super) fn roll_back(&mut self, now: SystemTime) -> Result<ReloadOutcome, NoSuchVersion> {
        let left = self.versions.roll_back().ok_or(NoSuchVersion::Before)?;
        let before = self.versions.current().cloned().ok_or(NoSuchVersion::Before)?;
        let compiled = self.cache.find(left.hash(), &self.settings);
        self.set_pending(Pending::new(left.version, now, vec![Objection::rolled_back()]), compiled);
        Ok(self.restore(&before.version, now))
    }

    /// Replaces the gate. If the source provides the pending version again, the new gate examines
    /// this version, unless it was rolled back.
    pub(super) fn set_gate(&mut self, gate: Gate) {
        self.gate = gate;
        self.is_examined = false;
    }

    /// Compiles the live version again if the registry has changed. Returns whether a version was
    /// compiled.
    pub(super) fn set_registry(&mut self, registry: Arc<Registry>, now: SystemTime) -> bool {
        if Arc::ptr_eq(&self.settings.registry, &registry) {
            return false;
        }
        self.settings.registry = registry;
        self.recompile(now)
    }

    /// Checks the live version again if the options have changed. Returns whether a version was
    /// checked.
    pub(super) fn set_check(&mut self, options: check::Options, now: SystemTime) -> bool {
        if self.settings.check == options {
            return false;
        }
        self.settings.check = options;
        self.recompile(now)
    }

    pub(super) fn live(&self) -> Option<VersionHash> {
        self.content.as_ref().map(|content| content.hash())
    }

    /// Returns the bytes of the version that stays live if the next candidate is rejected.
    pub(super) fn before(&self) -> Option<&[u8]> {
        let live = self.content.as_ref().map(|content| &**content.body());
        live.or_else(|| self.versions.current().map(|last| &**last.version.bytes()))
    }

    pub(super) fn registry(&self) -> &Arc<Registry> {
        &self.settings.registry
    }

    pub(super) fn compiled_pending(&mut self) -> Option<Arc<Compiled>> {
        if self.pending_compiled.is_none() {
            let pending = self.pending.clone()?;
            self.pending_compiled = Some(self.compile(&pending.version));
        }
        self.pending_compiled.clone()
    }

    /// Returns how durably the caller must save the changes since the last call; `None` if there
    /// are no changes.
    pub(super) fn take_unsaved(&mut self) -> Option<Durability> {
        self.unsaved.take()
    }

    fn objections(&mut self, version: &Version, compiled: &Compiled) -> Vec<Objection> {
        let hash = version.hash();
        if self.versions.is_rolled_back(hash) {
            return vec![Objection::rolled_back()];
        }
        let last = self.versions.current().cloned();
        let was_live = matches!(self.was_live, WasLive::Other(other, _) if other == hash);
        if was_live || last.as_ref().is_some_and(|last| last.hash() == hash) {
            return Vec::new();
        }
        let last = last.filter(|_| self.gate.compares()).map(|last| {
            let robots = self.document(&last.version);
            self.parsed = Some((last.hash(), robots.clone()));
            robots
        });
        let (robots, report, places) = (&compiled.robots, &compiled.report, version.places.as_deref());
        self.gate.examine_version(hash, robots, report, last.as_ref(), places, &self.settings.registry)
    }

    fn publish(&mut self, mut version: Version, compiled: Arc<Compiled>, now: SystemTime) -> ReloadOutcome {
        let hash = version.hash();
        let report = compiled.report.clone();
        self.cap_acceptance_dates(now);
        let is_known = self.pending.is_none() && self.versions.current().is_some_and(|last| last.hash() == hash);
        let content = self.content_of(&version, compiled, now);
        version.modified = content.modified;
        let accepted = AcceptedVersion { version, since: now, standing: AcceptedState::Accepted };
        self.versions.accept(accepted, self.grace.length, now);
        self.clear_pending();
        self.was_live = WasLive::Current;
        self.show(content, now);
        if !is_known {
            // The new version need not survive a crash of the machine, because the source can be
            // read again. If ten thousand files change at once, syncing each version to the disk
            // would take too long.
            self.unsaved = Some(Durability::Process);
        }
        ReloadOutcome::Published { hash, report }
    }

    fn restore(&mut self, version: &Version, now: SystemTime) -> ReloadOutcome {
        let compiled = self.compile(version);
        let report = compiled.report.clone();
        let content = self.content_of(version, compiled, now);
        self.versions.set_modified(version.hash(), content.modified);
        self.show(content, now);
        ReloadOutcome::Published { hash: version.hash(), report }
    }

    /// Compiles the live content again. Returns `false` if there is no live content.
    fn recompile(&mut self, now: SystemTime) -> bool {
        self.pending_compiled = None;
        self.grace.forget_rules();
        let Some(content) = self.content.clone() else { return false };
        let compiled = self.cache.compile(content.hash(), content.robots().clone(), &self.settings);
        self.show(Content::new(compiled, content.modified, content.places.clone()), now);
        true
    }

    fn show(&mut self, content: Content, now: SystemTime) {
        self.set_absent(false);
        self.cap_acceptance_dates(now);
        let mut grace = std::mem::take(&mut self.grace);
        let CompileSettings { reading, registry, .. } = &self.settings;
        // `run` must be called before `self.content` is replaced, because `document` reuses the
        // parsed robots.txt in the old content.
        grace.run(&self.versions, now, |version| {
            self.document(version).compile_with(*reading, |name| registry.stands_for(name.value())).into()
        });
        grace.count(content.rules(), now);
        self.grace = grace;
        self.content = Some(Arc::new(content));
        self.parsed = None;
    }

    fn set_absent(&mut self, is_absent: bool) {
        if std::mem::replace(&mut self.versions.is_absent, is_absent) != is_absent {
            self.unsaved.get_or_insert(Durability::Process);
        }
    }

    /// Changes acceptance dates that are in the future to `now`, because the grace period of a
    /// version with a date in the future would start again whenever the process starts.
    fn cap_acceptance_dates(&mut self, now: SystemTime) {
        if self.versions.cap_acceptance_dates(now) && !matches!(self.was_live, WasLive::Other(..)) {
            self.unsaved.get_or_insert(Durability::Process);
        }
    }

    fn set_pending(&mut self, pending: Pending, compiled: Option<Arc<Compiled>>) {
        self.pending = Some(pending);
        self.pending_compiled = compiled;
        self.is_examined = true;
        self.unsaved = Some(Durability::Machine);
    }

    fn clear_pending(&mut self) -> bool {
        self.pending_compiled = None;
        self.pending.take().is_some()
    }

    fn content_of(&self, version: &Version, compiled: Arc<Compiled>, now: SystemTime) -> Content {
        let modified = self.last_modified_date(version, now);
        Content::new(compiled, modified.map(|modified| modified.min(now)), version.places.clone())
    }

    /// Returns the `Last-Modified` date of a version: its modification time, or `now` if that time
    /// is not later than the date of the previous version. The date is `now` if, for example, an
    /// operator restores an older file with its old modification time. With an old date, clients
    /// would keep the replaced version in their caches. A version keeps its date after a restart.
    fn last_modified_date(&self, version: &Version, now: SystemTime) -> Option<SystemTime> {
        let before = match &self.content {
            Some(content) => content.modified,
            // At the start, the previous version is the version that an earlier process served.
            None => match self.versions.current() {
                Some(last) if last.hash() == version.hash() => return version.modified.max(last.version.modified),
                last => last.and_then(|last| last.version.modified),
            },
        };
        match (version.modified, before) {
            (Some(modified), Some(before)) if modified <= before => Some(now),
            (modified, _) => modified,
        }
    }

    fn compile(&self, version: &Version) -> Arc<Compiled> {
        match self.cache.find(version.hash(), &self.settings) {
            Some(compiled) => compiled,
            None => self.cache.compile(version.hash(), self.document(version), &self.settings),
        }
    }

    fn document(&self, version: &Version) -> RobotsTxt {
        let hash = version.hash();
        if let Some(content) = self.content.as_ref().filter(|content| content.hash() == hash) {
            return content.robots().clone();
        }
        if let Some((_, robots)) = self.parsed.as_ref().filter(|(parsed, _)| *parsed == hash) {
            return robots.clone();
        }
        match self.cache.find(hash, &self.settings) {
            Some(compiled) => compiled.robots.clone(),
            None => RobotsTxt::from(version.bytes().clone()),
        }
    }
}

impl fmt::Display for NoSuchVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Waiting { requested, pending: Some(pending) } => {
                write!(
                    f,
                    "version {requested:.16} cannot be accepted, because another version is pending: {pending}",
                    pending = pending.short()
                )
            }
            Self::Waiting { requested, pending: None } => {
                write!(f, "version {requested:.16} cannot be accepted, because no version is pending")
            }
            Self::Before => f.write_str("the site cannot be rolled back, because no earlier accepted version is known"),
        }
    }
}

impl Error for NoSuchVersion {}

/// The saved state of a site: accepted versions, pending version, history and kill switch. Another
/// site can start from this state under another name
/// ([`LiveBuilder::inherit_state`](crate::source::LiveBuilder::inherit_state)).
#[derive(Clone, Debug, Default)]
pub struct Remembered {
    pub(super) versions: AcceptedVersions,
    pub(super) pending: Option<Pending>,
    pub(super) history: History,
    pub(super) enforcement: Enforcement,
    pub(super) was_live: WasLive,
}

impl Remembered {
    /// Returns the version that is live, or that was live when the last process ended.
    pub fn live(&self) -> Option<VersionHash> {
        self.versions.current().filter(|_| !self.versions.is_absent).map(AcceptedVersion::hash)
    }

    /// Returns the pending version, if any.
    pub const fn pending(&self) -> Option<&Pending> {
        self.pending.as_ref()
    }

    /// Returns all versions with their bytes: first the accepted versions in order of acceptance,
    /// then the pending version.
    pub fn kept(&self) -> impl Iterator<Item = (VersionHash, &Arc<[u8]>)> {
        let waiting = self.pending.iter().map(|pending| &pending.version);
        let kept = self.versions.iter().map(|accepted| &accepted.version).chain(waiting);
        kept.map(|version| (version.hash(), version.bytes()))
    }

    /// Returns the grace period of the live version; `None` if the grace period has ended. `length`
    /// is the length of grace periods. `compile` must return the compiled rules of a version.
    #[doc(hidden)]
    pub fn grace(&self, length: Duration, compile: impl Fn(&[u8]) -> Arc<RuleSet>) -> Option<Arc<Grace>> {
        let mut grace = GracePeriod::new(length);
        grace.run(&self.versions, SystemTime::now(), |version| compile(version.bytes()));
        grace.running
    }

    /// Returns the position of the site's own kill switch.
    pub const fn switch(&self) -> Enforcement {
        self.enforcement
    }
}

/// The version that was live when the previous process ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum WasLive {
    /// The version that was accepted last.
    Current,
    #[default]
    Unknown,
    /// No version was saved. The site starts with the baseline of the gate.
    Baseline,
    /// A version that cannot be restored because its bytes are missing, and the time when it was
    /// accepted.
    Other(VersionHash, SystemTime),
}

#[cfg(test)]
mod tests;
