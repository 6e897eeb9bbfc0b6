//! A parsed robots.txt with line numbers. The parsed document is the same for every [`Reading`].
//!
//! **`Group`, `Rule` and `Name` are small `Copy` views** of the document. So verdicts are also
//! `Copy`, and a file with 30,000 rules does not need 30,000 allocations.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::line::{Directive, Field, Line, LineKind, Lines, MAX_LINE, bom_length};
use super::text::{Note, NoteKind};
use super::token::is_star;
use super::value::{Host, delay};
use super::{Access, Reading};

/// A parsed robots.txt. Cloning is cheap.
///
/// Any bytes can be parsed. [`RobotsTxt::notes`] reports the parts of the file that crawlers
/// ignore.
#[derive(Clone)]
pub struct RobotsTxt(Arc<Document>);

#[derive(Default)]
struct Document {
    bytes: Arc<[u8]>,
    groups: Vec<GroupRecord>,
    rules: Vec<RuleRecord>,
    names: Vec<ValueRecord>,
    sitemaps: Vec<ValueRecord>,
    delays: Vec<DelayRecord>,
    usage: Vec<UsageRecord>,
    notes: Vec<Note>,
    has_host: bool,
    /// Number of unparsed bytes at the end of the file, which `bytes` does not contain; 0 if they
    /// are blank.
    unread: usize,
    /// Paths of the sitemaps and licences that the file names, sorted. Computed on first use.
    referred_paths: OnceLock<Vec<Vec<u8>>>,
}

/// Parses a file without copying its bytes.
impl From<Arc<[u8]>> for RobotsTxt {
    fn from(bytes: Arc<[u8]>) -> Self {
        Document { bytes, ..Document::default() }.parse()
    }
}

/// The names and the rules of a group, as ranges of indexes into the document's names and rules.
#[derive(Debug)]
struct GroupRecord {
    names: Range<usize>,
    rules: Range<usize>,
}

#[derive(Debug)]
struct RuleRecord {
    access: Access,
    at: ValueRecord,
    group: usize,
}

#[derive(Debug)]
struct ValueRecord {
    line: usize,
    value: Range<usize>,
}

/// A crawl-delay line of a group, with a delay above zero.
#[derive(Clone, Copy, Debug)]
pub(super) struct DelayRecord {
    pub(super) interval: Duration,
    pub(super) line: usize,
    /// Offset in the file at which the value of the line ends.
    pub(super) end: usize,
    pub(super) group: usize,
}

/// A content-usage, content-signal or license line.
#[derive(Debug)]
pub(super) struct UsageRecord {
    pub(super) directive: Directive,
    pub(super) line: usize,
    pub(super) value: Range<usize>,
    /// Index of the group that contains the line; `None` if the line precedes the first group.
    pub(super) group: Option<usize>,
}

/// A group: rules, and the names of the crawlers that obey these rules (RFC 9309, section 2.2.1).
#[derive(Clone, Copy)]
pub struct Group<'r> {
    document: &'r Document,
    pub(super) index: usize,
}

/// The value of a user-agent line.
#[derive(Clone, Copy)]
pub struct Name<'r> {
    document: &'r Document,
    pub(super) index: usize,
}

/// An allow or disallow line inside a group.
#[derive(Clone, Copy)]
pub struct Rule<'r> {
    document: &'r Document,
    pub(super) index: usize,
}

/// A sitemap line.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Sitemap<'r> {
    /// Value as written.
    pub value: &'r [u8],
    /// Byte range of the value in the file.
    pub range: Range<usize>,
    /// Line number.
    pub line: usize,
}

impl<'r> Sitemap<'r> {
    /// Returns the value as text; `None` if it is not UTF-8.
    pub const fn as_str(&self) -> Option<&'r str> {
        match std::str::from_utf8(self.value) {
            Ok(value) => Some(value),
            Err(_) => None,
        }
    }
}

impl RobotsTxt {
    /// Parses a robots.txt, given as text or bytes. Never fails.
    pub fn parse(file: impl AsRef<[u8]>) -> Self {
        Self::from(Arc::from(file.as_ref()))
    }

