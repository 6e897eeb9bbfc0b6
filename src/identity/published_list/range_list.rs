//! A list that an operator publishes.

use super::embedded::EmbeddedList;
use super::entries::MOST_PREFIXES;
use super::range_list_error::{RangeListError, RangeListErrorKind};
use super::{json, text};
use crate::agent::Network;
use crate::identity::range_set::RangeSet;

/// The largest published list has 100 KiB.
const LARGEST: usize = 1 << 20;

/// The shortest prefixes that are taken for a part of one operator's network.
const SHORTEST_V4: u32 = 8;
const SHORTEST_V6: u32 = 19;

/// The addresses that an operator publishes for a crawler.
///
/// Three formats are read: the JSON object that search engines and AI crawlers publish, also as JAFAR
/// (draft-illyes-webbotauth-jafar), a prefix a line, and the CSV of a geofeed (RFC 8805). Whatever is not clearly such a list
/// is an error, because an empty list makes impostors of genuine crawlers.
///
/// ```
/// use tower_robots::identity::{RangeList, RangeListErrorKind};
///
/// let list = RangeList::parse(br#"{"creationTime":"2026-09-02T14:46:00","prefixes":[{"ipv4Prefix":"66.249.64.0/27"}]}"#)?;
/// assert!(list.set().contains("66.249.64.1".parse()?));
///
/// // What an old URL answers once its list has moved.
/// let moved = RangeList::parse(br#"{"Action needed":"update the location you're fetching from"}"#).unwrap_err();
/// assert_eq!(moved.kind(), RangeListErrorKind::NoPrefixes);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct RangeList {
    set: RangeSet,
    prefixes: usize,
    skipped: usize,
    created: Option<Box<str>>,
}

impl RangeList {
    /// Reads a list.
    ///
    /// # Errors
    ///
    /// Where the octets are no list in a format that is read, hold no valid prefix or more than 50,000, are more than 1 MiB, or
    /// hold a prefix that is shorter than `/8` (IPv4) or `/19` (IPv6).
    pub fn parse(octets: &[u8]) -> Result<Self, RangeListError> {
        let error = RangeListError::new;
        if octets.len() > LARGEST {
            let message = format!("the list has {} octets: at most {LARGEST} are read", octets.len());
            return Err(error(RangeListErrorKind::TooLarge, message));
        }
        let octets = octets.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(octets);
        let entries = match octets.trim_ascii_start().first() {
            Some(b'{') => json::read(octets)?,
            // A JSON array has no `prefixes`, and its error says so.
            Some(b'[') => json::read(octets)?,
            _ => text::read(octets)?,
        };
        if entries.prefixes.is_empty() {
            let message = format!("the list holds no valid prefix: {}", text::CONVERT);
            return Err(error(RangeListErrorKind::Empty, message));
        }
        if entries.prefixes.len() > MOST_PREFIXES {
            let message = format!("the list has {} prefixes: at most {MOST_PREFIXES} are read", entries.prefixes.len());
            return Err(error(RangeListErrorKind::TooMany, message));
        }
        if let Some(wide) = entries.prefixes.iter().find(|prefix| is_too_wide(prefix)) {
            let message = format!(
                "the prefix {wide} holds a large part of the Internet: prefixes of at least /{SHORTEST_V4} (IPv4) and \
                 /{SHORTEST_V6} (IPv6) are taken"
            );
            return Err(error(RangeListErrorKind::TooWide, message));
        }
        let prefixes = entries.prefixes.len();
        Ok(Self {
            set: entries.prefixes.into_iter().collect(),
            prefixes,
            skipped: entries.skipped,
            created: entries.created.map(Into::into),
        })
    }

    /// Checks that this list may take the place of one that was fetched before.
    ///
    /// An embedded list is none: it is older than any that is fetched, and may have lost most of its addresses since.
    ///
    /// # Errors
    ///
    /// Where more than half of the addresses of the list before, of either family, are missing. Then the list before stays.
    pub fn check_after(&self, before: &RangeSet) -> Result<(), RangeListError> {
        if !before.lost_most_in(&self.set) {
            return Ok(());
        }
        let message = format!(
            "the list lacks more than half of the addresses of the list before: its {} prefixes are not taken",
            self.prefixes
        );
        Err(RangeListError::new(RangeListErrorKind::Shrunk, message))
    }

