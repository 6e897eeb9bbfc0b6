//! Parses a `User-Agent` header in one pass over its bytes.

use std::ops::Range;

use super::header::{Header, Marks, Part, Word, WordRole};
use super::name_index::{Kinds, WordHash, is_blank, is_joint, is_word_byte, kinds};
use crate::rules::starts_with;

impl<'h> Header<'h> {
    pub(super) fn read(bytes: &'h [u8]) -> Self {
        HeaderReader::new(bytes).read()
    }
}

#[derive(Default)]
struct HeaderReader<'h> {
    header: Header<'h>,
    at: usize,
    depth: usize,
    comments: u32,
    marks: Marks,
    address: Range<usize>,
    first_word: usize,
    /// Marks that are set initially on every new part. A word such as `compatible` changes them for
    /// the parts that follow.
    inherited: Marks,
    /// While a comment is read, the value to restore in `inherited` after the comment.
    inherited_outside: Marks,
    /// The words that the reader ignores next, because they follow a word such as "like".
    ignored_words: IgnoredWords,
    brackets_close: bool,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum IgnoredWords {
    #[default]
    Nothing,
    Word,
    /// Ignores words up to the end of the part, or up to the next version.
    Product,
}

impl<'h> HeaderReader<'h> {
    fn new(bytes: &'h [u8]) -> Self {
        // A header usually has one word per five bytes. The upper limit saves memory if a long
        // header has few words.
        let words = Vec::with_capacity((bytes.len() / 4).clamp(4, 64));
        let parts = Vec::with_capacity((bytes.len() / 8).clamp(4, 32));
        Self { header: Header { bytes, words, parts, ..Header::default() }, brackets_close: true, ..Self::default() }
    }

