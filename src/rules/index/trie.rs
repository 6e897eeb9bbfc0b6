//! Literal patterns and the literal prefixes of others: one walk along the path, however many there are.
//!
//! A radix trie. Each node knows the best candidate of itself and all nodes above, so the walk carries nothing along
//! and a longer pattern that lost to a shorter one (priority is the length as written, not as compared) needs no
//! special case. The nodes of a trie lie in breadth-first order in one vector with those of all other tries of the
//! file: children of one node are neighbours, and a bitmap says where a child is.

use super::candidates::{NO_RANK, Rank};

/// No list of wildcards.
pub(super) const NO_LIST: u32 = u32::MAX;

/// The tries of a file.
#[derive(Debug, Default)]
pub(super) struct Tries {
    nodes: Vec<Node>,
    labels: Vec<u8>,
}

#[derive(Debug)]
struct Node {
    /// The first octets of the children's labels, all below 0x80.
    children: [u64; 2],
    first_child: u32,
    /// The octets that lead here from the node above, but for the first.
    label: u32,
    label_length: u32,
    /// The best candidate whose pattern is a prefix of a path that leads here.
    best: Rank,
    /// The best candidate for a path that ends here.
    at_end: Rank,
    /// The nearest list here or above.
    list: u32,
}

/// What a trie is built from.
pub(super) struct Key<'t> {
    pub(super) octets: &'t [u8],
    pub(super) kind: KeyKind,
}

pub(super) enum KeyKind {
    /// A candidate that matches every path from here on.
    Open(Rank),
    /// A candidate that matches only the path that ends here.
    End(Rank),
    /// Wildcards to be tried on what follows.
    List(u32),
}

/// Where a walk ended.
pub(super) struct Stop {
    pub(super) rank: Rank,
    pub(super) list: u32,
}

/// A node whose place is known and whose content is not: its keys, and how many octets lead to it.
struct Pending {
    start: usize,
    end: usize,
    depth: usize,
    above: usize,
}

impl Tries {
    /// Adds a trie and returns its root. `found` hears of each list and the nearest one above it.
    pub(super) fn add(&mut self, mut keys: Vec<Key<'_>>, mut found: impl FnMut(u32, u32)) -> u32 {
        keys.sort_unstable_by(|one, other| one.octets.cmp(other.octets));
        let root = self.nodes.len();
        self.nodes.push(Node::new(0, 0));
        let mut pending = vec![Pending { start: 0, end: keys.len(), depth: 0, above: root }];
        let mut next = 0;
        while let Some(&Pending { start, end, depth, above }) = pending.get(next) {
            let at = root + next;
            next += 1;
            let (best, list) = (self.nodes[above].best, self.nodes[above].list);
            let own = keys[start..end].iter().take_while(|key| key.octets.len() == depth).count();
            let mut node =
                Node { best, list, at_end: best, ..Node::new(self.nodes[at].label, self.nodes[at].label_length) };
            for key in &keys[start..start + own] {
                match key.kind {
                    KeyKind::Open(rank) => node.best = node.best.min(rank),
                    KeyKind::End(rank) => node.at_end = node.at_end.min(rank),
                    KeyKind::List(own) => {
                        found(own, list);
                        node.list = own;
                    }
                }
            }
            node.at_end = node.at_end.min(node.best);
            node.first_child = self.nodes.len() as u32;
            let mut start = start + own;
            while start < end {
                let first = keys[start].octets;
                let same = keys[start..end].iter().take_while(|key| key.octets[depth] == first[depth]).count();
                let last = keys[start + same - 1].octets;
                let label = first[depth + 1..].iter().zip(&last[depth + 1..]).take_while(|(a, b)| a == b).count();
                node.children[usize::from(first[depth] >> 6)] |= 1 << (first[depth] & 63);
                self.nodes.push(Node::new(self.labels.len() as u32, label as u32));
                self.labels.extend_from_slice(&first[depth + 1..depth + 1 + label]);
                pending.push(Pending { start, end: start + same, depth: depth + 1 + label, above: at });
                start += same;
            }
            self.nodes[at] = node;
        }
        root as u32
    }

    /// Follows a path as far as it goes.
    pub(super) fn walk(&self, root: u32, mut path: &[u8]) -> Stop {
        let mut node = &self.nodes[root as usize];
        loop {
            let Some((octet, behind)) = path.split_first() else { return Stop { rank: node.at_end, list: node.list } };
            let Some(child) = node.child(*octet) else { break };
            let child = &self.nodes[child];
            let label = child.label as usize;
            let Some(behind) = behind.strip_prefix(&self.labels[label..label + child.label_length as usize]) else {
                break;
            };
            node = child;
            path = behind;
        }
        Stop { rank: node.best, list: node.list }
    }

    /// Octets of memory in use.
    pub(super) fn memory(&self) -> usize {
        self.nodes.capacity() * size_of::<Node>() + self.labels.capacity()
    }

    pub(super) fn shrink(&mut self) {
        self.nodes.shrink_to_fit();
        self.labels.shrink_to_fit();
    }
}

impl Node {
    const fn new(label: u32, label_length: u32) -> Self {
        Self { children: [0; 2], first_child: 0, label, label_length, best: NO_RANK, at_end: NO_RANK, list: NO_LIST }
    }

    fn child(&self, octet: u8) -> Option<usize> {
        let half = usize::from(octet >> 6);
        let (bits, bit) = (*self.children.get(half)?, 1u64 << (octet & 63));
        if bits & bit == 0 {
            return None;
        }
        let before = (bits & (bit - 1)).count_ones() + if half == 1 { self.children[0].count_ones() } else { 0 };
        Some((self.first_child + before) as usize)
    }
}
