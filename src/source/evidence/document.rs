//! What is fetched as evidence: lists of addresses and key sets.

use std::time::Duration;

use super::verified_claims::EvidenceVersion;
use crate::identity::{KeySet, RangeList, check_media_type};
use crate::source::fetch::{FetchMode, Schedule};

/// A document that is followed.
pub(super) trait Document: Sized + Send + Sync + 'static {
    /// How redirects are followed.
    const MODE: FetchMode;
    /// The largest that is read, in octets.
    const MOST: u64;
    /// When it is fetched.
    const DEMAND: Demand;
    /// A request that misses something in it has it fetched again, but not sooner than this after the last time.
    const GAP: Duration;
    /// What reading one needs besides its octets.
    type Context: Send + Sync + 'static;

    /// How long it is used, and how failures are tried again.
    fn schedule() -> Schedule;

    /// Reads a new one, which may have to resemble the one that was fetched before.
    fn read(
        context: &Self::Context,
        octets: &[u8],
        content_type: Option<&str>,
        before: Option<&Self>,
    ) -> Result<Self, String>;

    /// Reads one that an earlier process saved.
    fn restore(context: &Self::Context, octets: &[u8]) -> Result<Self, String> {
        Self::read(context, octets, None, None)
    }

    /// Another one is at hand than before.
    fn replaced(_context: &Self::Context) {}

    /// An answer was taken, and saved where it is new: what is at hand now, and why it is not what was fetched.
    fn concluded(_context: &Self::Context, _held: Option<&Self>, _trouble: Option<&str>) {}
}

/// What a document is fetched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Demand {
    /// It is kept up to date from the start.
    Always,
    /// It is fetched once a request needs it.
    OnRequest,
}

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(60 * 60);

impl Document for RangeList {
    const MODE: FetchMode = FetchMode::Site;
    const MOST: u64 = 1 << 20;
    const DEMAND: Demand = Demand::Always;
    const GAP: Duration = HOUR;
    type Context = EvidenceVersion;

    /// About daily, and not more than hourly (draft-illyes-webbotauth-jafar).
    fn schedule() -> Schedule {
        Schedule::new().every(24 * HOUR).between(HOUR, 24 * HOUR).retry(MINUTE, HOUR)
    }

    fn read(
        _: &EvidenceVersion,
        octets: &[u8],
        content_type: Option<&str>,
        before: Option<&Self>,
    ) -> Result<Self, String> {
        check_media_type(content_type.unwrap_or_default()).map_err(|error| error.to_string())?;
        let list = Self::parse(octets).map_err(|error| error.to_string())?;
        if let Some(before) = before {
            list.check_after(before.set()).map_err(|error| error.to_string())?;
        }
        Ok(list)
    }

    fn replaced(version: &EvidenceVersion) {
        version.change();
    }
}

impl Document for KeySet {
    const MODE: FetchMode = FetchMode::Direct;
    const MOST: u64 = 64 * 1024;
    const DEMAND: Demand = Demand::OnRequest;
    const GAP: Duration = Duration::from_secs(5 * 60);
    type Context = ();

    fn schedule() -> Schedule {
        Schedule::new().every(HOUR).between(5 * MINUTE, 24 * HOUR).retry(MINUTE / 2, 5 * MINUTE)
    }

    fn read(_: &(), octets: &[u8], _content_type: Option<&str>, _before: Option<&Self>) -> Result<Self, String> {
        Self::parse(octets).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
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
