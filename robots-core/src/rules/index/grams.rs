//! Searches many patterns with wildcards at once. A pattern is tried only if the path contains one
//! particular sequence of three bytes from the pattern.
//!
//! Three consecutive bytes of a literal are called a gram. Each pattern is stored under its rarest
//! gram: the gram that occurs least often in all patterns. If several of its grams are equally
//! rare, the gram whose bytes are rarest in paths is used. A pattern without grams is stored under
//! its rarest byte. A search looks up each gram of the path.
//!
//! A search remembers the grams whose patterns it has tried, and skips these grams if they occur in
//! the path again. If there are too many different grams to remember, the search tries all patterns
//! in order. So a search tries each pattern at most twice.

use std::ops::Range;

use super::candidates::Rank;
use super::patterns::{Patterns, Run, SearchedPath, Wildcard};
use crate::rules::text::{literals, rarity};

/// Maximum number of different grams that a search remembers.
const REMEMBERED: usize = 32;

/// Patterns with wildcards, stored by gram.
#[derive(Debug)]
pub(super) struct Grams {
    /// A filter with one bit for each hash of a gram. For most grams of a path, the bit is 0, so no
    /// lookup in `filed` is necessary.
    filter: Box<[u64]>,
    filter_shift: u32,
    /// For each hash of a gram, the index in `filed` where the patterns with this hash begin. The
    /// last element is the end of `filed`.
    starts: Box<[u32]>,
    shift: u32,
    filed: Box<[GramEntry]>,
    /// The patterns without grams. Each element contains a byte and the range of its patterns in
    /// `single`.
    singles: Box<[(u8, Run)]>,
    single: Box<[Wildcard]>,
    /// Every pattern, best first.
    all: Box<[Wildcard]>,
}

#[derive(Clone, Copy, Debug)]
struct GramEntry {
    gram: u32,
    wildcard: Wildcard,
}

impl Grams {
    /// Stores patterns, which must be in the order of their ranks.
    pub(super) fn new(wildcards: Vec<Wildcard>, patterns: &Patterns) -> Self {
        let usage = Usage::count(&wildcards, patterns);
        let (mut filed, mut single) = (Vec::new(), Vec::new());
        for wildcard in &wildcards {
            match usage.rarest(patterns.behind_prefix(wildcard.pattern)) {
                FiledUnder::Gram(gram) => filed.push(GramEntry { gram, wildcard: *wildcard }),
                FiledUnder::Byte(byte) => single.push((byte, *wildcard)),
            }
        }
        let bits = (2 * filed.len()).next_power_of_two().trailing_zeros().max(1);
        let (shift, filter_shift) = (32 - bits, 32 - bits - 4);
        // The sort is stable, so patterns with the same key stay in the order of their ranks.
        filed.sort_by_key(|filed| hash(filed.gram) >> shift);
        single.sort_by_key(|(byte, _)| *byte);
        let mut filter = vec![0u64; (1usize << (bits + 4)).div_ceil(64)];
        let mut starts = vec![0u32; (1 << bits) + 1];
        for GramEntry { gram, .. } in &filed {
            let bit = hash(*gram) >> filter_shift;
            filter[bit as usize / 64] |= 1 << (bit % 64);
            starts[(hash(*gram) >> shift) as usize + 1] += 1;
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut singles = Vec::new();
        let mut start = 0;
        for bytes in single.chunk_by(|(one, _), (other, _)| one == other) {
            singles.push((bytes[0].0, Run::of(start..start + bytes.len())));
            start += bytes.len();
        }
        Self {
            filter: filter.into(),
            filter_shift,
            starts: starts.into(),
            shift,
            filed: filed.into(),
            singles: singles.into(),
            single: single.into_iter().map(|(_, wildcard)| wildcard).collect(),
            all: wildcards.into(),
        }
    }

    /// Returns the best rank of the patterns that match the path, or `best` if none of them is
    /// better.
    pub(super) fn best<'p>(&self, patterns: &'p Patterns, path: &mut SearchedPath<'p, '_>, mut best: Rank) -> Rank {
        if !path.take_scan() {
            return best;
        }
        for (byte, run) in &self.singles {
            let wildcards = &self.single[run.range()];
            if wildcards[0].rank < best && path.holds(*byte) {
                best = patterns.best(wildcards, path, 0, best);
            }
        }
        let mut tried = [0; REMEMBERED];
        let mut count = 0;
        // The filter rejects about 19 of 20 grams. It is a separate iterator step, so that its loop
        // is tight.
        for gram in grams(path.path).filter(|gram| self.may_contain(*gram)) {
            let filed = &self.filed[self.bucket(gram)];
            let of_gram = || filed.iter().filter(|filed| filed.gram == gram).map(|filed| &filed.wildcard);
            if of_gram().next().is_none_or(|first| first.rank >= best) || tried[..count].contains(&gram) {
                continue;
            }
            if count == REMEMBERED {
                return patterns.best(&self.all, path, 0, best);
            }
            tried[count] = gram;
            count += 1;
            best = patterns.best(of_gram(), path, 0, best);
        }
        best
    }

