//! Counts requests in one row per crawler, in bounded memory. Also finds the crawlers whose failed
//! claims may be genuine.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::{IpAddr, Ipv6Addr};

use foldhash::fast::RandomState;
use tower_robots::agent::{Identity, UndecidedReason};

use super::headers::AgentKind;
use super::rule_paths::RulePaths;
use super::tally::{FrequentCounts, Hours, LogPeriod, RequestTally};

/// Maximum number of crawlers with their own rows. All other crawlers share one row, because
/// clients can invent names.
const MAX_ROWS: usize = 1024;

/// Maximum number of nodes in the path trees of one row. This limit applies to the first
/// `FULL_ROWS` rows; `MAX_NODES_LATER` applies to the other rows.
const MAX_NODES: usize = 512;
const FULL_ROWS: usize = 256;
const MAX_NODES_LATER: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Rows {
    rows: Vec<ReplayRow>,
    /// Indexes of the rows by name: one map for classes, and one for crawlers. There are two maps
    /// because the name of a crawler may also be the name of a class, such as `empty`.
    by_name: [HashMap<String, usize, RandomState>; 2],
}

/// The counts of one crawler, or of one class of agents that are not crawlers.
#[derive(Clone, Debug)]
pub(super) struct ReplayRow {
    pub(super) agent: AgentKind,
    pub(super) verified: RequestTally,
    pub(super) verified_period: LogPeriod,
    /// Requests whose claim is neither confirmed nor refuted. `undecided` counts these requests by
    /// reason.
    pub(super) claimed: RequestTally,
    pub(super) undecided: BTreeMap<&'static str, u64>,
    /// Disallowed targets of verified and claimed requests; in a comparison, the targets with
    /// different verdicts.
    pub(super) rules: RulePaths,
    pub(super) failed: Option<Box<FailedClaims>>,
    /// Whether at least one claim could be checked with the address of the client.
    pub(super) is_checked: bool,
}

/// The counters of a row that are increased for one request. Each row has separate counters for
/// verified, undecided and refuted claims.
#[derive(Debug)]
pub(super) struct RowPart<'r> {
    pub(super) tally: &'r mut RequestTally,
    pub(super) rules: &'r mut RulePaths,
    /// Counts of failed claims by hour and by address; `None` if the claim is not refuted.
    pub(super) failed: Option<(&'r mut Hours, &'r mut FailedAddresses)>,
}

impl Rows {
    pub(super) fn of(&mut self, agent: &AgentKind) -> &mut ReplayRow {
        let by_name = &self.by_name[usize::from(agent.is_crawler)];
        let at = by_name.get(&agent.name).copied().unwrap_or_else(|| self.insert(agent));
        &mut self.rows[at]
    }

    fn insert(&mut self, agent: &AgentKind) -> usize {
        let agent =
            if agent.is_crawler && self.rows.len() >= MAX_ROWS { AgentKind::other_crawlers() } else { agent.clone() };
        let by_name = &mut self.by_name[usize::from(agent.is_crawler)];
        if let Some(known) = by_name.get(&agent.name) {
            return *known;
        }
        let nodes = if self.rows.len() < FULL_ROWS { MAX_NODES } else { MAX_NODES_LATER };
        by_name.insert(agent.name.clone(), self.rows.len());
        self.rows.push(ReplayRow::new(agent, nodes));
        self.rows.len() - 1
    }

    pub(super) fn merge(&mut self, other: Self) {
        for row in other.rows {
            self.of(&row.agent).merge(row);
        }
    }

    /// Changes the failed claims of the crawlers in `names` to undecided claims, and returns the
    /// changed claims.
    pub(super) fn clear_failed_claims(&mut self, names: &[String]) -> Vec<(String, FailedClaims)> {
        let suspects = self.rows.iter_mut().filter(|row| names.contains(&row.agent.name));
        suspects.filter_map(ReplayRow::clear_failed_claims).collect()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &ReplayRow> + Clone {
        self.rows.iter()
    }
}

impl ReplayRow {
    fn new(agent: AgentKind, nodes: usize) -> Self {
        let (verified, verified_period, claimed, undecided) = Default::default();
        let rules = RulePaths::new(nodes);
        Self { agent, verified, verified_period, claimed, undecided, rules, failed: None, is_checked: false }
    }

