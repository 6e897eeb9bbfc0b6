//! A set of IP addresses with fast lookups.

use std::hint::select_unpredictable;
use std::net::IpAddr;

use crate::agent::Network;

/// A set of IP addresses, stored as sorted ranges that neither overlap nor touch. IPv4 and IPv6
/// ranges are stored separately.
///
/// A lookup takes one access to a table, and a few more steps if many ranges are close together.
///
/// ```
/// use robots_core::identity::RangeSet;
///
/// let list: RangeSet = ["66.249.64.0/27".parse()?, "2001:4860:4801:10::/64".parse()?].into_iter().collect();
/// assert!(list.contains("66.249.64.31".parse()?));
/// assert!(list.contains("::ffff:66.249.64.1".parse()?));
/// assert!(!list.contains("66.249.64.32".parse()?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangeSet {
    v4: Ranges<u32>,
    v4_index: SearchIndex,
    v6: Ranges<u128>,
    /// The upper 64 bits of the first address of each range in `v6`. A search first compares only
    /// these bits, because they need less memory than whole addresses and are faster to compare.
    v6_upper: Box<[u64]>,
    v6_index: SearchIndex,
}

/// Ranges of addresses. The starts and the ends of ranges are in separate slices, so that a search
/// reads only starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Ranges<T> {
    starts: Box<[T]>,
    ends: Box<[T]>,
}

impl RangeSet {
    /// Reports whether the set contains an address. An IPv4 address that is mapped into IPv6 is
    /// treated as the IPv4 address.
    #[inline]
    pub fn contains(&self, address: IpAddr) -> bool {
        match address.to_canonical() {
            IpAddr::V4(address) => {
                let address = address.to_bits();
                self.v4.ends_after(self.v4_index.count_up_to(&self.v4.starts, address.into()), address)
            }
            IpAddr::V6(address) => self.contains_v6(address.to_bits()),
        }
    }

    #[inline]
    fn contains_v6(&self, address: u128) -> bool {
        let upper = (address >> 64) as u64;
        let mut after = self.v6_index.count_up_to(&self.v6_upper, upper);
        // Ranges within the same /64 begin with the same upper 64 bits. Only such ranges need a
        // comparison of whole addresses.
        if after.checked_sub(1).and_then(|at| self.v6_upper.get(at)) == Some(&upper)
            && self.v6.starts[after - 1] > address
        {
            after = self.v6.starts[..after].partition_point(|start| *start <= address);
        }
        self.v6.ends_after(after, address)
    }

    /// Reports whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.v4.starts.is_empty() && self.v6.starts.is_empty()
    }

    /// Returns the number of ranges after overlapping and touching ranges are merged.
    #[doc(hidden)]
    pub fn ranges(&self) -> usize {
        self.v4.starts.len() + self.v6.starts.len()
    }

    /// Reports whether more than half of the IPv4 addresses in this set, or more than half of its
    /// IPv6 addresses, are missing in `other`. IPv4 and IPv6 are counted separately, because a set
    /// has so many IPv6 addresses that its IPv4 addresses would not matter in the total.
    #[doc(hidden)]
    pub fn lost_most_in(&self, other: &Self) -> bool {
        let v4 = (self.v4.shared_with(&other.v4), self.v4.addresses());
        let v6 = (self.v6.shared_with(&other.v6), self.v6.addresses());
        [v4, v6].into_iter().any(|(kept, all)| all - kept > kept)
    }
}

impl FromIterator<Network> for RangeSet {
    fn from_iter<I: IntoIterator<Item = Network>>(prefixes: I) -> Self {
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for prefix in prefixes {
            v4.extend(prefix.v4());
            v6.extend(prefix.v6());
        }
        let (v4, v6) = (Ranges::of(v4), Ranges::of(v6));
        let v6_upper: Box<[u64]> = v6.starts.iter().map(|start| (start >> 64) as u64).collect();
        let (v4_index, v6_index) = (SearchIndex::of(&v4.starts), SearchIndex::of(&v6_upper));
        Self { v4, v4_index, v6, v6_upper, v6_index }
    }
}

impl<T: Copy + Ord + Into<u128>> Ranges<T> {
    fn of(mut ranges: Vec<(T, T)>) -> Self {
        ranges.sort_unstable();
        let (mut starts, mut ends): (Vec<T>, Vec<T>) = (Vec::new(), Vec::new());
        for (start, end) in ranges {
            match ends.last_mut() {
                // For IPv4, the addition in 128 bits cannot overflow. For IPv6, the sum saturates
                // only if a range ends with the last IPv6 address. All following ranges then begin
                // within this range, so the comparison is still right.
                Some(last) if start.into() <= (*last).into().saturating_add(1) => *last = (*last).max(end),
                _ => {
                    starts.push(start);
                    ends.push(end);
                }
            }
        }
        Self { starts: starts.into(), ends: ends.into() }
    }

