//! The robots.txt that lints and fixes examine, and the data that they share. This module also
//! creates the edits that add or remove lines.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::crawlers::CrawlersByToken;
use super::finding::Finding;
use super::fixes::Edit;
use super::options::SiteContext;
use crate::rules::{
    Authority, Directive, Field, Group, Line, LineKind, Name, ProductToken, Reading, RobotsTxt, RuleSet,
};

pub(super) struct CheckedFile<'a> {
    pub(super) robots: &'a RobotsTxt,
    pub(super) site: &'a SiteContext,
    /// Codes of all lints. A comment in the file turns a lint off by its code.
    pub(super) codes: &'a [&'static str],
    /// The name in the first `User-agent` line. Rules above this line do not belong to any group.
    pub(super) first_name: Option<Name<'a>>,
    pub(super) crawlers: CrawlersByToken<'a>,
    lines: OnceCell<Vec<Line<'a>>>,
    groups: OnceCell<AlikeGroups<'a>>,
    rules: OnceCell<RuleSet>,
    own_origin: OnceCell<Option<Vec<u8>>>,
    hosts_with_tls: OnceCell<HashSet<Vec<u8>>>,
}

/// The groups of a file. Also records which groups have the same names.
#[derive(Default)]
pub(super) struct AlikeGroups<'a> {
    pub(super) groups: Vec<Group<'a>>,
    /// For each group, the index of the first group with the same names.
    pub(super) first_alike: Vec<usize>,
    /// Maps the index of the first group with certain names to the indexes of all groups with these
    /// names.
    pub(super) alike: HashMap<usize, Vec<usize>>,
    /// Line numbers of the user-agent lines that repeat an earlier name of their group.
    pub(super) repeated: HashSet<usize>,
    /// For each group, whether at least one of its names is not empty.
    pub(super) is_named: Vec<bool>,
}

