//! Splits a robots.txt into lines, and each line into its directive and its value.
//!
//! Lines are split as in the reference parser (google/robotstxt), because crawlers accept what the
//! reference parser accepts.

use std::ops::Range;

/// Maximum number of bytes of a line that are parsed, as in the reference parser.
pub(crate) const MAX_LINE: usize = 2083 * 8 - 1;

/// A line as written in the file.
#[derive(Clone)]
#[non_exhaustive]
pub struct Line<'a> {
    /// Line number, from 1. CR, LF and CRLF each end a line.
    pub number: usize,
    /// Byte range of the line in the file, without its line end and without a byte order mark.
    pub range: Range<usize>,
    file: &'a [u8],
}

/// The kind of a [`Line`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineKind<'a> {
    /// Only white space.
    Blank,
    /// Only a comment.
    Comment,
    /// A field name, a separator and a value, which may be empty.
    Field(Field<'a>),
    /// A line without a separator, or without a name before the separator. Every
    /// [`Reading`](super::Reading) ignores such a line.
    Malformed,
}

/// A line split into name and value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Field<'a> {
    /// The directive that the name stands for.
    pub directive: Directive,
    /// Name as written.
    pub name: &'a [u8],
    /// Byte range of the name in the file.
    pub name_range: Range<usize>,
    /// Value as written, without a comment and without white space at either end.
    pub value: &'a [u8],
    /// Byte range of the value in the file.
    pub value_range: Range<usize>,
    /// Whether a colon separates name and value. If a line consists of exactly two words, crawlers
    /// also accept white space between them as the separator.
    pub has_colon: bool,
}

/// The directive of a field, determined by its name.
///
/// For the main directives, only the beginning of the name is compared, ignoring case, as in the
/// reference parser. So `Disallowed: /x` is a disallow line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Directive {
    /// Name of a crawler; the rules of the group apply to this crawler.
    UserAgent,
    /// A rule that allows paths.
    Allow,
    /// A rule that disallows paths.
    Disallow,
    /// URL of a sitemap. The line does not belong to any group.
    Sitemap,
    /// Main mirror of the site; an older extension.
    Host,
    /// Seconds between two requests; an extension.
    CrawlDelay,
    /// Query parameters that do not change the content of a page; Yandex's extension.
    CleanParam,
    /// Permitted uses of the content; the IETF's AI preferences.
    ContentUsage,
    /// Permitted uses of the content; Cloudflare's content signals.
    ContentSignal,
    /// Terms of a licence; Really Simple Licensing.
    License,
    /// Number of pages per period; an extension that few crawlers read.
    RequestRate,
    /// Time of day for crawling; an extension that few crawlers read.
    VisitTime,
    /// Pages that search engines should not index; read by Google until 2019.
    Noindex,
    /// Any other name. Verdicts ignore lines with other names, but tools can list them.
    Other,
}

/// The names of the main directives, with the misspellings that the reference parser accepts. A
/// field name is compared with these names in this order.
const NAMES: [(&str, Directive); 12] = [
    ("user-agent", Directive::UserAgent),
    ("useragent", Directive::UserAgent),
    ("user agent", Directive::UserAgent),
    ("allow", Directive::Allow),
    ("disallow", Directive::Disallow),
    ("dissallow", Directive::Disallow),
    ("dissalow", Directive::Disallow),
    ("disalow", Directive::Disallow),
    ("diasllow", Directive::Disallow),
    ("disallaw", Directive::Disallow),
    ("sitemap", Directive::Sitemap),
    ("site-map", Directive::Sitemap),
];

