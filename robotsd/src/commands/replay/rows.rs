//! One row of counts for each crawler, in bounded memory.

use std::collections::{BTreeMap, HashMap};

use foldhash::fast::RandomState;
use tower_robots::agent::{Identity, IdentityOutcome, UndecidedReason};

use super::failed_claims::{FailedAddresses, FailedClaims};
use super::headers::AgentKind;
use super::hours::Hours;
use super::rule_paths::RulePaths;
use super::tally::{Period, RequestTally};

/// Crawlers that get a row of their own. Names can be made up: the rest share one.
const ROWS: usize = 1024;

/// Nodes of the path trees of each of the first rows, and of each row after them.
const NODES: usize = 512;
const FULL_ROWS: usize = 256;
const NODES_LATER: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Rows {
    rows: Vec<ReplayRow>,
    by_name: HashMap<String, usize, RandomState>,
}

/// Counts of one crawler, or of one class of agents that are none.
#[derive(Clone, Debug)]
pub(super) struct ReplayRow {
    pub(super) agent: AgentKind,
    /// Requests whose claim the evidence confirms.
    pub(super) verified: RequestTally,
    pub(super) verified_period: Period,
    /// Requests whose claim it neither confirms nor refutes, and how many of them for which reason.
    pub(super) claimed: RequestTally,
    pub(super) undecided: BTreeMap<&'static str, u64>,
    /// Targets of both that are disallowed; where two files are compared, those that change.
    pub(super) rules: RulePaths,
    /// Requests whose claim it refutes.
    pub(super) failed: Option<Box<FailedClaims>>,
    /// Whether claims were checked by addresses.
    pub(super) is_checked: bool,
}

/// Where a request is counted.
#[derive(Debug)]
pub(super) struct RowPart<'r> {
    pub(super) tally: &'r mut RequestTally,
    pub(super) rules: &'r mut RulePaths,
    /// Where the claim failed.
    pub(super) failed: Option<(&'r mut Hours, &'r mut FailedAddresses)>,
}

impl Rows {
    /// The row of an agent.
    pub(super) fn of(&mut self, agent: &AgentKind) -> &mut ReplayRow {
        let at = self.by_name.get(&agent.name).copied().unwrap_or_else(|| self.insert(agent));
        &mut self.rows[at]
    }

    fn insert(&mut self, agent: &AgentKind) -> usize {
        let agent =
            if agent.is_crawler && self.rows.len() >= ROWS { AgentKind::other_crawlers() } else { agent.clone() };
        if let Some(known) = self.by_name.get(&agent.name) {
            return *known;
        }
        let nodes = if self.rows.len() < FULL_ROWS { NODES } else { NODES_LATER };
        self.by_name.insert(agent.name.clone(), self.rows.len());
        self.rows.push(ReplayRow::new(agent, nodes));
        self.rows.len() - 1
    }

    pub(super) fn merge(&mut self, other: Self) {
        for row in other.rows {
            self.of(&row.agent).merge(row);
        }
    }

    /// Counts the failed claims of these crawlers as undecided; the hours of their requests are returned.
    pub(super) fn forgive(&mut self, names: &[String]) -> Vec<Hours> {
        let suspects = self.rows.iter_mut().filter(|row| names.contains(&row.agent.name));
        suspects.filter_map(ReplayRow::forgive).collect()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &ReplayRow> + Clone {
        self.rows.iter()
    }
}

impl ReplayRow {
    const fn new(agent: AgentKind, nodes: usize) -> Self {
        Self {
            agent,
            verified: RequestTally::new(),
            verified_period: Period::new(),
            claimed: RequestTally::new(),
            undecided: BTreeMap::new(),
            rules: RulePaths::new(nodes),
            failed: None,
            is_checked: false,
        }
    }

    /// Counts a request with this identity, and returns what the rest of it is counted in.
    pub(super) fn note(&mut self, identity: Identity, time: Option<i64>) -> RowPart<'_> {
        self.is_checked |= !matches!(
            identity,
            Identity::Unclaimed | Identity::Unverifiable | Identity::Undecided(UndecidedReason::Address)
        );
        let part = match identity {
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
                let reason = identity.reason().unwrap_or(IdentityOutcome::Unverifiable.as_str());
                *self.undecided.entry(reason).or_default() += 1;
                RowPart { tally: &mut self.claimed, rules: &mut self.rules, failed: None }
            }
            Identity::Unclaimed => RowPart { tally: &mut self.claimed, rules: &mut self.rules, failed: None },
        };
        part.tally.requests += 1;
        part
    }

    /// Requests that are not an impostor's.
    pub(super) fn own(&self) -> RequestTally {
        self.claimed.with(&self.verified)
    }

    fn forgive(&mut self) -> Option<Hours> {
        let failed = *self.failed.take()?;
        self.claimed.add(&failed.tally);
        *self.undecided.entry(UndecidedReason::SuspectPath.as_str()).or_default() += failed.tally.requests;
        self.rules.merge(failed.rules);
        Some(failed.hours)
    }

    fn merge(&mut self, other: Self) {
        self.verified.add(&other.verified);
        self.verified_period.merge(other.verified_period);
        self.claimed.add(&other.claimed);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_up_names_share_a_row_in_the_end() {
        let mut all = Rows::default();
        for chunk in 0..10 {
            let mut rows = Rows::default();
            for at in 0..900 {
                let name = format!("Made{chunk}-{at}");
                rows.of(&AgentKind { name, ..AgentKind::other_crawlers() }).claimed.requests += 1;
            }
            all.merge(rows);
        }
        assert_eq!(all.iter().count(), ROWS + 1);
        assert_eq!(all.iter().map(|row| row.claimed.requests).sum::<u64>(), 9000);
        assert_eq!(all.of(&AgentKind::other_crawlers()).claimed.requests, 9000 - ROWS as u64);
    }
}
