//! The gate's objections to a version, the lists of important pages, and the pending version.
//!
//! **The gate and the application share the lists of important pages** ([`WatchedPages`]), so a
//! list can be updated without replacing the gate. The gate uses the updated list when it examines
//! the next version. The live and the pending version are not examined again.

use crate::live::Mutex;
use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use robots_core::keyword_enum;

use crate::agent::Registry;
use crate::check::{Breach, DrasticChange, Finding, Page, PageLoss, Report, Severity, Unmet};
use crate::live::versions::{Version, VersionHash};
use crate::rules::{Access, RobotsTxt};

/// Maximum number of objections of the same kind that are listed one by one; further ones are only
/// counted.
const SHOWN: usize = 3;

/// One reason why a version does not go live without an operator. `Display` prints the reason as a
/// clause, without unprintable characters.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Objection {
    /// The kind of the objection.
    pub kind: ObjectionKind,
    /// The objection as a clause, for use in messages.
    pub text: String,
    /// All check findings that caused this objection. The list is empty if the kind is not
    /// `Finding`, or if the objection was loaded from a state directory.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub findings: Vec<Finding>,
}

keyword_enum! {
    /// The kind of an objection.
    ObjectionKind, "the kind of an objection", {
        /// The version blocks all crawlers, all crawlers that are not named in any group, or a
        /// search engine.
        ShutOut = "shut-out",
        /// The version allows many pages that were disallowed before.
        Opening = "opening",
        /// The version is only the beginning of the previous version, as if the file had been
        /// truncated.
        CutShort = "cut-short",
        /// The version disallows pages that are important to search engines.
        Pages = "pages",
        /// The version disallows a path that it must allow.
        MustAllow = "must-allow",
        /// The version does not meet an expectation.
        Expectation = "expectation",
        /// The version changes a verdict that a [`Guard`](crate::check::Guard) protects.
        Guard = "guard",
        /// The check has findings of a severity that the gate refuses.
        Finding = "finding",
        /// Nobody has accepted the version, and there is no version to compare it with.
        NotAccepted = "not-accepted",
        /// The version was live and was rolled back.
        RolledBack = "rolled-back",
    }
}

impl Objection {
    pub(in crate::live) fn new(kind: ObjectionKind, text: String) -> Self {
        Self { kind, text, findings: Vec::new() }
    }

    pub(in crate::live) fn rolled_back() -> Self {
        Self::new(ObjectionKind::RolledBack, "this version was rolled back before".to_owned())
    }

    pub(super) fn drastic_change(drastic_change: &DrasticChange) -> Self {
        let kind = match drastic_change {
            DrasticChange::SiteOpened
            | DrasticChange::GroupsLost { .. }
            | DrasticChange::NoRuleInForce { .. }
            | DrasticChange::RulesLost { .. }
            | DrasticChange::CrawlersLetIn { .. } => ObjectionKind::Opening,
            DrasticChange::CutShort { .. } => ObjectionKind::CutShort,
            _ => ObjectionKind::ShutOut,
        };
        Self::new(kind, drastic_change.to_string())
    }

    pub(super) fn unmet(kind: ObjectionKind, unmet: &[Unmet]) -> Vec<Self> {
        limit_objections(kind, unmet.len(), unmet.iter().map(ToString::to_string))
    }

    /// Creates the objection to expectations without agents or paths, which have no effect.
    pub(super) fn empty(kind: ObjectionKind) -> Self {
        Self::new(kind, format!("{} has no agents or no paths: pass at least one of each", setting_name(kind)))
    }

    pub(super) fn misspelled(kind: ObjectionKind, name: &str, meant: &str) -> Self {
        let of = setting_name(kind);
        Self::new(
            kind,
            format!(
                "{of} contains the name {name:?}, but no crawler and no group has this name: did you mean {meant}?"
            ),
        )
    }

    pub(super) fn breach(breach: &Breach) -> Self {
        let change = &breach.change;
        let text = format!(
            "the gate guards {guard:?} against changes, but {path:?} is now {changed}",
            guard = breach.guard.to_string(),
            path = change.path,
            changed = participle(change.access)
        );
        Self::new(ObjectionKind::Guard, text)
    }