    fn read(mut self) -> Header<'h> {
        let bytes = self.header.bytes;
        while let Some(byte) = bytes.get(self.at) {
            match byte {
                byte if is_word_byte(*byte) => self.word(),
                b'(' => {
                    self.end_part();
                    self.depth += 1;
                    if self.depth == 1 {
                        self.comments += 1;
                        self.inherited_outside = std::mem::take(&mut self.inherited);
                        if self.follows_android() {
                            self.inherited.add(Marks::MODEL);
                        }
                        self.marks = self.inherited;
                    }
                    self.at += 1;
                }
                b')' => {
                    self.end_part();
                    if self.depth == 1 {
                        self.inherited = std::mem::take(&mut self.inherited_outside);
                        self.marks = self.inherited;
                    }
                    self.depth = self.depth.saturating_sub(1);
                    self.at += 1;
                }
                b';' | b',' => {
                    self.end_part();
                    self.at += 1;
                }
                b'@' => self.address(),
                b'[' => self.bracket(),
                _ => self.at += 1,
            }
        }
        self.end_part();
        self.finish()
    }

    fn word(&mut self) {
        let bytes = self.header.bytes;
        if let Some(end) = end_of_url(bytes, self.at) {
            self.begin_product();
            self.marks.add(Marks::CONTACT);
            self.address = self.at..end;
            self.at = end;
            return;
        }
        let run = &bytes[self.at..];
        let run = &run[..run.iter().position(|byte| !is_word_byte(*byte)).unwrap_or(run.len())];
        let start = self.at + run.iter().take_while(|byte| is_joint(**byte)).count();
        self.at += run.len();
        let end = start.max(self.at - run.iter().rev().take_while(|byte| is_joint(**byte)).count());
        if start == end {
            return;
        }
        let follows_slash = start > 1 && bytes[start - 1] == b'/' && is_word_byte(bytes[start - 2]);
        let is_version = follows_slash && self.header.words.len() > self.first_word;
        if !is_version {
            self.begin_product();
        }
        let role = if is_version {
            self.marks.add(Marks::VERSIONED);
            WordRole::Version
        } else if self.ignored_words != IgnoredWords::Nothing {
            WordRole::Ignored
        } else {
            WordRole::Candidate
        };
        match self.ignored_words {
            IgnoredWords::Word => self.ignored_words = IgnoredWords::Nothing,
            IgnoredWords::Product if is_version => self.ignored_words = IgnoredWords::Nothing,
            _ => {}
        }
        let text = &bytes[start..end];
        let hash = WordHash::of(text);
        if is_version && text[0].is_ascii_alphabetic() {
            // Headers such as `Spice_M-5/MAUI/11A` and `Podbean/Android App` contain a platform
            // after the `/`, instead of a version.
            self.header.kinds = self.header.kinds.with(kinds(text, hash).only_device_kinds());
            self.header.has_named_version = true;
        }
        let kinds = if role == WordRole::Candidate { kinds(text, hash) } else { Kinds::default() };
        let word = Word { start, end, hash, kinds, role };
        if role == WordRole::Candidate {
            if !kinds.is_common_to_browsers() && text.iter().any(u8::is_ascii_alphabetic) {
                self.marks.add(Marks::OWN_WORD);
            }
            self.header.kinds = self.header.kinds.with(kinds);
            if kinds.has(Kinds::SYNTAX) || starts_with(text, b"android") {
                self.phrase(word);
            }
        }
        self.header.words.push(word);
    }

    /// Handles words that change the meaning of the following words.
    fn phrase(&mut self, word: Word) {
        let bytes = self.header.bytes;
        let text = word.text(bytes);
        let then = bytes.get(word.end).copied();
        if text.eq_ignore_ascii_case(b"like") && then.is_some_and(|next| is_blank(next) || next == b'+') {
            self.ignored_words = if self.depth > 0 { IgnoredWords::Product } else { IgnoredWords::Word };
        } else if text.eq_ignore_ascii_case(b"with") {
            let before = self.header.words.get(self.first_word..).and_then(<[Word]>::last);
            if before.is_some_and(|before| before.text(bytes).eq_ignore_ascii_case(b"compatible")) {
                self.ignored_words = IgnoredWords::Product;
            }
        } else if text.eq_ignore_ascii_case(b"compatible") && self.first_word == self.header.words.len() {
            self.marks.add(Marks::COMPATIBLE);
            self.inherited.add(Marks::COMPATIBLE);
            // In an Android comment, the model of the device ends at `compatible`.
            self.inherited.remove(Marks::MODEL);
            self.marks.remove(Marks::MODEL);
        } else if text.eq_ignore_ascii_case(b"build") {
            self.marks.add(Marks::BUILD);
        } else if self.depth > 0 && (word.kinds.has(Kinds::DEVICE) || starts_with(text, b"android")) {
            self.inherited.add(Marks::MODEL);
        } else if self.depth > 0 && (text.eq_ignore_ascii_case(b"msie") || text.eq_ignore_ascii_case(b"konqueror")) {
            self.marks.add(Marks::OLD_BROWSER);
            self.inherited.add(Marks::OLD_BROWSER);
        }
    }

    /// Reports whether `Android`, with or without a version, comes directly before the comment, as
    /// in `Instagram 9.0 Android (26/8.0; 480dpi; …)`.
    fn follows_android(&self) -> bool {
        let Some((last, before)) = self.header.words.split_last() else { return false };
        let bytes = self.header.bytes;
        let product = if last.role == WordRole::Version { before.last() } else { Some(last) };
        product.is_some_and(|word| starts_with(word.text(bytes), b"android"))
            && bytes[last.end..self.at].iter().all(|byte| is_blank(*byte))
    }

    /// Prepares for the next word: ends the current part if it is a versioned product such as
    /// `FooBot/1.0`, because the word after a version begins another product. In comments, a part
    /// ends only at a separator.
    fn begin_product(&mut self) {
        if self.depth == 0 && self.marks.has(Marks::VERSIONED) {
            self.end_part();
        }
    }

    /// Handles the `@` of an e-mail address. If a host with a dot follows the `@`, ignores the
    /// words directly before the `@`, and marks the part as a part with a contact.
    fn address(&mut self) {
        let bytes = self.header.bytes;
        self.at += 1;
        let length = bytes[self.at..].iter().take_while(|byte| is_word_byte(**byte)).count();
        // Dots after the host are dropped, because a dot may end a sentence.
        let host = &bytes[self.at..self.at + length];
        let host = &host[..host.iter().rposition(|byte| !is_joint(*byte)).map_or(0, |last| last + 1)];
        let Some(dot) = host.iter().rposition(|byte| *byte == b'.') else { return };
        let mut after = self.at - 1;
        for word in self.header.words[self.first_word..].iter_mut().rev() {
            let joined = word.end == after || (word.end + 1 == after && matches!(bytes[word.end], b'+' | b'%'));
            if !joined || word.role == WordRole::Ignored {
                break;
            }
            word.role = WordRole::Ignored;
            after = word.start;
        }
        // `package@1.2.3` is not an e-mail address, because a top-level domain does not begin with
        // a digit.
        if host[dot + 1].is_ascii_alphabetic() {
            self.marks.add(Marks::CONTACT);
        }
        self.at += length;
    }

    /// In the header of a browser or an app, skips `[…]`, because apps put markers in brackets. A
    /// bracket that is never closed is not skipped.
    fn bracket(&mut self) {
        self.at += 1;
        if !self.brackets_close || !self.header.kinds.has(Kinds::ENGINE.with(Kinds::APP)) {
            return;
        }
        match memchr::memchr(b']', &self.header.bytes[self.at..]) {
            Some(length) => self.at += length + 1,
            None => self.brackets_close = false,
        }
    }

    fn end_part(&mut self) {
        let words = self.first_word..self.header.words.len();
        let comment = if self.depth > 0 { self.comments } else { 0 };
        let address = std::mem::replace(&mut self.address, 0..0);
        if self.marks.has(Marks::CONTACT) {
            self.mark_part_before_contact(comment);
        }
        if !words.is_empty() || self.marks.has(Marks::CONTACT) {
            self.header.parts.push(Part { words, comment, address, marks: self.marks });
        }
        self.first_word = self.header.words.len();
        self.marks = self.inherited;
        self.ignored_words = IgnoredWords::Nothing;
    }

    /// Adds [`Marks::CONTACT_FOLLOWS`] to the previous part, because the contact in the current
    /// part often belongs to the previous part, as in `(FooBot/1.0; +http://…)` and
    /// `FooBot/1.0 (+http://…)`.
    fn mark_part_before_contact(&mut self, comment: u32) {
        if let Some(before) = self.header.parts.last_mut()
            && (before.comment == comment || before.comment == 0)
        {
            before.marks.add(Marks::CONTACT_FOLLOWS);
            before.marks.remove(Marks::MODEL);
        }
        self.marks.remove(Marks::MODEL);
    }

    fn finish(self) -> Header<'h> {
        let mut header = self.header;
        if header.words.first().is_some_and(|first| first.kinds.has(Kinds::PLAIN_BROWSER)) {
            header.browser = Some(0);
            return header;
        }
        if header.kinds.has(Kinds::ENGINE) {
            header.browser = header.parts.iter().position(|part| {
                !part.is_comment()
                    && part.marks.has(Marks::VERSIONED)
                    && header.words_of(part).iter().any(|word| {
                        let text = word.text(header.bytes);
                        text.eq_ignore_ascii_case(b"mozilla") || text.eq_ignore_ascii_case(b"opera")
                    })
            });
        }
        header
    }
}

