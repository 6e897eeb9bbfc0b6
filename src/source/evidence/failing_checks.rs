//! How many checks of signatures fail, by the address that they come from.

use std::net::{IpAddr, Ipv4Addr};
use std::time::SystemTime;

use super::generations::Generations;
use crate::agent::Network;
use crate::identity::PublicAddress;

/// Checks that may fail for one address within a second: half a millisecond of work. More are not made.
const MOST_A_SECOND: u32 = 10;

/// Addresses that are counted.
const MOST_ADDRESSES: usize = 16_384;

/// Counts failing checks in the current second, for each IPv4 address and each /64 of IPv6. Requests whose address says nothing
/// about the client count as from one.
#[derive(Debug)]
pub(super) struct FailingChecks(Generations<IpAddr, CheckCount>);

#[derive(Clone, Copy, Debug)]
struct CheckCount {
    /// Since the epoch.
    second: u64,
    failed: u32,
}

impl Default for FailingChecks {
    fn default() -> Self {
        Self(Generations::new(MOST_ADDRESSES))
    }
}

impl FailingChecks {
    /// Whether so many failed in this second that no more are to be made.
    pub(super) fn are_too_many(&self, address: Option<PublicAddress>, now: SystemTime) -> bool {
        self.failed(client(address), second(now)) >= MOST_A_SECOND
    }

    pub(super) fn count(&self, address: Option<PublicAddress>, failures: usize, now: SystemTime) {
        let (client, second) = (client(address), second(now));
        let failures = u32::try_from(failures).unwrap_or(u32::MAX);
        let failed = self.failed(client, second).saturating_add(failures);
        self.0.insert(client, CheckCount { second, failed });
    }

    fn failed(&self, client: IpAddr, second: u64) -> u32 {
        self.0.get(&client).filter(|count| count.second == second).map_or(0, |count| count.failed)
    }
}

fn client(address: Option<PublicAddress>) -> IpAddr {
    address.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |address| Network::around(address.get(), 32, 64).first())
}

fn second(now: SystemTime) -> u64 {
    now.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
