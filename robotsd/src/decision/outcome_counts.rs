//! What was decided about the requests of a site on one worker, for the status.

use tower_robots::layer::{Event, Record};
use tower_robots::policy::{Action, Reason};
use tower_robots::rules::RequestPath;

use crate::counter::Counter;

/// What was done about a request that robots.txt disallows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DisallowedOutcome {
    Refused,
    Tagged,
    /// It went on, because the mode only observes or the grace has not ended.
    Observed,
    /// It went on, because of an exemption or an override.
    Passed,
}

/// Counts the requests of a site on one worker, which alone writes it; apart from other data in the cache.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct OutcomeCounts {
    requests: Counter,
    robots_txt: Counter,
    refused: Counter,
    tagged: Counter,
    observed: Counter,
    passed: Counter,
}

/// The sums of several [`OutcomeCounts`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OutcomeTotals {
    pub(crate) requests: u64,
    /// Those for `/robots.txt`, whatever its spelling.
    pub(crate) robots_txt: u64,
    pub(crate) refused: u64,
    pub(crate) tagged: u64,
    pub(crate) observed: u64,
    pub(crate) passed: u64,
}

impl DisallowedOutcome {
    pub(crate) fn of(record: &Record) -> Self {
        match (record.action(), record.reason()) {
            (Action::Refuse, _) => Self::Refused,
            (Action::Tag, _) => Self::Tagged,
            (Action::Pass, Reason::Observed | Reason::Grace) => Self::Observed,
            _ => Self::Passed,
        }
    }
}

impl OutcomeCounts {
    /// Counts a request for this target, with or without its query.
    pub(crate) fn request(&self, target: &[u8]) {
        self.requests.add_one();
        if is_robots_txt(target) {
            self.robots_txt.add_one();
        }
    }

    /// Counts what was done about a disallowed request, which is counted as a request already.
    pub(crate) fn disallowed(&self, event: &Event<'_>) {
        match DisallowedOutcome::of(event.record()) {
            DisallowedOutcome::Refused => &self.refused,
            DisallowedOutcome::Tagged => &self.tagged,
            DisallowedOutcome::Observed => &self.observed,
            DisallowedOutcome::Passed => &self.passed,
        }
        .add_one();
    }
}

impl OutcomeTotals {
    pub(crate) fn add(&mut self, counts: &OutcomeCounts) {
        self.requests += counts.requests.total();
        self.robots_txt += counts.robots_txt.total();
        self.refused += counts.refused.total();
        self.tagged += counts.tagged.total();
        self.observed += counts.observed.total();
        self.passed += counts.passed.total();
    }

    /// Requests that robots.txt does not disallow: those for itself aside. A request may be counted while they are read.
    pub(crate) fn allowed(&self) -> u64 {
        let others = [self.robots_txt, self.refused, self.tagged, self.observed, self.passed];
        self.requests.saturating_sub(others.iter().sum())
    }
}

/// Nearly every target is told by an octet; no other is read.
fn is_robots_txt(target: &[u8]) -> bool {
    match target {
        b"/robots.txt" => true,
        [b'/', b'r', b'o' | b'%', ..] | [b'/', b'%', ..] => RequestPath::new(target).is_robots_txt(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_for_robots_txt_is_one_in_every_spelling() {
        let escaped: String = "robots.txt".bytes().map(|octet| format!("%{octet:02X}")).collect();
        for (path, want) in [
            ("/robots.txt", true),
            ("/%72obots.txt", true),
            (&*format!("/{escaped}"), true),
            ("/robots.txt?a=/b", true),
            ("/robots.txt2", false),
            ("/robots%2Ftxt", false),
            ("/Robots.txt", false),
            ("/a/robots.txt", false),
            ("/", false),
            (&*"/%72".repeat(1000), false),
        ] {
            assert_eq!(is_robots_txt(path.as_bytes()), want, "{path}");
        }
    }

    #[test]
    fn what_is_allowed_is_the_rest() {
        let (one, two) = (OutcomeCounts::default(), OutcomeCounts::default());
        for counts in [&one, &two] {
            for path in ["/robots.txt", "/a", "/b"] {
                counts.request(path.as_bytes());
            }
            counts.refused.add_one();
        }
        let mut totals = OutcomeTotals::default();
        totals.add(&one);
        totals.add(&two);
        assert_eq!((totals.requests, totals.robots_txt, totals.refused, totals.allowed()), (6, 2, 2, 2));
    }
}
