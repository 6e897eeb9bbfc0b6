//! A radix trie of the patterns without wildcards, and of literal prefixes of patterns with
//! wildcards. A verdict needs one walk along the path, regardless of the number of patterns.
//!
//! Each node stores the best rank of its own patterns and of the patterns at all nodes above, so a
//! walk need not remember earlier nodes. A pattern at a node above is shorter when encoded, but may
//! be longer as written, and then takes precedence. The nodes of one trie are in breadth-first
//! order, so the children of a node are adjacent.
//!
//! Existing crates for radix trees store one value per key. They can store neither the best rank of
//! a node and all nodes above, nor all tries of a file in one vector.

use super::candidates::Rank;

/// Value of `NodeEnd::list` if there is no list.
pub(super) const NO_LIST: u32 = u32::MAX;

/// Value of `Trie::jumps` if the trie has no jumps, so that all walks begin at its root.
const NO_JUMPS: u32 = u32::MAX;

/// Maximum number of children whose first bytes are stored in one machine word. A node with more
/// children has a table.
const MAX_PACKED_CHILDREN: usize = 8;

/// Maximum length of a label that fits in its node, in bytes. If a label is longer, its node
/// contains only the first `INLINE_OF_LONG` bytes.
const INLINE: usize = 8;
const INLINE_OF_LONG: usize = 4;

#[derive(Debug)]
pub(super) struct Tries {
    nodes: Vec<Node>,
    /// The remaining bytes of labels that are too long for their nodes.
    labels: Vec<u8>,
    /// The tables of nodes with many children. A table has an entry for each byte value from the
    /// first byte of the first child to the first byte of the last child. The entry is the index of
    /// the child that begins with this byte, or 0.
    tables: Vec<u32>,
    ends: Vec<NodeEnd>,
    jumps: Vec<Jumps>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Trie {
    root: u32,
    /// Index in `Tries::jumps`, or an index past the end if the trie has no jumps.
    jumps: u32,
}

/// A node of a trie. A node has 32 bytes, so that two nodes fit in a cache line: in a large file,
/// cache misses dominate the cost of a walk.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
struct Node {
    /// Label: the bytes between the parent and this node, in little-endian order, padded with
    /// zeros. For a long label, this field contains the first four bytes of the label, and the
    /// offset of the remaining bytes in `Tries::labels`.
    label: u64,
    /// First bytes of up to eight children. If the node has a table, the lowest byte is the first
    /// byte of the first child.
    firsts: u64,
    /// Index of the first child, or offset of the table in `Tries::tables`.
    children: u32,
    /// Best rank of the patterns without wildcards and without `$` at this node and at all nodes
    /// above.
    best: Rank,
    /// Index of the node's [`NodeEnd`] in `Tries::ends`.
    end: u32,
    label_length: u16,
    /// Length of the table of children, or 0 if the node has no table.
    table: u8,
}

/// Values of a node that are stored outside [`Node`]. Most nodes have empty values or the values of
/// their parent, so many nodes share one `NodeEnd`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct NodeEnd {
    /// Best rank of the patterns with `$` at this node; in the result of [`Tries::walk`], of all
    /// matching patterns without wildcards.
    pub(super) rank: Rank,
    /// Index of this node's list of wildcards. If the node has no list, this is the index of the
    /// nearest list at a node above.
    pub(super) list: u32,
}

/// A literal or literal prefix to add to a trie, and its value.
pub(super) struct Key<'t> {
    pub(super) bytes: &'t [u8],
    pub(super) kind: KeyKind,
}

pub(super) enum KeyKind {
    /// A candidate that matches every path that begins with these bytes.
    Open(Rank),
    /// A candidate that matches only a path that consists of exactly these bytes.
    End(Rank),
    /// Index of a list of wildcards with this literal prefix.
    List(u32),
}

/// A node that is already stored, but still empty.
struct PendingNode {
    /// Start of the range of the node's keys.
    start: usize,
    /// End of the range of the node's keys, exclusive.
    end: usize,
    /// Number of bytes from the root to the end of the node's label.
    depth: usize,
    /// Index of the node's parent.
    above: usize,
}

