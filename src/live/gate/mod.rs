//! The gate: decides whether a new version goes live automatically, or has to wait until an
//! operator accepts it.
//!
//! 1. A version passes if its hash is in the list of [`Gate::accept`], or if it is the version that
//!    was accepted last.
//! 2. Any other version is compared with the version that was accepted last. The gate refuses a
//!    version that newly blocks all crawlers, all crawlers that are not named in any group, or a
//!    search engine. The gate also refuses a version that has lost all its groups or effective
//!    rules, that is a truncated copy of the accepted version, or that suddenly allows much more
//!    (see [`DrasticChange`]). As long as no version has been accepted, this step refuses only a
//!    version that blocks all crawlers.
//! 3. The gate refuses a version that disallows too many important pages for a search engine that
//!    could fetch them before (see the module `objection`).
//! 4. The gate also refuses a version that fails an expectation, that changes a verdict protected
//!    by a [`Guard`], that has findings of a configured severity, or that disallows a path of
//!    [`Gate::must_allow`].
//! 5. A refused version becomes the pending version, and the live version stays live. The status
//!    contains the reasons. An operator accepts a pending version by its hash, and so cannot accept
//!    another version by mistake.
//!
//! A new process may have no accepted version to compare its first version with. If other processes
//! already serve the same sites, the gate can refuse this version until an operator accepts it
//! ([`Gate::allow_first_versions`]).
//!
//! If the gate has a baseline, for example the version in version control, new versions are
//! compared with the baseline instead of the version that was accepted last.
//!
//! Content that is not a robots.txt (empty, HTML, binary, other text) is rejected before the gate
//! examines it, regardless of the gate's settings.

mod objection;

use std::sync::Arc;

pub use self::objection::{Objection, ObjectionKind, Pending, WatchedPages};

use super::versions::{VersionHash, VersionHashPrefix};
use crate::agent::Registry;
use crate::check::{DiffOptions, DrasticChange, Expectations, Guard, Report, Severity, diff};
use crate::rules::{Access, Fragment, LinePlaces, RobotsTxt};

/// The conditions that a version must meet to go live without an operator's approval.
/// `Gate::default()` is equal to [`Gate::new`]. A site without a gate uses [`Gate::open`].
///
/// ```
/// use tower_robots::live::{Gate, LiveRobots, WhenMissing};
///
/// let live = LiveRobots::text("User-agent: *\nDisallow: /\n")
///     .gate(Gate::new())
///     .when_missing(WhenMissing::Unavailable)
///     .open()?;
/// let status = live.status();
/// let pending = status.pending.clone().expect("it waits");
/// let reason = pending.objections[0].to_string();
/// assert_eq!(reason, "everyone is blocked: no crawler may fetch anything");
/// assert!(live.accept(&pending.hash().into()).is_ok());
/// assert_eq!(live.status().live, Some(pending.hash()));
/// # Ok::<(), tower_robots::live::Rejection>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Gate {
    /// Whether a version is refused if it has a [`DrasticChange`] compared with the version that
    /// was accepted last.
    compares_effects: bool,
    findings: Option<Severity>,
    must_allow: Vec<MustAllow>,
    expectations: Option<Expectations>,
    guards: Vec<Guard>,
    accepted: Vec<VersionHashPrefix>,
    pages: Vec<WatchedPages>,
    baseline: Option<Baseline>,
    /// The versions that pass if there is no earlier version to compare them with, and the reason
    /// for refusing all other versions in this case.
    first: Option<(Vec<VersionHashPrefix>, String)>,
}

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}

/// The version that new versions are compared with, instead of the last accepted version.
#[derive(Clone, Debug)]
struct Baseline {
    hash: VersionHash,
    robots: RobotsTxt,
}

#[derive(Clone, Debug)]
struct MustAllow {
    agents: Vec<String>,
    paths: Vec<String>,
}

impl Gate {
    /// Creates a gate with a single condition: a version must not have drastic effects compared
    /// with the version accepted last (see [`DrasticChange`]).
    pub fn new() -> Self {
        Self {
            compares_effects: true,
            findings: None,
            must_allow: Vec::new(),
            expectations: None,
            guards: Vec::new(),
            accepted: Vec::new(),
            pages: Vec::new(),
            baseline: None,
            first: None,
        }
    }

    /// Creates a gate that allows every version. This is the default of a
    /// [`LiveRobots`](super::LiveRobots).
    pub fn open() -> Self {
        Self { compares_effects: false, ..Self::new() }
    }