    pub(super) fn findings(severity: Severity, report: &Report) -> Vec<Self> {
        let findings = report.findings.iter().filter(|finding| finding.severity >= severity);
        let count = Severity::ALL.into_iter().filter(|other| *other >= severity).map(|other| report.count(other)).sum();
        let mut objections = limit_objections(ObjectionKind::Finding, count, findings.clone().map(ToString::to_string));
        for (objection, finding) in objections.iter_mut().zip(findings) {
            objection.findings = vec![finding.clone()];
        }
        objections
    }
}

impl fmt::Display for Objection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Returns the name of the setting of a gate that causes objections of this kind.
const fn setting_name(kind: ObjectionKind) -> &'static str {
    match kind {
        ObjectionKind::MustAllow => "must_allow",
        ObjectionKind::Guard => "a guard",
        _ => "an expectation",
    }
}

fn limit_objections(kind: ObjectionKind, count: usize, texts: impl Iterator<Item = String>) -> Vec<Objection> {
    let mut objections: Vec<_> = texts.take(SHOWN).map(|text| Objection::new(kind, text)).collect();
    if count > objections.len() {
        let more = count - objections.len();
        objections.push(Objection::new(kind, format!("{more} more objections of this kind")));
    }
    objections
}

const fn participle(access: Access) -> &'static str {
    match access {
        Access::Allow => "allowed",
        Access::Disallow => "disallowed",
    }
}

/// Maximum number of pages in a list that a version may newly disallow, even if they are a small
/// share of the list.
const MAX_LOST_PAGES: usize = 100;

/// Maximum share of the previously allowed pages in a list that a version may newly disallow: 1 in
/// 100.
const SHARE: usize = 100;

/// Minimum number of newly disallowed pages that can cause an objection, unless one of them is the
/// front page.
const MIN_LOST_PAGES: usize = 2;

/// Maximum number of pages that are listed one by one, each in its own objection.
const LISTED: usize = 10;

/// Returns the objections to a version that newly disallows too many pages of a list.
///
/// Each list is examined separately, because the few pages that an operator lists would be a
/// negligible share of a list that also contains the thousands of pages in a sitemap.
///
/// A single page other than the front page causes no objection, even if it is more than 1 % of the
/// list (`Gate::pages` explains why). The front page is an exception, because nobody disallows it
/// on purpose.
pub(super) fn objections(
    list: &PageList,
    accepted: &RobotsTxt,
    robots: &RobotsTxt,
    registry: &Arc<Registry>,
) -> Vec<Objection> {
    let losses = PageLoss::between(accepted, robots, &list.pages, registry);
    let Some(loss) = losses.iter().find(|loss| exceeds_limits(loss)) else { return Vec::new() };
    let of_kind = |text: String| Objection::new(ObjectionKind::Pages, text);
    let share = percent(loss.lost.len(), loss.allowed.len());
    let mut objections = vec![of_kind(format!("{loss} {} ({share})", list.name))];
    objections.extend(loss.examples(LISTED).map(|lost| of_kind(lost.to_string())));
    let more = loss.lost.len().saturating_sub(LISTED);
    if more > 0 {
        objections.push(of_kind(format!("and {more} more of these pages")));
    }
    objections
}

fn exceeds_limits(loss: &PageLoss) -> bool {
    let lost = loss.lost.len();
    let is_many = lost > MAX_LOST_PAGES || lost * SHARE > loss.allowed.len();
    is_many && lost >= MIN_LOST_PAGES || loss.lost.iter().any(|lost| lost.page.is_front())
}

fn percent(part: usize, of: usize) -> String {
    let of = of.max(1);
    match part.saturating_mul(100).saturating_add(of / 2) / of {
        0 => "less than 1 %".to_owned(),
        whole => format!("{whole} %"),
    }
}

