//! Changes of usage preferences: `Content-Usage` and `Content-Signal` lines. Verdicts do not depend
//! on preferences, so a diff that contains only changes of preferences counts as empty.

use std::collections::{BTreeMap, HashMap};

use super::subject::{Subject, sorted};
use super::witness::shortest;
use crate::rules::{Directive, Group, RequestPath, Rule, RuleSet, Selection};

/// A change of usage preferences. If the preferences of many paths change, only one of these paths
/// is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct UsageChange {
    /// The affected crawlers, search engines first.
    pub crawlers: Vec<Subject>,
    /// The name of the changed lines: `Content-Usage` or `Content-Signal`.
    pub field: &'static str,
    /// A path whose preferences change. For `Content-Signal`, the path is `/`, because content
    /// signals apply to the whole site.
    pub path: String,
    /// The old preferences; `None` if there were none.
    pub before: Option<String>,
    /// The new preferences; `None` if there are none.
    pub after: Option<String>,
}

/// Maximum number of paths that are compared for one class of crawlers.
const MAX_PATHS: usize = 1000;

/// Returns the usage preferences that change for these classes of crawlers. If several paths have
/// the same old and new preferences, returns only the shortest of these paths.
pub(super) fn changes(rules: [&RuleSet; 2], classes: &[Vec<Subject>], goes_on: &dyn Fn() -> bool) -> Vec<UsageChange> {
    if !rules.iter().any(|rules| rules.states_usage()) {
        return Vec::new();
    }
    let mut found: HashMap<_, Vec<Subject>> = HashMap::new();
    for class in classes.iter().take_while(|_| goes_on()) {
        let Some(first) = class.first() else { continue };
        let selections = rules.map(|rules| first.select(rules));
        let signals = selections.map(content_signals);
        if signals[0] != signals[1] {
            found.entry(("Content-Signal", "/".to_owned(), signals)).or_default().extend_from_slice(class);
        }
        for (pair, path) in changes_for(selections) {
            found.entry(("Content-Usage", path, pair)).or_default().extend_from_slice(class);
        }
    }
    let mut changes = Vec::new();
    for ((field, path, [before, after]), crawlers) in found {
        changes.push(UsageChange { crawlers: sorted(crawlers), field, path, before, after });
    }
    changes
        .sort_by_cached_key(|change| (change.crawlers.first().map(Subject::rank), change.field, change.path.clone()));
    changes
}

fn content_signals(selection: Selection<'_>) -> Option<String> {
    let values: Vec<_> = selection.usage_values(Directive::ContentSignal).map(String::from_utf8_lossy).collect();
    (!values.is_empty()).then(|| values.join(", "))
}

fn changes_for(selections: [Selection<'_>; 2]) -> BTreeMap<[Option<String>; 2], String> {
    let patterns = selections.into_iter().flat_map(|selection| {
        let rules = selection.groups().flat_map(Group::rules).map(Rule::pattern);
        selection.usage_paths().chain(rules.filter(|pattern| !pattern.is_empty()))
    });
    let mut paths: Vec<_> = patterns.take(MAX_PATHS).map(shortest).chain([b"/".to_vec()]).collect();
    paths.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
    paths.dedup();
    let mut found = BTreeMap::new();
    for path in paths {
        let request = RequestPath::new(&path);
        let usage = |selection: Selection<'_>| Some(selection.usage(&request)?.preferences.to_string());
        let pair = selections.map(usage);
        if pair[0] != pair[1] {
            found.entry(pair).or_insert_with(|| String::from_utf8_lossy(&path).into_owned());
        }
    }
    found
}