impl Tries {
    /// Adds a trie of `keys`. Calls `found` with the index of each list and the index of the
    /// nearest list above it.
    pub(super) fn add(&mut self, mut keys: Vec<Key<'_>>, mut found: impl FnMut(u32, u32)) -> Trie {
        keys.sort_unstable_by(|one, other| one.bytes.cmp(other.bytes));
        let (root, mut jumps) = (self.nodes.len(), Vec::new());
        self.nodes.push(Node::EMPTY);
        let mut pending = vec![PendingNode { start: 0, end: keys.len(), depth: 0, above: root }];
        let mut next = 0;
        while let Some(&PendingNode { start, end, depth, above }) = pending.get(next) {
            let at = root + next;
            next += 1;
            let mut node = Node { best: self.nodes[above].best, ..self.nodes[at] };
            let mut end_here = NodeEnd { rank: Rank::NONE, ..self.ends[self.nodes[above].end as usize] };
            let own = keys[start..end].iter().take_while(|key| key.bytes.len() == depth).count();
            for key in &keys[start..start + own] {
                match key.kind {
                    KeyKind::Open(rank) => node.best = node.best.min(rank),
                    KeyKind::End(rank) => end_here.rank = end_here.rank.min(rank),
                    KeyKind::List(own) => found(own, std::mem::replace(&mut end_here.list, own)),
                }
            }
            node.end = self.end(end_here, self.nodes[above].end);
            if depth == JUMP {
                jumps.push(Jump { bytes: word(&keys[start].bytes[..JUMP]), node: at as u32, depth: JUMP as u32 });
            }
            let first_child = self.nodes.len();
            let mut start = start + own;
            while start < end {
                let first = keys[start].bytes;
                let same = keys[start..end].iter().take_while(|key| key.bytes[depth] == first[depth]).count();
                let last = keys[start + same - 1].bytes;
                let length = first[depth..].iter().zip(&last[depth..]).take_while(|(a, b)| a == b).count();
                if (1..JUMP).contains(&depth) && depth + length > JUMP {
                    jumps.push(Jump { bytes: word(&first[..JUMP]), node: at as u32, depth: depth as u32 });
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

    /// Returns the index of a [`NodeEnd`]. Stores it only if it is not empty and differs from the
    /// parent's [`NodeEnd`], which has the index `above`.
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
        // The cast cannot truncate, because a label is part of a line, and a line is shorter than
        // 2^16 bytes even if all of its bytes are escaped.
        self.nodes.push(Node { label: word, label_length: label.len() as u16, ..Node::EMPTY });
    }

    /// Adds the nodes from index `first_child` on as children of `node`. These nodes must be sorted
    /// by their first bytes.
    fn adopt(&mut self, node: &mut Node, first_child: usize) {
        let children = &self.nodes[first_child..];
        let first_byte = |child: &Node| child.label.to_le_bytes()[0];
        let (Some(first), Some(last)) = (children.first(), children.last()) else { return };
        if children.len() <= MAX_PACKED_CHILDREN {
            node.children = first_child as u32;
            node.firsts = children.iter().rev().fold(0, |firsts, child| firsts << 8 | u64::from(first_byte(child)));
            return;
        }
        let (first, last) = (first_byte(first), first_byte(last));
        (node.table, node.firsts) = (last - first + 1, u64::from(first));
        node.children = self.tables.len() as u32;
        self.tables.resize(self.tables.len() + usize::from(node.table), 0);
        for (at, child) in children.iter().enumerate() {
            let place = node.children as usize + usize::from(first_byte(child) - first);
            self.tables[place] = (first_child + at) as u32;
        }
    }

    /// Follows a path as far as possible. Returns the best rank at the last node, and the nearest
    /// list at or above this node.
    pub(super) fn walk(&self, trie: Trie, path: &[u8]) -> NodeEnd {
        let jump = self.jumps.get(trie.jumps as usize).and_then(|jumps| jumps.find(word_at(path, 0)));
        let (mut node, mut at) = match jump {
            Some(Jump { node, depth, .. }) => (&self.nodes[node as usize], depth as usize),
            None => (&self.nodes[trie.root as usize], 0),
        };
        while let Some(byte) = path.get(at) {
            let Some(child) = self.child(node, *byte).filter(|child| self.label_follows(child, path, at)) else {
                return NodeEnd { rank: node.best, ..self.ends[node.end as usize] };
            };
            at += usize::from(child.label_length);
            node = child;
        }
        let end = self.ends[node.end as usize];
        NodeEnd { rank: node.best.min(end.rank), ..end }
    }

    fn child(&self, node: &Node, byte: u8) -> Option<&Node> {
        if node.table > 0 {
            let place = byte.wrapping_sub(node.firsts as u8);
            if place >= node.table {
                return None;
            }
            let child = self.tables[node.children as usize + usize::from(place)];
            return (child != 0).then(|| &self.nodes[child as usize]);
        }
        const ONES: u64 = u64::MAX / 255;
        let differing = node.firsts ^ (ONES * u64::from(byte));
        // A byte of `differing` is zero if the child at this position begins with the searched
        // byte. The lowest set bit of `equal` belongs to the first zero byte. No label begins with
        // 0, but a searched 0 would match the unused bytes of `firsts`.
        let equal = differing.wrapping_sub(ONES) & !differing & (ONES << 7);
        if equal == 0 || byte == 0 {
            return None;
        }
        Some(&self.nodes[(node.children + equal.trailing_zeros() / 8) as usize])
    }

    /// Reports whether the label of a node occurs at this offset of a path. The end of the path is
    /// padded with zero bytes, which no label contains.
    fn label_follows(&self, node: &Node, path: &[u8], at: usize) -> bool {
        let (differing, length) = (word_at(path, at) ^ node.label, usize::from(node.label_length));
        if length <= INLINE {
            // The shift does not overflow, because only a root has an empty label.
            return differing << (8 * (INLINE - length)) == 0;
        }
        let (start, length) = ((node.label >> 32) as usize, length - INLINE_OF_LONG);
        differing as u32 == 0
            && path.get(at + INLINE_OF_LONG..).is_some_and(|path| path.starts_with(&self.labels[start..start + length]))
    }

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

/// Packs up to eight bytes in little-endian order.
fn word(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// Returns the eight bytes at an offset of a path, padded with zeros.
fn word_at(path: &[u8], at: usize) -> u64 {
    if let Some(bytes) = path[at..].first_chunk() {
        return u64::from_le_bytes(*bytes);
    }
    match path.last_chunk() {
        Some(bytes) => u64::from_le_bytes(*bytes) >> (8 * (INLINE + at - path.len())),
        None => word(&path[at..]),
    }
}

/// Maximum number of bytes at the start of a path that a jump skips.
const JUMP: usize = 8;

/// Minimum number of jumps in a table. With fewer jumps, a walk from the root is equally fast.
const MIN_JUMPS: usize = 64;

/// A jump from the root of a trie to a node.
#[derive(Clone, Copy, Debug)]
struct Jump {
    /// The first eight bytes of the paths that may use the jump.
    bytes: u64,
    /// Index of the node in `Tries::nodes`.
    node: u32,
    /// Number of bytes of the path that the jump skips, at most [`JUMP`].
    depth: u32,
}

/// The jumps of a trie: a hash table from the first eight bytes of a path to a node. A jump skips
/// the upper part of a large trie in one step.
///
/// If two jumps need the same slot, only one jump is stored. Without a jump, a walk begins at the
/// root.
#[derive(Debug, Default)]
struct Jumps {
    slots: Box<[Jump]>,
    shift: u32,
}

impl Jumps {
    /// Creates the hash table. `None` if there are too few jumps to be useful. No two jumps may
    /// have the same bytes, and none of these bytes may be zero.
    fn new(jumps: &[Jump]) -> Option<Self> {
        if jumps.len() < MIN_JUMPS {
            return None;
        }
        let slots = (2 * jumps.len()).next_power_of_two();
        let mut kept =
            Self { slots: vec![Jump { bytes: 0, node: 0, depth: 0 }; slots].into(), shift: 64 - slots.ilog2() };
        for jump in jumps {
            let slot = kept.slot(jump.bytes);
            // The deeper jump is kept, because it saves more steps.
            if kept.slots[slot].depth < jump.depth {
                kept.slots[slot] = *jump;
            }
        }
        Some(kept)
    }

    fn find(&self, bytes: u64) -> Option<Jump> {
        let jump = self.slots[self.slot(bytes)];
        (jump.bytes == bytes && jump.depth > 0).then_some(jump)
    }

    /// Returns the slot of these bytes (Fibonacci hashing, whose upper bits are well mixed).
    const fn slot(&self, bytes: u64) -> usize {
        (bytes.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift) as usize
    }

    pub(super) fn memory(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.slots)
    }
}
