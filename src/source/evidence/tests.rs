//! Tests all kinds of evidence in one process, with real sockets, simulated servers and a simulated
//! clock.

mod broken_networks;
mod certificate;
mod closing;
mod directories;
mod lists;
mod names;
pub(crate) mod played_dns;
pub(crate) mod played_http;
pub(crate) mod played_signer;
mod registries;
mod restarts;
mod signatures;

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use super::*;
use crate::agent::{Category, Crawler, Registry};
use crate::identity::{ClaimEvidence, MethodOutcome, PublicAddress};
use crate::live::{Mutex, TestClock};

/// Time between two DNS queries, for tests that do not depend on this time.
pub(crate) const PACE: Duration = Duration::from_millis(1);

/// Time limit for responses, for tests without timeouts.
pub(crate) const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(100);

const HOUR: Duration = Duration::from_secs(60 * 60);

fn registry(change: impl FnOnce(Crawler) -> Crawler) -> Arc<Registry> {
    let row = change(Crawler { operator: "Play".into(), ..Crawler::new("Playbot", Category::Search) });
    Arc::new(only(row))
}

/// Returns a registry with only this crawler, so that no other crawler's server is queried.
pub(crate) fn only(row: Crawler) -> Registry {
    let builtin = Registry::builtin();
    let removed = builtin.crawlers().map(|crawler| crate::agent::RegistryRow::Remove(crawler.name.clone()));
    builtin.extended_with(removed.chain([row.into()])).expect("a registry")
}

fn playbot(registry: &Registry) -> &Crawler {
    registry.crawler("Playbot").expect("the row")
}

fn public(address: &str) -> PublicAddress {
    PublicAddress::of(Some(address.parse().expect(address)), |_| false).expect("a public address")
}

/// Calls `look` repeatedly until it returns a value.
fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "{what} did not come");
        std::thread::sleep(Duration::from_millis(2));
    }
}
