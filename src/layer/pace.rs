//! Whether an allowed request comes sooner than the delay of its crawler's groups lets it.
//!
//! The key of the bucket comes from the identity: a verified crawler has one of its own, so that nobody uses it up by
//! borrowing the name; see [`rate`](crate::rate).

use std::net::IpAddr;

use http::HeaderName;

use super::original::Original;
use crate::agent::{Agent, Identity};
use crate::live::Snapshot;
use crate::policy::{Decision, is_asset};
use crate::rate::{Quota, RateKey, RateSender};

/// Fetch Metadata Request Headers, section 2.1.
const SEC_FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// The decision about a request that may come too soon. One that has no pace costs nothing here.
pub(super) fn kept<'r>(
    decision: Decision<'r>,
    snapshot: &Snapshot,
    request: &Original<'_>,
    agents: &[Agent],
    identity: Option<Identity>,
    address: impl FnOnce() -> Option<IpAddr>,
) -> Decision<'r> {
    let Some(pace) = decision.pace() else { return decision };
    let Some(token) = agents.get(decision.agent()).and_then(|agent| agent.tokens().first()) else { return decision };
    if is_part_of_page(request) {
        return decision;
    }
    let sender = match identity {
        Some(Identity::Verified(_)) => RateSender::Verified,
        Some(Identity::Refuted(_)) => RateSender::Refuted,
        _ => RateSender::Claimed(address()),
    };
    let quota = Quota::new(pace.delay().enforced_interval(), snapshot.policy().rate_burst());
    match snapshot.take(&RateKey::new(token, sender), quota) {
        Ok(()) => decision,
        Err(too_soon) => decision.too_soon(too_soon.wait()),
    }
}

/// What a crawler that renders a page fetches for it, all at once.
fn is_part_of_page(request: &Original<'_>) -> bool {
    let is_part = |dest: &[u8]| [&b"style"[..], b"script", b"image", b"font"].contains(&dest);
    is_asset(request.target()) || request.headers().get(SEC_FETCH_DEST).is_some_and(|dest| is_part(dest.as_bytes()))
}
