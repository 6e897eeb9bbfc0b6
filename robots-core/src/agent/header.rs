//! A parsed `User-Agent` header: its words, its parts, and which words may name the agent.
//!
//! A *word* is a run of letters, digits, `-`, `_` and `.`. A *part* is a product outside comments,
//! or a segment between `(`, `;`, `,` and `)` inside one. Words about another agent are ignored: in
//! URLs and e-mail addresses, versions, bracketed in-app markers, after "like" and "compatible
//! with", and in the model of an Android device.

use std::ops::Range;

use super::name_index::{Kinds, WordHash, is_blank, is_joint};
use crate::rules::starts_with;

/// A parsed header.
#[derive(Debug, Default)]
pub(super) struct Header<'h> {
    pub(super) bytes: &'h [u8],
    pub(super) words: Vec<Word>,
    pub(super) parts: Vec<Part>,
    /// Index of the part that starts with `Mozilla/` or `Opera/`, if an engine is named, too: the
    /// header is shaped like a browser's from there on. 0 for browsers that never called themselves
    /// Mozilla or Opera.
    pub(super) browser: Option<usize>,
    /// The kinds of all words that are not ignored.
    pub(super) kinds: Kinds,
    /// Whether a version begins with a letter, so that it may be a name (`FooBot/Nutch-1.10`).
    /// Browsers' versions do not.
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

/// The role of a word, which decides whether it may name the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WordRole {
    Candidate,
    /// The version of a product, after a `/`.
    Version,
    /// Part of an e-mail address, or a word after "like".
    Ignored,
    /// Part of a registered crawler's name; see [`Header::without`].
    Registered,
}

/// A product, or a segment of a comment.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) words: Range<usize>,
    /// Number of the comment that contains the part, from 1; 0 outside comments.
    pub(super) comment: u32,
    /// Range of the part's URL in the header; empty without one.
    pub(super) address: Range<usize>,
    pub(super) marks: Marks,
}

/// Properties of a part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Marks(u16);

impl Marks {
    /// The part contains a URL or an e-mail address.
    pub(super) const CONTACT: Self = Self(1);
    /// The contact of the part follows it, in the next part or the next comment.
    pub(super) const ADDRESSED: Self = Self(1 << 1);
    /// The part follows `compatible;`.
    pub(super) const COMPATIBLE: Self = Self(1 << 2);
    /// The part follows `Android`, `Mobile` or the like in a comment: a locale, a model, a build.
    pub(super) const MODEL: Self = Self(1 << 3);
    /// The part is in a comment with `MSIE` or `Konqueror`.
    pub(super) const OLD_BROWSER: Self = Self(1 << 4);
    /// The part is a product and its version.
    pub(super) const VERSIONED: Self = Self(1 << 5);
    /// The part contains a word that is neither costume nor a number.
    pub(super) const OWN_WORD: Self = Self(1 << 7);
    /// The part contains the word `Build`: it is a device, whatever it looks like.
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
    /// Whether the word alone allows it to begin the name of a crawler.
    pub(super) fn may_name_a_crawler(&self) -> bool {
        self.role == WordRole::Candidate
    }

    pub(super) fn text<'h>(&self, bytes: &'h [u8]) -> &'h [u8] {
        &bytes[self.start..self.end]
    }

    /// Returns the word without a version attached to it, if there is one
    /// (`Pingdom.com_bot_version_1.4`, `Experibot-v3`, `ExampleBot2`).
    pub(super) fn stem<'h>(&self, bytes: &'h [u8]) -> Option<&'h [u8]> {
        let text = self.text(bytes);
        if !text.last()?.is_ascii_digit() || self.kinds.is_costume() {
            return None;
        }
        let trim = |text: &'h [u8], version: fn(&u8) -> bool| {
            let end = text.iter().rposition(|byte| !version(byte)).map_or(0, |at| at + 1);
            &text[..end]
        };
        let stem = trim(text, |byte| byte.is_ascii_digit() || *byte == b'.');
        let stem = match stem {
            [name @ .., joint, b'v' | b'V'] if is_joint(*joint) => name,
            _ => stem,
        };
        let stem = trim(stem, |byte| is_joint(*byte));
        (!stem.is_empty()).then_some(stem)
    }
}

impl<'h> Header<'h> {
    pub(super) fn is_blank(&self) -> bool {
        self.bytes.iter().all(|byte| is_blank(*byte))
    }

    pub(super) fn words_of(&self, part: &Part) -> &[Word] {
        &self.words[part.words.clone()]
    }

    /// Iterates over the words outside device models, left to right. A product with a version next
    /// to a model is not part of it (`Android 11; Pixel 2; DuplexWeb-Google/1.0`).
    pub(super) fn words(&self) -> impl Iterator<Item = &Word> {
        let is_product = |marks: Marks| marks.has(Marks::VERSIONED) && !marks.has(Marks::BUILD);
        self.parts
            .iter()
            .filter(move |part| !part.marks.has(Marks::MODEL) || is_product(part.marks))
            .flat_map(|part| self.words_of(part))
    }

    /// Returns the URL of a part; empty without one.
    pub(super) fn address(&self, part: &Part) -> &'h [u8] {
        &self.bytes[part.address.clone()]
    }

    /// Returns the product that a part names: its words up to the version, separated by single
    /// blanks, without leading words of browsers and platforms. At most 64 bytes, always ASCII.
    pub(super) fn product(&self, part: &Part) -> String {
        self.product_before(part, usize::MAX)
    }

    /// Returns the product named by the words of a part before `place`, and before the part's
    /// address if words precede it.
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

    /// Whether a part names a product.
    pub(super) fn names_product(&self, part: &Part) -> bool {
        self.product_lead(part).is_some()
    }

    /// Returns the first word of the product that a part names.
    pub(super) fn product_lead(&self, part: &Part) -> Option<&Word> {
        self.product_words(part).next()
    }

    fn product_words(&self, part: &Part) -> impl Iterator<Item = &Word> {
        let words =
            self.words_of(part).iter().filter(|word| !matches!(word.role, WordRole::Ignored | WordRole::Registered));
        words.take_while(|word| word.role == WordRole::Candidate).skip_while(|word| word.kinds.is_costume())
    }

    /// Whether the header contains `needle` anywhere, in any case.
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
