//! The file that fixes look at: its lines, and how lines are removed and added without touching others.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::checked_file::codes;
use super::crawlers::CrawlersByToken;
use super::finding::Finding;
use super::fixes::Edit;
use super::options::SiteContext;
use crate::rules::{
    Authority, Directive, Field, Group, Line, LineKind, Name, ProductToken, Reading, RobotsTxt, RuleSet,
};

/// A file whose findings are corrected.
pub(super) struct FixableFile<'a> {
    pub(super) robots: &'a RobotsTxt,
    /// The codes of all lints.
    pub(super) codes: &'a [&'static str],
    pub(super) crawlers: CrawlersByToken<'a>,
    /// Every line; a line is known by its place here.
    pub(super) lines: Vec<Line<'a>>,
    /// These are found once: many findings may ask for them.
    own_origin: OnceCell<Option<Vec<u8>>>,
    rules: OnceCell<RuleSet>,
    groups: OnceCell<FixableGroups<'a>>,
}

/// The groups of a file, and which of them are for the same crawlers.
pub(super) struct FixableGroups<'a> {
    groups: Vec<Group<'a>>,
    /// For each group the first one with the same names.
    first_alike: Vec<usize>,
    /// All groups with the same names, by the first.
    alike: HashMap<usize, Vec<usize>>,
    /// Lines whose name stands in the same group above.
    repeated: HashSet<usize>,
    /// Whether a group has a name that is not empty.
    is_named: Vec<bool>,
}