    /// Parses only the lines that end within the first [`Reading::STANDARD_LIMIT`] bytes, because
    /// crawlers may ignore all later lines. The limit bounds the work for a file of any size.
    #[doc(hidden)]
    pub fn parse_beginning(file: impl AsRef<[u8]>) -> Self {
        let file = file.as_ref();
        let within = file.get(..=Reading::STANDARD_LIMIT);
        let end = within.map_or(file.len(), |within| memchr::memrchr2(b'\n', b'\r', within).map_or(0, |at| at + 1));
        let (beginning, rest) = file.split_at(end);
        let unread = if rest.trim_ascii().is_empty() { 0 } else { rest.len() };
        Document { bytes: Arc::from(beginning), unread, ..Document::default() }.parse()
    }

    /// Returns the number of bytes at the end of the file that were not parsed; 0 if they are
    /// blank.
    #[doc(hidden)]
    pub fn unread(&self) -> usize {
        self.0.unread
    }

    /// Returns the bytes of the file that were parsed.
    pub fn bytes(&self) -> &Arc<[u8]> {
        &self.0.bytes
    }

    /// Returns every line, even if it is blank or invalid.
    pub fn lines(&self) -> impl Iterator<Item = Line<'_>> {
        Lines::new(&self.0.bytes)
    }

    /// Returns the line number of the first crawl-delay line before the first group; `None` if
    /// there is no such line.
    #[doc(hidden)]
    pub fn delay_before_groups(&self) -> Option<usize> {
        let mut above = self.fields().take_while(|(_, _, groups)| *groups == 0);
        above.find(|(_, field, _)| field.directive == Directive::CrawlDelay).map(|(line, ..)| line.number)
    }

    /// Returns every line that is a field, with the number of groups that begin at or before this
    /// line.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (Line<'_>, Field<'_>, usize)> {
        let mut begins = self.groups().map(Group::line).peekable();
        let mut begun = 0;
        self.lines().filter_map(move |line| {
            while begins.next_if(|begin| *begin <= line.number).is_some() {
                begun += 1;
            }
            match line.kind() {
                LineKind::Field(field) => Some((line, field, begun)),
                _ => None,
            }
        })
    }

    /// Returns the groups in the order of the file. Groups for the same crawler are not merged.
    pub fn groups(&self) -> impl ExactSizeIterator<Item = Group<'_>> + Clone {
        (0..self.0.groups.len()).map(|index| Group { document: &self.0, index })
    }

    /// Returns the sitemap lines in the order of the file, including lines without a value.
    /// Relative values are not resolved.
    pub fn sitemaps(&self) -> impl ExactSizeIterator<Item = Sitemap<'_>> {
        self.0.sitemaps.iter().map(|at| Sitemap {
            value: &self.0.bytes[at.value.clone()],
            range: at.value.clone(),
            line: at.line,
        })
    }

    /// Returns the paths of the sitemaps and licences that the file names. The first call computes
    /// them with `find`.
    pub(super) fn referred_paths(&self, find: impl FnOnce() -> Vec<Vec<u8>>) -> &[Vec<u8>] {
        self.0.referred_paths.get_or_init(find)
    }

    /// Returns notes on the parts of the file that crawlers ignore in every [`Reading`], in the
    /// order of the file. [`RuleSet::notes`](super::RuleSet::notes) reports the lines past the size
    /// limit of a reading.
    pub fn notes(&self) -> &[Note] {
        &self.0.notes
    }

    /// Returns the crawl-delay lines that are inside groups and have a delay above zero, in the
    /// order of the file.
    pub(super) fn delays(&self) -> &[DelayRecord] {
        &self.0.delays
    }

    /// Returns the content-usage, content-signal and license lines, in the order of the file.
    pub(super) fn usage(&self) -> &[UsageRecord] {
        &self.0.usage
    }

    pub(super) fn group(&self, index: usize) -> Group<'_> {
        Group { document: &self.0, index }
    }

    pub(super) fn rule(&self, index: usize) -> Rule<'_> {
        Rule { document: &self.0, index }
    }

    pub(super) fn name(&self, index: usize) -> Name<'_> {
        Name { document: &self.0, index }
    }
}

crate::debug_as!(|it| RobotsTxt { bytes: it.0.bytes.len(), groups: it.0.groups.len(), rules: it.0.rules.len() });

