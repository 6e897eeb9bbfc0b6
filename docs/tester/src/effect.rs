//! The effect of a change of the file on crawlers, in words.

use std::time::{Duration, Instant};

use robots_core::check::{Breadth, Change, Decider, Diff, DiffOptions, Effect, Subject};
use robots_core::internals::first_few;
use robots_core::rules::{Access, RobotsTxt};
use serde::Serialize;

/// Maximum time for one comparison. Real files take milliseconds.
const MAX_TIME: Duration = Duration::from_secs(1);

/// Maximum number of crawlers that a line lists by name.
const NAMES: usize = 6;

/// The effect of a change on all crawlers.
#[derive(Debug, Serialize)]
pub(super) struct ShownDiff {
    effects: Vec<ShownEffect>,
    delays: Vec<ShownDelay>,
    sitemaps_added: Vec<String>,
    sitemaps_removed: Vec<String>,
    is_cut: bool,
}

/// The changes that several crawlers share.
#[derive(Debug, Serialize)]
struct ShownEffect {
    crawlers: String,
    changes: Vec<ShownChange>,
    omitted: usize,
}

#[derive(Debug, Serialize)]
struct ShownChange {
    access: Access,
    /// The path, or a phrase for the whole site.
    what: String,
    /// The rules that decide in the earlier and in the new file, with their lines.
    before: String,
    after: String,
}

#[derive(Debug, Serialize)]
struct ShownDelay {
    crawlers: String,
    effect: String,
}

/// Compares two files for at most [`MAX_TIME`].
pub(super) fn compare(old: &RobotsTxt, new: &RobotsTxt) -> Diff {
    let start = Instant::now();
    Diff::of_while(old, new, &DiffOptions::new(), &|| start.elapsed() < MAX_TIME)
}

impl ShownDiff {
    pub(super) fn of(diff: &Diff) -> Self {
        let delays = diff.delays.iter();
        Self {
            effects: diff.effects.iter().map(ShownEffect::of).collect(),
            delays: delays
                .map(|delay| ShownDelay { crawlers: crawlers(&delay.crawlers), effect: delay.effect() })
                .collect(),
            sitemaps_added: diff.sitemaps_added.iter().map(|url| shown(url.as_bytes())).collect(),
            sitemaps_removed: diff.sitemaps_removed.iter().map(|url| shown(url.as_bytes())).collect(),
            is_cut: diff.is_cut,
        }
    }
}

impl ShownEffect {
    /// Leaves out the changes that another change includes. For example, a change that disallows the
    /// whole site includes changes that disallow parts of it.
    fn of(effect: &Effect) -> Self {
        let is_included = |change: &&Change| {
            let includes = |other: &Change| other.access == change.access && other.breadth != Breadth::Part;
            change.breadth == Breadth::Part && effect.changes.iter().any(includes)
        };
        let shown = effect.changes.iter().filter(|change| !is_included(change)).map(ShownChange::of);
        Self { crawlers: crawlers(&effect.crawlers), changes: shown.collect(), omitted: effect.omitted }
    }
}

impl ShownChange {
    fn of(change: &Change) -> Self {
        let what = match (change.breadth, change.access) {
            (Breadth::Site, _) => "the whole site".to_owned(),
            (Breadth::Rest, Access::Disallow) => "all that no other rule allows".to_owned(),
            (Breadth::Rest, Access::Allow) => "all that no other rule disallows".to_owned(),
            _ => shown(change.path.as_bytes()),
        };
        Self { access: change.access, what, before: rule(change.before.as_ref()), after: rule(change.after.as_ref()) }
    }
}

fn rule(decider: Option<&Decider>) -> String {
    let Some(Decider { line, access, pattern, .. }) = decider else { return "no rule".to_owned() };
    format!("line {line}, {}", rule_text(*access, pattern.as_bytes()))
}

/// Returns a rule as it is usually written.
pub(super) fn rule_text(access: Access, pattern: &[u8]) -> String {
    let directive = if access == Access::Allow { "Allow" } else { "Disallow" };
    format!("{directive}: {}", shown(pattern))
}

/// Returns bytes for display. Characters that do not print are escaped, because those for
/// bidirectional text could make one path look like another.
pub(super) fn shown(bytes: &[u8]) -> String {
    let mut text = String::new();
    for char in String::from_utf8_lossy(bytes).chars() {
        match char {
            '"' | '\'' | '\\' => text.push(char),
            _ => text.extend(char.escape_debug()),
        }
    }
    text
}

/// Lists crawlers: the first few by name, and the number of the others. The crawler without a name
/// is listed even if it is not one of the first.
fn crawlers(crawlers: &[Subject]) -> String {
    let (named, unnamed): (Vec<_>, Vec<_>) = crawlers.iter().partition(|crawler| crawler.name.is_some());
    let unnamed = unnamed.first().map(|_| "crawlers that are not named in any group".to_owned());
    let names = unnamed
        .into_iter()
        .chain(named.into_iter().filter_map(|crawler| Some(shown(crawler.name.as_ref()?.as_bytes()))));
    first_few(names.collect::<Vec<_>>().into_iter(), NAMES)
}