impl Directive {
    /// Every directive that some crawler reads or that a draft defines, in its usual spelling.
    ///
    /// RFC 9309 and the sitemap protocol define the first four directives. The other directives are
    /// extensions, and their names are compared as a whole:
    ///
    /// - Yandex: `Host`, `Clean-param`
    /// - Bing and others: `Crawl-delay`
    /// - the robots exclusion draft of 1996 and related drafts: `Request-rate`, `Visit-time`
    /// - Google, until 2019: `Noindex`
    /// - the IETF's AI preferences: `Content-Usage`
    /// - Cloudflare's content signals: `Content-Signal`
    /// - Really Simple Licensing: `License`
    #[doc(hidden)]
    pub const SPELLINGS: [(&str, Self); 13] = [
        ("User-agent", Self::UserAgent),
        ("Allow", Self::Allow),
        ("Disallow", Self::Disallow),
        ("Sitemap", Self::Sitemap),
        ("Host", Self::Host),
        ("Crawl-delay", Self::CrawlDelay),
        ("Clean-param", Self::CleanParam),
        ("Request-rate", Self::RequestRate),
        ("Visit-time", Self::VisitTime),
        ("Noindex", Self::Noindex),
        ("Content-Usage", Self::ContentUsage),
        ("Content-Signal", Self::ContentSignal),
        ("License", Self::License),
    ];

    /// Returns every name of a directive, including misspellings.
    pub(crate) fn names() -> impl Iterator<Item = (&'static str, Self)> {
        Self::SPELLINGS.into_iter().chain(NAMES)
    }

    pub(super) fn of(name: &[u8]) -> Self {
        let known =
            NAMES.iter().find(|(known, _)| starts_with(name, known.as_bytes())).map(|(_, directive)| *directive);
        let is_whole = |(spelling, _): &&(&str, Self)| name.eq_ignore_ascii_case(spelling.as_bytes());
        let whole = || Self::SPELLINGS.iter().find(is_whole).map(|(_, directive)| *directive);
        known.or_else(whole).unwrap_or(Self::Other)
    }

    /// Returns the usual spelling of the directive; `None` for [`Directive::Other`].
    pub fn spelling(self) -> Option<&'static str> {
        Self::SPELLINGS.iter().find(|(_, directive)| *directive == self).map(|(spelling, _)| *spelling)
    }
}

crate::debug_as!(|it| Line::<'_> { number: it.number, range: it.range, text: String::from_utf8_lossy(it.bytes()) });

impl<'a> Line<'a> {
    /// Maximum number of bytes of a line that are parsed; all later bytes are ignored.
    pub const MAX: usize = MAX_LINE;

    /// Returns the whole line, without its line end and without a byte order mark.
    pub fn bytes(&self) -> &'a [u8] {
        &self.file[self.range.clone()]
    }

    /// Returns the byte range of the parsed part of the line in the file: at most the first
    /// [`Line::MAX`](crate::rules::Line::MAX) bytes, up to a NUL or a `#`, without white space at
    /// either end.
    pub fn content(&self) -> Range<usize> {
        let start = self.range.start;
        let kept = self.bytes();
        let kept = &kept[..kept.len().min(MAX_LINE)];
        let end = memchr::memchr2(0, b'#', kept).unwrap_or(kept.len());
        trim(self.file, start..start + end)
    }

    /// Reports whether the file ends with this line, without a line end after it.
    #[doc(hidden)]
    pub const fn ends_file(&self) -> bool {
        self.range.end == self.file.len()
    }

    /// Returns the content of the line if the file seems to end inside a field name: the line is
    /// the last one, has no line end and no comment, and contains only a known field name or the
    /// beginning of one. Another program may still be writing such a file.
    ///
    /// ```
    /// use robots_core::rules::RobotsTxt;
    ///
    /// let cut = |file: &str| {
    ///     let robots = RobotsTxt::parse(file);
    ///     robots.lines().last().is_some_and(|line| line.cut_name().is_some())
    /// };
    /// assert!(cut("User-agent: *\nDisal") && cut("User-agent: *\nDisallow"));
    /// assert!(!cut("User-agent: *\nDisal\n") && !cut("User-agent: *\nDisallow:"));
    /// ```
    #[doc(hidden)]
    pub fn cut_name(&self) -> Option<&'a [u8]> {
        let name = &self.file[self.content()];
        let is_part = |(known, _): (&str, Directive)| starts_with(known.as_bytes(), name);
        let is_cut = self.ends_file() && !name.is_empty() && name == &self.file[trim(self.file, self.range.clone())];
        (is_cut && Directive::names().any(is_part)).then_some(name)
    }

    /// Returns the kind of the line.
    pub fn kind(&self) -> LineKind<'a> {
        let content = self.content();
        let text = &self.file[content.clone()];
        if text.is_empty() {
            let raw = &self.file[trim(self.file, self.range.clone())];
            return match raw.first() {
                None => LineKind::Blank,
                Some(b'#') => LineKind::Comment,
                // The line begins with a NUL, so crawlers ignore it.
                Some(_) => LineKind::Malformed,
            };
        }
        match split(text) {
            Some((at, has_colon)) => {
                let name_range = trim(self.file, content.start..content.start + at);
                let value_range = trim(self.file, content.start + at + 1..content.end);
                if name_range.is_empty() {
                    return LineKind::Malformed;
                }
                let [name, value] = [&name_range, &value_range].map(|range| &self.file[range.clone()]);
                let directive = Directive::of(name);
                LineKind::Field(Field { directive, name, name_range, value, value_range, has_colon })
            }
            None => LineKind::Malformed,
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Lines<'a> {
    file: &'a [u8],
    next: Option<usize>,
    number: usize,
}

