//! A parsed `User-Agent` header: its words and parts, and the words that may name the agent.
//!
//! A *word* is a run of letters, digits, `-`, `_` and `.`. A *part* is a product outside comments,
//! or a segment of a comment; `(`, `;`, `,` and `)` separate segments.

use std::ops::Range;

use super::name_index::{Kinds, WordHash, is_blank, is_joint};
use crate::rules::starts_with;

#[derive(Debug, Default)]
pub(super) struct Header<'h> {
    pub(super) bytes: &'h [u8],
    pub(super) words: Vec<Word>,
    pub(super) parts: Vec<Part>,
    /// Index of the part where the header begins to look like a browser's header. If the header
    /// names a browser engine, this is the first part with `Mozilla/` or `Opera/`. If the header
    /// begins with a browser that does not call itself Mozilla or Opera, the index is 0. If the
    /// header does not look like a browser's header, the index is `None`.
    pub(super) browser: Option<usize>,
    /// The kinds of all words that may name the agent. A version such as `MAUI` in
    /// `Spice_M-5/MAUI/11A` adds only its device kinds (`APP` and `APPLIANCE`).
    pub(super) kinds: Kinds,
    /// Whether a version begins with a letter and may therefore contain a name
    /// (`FooBot/Nutch-1.10`). Versions of browsers begin with a digit.
    pub(super) has_named_version: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Word {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) hash: WordHash,
    pub(super) kinds: Kinds,
    pub(super) role: WordRole,
}

/// The role of a word in the header. Only a `Candidate` may name the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WordRole {
    Candidate,
    /// The version after a product's `/`, such as `1.0` in `FooBot/1.0`.
    Version,
    /// A word that does not name the agent: part of an e-mail address, a word after "like", or a
    /// description of another agent.
    Ignored,
    /// Part of a registered crawler's name (see [`Header::without`]).
    Registered,
}

#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) words: Range<usize>,
    /// Number of the comment that contains the part, from 1; 0 if the part is outside comments.
    pub(super) comment: u32,
    /// Range of the part's URL in the header; empty if the part has no URL.
    pub(super) address: Range<usize>,
    pub(super) marks: Marks,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Marks(u16);

impl Marks {
    /// The part contains a URL or an e-mail address.
    pub(super) const CONTACT: Self = Self(1);
    /// The contact that belongs to this part is in the next part or the next comment.
    pub(super) const CONTACT_FOLLOWS: Self = Self(1 << 1);
    /// The part is the word `compatible`, or follows it in the same comment.
    pub(super) const COMPATIBLE: Self = Self(1 << 2);
    /// The part follows `Android`, `Mobile` or a similar word in a comment, and is therefore a
    /// locale, a device model or a build.
    pub(super) const MODEL: Self = Self(1 << 3);
    /// The part is in a comment with `MSIE` or `Konqueror`.
    pub(super) const OLD_BROWSER: Self = Self(1 << 4);
    /// The part is a versioned product, such as `FooBot/1.0`.
    pub(super) const VERSIONED: Self = Self(1 << 5);
    /// The part contains a word with letters, other than the words that all browsers send.
    pub(super) const OWN_WORD: Self = Self(1 << 7);
    /// The part contains the word `Build`, so it names a device even if it looks like a product.
    pub(super) const BUILD: Self = Self(1 << 6);

    pub(super) const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) fn add(&mut self, other: Self) {
        self.0 |= other.0;
    }

    pub(super) fn remove(&mut self, other: Self) {
        self.0 &= !other.0;
    }
}

impl Word {
    pub(super) fn may_name_a_crawler(&self) -> bool {
        self.role == WordRole::Candidate
    }