impl<'a> CheckedFile<'a> {
    pub(super) fn new(robots: &'a RobotsTxt, site: &'a SiteContext, codes: &'a [&'static str]) -> Self {
        Self {
            robots,
            site,
            codes,
            first_name: robots.groups().next().and_then(|group| group.names().next()),
            crawlers: CrawlersByToken::new(&site.registry),
            lines: OnceCell::new(),
            groups: OnceCell::new(),
            rules: OnceCell::new(),
            own_origin: OnceCell::new(),
            hosts_with_tls: OnceCell::new(),
        }
    }

    pub(super) fn bytes(&self) -> &'a [u8] {
        self.robots.bytes()
    }

    pub(super) fn names(&self) -> impl Iterator<Item = Name<'a>> {
        self.robots.groups().flat_map(|group| group.names())
    }

    pub(super) fn fields(&self) -> impl Iterator<Item = (usize, Field<'a>)> {
        self.robots.fields().map(|(line, field, _)| (line.number, field))
    }

    /// Returns all lines of the file. Other methods identify a line by its index in this slice.
    pub(super) fn lines(&self) -> &[Line<'a>] {
        self.lines.get_or_init(|| self.robots.lines().collect())
    }

    pub(super) fn rules(&self) -> &RuleSet {
        self.rules.get_or_init(|| {
            let registry = &self.site.registry;
            self.robots.compile_with(Reading::Standard, |name| registry.stands_for(name.value()))
        })
    }

    /// Returns the hosts and ports of all sitemaps with an https URL, in lower case.
    pub(super) fn hosts_with_tls(&self) -> &HashSet<Vec<u8>> {
        self.hosts_with_tls.get_or_init(|| {
            let host = |url: &[u8]| {
                let (scheme, authority, _) = Authority::of_url(url)?;
                (scheme == b"https").then(|| authority.host_and_port.to_ascii_lowercase())
            };
            self.robots.sitemaps().filter_map(|sitemap| host(sitemap.value)).collect()
        })
    }

    pub(super) fn line_of(&self, finding: &Finding) -> usize {
        self.lines().partition_point(|line| line.range.start <= finding.span.start).saturating_sub(1)
    }

    pub(super) fn field(&self, line: usize) -> Option<Field<'a>> {
        match self.lines().get(line)?.kind() {
            LineKind::Field(field) => Some(field),
            _ => None,
        }
    }

    pub(super) fn field_of(&self, finding: &Finding) -> Option<Field<'a>> {
        self.field(self.line_of(finding))
    }

    pub(super) fn with_value<T: Into<Vec<u8>>>(
        &self,
        finding: &Finding,
        value: impl FnOnce(&[u8]) -> Option<T>,
    ) -> Option<Vec<Edit>> {
        let field = self.field_of(finding)?;
        Some(vec![Edit::new(field.value_range, value(field.value)?)])
    }

    pub(super) fn text_of(&self, finding: &Finding) -> &'a [u8] {
        self.bytes().get(finding.span.clone()).unwrap_or_default()
    }

    pub(super) fn is_blank(&self, line: usize) -> bool {
        self.lines().get(line).is_some_and(|line| line.kind() == LineKind::Blank)
    }

    pub(super) fn is_comment(&self, line: usize) -> bool {
        self.lines().get(line).is_some_and(|line| line.kind() == LineKind::Comment)
    }

    pub(super) fn directive(&self, line: usize) -> Option<Directive> {
        self.field(line).map(|field| field.directive)
    }

    /// Returns the byte range of a line, including its line end.
    pub(super) fn whole_line(&self, line: usize) -> Range<usize> {
        let start = self.lines().get(line).map_or(self.bytes().len(), |line| line.range.start);
        let end = self.lines().get(line + 1).map_or(self.bytes().len(), |next| next.range.start);
        start..end
    }

    /// Returns the line end of the file's first line. New lines get the same line end.
    pub(super) fn line_end(&self) -> &'static [u8] {
        let file = self.bytes();
        match memchr::memchr2(b'\n', b'\r', file) {
            Some(at) if file[at] == b'\r' && file.get(at + 1) == Some(&b'\n') => b"\r\n",
            Some(at) if file[at] == b'\r' => b"\r",
            _ => b"\n",
        }
    }

    /// Returns the edit that removes a line. `None` if a comment above the line turns a lint off,
    /// because the comment would then apply to the next line.
    pub(super) fn without_line(&self, line: usize) -> Option<Edit> {
        (!self.has_allow_comment_above(line)).then(|| Edit::remove(self.whole_line(line)))
    }

    /// Returns the edit that removes the field of a line. Keeps a comment after the field, unless
    /// that comment turns a lint off.
    pub(super) fn without_field(&self, line: usize) -> Option<Edit> {
        let at = self.lines().get(line)?;
        let content = at.content();
        let rest = &self.bytes()[content.end..at.range.end];
        let is_kept = rest.trim_ascii_start().starts_with(b"#") && codes(at).next().is_none();
        if !is_kept {
            return self.without_line(line);
        }
        let comment = content.end + rest.len() - rest.trim_ascii_start().len();
        (!self.has_allow_comment_above(line)).then(|| Edit::remove(at.range.start..comment))
    }

    /// Returns the edit that inserts a line before the line with index `line`. `None` if a comment
    /// above this line turns a lint off, because the comment would then apply to the new line.
    pub(super) fn line_before(&self, line: usize, text: &[u8]) -> Option<Edit> {
        let at = self.lines().get(line)?.range.start;
        (!self.has_allow_comment_above(line)).then(|| Edit::insert(at, [text, self.line_end()].concat()))
    }

    pub(super) fn lines_after<'t>(&self, line: usize, texts: impl IntoIterator<Item = &'t [u8]>) -> Edit {
        let whole = self.whole_line(line);
        let is_ended = self.bytes()[whole.clone()].ends_with(b"\n") || self.bytes()[whole.clone()].ends_with(b"\r");
        let line = |text: &'t [u8]| if is_ended { [text, self.line_end()] } else { [self.line_end(), text] };
        Edit::insert(whole.end, texts.into_iter().flat_map(line).collect::<Vec<_>>().concat())
    }

    /// Returns the origin (scheme and host) that all sitemaps share. If no sitemap has an origin,
    /// returns the https origin of [`Options::site_host`](super::Options::site_host), if set.
    pub(super) fn own_origin(&self) -> Option<&[u8]> {
        let find = || {
            let mut origins = self.robots.sitemaps().filter_map(|sitemap| {
                let (scheme, authority, _) = Authority::of_url(sitemap.value)?;
                let is_web = scheme.eq_ignore_ascii_case(b"http") || scheme.eq_ignore_ascii_case(b"https");
                is_web.then(|| [scheme, b"://", authority.host_and_port].concat().to_ascii_lowercase())
            });
            let known = || self.site.host.as_ref().map(|host| format!("https://{host}").into_bytes());
            let Some(first) = origins.next() else { return known() };
            origins.all(|other| other == first).then_some(first)
        };
        self.own_origin.get_or_init(find).as_deref()
    }

    /// Returns the host of [`CheckedFile::own_origin`], without a port.
    pub(super) fn own_host(&self) -> Option<&[u8]> {
        self.own_origin().and_then(Authority::of_url).map(|(_, authority, _)| authority.host)
    }

    pub(super) fn groups(&self) -> &AlikeGroups<'a> {
        self.groups.get_or_init(|| AlikeGroups::of(self.robots))
    }

    pub(super) fn has_allow_comment_above(&self, line: usize) -> bool {
        let above = line.checked_sub(1).and_then(|above| self.lines().get(above));
        above.is_some_and(|above| above.kind() == LineKind::Comment && codes(above).next().is_some())
    }
}

