//! Literal patterns and the literal prefixes of others: one walk along the path, however many there are.
//!
//! A radix trie. Each node knows the best candidate of itself and all nodes above, so the walk carries nothing along
//! and a longer pattern that lost to a shorter one (priority is the length as written, not as compared) needs no
//! special case. The nodes of a trie lie in breadth-first order in one vector with those of all other tries of the
//! file, and the children of one node are neighbours. A step finds the child by its first octet, among eight in one
//! comparison of words or else in a table, and compares eight octets of its label at once.

use super::candidates::{NO_RANK, Rank};

/// No list of wildcards.
pub(super) const NO_LIST: u32 = u32::MAX;

/// Children that are told apart in one word; more have a table.
const FEW: usize = 8;

/// Octets of a label that stand in its node.
const INLINE: usize = 8;

/// The tries of a file.
#[derive(Debug, Default)]
pub(super) struct Tries {
    nodes: Vec<Node>,
    /// What is left of labels that are too long for their node.
    labels: Vec<u8>,
    /// The children of nodes with many: one for each octet between the first and the last, 0 for none.
    tables: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    /// The first octets that lead here from the node above, in little-endian order, zeroes behind them.
    label: u64,
    /// The first octets of up to eight children, or the first of many in the lowest.
    firsts: u64,
    /// The first child, or where in `tables` they are.
    children: u32,
    /// How many of them, or how long the table is.
    count: u8,
    is_wide: bool,
    label_length: u16,
    /// Where the rest of the label is.
    label_rest: u32,
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
        self.nodes.push(Node::EMPTY);
        let mut pending = vec![Pending { start: 0, end: keys.len(), depth: 0, above: root }];
        let mut next = 0;
        while let Some(&Pending { start, end, depth, above }) = pending.get(next) {
            let at = root + next;
            next += 1;
            let Node { best, list, .. } = self.nodes[above];
            let mut node = Node { best, list, at_end: best, ..self.nodes[at] };
            let own = keys[start..end].iter().take_while(|key| key.octets.len() == depth).count();
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
            let first_child = self.nodes.len();
            let mut start = start + own;
            while start < end {
                let first = keys[start].octets;
                let same = keys[start..end].iter().take_while(|key| key.octets[depth] == first[depth]).count();
                let last = keys[start + same - 1].octets;
                let length = first[depth..].iter().zip(&last[depth..]).take_while(|(a, b)| a == b).count();
                self.push_child(&first[depth..depth + length]);
                pending.push(Pending { start, end: start + same, depth: depth + length, above: at });
                start += same;
            }
            self.adopt(&mut node, first_child);
            self.nodes[at] = node;
        }
        root as u32
    }

    fn push_child(&mut self, label: &[u8]) {
        let (inline, rest) = label.split_at(label.len().min(INLINE));
        let label_rest = self.labels.len() as u32;
        self.labels.extend_from_slice(rest);
        // A label is no longer than a line with every octet escaped, and that is below 2^16.
        let label_length = label.len() as u16;
        self.nodes.push(Node { label: word(inline), label_length, label_rest, ..Node::EMPTY });
    }

    /// Makes the nodes from `first_child` on, in the order of their first octets, the children of a node.
    fn adopt(&mut self, node: &mut Node, first_child: usize) {
        let children = &self.nodes[first_child..];
        let first_octet = |child: &Node| child.label.to_le_bytes()[0];
        let (Some(first), Some(last)) = (children.first(), children.last()) else { return };
        if children.len() <= FEW {
            (node.children, node.count) = (first_child as u32, children.len() as u8);
            node.firsts = children.iter().rev().fold(0, |firsts, child| firsts << 8 | u64::from(first_octet(child)));
            return;
        }
        let (first, last) = (first_octet(first), first_octet(last));
        (node.is_wide, node.firsts) = (true, u64::from(first));
        (node.children, node.count) = (self.tables.len() as u32, last - first + 1);
        self.tables.resize(self.tables.len() + usize::from(node.count), 0);
        for (at, child) in children.iter().enumerate() {
            let place = node.children as usize + usize::from(first_octet(child) - first);
            self.tables[place] = (first_child + at) as u32;
        }
    }

    /// Follows a path as far as it goes.
    pub(super) fn walk(&self, root: u32, path: &[u8]) -> Stop {
        let mut node = &self.nodes[root as usize];
        let mut at = 0;
        loop {
            let Some(octet) = path.get(at) else { return Stop { rank: node.at_end, list: node.list } };
            let Some(child) = self.child(node, *octet) else { break };
            let length = usize::from(child.label_length);
            // Labels hold no zero octets, so the zeroes behind the end of the path differ from them.
            let differing = (word_at(path, at) ^ child.label) << (8 * (INLINE - length.min(INLINE)));
            if differing != 0 || (length > INLINE && !self.rest_follows(child, &path[at..])) {
                break;
            }
            at += length;
            node = child;
        }
        Stop { rank: node.best, list: node.list }
    }

    fn child(&self, node: &Node, octet: u8) -> Option<&Node> {
        if node.is_wide {
            let place = octet.wrapping_sub(node.firsts as u8);
            if place >= node.count {
                return None;
            }
            let child = self.tables[node.children as usize + usize::from(place)];
            return (child != 0).then(|| &self.nodes[child as usize]);
        }
        const ONES: u64 = u64::MAX / 255;
        let differing = node.firsts ^ (ONES * u64::from(octet));
        // The lowest zero octet, exactly; a zero octet of a path may be found behind the last child.
        let equal = differing.wrapping_sub(ONES) & !differing & (ONES << 7);
        let place = equal.trailing_zeros() / 8;
        (place < u32::from(node.count)).then(|| &self.nodes[(node.children + place) as usize])
    }

    fn rest_follows(&self, child: &Node, path: &[u8]) -> bool {
        let (start, length) = (child.label_rest as usize, usize::from(child.label_length) - INLINE);
        path.get(INLINE..).is_some_and(|path| path.starts_with(&self.labels[start..start + length]))
    }

    /// Octets of memory in use.
    pub(super) fn memory(&self) -> usize {
        self.nodes.capacity() * size_of::<Node>() + self.labels.capacity() + self.tables.capacity() * size_of::<u32>()
    }

    pub(super) fn shrink(&mut self) {
        self.nodes.shrink_to_fit();
        self.labels.shrink_to_fit();
        self.tables.shrink_to_fit();
    }
}

impl Node {
    const EMPTY: Self = Self {
        label: 0,
        firsts: 0,
        children: 0,
        count: 0,
        is_wide: false,
        label_length: 0,
        label_rest: 0,
        best: NO_RANK,
        at_end: NO_RANK,
        list: NO_LIST,
    };
}

/// Up to eight octets in little-endian order.
fn word(octets: &[u8]) -> u64 {
    octets.iter().rev().fold(0, |word, octet| word << 8 | u64::from(*octet))
}

/// The eight octets of a path from some place within it, zeroes behind its end.
fn word_at(path: &[u8], at: usize) -> u64 {
    if let Some(octets) = path[at..].first_chunk() {
        return u64::from_le_bytes(*octets);
    }
    match path.last_chunk() {
        Some(octets) => u64::from_le_bytes(*octets) >> (8 * (INLINE + at - path.len())),
        None => word(&path[at..]),
    }
}
