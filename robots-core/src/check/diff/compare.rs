//! Compares the effects of two robots.txt files on crawlers.

use std::cell::Cell;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use super::change::{self, Change, DelayChange};
use super::subject::{self, Subject, first_crawlers, sorted};
use super::usage::{self, UsageChange};
use super::witness;
use crate::agent::{Recognizer, Registry};
use crate::check::quote::Quoted;
use crate::rules::{Access, PathPattern, Reading, RequestPath, RobotsTxt, RuleSet, Selection};

/// Options for comparing two files.
#[derive(Clone, Debug)]
#[must_use]
pub struct DiffOptions {
    registry: Arc<Registry>,
    reading: Reading,
    guards: Vec<Guard>,
}

/// A requirement that a crawler's verdicts stay the same on all paths that match a pattern. A guard
/// is written as `Googlebot:/products/`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Guard {
    /// Name of the crawler, as written.
    pub crawler: String,
    /// Path pattern, as written.
    pub pattern: String,
}

/// A [`Guard`] and a change that violates it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Breach {
    /// The violated guard.
    pub guard: Guard,
    /// The change that violates the guard. If several changes violate it, this is the change that
    /// affects the largest part of the site.
    pub change: Change,
}

/// The differences between the effects of two files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Diff {
    /// Changed verdicts, search engines first. Crawlers with the same changes share one element.
    pub effects: Vec<Effect>,
    /// Changed delays, search engines first.
    pub delays: Vec<DelayChange>,
    /// Changed usage preferences.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Vec::is_empty"))]
    pub usage: Vec<UsageChange>,
    /// The guards that the new file violates.
    pub breaches: Vec<Breach>,
    /// Crawlers that keep their verdicts and delays, although something changes for crawlers that
    /// no group names. Empty if nothing changes for crawlers that no group names.
    ///
    /// Each inner list contains the crawlers that obey the same groups, search engines first. At
    /// least one crawler of each list is named in a file. Other crawlers of the list may obey the
    /// group of a related crawler.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Vec::is_empty"))]
    pub spared: Vec<Vec<Subject>>,
    /// URLs of `Sitemap` lines that only the new file has.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Vec::is_empty"))]
    pub sitemaps_added: Vec<String>,
    /// URLs of `Sitemap` lines that only the old file has.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Vec::is_empty"))]
    pub sitemaps_removed: Vec<String>,
    /// URLs of `License` lines that only the new file has.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Vec::is_empty"))]
    pub licenses_added: Vec<String>,
    /// URLs of `License` lines that only the old file has.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Vec::is_empty"))]
    pub licenses_removed: Vec<String>,
    /// Whether the comparison ended before all paths were tried ([`Diff::of_while`]). If true,
    /// there may be more differences.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "std::ops::Not::not"))]
    pub is_cut: bool,
}

/// Changes of verdicts, and the crawlers that they affect.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Effect {
    /// The affected crawlers; search engines first.
    pub crawlers: Vec<Subject>,
    /// The changes for these crawlers, newly disallowed paths first. If the same two rules (of the
    /// old and of the new file) decide several paths, only one of these paths is listed.
    pub changes: Vec<Change>,
    /// Number of changes that are not in `changes`, because there are more than
    /// [`MAX_CHANGES`](Self::MAX_CHANGES).
    pub omitted: usize,
}

/// Compares the effects of two files on all crawlers of the registry, on all crawlers that one of
/// the files names, and on a crawler that no group names.
///
/// ```
/// use robots_core::check::{DiffOptions, diff};
/// use robots_core::rules::{Access, RobotsTxt};
///
/// let old = RobotsTxt::parse(&b"User-agent: *\nDisallow: /cart\n"[..]);
/// let new = RobotsTxt::parse(&b"User-agent: *\nDisallow: /\n"[..]);
/// let diff = diff(&old, &new, &DiffOptions::new());
/// let change = &diff.effects[0].changes[0];
/// assert_eq!((&*change.path, change.access), ("/", Access::Disallow));
/// ```
pub fn diff(old: &RobotsTxt, new: &RobotsTxt, options: &DiffOptions) -> Diff {
    Diff::of_while(old, new, options, &|| true)
}