impl<'r> Group<'r> {
    /// Returns the names of the group, in the order of the file; never empty.
    pub fn names(self) -> impl ExactSizeIterator<Item = Name<'r>> + Clone {
        self.record().names.clone().map(move |index| Name { document: self.document, index })
    }

    /// Returns the group's rules in the order of the file.
    pub fn rules(self) -> impl ExactSizeIterator<Item = Rule<'r>> + Clone {
        self.record().rules.clone().map(move |index| Rule { document: self.document, index })
    }

    /// Reports whether one of the group's names is `*`.
    pub fn is_global(self) -> bool {
        self.names().any(Name::is_star)
    }

    /// Returns the line number of the group's first name.
    pub fn line(self) -> usize {
        self.names().next().map_or(0, Name::line)
    }

    fn record(self) -> &'r GroupRecord {
        &self.document.groups[self.index]
    }
}

impl<'r> Name<'r> {
    /// Returns the value as written.
    pub fn value(self) -> &'r [u8] {
        &self.document.bytes[self.range()]
    }

    /// Returns the byte range of the value in the file.
    pub fn range(self) -> Range<usize> {
        self.document.names[self.index].value.clone()
    }

    /// Returns the line number.
    pub fn line(self) -> usize {
        self.document.names[self.index].line
    }

    /// Reports whether this name is the wildcard `*`, alone or followed by white space and any
    /// text.
    pub fn is_star(self) -> bool {
        is_star(self.value())
    }
}

impl<'r> Rule<'r> {
    /// Returns whether this is an allow or a disallow rule.
    pub fn access(self) -> Access {
        self.record().access
    }

    /// Returns the path pattern as written; empty if the line has no value. A rule with an empty
    /// pattern disallows nothing.
    pub fn pattern(self) -> &'r [u8] {
        &self.document.bytes[self.range()]
    }

    /// Returns the byte range of the pattern in the file.
    pub fn range(self) -> Range<usize> {
        self.record().at.value.clone()
    }

    /// Returns the line number.
    pub fn line(self) -> usize {
        self.record().at.line
    }

    /// Returns the group that the rule belongs to.
    pub fn group(self) -> Group<'r> {
        Group { document: self.document, index: self.record().group }
    }

    fn record(self) -> &'r RuleRecord {
        &self.document.rules[self.index]
    }
}

crate::debug_as!(|it| Group::<'_> { names: it.names().collect::<Vec<_>>(), rules: it.rules().len() });

impl fmt::Debug for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{:?}", self.line(), String::from_utf8_lossy(self.value()))
    }
}

impl fmt::Debug for Rule<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {:?}", self.line(), self.access(), String::from_utf8_lossy(self.pattern()))
    }
}

/// Parses a file line by line. User-agent lines that have no rule between them name the crawlers of
/// one group. The first user-agent line after a rule begins another group.
impl Document {
    fn parse(mut self) -> RobotsTxt {
        let bytes = self.bytes.clone();
        if bom_length(&bytes) > 0 {
            self.note(1, NoteKind::ByteOrderMark);
        }
        for line in Lines::new(&bytes) {
            if line.bytes().len() > MAX_LINE {
                self.note(line.number, NoteKind::LongLine);
            }
            if memchr::memchr(0, line.bytes()).is_some() {
                self.note(line.number, NoteKind::Nul);
            }
            match line.kind() {
                LineKind::Blank | LineKind::Comment => {}
                LineKind::Malformed => self.note(line.number, NoteKind::Malformed),
                LineKind::Field(field) => self.field(line.number, &field),
            }
        }
        RobotsTxt(Arc::new(self))
    }

    fn field(&mut self, line: usize, field: &Field<'_>) {
        let at = ValueRecord { line, value: field.value_range.clone() };
        match field.directive {
            Directive::UserAgent => self.name(at),
            Directive::Allow => self.rule(Access::Allow, at),
            Directive::Disallow => self.rule(Access::Disallow, at),
            Directive::Sitemap => self.sitemaps.push(at),
            Directive::Host => self.host(line, field.value),
            Directive::CrawlDelay => self.delay(&at, field.value),
            directive @ (Directive::ContentUsage | Directive::ContentSignal | Directive::License) => {
                let group = self.groups.len().checked_sub(1);
                self.usage.push(UsageRecord { directive, line, value: at.value, group });
            }
            _ => {}
        }
    }

    fn delay(&mut self, at: &ValueRecord, value: &[u8]) {
        match delay(value) {
            None => self.note(at.line, NoteKind::InvalidCrawlDelay),
            Some(interval) if interval.is_zero() || self.groups.is_empty() => {}
            Some(interval) => {
                let group = self.groups.len() - 1;
                self.delays.push(DelayRecord { interval, line: at.line, end: at.value.end, group });
            }
        }
    }

