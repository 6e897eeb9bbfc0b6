//! One row of counts for each crawler, in bounded memory.

use std::collections::HashMap;

use super::headers::AgentKind;
use super::rule_paths::RulePaths;

/// Crawlers that get a row of their own. Names can be made up: the rest share one.
const ROWS: usize = 1024;

/// Nodes of the path trees of each of the first rows, and of each row after them.
const NODES: usize = 512;
const FULL_ROWS: usize = 256;
const NODES_LATER: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Rows {
    rows: Vec<ReplayRow>,
    by_name: HashMap<String, usize>,
}

/// Counts of one crawler, or of one class of agents that are none.
#[derive(Clone, Debug)]
pub(super) struct ReplayRow {
    pub(super) agent: AgentKind,
    pub(super) requests: u64,
    /// Under each of the files.
    pub(super) disallowed: [u64; 2],
    /// Allowed under the first and disallowed under the second, and the other way about.
    pub(super) shut: u64,
    pub(super) opened: u64,
    /// Disallowed, but before the rules held.
    pub(super) early: u64,
    pub(super) robots_txt: u64,
    /// Targets that are disallowed; where two files are compared, those that change.
    pub(super) rules: RulePaths,
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

    pub(super) fn iter(&self) -> impl Iterator<Item = &ReplayRow> {
        self.rows.iter()
    }
}

impl ReplayRow {
    const fn new(agent: AgentKind, nodes: usize) -> Self {
        Self {
            agent,
            requests: 0,
            disallowed: [0; 2],
            shut: 0,
            opened: 0,
            early: 0,
            robots_txt: 0,
            rules: RulePaths::new(nodes),
        }
    }

    fn merge(&mut self, other: Self) {
        self.requests += other.requests;
        for (count, more) in self.disallowed.iter_mut().zip(other.disallowed) {
            *count += more;
        }
        self.shut += other.shut;
        self.opened += other.opened;
        self.early += other.early;
        self.robots_txt += other.robots_txt;
        self.rules.merge(other.rules);
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
                rows.of(&AgentKind { name, ..AgentKind::other_crawlers() }).requests += 1;
            }
            all.merge(rows);
        }
        assert_eq!(all.iter().count(), ROWS + 1);
        assert_eq!(all.iter().map(|row| row.requests).sum::<u64>(), 9000);
        assert_eq!(all.of(&AgentKind::other_crawlers()).requests, 9000 - ROWS as u64);
    }
}