impl DiffOptions {
    /// Returns options with the built-in registry, [`Reading::Standard`] and no guards.
    pub fn new() -> Self {
        Self { registry: Registry::builtin().clone(), reading: Reading::Standard, guards: Vec::new() }
    }

    /// Sets the registry of known crawlers. Default: [`Registry::builtin`].
    pub fn with_registry(mut self, registry: Arc<Registry>) -> Self {
        self.registry = registry;
        self
    }

    /// Sets the [`Reading`] of both files. Default: [`Reading::Standard`].
    pub const fn with_reading(mut self, reading: Reading) -> Self {
        self.reading = reading;
        self
    }

    /// Adds a guard. Default: none.
    pub fn guard(mut self, guard: Guard) -> Self {
        self.guards.push(guard);
        self
    }
}

impl Default for DiffOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl Diff {
    /// Compares two files like [`diff()`], but with a time limit. Use this for untrusted files.
    ///
    /// Once `goes_on` returns false, no more paths are tried and [`Diff::is_cut`] is set. `goes_on`
    /// is called often, so it can check a deadline.
    #[doc(hidden)]
    pub fn of_while(old: &RobotsTxt, new: &RobotsTxt, options: &DiffOptions, goes_on: &dyn Fn() -> bool) -> Self {
        let over = Cell::new(false);
        let goes_on = || {
            over.set(over.get() || !goes_on());
            !over.get()
        };
        let pair = Pair::new(options.reading, old, new, &options.registry);
        let classes = pair.classes(subject::all(options.reading, old, new, &options.registry));
        let delays = change::changes([&pair.old, &pair.new], &classes);
        let usage = usage::changes([&pair.old, &pair.new], &classes, &goes_on);
        let (mut effects, mut spared) = (Vec::new(), Vec::new());
        for crawlers in classes {
            match pair.effect(crawlers, &goes_on) {
                Ok(effect) => effects.push(effect),
                Err(crawlers) => spared.push(crawlers),
            }
        }
        effects.sort_by_cached_key(Effect::rank);
        // All crawlers of a class obey the same groups. So if the delay of one crawler changes, the
        // delays of its whole class change.
        let delayed: HashSet<_> =
            delays.iter().flat_map(|delay| &delay.crawlers).map(|subject| &subject.name).collect();
        let is_unnamed = |subject: &Subject| subject.name.is_none();
        let is_for_unnamed =
            delayed.contains(&None) || effects.iter().any(|effect| effect.crawlers.iter().any(is_unnamed));
        spared.retain(|class: &Vec<Subject>| {
            let is_named = class.iter().any(|subject| subject.named);
            is_for_unnamed && !over.get() && is_named && !class.first().is_some_and(|one| delayed.contains(&one.name))
        });
        spared.sort_by_cached_key(|class| class.first().map(Subject::rank));
        let recognizer = Recognizer::new(options.registry.clone(), new);
        let breaches = options.guards.iter().filter_map(|guard| pair.breach(guard, &recognizer, &goes_on)).collect();
        let [sitemaps_added, sitemaps_removed] = [(new, old), (old, new)].map(|(of, other)| {
            let known: HashSet<_> = other.sitemaps().map(|sitemap| sitemap.value).collect();
            let only = of.sitemaps().filter(|sitemap| !known.contains(sitemap.value));
            only.map(|sitemap| String::from_utf8_lossy(sitemap.value).into_owned()).collect()
        });
        let [licenses_added, licenses_removed] = [(&pair.new, &pair.old), (&pair.old, &pair.new)].map(|(of, other)| {
            let other: HashSet<_> = other.licenses().collect();
            let only: BTreeSet<_> = of.licenses().filter(|url| !other.contains(url)).collect();
            only.into_iter().map(str::to_owned).collect()
        });
        let is_cut = over.get();
        Self {
            effects,
            delays,
            usage,
            breaches,
            spared,
            sitemaps_added,
            sitemaps_removed,
            licenses_added,
            licenses_removed,
            is_cut,
        }
    }

