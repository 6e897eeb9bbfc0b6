//! An index of names by their first word. For each word of a header, one lookup finds every name
//! that may begin at this word. This module also contains [`Kinds`], which determine the
//! [`Class`](super::Class) of an agent.
//!
//! An automaton over all names would step through every byte of the header, and would also report
//! matches inside words. For a file with ten names, an automaton takes kilobytes, but this index
//! takes only a few hundred bytes.

use std::cmp::Reverse;
use std::sync::LazyLock;

pub(super) const fn is_word_byte(byte: u8) -> bool {
    WORD_BYTES[byte as usize]
}

/// The results of [`is_word_byte`] for all bytes. A table is fast: [`is_word_byte`] is called for
/// every byte of every header.
const WORD_BYTES: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = (byte as u8).is_ascii_alphanumeric() || is_joint(byte as u8);
        byte += 1;
    }
    table
};

/// Reports whether a byte is a hyphen, an underscore or a dot. These bytes may occur inside a word,
/// as in `Googlebot-Image` and `archive.org_bot`, but are stripped from both ends of a word.
pub(super) const fn is_joint(byte: u8) -> bool {
    matches!(byte, b'-' | b'_' | b'.')
}

pub(super) const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// Reports whether `text` ends with `end`, ignoring case.
pub(super) fn ends_with(text: &[u8], end: &[u8]) -> bool {
    text.len().checked_sub(end.len()).is_some_and(|start| text[start..].eq_ignore_ascii_case(end))
}

/// A case-insensitive hash of a word's length, its first 64 bytes and its last eight bytes. The
/// bytes in between are skipped, so long words take no extra time. Hashes may collide, so a lookup
/// also compares the words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WordHash(u32);

impl WordHash {
    #[inline]
    pub(super) fn of(word: &[u8]) -> Self {
        const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;
        /// Bit 5 of each byte. Setting this bit makes upper-case and lower-case letters equal.
        /// Other bytes that occur in words (digits, `-`, `_` and `.`) stay distinct.
        const FOLD: u64 = 0x2020_2020_2020_2020;
        let (head, tail) = match (word.first_chunk(), word.last_chunk()) {
            (Some(head), Some(tail)) => (u64::from_le_bytes(*head), u64::from_le_bytes(*tail)),
            _ => match (word.first_chunk(), word.last_chunk()) {
                (Some(head), Some(tail)) => (u32::from_le_bytes(*head).into(), u32::from_le_bytes(*tail).into()),
                _ => (word.iter().fold(0, |head, byte| head << 8 | u64::from(*byte)), 0),
            },
        };
        let ends = (head | FOLD).rotate_left(5) ^ (tail | FOLD) ^ (word.len() as u64).rotate_left(40);
        let mut mixed = ends.wrapping_mul(SPREAD);
        if word.len() > 16 {
            let (middle, _) = word[8..word.len().min(64)].as_chunks();
            for chunk in middle {
                mixed = (mixed.rotate_left(23) ^ (u64::from_le_bytes(*chunk) | FOLD)).wrapping_mul(SPREAD);
            }
        }
        Self((mixed >> 32) as u32)
    }
}

#[derive(Clone, Debug)]
pub(super) struct NameIndex {
    /// Hash table of the names. A slot contains 0 if it is empty, and otherwise an index in `names`
    /// plus one. The number of slots is a power of two, and at most half of them are full.
    slots: Box<[u32]>,
    /// The names, sorted by hash, so that names with the same first word are adjacent.
    names: Box<[Named]>,
    /// Length of the longest first word, in bytes. Longer words need no lookup.
    pub(super) longest_word: usize,
}

