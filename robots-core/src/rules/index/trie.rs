//! Literal patterns and the literal prefixes of others: one walk along the path, however many there are.
//!
//! A radix trie. Each node knows the best candidate of itself and all nodes above, so the walk carries nothing along
//! and a longer pattern that lost to a shorter one (priority is the length as written, not as compared) needs no
//! special case. The nodes of a trie lie in breadth-first order in one vector with those of all other tries of the
//! file, and the children of one node are neighbours. A step finds the child by its first octet, among eight in one
//! comparison of words or else in a table, and compares eight octets of its label at once.
//!
//! By hand, because the radix trees of crates keep a value for each key and neither the best rank above a node nor all
//! tries of a file in one vector.

use super::candidates::Rank;

/// No list of wildcards.
pub(super) const NO_LIST: u32 = u32::MAX;

/// A trie that is walked from its root.
const NO_JUMPS: u32 = u32::MAX;

/// Children that are distinguished in one machine word; more have a table.
const FEW: usize = 8;

/// Octets of a label that stand in its node, and how many do of one that is longer.
const INLINE: usize = 8;
const INLINE_OF_LONG: usize = 4;

/// The tries of a file.
#[derive(Debug)]
pub(super) struct Tries {
    nodes: Vec<Node>,
    /// The rest of labels that are too long for their node.
    labels: Vec<u8>,
    /// The children of nodes with many: one for each octet between the first and the last, 0 for none.
    tables: Vec<u32>,
    ends: Vec<NodeEnd>,
    jumps: Vec<Jumps>,
}

/// One of the tries.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trie {
    root: u32,
    /// In `jumps`, or past their end.
    jumps: u32,
}

/// Two in a cache line, because a walk over a large file is a walk over cache lines.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
struct Node {
    /// The octets that lead here from the node above, in little-endian order, zeroes behind them. Of a long label four
    /// octets, and where in `labels` the rest is.
    label: u64,
    /// The first octets of up to eight children, or the first of many in the lowest.
    firsts: u64,
    /// The first child, or where in `tables` they are.
    children: u32,
    /// The best candidate whose pattern is a prefix of a path that leads here.
    best: Rank,
    /// The other patterns, in `ends`.
    end: u32,
    label_length: u16,
    /// How long the table of children is, or 0 where they are few.
    table: u8,
}

/// Values that most nodes share with the node above, or do not have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct NodeEnd {
    /// The best candidate for a path that ends here, if it is better than the node's.
    pub(super) rank: Rank,
    /// The nearest list here or above.
    pub(super) list: u32,
}

/// The input of a trie.
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

/// A node whose place is known and whose content is not: its keys, and how many octets lead to it.
struct PendingNode {
    start: usize,
    end: usize,
    depth: usize,
    above: usize,
}

impl Tries {
    /// Adds a trie. Calls `found` with each list and the nearest one above it.
    pub(super) fn add(&mut self, mut keys: Vec<Key<'_>>, mut found: impl FnMut(u32, u32)) -> Trie {
        keys.sort_unstable_by(|one, other| one.octets.cmp(other.octets));
        let (root, mut jumps) = (self.nodes.len(), Vec::new());
        self.nodes.push(Node::EMPTY);
        let mut pending = vec![PendingNode { start: 0, end: keys.len(), depth: 0, above: root }];
        let mut next = 0;
        while let Some(&PendingNode { start, end, depth, above }) = pending.get(next) {
            let at = root + next;
            next += 1;
            let mut node = Node { best: self.nodes[above].best, ..self.nodes[at] };
            let mut end_here = NodeEnd { rank: Rank::NONE, ..self.ends[self.nodes[above].end as usize] };
            let own = keys[start..end].iter().take_while(|key| key.octets.len() == depth).count();
            for key in &keys[start..start + own] {
                match key.kind {
                    KeyKind::Open(rank) => node.best = node.best.min(rank),
                    KeyKind::End(rank) => end_here.rank = end_here.rank.min(rank),
                    KeyKind::List(own) => found(own, std::mem::replace(&mut end_here.list, own)),
                }
            }
            node.end = self.end(end_here, self.nodes[above].end);
            if depth == JUMP {
                jumps.push(Jump { octets: word(&keys[start].octets[..JUMP]), node: at as u32, depth: JUMP as u32 });
            }
            let first_child = self.nodes.len();
            let mut start = start + own;
            while start < end {
                let first = keys[start].octets;
                let same = keys[start..end].iter().take_while(|key| key.octets[depth] == first[depth]).count();
                let last = keys[start + same - 1].octets;
                let length = first[depth..].iter().zip(&last[depth..]).take_while(|(a, b)| a == b).count();
                if (1..JUMP).contains(&depth) && depth + length > JUMP {
                    jumps.push(Jump { octets: word(&first[..JUMP]), node: at as u32, depth: depth as u32 });
                }
                self.push_child(&first[depth..depth + length]);
                pending.push(PendingNode { start, end: start + same, depth: depth + length, above: at });
                start += same;
            }
            self.adopt(&mut node, first_child);
            self.nodes[at] = node;
        }
        let jumps = Jumps::new(&jumps).map_or(NO_JUMPS, |jumps| {
            self.jumps.push(jumps);
            self.jumps.len() as u32 - 1
        });
        Trie { root: root as u32, jumps }
    }