    /// Reports whether no verdict and no delay changes for any crawler. Ignores sitemaps, usage
    /// preferences and licences.
    pub fn is_empty(&self) -> bool {
        self.effects.is_empty() && self.delays.is_empty()
    }
}

impl Effect {
    /// Maximum number of changes in one [`Effect`]. Changes beyond the limit are counted but not
    /// stored.
    pub const MAX_CHANGES: usize = 100;

    /// Returns the sort key; the worst effect has the lowest key. Effects are sorted by the kind of
    /// their first crawler ([`Subject::rank`]). Effects on the same kind are sorted by their first
    /// change: newly disallowed paths before newly allowed paths, and shorter paths before longer
    /// paths, because short paths affect more pages.
    fn rank(&self) -> impl Ord + use<> {
        let subject = self.crawlers.first().map(Subject::rank);
        let change = self.changes.first();
        (
            subject.as_ref().map(|rank| rank.0),
            change.is_some_and(|change| change.access == Access::Allow),
            change.map_or(0, |change| change.path.len()),
            subject,
        )
    }
}

impl Guard {
    /// Parses `crawler:pattern`. The crawler is a name as in
    /// [`Expectations`](crate::check::Expectations), and the pattern is a path pattern as in
    /// robots.txt. Returns `None` if the colon or the crawler is missing, or if the pattern begins
    /// with neither `/` nor `*`.
    pub fn parse(text: &str) -> Option<Self> {
        let (crawler, pattern) = text.split_once(':')?;
        Self::new(crawler, pattern)
    }

    /// Creates a guard with the same checks as [`Guard::parse`].
    #[doc(hidden)]
    pub fn new(crawler: &str, pattern: &str) -> Option<Self> {
        let (crawler, pattern) = (crawler.trim(), pattern.trim());
        let fits = !crawler.is_empty() && (pattern.starts_with('/') || pattern.starts_with('*'));
        fits.then(|| Self { crawler: crawler.to_owned(), pattern: pattern.to_owned() })
    }

    pub(super) fn covers(&self, path: &[u8]) -> bool {
        PathPattern::new(self.pattern.as_bytes(), Reading::Standard).matches(RequestPath::new(path).as_bytes())
    }

    pub(super) fn subject(&self, recognizer: &Recognizer) -> Subject {
        Subject::named(&self.crawler, &recognizer.resolve(&self.crawler))
    }
}

impl fmt::Display for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.crawler, self.pattern)
    }
}

pub(super) struct Pair {
    pub(super) old: RuleSet,
    pub(super) new: RuleSet,
}

impl Pair {
    pub(super) fn new(reading: Reading, old: &RobotsTxt, new: &RobotsTxt, registry: &Registry) -> Self {
        let compile = |robots: &RobotsTxt| robots.compile_with(reading, |name| registry.stands_for(name.value()));
        Self { old: compile(old), new: compile(new) }
    }

    pub(super) fn select(&self, subject: &Subject) -> [Selection<'_>; 2] {
        [&self.old, &self.new].map(|rules| subject.select(rules))
    }

    /// Groups crawlers into classes. All crawlers of a class obey the same groups in both files.
    pub(super) fn classes(&self, subjects: impl IntoIterator<Item = Subject>) -> Vec<Vec<Subject>> {
        let mut classes: HashMap<[Vec<usize>; 2], Vec<Subject>> = HashMap::new();
        for subject in subjects {
            let groups = |selection: Selection<'_>| selection.groups().map(|group| group.line()).collect();
            classes.entry(self.select(&subject).map(groups)).or_default().push(subject);
        }
        classes.into_values().map(sorted).collect()
    }

    /// Returns the changes for one class of crawlers. If no verdict changes, returns an `Err` that
    /// contains the crawlers.
    fn effect(&self, crawlers: Vec<Subject>, goes_on: &dyn Fn() -> bool) -> Result<Effect, Vec<Subject>> {
        let Some(first) = crawlers.first().filter(|_| goes_on()) else { return Err(crawlers) };
        let [before, after] = self.select(first);
        let mut changes = self.changes(before, after, &witness::paths(before, after, &[], goes_on), goes_on);
        let omitted = changes.len().saturating_sub(Effect::MAX_CHANGES);
        changes.truncate(Effect::MAX_CHANGES);
        if changes.is_empty() { Err(crawlers) } else { Ok(Effect { crawlers, changes, omitted }) }
    }

