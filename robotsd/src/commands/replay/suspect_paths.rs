//! Whether the log holds the addresses of clients: a log that was written behind a proxy must not make an impostor of every
//! crawler.
//!
//! The failed claims of a crawler are suspect
//!
//! 1. where more than a handful of addresses fail, and nothing of the crawler verifies within a day of them;
//! 2. where no crawler at all verifies, and an address that fails claims to be crawlers of several operators, as a proxy
//!    does.
//!
//! Then they count as claimed.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

use super::rows::ReplayRow;

/// So many addresses that fail say nothing about the path.
const HANDFUL: usize = 5;

/// How far a crawler that verifies may be from claims that fail, to show that its own address comes through. In seconds.
const DAY: i64 = 24 * 60 * 60;

/// Which of these rows have failed claims that say nothing.
pub(super) fn find<'r>(rows: impl Iterator<Item = &'r ReplayRow> + Clone) -> Vec<String> {
    let is_any_verified = rows.clone().any(|row| row.verified.requests > 0);
    let shared = if is_any_verified { HashSet::new() } else { shared_addresses(rows.clone()) };
    let is_suspect = |row: &&ReplayRow| {
        row.failed.as_ref().is_some_and(|failed| {
            let is_alone = row.verified.requests == 0 || failed.period.is_apart_from(&row.verified_period, DAY);
            let is_crowd = failed.addresses.count() > HANDFUL;
            (is_crowd && is_alone) || failed.addresses.networks().iter().any(|address| shared.contains(address))
        })
    };
    rows.filter(is_suspect).map(|row| row.agent.name.clone()).collect()
}

/// Addresses that claim to be crawlers of several operators.
fn shared_addresses<'r>(rows: impl Iterator<Item = &'r ReplayRow>) -> HashSet<IpAddr> {
    let mut operators = HashMap::<IpAddr, &str>::new();
    let mut shared = HashSet::new();
    for row in rows {
        let addresses = row.failed.iter().flat_map(|failed| failed.addresses.networks());
        let operator = row.agent.operator.as_deref().unwrap_or(&row.agent.name);
        for address in addresses {
            if *operators.entry(address).or_insert(operator) != operator {
                shared.insert(address);
            }
        }
    }
    shared
}