    /// The addresses.
    #[must_use]
    pub const fn set(&self) -> &RangeSet {
        &self.set
    }

    /// The addresses, by value.
    #[must_use]
    pub fn into_set(self) -> RangeSet {
        self.set
    }

    /// How many valid prefixes it has.
    #[must_use]
    pub const fn prefixes(&self) -> usize {
        self.prefixes
    }

    /// How many entries were skipped because they are no valid prefix.
    #[must_use]
    pub const fn skipped(&self) -> usize {
        self.skipped
    }

    /// When the operator made it, as written: few write it as RFC 3339 has it.
    #[must_use]
    pub fn created(&self) -> Option<&str> {
        self.created.as_deref()
    }
}

/// A copy that is compiled in.
impl From<&EmbeddedList> for RangeList {
    fn from(list: &EmbeddedList) -> Self {
        let created = Some(list.fetched().into());
        Self { set: list.set().clone(), prefixes: list.prefixes(), skipped: 0, created }
    }
}

fn is_too_wide(prefix: &Network) -> bool {
    prefix.length() < if prefix.first().is_ipv4() { SHORTEST_V4 } else { SHORTEST_V6 }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;

    fn kind(octets: impl AsRef<[u8]>) -> RangeListErrorKind {
        RangeList::parse(octets.as_ref()).expect_err("no list").kind()
    }

    #[test]
    fn a_list_is_neither_too_large_nor_too_long() {
        let mut text = String::new();
        for number in 0..MOST_PREFIXES as u32 {
            writeln!(text, "{}", std::net::Ipv4Addr::from_bits(0x0800_0000 + 2 * number)).expect("text");
        }
        let list = RangeList::parse(text.as_bytes()).expect("a list");
        assert_eq!((list.prefixes(), list.set().ranges()), (MOST_PREFIXES, MOST_PREFIXES));
        text.push_str("9.9.9.9\n");
        assert_eq!(kind(&text), RangeListErrorKind::TooMany);
        let mut large = b"9.9.9.9\n".to_vec();
        large.resize(LARGEST, b'\n');
        assert!(RangeList::parse(&large).is_ok());
        large.push(b'\n');
        assert_eq!(kind(&large), RangeListErrorKind::TooLarge);
    }

    #[test]
    fn a_prefix_that_holds_a_large_part_of_the_internet_is_refused() {
        for (text, is_list) in [
            ("8.0.0.0/8", true),
            ("8.0.0.0/7", false),
            ("0.0.0.0/0", false),
            ("::ffff:0:0/96", false),
            ("2001:4000::/19", true),
            ("2001:4000::/18", false),
            ("::/0", false),
        ] {
            assert_eq!(RangeList::parse(text.as_bytes()).is_ok(), is_list, "{text}");
            if !is_list {
                assert_eq!(kind(format!("9.9.9.9\n{text}\n")), RangeListErrorKind::TooWide);
            }
        }
    }

    #[test]
    fn a_list_that_lost_most_of_its_addresses_does_not_take_the_place_of_the_one_before() {
        let list = |text: &str| RangeList::parse(text.as_bytes()).expect(text);
        let before = list("8.8.0.0/24\n8.8.2.0/24\n2a00::/32");
        assert_eq!(list("8.8.0.0/24\n2a00::/32").check_after(before.set()), Ok(()));
        assert_eq!(list("8.8.0.0/16\n2a00::/32").check_after(before.set()), Ok(()));
        let error = list("8.8.0.0/25\n2a00::/32").check_after(before.set()).expect_err("shrunk");
        assert_eq!(error.kind(), RangeListErrorKind::Shrunk);
        assert!(list("8.8.0.0/16").check_after(before.set()).is_err());
    }
}
