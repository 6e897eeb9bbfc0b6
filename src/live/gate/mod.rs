//! The conditions under which a version goes live without an operator.
//!
//! 1. A version passes if the gate accepts its hash, or if it is the version that was accepted last.
//! 2. It is compared with the version that was accepted last: the gate refuses one that shuts out everyone, crawlers
//!    without a group of their own or a search engine that was in, that has no group or no rule in force left, that is that version
//!    cut short, or that opens much at once (see [`DrasticChange`]). Without an accepted version it refuses only a total shut-out.
//! 3. The gate refuses a version that takes too many of the pages that matter from a search engine (`objection`).
//! 4. The gate refuses a version that disallows a path it must allow, misses an expectation, breaks a guard, or has
//!    findings of a severity that is set.
//! 5. A refused version waits with its reasons, and the version before stays live. It is accepted by its hash only, so an
//!    operator never accepts a version unseen.
//!
//! A process that shares its sites with others can have its very first version wait unless it is accepted
//! ([`Gate::allow_first_versions`]): theirs is what it would be compared with.
//!
//! A baseline stands in the place of the version that was accepted last: what version control holds, for example.
//!
//! Bytes that are no robots.txt (empty, HTML, binary, another text) are rejected before the gate, whatever its settings.

mod objection;

use std::sync::Arc;

pub use self::objection::{Objection, ObjectionKind, Pending, WatchedPages};

use super::versions::{VersionHash, VersionHashPrefix};
use crate::agent::Registry;
use crate::check::{DiffOptions, DrasticChange, Expectations, Guard, Report, Severity, diff};
use crate::rules::{Access, Fragment, LinePlaces, RobotsTxt};

/// The conditions under which a version goes live without an operator. Begin with [`Gate::new`], which is also its default; a site
/// without a gate has [`Gate::open`].
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
/// assert_eq!(pending.objections[0].to_string(), "everyone is blocked: no crawler may fetch anything");
/// assert!(live.accept(&pending.hash().into()).is_ok());
/// assert_eq!(live.status().live, Some(pending.hash()));
/// # Ok::<(), tower_robots::live::Rejection>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Gate {
    /// Whether a version is compared with the one that was accepted last, in what it does to crawlers.
    compares_effects: bool,
    findings: Option<Severity>,
    must_allow: Vec<MustAllow>,
    expectations: Option<Expectations>,
    guards: Vec<Guard>,
    accepted: Vec<VersionHashPrefix>,
    pages: Vec<WatchedPages>,
    baseline: Option<Baseline>,
    /// The versions that pass where there is nothing to compare with, and why others wait.
    first: Option<(Vec<VersionHashPrefix>, String)>,
}

/// [`Gate::new`].
impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}

/// A version that counts as the one accepted last.
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
    /// A gate that compares effects, and has no other conditions yet.
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

    /// A gate that every version passes: the default of a [`LiveRobots`](super::LiveRobots).
    pub fn open() -> Self {
        Self { compares_effects: false, ..Self::new() }
    }

    /// The objections to a version, compared with the baseline or else with the one that was `accepted` last; none where it
    /// may go live. `report` is the report of its check, and `places` are those of its lines, if parts are appended.
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

    /// [`Gate::examine`] of bytes whose hash is known.
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
                // What is appended has rules, so the whole does not show that the file has lost its own.
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
        let misspelled = |(kind, name)| Some(Objection::misspelled(kind, name, &registry.meant(name, robots)?));
        objections.extend(self.names().filter_map(misspelled));
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

    /// The names of crawlers that its conditions are about.
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

    /// Whether the version that was accepted last matters.
    pub(super) fn compares(&self) -> bool {
        let has_reason =
            self.compares_effects || !self.guards.is_empty() || !self.pages.is_empty() || self.first.is_some();
        has_reason && self.baseline.is_none()
    }

    /// The file that counts as the version that was accepted last.
    pub(super) fn compared_with(&self) -> Option<&RobotsTxt> {
        self.baseline.as_ref().map(|baseline| &baseline.robots)
    }

    /// Refuses a version with findings of this severity or worse. Default: none, because
    /// crawlers read every file, and the version before need be no better. A second call replaces the first.
    pub fn refuse_findings(self, severity: Severity) -> Self {
        Self { findings: Some(severity), ..self }
    }

    /// Refuses a version that does not allow each of these agents (a name, a product token, `*` or a `User-Agent`, as in
    /// [`Expectations`]) each of these paths, and one in which a name of them is nearly that of a registered crawler, but of
    /// none, nor of a group: it would guard nothing. Default: nothing. A second call adds to the first.
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

    /// Refuses a version that does not meet these. Default: none. A second call replaces the first.
    pub fn expectations(self, expectations: Expectations) -> Self {
        Self { expectations: Some(expectations), ..self }
    }

    /// Refuses a version in which something changes that must not. Default: nothing. A second call adds to the first.
    pub fn guard(mut self, guard: Guard) -> Self {
        self.guards.push(guard);
        self
    }

    /// Lets these versions pass, whatever they do: a [`VersionHash`], or as much of one as an application has kept of it. Default: none.
    /// A second call adds to the first.
    pub fn accept(mut self, hashes: impl IntoIterator<Item: Into<VersionHashPrefix>>) -> Self {
        self.accepted.extend(hashes.into_iter().map(Into::into));
        self
    }

    /// Refuses a version that newly disallows to a search engine with an index
    /// ([`Crawler::is_index_engine`](crate::agent::Crawler::is_index_engine)) more than 1 % or more than 100 of the pages in a
    /// list, and at least two of them, or the front page. A page that the version before disallowed too does not count.
    /// Default: no pages. A second call adds to the first.
    ///
    /// One page alone would be more than 1 % of a list of less than a hundred. It may be lost, because a rule that meets one page
    /// was written for that page; an accident meets a folder or every query.
    pub fn pages(mut self, pages: &WatchedPages) -> Self {
        self.pages.push(pages.clone());
        self
    }

    /// Where there is nothing to compare with, lets these versions pass, whatever they do, and refuses others for this reason: what other
    /// processes serve or have accepted, for one that begins without. Default: a first version passes if it meets the other conditions.
    /// A second call replaces the first.
    pub fn allow_first_versions(
        mut self,
        hashes: impl IntoIterator<Item: Into<VersionHashPrefix>>,
        why: impl Into<String>,
    ) -> Self {
        self.first = Some((hashes.into_iter().map(Into::into).collect(), why.into()));
        self
    }

    /// Compares versions with this one, such as what version control holds, in place of the one that was accepted last. The
    /// very bytes of it pass. If nothing was accepted yet and the source's version waits or cannot be used, it goes live.
    /// Default: none. A second call replaces the first.
    pub fn baseline(self, robots: RobotsTxt) -> Self {
        Self { baseline: Some(Baseline { hash: VersionHash::of(robots.bytes()), robots }), ..self }
    }
}