    /// Reports whether the range at position `place - 1` contains an address. The caller must make
    /// sure that the range begins at or before the address.
    #[inline]
    fn ends_after(&self, place: usize, address: T) -> bool {
        place.checked_sub(1).and_then(|at| self.ends.get(at)).is_some_and(|end| address <= *end)
    }

    fn iter(&self) -> impl Iterator<Item = (u128, u128)> {
        self.starts.iter().zip(&self.ends).map(|(start, end)| ((*start).into(), (*end).into()))
    }

    fn addresses(&self) -> u128 {
        self.iter().fold(0, |sum: u128, (start, end)| sum.saturating_add((end - start).saturating_add(1)))
    }

    fn shared_with(&self, other: &Self) -> u128 {
        let (mut left, mut right) = (self.iter().peekable(), other.iter().peekable());
        let mut shared: u128 = 0;
        while let (Some((start, end)), Some((other_start, other_end))) = (left.peek().copied(), right.peek().copied()) {
            let (first, last) = (start.max(other_start), end.min(other_end));
            if first <= last {
                shared = shared.saturating_add((last - first).saturating_add(1));
            }
            if end <= other_end {
                left.next();
            } else {
                right.next();
            }
        }
        shared
    }
}

/// A search table for sorted numbers. The table divides the span from the first to the last number
/// into equal parts, about as many as there are numbers. For each part, the table stores the
/// position of the first number in the part.
///
/// If the numbers are evenly spread, a lookup takes one step. If the numbers form a few clusters, a
/// lookup is a binary search within one cluster. The search does not branch on the numbers, because
/// for random addresses, the processor would predict half of the branches wrongly.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SearchIndex {
    first: u64,
    shift: u32,
    /// Count of the numbers before each part. The last element is the total count.
    parts: Box<[u32]>,
}

impl SearchIndex {
    /// Creates the index for sorted numbers. There must be fewer than 2^32 numbers; a list has at
    /// most 50,000 prefixes.
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

