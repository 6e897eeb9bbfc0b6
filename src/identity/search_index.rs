//! Where in a sorted list a number belongs, found by a table first and a short search then.

use std::hint::select_unpredictable;

/// A table over sorted numbers: it cuts the span from the first to the last into about as many equal parts as there are
/// numbers, and says where each part begins.
///
/// Numbers that are spread are found in one step, those in a few clusters with a search within one cluster. That search has
/// no branch that depends on the numbers: of addresses that are not foreseen, a predictor is wrong every second time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SearchIndex {
    first: u64,
    shift: u32,
    /// How many numbers lie before each part, and at the end all of them.
    parts: Box<[u32]>,
}

impl SearchIndex {
    /// The table of sorted numbers. A list has at most 50,000.
    pub(super) fn of<T: Copy + Into<u64>>(sorted: &[T]) -> Self {
        let (Some(first), Some(last)) = (sorted.first(), sorted.last()) else { return Self::default() };
        let (first, last): (u64, u64) = ((*first).into(), (*last).into());
        let span_bits = u64::BITS - (last - first).leading_zeros();
        let shift = span_bits.saturating_sub(sorted.len().next_power_of_two().trailing_zeros());
        let part = |number: T| ((number.into() - first) >> shift) as usize;
        let mut parts = vec![0_u32; ((last - first) >> shift) as usize + 2];
        for number in sorted {
            parts[part(*number) + 1] += 1;
        }
        let mut before = 0;
        for part in &mut parts {
            before += *part;
            *part = before;
        }
        Self { first, shift, parts: parts.into() }
    }

    /// How many of the numbers are not greater than this one.
    #[inline]
    pub(super) fn not_above<T: Copy + Into<u64>>(&self, sorted: &[T], number: u64) -> usize {
        let Some(distance) = number.checked_sub(self.first) else { return 0 };
        let part = usize::try_from(distance >> self.shift).unwrap_or(usize::MAX);
        let Some([before, after]) = part.checked_add(2).and_then(|end| self.parts.get(part..end)) else {
            return sorted.len();
        };
        let (mut base, mut count) = (*before as usize, (*after - *before) as usize);
        while count > 0 {
            let half = count.div_ceil(2);
            let is_below = sorted.get(base + half - 1).is_some_and(|middle| (*middle).into() <= number);
            base = select_unpredictable(is_below, base + half, base);
            count -= half;
        }
        base
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_place_is_that_of_a_plain_search(
            numbers in prop::collection::vec(prop_oneof![any::<u64>(), 0_u64..40, (1_u64 << 62)..(1 << 62) + 9], 0..200),
            others in prop::collection::vec(any::<u64>(), 0..8),
        ) {
            let mut sorted = numbers.clone();
            sorted.sort_unstable();
            let index = SearchIndex::of(&sorted);
            prop_assert!(index.parts.len() <= 2 * sorted.len().next_power_of_two() + 2);
            let edges = numbers.iter().flat_map(|number| [*number, number.wrapping_sub(1), number.wrapping_add(1)]);
            for number in edges.chain(others).chain([0, u64::MAX]) {
                let place = sorted.partition_point(|other| *other <= number);
                prop_assert_eq!(index.not_above(&sorted, number), place, "{} in {:?}", number, sorted);
            }
        }
    }
}
