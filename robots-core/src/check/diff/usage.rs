//! Changes of usage preferences. Verdicts do not depend on preferences, so a diff is treated as
//! empty if only preferences change.

use std::collections::{BTreeMap, HashMap};

use super::subject::{Subject, sorted};
use super::witness::shortest;
use crate::rules::{Group, RequestPath, Rule, RuleSet, Selection};

/// A change of the usage preferences for a path. The path represents all paths that the same lines
/// apply to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct UsageChange {
    /// The affected crawlers, search engines first.
    pub crawlers: Vec<Subject>,
    /// A path whose preferences change.
    pub path: String,
    /// The old preferences, as in a `Content-Usage` field; `None` if there were none.
    pub before: Option<String>,
    /// The new preferences, as in a `Content-Usage` field; `None` if there are none.
    pub after: Option<String>,
}

/// Maximum number of paths that are compared for one class of crawlers.
const MAX_PATHS: usize = 1000;

/// Returns the usage preferences that change for these classes of crawlers. All crawlers of a class
/// obey the same groups. For each pair of old and new preferences, returns only the shortest path.
pub(super) fn changes(rules: [&RuleSet; 2], classes: &[Vec<Subject>], goes_on: &dyn Fn() -> bool) -> Vec<UsageChange> {
    if !rules.iter().any(|rules| rules.has_usage()) {
        return Vec::new();
    }
    let mut found: HashMap<(String, [Option<String>; 2]), Vec<Subject>> = HashMap::new();
    for class in classes.iter().take_while(|_| goes_on()) {
        let Some(first) = class.first() else { continue };
        for (pair, path) in changes_for(rules.map(|rules| first.select(rules))) {
            found.entry((path, pair)).or_default().extend_from_slice(class);
        }
    }
    let mut changes: Vec<_> = found
        .into_iter()
        .map(|((path, [before, after]), crawlers)| UsageChange { crawlers: sorted(crawlers), path, before, after })
        .collect();
    changes.sort_by_cached_key(|change| (change.crawlers.first().map(Subject::rank), change.path.clone()));
    changes
}

/// Returns the changes for one class: the shortest path for each pair of old and new preferences.
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