    /// The number of an end: that of the node above if there is nothing else to say, and 0 if there is nothing at all.
    fn end(&mut self, end: NodeEnd, above: u32) -> u32 {
        let known = [above, 0].into_iter().find(|known| self.ends[*known as usize] == end);
        known.unwrap_or_else(|| {
            self.ends.push(end);
            self.ends.len() as u32 - 1
        })
    }

    fn push_child(&mut self, label: &[u8]) {
        let mut word = word(&label[..label.len().min(INLINE)]);
        if label.len() > INLINE {
            word = u64::from(word as u32) | (self.labels.len() as u64) << 32;
            self.labels.extend_from_slice(&label[INLINE_OF_LONG..]);
        }
        // A label is no longer than a line with every octet escaped, and that is below 2^16.
        self.nodes.push(Node { label: word, label_length: label.len() as u16, ..Node::EMPTY });
    }

    /// Makes the nodes from `first_child` on, in the order of their first octets, the children of a node.
    fn adopt(&mut self, node: &mut Node, first_child: usize) {
        let children = &self.nodes[first_child..];
        let first_octet = |child: &Node| child.label.to_le_bytes()[0];
        let (Some(first), Some(last)) = (children.first(), children.last()) else { return };
        if children.len() <= FEW {
            node.children = first_child as u32;
            node.firsts = children.iter().rev().fold(0, |firsts, child| firsts << 8 | u64::from(first_octet(child)));
            return;
        }
        let (first, last) = (first_octet(first), first_octet(last));
        (node.table, node.firsts) = (last - first + 1, u64::from(first));
        node.children = self.tables.len() as u32;
        self.tables.resize(self.tables.len() + usize::from(node.table), 0);
        for (at, child) in children.iter().enumerate() {
            let place = node.children as usize + usize::from(first_octet(child) - first);
            self.tables[place] = (first_child + at) as u32;
        }
    }

    /// Follows a path as far as it goes: the best candidate there, and the nearest list.
    pub(super) fn walk(&self, trie: Trie, path: &[u8]) -> NodeEnd {
        let jump = self.jumps.get(trie.jumps as usize).and_then(|jumps| jumps.find(word_at(path, 0)));
        let (mut node, mut at) = match jump {
            Some(Jump { node, depth, .. }) => (&self.nodes[node as usize], depth as usize),
            None => (&self.nodes[trie.root as usize], 0),
        };
        while let Some(octet) = path.get(at) {
            let Some(child) = self.child(node, *octet).filter(|child| self.label_follows(child, path, at)) else {
                return NodeEnd { rank: node.best, ..self.ends[node.end as usize] };
            };
            at += usize::from(child.label_length);
            node = child;
        }
        let end = self.ends[node.end as usize];
        NodeEnd { rank: node.best.min(end.rank), ..end }
    }