fn end_of_url(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = &bytes[at..];
    let is_url = match rest.first()? | 0x20 {
        b'h' => starts_with(rest, b"http://") || starts_with(rest, b"https://"),
        b'w' => starts_with(rest, b"www."),
        _ => false,
    };
    let ends = |byte: &u8| {
        *byte <= b' ' || matches!(byte, b'(' | b')' | b';' | b',' | b'"' | b'\'' | b'<' | b'>' | b'[' | b']')
    };
    is_url.then(|| rest.iter().position(ends).map_or(bytes.len(), |length| at + length))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn speaking(header: &str) -> Vec<String> {
        let header = Header::read(header.as_bytes());
        let words = header.words().filter(|word| word.may_name_a_crawler());
        words.map(|word| String::from_utf8_lossy(word.text(header.bytes)).into_owned()).collect()
    }

    #[test]
    fn words_about_other_products_addresses_and_device_models_are_ignored() {
        for (header, words) in [
            ("Foo/1.0 (+http://bar.example/Baz; Quux)", &["Foo", "Quux"][..]),
            ("Foo (www.bar.example/Baz) HaF+https://x", &["Foo", "HaF"]),
            ("Foo (bar+baz@example.com, quux)", &["Foo", "quux"]),
            ("Foo bar@baz", &["Foo", "bar", "baz"]),
            ("Foo bar@baz.", &["Foo", "bar", "baz"]),
            ("Foo bar@baz.example. Quux", &["Foo", "Quux"]),
            ("Foo bar@1.2.3, Quux", &["Foo", "Quux"]),
            ("Foo/Bar-1.0 Baz/2", &["Foo", "Baz"]),
            ("Gecko/1 Foo [Bar/Baz] Quux", &["Gecko", "Foo", "Quux"]),
            ("Foo [Bar", &["Foo", "Bar"]),
            ("Foo like Bar Baz", &["Foo", "like", "Baz"]),
            ("(Foo like Bar Baz; Quux)", &["Foo", "like", "Quux"]),
            ("(like Bar/1.0 Baz)", &["like", "Baz"]),
            ("Foo compatible with Bar Baz; Quux", &["Foo", "compatible", "with", "Quux"]),
            ("(Linux; Android 9; Foo Bar Build/X) Baz", &["Linux", "Android", "9", "Baz"]),
            ("(Linux; Android 9; Foo; Bar/1.0)", &["Linux", "Android", "9", "Bar"]),
            ("Android Foo; Bar", &["Android", "Foo", "Bar"]),
            ("(Mobile; Foo) Bar", &["Mobile", "Bar"]),
            ("(Androidx 9; Foo) Bar", &["Androidx", "9", "Bar"]),
            ("(Android 9; Foo; compatible; Bar)", &["Android", "9", "compatible", "Bar"]),
            ("(Android 9; Foo; Bar; +http://x)", &["Android", "9", "Bar"]),
            ("-Foo-. _Bar_", &["Foo", "Bar"]),
        ] {
            assert_eq!(speaking(header), words, "{header}");
        }
    }

    #[test]
    fn a_version_at_the_end_of_a_word_is_not_part_of_its_stem() {
        for (word, stems) in [
            ("Pingdom.com_bot_version_1.4", "Pingdom.com_bot_version"),
            ("Experibot-v3", "Experibot"),
            ("ExampleBot2", "ExampleBot"),
            ("Nutch-1.0-dev", "Nutch"),
            ("ExampleBot--v2.0_beta", "ExampleBot"),
            ("MJ12bot-1.4.8-SNAPSHOT", "MJ12bot"),
            ("Foo-2-Bar-1.0", "Foo-2-Bar Foo"),
            // A `v` begins a version only after `-`, `_` or `.`.
            ("Experibotv3", "Experibotv"),
            ("Experibot-vision", ""),
            ("ExampleBot", ""),
            ("ExampleBot-", ""),
            ("1.0", ""),
            ("2.X", ""),
        ] {
            let header = Header::read(word.as_bytes());
            let found = header.words().next().unwrap().stems(word.as_bytes());
            let found: Vec<_> = found.map(|stem| std::str::from_utf8(stem).unwrap()).collect();
            assert_eq!(found.join(" "), stems, "{word}");
        }
    }

    #[test]
    fn mozilla_or_an_engine_alone_is_not_a_browser() {
        for (header, browser) in [
            ("Mozilla/5.0 (X11; Linux) AppleWebKit/537 (KHTML, like Gecko) Safari/537", Some(0)),
            ("Foo/1.0 Mozilla/5.0 (X11) Gecko/1 Firefox/2", Some(1)),
            ("Opera/9.80 (Windows NT 5.1; U; es) Presto/2.2.15", Some(0)),
            ("Lynx/2.9.0", Some(0)),
            ("Mozilla/5.0 (compatible; Foo/1.0)", None),
            ("Foo/1.0 (Gecko)", None),
            // A product that follows a comment does not belong to the comment.
            ("Foo (bar) Mozilla/5.0 (X11) Gecko/1 Firefox/2", Some(2)),
            ("Foo (Mozilla/5.0; Gecko/1)", None),
        ] {
            assert_eq!(Header::read(header.as_bytes()).browser, browser, "{header}");
        }
    }

    #[test]
    fn each_part_has_the_number_of_its_comment() {
        let header = Header::read(b"Foo (Bar; Baz) Quux (Corge)");
        assert_eq!(header.parts.iter().map(|part| part.comment).collect::<Vec<_>>(), [0, 1, 1, 0, 2]);
    }

    #[test]
    fn a_contact_marks_its_part_and_the_part_before_it_and_ends_the_device_model() {
        let header = Header::read(b"(Linux; Android 9; Foo; Bar; +http://x)");
        let marks: Vec<Marks> = header.parts.iter().map(|part| part.marks).collect();
        let marked = |marks: &[Marks]| {
            let mut all = Marks::default();
            marks.iter().for_each(|one| all.add(*one));
            all
        };
        assert_eq!(marks[2], marked(&[Marks::MODEL, Marks::OWN_WORD]));
        assert_eq!(marks[3], marked(&[Marks::CONTACT_FOLLOWS, Marks::OWN_WORD]));
        assert_eq!(marks[4], Marks::CONTACT);
        assert_eq!(header.address(&header.parts[4]), b"http://x");
    }

    #[test]
    fn an_email_address_is_a_contact_if_its_domain_ends_with_a_name() {
        let has_contact = |header: &str| {
            let header = Header::read(header.as_bytes());
            header.parts.iter().any(|part| part.marks.has(Marks::CONTACT))
        };
        for header in ["Foo (a@b.example)", "Foo (a@b.example.)", "Foo (write to a@b.c-)", "Foo a@b.c"] {
            assert!(has_contact(header), "{header}");
        }
        for header in ["Foo (a@b)", "Foo (a@b.)", "Foo (a@b.1)", "Foo (a@1.2.3)", "Foo (a@.)", "Foo (a@)"] {
            assert!(!has_contact(header), "{header}");
        }
    }

    #[test]
    fn headers_with_any_bytes_can_be_read() {
        for byte in 0..=255_u8 {
            let header = [b"Foo", &[byte][..], b"Bar", &[byte; 3], b"(", &[byte], b";", &[byte]].concat();
            assert!(!Header::read(&header).parts.is_empty());
        }
    }
}
