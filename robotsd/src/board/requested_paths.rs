//! The paths that verified search engines request most. Before a new version of robots.txt goes
//! live, the site's gate checks whether the new version disallows any of these paths, or any path
//! in sitemaps.
//!
//! The counts use the Space-Saving algorithm of Metwally, Agrawal and El Abbadi (2005). The true
//! number of requests for a path is at least `count - error`. Every path that received more than 1
//! / [`MAX_PATHS`] of all requests is in the table, even if very many other paths are requested.
//! Queries are not stored.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Maximum number of paths per site and day. A limit of 100 would be enough to find all paths with
/// more than 1 % of the requests.
const MAX_PATHS: usize = 256;

/// Maximum length of a stored path, in bytes. A request for a longer path increases only the total.
const MAX_PATH_LENGTH: usize = 512;

/// A path is one of the most requested paths if its share of the requests is more than 1 /
/// `SHARE_DIVISOR`.
const SHARE_DIVISOR: u64 = 100;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RequestedPaths {
    /// Number of requests for all paths.
    total: u64,
    paths: BTreeMap<String, PathCount>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct PathCount {
    count: u64,
    /// Upper bound on the number of requests in `count` that were for other paths.
    #[serde(default, skip_serializing_if = "super::row::is_zero")]
    error: u64,
}

impl RequestedPaths {
    pub(super) fn count(&mut self, target: &[u8]) {
        let end = target.iter().position(|byte| matches!(byte, b'?' | b'#')).unwrap_or(target.len());
        self.total += 1;
        match std::str::from_utf8(&target[..end]) {
            Ok(path) if path.starts_with('/') && path.len() <= MAX_PATH_LENGTH => {
                self.add(path, PathCount { count: 1, error: 0 })
            }
            _ => {}
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.total += other.total;
        // A path that is added early gets a smaller error, so the most requested paths are added
        // first.
        let mut others: Vec<_> = other.paths.iter().collect();
        others.sort_by_key(|(_, path)| std::cmp::Reverse(path.count));
        others.into_iter().for_each(|(path, count)| self.add(path, *count));
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// Returns the paths that certainly received more than 1 % of the requests.
    pub(crate) fn most_requested(&self) -> impl Iterator<Item = &str> {
        let is_much =
            |path: &PathCount| path.count.saturating_sub(path.error).saturating_mul(SHARE_DIVISOR) > self.total;
        self.paths.iter().filter(move |(_, count)| is_much(count)).map(|(path, _)| &**path)
    }

    /// Reports whether the counts are valid. Invalid counts show that the file is damaged.
    pub(super) fn is_valid(&self) -> bool {
        let is_valid = |(path, of): (&String, &PathCount)| {
            path.starts_with('/') && path.len() <= MAX_PATH_LENGTH && of.error <= of.count
        };
        self.paths.len() <= MAX_PATHS && self.paths.iter().all(is_valid)
    }

    fn add(&mut self, path: &str, mut added: PathCount) {
        if let Some(held) = self.paths.get_mut(path) {
            held.count += added.count;
            held.error += added.error;
            return;
        }
        // The new path may have been requested as often as the path that it replaces, so the count
        // of the replaced path becomes the error of the new path.
        if self.paths.len() >= MAX_PATHS
            && let Some((least, count)) = self.paths.iter().min_by_key(|(_, held)| held.count)
        {
            let (least, count) = (least.clone(), count.count);
            self.paths.remove(&least);
            added = PathCount { count: added.count + count, error: added.error + count };
        }
        self.paths.insert(path.to_owned(), added);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn much(paths: &RequestedPaths) -> Vec<&str> {
        paths.most_requested().collect()
    }

    #[test]
    fn paths_with_at_least_one_percent_of_requests_are_listed_without_queries() {
        let mut paths = RequestedPaths::default();
        for number in 0..980 {
            paths.count(format!("/page/{number}?token=secret{number}").as_bytes());
        }
        (0..11).for_each(|number| paths.count(format!("/news/?page={number}").as_bytes()));
        (0..9).for_each(|_| paths.count(b"/about"));
        assert_eq!(much(&paths), ["/news/"]);
        let written = serde_json::to_string(&paths).unwrap();
        assert!(!written.contains("secret") && !written.contains('?'), "{written}");
        assert_eq!(serde_json::from_str::<RequestedPaths>(&written).unwrap(), paths);
    }

    #[test]
    fn frequent_paths_are_found_among_many_others_in_bounded_memory() {
        // As in production, the table merges the counts of workers.
        let mut day = RequestedPaths::default();
        for second in 0..400 {
            let mut worker = RequestedPaths::default();
            for number in 0..48 {
                worker.count(format!("/product/{second}/{number}").as_bytes());
            }
            worker.count(b"/news/");
            worker.count(b"/");
            day.merge(&worker);
        }
        assert_eq!(much(&day), ["/", "/news/"], "2 % each");
        assert_eq!((day.paths.len(), day.total), (MAX_PATHS, 20_000));
        assert!(day.is_valid());
    }

    #[test]
    fn an_invalid_or_too_long_path_counts_only_towards_the_total() {
        let mut paths = RequestedPaths::default();
        for target in [&b"*"[..], b"/\xff", format!("/{}", "x".repeat(MAX_PATH_LENGTH)).as_bytes()] {
            paths.count(target);
        }
        assert_eq!((much(&paths), paths.total), (vec![], 3));
    }
}