#[derive(Clone, Debug)]
pub(super) struct Named {
    hash: WordHash,
    /// The name in lower case, without `-`, `_` and `.` at its ends.
    text: Box<[u8]>,
    /// Number of bytes before the first word of the name, for example 1 in `!Susie`.
    lead: usize,
    pub(super) value: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub(super) enum NameEnd {
    /// A version follows the name in the same word: `FooBot2`, `FooBot-1.0`, `FooBot_v2`. If other
    /// letters follow, as in `FooBot-Image`, the word is another name.
    Versioned,
    /// The name ends at the end of a word. `Whole` is preferred to `Versioned`.
    Whole,
}

/// Maximum number of names with the same first word. Each of these names is compared with the
/// header at every occurrence of this word, and a header may contain the word thousands of times.
const MAX_PER_WORD: usize = 256;

impl NameIndex {
    /// Creates an index that maps each name to its value. Leaves out names without letters and
    /// digits, because they cannot be found. If more than [`MAX_PER_WORD`] names have the same
    /// first word, keeps only the longest [`MAX_PER_WORD`] of them.
    pub(super) fn new<'n>(names: impl IntoIterator<Item = (&'n [u8], u32)>) -> Self {
        let mut names: Vec<Named> = names.into_iter().filter_map(|(name, value)| Named::new(name, value)).collect();
        let order = |name: &Named| (name.hash.0, Reverse(name.len()));
        names.sort_by(|a, b| (order(a), &a.text, a.value).cmp(&(order(b), &b.text, b.value)));
        names.dedup_by(|later, first| later.text == first.text);
        let (mut last, mut count) = (None, 0);
        names.retain(|name| {
            count = if last.replace(name.hash) == Some(name.hash) { count + 1 } else { 1 };
            count <= MAX_PER_WORD
        });
        let mut slots = vec![0; (names.len() * 2).next_power_of_two()].into_boxed_slice();
        for (at, name) in names.iter().enumerate() {
            if at > 0 && names[at - 1].hash == name.hash {
                continue;
            }
            let mut slot = name.hash.0 as usize & (slots.len() - 1);
            while slots[slot] != 0 {
                slot = (slot + 1) & (slots.len() - 1);
            }
            slots[slot] = u32::try_from(at + 1).unwrap_or(0);
        }
        let longest_word = names.iter().map(|name| name.first_word().len()).max().unwrap_or(0);
        Self { slots, names: names.into(), longest_word }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    #[inline]
    pub(super) fn with_first_word(&self, hash: WordHash) -> impl Iterator<Item = &Named> {
        let mut slot = hash.0 as usize & (self.slots.len() - 1);
        let mut first = self.names.len();
        // The loop always reaches an empty slot, because at most half of the slots are full.
        while let Some(at) = (self.slots[slot] as usize).checked_sub(1) {
            if self.names[at].hash == hash {
                first = at;
                break;
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        self.names[first..].iter().take_while(move |name| name.hash == hash)
    }

    /// Returns the value stored for the one-word name `word`. `hash` must be the hash of `word`.
    #[inline]
    pub(super) fn word(&self, hash: WordHash, word: &[u8]) -> Option<u32> {
        self.with_first_word(hash).find(|name| name.text.eq_ignore_ascii_case(word)).map(|name| name.value)
    }

    pub(super) fn exact(&self, name: &[u8]) -> Option<u32> {
        let sought = Named::new(name, 0)?;
        self.with_first_word(sought.hash).find(|name| name.text == sought.text).map(|name| name.value)
    }
}

impl Named {
    fn new(name: &[u8], value: u32) -> Option<Self> {
        let end = name.iter().rposition(|byte| !is_joint(*byte)).map_or(0, |at| at + 1);
        let start = name[..end].iter().position(|byte| !is_joint(*byte))?;
        let text: Box<[u8]> = name[start..end].to_ascii_lowercase().into();
        let lead = text.iter().position(u8::is_ascii_alphanumeric)?;
        let mut named = Self { hash: WordHash(0), text, lead, value };
        named.hash = WordHash::of(named.first_word());
        Some(named)
    }

    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    /// Returns the first word of the name. Trailing `-`, `_` and `.` are stripped, as in the words
    /// of a [`Header`](super::header::Header).
    fn first_word(&self) -> &[u8] {
        let word = &self.text[self.lead..];
        let end = word.iter().position(|byte| !is_word_byte(*byte)).unwrap_or(word.len());
        let end = word[..end].iter().rposition(|byte| !is_joint(*byte)).map_or(0, |at| at + 1);
        &word[..end]
    }

    /// Returns how the name ends in `bytes`, and the position of this end. `None` if `bytes` does
    /// not contain the name with its first word at `at`.
    pub(super) fn end(&self, bytes: &[u8], at: usize) -> Option<(NameEnd, usize)> {
        let mut at = at.checked_sub(self.lead)?;
        for byte in &self.text {
            if *byte == b' ' {
                let blanks = bytes[at..].iter().take_while(|byte| is_blank(**byte) || **byte == b'+').count();
                if blanks == 0 {
                    return None;
                }
                at += blanks;
            } else {
                if !bytes.get(at)?.eq_ignore_ascii_case(byte) {
                    return None;
                }
                at += 1;
            }
        }
        let rest = &bytes[at..];
        let joints = rest.iter().take_while(|byte| is_joint(**byte)).count();
        let end = match (joints, &rest[joints..]) {
            (_, [next, ..]) if next.is_ascii_digit() => NameEnd::Versioned,
            (1.., [b'v' | b'V', next, ..]) if next.is_ascii_digit() => NameEnd::Versioned,
            (_, [next, ..]) if next.is_ascii_alphabetic() => return None,
            _ => NameEnd::Whole,
        };
        Some((end, at))
    }
}

/// The kinds of a word, as a set of bits. The kinds of all words of a header determine the class of
/// the agent. The word lists must not contain names of crawlers, which belong in the registry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Kinds(u32);

impl Kinds {
    /// A word that all browsers send; never a crawler's name.
    pub(super) const BROWSER: Self = Self(1);
    /// A browser engine. A header that contains an engine and `Mozilla/` or `Opera/` looks like the
    /// header of a browser.
    pub(super) const ENGINE: Self = Self(1 << 1);
    /// A system, device or machine; never a crawler's name.
    pub(super) const PLATFORM: Self = Self(1 << 2);
    /// An everyday word that occurs in many headers. An everyday word can be a crawler's name only
    /// if it is the leading word of a header.
    pub(super) const GENERIC: Self = Self(1 << 3);
    pub(super) const LIBRARY: Self = Self(1 << 4);
    pub(super) const HEADLESS: Self = Self(1 << 5);
    /// A word in headers of applications on people's devices.
    pub(super) const APP: Self = Self(1 << 6);
    /// A browser that does not call itself Mozilla.
    pub(super) const PLAIN_BROWSER: Self = Self(1 << 7);

    /// A word that changes the meaning of the following words.
    pub(super) const SYNTAX: Self = Self(1 << 8);
    /// A word that precedes the model of a device in a comment.
    pub(super) const DEVICE: Self = Self(1 << 9);
    /// A word in the headers of televisions and of old phones, which have no ordinary browsers.
    pub(super) const APPLIANCE: Self = Self(1 << 10);
    /// A runtime or library of applications on people's devices.
    pub(super) const RUNTIME: Self = Self(1 << 11);
    /// A program that a person starts, such as a player, a reader or a downloader. A URL after the
    /// name of such a program belongs to the program's maker.
    pub(super) const PROGRAM: Self = Self(1 << 12);
    /// An operating system for people's computers.
    pub(super) const PERSONAL: Self = Self(1 << 13);
    pub(super) const WEB_VIEW: Self = Self(1 << 14);

    pub(super) const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) const fn only_device_kinds(self) -> Self {
        Self(self.0 & (Self::APP.0 | Self::APPLIANCE.0))
    }

    /// Reports whether all browsers send words of these kinds. A robots.txt group for such a word
    /// does not apply to unregistered agents.
    pub(super) const fn is_common_to_browsers(self) -> bool {
        self.has(Self::BROWSER.with(Self::PLATFORM))
    }
}

/// The word lists. Each line contains a kind and words of this kind.
const WORDS: &str = include_str!("words.txt");

/// The names of the kinds in the word lists, in the order of their bits.
const KINDS: &str = "browser engine platform generic library headless app plain-browser syntax device appliance runtime \
    program personal web-view";

fn lists() -> impl Iterator<Item = (&'static str, Kinds)> {
    WORDS.lines().filter_map(|line| {
        let (list, words) = line.split_once(": ")?;
        KINDS.split_ascii_whitespace().position(|kind| kind == list).map(|bit| (words, Kinds(1 << bit)))
    })
}

static LEXICON: LazyLock<NameIndex> = LazyLock::new(|| {
    let mut words: std::collections::BTreeMap<&[u8], Kinds> = std::collections::BTreeMap::new();
    for (list, kind) in lists() {
        for word in list.split_ascii_whitespace() {
            let kinds = words.entry(word.as_bytes()).or_default();
            *kinds = kinds.with(kind);
        }
    }
    NameIndex::new(words.into_iter().map(|(word, kinds)| (word, kinds.0)))
});

#[inline]
pub(super) fn kinds(word: &[u8], hash: WordHash) -> Kinds {
    LEXICON.word(hash, word).map_or(Kinds::default(), Kinds)
}

/// Top-level domains of hosts that occur as names of products. Compared in lower case only, because
/// `ASP.NET` is not a host.
const DOMAINS: &str = "com net org info biz edu gov io ai co eu us uk de fr nl be at ch it es pt pl cz sk hu ro ru ua by \
    se no dk fi is ie gr tr il ir in jp cn kr tw hk sg au nz br ar mx cl ca za fm tv me ly cc ws to";

/// Sites that host source code and packages.
const FORGES: &str = "github.com gitlab.com codeberg.org bitbucket.org sourceforge.net sr.ht git.sr.ht pypi.org crates.io \
    npmjs.com packagist.org rubygems.org metacpan.org hackage.haskell.org pear.php.net";

pub(super) fn is_forge(host: &[u8]) -> bool {
    let host = host.strip_prefix(b"www.").unwrap_or(host);
    FORGES.split_ascii_whitespace().any(|forge| forge.as_bytes().eq_ignore_ascii_case(host))
}

/// Reports whether a word is a host name, such as `example.com` in `example.com/1.0`. Returns
/// `false` for names of applications (`com.example.app`). Also returns `false` for [`FORGES`],
/// because many programs have their home pages on these sites.
pub(super) fn is_host(word: &[u8]) -> bool {
    let Some(dot) = word.iter().rposition(|byte| *byte == b'.') else { return false };
    let (name, domain) = (&word[..dot], &word[dot + 1..]);
    let reversed = [&b"com."[..], b"org.", b"net.", b"io."].iter().any(|start| word.starts_with(start));
    !reversed
        && !is_forge(word)
        && name.iter().any(u8::is_ascii_alphabetic)
        && !name.contains(&b'_')
        && DOMAINS.split_ascii_whitespace().any(|known| known.as_bytes() == domain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::header::Header;

    fn ends(name: &str, header: &str, at: usize) -> Option<NameEnd> {
        NameIndex::new([(name.as_bytes(), 0)]).names[0].end(header.as_bytes(), at).map(|(end, _)| end)
    }

    #[test]
    fn every_line_of_the_word_list_has_a_kind_and_every_kind_has_words() {
        let lines = WORDS.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        assert_eq!(lines.count(), lists().count());
        let (all, last) = (lists().fold(Kinds::default(), |all, (_, kind)| all.with(kind)), Kinds::WEB_VIEW.0);
        assert_eq!(all, Kinds(last | (last - 1)));
        for (word, kind) in [("mozilla", Kinds::BROWSER), ("servo", Kinds::ENGINE), ("wv", Kinds::WEB_VIEW)] {
            assert!(kinds(word.as_bytes(), WordHash::of(word.as_bytes())).has(kind), "{word}");
        }
    }

    #[test]
    fn a_name_ends_at_a_boundary_or_before_a_version() {
        assert_eq!(ends("FooBot", "foobot/1.0", 0), Some(NameEnd::Whole));
        assert_eq!(ends("FooBot", "x FOOBOT. y", 2), Some(NameEnd::Whole));
        for header in ["FooBot2", "FooBot-1.0", "FooBot_v2.1", "FooBot.3"] {
            assert_eq!(ends("FooBot", header, 0), Some(NameEnd::Versioned), "{header}");
        }
        assert_eq!(ends("FooBot", "FooBot-Image", 0), None);
        assert_eq!(ends("FooBot", "foobot.com", 0), None);
        assert_eq!(ends("FooBot", "FooBots", 0), None);
        assert_eq!(ends("FooBot", "FooBo", 0), None);
        assert_eq!(ends("Sogou web spider", "Sogou+web  spider(x", 0), Some(NameEnd::Whole));
        assert_eq!(ends("!Susie", "(!susie)", 2), Some(NameEnd::Whole));
        assert_eq!(ends("!Susie", "susie", 0), None);
    }

    #[test]
    fn only_the_longest_of_many_names_with_the_same_first_word_are_kept() {
        let names: Vec<_> = (0..1000).map(|number| format!("Foo {number}")).chain(["Bar 1".to_owned()]).collect();
        let index = NameIndex::new(names.iter().zip(0..).map(|(name, value)| (name.as_bytes(), value)));
        let found = |word: &str| index.with_first_word(WordHash::of(word.as_bytes()));
        assert_eq!((found("foo").count(), found("bar").count()), (MAX_PER_WORD, 1));
        assert!(found("foo").all(|name| name.len() == "Foo 999".len()));
    }

    #[test]
    fn names_are_found_by_first_word() {
        let names = ["archive.org_bot", "Sogou", "Sogou web spider", "Y!J-BRW", "_foo_", "***"];
        let index = NameIndex::new(names.iter().zip(0..).map(|(name, value)| (name.as_bytes(), value)));
        let found = |word: &str| index.with_first_word(WordHash::of(word.as_bytes())).map(|name| name.value);
        assert_eq!(found("Archive.ORG_bot").collect::<Vec<_>>(), [0]);
        assert_eq!(found("sogou").collect::<Vec<_>>(), [2, 1]);
        assert_eq!(found("y").collect::<Vec<_>>(), [3]);
        assert_eq!(found("foo").collect::<Vec<_>>(), [4]);
        assert_eq!(found("nobody").count(), 0);
        assert_eq!(index.exact(b"SOGOU WEB SPIDER"), Some(2));
        assert_eq!(index.exact(b"sogou web"), None);
        assert_eq!(NameIndex::new([]).with_first_word(WordHash::of(b"x")).count(), 0);
    }

    #[test]
    fn every_listed_word_is_found_alone_and_not_inside_longer_words() {
        let mut wrong = Vec::new();
        for (list, kind) in lists() {
            for word in list.split_ascii_whitespace() {
                let found = |text: &String| Header::read(text.as_bytes()).words.iter().any(|word| word.kinds.has(kind));
                let upper = word.to_uppercase();
                let alone = [
                    word.to_owned(),
                    format!("{upper}/1.0"),
                    format!("({word})"),
                    format!("Foo, {word}"),
                    format!("{word} Foo"),
                ];
                let inside = [
                    format!("q{word}"),
                    format!("{word}q"),
                    format!("q-{word}"),
                    format!("{word}_q"),
                    format!("q.{word}/1.0"),
                ];
                wrong.extend(alone.into_iter().filter(|text| !found(text)));
                wrong.extend(inside.into_iter().filter(found));
            }
        }
        assert!(wrong.is_empty(), "{wrong:?}");
    }

    #[test]
    fn host_names_are_distinguished_from_names_of_applications() {
        for host in ["example.com", "seo4ajax.com", "w3af.org", "Transistor.fm"] {
            assert!(is_host(host.as_bytes()), "{host}");
        }
        for other in
            ["com.example.app", "ASP.NET", "http.rb", "archive.org_bot", "12.4", "node.js", ".com", "com.foo.me"]
        {
            assert!(!is_host(other.as_bytes()), "{other}");
        }
    }
}
