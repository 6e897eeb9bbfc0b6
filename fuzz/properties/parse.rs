//! Any bytes parse, and every position that is reported lies within the file.

use tower_robots::rules::{Reading, RobotsTxt};

pub(crate) fn holds(file: &[u8]) {
    let robots = RobotsTxt::parse(file);
    let lines = robots.lines().count();
    let mut end = 0;
    for line in robots.lines() {
        assert!(line.range.start >= end && line.range.end <= file.len());
        assert!(line.content().start >= line.range.start && line.content().end <= line.range.end);
        end = line.range.end;
    }
    for group in robots.groups() {
        assert!(group.names().len() > 0);
        assert!(group.rules().all(|rule| rule.group().line() == group.line() && rule.line() <= lines));
    }
    for extension in robots.extensions() {
        let _ = extension.meaning();
        assert!(extension.line <= lines && extension.field.value_range.end <= file.len());
    }
    assert!(robots.notes().is_sorted_by_key(|note| note.line));
    for reading in [Reading::Standard, Reading::Reference, Reading::Legacy] {
        let rules = robots.compile(reading);
        assert!(rules.costly().iter().all(|costly| costly.line <= lines));
    }
}