    pub(super) fn row_part_for(&mut self, identity: Identity, time: Option<i64>) -> RowPart<'_> {
        self.is_checked |= !matches!(
            identity,
            Identity::Unclaimed
                | Identity::Unverifiable
                | Identity::Undecided(UndecidedReason::Address | UndecidedReason::NotLoaded)
        );
        match identity {
            Identity::Verified(_) => {
                self.verified_period.note(time);
                RowPart { tally: &mut self.verified, rules: &mut self.rules, failed: None }
            }
            Identity::Refuted(_) => {
                let FailedClaims { tally, rules, hours, period, addresses } =
                    &mut **self.failed.get_or_insert_default();
                period.note(time);
                RowPart { tally, rules, failed: Some((hours, addresses)) }
            }
            Identity::Undecided(_) | Identity::Unverifiable => {
                let reason = identity.reason().unwrap_or(Identity::Unverifiable.outcome());
                *self.undecided.entry(reason).or_default() += 1;
                RowPart { tally: &mut self.claimed, rules: &mut self.rules, failed: None }
            }
            Identity::Unclaimed => RowPart { tally: &mut self.claimed, rules: &mut self.rules, failed: None },
        }
    }

    /// Returns the counts of verified and claimed requests, without requests of impostors.
    pub(super) fn without_impostors(&self) -> RequestTally {
        let mut own = self.claimed;
        own += self.verified;
        own
    }

    fn clear_failed_claims(&mut self) -> Option<(String, FailedClaims)> {
        let failed = *self.failed.take()?;
        self.claimed += failed.tally;
        *self.undecided.entry(UndecidedReason::SuspectPath.as_str()).or_default() += failed.tally.requests;
        self.rules.merge(failed.rules.clone());
        Some((self.agent.name.clone(), failed))
    }

    fn merge(&mut self, other: Self) {
        self.verified += other.verified;
        self.verified_period.merge(other.verified_period);
        self.claimed += other.claimed;
        for (reason, requests) in other.undecided {
            *self.undecided.entry(reason).or_default() += requests;
        }
        self.rules.merge(other.rules);
        if let Some(failed) = other.failed {
            self.failed.get_or_insert_default().merge(*failed);
        }
        self.is_checked |= other.is_checked;
    }
}

/// Maximum number of addresses that are treated as impostors of a crawler if no request of the
/// crawler is verified. Failed claims from more addresses may mean that the log does not contain
/// the addresses of clients.
const MAX_PROVEN_IMPOSTORS: usize = 5;

/// Maximum time between failed claims and a verified request of the same crawler, in seconds.
/// Within this time, a verified request shows that the log contains the addresses of clients.
const DAY: i64 = 24 * 60 * 60;

/// Returns the crawlers whose failed claims do not prove that impostors sent the requests, because
/// the log may not contain the addresses of clients. If all failed claims counted, all crawlers in
/// a log from a server behind a proxy would count as impostors.
///
/// The failed claims of a crawler are suspect in two cases:
///
/// 1. The claims come from many addresses (more than [`MAX_PROVEN_IMPOSTORS`]), and no request of
///    the crawler is verified within a day of these claims.
/// 2. No request of any crawler is verified, and one of the addresses also has failed claims for
///    crawlers of other operators. Such a shared address is typical of a log that contains the
///    address of a proxy instead of the addresses of clients.
///
/// Requests with suspect claims are counted as claimed.
pub(super) fn crawlers_with_suspect_path<'r>(rows: impl Iterator<Item = &'r ReplayRow> + Clone) -> Vec<String> {
    let is_any_verified = rows.clone().any(|row| row.verified.requests > 0);
    let shared = if is_any_verified { HashSet::new() } else { shared_addresses(rows.clone()) };
    let is_suspect = |row: &&ReplayRow| {
        row.failed.as_ref().is_some_and(|failed| {
            let is_alone = row.verified.requests == 0 || failed.period.is_apart_from(&row.verified_period, DAY);
            let clients = failed.addresses.networks();
            (clients.len() > MAX_PROVEN_IMPOSTORS && is_alone) || clients.iter().any(|address| shared.contains(address))
        })
    };
    rows.filter(is_suspect).map(|row| row.agent.name.clone()).collect()
}

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

/// Maximum number of addresses with their own counts, per crawler.
const MAX_ADDRESSES: usize = 1_024;

/// Maximum total number of nodes in the path trees of a crawler's failed claims.
const FAILED_NODES: usize = 256;

