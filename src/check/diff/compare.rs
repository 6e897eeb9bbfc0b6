//! Comparing the effect of two files.

use std::collections::HashMap;
use std::sync::Arc;

use super::change::Change;
use super::delay::{self, DelayChange};
use super::guard::{Breach, Guard};
use super::subject::{self, Subject};
use super::witness;
use crate::agent::{Recognizer, Registry};
use crate::rules::{Access, Reading, RequestPath, RobotsTxt, RuleSet, Selection};

/// Changes that one [`Effect`] holds; the rest are counted.
pub const MAX_CHANGES_PER_EFFECT: usize = 100;

/// How two files are compared.
#[derive(Clone, Debug)]
#[must_use]
pub struct DiffOptions {
    registry: Arc<Registry>,
    reading: Reading,
    guards: Vec<Guard>,
}

/// The differences in effect between two files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Diff {
    pub(super) effects: Vec<Effect>,
    pub(super) delays: Vec<DelayChange>,
    pub(super) breaches: Vec<Breach>,
}

/// The differences for some crawlers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Effect {
    pub(super) crawlers: Vec<Subject>,
    pub(super) changes: Vec<Change>,
    pub(super) omitted: usize,
}

/// Compares two files by what they mean for crawlers: those of the registry, those either file names, and one that
/// neither names.
///
/// ```
/// use tower_robots::check::{DiffOptions, diff};
/// use tower_robots::rules::{Access, RobotsTxt};
///
/// let old = RobotsTxt::parse(&b"User-agent: *\nDisallow: /cart\n"[..]);
/// let new = RobotsTxt::parse(&b"User-agent: *\nDisallow: /\n"[..]);
/// let diff = diff(&old, &new, &DiffOptions::new());
/// let change = &diff.effects()[0].changes()[0];
/// assert_eq!((change.path(), change.access()), ("/", Access::Disallow));
/// ```
#[must_use]
pub fn diff(old: &RobotsTxt, new: &RobotsTxt, options: &DiffOptions) -> Diff {
    let pair = Pair::read_as(options.reading, old, new, &options.registry);
    let mut classes: HashMap<[Vec<usize>; 2], Vec<Subject>> = HashMap::new();
    for subject in subject::all_read_as(options.reading, old, new, &options.registry) {
        let groups = |selection: Selection<'_>| selection.groups().map(|group| group.line()).collect::<Vec<_>>();
        let [before, after] = pair.select(&subject);
        classes.entry([groups(before), groups(after)]).or_default().push(subject);
    }
    let delays = delay::changes([&pair.old, &pair.new], classes.values().map(Vec::as_slice));
    let mut effects: Vec<Effect> = classes.into_values().filter_map(|crawlers| pair.effect(crawlers)).collect();
    effects.sort_by_cached_key(Effect::rank);
    let recognizer = Recognizer::new(options.registry.clone(), new);
    let breaches = options.guards.iter().filter_map(|guard| pair.breach(guard, &recognizer)).collect();
    Diff { effects, delays, breaches }
}

impl DiffOptions {
    /// The built-in registry, the standard reading and no guards.
    pub fn new() -> Self {
        Self { registry: Registry::builtin().clone(), reading: Reading::Standard, guards: Vec::new() }
    }

    /// The crawlers that exist. Default: [`Registry::builtin`].
    pub fn with_registry(mut self, registry: Arc<Registry>) -> Self {
        self.registry = registry;
        self
    }

    /// How both files are read. Default: [`Reading::Standard`].
    pub const fn with_reading(mut self, reading: Reading) -> Self {
        self.reading = reading;
        self
    }

    /// Adds something that must not change. Default: nothing.
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
    /// The differences, by crawlers; search engines first.
    #[must_use]
    pub fn effects(&self) -> &[Effect] {
        &self.effects
    }

    /// The delays between requests that differ; search engines first.
    #[must_use]
    pub fn delays(&self) -> &[DelayChange] {
        &self.delays
    }

    /// The guards under which something changes.
    #[must_use]
    pub fn breaches(&self) -> &[Breach] {
        &self.breaches
    }

    /// Whether nothing was found to differ.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.effects.is_empty() && self.delays.is_empty()
    }
}

impl Effect {
    /// The crawlers it is about; search engines first.
    #[must_use]
    pub fn crawlers(&self) -> &[Subject] {
        &self.crawlers
    }

    /// The changes for them, newly disallowed paths first; one path for each pair of rules that decide.
    #[must_use]
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// How many changes were counted and not kept.
    #[must_use]
    pub const fn omitted(&self) -> usize {
        self.omitted
    }

    /// The worst first: search engines, then crawlers that a file names, then the others; disallowed before
    /// allowed; the shortest path, which is about the most pages, first.
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

/// Both files, compiled.
pub(super) struct Pair {
    pub(super) old: RuleSet,
    pub(super) new: RuleSet,
}

impl Pair {
    /// Both files as they are enforced.
    pub(super) fn new(old: &RobotsTxt, new: &RobotsTxt, registry: &Registry) -> Self {
        Self::read_as(Reading::Standard, old, new, registry)
    }

    fn read_as(reading: Reading, old: &RobotsTxt, new: &RobotsTxt, registry: &Registry) -> Self {
        let compile = |robots: &RobotsTxt| robots.compile_with(reading, |name| registry.stands_for(name.value()));
        Self { old: compile(old), new: compile(new) }
    }

    pub(super) fn select(&self, subject: &Subject) -> [Selection<'_>; 2] {
        [&self.old, &self.new].map(|rules| subject.select(rules))
    }

    /// What changes for crawlers that all obey the same groups.
    fn effect(&self, mut crawlers: Vec<Subject>) -> Option<Effect> {
        crawlers.sort_by_cached_key(Subject::rank);
        let [before, after] = self.select(crawlers.first()?);
        let mut changes = self.changes(before, after, &witness::paths(before, after));
        let omitted = changes.len().saturating_sub(MAX_CHANGES_PER_EFFECT);
        changes.truncate(MAX_CHANGES_PER_EFFECT);
        (!changes.is_empty()).then_some(Effect { crawlers, changes, omitted })
    }

    fn breach(&self, guard: &Guard, recognizer: &Recognizer) -> Option<Breach> {
        let [before, after] = self.select(&guard.subject(recognizer));
        let paths = witness::paths_within(before, after, guard.pattern().as_bytes());
        let paths: Vec<_> = paths.into_iter().filter(|path| guard.covers(path)).collect();
        let change = self.changes(before, after, &paths).into_iter().next()?;
        Some(Breach::new(guard.clone(), change))
    }

    /// The paths with another verdict than before: the shortest of those that the same two rules decide about.
    fn changes(&self, before: Selection<'_>, after: Selection<'_>, paths: &[Vec<u8>]) -> Vec<Change> {
        let mut found: HashMap<_, (&[u8], Change)> = HashMap::new();
        for path in paths {
            let url;
            let request = match self.old.reading() {
                Reading::Reference => {
                    url = witness::as_url(path);
                    RequestPath::verbatim(&url)
                }
                _ => RequestPath::new(path),
            };
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