/// The lists of important pages, for example from sitemaps, from an operator's file, or from the
/// requests of crawlers. Cloning is cheap; clones share the lists. An updated list applies to the
/// next version that a gate examines.
///
/// ```
/// use tower_robots::check::Page;
/// use tower_robots::internals::WatchedPages;
/// use tower_robots::live::{Gate, LiveRobots};
///
/// let pages = WatchedPages::default();
/// let live = LiveRobots::text("User-agent: *\nDisallow: /cart/\n")
///     .gate(Gate::new().pages(&pages))
///     .open()?;
/// pages.set("of the sitemaps", ["/", "/news/1", "/news/2"].map(Page::new));
/// let (news, account) = ("Disallow: /news/\n", "Disallow: /account/\n");
/// let publish = |rule: &str| live.publish_blocking(format!("User-agent: *\nDisallow: /cart/\n{rule}"));
/// assert!(publish(news).is_err());
/// assert!(publish(account).is_ok());
/// # Ok::<(), tower_robots::live::Rejection>(())
/// ```
#[derive(Clone, Default)]
pub struct WatchedPages(Arc<Mutex<Vec<PageList>>>);

#[derive(Clone)]
pub(super) struct PageList {
    /// The name of the list as messages print it after "pages", for example "of the sitemaps".
    pub(super) name: Arc<str>,
    pub(super) pages: Arc<[Page]>,
}

impl WatchedPages {
    /// Replaces the list of this name, or removes it if `pages` is empty. Objections print the name
    /// after the word "pages", so choose a name such as `of the sitemaps` or `of urls.txt`.
    pub fn set(&self, name: &str, pages: impl IntoIterator<Item = Page>) {
        let pages: Arc<[Page]> = pages.into_iter().collect();
        let mut lists = self.0.lock();
        lists.retain(|list| *list.name != *name);
        if !pages.is_empty() {
            lists.push(PageList { name: name.into(), pages });
            lists.sort_by(|one, other| one.name.cmp(&other.name));
        }
    }

    /// Returns a copy of the lists. Later changes of the lists do not affect the copy.
    pub fn copied(&self) -> Self {
        Self(Arc::new(Mutex::new(self.lists())))
    }

    /// Returns the names of the lists, each with its number of pages.
    pub fn counts(&self) -> Vec<(String, usize)> {
        self.0.lock().iter().map(|list| (list.name.to_string(), list.pages.len())).collect()
    }

    pub(super) fn lists(&self) -> Vec<PageList> {
        self.0.lock().clone()
    }
}

impl fmt::Debug for WatchedPages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut map = f.debug_map();
        self.0.lock().iter().for_each(|list| {
            map.entry(&list.name, &list.pages.len());
        });
        map.finish()
    }
}

/// A version that does not go live until an operator accepts it, because the gate refused it or
/// because it was rolled back. Cloning is cheap.
#[derive(Clone)]
#[non_exhaustive]
pub struct Pending {
    pub(in crate::live) version: Version,
    /// When the version became pending.
    pub since: SystemTime,
    /// The reasons why the version does not go live; never empty.
    pub objections: Arc<[Objection]>,
    /// The check report; `None` if an earlier process examined the version, or if the version was
    /// rolled back.
    pub report: Option<Arc<Report>>,
}

impl Pending {
    pub(in crate::live) fn new(version: Version, since: SystemTime, objections: Vec<Objection>) -> Self {
        Self { version, since, objections: objections.into(), report: None }
    }

    pub(in crate::live) fn with_report(self, report: Arc<Report>) -> Self {
        Self { report: Some(report), ..self }
    }

    /// Returns the hash of the version, which
    /// [`LiveRobots::accept`](crate::live::LiveRobots::accept) needs.
    pub fn hash(&self) -> VersionHash {
        self.version.hash()
    }

    /// Returns the bytes of the version.
    pub fn bytes(&self) -> &Arc<[u8]> {
        self.version.bytes()
    }

    /// Returns the path, URL or name of the source that the version comes from.
    pub fn origin(&self) -> &str {
        &self.version.origin
    }

    pub(in crate::live) fn is_rolled_back(&self) -> bool {
        self.objections.iter().any(|objection| objection.kind == ObjectionKind::RolledBack)
    }
}

/// Prints the reasons why the version does not go live, in one line.
impl fmt::Display for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, objection) in self.objections.iter().enumerate() {
            write!(f, "{}{objection}", if at == 0 { "" } else { "; " })?;
        }
        Ok(())
    }
}

robots_core::debug_as!(|it| Pending { hash: it.hash(), origin: it.origin(), objections: it.objections });
