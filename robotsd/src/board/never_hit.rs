//! The lines of the live version that have disallowed nothing.

use std::collections::HashSet;

use tower_robots::live::Content;
use tower_robots::rules::Access;

use super::day_rows::DayRows;
use super::moment::{Second, written};
use super::recorder::{self, cut};
use super::report::{LineBoard, NeverHit};
use super::row::LineHits;

/// Lines that are listed.
const MOST_LISTED: usize = 50;

/// Looks for the lines of a version among the hits of a time, which begins with `from` or when it went live.
pub(super) fn never_hit(content: &Content, rows: &DayRows, from: Second) -> NeverHit {
    let version = recorder::written(content.hash());
    let mut hit = HashSet::new();
    let mut is_certain = true;
    for (key, LineHits { version: of, line, .. }) in
        rows.rows.iter().chain(&rows.days).flat_map(|(key, row)| row.lines.iter().map(move |line| (key, line)))
    {
        if *line == 0 {
            is_certain &= key.begin < since_live(rows, &version, from);
        } else if *of == version {
            hit.insert(*line);
        }
    }
    let mut never = NeverHit {
        since: written(since_live(rows, &version, from)),
        version: version.clone(),
        is_certain,
        ..NeverHit::default()
    };
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
        let watch = |from, to, version: &str| Watch { from, to, version: Some(version.into()), process: 1 };
        let mut row = Row::default();
        row.hit(LineHits { version: version.clone(), line: 3, pattern: "/b".into(), hits: 2 });
        row.hit(LineHits { version: "another".into(), line: 2, pattern: "/a".into(), hits: 2 });
        let key = RowKey { begin: 3_600, crawler: "a".into(), identity: Standing::Claimed };
        let watches = vec![watch(10, 20, &version), watch(20, 30, "another"), watch(30, 40, &version)];
        let mut rows = DayRows { watches, rows: [(key.clone(), row)].into(), ..DayRows::default() };
        let never = never_hit(&content, &rows, 5);
        assert_eq!((never.of, never.count, never.lines.len(), never.is_certain), (62, 61, MOST_LISTED, true));
        assert_eq!((never.lines[0].line, &*never.lines[0].pattern), (2, "/a"));
        assert_eq!(never.since, written(30));
        // Hits that are counted together may be of any line.
        let rest = LineHits { version: String::new(), line: 0, pattern: String::new(), hits: 1 };
        rows.rows.get_mut(&key).unwrap().lines.push(rest);
        assert!(!never_hit(&content, &rows, 5).is_certain);
    }
}
