//! The requests of a log that are not of crawlers, in words.

use tower_robots::agent::Class;

use super::contents::ClassRow;
use crate::html::figures::grouped;

/// Requests of agents that are no crawlers, as `115 by browsers, 2 by HTTP libraries`; `None` where there are none.
pub(super) fn other_requests(rows: &[ClassRow]) -> Option<String> {
    let by = |row: &ClassRow| {
        let agents = match row.class {
            Class::Empty => "without a User-Agent",
            Class::Browser => "by browsers",
            Class::Headless => "by headless browsers",
            Class::Library => "by HTTP libraries",
            Class::App => "by apps",
            Class::Infrastructure => "by infrastructure",
            _ => "by other programs",
        };
        format!("{} {agents}", grouped(row.requests))
    };
    (!rows.is_empty()).then(|| rows.iter().map(by).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_that_are_no_crawlers_are_counted_by_what_they_are() {
        let row = |class, requests| ClassRow { class, requests, disallowed: 0 };
        let rows = [row(Class::Browser, 1150), row(Class::Library, 1)];
        assert_eq!(other_requests(&rows).as_deref(), Some("1,150 by browsers, 1 by HTTP libraries"));
        assert_eq!(other_requests(&[]), None);
    }
}
