//! The lines of the live version that have disallowed nothing.

use std::collections::HashSet;

use tower_robots::live::Content;
use tower_robots::rules::Access;

use super::day_rows::DayRows;
use super::moment::{DAY, HOUR, Second, written};
use super::recorder::{self, cut};
use super::report::{LineBoard, NeverHit};
use super::row::LineHits;
use super::watch::gaps;

/// Lines that are listed.
const MOST_LISTED: usize = 50;

/// Looks for the lines of a version among the hits of a time, which begins with `from` or when it went live. With several replicas
/// the others may have hits of their own.
pub(super) fn never_hit(content: &Content, rows: &DayRows, from: Second, replicas: usize) -> NeverHit {
    let version = recorder::written(content.hash());
    let mut hit = HashSet::new();
    let since = since_live(rows, &version, from);
    // What is counted at this moment has no watch yet.
    let until = rows.watches.iter().map(|watch| watch.to).max().unwrap_or(Second::MAX);
    let mut is_certain =
        replicas == 1 && !gaps(&rows.watches, &rows.lost).iter().any(|gap| gap.to > since && gap.from < until);
    let hours = rows.rows.iter().map(|(key, row)| (key.begin + HOUR, row));
    let all = hours.chain(rows.days.iter().map(|(key, row)| (key.begin + DAY, row)));
    for (end, LineHits { version: of, line, .. }) in
        all.flat_map(|(end, row)| row.lines.iter().map(move |line| (end, line)))
    {
        if *line == 0 {
            // Even where the version went live in the middle of that time.
            is_certain &= end <= since;
        } else if *of == version {
            hit.insert(*line);
        }
    }
    let mut never = NeverHit { since: written(since), version: version.clone(), is_certain, ..NeverHit::default() };
    let rules = content.rules().document().groups().flat_map(|group| group.rules());
    for rule in rules.filter(|rule| rule.access() == Access::Disallow && !rule.pattern().is_empty()) {
        never.of += 1;
        if hit.contains(&rule.line()) {
            continue;
        }
        never.count += 1;
        if never.lines.len() < MOST_LISTED {
            never.lines.push(LineBoard {
                version: version.clone(),
                line: rule.line(),
                pattern: cut(&String::from_utf8_lossy(rule.pattern())).to_owned(),
                ..LineBoard::default()
            });
        }
    }
    never
}

/// When a version went live for the last time, as far as that was watched.
fn since_live(rows: &DayRows, version: &str, from: Second) -> Second {
    let is_other = |other: &Option<String>| other.as_deref().is_some_and(|other| other != version);
    let replaced = rows.watches.iter().filter(|watch| is_other(&watch.version)).map(|watch| watch.to).max();
    let first = rows.watches.iter().filter(|watch| watch.version.as_deref() == Some(version));
    let first = first.map(|watch| watch.from).filter(|from| replaced.is_none_or(|replaced| *from >= replaced)).min();
    first.or(replaced).unwrap_or(from).max(from)
}

#[cfg(test)]
mod tests {
    use tower_robots::live::LiveRobots;

    use super::super::row::{Row, RowKey, Standing};
    use super::super::watch::Watch;
    use super::*;

    #[test]
    fn lines_without_hits_since_the_version_went_live_are_listed() {
        let mut text = "User-agent: *\nDisallow: /a\nDisallow: /b\nAllow: /c\nDisallow:\n".to_owned();
        (0..60).for_each(|number| text += &format!("Disallow: /{number}\n"));
        let live = LiveRobots::inline(text).open().unwrap();
        let content = live.with(|snapshot| snapshot.content().cloned()).unwrap();
        let version = recorder::written(content.hash());
        let watch =
            |from, to, version: &str| Watch { from, to, version: Some(version.into()), process: 1, live_since: None };
        let mut row = Row::default();
        row.hit(&LineHits { version: version.clone(), line: 3, pattern: "/b".into(), hits: 2 });
        row.hit(&LineHits { version: "another".into(), line: 2, pattern: "/a".into(), hits: 2 });
        let key = RowKey { begin: 3_600, crawler: "a".into(), identity: Standing::Claimed };
        let watches = vec![watch(10, 20, &version), watch(20, 30, "another"), watch(30, 40, &version)];
        let mut rows = DayRows { watches, rows: [(key.clone(), row)].into(), ..DayRows::default() };
        let never = never_hit(&content, &rows, 5, 1);
        assert_eq!((never.of, never.count, never.lines.len(), never.is_certain), (62, 61, MOST_LISTED, true));
        assert_eq!((never.lines[0].line, &*never.lines[0].pattern), (2, "/a"));
        assert_eq!(never.since, written(30));
        // Hits that are counted together may be of any line.
        let rest = LineHits { version: String::new(), line: 0, pattern: String::new(), hits: 1 };
        rows.rows.get_mut(&key).unwrap().lines.push(rest);
        assert!(!never_hit(&content, &rows, 5, 1).is_certain);
        // Those of an hour before it went live are not its own; those of the hour in which it did may be.
        for (begin, is_certain) in [(7_200, true), (7_199, false), (3_601, false)] {
            rows.watches = vec![watch(10, begin, "another"), watch(begin, 9_000, &version)];
            assert_eq!(never_hit(&content, &rows, 5, 1).is_certain, is_certain, "{begin}");
        }
    }

    /// Hits that are missing, or those of another replica, may be of any line.
    #[test]
    fn nothing_is_certain_of_a_time_that_was_not_watched() {
        let live = LiveRobots::inline("User-agent: *\nDisallow: /a\n").open().unwrap();
        let content = live.with(|snapshot| snapshot.content().cloned()).unwrap();
        let version = recorder::written(content.hash());
        let watch = |from, to| Watch { from, to, version: Some(version.clone()), process: 1, live_since: None };
        let lost = |from, to| vec![super::super::watch::Lost { from, to }];
        for (watches, lost, replicas, is_certain) in [
            (vec![watch(10, 40)], vec![], 1, true),
            (vec![watch(10, 40)], vec![], 2, false),
            (vec![watch(10, 20), watch(30, 40)], vec![], 1, false),
            (vec![watch(10, 40)], lost(20, 30), 1, false),
            (vec![watch(10, 40)], lost(1, 5), 1, true),
        ] {
            let rows = DayRows { watches, lost, ..DayRows::default() };
            assert_eq!(never_hit(&content, &rows, 5, replicas).is_certain, is_certain, "{rows:?}");
        }
    }
}