    /// Returns how many numbers in `sorted` are at most `number`.
    #[inline]
    pub(super) fn count_up_to<T: Copy + Into<u64>>(&self, sorted: &[T], number: u64) -> usize {
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

    impl Ranges<u32> {
        fn contains(&self, address: u32) -> bool {
            self.iter().any(|(first, last)| (first..=last).contains(&address.into()))
        }
    }

    fn set(prefixes: &[&str]) -> RangeSet {
        prefixes.iter().map(|text| text.parse::<Network>().expect(text)).collect()
    }

    #[test]
    fn overlapping_and_adjacent_ranges_are_merged() {
        let list = set(&["10.0.0.0/9", "10.128.0.0/9", "10.1.0.0/16", "11.0.0.0/32", "12.0.0.0/8", "12.0.0.0/8"]);
        assert_eq!(list.ranges(), 2);
        let list = set(&["255.255.255.255", "255.255.255.254", "ffff::/16", "ffff:ffff::/32", "::/0"]);
        assert_eq!(list.ranges(), 2);
        for (address, is_inside) in [("255.255.255.255", true), ("255.255.255.253", false), ("::", true), ("::1", true)]
        {
            assert_eq!(list.contains(address.parse().expect(address)), is_inside, "{address}");
        }
    }

    #[test]
    fn ipv4_and_ipv6_are_separate_and_mapped_addresses_count_as_ipv4() {
        let list = set(&["8.8.8.0/24"]);
        let cases = [("8.8.8.8", true), ("::ffff:8.8.8.8", true), ("::8.8.8.8", false), ("64:ff9b::808:808", false)];
        for (address, is_inside) in cases {
            assert_eq!(list.contains(address.parse().expect(address)), is_inside, "{address}");
        }
        assert!(!set(&["::/0"]).contains(IpAddr::from([8, 8, 8, 8])));
        assert!(RangeSet::default().is_empty() && !RangeSet::default().contains(IpAddr::from([8, 8, 8, 8])));
    }

    #[test]
    fn a_list_that_lost_more_than_half_of_an_address_family_is_detected() {
        let before = set(&["10.0.0.0/24", "10.0.1.0/24", "2001:db8::/64", "2001:db8:1::/64"]);
        for (after, lost) in [
            (&["10.0.0.0/24", "10.0.1.0/24", "2001:db8::/64", "2001:db8:1::/64", "11.0.0.0/8"][..], false),
            (&["10.0.0.0/24", "2001:db8::/64"], false),
            (&["10.0.0.0/25", "10.0.1.0/25", "2001:db8::/64"], false),
            (&["10.0.0.0/25", "2001:db8::/48", "2001:db8:1::/64"], true),
            (&["10.0.0.0/23", "2001:db8::/65"], true),
            // The new list has as many addresses as the previous list, but different addresses.
            (&["10.9.0.0/23", "2001:db8::/63", "2001:db8:1::/64"], true),
            (&["10.0.0.0/23"], true),
            (&["2001:db8::/32"], true),
        ] {
            assert_eq!(before.lost_most_in(&set(after)), lost, "{after:?}");
        }
        assert!(!RangeSet::default().lost_most_in(&before));
        assert!(set(&["::/0", "0.0.0.0/0"]).lost_most_in(&RangeSet::default()));
        assert!(!set(&["::/0", "0.0.0.0/0"]).lost_most_in(&set(&["::/1", "0.0.0.0/1"])));
    }

    fn prefix() -> impl Strategy<Value = Network> {
        // The prefixes contain only a few byte values, so that ranges often overlap, touch or
        // repeat.
        let v4 = (prop::array::uniform4(prop::sample::select(vec![0_u8, 1, 2, 127, 128, 255])), 0_u32..=32).prop_map(
            |(bytes, length)| {
                let bits = u32::from_be_bytes(bytes) & u32::MAX.checked_shl(32 - length).unwrap_or(0);
                format!("{}/{length}", std::net::Ipv4Addr::from_bits(bits))
            },
        );
        let v6 =
            (prop::array::uniform8(prop::sample::select(vec![0_u16, 1, 0x2001, 0x7FFF, 0x8000, 0xFFFF])), 0_u32..=128)
                .prop_map(|(segments, length)| {
                    let bits =
                        std::net::Ipv6Addr::from(segments).to_bits() & u128::MAX.checked_shl(128 - length).unwrap_or(0);
                    format!("{}/{length}", std::net::Ipv6Addr::from_bits(bits))
                });
        prop_oneof![v4, v6].prop_map(|text| text.parse().expect("a prefix"))
    }

    /// Reports whether a prefix contains the address. Compares each prefix bit by bit.
    fn scan(prefixes: &[Network], address: IpAddr) -> bool {
        let bytes = |address: IpAddr| match address.to_canonical() {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        };
        let address = bytes(address);
        prefixes.iter().any(|prefix| {
            let first = match prefix.first() {
                IpAddr::V4(first) => first.octets().to_vec(),
                IpAddr::V6(first) => first.octets().to_vec(),
            };
            let bit = |bytes: &[u8], at: usize| bytes[at / 8] >> (7 - at % 8) & 1;
            first.len() == address.len() && (0..prefix.length() as usize).all(|at| bit(&first, at) == bit(&address, at))
        })
    }

    proptest! {
        #[test]
        fn set_membership_equals_a_scan_of_the_prefixes(
            prefixes in prop::collection::vec(prefix(), 0..40),
            others in prop::collection::vec(any::<IpAddr>(), 0..8),
        ) {
            let list: RangeSet = prefixes.iter().copied().collect();
            // The first and the last address of every range, and the addresses directly outside the
            // range.
            let edges = prefixes.iter().flat_map(|prefix| {
                let v4 = prefix.v4().into_iter().flat_map(|(first, last)| {
                    [first, last, first.wrapping_sub(1), last.wrapping_add(1)].map(|bits| IpAddr::from(bits.to_be_bytes()))
                });
                let v6 = prefix.v6().into_iter().flat_map(|(first, last)| {
                    [first, last, first.wrapping_sub(1), last.wrapping_add(1)].map(|bits| IpAddr::from(bits.to_be_bytes()))
                });
                v4.chain(v6).collect::<Vec<_>>()
            });
            for address in edges.chain(others.iter().copied()) {
                prop_assert_eq!(list.contains(address), scan(&prefixes, address), "{}", address);
                if let IpAddr::V4(v4) = address {
                    prop_assert_eq!(list.contains(v4.to_ipv6_mapped().into()), list.contains(address), "{}", address);
                }
            }
            let pairs: Vec<_> = list.v6.iter().collect();
            prop_assert!(pairs.windows(2).all(|pair| pair[0].1 + 1 < pair[1].0), "{:?}", pairs);
        }

        #[test]
        fn the_count_of_addresses_that_two_lists_share_equals_a_scan(
            left in prop::collection::vec((0_u8..64, 0_u8..8), 0..12),
            right in prop::collection::vec((0_u8..64, 0_u8..8), 0..12),
        ) {
            let ranges = |pairs: &[(u8, u8)]| {
                Ranges::<u32>::of(pairs.iter().map(|(first, more)| ((*first).into(), u32::from(first + more))).collect())
            };
            let (left, right) = (ranges(&left), ranges(&right));
            let shared = (0..100).filter(|address| left.contains(*address) && right.contains(*address)).count();
            prop_assert_eq!(left.shared_with(&right), shared as u128);
            prop_assert_eq!(left.addresses(), (0..100).filter(|address| left.contains(*address)).count() as u128);
        }
    }

    proptest! {
        #[test]
        fn the_search_index_returns_the_position_of_a_plain_binary_search(
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
                prop_assert_eq!(index.count_up_to(&sorted, number), place, "{} in {:?}", number, sorted);
            }
        }
    }
}