impl<'a> AlikeGroups<'a> {
    fn of(robots: &'a RobotsTxt) -> Self {
        let mut all = Self { groups: robots.groups().collect(), ..Self::default() };
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

    /// Returns the index of the group that contains the line with this number; `None` before the
    /// first group.
    pub(super) fn at(&self, line: usize) -> Option<usize> {
        self.groups.partition_point(|group| group.line() <= line).checked_sub(1)
    }
}

/// Returns the token that represents a name when names are compared; `None` for `*`, and for names
/// without a token.
pub(super) fn compared(name: Name<'_>) -> Option<ProductToken> {
    if name.is_star() { None } else { ProductToken::from_name(name.value()) }
}

/// Start of a comment that turns lints off, after the `#` and white space.
const MARK: &[u8] = b"robots-check:";

/// The lints that comments in a file turn off, in the order of the file. For example,
/// `# robots-check: allow(secret-path, duplicate-group)` turns off two lints.
///
/// A comment after a field applies to the same line. A comment on a line of its own applies to the
/// next line.
#[derive(Debug, Default)]
pub(super) struct Allowed<'a>(Vec<(Range<usize>, &'a [u8])>);

impl<'a> Allowed<'a> {
    pub(super) fn of(robots: &'a RobotsTxt) -> Self {
        let mut allowed = Self::default();
        // Most files have no comment that turns a lint off, so their lines are not parsed here.
        if memchr::memmem::find(robots.bytes(), MARK).is_none() {
            return allowed;
        }
        let mut lines = robots.lines().peekable();
        while let Some(line) = lines.next() {
            let about = match line.kind() {
                LineKind::Comment => lines.peek().map(|line| line.range.clone()),
                _ => Some(line.range.clone()),
            };
            let Some(about) = about else { continue };
            allowed.0.extend(codes(&line).map(|code| (about.clone(), &robots.bytes()[code])));
        }
        allowed
    }

    pub(super) fn ranges(&self, lint: &str) -> Vec<Range<usize>> {
        let mut ranges: Vec<_> =
            self.0.iter().filter(|(_, code)| *code == lint.as_bytes()).map(|(range, _)| range.clone()).collect();
        ranges.dedup();
        ranges
    }
}

