//! Which rule wins: every rule of a file in one order, so that to compare two is to compare two numbers.

use std::cmp::Reverse;
use std::ops::Range;

use crate::rules::Access;
use crate::rules::document::RobotsTxt;
use crate::rules::pattern::{directory_of_index, priority};
use crate::rules::reading::Reading;
use crate::rules::text;

/// The place of a candidate in the order of precedence; the lowest wins.
///
/// Longest pattern, then allow before disallow, then the first line (RFC 9309, section 2.2.2, and the reference
/// parser). Empty patterns match every path and come last.
pub(in crate::rules) type Rank = u32;

/// Behind every candidate.
pub(in crate::rules) const NO_RANK: Rank = Rank::MAX;

/// What a candidate decides.
#[derive(Clone, Copy, Debug)]
pub(in crate::rules) struct Decider {
    /// The rule's index in the document.
    pub(in crate::rules) rule: u32,
    pub(in crate::rules) access: Access,
    /// An empty pattern never decides, but it is what matched.
    pub(in crate::rules) is_empty: bool,
}

/// The rules of a file while it is compiled, and the patterns that some of them are tried with besides their own.
pub(super) struct Candidates {
    /// All texts, one behind the other.
    texts: Vec<u8>,
    /// By rank.
    drafts: Vec<Draft>,
    /// The ranks of each group's candidates, best first, one group behind the other.
    ranks: Vec<Rank>,
    /// Where in `ranks` each group starts, and the end.
    starts: Vec<usize>,
}

struct Draft {
    decider: Decider,
    priority: u32,
    group: u32,
    text: Range<u32>,
}

impl Candidates {
    /// Reads the rules that end within the first `limit` octets, at most [`MAX_READ`](super::MAX_READ): that is why
    /// numbers of 32 bits hold every index and offset.
    pub(super) fn read(document: &RobotsTxt, reading: Reading, limit: usize) -> Self {
        let mut texts = Vec::with_capacity(document.bytes().len().min(limit));
        let mut drafts: Vec<Draft> = Vec::new();
        for rule in document.groups().flat_map(|group| group.rules()).take_while(|rule| rule.range().end <= limit) {
            let written = rule.pattern();
            let decider = Decider { rule: rule.index() as u32, access: rule.access(), is_empty: written.is_empty() };
            let mut add = |written: &[u8]| {
                let start = texts.len() as u32;
                text::write(&mut texts, written, reading);
                let (group, priority) = (rule.group().index() as u32, priority(written) as u32);
                drafts.push(Draft { decider, priority, group, text: start..texts.len() as u32 });
            };
            add(written);
            if rule.access() == Access::Allow
                && let Some(directory) = directory_of_index(written)
            {
                add(&directory);
            }
        }
        drafts.sort_unstable_by_key(|Draft { decider, priority, .. }| {
            (Reverse(*priority), decider.access == Access::Disallow, decider.rule)
        });
        let (ranks, starts) = by_group(&drafts, document.groups().len());
        Self { texts, drafts, ranks, starts }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.drafts.len()
    }

    /// The ranks of a group's candidates, best first.
    pub(super) fn of_group(&self, group: usize) -> &[Rank] {
        &self.ranks[self.starts[group]..self.starts[group + 1]]
    }

    pub(super) fn text(&self, rank: Rank) -> &[u8] {
        let Range { start, end } = self.drafts[rank as usize].text;
        &self.texts[start as usize..end as usize]
    }

    pub(super) fn into_deciders(self) -> Box<[Decider]> {
        self.drafts.into_iter().map(|draft| draft.decider).collect()
    }
}

fn by_group(drafts: &[Draft], groups: usize) -> (Vec<Rank>, Vec<usize>) {
    let mut starts = vec![0; groups + 1];
    for draft in drafts {
        starts[draft.group as usize + 1] += 1;
    }
    for group in 0..groups {
        starts[group + 1] += starts[group];
    }
    let (mut next, mut ranks) = (starts.clone(), vec![NO_RANK; drafts.len()]);
    for (rank, draft) in (0..).zip(drafts) {
        let at = &mut next[draft.group as usize];
        ranks[*at] = rank;
        *at += 1;
    }
    (ranks, starts)
}