    /// Returns the objections to a version. The version may go live only if there are none. The
    /// version is compared with the baseline of the gate. If the gate has no baseline, the version
    /// is compared with `accepted`, the last accepted version. `report` is the check report of the
    /// version. If other parts were appended to the site's own file, `places` maps each line to the
    /// part that contains it.
    pub fn examine(
        &self,
        robots: &RobotsTxt,
        report: &Report,
        accepted: Option<&RobotsTxt>,
        places: Option<&LinePlaces>,
        registry: &Arc<Registry>,
    ) -> Vec<Objection> {
        self.examine_version(VersionHash::of(robots.bytes()), robots, report, accepted, places, registry)
    }

    pub(super) fn examine_version(
        &self,
        hash: VersionHash,
        robots: &RobotsTxt,
        report: &Report,
        accepted: Option<&RobotsTxt>,
        places: Option<&LinePlaces>,
        registry: &Arc<Registry>,
    ) -> Vec<Objection> {
        if self.accepted.iter().any(|accepted| accepted.matches(&hash))
            || self.baseline.as_ref().is_some_and(|baseline| baseline.hash == hash)
        {
            return Vec::new();
        }
        let accepted = self.baseline.as_ref().map(|baseline| &baseline.robots).or(accepted);
        let mut objections = Vec::new();
        if let (None, Some((known, why))) = (accepted, &self.first) {
            if known.iter().any(|known| known.matches(&hash)) {
                return Vec::new();
            }
            objections.push(Objection::new(ObjectionKind::NotAccepted, why.clone()));
        }
        if self.compares_effects {
            let mut drastic_changes = DrasticChange::between(accepted, robots, registry);
            if let (Some(accepted), Some(places)) = (accepted, places) {
                // The site's own part is compared separately. If this part loses all its rules, a
                // comparison of the whole files does not show this loss, because the appended parts
                // still have rules.
                let own = places.own_part(robots);
                let before = RobotsTxt::parse(Fragment::without_parts(accepted.bytes(), own.bytes()));
                let losses = DrasticChange::losses(&before, &own);
                drastic_changes
                    .extend(losses.into_iter().filter(|loss| !drastic_changes.contains(loss)).collect::<Vec<_>>());
            }
            objections.extend(drastic_changes.iter().map(Objection::drastic_change));
        }
        if let Some(accepted) = accepted {
            let lists = self.pages.iter().flat_map(WatchedPages::lists);
            objections.extend(lists.flat_map(|list| objection::objections(&list, accepted, robots, registry)));
        }
        let must_allow = self.must_allow.iter().fold(Expectations::new(registry.clone()), |expectations, must| {
            expectations.expect(Access::Allow, must.agents.iter().cloned(), must.paths.iter().cloned())
        });
        let misspelled =
            |(kind, name)| Some(Objection::misspelled(kind, name, &registry.one_crawler_meant(name, robots)?));
        objections.extend(self.names().filter_map(misspelled));
        if !self.must_allow.is_empty() && must_allow.is_incomplete() {
            objections.push(Objection::empty(ObjectionKind::MustAllow));
        }
        if self.expectations.as_ref().is_some_and(Expectations::is_incomplete) {
            objections.push(Objection::empty(ObjectionKind::Expectation));
        }
        let unmet = must_allow.evaluate(robots);
        objections.extend(Objection::unmet(ObjectionKind::MustAllow, &unmet.unmet));
        if let Some(expectations) = &self.expectations {
            objections.extend(Objection::unmet(ObjectionKind::Expectation, &expectations.evaluate(robots).unmet));
        }
        if let (Some(accepted), false) = (accepted, self.guards.is_empty()) {
            let options = DiffOptions::new().with_registry(registry.clone());
            let options = self.guards.iter().cloned().fold(options, DiffOptions::guard);
            objections.extend(diff(accepted, robots, &options).breaches.iter().map(Objection::breach));
        }
        if let Some(severity) = self.findings {
            objections.extend(Objection::findings(severity, report));
        }
        objections
    }

    fn names(&self) -> impl Iterator<Item = (ObjectionKind, &str)> {
        let must_allow = self.must_allow.iter().flat_map(|must| &must.agents);
        let expected = self.expectations.iter().flat_map(Expectations::agents);
        let of = |kind| move |name| (kind, name);
        must_allow
            .map(String::as_str)
            .map(of(ObjectionKind::MustAllow))
            .chain(expected.map(of(ObjectionKind::Expectation)))
            .chain(self.guards.iter().map(|guard| (ObjectionKind::Guard, guard.crawler.as_str())))
    }

