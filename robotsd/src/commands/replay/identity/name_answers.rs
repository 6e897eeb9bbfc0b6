//! DNS queries about the names of addresses, and their answers.

use std::collections::HashMap;

use tower_robots::agent::UndecidedReason;
use tower_robots::identity::{MethodOutcome, PublicAddress};

use super::list_copies;

/// Addresses that are counted before the most frequent are looked up.
const MOST_COUNTED: usize = 1 << 16;

/// An address, and the number of the patterns that its names are to have.
pub(super) type NameQuestion = (usize, PublicAddress);

/// The addresses whose names say more, with their requests.
#[derive(Debug, Default)]
pub(crate) struct NameQuestions {
    requests: HashMap<NameQuestion, u64>,
    /// Whether there were more than are counted.
    is_cut: bool,
}

/// What names say about claims.
#[derive(Debug)]
pub(crate) struct NameAnswers {
    pub(super) outcomes: HashMap<NameQuestion, MethodOutcome>,
    /// When they were queried, in seconds since 1970.
    pub(super) asked: i64,
    /// Addresses that were not looked up.
    pub(super) left_out: usize,
}

impl NameQuestions {
    pub(super) fn note(&mut self, names: usize, address: PublicAddress) {
        self.add((names, address), 1);
    }

    /// Adds those of the next chunk.
    pub(crate) fn merge(&mut self, next: Self) {
        self.is_cut |= next.is_cut;
        for (question, requests) in sorted(next.requests) {
            self.add(question, requests);
        }
    }

    /// The questions, those about the most requests first; and whether there were more than are counted.
    pub(super) fn into_sorted(self) -> (Vec<NameQuestion>, bool) {
        (sorted(self.requests).into_iter().map(|(question, _)| question).collect(), self.is_cut)
    }

    fn add(&mut self, question: NameQuestion, requests: u64) {
        if self.requests.len() >= MOST_COUNTED && !self.requests.contains_key(&question) {
            self.is_cut = true;
            // Half is made free, so that this is seldom done.
            let kept = sorted(std::mem::take(&mut self.requests)).into_iter().take(MOST_COUNTED / 2);
            self.requests = kept.collect();
        }
        *self.requests.entry(question).or_default() += requests;
    }
}

fn sorted(requests: HashMap<NameQuestion, u64>) -> Vec<(NameQuestion, u64)> {
    let mut sorted: Vec<_> = requests.into_iter().collect();
    sorted.sort_unstable_by_key(|((names, address), requests)| (std::cmp::Reverse(*requests), *names, address.get()));
    sorted
}

impl NameAnswers {
    pub(super) fn outcome(&self, names: usize, address: PublicAddress) -> MethodOutcome {
        let known = self.outcomes.get(&(names, address)).copied();
        known.unwrap_or(MethodOutcome::Undecided(UndecidedReason::Busy))
    }

    /// Whether a failure says anything about a request of this time.
    pub(super) fn are_close_to(&self, time: Option<i64>) -> bool {
        list_copies::is_close(self.asked, time)
    }

    /// Addresses that were looked up.
    pub(crate) fn len(&self) -> usize {
        self.outcomes.len()
    }

    pub(crate) const fn left_out(&self) -> usize {
        self.left_out
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    fn address(number: u32) -> PublicAddress {
        PublicAddress::of(Some(IpAddr::from((0x0808_0000 + number).to_be_bytes())), |_| false).expect("public")
    }

    #[test]
    fn the_most_frequent_addresses_are_kept_and_come_first() {
        let mut all = NameQuestions::default();
        for chunk in 0..4 {
            let mut one = NameQuestions::default();
            (0..40_000).for_each(|number| one.note(0, address(chunk * 40_000 + number)));
            (0..3).for_each(|_| one.note(1, address(7)));
            all.merge(one);
            assert!(all.requests.len() <= MOST_COUNTED);
        }
        let (questions, is_cut) = all.into_sorted();
        assert_eq!((questions[0], is_cut), ((1, address(7)), true));
    }
}
