//! The buckets of rate-limited requests in a store that several processes share, and the requests
//! that are never limited.

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
    /// inline text. It separates the buckets of different sites in the store. Every inline
    /// robots.txt without a name has the origin `inline`, so give each a name if there are several
    /// ([`LiveBuilder::named`](crate::source::LiveBuilder::named)).
    pub origin: String,
    /// The key of the bucket among the buckets of this robots.txt. It is the same in every process,
    /// and consists of:
    ///
    /// - the crawler's product token in lower case, or `*` for all names that clients may have
    ///   invented;
    /// - the result of checking the sender;
    /// - the client's network, if it only claims to be the crawler.
    pub key: String,
    /// Time per request at a steady rate.
    pub interval: Duration,
    /// Number of requests that pass at once after a pause.
    pub burst: NonZeroU32,
    /// The action for a request that exceeds its crawl delay. If such requests are only recorded,
    /// the request does not have to wait.
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

/// A field of "Fetch Metadata Request Headers", section 2.1.
const SEC_FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// Reports whether the request is for a resource that is part of a page. Such requests have no rate
/// limit, because crawlers that render pages fetch all parts at once.
pub(super) fn is_part_of_page(request: &OriginalRequest<'_>) -> bool {
    let is_part = |dest: &[u8]| [&b"style"[..], b"script", b"image", b"font"].contains(&dest);
    // The names of all fields are compared first, because few crawlers send this field, and the
    // comparison costs less than hashing the name.
    let has_dest = || request.headers.keys().any(|name| *name == SEC_FETCH_DEST);
    let dest = || request.headers.get(SEC_FETCH_DEST);
    RateLimit::is_for_asset(request.target()) || has_dest() && dest().is_some_and(|dest| is_part(dest.as_bytes()))
}