    /// Reports whether [`Gate::examine`] needs the version that was accepted last.
    pub(super) fn compares(&self) -> bool {
        let has_reason =
            self.compares_effects || !self.guards.is_empty() || !self.pages.is_empty() || self.first.is_some();
        has_reason && self.baseline.is_none()
    }

    pub(super) fn compared_with(&self) -> Option<&RobotsTxt> {
        self.baseline.as_ref().map(|baseline| &baseline.robots)
    }

    /// Refuses a version with findings of this severity or a higher one. By default, findings are
    /// ignored, because crawlers can read a file with findings, and the live version may have the
    /// same findings. A second call replaces the severity.
    pub fn refuse_findings(self, severity: Severity) -> Self {
        Self { findings: Some(severity), ..self }
    }

    /// Refuses a version that disallows any of these paths for any of these agents. An agent is a
    /// crawler's name, a product token, `*` or a `User-Agent`, as in [`Expectations`].
    ///
    /// Also refuses every version if an agent's name is probably misspelled, because the condition
    /// would have no effect. A name counts as misspelled in three cases: it is empty or a path; it
    /// selects several crawlers, such as `category:search`; or no crawler and no group has this
    /// name, but a registered crawler has a similar name. Also refuses every version if `agents` or
    /// `paths` is empty. Default: no conditions. A second call adds conditions.
    pub fn must_allow<A: Into<String>, P: Into<String>>(
        mut self,
        agents: impl IntoIterator<Item = A>,
        paths: impl IntoIterator<Item = P>,
    ) -> Self {
        let agents = agents.into_iter().map(Into::into).collect();
        let paths = paths.into_iter().map(Into::into).collect();
        self.must_allow.push(MustAllow { agents, paths });
        self
    }

    /// Refuses a version that does not meet these expectations. Also refuses every version if there
    /// is no expectation, or if an expectation has no agents or no paths. Default: no expectations.
    /// A second call replaces the expectations.
    pub fn expectations(self, expectations: Expectations) -> Self {
        Self { expectations: Some(expectations), ..self }
    }

    /// Refuses a version that changes a verdict that this [`Guard`] protects. Default: no guards. A
    /// second call adds a guard.
    pub fn guard(mut self, guard: Guard) -> Self {
        self.guards.push(guard);
        self
    }

    /// Allows the versions with these hashes, regardless of their effects. A hash is a
    /// [`VersionHash`] or a prefix of one. Default: no versions. A second call adds versions.
    pub fn accept(mut self, hashes: impl IntoIterator<Item: Into<VersionHashPrefix>>) -> Self {
        self.accepted.extend(hashes.into_iter().map(Into::into));
        self
    }

    /// Refuses a version that disallows too many pages of a list for a search engine with its own
    /// index ([`Crawler::is_index_engine`](crate::agent::Crawler::is_index_engine)). Pages that the
    /// previous version already disallowed are not counted. The limit is 100 pages, or 1 % of the
    /// pages in the list that were allowed before, whichever is less. If the front page is in the
    /// list, a version that newly disallows it is always refused. Default: no pages. A second call
    /// adds pages.
    ///
    /// The gate never refuses a version because of a single page other than the front page. A rule
    /// that matches only one page was probably written for this page, while an accidental rule
    /// usually matches a folder or every URL with a query.
    pub fn pages(mut self, pages: &WatchedPages) -> Self {
        self.pages.push(pages.clone());
        self
    }

    /// Sets what happens while there is no accepted version to compare new versions with: the
    /// versions with these hashes pass, regardless of their effects, and all other versions are
    /// refused with the reason `why`. Use this function in a process that starts without an
    /// accepted version while other processes already have one. By default, the first version
    /// passes if it meets the other conditions. A second call replaces the hashes and the reason.
    pub fn allow_first_versions(
        mut self,
        hashes: impl IntoIterator<Item: Into<VersionHashPrefix>>,
        why: impl Into<String>,
    ) -> Self {
        self.first = Some((hashes.into_iter().map(Into::into).collect(), why.into()));
        self
    }

    /// Compares new versions with `robots`, for example the file in version control, instead of the
    /// version that was accepted last. A version whose bytes equal the baseline passes. When the
    /// site is opened without an earlier accepted version, the baseline goes live if the gate
    /// refuses the source's version, or if the source has no usable version. Default: no baseline.
    /// A second call replaces the baseline.
    pub fn baseline(self, robots: RobotsTxt) -> Self {
        Self { baseline: Some(Baseline { hash: VersionHash::of(robots.bytes()), robots }), ..self }
    }
}