    /// The child whose label begins with an octet.
    fn child(&self, node: &Node, octet: u8) -> Option<&Node> {
        if node.table > 0 {
            let place = octet.wrapping_sub(node.firsts as u8);
            if place >= node.table {
                return None;
            }
            let child = self.tables[node.children as usize + usize::from(place)];
            return (child != 0).then(|| &self.nodes[child as usize]);
        }
        const ONES: u64 = u64::MAX / 255;
        let differing = node.firsts ^ (ONES * u64::from(octet));
        // The lowest zero octet is marked exactly. No label begins with octet 0: that would be found where no child is.
        let equal = differing.wrapping_sub(ONES) & !differing & (ONES << 7);
        if equal == 0 || octet == 0 {
            return None;
        }
        Some(&self.nodes[(node.children + equal.trailing_zeros() / 8) as usize])
    }

    /// Whether the label of a node stands at some place of a path. Labels hold no zero octets, so the zeroes behind the
    /// end of the path differ from them.
    fn label_follows(&self, node: &Node, path: &[u8], at: usize) -> bool {
        let (differing, length) = (word_at(path, at) ^ node.label, usize::from(node.label_length));
        if length <= INLINE {
            // No node below a root has an empty label.
            return differing << (8 * (INLINE - length)) == 0;
        }
        let (start, length) = ((node.label >> 32) as usize, length - INLINE_OF_LONG);
        differing as u32 == 0
            && path.get(at + INLINE_OF_LONG..).is_some_and(|path| path.starts_with(&self.labels[start..start + length]))
    }

    /// Octets of memory in use.
    pub(super) fn memory(&self) -> usize {
        let jumps: usize = self.jumps.iter().map(Jumps::memory).sum();
        jumps + size_of_val(&*self.nodes) + self.labels.len() + size_of_val(&*self.tables) + size_of_val(&*self.ends)
    }

    pub(super) fn shrink(&mut self) {
        self.nodes.shrink_to_fit();
        self.labels.shrink_to_fit();
        self.tables.shrink_to_fit();
        self.ends.shrink_to_fit();
    }
}

impl Default for Tries {
    fn default() -> Self {
        let nothing = NodeEnd { rank: Rank::NONE, list: NO_LIST };
        Self { nodes: Vec::new(), labels: Vec::new(), tables: Vec::new(), ends: vec![nothing], jumps: Vec::new() }
    }
}

impl Node {
    const EMPTY: Self = Self { label: 0, firsts: 0, children: 0, best: Rank::NONE, end: 0, label_length: 0, table: 0 };
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

/// Octets of the path that are looked up.
const JUMP: usize = 8;

/// Tries with fewer jumps are walked as fast.
const FEW_LINKS: usize = 64;

/// A node, and how many octets lead to it: at most [`JUMP`].
#[derive(Clone, Copy, Debug)]
struct Jump {
    octets: u64,
    node: u32,
    depth: u32,
}

/// The jumps of a trie: from the first eight octets of a path to the node they lead to, the upper part of a large trie
/// in one step.
///
/// A jump only saves steps. If there is none, or if two want the same place, the walk begins at the root.
#[derive(Debug, Default)]
struct Jumps {
    slots: Box<[Jump]>,
    shift: u32,
}

impl Jumps {
    /// Keeps the jumps if it is worth it; each has other octets, and none of them is zero.
    fn new(jumps: &[Jump]) -> Option<Self> {
        if jumps.len() < FEW_LINKS {
            return None;
        }
        let slots = (2 * jumps.len()).next_power_of_two();
        let mut kept =
            Self { slots: vec![Jump { octets: 0, node: 0, depth: 0 }; slots].into(), shift: 64 - slots.ilog2() };
        for jump in jumps {
            let slot = kept.slot(jump.octets);
            // The deeper one saves more.
            if kept.slots[slot].depth < jump.depth {
                kept.slots[slot] = *jump;
            }
        }
        Some(kept)
    }

    fn find(&self, octets: u64) -> Option<Jump> {
        let jump = self.slots[self.slot(octets)];
        (jump.octets == octets && jump.depth > 0).then_some(jump)
    }

    /// Fibonacci hashing: the upper bits are well mixed.
    const fn slot(&self, octets: u64) -> usize {
        (octets.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift) as usize
    }

    pub(super) fn memory(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.slots)
    }
}
