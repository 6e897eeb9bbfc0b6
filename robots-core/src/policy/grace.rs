//! The grace period of new rules. The rules are not enforced until the end of this period.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::rules::{
    Access, Fallback, Group, MatchBudget, Name, PathPattern, ProductToken, RequestPath, Rule, RuleSet, Selection,
};

/// The grace period of the present version of the rules. This type also stores the earlier
/// versions, and the time when each version went live.
///
/// A disallowed request is refused only if a version that disallows it went live at least one grace
/// period ago. Until then, the request is only observed. So a grace period begins if a `Disallow`
/// rule is new, if an `Allow` rule that outweighed a `Disallow` rule is removed, or if a crawler is
/// added to a group. No new grace period begins if a rule is only moved, or if a removed rule is
/// added again.
pub struct Grace {
    length: Duration,
    /// Time when the present version went live.
    since: SystemTime,
    earlier: Vec<(SystemTime, Arc<RuleSet>)>,
}

impl Grace {
    /// Creates a grace period of this length for the present version of the rules, which went live
    /// at `since`.
    pub const fn new(length: Duration, since: SystemTime) -> Self {
        Self { length, since, earlier: Vec::new() }
    }

    /// Adds an earlier version, which went live at `since`.
    pub fn add(&mut self, since: SystemTime, rules: Arc<RuleSet>) {
        if since < self.since {
            self.earlier.push((since, rules));
        }
    }

    /// Returns the time when the grace period of the present version ends.
    pub fn end(&self) -> SystemTime {
        self.end_after(self.since)
    }

    /// Counts the `Disallow` rules of the present version that are in a grace period for at least
    /// one crawler in the rule's group. Tests each rule with one path that its pattern matches. All
    /// tests together use at most the work budget of one request (`MatchBudget`).
    pub fn count_rules(&self, now: SystemTime, rules: &RuleSet) -> usize {
        let mut work = MatchBudget::new();
        let disallowing = rules.document().groups().flat_map(Group::rules);
        let disallowing = disallowing.filter(|rule| rule.access() == Access::Disallow && !rule.pattern().is_empty());
        disallowing.filter(|rule| self.covers_rule(now, rules, *rule, &mut work)).count()
    }

    fn covers_rule(&self, now: SystemTime, rules: &RuleSet, rule: Rule<'_>, work: &mut MatchBudget) -> bool {
        let Some(path) = PathPattern::new(rule.pattern(), rules.reading()).with_wildcards_as(b'~').next() else {
            return false;
        };
        let path = if path.starts_with(b"/") { path } else { [b"/", path.as_slice()].concat() };
        let path = RequestPath::verbatim(&path);
        rule.group().names().any(|name| {
            let verdict = select(rules, name).verdict_within(&path, work);
            verdict.rule().is_some_and(|deciding| deciding.range() == rule.range())
                && self.covers(now, &path, |rules| select(rules, name), work)
        })
    }

    /// Reports whether a disallowed request is in its grace period. `select` returns the groups
    /// that the agent of the request obeys in a version of the rules.
    pub(super) fn covers<'g>(
        &'g self,
        now: SystemTime,
        path: &RequestPath<'_>,
        select: impl Fn(&'g RuleSet) -> Selection<'g>,
        work: &mut MatchBudget,
    ) -> bool {
        if self.end() <= now {
            return false;
        }
        let is_due = |since: SystemTime| self.end_after(since) <= now;
        let mut disallowed_by =
            |rules: &'g RuleSet| select(rules).verdict_within(path, work).access() == Access::Disallow;
        !self.earlier.iter().any(|(since, rules)| is_due(*since) && disallowed_by(rules))
    }

    /// Returns the crawl delay that may be enforced at `now`; at most `interval`, the delay in the
    /// present version of the rules.
    ///
    /// Until the present version's grace period ends, returns the longest delay in the earlier
    /// versions whose grace period has ended. `None` if these earlier versions have no delay for
    /// the agent. `select` is the same function as in [`covers`](Self::covers).
    pub(super) fn due_interval<'g>(
        &'g self,
        now: SystemTime,
        interval: Duration,
        select: impl Fn(&'g RuleSet) -> Selection<'g>,
    ) -> Option<Duration> {
        if self.end() <= now {
            return Some(interval);
        }
        let due = self.earlier.iter().filter(|(since, _)| self.end_after(*since) <= now);
        let delays = due.filter_map(|(_, rules)| select(rules).crawl_delay());
        delays.map(|delay| delay.enforced_interval().min(interval)).max()
    }

    fn end_after(&self, since: SystemTime) -> SystemTime {
        since.checked_add(self.length).unwrap_or(since + Duration::from_secs(u32::MAX.into()))
    }
}

/// Returns the groups that the crawler `name` obeys. The name `*` represents a crawler that no
/// group names.
fn select<'r>(rules: &'r RuleSet, name: Name<'_>) -> Selection<'r> {
    rules.select(ProductToken::from_name(name.value()).as_slice(), Fallback::Star)
}

crate::debug_as!(|it| Grace { length: it.length, since: it.since, earlier: it.earlier.len() });