    fn breach(&self, guard: &Guard, recognizer: &Recognizer, goes_on: &dyn Fn() -> bool) -> Option<Breach> {
        let [before, after] = self.select(&guard.subject(recognizer));
        let paths = witness::paths(before, after, &[guard.pattern.as_bytes()], goes_on);
        let paths: Vec<_> = paths.into_iter().filter(|path| guard.covers(path)).collect();
        let change = self.changes(before, after, &paths, goes_on).into_iter().next()?;
        Some(Breach { guard: guard.clone(), change })
    }

    /// Returns the changed verdicts on these paths. If several changes have the same deciding
    /// rules, returns only the change with the shortest path.
    fn changes(
        &self,
        before: Selection<'_>,
        after: Selection<'_>,
        paths: &[Vec<u8>],
        goes_on: &dyn Fn() -> bool,
    ) -> Vec<Change> {
        let mut found: HashMap<_, (&[u8], Change)> = HashMap::new();
        for path in paths.iter().take_while(|_| goes_on()) {
            let reading = self.old.reading();
            let url = (reading == Reading::Reference).then(|| witness::as_url(path));
            let request = reading.path(url.as_ref().unwrap_or(path));
            let (was, is) = (before.verdict(&request), after.verdict(&request));
            if was.access() == is.access() {
                continue;
            }
            let key = (is.access(), was.line(), is.line());
            let shorter = found.get(&key).is_none_or(|(known, _)| (path.len(), path.as_slice()) < (known.len(), known));
            if shorter {
                found.insert(key, (path, Change::of(path, [was, is], after)));
            }
        }
        let mut changes: Vec<Change> = found.into_values().map(|(_, change)| change).collect();
        changes.sort_by(|a, b| {
            let key = |change: &Change| (change.access == Access::Allow, change.breadth, change.path.len());
            key(a).cmp(&key(b)).then_with(|| a.path.cmp(&b.path))
        });
        changes
    }
}

/// Maximum number of effects, and of changed delays, in the short form of a [`Diff`].
const SHOWN: usize = 2;

/// Writes the worst changes and the number of further changes: `"/" is disallowed for "Googlebot",
/// "bingbot" and 640 more; ...`. The alternate form (`{:#}`) writes every change, and names every
/// affected crawler that occurs in one of the files.
impl fmt::Display for Diff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("nothing changes for any crawler");
        }
        let (shown, of_each) = if f.alternate() { (usize::MAX, usize::MAX) } else { (SHOWN, 1) };
        let mut named = 0;
        for effect in self.effects.iter().take(shown) {
            for change in effect.changes.iter().take(of_each) {
                f.write_str(if named == 0 { "" } else { "; " })?;
                write_change(f, effect, change)?;
                named += 1;
            }
        }
        let all: usize = self.effects.iter().map(|effect| effect.changes.len() + effect.omitted).sum();
        match all.saturating_sub(named) {
            0 => {}
            1 => f.write_str("; 1 more change")?,
            more => write!(f, "; {more} more changes")?,
        }
        for (at, delay) in self.delays.iter().take(shown).enumerate() {
            f.write_str(if at == 0 && self.effects.is_empty() { "" } else { "; " })?;
            fmt::Display::fmt(delay, f)?;
        }
        match self.delays.len().saturating_sub(shown) {
            0 => Ok(()),
            1 => f.write_str("; 1 more delay"),
            more => write!(f, "; {more} more delays"),
        }
    }
}

fn write_change(f: &mut fmt::Formatter<'_>, effect: &Effect, change: &Change) -> fmt::Result {
    let verb = match change.access {
        Access::Allow => "allowed",
        Access::Disallow => "disallowed",
    };
    write!(f, "{} is {verb} for {}", Quoted(change.path.as_bytes()), first_crawlers(f, &effect.crawlers))
}