impl<'a> FixableFile<'a> {
    pub(super) fn new(robots: &'a RobotsTxt, site: &'a SiteContext, codes: &'a [&'static str]) -> Self {
        let crawlers = CrawlersByToken::new(&site.registry);
        Self {
            robots,
            codes,
            crawlers,
            lines: robots.lines().collect(),
            own_origin: OnceCell::new(),
            rules: OnceCell::new(),
            groups: OnceCell::new(),
        }
    }

    pub(super) fn bytes(&self) -> &'a [u8] {
        self.robots.bytes()
    }

    /// The line that an octet stands in.
    pub(super) fn line_at(&self, octet: usize) -> usize {
        self.lines.partition_point(|line| line.range.start <= octet).saturating_sub(1)
    }

    /// The line that a finding begins on.
    pub(super) fn line_of(&self, finding: &Finding) -> usize {
        self.line_at(finding.span.start)
    }

    pub(super) fn field(&self, line: usize) -> Option<Field<'a>> {
        match self.lines.get(line)?.kind() {
            LineKind::Field(field) => Some(field),
            _ => None,
        }
    }

    /// The field that a finding is about.
    pub(super) fn field_of(&self, finding: &Finding) -> Option<Field<'a>> {
        self.field(self.line_of(finding))
    }

    /// The octets that a finding is about.
    pub(super) fn text_of(&self, finding: &Finding) -> &'a [u8] {
        self.bytes().get(finding.span.clone()).unwrap_or_default()
    }

    pub(super) fn is_blank(&self, line: usize) -> bool {
        self.lines.get(line).is_some_and(|line| line.kind() == LineKind::Blank)
    }

    pub(super) fn is_comment(&self, line: usize) -> bool {
        self.lines.get(line).is_some_and(|line| line.kind() == LineKind::Comment)
    }

    pub(super) fn directive(&self, line: usize) -> Option<Directive> {
        self.field(line).map(|field| field.directive)
    }

    /// A line with its end.
    pub(super) fn whole_line(&self, line: usize) -> Range<usize> {
        let start = self.lines.get(line).map_or(self.bytes().len(), |line| line.range.start);
        let end = self.lines.get(line + 1).map_or(self.bytes().len(), |next| next.range.start);
        start..end
    }

    /// How the first line of the file ends, and any new one with it.
    pub(super) fn line_end(&self) -> &'static [u8] {
        let file = self.bytes();
        match memchr::memchr2(b'\n', b'\r', file) {
            Some(at) if file[at] == b'\r' && file.get(at + 1) == Some(&b'\n') => b"\r\n",
            Some(at) if file[at] == b'\r' => b"\r",
            _ => b"\n",
        }
    }

    /// Removes a line. `None` where a comment above it turns a lint off: it would do so for another line then.
    pub(super) fn without_line(&self, line: usize) -> Option<Edit> {
        (!self.has_allowance_above(line)).then(|| Edit::remove(self.whole_line(line)))
    }

    /// Removes the field of a line, and keeps a comment behind it, unless that turns a lint off.
    pub(super) fn without_field(&self, line: usize) -> Option<Edit> {
        let at = self.lines.get(line)?;
        let content = at.content();
        let rest = &self.bytes()[content.end..at.range.end];
        let is_kept = rest.trim_ascii_start().starts_with(b"#") && codes(at).next().is_none();
        if !is_kept {
            return self.without_line(line);
        }
        let comment = content.end + rest.len() - rest.trim_ascii_start().len();
        (!self.has_allowance_above(line)).then(|| Edit::remove(at.range.start..comment))
    }

    /// A line in front of another. `None` where a comment stands there that turns a lint off for that one.
    pub(super) fn line_before(&self, line: usize, text: &[u8]) -> Option<Edit> {
        let at = self.lines.get(line)?.range.start;
        (!self.has_allowance_above(line)).then(|| Edit::insert(at, [text, self.line_end()].concat()))
    }

    /// Lines behind a field.
    pub(super) fn lines_after<'t>(&self, line: usize, texts: impl IntoIterator<Item = &'t [u8]>) -> Edit {
        let whole = self.whole_line(line);
        let is_ended = self.bytes()[whole.clone()].ends_with(b"\n") || self.bytes()[whole.clone()].ends_with(b"\r");
        let mut added = Vec::new();
        for text in texts {
            if is_ended {
                added.extend_from_slice(text);
                added.extend_from_slice(self.line_end());
            } else {
                added.extend_from_slice(self.line_end());
                added.extend_from_slice(text);
            }
        }
        Edit::insert(whole.end, added)
    }

    /// The scheme and the host that every sitemap of the file has which has any.
    pub(super) fn own_origin(&self) -> Option<&[u8]> {
        self.own_origin.get_or_init(|| self.find_own_origin()).as_deref()
    }

    /// The file as the standard has it read.
    pub(super) fn rules(&self) -> &RuleSet {
        self.rules.get_or_init(|| self.robots.compile(Reading::Standard))
    }

    pub(super) fn groups(&self) -> &FixableGroups<'a> {
        self.groups.get_or_init(|| FixableGroups::of(self.robots))
    }

    fn find_own_origin(&self) -> Option<Vec<u8>> {
        let mut origins = self.robots.sitemaps().filter_map(|sitemap| {
            let (scheme, authority, _) = Authority::of_url(sitemap.value)?;
            let is_web = scheme.eq_ignore_ascii_case(b"http") || scheme.eq_ignore_ascii_case(b"https");
            is_web.then(|| [scheme, b"://", authority.host_and_port].concat().to_ascii_lowercase())
        });
        let first = origins.next()?;
        origins.all(|other| other == first).then_some(first)
    }

    /// Whether the line above turns a lint off for this one.
    pub(super) fn has_allowance_above(&self, line: usize) -> bool {
        let above = line.checked_sub(1).and_then(|above| self.lines.get(above));
        above.is_some_and(|above| above.kind() == LineKind::Comment && codes(above).next().is_some())
    }
}

impl<'a> FixableGroups<'a> {
    fn of(robots: &'a RobotsTxt) -> Self {
        let groups: Vec<Group<'a>> = robots.groups().collect();
        let mut all = Self {
            first_alike: Vec::new(),
            alike: HashMap::new(),
            repeated: HashSet::new(),
            is_named: Vec::new(),
            groups,
        };
        let mut by_names: HashMap<Vec<Option<ProductToken>>, usize> = HashMap::new();
        for (at, group) in all.groups.iter().enumerate() {
            let mut seen = HashSet::new();
            for name in group.names() {
                if !seen.insert(compared(name)) {
                    all.repeated.insert(name.line());
                }
            }
            let mut names: Vec<_> = seen.into_iter().collect();
            names.sort_unstable();
            let first = *by_names.entry(names).or_insert(at);
            all.first_alike.push(first);
            all.alike.entry(first).or_default().push(at);
            all.is_named.push(group.names().any(|name| !name.value().is_empty()));
        }
        all
    }

