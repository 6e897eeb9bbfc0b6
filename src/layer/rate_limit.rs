//! Rate limit buckets in a store that several processes share.

use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;
use std::time::Duration;

use http::HeaderName;

use super::original::OriginalRequest;
use crate::policy::{RateLimit, RateMode};
use crate::rate::{Quota, RateKey, RateSender};

/// The rate limit bucket of a request, for a store that several processes share. See
/// [`Judgement::rate_limited`](crate::parts::Judgement::rate_limited).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RateLimitedRequest {
    /// The origin of the robots.txt that sets the crawl delay: a path, a URL, or the name of an
    /// inline robots.txt. Sites with different origins have different buckets in the store. An
    /// inline robots.txt without a name has the origin `inline`. If several sites have an inline
    /// robots.txt, name each of them ([`LiveBuilder::named`](crate::source::LiveBuilder::named)).
    pub origin: String,
    /// The key of the bucket, unique among the buckets of this robots.txt and the same in every
    /// process. The key consists of:
    ///
    /// - the crawler's product token in lower case, or `*` if neither the registry nor the
    ///   robots.txt contains the crawler's name (a client may have invented such a name);
    /// - the result of checking who sent the request;
    /// - the client's network, if its claim to be the crawler is neither verified nor refuted.
    pub key: String,
    /// Minimum average time between two requests.
    pub interval: Duration,
    /// Maximum number of requests that may follow each other immediately after a pause.
    pub burst: NonZeroU32,
    /// Whether a request that comes before the crawl delay has passed is refused or only recorded.
    pub mode: RateMode,
}

impl RateLimitedRequest {
    pub(super) fn new(origin: &str, key: &RateKey<'_>, quota: Quota, mode: RateMode) -> Self {
        let token = key.token.map_or("*".into(), ToString::to_string);
        let key = match key.sender {
            RateSender::Verified => format!("{token} verified"),
            RateSender::Refuted => format!("{token} refuted"),
            RateSender::Claimed(None) => format!("{token} claimed"),
            RateSender::Claimed(Some(address)) => match address.to_canonical() {
                IpAddr::V4(address) => format!("{token} claimed {address}"),
                IpAddr::V6(address) => {
                    format!("{token} claimed {}/64", Ipv6Addr::from_bits(address.to_bits() >> 64 << 64))
                }
            },
        };
        Self { origin: origin.to_owned(), key, interval: quota.interval(), burst: quota.burst(), mode }
    }
}

/// The field that shows what a resource is used for ("Fetch Metadata Request Headers", section
/// 2.1).
const SEC_FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// Reports whether the request is for a resource that is part of a page, such as an image. Requests
/// for such resources have no rate limit, because crawlers that render pages fetch all resources of
/// a page at once.
pub(super) fn is_part_of_page(request: &OriginalRequest<'_>) -> bool {
    let is_part = |dest: &[u8]| [&b"style"[..], b"script", b"image", b"font"].contains(&dest);
    // Few crawlers send `Sec-Fetch-Dest`. Comparing each field name with this name takes less time
    // than a hash lookup.
    let has_dest = || request.headers.keys().any(|name| *name == SEC_FETCH_DEST);
    let dest = || request.headers.get(SEC_FETCH_DEST);
    RateLimit::is_for_asset(request.target()) || has_dest() && dest().is_some_and(|dest| is_part(dest.as_bytes()))
}