impl<'a> Lines<'a> {
    pub(super) fn new(file: &'a [u8]) -> Self {
        Self { file, next: Some(bom_length(file)), number: 0 }
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = Line<'a>;

    fn next(&mut self) -> Option<Line<'a>> {
        let start = self.next?;
        self.number += 1;
        let end = memchr::memchr2(b'\n', b'\r', &self.file[start..]).map(|at| start + at);
        self.next = end.map(|end| end + if self.file[end..].starts_with(b"\r\n") { 2 } else { 1 });
        Some(Line { file: self.file, number: self.number, range: start..end.unwrap_or(self.file.len()) })
    }
}

/// Reports whether `text` starts with `start`, ignoring case.
#[inline]
pub(crate) fn starts_with(text: &[u8], start: &[u8]) -> bool {
    text.get(..start.len()).is_some_and(|text| text.eq_ignore_ascii_case(start))
}

/// Returns the length of the byte order mark at the start of the file, in bytes. As in the
/// reference parser, an incomplete byte order mark also counts.
pub(super) fn bom_length(file: &[u8]) -> usize {
    file.iter().zip([0xEF, 0xBB, 0xBF]).take_while(|(have, want)| **have == *want).count()
}

/// Finds the separator in a trimmed line: the first colon or, without a colon, the white space
/// between exactly two words. Returns the offset of the separator, and whether the separator is a
/// colon.
fn split(text: &[u8]) -> Option<(usize, bool)> {
    if let Some(at) = memchr::memchr(b':', text) {
        return Some((at, true));
    }
    let at = memchr::memchr2(b' ', b'\t', text)?;
    let rest = text[at..].iter().position(|byte| !matches!(byte, b' ' | b'\t'))?;
    memchr::memchr2(b' ', b'\t', &text[at + rest..]).is_none().then_some((at, false))
}

pub(super) const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | 0x0B | 0x0C | b'\r')
}