    pub(super) fn text<'h>(&self, bytes: &'h [u8]) -> &'h [u8] {
        &bytes[self.start..self.end]
    }

    /// Returns the names that this word may contain in front of a version. The first name is the
    /// word without the version at its end, as in `ExampleBot2` and `Pingdom.com_bot_version_1.4`.
    /// The second name is everything before the first `-`, `_` or `.` that is followed by a
    /// version, as in `Experibot-v3` and `Nutch-1.0-dev`.
    pub(super) fn stems<'h>(&self, bytes: &'h [u8]) -> impl Iterator<Item = &'h [u8]> {
        let text = if self.kinds.is_common_to_browsers() { &b""[..] } else { self.text(bytes) };
        let end_of = |text: &[u8], ends: fn(&u8) -> bool| text.iter().rposition(ends).map_or(0, |at| at + 1);
        let is_version = |text: &[u8]| match text {
            [b'v' | b'V', digit, ..] | [digit, ..] => digit.is_ascii_digit(),
            [] => false,
        };
        let first = memchr::memchr3_iter(b'-', b'_', b'.', text).find(|at| is_version(&text[at + 1..]));
        let last = text.last().filter(|byte| byte.is_ascii_digit()).map(|_| {
            let end = end_of(text, |byte| !byte.is_ascii_digit() && *byte != b'.');
            match &text[..end] {
                [name @ .., joint, b'v' | b'V'] if is_joint(*joint) => name.len(),
                name => name.len(),
            }
        });
        let stem = |end: usize| &text[..end_of(&text[..end], |byte| !is_joint(*byte))];
        let (first, last) = (first.map(stem), last.map(stem));
        let stems = last.into_iter().chain(first.filter(|first| last.is_none_or(|last| last != *first)));
        stems.filter(|stem| stem.iter().any(u8::is_ascii_alphabetic))
    }
}

impl<'h> Header<'h> {
    pub(super) fn is_blank(&self) -> bool {
        self.bytes.iter().all(|byte| is_blank(*byte))
    }

    pub(super) fn words_of(&self, part: &Part) -> &[Word] {
        &self.words[part.words.clone()]
    }

    /// Iterates over the words, except words of device models. A versioned product that follows a
    /// model does not belong to the model (`Android 11; Pixel 2; DuplexWeb-Google/1.0`).
    pub(super) fn words(&self) -> impl Iterator<Item = &Word> {
        let is_product = |marks: Marks| marks.has(Marks::VERSIONED) && !marks.has(Marks::BUILD);
        self.parts
            .iter()
            .filter(move |part| !part.marks.has(Marks::MODEL) || is_product(part.marks))
            .flat_map(|part| self.words_of(part))
    }

    /// Returns the URL of a part; empty if the part has no URL.
    pub(super) fn address(&self, part: &Part) -> &'h [u8] {
        &self.bytes[part.address.clone()]
    }

    /// Returns the name of the product in a part: the words up to the version, separated by single
    /// spaces, without leading words of browsers and platforms. The name is ASCII and has at most
    /// 64 bytes.
    pub(super) fn product(&self, part: &Part) -> String {
        self.product_before(part, usize::MAX)
    }

    /// Returns the same name as [`Header::product`], but uses only words before the byte position
    /// `place`. A name that begins before the part's URL also ends before this URL.
    pub(super) fn product_before(&self, part: &Part, place: usize) -> String {
        let mut product = String::new();
        let leads = self.product_lead(part).is_some_and(|lead| lead.start < part.address.start);
        let place = if leads { place.min(part.address.start) } else { place };
        for word in self.product_words(part).take_while(|word| word.start < place) {
            let text = word.text(self.bytes);
            if product.len() + text.len() >= 64 {
                break;
            }
            if !product.is_empty() {
                product.push(' ');
            }
            product.extend(text.iter().map(|byte| char::from(*byte)));
        }
        product
    }

    pub(super) fn names_product(&self, part: &Part) -> bool {
        self.product_lead(part).is_some()
    }

    pub(super) fn product_lead(&self, part: &Part) -> Option<&Word> {
        self.product_words(part).next()
    }

    fn product_words(&self, part: &Part) -> impl Iterator<Item = &Word> {
        let words =
            self.words_of(part).iter().filter(|word| !matches!(word.role, WordRole::Ignored | WordRole::Registered));
        words.take_while(|word| word.role == WordRole::Candidate).skip_while(|word| word.kinds.is_common_to_browsers())
    }

    /// Reports whether the header contains `needle`, ignoring case.
    pub(super) fn contains(&self, needle: &[u8]) -> bool {
        let Some(first) = needle.first() else { return true };
        let (lower, upper) = (first.to_ascii_lowercase(), first.to_ascii_uppercase());
        memchr::memchr2_iter(lower, upper, self.bytes).any(|at| starts_with(&self.bytes[at..], needle))
    }
}

impl Part {
    pub(super) fn is_comment(&self) -> bool {
        self.comment != 0
    }
}
