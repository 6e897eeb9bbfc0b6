//! What is followed as evidence: lists of addresses and key sets.

use std::time::Duration;

use super::verified_claims::EvidenceVersion;
use crate::identity::{KeySet, RangeList, check_media_type};
use crate::source::fetch::{FetchMode, Schedule};
use crate::source::follow::{Demand, Document, HOUR, MINUTE};

impl Document for RangeList {
    const NOUN: &'static str = "list";
    const GAP: Duration = HOUR;
    type Reading = EvidenceVersion;

    /// About daily, and not more than hourly (draft-illyes-webbotauth-jafar).
    fn schedule() -> Schedule {
        Schedule::new().every(24 * HOUR).between(HOUR, 24 * HOUR).retry(MINUTE, HOUR)
    }

    fn read(_: &EvidenceVersion, octets: &[u8]) -> Result<Self, String> {
        Self::parse(octets).map_err(|error| error.to_string())
    }

    fn check_media_type(media_type: &str) -> Result<(), String> {
        check_media_type(media_type).map_err(|error| error.to_string())
    }

    fn check_after(&self, before: &Self) -> Result<(), String> {
        Self::check_after(self, &before.set).map_err(|error| error.to_string())
    }

    fn renewed(version: &EvidenceVersion) {
        version.change();
    }
}

impl Document for KeySet {
    const NOUN: &'static str = "key directory";
    const MODE: FetchMode = FetchMode::Direct;
    const MOST: u64 = 64 * 1024;
    const DEMAND: Demand = Demand::OnRequest;
    const GAP: Duration = Duration::from_secs(5 * 60);
    type Reading = ();

    fn schedule() -> Schedule {
        Schedule::new().every(HOUR).between(5 * MINUTE, 24 * HOUR).retry(MINUTE / 2, 5 * MINUTE)
    }

    fn read((): &(), octets: &[u8]) -> Result<Self, String> {
        Self::parse(octets).map_err(|error| error.to_string())
    }

    fn check_media_type(_: &str) -> Result<(), String> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::header::CACHE_CONTROL;
    use http::{HeaderMap, HeaderValue};

    use super::*;
    use crate::source::fetch::Freshness;

    /// Until the next fetch, after an answer with this `Cache-Control`.
    fn interval<D: Document>(cache_control: &'static str) -> Duration {
        let mut headers = HeaderMap::new();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static(cache_control));
        D::schedule().interval(Freshness::of(&headers))
    }

    #[test]
    fn a_list_is_fetched_daily_and_not_more_than_hourly_and_keys_hourly() {
        let (minute, hour) = (Duration::from_secs(60), Duration::from_secs(3600));
        assert_eq!(interval::<RangeList>(""), 24 * hour);
        assert_eq!(interval::<RangeList>("max-age=1"), hour);
        assert_eq!(RangeList::GAP, hour);
        assert_eq!(RangeList::schedule().pause(99, None, u32::MAX), hour);
        assert_eq!(interval::<KeySet>(""), hour);
        assert_eq!(interval::<KeySet>("max-age=1"), 5 * minute);
        assert_eq!(KeySet::GAP, 5 * minute);
        assert_eq!(KeySet::schedule().pause(99, None, u32::MAX), 5 * minute);
    }
}