    fn may_contain(&self, gram: u32) -> bool {
        let bit = hash(gram) >> self.filter_shift;
        self.filter[bit as usize / 64] & (1 << (bit % 64)) != 0
    }

    fn bucket(&self, gram: u32) -> Range<usize> {
        let at = (hash(gram) >> self.shift) as usize;
        self.starts[at] as usize..self.starts[at + 1] as usize
    }

    pub(super) fn memory(&self) -> usize {
        size_of::<Self>()
            + size_of_val(&*self.filter)
            + size_of_val(&*self.starts)
            + size_of_val(&*self.filed)
            + size_of_val(&*self.singles)
            + size_of_val(&*self.single)
            + size_of_val(&*self.all)
    }
}

enum FiledUnder {
    Gram(u32),
    Byte(u8),
}

/// Number of occurrences of grams in all literals, per hash. Grams with the same hash are counted
/// together. So a pattern may be stored under a gram that is not its rarest, which costs time but
/// never changes a verdict.
struct Usage {
    counts: Vec<u16>,
    shift: u32,
}

impl Usage {
    fn count(wildcards: &[Wildcard], patterns: &Patterns) -> Self {
        let each = || wildcards.iter().flat_map(|wildcard| literals(patterns.behind_prefix(wildcard.pattern)));
        let bytes: usize = each().map(<[u8]>::len).sum();
        let bits = bytes.next_power_of_two().trailing_zeros().clamp(8, 16);
        let mut usage = Self { counts: vec![0; 1 << bits], shift: 32 - bits };
        for gram in each().flat_map(grams) {
            let count = &mut usage.counts[(hash(gram) >> usage.shift) as usize];
            *count = count.saturating_add(1);
        }
        usage
    }

    /// Returns the rarest gram of a pattern or, if it has no grams, its rarest byte.
    fn rarest(&self, behind_prefix: &[u8]) -> FiledUnder {
        let gram = literals(behind_prefix).flat_map(grams).min_by_key(|gram| {
            let [a, b, c, _] = gram.to_le_bytes();
            let rarity = [a, b, c].map(|byte| u16::from(rarity(byte))).iter().sum::<u16>();
            (self.counts[(hash(*gram) >> self.shift) as usize], u16::MAX - rarity)
        });
        let byte = || literals(behind_prefix).flatten().copied().max_by_key(|byte| rarity(*byte));
        // Every pattern in this index has a literal after its first `*`, so there is at least one
        // byte.
        gram.map_or_else(|| FiledUnder::Byte(byte().unwrap_or_default()), FiledUnder::Gram)
    }
}

/// Returns all sequences of three consecutive bytes.
fn grams(bytes: &[u8]) -> impl Iterator<Item = u32> {
    let fours = bytes.windows(4).map(|four| u32::from_le_bytes([four[0], four[1], four[2], four[3]]) & 0xFF_FFFF);
    let last = bytes.last_chunk().map(|[a, b, c]| u32::from_le_bytes([*a, *b, *c, 0]));
    fours.chain(last)
}

/// Hashes a gram (Fibonacci hashing). The upper bits of the result are well mixed.
const fn hash(gram: u32) -> u32 {
    gram.wrapping_mul(0x9E37_79B1)
}