    /// Handles a host line. Only the first valid host line is used.
    fn host(&mut self, line: usize, value: &[u8]) {
        match Host::parse(value) {
            None => self.note(line, NoteKind::InvalidHost),
            Some(_) if self.has_host => self.note(line, NoteKind::RepeatedHost),
            Some(_) => self.has_host = true,
        }
    }

    fn name(&mut self, at: ValueRecord) {
        self.names.push(at);
        let names = self.names.len();
        match self.groups.last_mut() {
            Some(group) if group.rules.is_empty() => group.names.end = names,
            _ => self.groups.push(GroupRecord { names: names - 1..names, rules: self.rules.len()..self.rules.len() }),
        }
    }

    fn rule(&mut self, access: Access, at: ValueRecord) {
        let Some(group) = self.groups.last_mut() else {
            return self.note(at.line, NoteKind::RuleOutsideGroup);
        };
        group.rules.end += 1;
        self.rules.push(RuleRecord { access, at, group: self.groups.len() - 1 });
    }

    fn note(&mut self, line: usize, kind: NoteKind) {
        self.notes.push(Note { line, kind });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(file: &str) -> Vec<(Vec<String>, Vec<usize>)> {
        let text = |name: Name<'_>| String::from_utf8_lossy(name.value()).into_owned();
        RobotsTxt::parse(file.as_bytes())
            .groups()
            .map(|group| (group.names().map(text).collect(), group.rules().map(Rule::line).collect()))
            .collect()
    }

    #[test]
    fn reference_6_only_a_rule_closes_the_list_of_names() {
        let file = "user-agent: a\nsitemap: /s\nuser-agent: b\ncrawl-delay: 1\n\nuser-agent:\nallow: /\n\ndisallow: /x\nuser-agent: c";
        let want = [(vec!["a", "b", ""], vec![7, 9]), (vec!["c"], vec![])];
        let want: Vec<_> =
            want.into_iter().map(|(names, rules)| (names.into_iter().map(str::to_owned).collect(), rules)).collect();
        assert_eq!(shape(file), want);
    }

    #[test]
    fn ignored_content_is_noted_with_its_line_and_kind() {
        let file = b"\xEF\xBB\xBFallow: /\nno separator here\nuser-agent: a\0b\n: x\n";
        let notes: Vec<_> = RobotsTxt::parse(&file[..]).notes().iter().map(|note| (note.line, note.kind)).collect();
        let want = vec![
            (1, NoteKind::ByteOrderMark),
            (1, NoteKind::RuleOutsideGroup),
            (2, NoteKind::Malformed),
            (3, NoteKind::Nul),
            (4, NoteKind::Malformed),
        ];
        assert_eq!(notes, want);
    }

    #[test]
    fn only_lines_that_exceed_the_maximum_length_are_noted() {
        for (length, noted) in [(MAX_LINE - 1, false), (MAX_LINE, false), (MAX_LINE + 1, true), (MAX_LINE + 2, true)] {
            let line = format!("disallow: /{}", "a".repeat(length - "disallow: /".len()));
            let robots = RobotsTxt::parse(format!("user-agent: *\n{line}\nallow: /\n").into_bytes());
            let notes: Vec<_> = robots.notes().iter().map(|note| (note.line, note.kind)).collect();
            assert_eq!(notes, if noted { vec![(2, NoteKind::LongLine)] } else { vec![] }, "{length} bytes");
        }
    }

    #[test]
    fn sitemaps_belong_to_no_group() {
        let robots = RobotsTxt::parse(&b"sitemap: https://a/\nuser-agent: *\nSite-map: https://b/\n"[..]);
        let lines: Vec<_> = robots.sitemaps().map(|sitemap| (sitemap.line, sitemap.as_str())).collect();
        assert_eq!(lines, [(1, Some("https://a/")), (3, Some("https://b/"))]);
    }

    #[test]
    fn a_sitemap_is_available_as_a_string_only_if_it_is_utf_8() {
        let robots = RobotsTxt::parse(b"Sitemap: https://a/\xC3\xA9.xml\nSitemap: https://a/\xE9.xml\nSitemap:\n");
        let found: Vec<_> = robots.sitemaps().map(|sitemap| sitemap.as_str()).collect();
        assert_eq!(found, [Some("https://a/é.xml"), None, Some("")]);
    }
}