    /// The place of the group that a line stands in, by its number.
    pub(super) fn at(&self, line: usize) -> Option<usize> {
        self.groups.partition_point(|group| group.line() <= line).checked_sub(1)
    }

    pub(super) fn get(&self, at: usize) -> Option<Group<'a>> {
        self.groups.get(at).copied()
    }

    /// The first group with the same names as this one.
    pub(super) fn first_alike(&self, at: usize) -> usize {
        self.first_alike[at]
    }

    /// All groups with the same names as this one.
    pub(super) fn alike(&self, at: usize) -> &[usize] {
        self.alike.get(&self.first_alike[at]).map_or(&[], Vec::as_slice)
    }

    /// Whether the name in a line stands in the same group above.
    pub(super) fn is_repeated(&self, line: usize) -> bool {
        self.repeated.contains(&line)
    }

    /// Whether a group has a name that is not empty.
    pub(super) fn is_named(&self, at: usize) -> bool {
        self.is_named[at]
    }
}

/// What names are compared by: nothing for `*`.
pub(super) fn compared(name: Name<'_>) -> Option<ProductToken> {
    if name.is_star() { None } else { ProductToken::from_name(name.value()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(file: &str, edit: impl FnOnce(&FixableFile<'_>) -> Option<Edit>) -> Option<String> {
        let robots = RobotsTxt::parse(file.as_bytes());
        let site = SiteContext::default();
        let edit = edit(&FixableFile::new(&robots, &site, &[]))?;
        Some(String::from_utf8(Edit::apply(file.as_bytes(), [&edit])).expect("text"))
    }

    #[test]
    fn a_removed_field_leaves_its_comment() {
        for (file, want) in [
            ("a: b\nc: d\ne: f\n", Some("a: b\ne: f\n")),
            ("a: b\r\nc: d # why\r\ne: f", Some("a: b\r\n# why\r\ne: f")),
            ("a: b\nc: d", Some("a: b\n")),
            ("a: b\nc: d # robots-check: allow(x)\ne: f", Some("a: b\ne: f")),
            ("# robots-check: allow(x)\nc: d\ne: f", None),
        ] {
            assert_eq!(with(file, |file| file.without_field(1)).as_deref(), want, "{file:?}");
        }
    }

    #[test]
    fn a_new_line_ends_as_the_others_do() {
        for (file, want) in [
            ("a: b\nc: d\n", "a: b\nx\ny\nc: d\n"),
            ("a: b\r\nc: d\r\n", "a: b\r\nx\r\ny\r\nc: d\r\n"),
            ("a: b\rc: d\r", "a: b\rx\ry\rc: d\r"),
            ("a: b", "a: b\nx\ny"),
        ] {
            let added = with(file, |file| Some(file.lines_after(0, [&b"x"[..], b"y"])));
            assert_eq!(added.as_deref(), Some(want), "{file:?}");
        }
        assert_eq!(with("# robots-check: allow(x)\r\nb: c", |file| file.line_before(1, b"x")), None);
        let expected = Some("\u{feff}x\r\nb: c\r\n");
        assert_eq!(with("\u{feff}b: c\r\n", |file| file.line_before(0, b"x")).as_deref(), expected);
    }

    #[test]
    fn the_origin_is_known_where_all_sitemaps_agree() {
        let origin = |file: &str| {
            let (robots, site) = (RobotsTxt::parse(file.as_bytes()), SiteContext::default());
            FixableFile::new(&robots, &site, &[])
                .find_own_origin()
                .map(|origin| String::from_utf8(origin).expect("text"))
        };
        let want = Some("https://a.test");
        assert_eq!(origin("Sitemap: https://A.test/x\nSitemap: /y\nSitemap: https://a.test/z").as_deref(), want);
        assert_eq!(origin("Sitemap: https://a.test/x\nSitemap: https://b.test/z"), None);
        assert_eq!(origin("Sitemap: /x"), None);
    }
}