/// Maximum number of hours with counts: a little more than half a year.
const MAX_HOURS: usize = 4_400;

/// The requests that name a crawler, but come from addresses that do not belong to the crawler's
/// operator. If the log contains the addresses of clients, impostors sent these requests.
#[derive(Clone, Debug)]
pub(super) struct FailedClaims {
    pub(super) tally: RequestTally,
    pub(super) rules: RulePaths,
    pub(super) hours: Hours,
    pub(super) period: LogPeriod,
    pub(super) addresses: FailedAddresses,
}

pub(super) type FailedAddresses = FrequentCounts<IpAddr, MAX_ADDRESSES>;

impl Default for FailedClaims {
    fn default() -> Self {
        let (tally, period, addresses) = Default::default();
        Self { tally, rules: RulePaths::new(FAILED_NODES), hours: Hours::new(MAX_HOURS), period, addresses }
    }
}

impl FailedClaims {
    pub(super) fn merge(&mut self, next: Self) {
        self.tally += next.tally;
        self.rules.merge(next.rules);
        self.hours.merge(next.hours);
        self.period.merge(next.period);
        self.addresses.merge(next.addresses);
    }
}

impl FailedAddresses {
    pub(super) fn networks(&self) -> HashSet<IpAddr> {
        self.keys().map(|address| client_key(*address)).collect()
    }
}

/// Returns the key for counting a client: its IPv4 address, or the address of its /64 network,
/// because an IPv6 client can use all addresses of this network.
fn client_key(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::replay::tally::AddressTally;

    #[test]
    fn made_up_names_beyond_the_limit_share_one_row() {
        let mut all = Rows::default();
        for chunk in 0..10 {
            let mut rows = Rows::default();
            for at in 0..900 {
                let name = format!("Made{chunk}-{at}");
                rows.of(&AgentKind { name, ..AgentKind::other_crawlers() }).claimed.requests += 1;
            }
            all.merge(rows);
        }
        assert_eq!(all.iter().count(), MAX_ROWS + 1);
        assert_eq!(all.iter().map(|row| row.claimed.requests).sum::<u64>(), 9000);
        assert_eq!(all.of(&AgentKind::other_crawlers()).claimed.requests, 9000 - MAX_ROWS as u64);
    }

    #[test]
    fn a_crawler_with_the_name_of_a_class_has_its_own_row() {
        let class = AgentKind { name: "empty".to_owned(), is_crawler: false, ..AgentKind::other_crawlers() };
        let crawler = AgentKind { is_crawler: true, ..class.clone() };
        let mut all = Rows::default();
        for agent in [&class, &crawler, &crawler] {
            let mut rows = Rows::default();
            rows.of(agent).claimed.requests += 1;
            all.merge(rows);
        }
        let rows: Vec<_> = all.iter().map(|row| (row.agent.is_crawler, row.claimed.requests)).collect();
        assert_eq!(rows, [(false, 1), (true, 2)]);
    }

    #[test]
    fn memory_is_bounded_and_the_busiest_addresses_are_kept() {
        let busy = IpAddr::from([8, 8, 8, 8]);
        let mut all = FailedAddresses::default();
        for chunk in 0..8_u32 {
            let mut one = FailedAddresses::default();
            for number in 0..2_000_u32 {
                one.note(IpAddr::from((0x0909_0000 + chunk * 2_000 + number).to_be_bytes()), false);
                one.note(busy, true);
                assert!(one.keys().count() <= MAX_ADDRESSES);
            }
            all.merge(one);
            assert!(all.keys().count() <= MAX_ADDRESSES);
        }
        let known = all.sorted();
        assert_eq!(known[0], (busy, AddressTally { requests: 16_000, disallowed: 16_000 }));
        let sum: u64 = known.iter().map(|(_, tally)| tally.requests).sum();
        assert_eq!(sum + all.dropped.requests, 32_000);
    }

    #[test]
    fn addresses_of_one_ipv6_network_count_as_one_network() {
        let mut all = FailedAddresses::default();
        for address in ["9.9.9.9", "2001:db8:1:2::1", "2001:db8:1:2:3::", "2001:db8:1:3::1"] {
            all.note(address.parse().expect(address), false);
        }
        assert_eq!((all.sorted().len(), all.networks().len()), (4, 3));
    }
}