fn trim(file: &[u8], mut range: Range<usize>) -> Range<usize> {
    while range.start < range.end && is_space(file[range.start]) {
        range.start += 1;
    }
    while range.start < range.end && is_space(file[range.end - 1]) {
        range.end -= 1;
    }
    range
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(file: &[u8]) -> Vec<(usize, &[u8])> {
        Lines::new(file).map(|line| (line.number, line.bytes())).collect()
    }

    fn field(line: &'static [u8]) -> Option<(Directive, &'static [u8], &'static [u8])> {
        match Lines::new(line).next()?.kind() {
            LineKind::Field(field) => Some((field.directive, field.name, field.value)),
            _ => None,
        }
    }

    #[test]
    fn reference_1_lines_end_at_lf_cr_or_crlf() {
        let want: Vec<(usize, &[u8])> = vec![(1, b"a"), (2, b"b"), (3, b"c"), (4, b""), (5, b"d"), (6, b"")];
        assert_eq!(numbered(b"a\nb\rc\r\n\nd\n"), want);
        assert_eq!(numbered(b""), vec![(1, &b""[..])]);
        assert_eq!(numbered(b"\n\r\n\r").len(), 4);
    }

    #[test]
    fn reference_1_a_byte_order_mark_is_dropped_even_in_part() {
        for bom in [&b"\xEF"[..], b"\xEF\xBB", b"\xEF\xBB\xBF"] {
            let file = [bom, b"x"].concat();
            assert_eq!(numbered(&file), vec![(1, &b"x"[..])]);
        }
        assert_eq!(numbered(b"\xEF\xEFx"), vec![(1, &b"\xEFx"[..])]);
    }

    #[test]
    fn reference_2_a_line_is_cut_at_its_limit_at_nul_and_at_hash() {
        let long = [vec![b'a'; MAX_LINE - 2], b": zzz".to_vec()].concat();
        let line = Lines::new(&long).next().expect("a line");
        let LineKind::Field(field) = line.kind() else { panic!("a field") };
        assert_eq!(field.value, b"");
        assert_eq!(field.name.len(), MAX_LINE - 2);
        assert_eq!(field_value(b"allow: /a\0b"), b"/a");
        assert_eq!(field_value(b"allow: /a#b"), b"/a");
        assert_eq!(field_value(b"allow: \x0b/a\x0c"), b"/a");
    }

    fn field_value(line: &'static [u8]) -> &'static [u8] {
        field(line).expect("a field").2
    }

    #[test]
    fn reference_3_whitespace_can_replace_the_colon_between_exactly_two_words() {
        assert_eq!(field(b"disallow /x"), Some((Directive::Disallow, &b"disallow"[..], &b"/x"[..])));
        assert_eq!(field(b"disallow \t /x"), Some((Directive::Disallow, &b"disallow"[..], &b"/x"[..])));
        assert_eq!(field(b"disallow /x y"), None);
        assert_eq!(field(b"disallow"), None);
        assert_eq!(field(b": /x"), None);
    }

    #[test]
    fn reference_4_field_names_ignore_case_and_most_match_by_prefix() {
        for (line, directive) in [
            (&b"USER-AGENTS: a"[..], Directive::UserAgent),
            (b"useragent: a", Directive::UserAgent),
            (b"user agent: a", Directive::UserAgent),
            (b"allowed: /", Directive::Allow),
            (b"dissallow: /", Directive::Disallow),
            (b"disallaw: /", Directive::Disallow),
            (b"site-map: /", Directive::Sitemap),
            (b"Host: example.com", Directive::Host),
            (b"hosts: example.com", Directive::Other),
            (b"crawl-DELAY: 1", Directive::CrawlDelay),
            (b"crawl-delays: 1", Directive::Other),
            (b"alow: /", Directive::Other),
        ] {
            assert_eq!(field(line).map(|field| field.0), Some(directive), "{line:?}");
        }
    }

    #[test]
    fn blank_and_comment_lines_are_distinguished() {
        assert_eq!(Lines::new(b" \t").next().map(|line| line.kind()), Some(LineKind::Blank));
        assert_eq!(Lines::new(b" # x").next().map(|line| line.kind()), Some(LineKind::Comment));
        assert_eq!(Lines::new(b" \0# x").next().map(|line| line.kind()), Some(LineKind::Malformed));
    }
}
