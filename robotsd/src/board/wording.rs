//! What the page and the terminal say alike of a site.

use super::report::{NeverHit, SiteTraffic};
use crate::html::figures::{counted, grouped};

impl SiteTraffic {
    /// Requests a minute, with the share that is refused.
    pub(crate) fn rate(&self) -> String {
        let share = format!("{:.1} % refused", self.refused_share * 100.0);
        match self.requests_per_minute {
            rate if rate < 10.0 => format!("{rate:.1} a minute, {share}"),
            rate => format!("{} a minute, {share}", grouped(rate.round() as u64)),
        }
    }

    /// The 99th percentile of the decisions that were timed.
    pub(crate) fn decision_p99(&self) -> Option<String> {
        Some(match self.decision_p99_seconds? {
            seconds if seconds < 1e-6 => format!("{:.0} ns", seconds * 1e9),
            seconds if seconds < 1e-3 => format!("{:.1} µs", seconds * 1e6),
            // The last bound that is counted.
            _ => "1 ms or more".to_owned(),
        })
    }
}

impl NeverHit {
    /// How many lines, since when.
    pub(crate) fn sentence(&self) -> String {
        let all = counted(self.of as u64, "line");
        let certain =
            if self.is_certain { "" } else { ", as far as is known: some hits are counted together, or not here" };
        format!(
            "{} of {all} that disallow something in {} have disallowed no request since {}{certain}.",
            grouped(self.count as u64),
            self.version,
            self.since
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_said_as_people_read_them() {
        let traffic = |rate, p99| SiteTraffic {
            seconds: 60,
            requests_per_minute: rate,
            refused_share: 0.125,
            decision_p99_seconds: p99,
        };
        assert_eq!(traffic(0.5, None).rate(), "0.5 a minute, 12.5 % refused");
        assert_eq!(traffic(12_345.0, None).rate(), format!("{} a minute, 12.5 % refused", grouped(12_345)));
        for (seconds, want) in [
            (None, None),
            (Some(2.5e-7), Some("250 ns")),
            (Some(2.5e-6), Some("2.5 µs")),
            (Some(1e-3), Some("1 ms or more")),
        ] {
            assert_eq!(traffic(1.0, seconds).decision_p99().as_deref(), want);
        }
    }
}
