//! The first eight octets of a path to the node they lead to: the upper part of a large trie in one step.
//!
//! A jump only saves steps. Where there is none, or where two want the same place, the walk begins at the root.

/// Octets of the path that are looked up.
pub(super) const JUMP: usize = 8;

/// Tries with fewer jumps are walked as fast.
const FEW: usize = 64;

/// A node, and how many octets lead to it: at most [`JUMP`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Jump {
    pub(super) octets: u64,
    pub(super) node: u32,
    pub(super) depth: u32,
}

/// The jumps of a trie.
#[derive(Debug, Default)]
pub(super) struct Jumps {
    slots: Box<[Jump]>,
    shift: u32,
}

impl Jumps {
    /// Keeps the jumps if it is worth it; each has other octets, and none of them is zero.
    pub(super) fn new(jumps: &[Jump]) -> Option<Self> {
        if jumps.len() < FEW {
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

    pub(super) fn find(&self, octets: u64) -> Option<Jump> {
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
