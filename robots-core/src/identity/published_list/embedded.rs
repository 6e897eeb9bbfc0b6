//! Embedded copies of published lists, 59 KB in total, for a first start without a network.
//!
//! The copies are already old when this crate is compiled, so they can verify claims but never
//! refute them. The licences of the copies are in `ranges_notice.txt`.

use std::sync::LazyLock;

use super::range_list::RangeList;
use crate::agent::Network;

const SNAPSHOT: &str = include_str!("ranges_snapshot.txt");

static LISTS: LazyLock<Box<[EmbeddedList]>> = LazyLock::new(|| read(SNAPSHOT));

/// An embedded copy of a published list.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EmbeddedList {
    /// URL of the operator's published list.
    pub url: &'static str,
    /// Date of the copy, for example `2026-09-02`.
    pub fetched: &'static str,
    /// Name and version of the collection of lists that the copy is from.
    pub via: &'static str,
    /// Licence of the collection.
    pub licence: &'static str,
    /// The list. The creation time of the list is the date of the copy.
    pub list: RangeList,
}

impl EmbeddedList {
    /// Returns the embedded copies, one per list URL. The first call parses them, which takes about
    /// a millisecond.
    pub fn all() -> &'static [Self] {
        &LISTS
    }
}

/// Parses the file that contains all embedded lists. Skips invalid prefixes; a test checks that the
/// file contains none.
fn read(text: &'static str) -> Box<[EmbeddedList]> {
    let lists = text.split("\n[").skip(1).filter_map(|section| {
        let (url, rest) = section.split_once("]\n")?;
        let (mut fetched, mut via, mut licence) = ("", "", "");
        let mut prefixes: Vec<Network> = Vec::new();
        for line in rest.lines() {
            match line.split_once(" = ") {
                Some(("fetched", value)) => fetched = value,
                Some(("via", value)) => via = value,
                Some(("licence", value)) => licence = value,
                _ => prefixes.extend(line.split(' ').filter_map(|word| word.parse::<Network>().ok())),
            }
        }
        let list = RangeList {
            prefixes: prefixes.len(),
            set: prefixes.into_iter().collect(),
            skipped: 0,
            created: Some(fetched.into()),
        };
        Some(EmbeddedList { url, fetched, via, licence, list })
    });
    lists.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::RangeSet;

    #[test]
    fn every_prefix_in_the_snapshot_is_parsed() {
        let lists = EmbeddedList::all();
        assert_eq!(lists.len(), SNAPSHOT.lines().filter(|line| line.starts_with('[')).count());
        let is_prefixes = |line: &&str| !line.starts_with(['#', '[']) && !line.contains(" = ");
        let words = SNAPSHOT.lines().filter(is_prefixes).flat_map(str::split_whitespace).count();
        assert_eq!((lists.len(), words), (17, 3088));
        assert_eq!(lists.iter().map(|list| list.list.prefixes).sum::<usize>(), words);
        for list in lists {
            assert!(list.url.starts_with("https://") && list.fetched.starts_with("2026-") && !list.via.is_empty());
            assert!(["CC0-1.0", "MIT"].contains(&list.licence), "{list:?}");
        }
    }

    /// The MIT License requires that every copy contains its notice.
    #[test]
    fn the_licence_notice_names_every_collection() {
        let notice = include_str!("ranges_notice.txt");
        for list in EmbeddedList::all() {
            assert!(notice.contains(&format!("{}: ", list.via)), "{list:?}");
        }
        assert!(notice.contains("Permission is hereby granted, free of charge"));
    }

    /// Compares the embedded file with the larger file that it was made from, if that file is
    /// available.
    #[test]
    fn the_embedded_snapshot_equals_the_larger_file_it_was_made_from() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/identity/ranges_snapshot.json");
        let Ok(text) = std::fs::read(path) else {
            assert!(std::env::var_os("CI").is_none(), "{path} is missing, and CI has to run it");
            return;
        };
        let lists: Vec<serde_json::Value> = serde_json::from_slice(&text).expect("JSON");
        assert_eq!(lists.len(), EmbeddedList::all().len());
        for (list, embedded) in lists.iter().zip(EmbeddedList::all()) {
            let prefixes: Vec<Network> = list["prefixes"]
                .as_array()
                .expect("prefixes")
                .iter()
                .map(|text| text.as_str().expect("text").parse().expect("a prefix"))
                .collect();
            assert_eq!((list["url"].as_str(), prefixes.len()), (Some(embedded.url), embedded.list.prefixes));
            assert!(list["fetched"].as_str().is_some_and(|fetched| fetched.starts_with(embedded.fetched)));
            assert_eq!(prefixes.into_iter().collect::<RangeSet>(), embedded.list.set);
        }
    }

    /// Tests IPv4, IPv6 and mapped addresses directly before and after every range, and addresses
    /// at random distances from the start of the range. The bench `identity` tests a million
    /// addresses in the same way.
    #[test]
    fn membership_equals_a_scan_of_all_prefixes() {
        use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

        let all: Vec<Network> = EmbeddedList::all().iter().flat_map(|list| list_prefixes(list.url)).collect();
        assert_eq!(all.len(), 3088);
        let set: RangeSet = all.iter().copied().collect();
        // The test compares numbers instead of networks, because numbers are faster to compare.
        let v4: Vec<(u32, u32)> = all.iter().filter_map(Network::v4).collect();
        let v6: Vec<(u128, u128)> = all.iter().filter_map(Network::v6).collect();
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let mut random = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let (mut checked, mut inside) = (0_u32, 0_u32);
        let mut check = |address: IpAddr, is_inside: bool| {
            assert_eq!(set.contains(address), is_inside, "{address}");
            checked += 1;
            inside += u32::from(is_inside);
        };
        let step = 8;
        for (first, last) in &v4 {
            for number in 0..step {
                let bits = match number {
                    0 => first.wrapping_sub(1),
                    1 => last.wrapping_add(1),
                    _ => first.wrapping_add((random() as u32) >> (random() % 32)),
                };
                let is_inside = v4.iter().any(|(first, last)| (*first..=*last).contains(&bits));
                check(Ipv4Addr::from_bits(bits).into(), is_inside);
                check(Ipv4Addr::from_bits(bits).to_ipv6_mapped().into(), is_inside);
            }
        }
        for (first, last) in &v6 {
            for number in 0..step {
                let wide = u128::from(random()) << 64 | u128::from(random());
                let bits = match number {
                    0 => first.wrapping_sub(1),
                    1 => last.wrapping_add(1),
                    _ => first.wrapping_add(wide >> (random() % 128)),
                };
                let is_inside = v6.iter().any(|(first, last)| (*first..=*last).contains(&bits));
                check(Ipv6Addr::from_bits(bits).into(), is_inside);
            }
        }
        assert!(checked > 30_000 && inside > 5_000 && checked - inside > 5_000, "{checked} {inside}");
    }

    fn list_prefixes(url: &str) -> Vec<Network> {
        let section = SNAPSHOT.split("\n[").find(|section| section.starts_with(url)).expect("a list");
        section.split_whitespace().filter_map(|word| word.parse().ok()).collect()
    }
}