pub(super) fn codes(line: &Line<'_>) -> impl Iterator<Item = Range<usize>> {
    let bytes = line.bytes();
    let list = list(bytes).unwrap_or(0..0);
    let mut at = line.range.start + list.start;
    bytes[list].split(|byte| *byte == b',').filter_map(move |code| {
        let start = at + code.len() - code.trim_ascii_start().len();
        at += code.len() + 1;
        let code = code.trim_ascii();
        (!code.is_empty()).then(|| start..start + code.len())
    })
}

/// Returns the range of `LIST` in a comment `# robots-check: allow(LIST)`.
fn list(line: &[u8]) -> Option<Range<usize>> {
    let comment = memchr::memchr(b'#', line)?;
    let rest = line[comment + 1..].trim_ascii_start().strip_prefix(MARK)?.trim_ascii_start().strip_prefix(b"allow(")?;
    let start = line.len() - rest.len();
    Some(start..start + memchr::memchr(b')', rest)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{Options, check};

    fn found(file: &str) -> Vec<String> {
        let report = check(&RobotsTxt::parse(file.as_bytes()), &Options::new());
        report.findings.iter().map(|finding| format!("{} {}", finding.line, finding.code)).collect()
    }

    #[test]
    fn a_comment_turns_a_lint_off_for_its_line_or_the_next() {
        for (file, want) in [
            ("User-agent: *\nDisallow: x # robots-check: allow(path-without-slash)\n", &[][..]),
            ("User-agent: *\n# robots-check: allow(path-without-slash)\nDisallow: x\n", &[]),
            ("User-agent: *\n#robots-check:allow( foo-bar , path-without-slash )\nDisallow: x\n", &["2 unknown-lint"]),
            (
                "User-agent: *\nDisallow: x # robots-check: allow(secret-path)\nDisallow: y\n",
                &["2 path-without-slash", "3 path-without-slash"],
            ),
            ("# robots-check: allow(path-without-slash)\nUser-agent: *\nDisallow: x\n", &["3 path-without-slash"]),
            ("User-agent: *\nDisallow: x # allow(path-without-slash)\n", &["2 path-without-slash"]),
            ("User-agent: *\nDisallow: x # robots-check: allow(path-without-slash\n", &["2 path-without-slash"]),
            ("User-agent: *\nDisallow: /x\n# robots-check: allow(path-without-slash)", &[]),
        ] {
            assert_eq!(found(file), want, "{file}");
        }
    }

    #[test]
    fn findings_of_a_disabled_lint_are_not_counted() {
        let file = ["User-agent: *\n", &"Disallow: x # robots-check: allow(path-without-slash)\n".repeat(300)].concat();
        let report = check(&RobotsTxt::parse(file.as_bytes()), &Options::new());
        assert_eq!((report.findings.len(), report.omitted()), (0, 0), "{:?}", report.findings.first());
    }

    fn with(file: &str, edit: impl FnOnce(&CheckedFile<'_>) -> Option<Edit>) -> Option<String> {
        let robots = RobotsTxt::parse(file.as_bytes());
        let site = SiteContext::default();
        let edit = edit(&CheckedFile::new(&robots, &site, &[]))?;
        Some(String::from_utf8(Edit::apply(file.as_bytes(), [&edit])).expect("text"))
    }

    #[test]
    fn removing_a_field_keeps_an_ordinary_comment_on_its_line() {
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
    fn inserted_lines_use_the_line_ending_of_the_file() {
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
    fn the_origin_is_known_if_all_absolute_sitemap_urls_agree() {
        let origin = |file: &str| {
            let (robots, site) = (RobotsTxt::parse(file.as_bytes()), SiteContext::default());
            CheckedFile::new(&robots, &site, &[])
                .own_origin()
                .map(|origin| String::from_utf8(origin.to_vec()).expect("text"))
        };
        let want = Some("https://a.test");
        assert_eq!(origin("Sitemap: https://A.test/x\nSitemap: /y\nSitemap: https://a.test/z").as_deref(), want);
        assert_eq!(origin("Sitemap: https://a.test/x\nSitemap: https://b.test/z"), None);
        assert_eq!(origin("Sitemap: /x"), None);
    }
}
