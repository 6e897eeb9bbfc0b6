//! The file that lints look at, with what several of them need to know of it.

use std::cell::OnceCell;
use std::collections::HashSet;
use std::ops::Range;

use super::crawlers::CrawlersByToken;
use super::options::SiteContext;
use crate::rules::{Authority, Line, LineKind, Name, Reading, RobotsTxt, RuleSet};

/// A file that is checked.
pub(super) struct CheckedFile<'a> {
    pub(super) robots: &'a RobotsTxt,
    pub(super) site: &'a SiteContext,
    /// The codes of all lints.
    pub(super) codes: &'a [&'static str],
    /// The first user-agent line: rules before it belong to no group.
    pub(super) first_name: Option<Name<'a>>,
    pub(super) crawlers: CrawlersByToken<'a>,
    rules: OnceCell<RuleSet>,
    hosts_with_tls: OnceCell<HashSet<Vec<u8>>>,
}

impl<'a> CheckedFile<'a> {
    pub(super) fn new(robots: &'a RobotsTxt, site: &'a SiteContext, codes: &'a [&'static str]) -> Self {
        let first_name = robots.groups().next().and_then(|group| group.names().next());
        let crawlers = CrawlersByToken::new(&site.registry);
        Self { robots, site, codes, first_name, crawlers, rules: OnceCell::new(), hosts_with_tls: OnceCell::new() }
    }

    pub(super) fn bytes(&self) -> &'a [u8] {
        self.robots.bytes()
    }

    /// The file as it is enforced, compiled on first use.
    pub(super) fn rules(&self) -> &RuleSet {
        self.rules.get_or_init(|| {
            let registry = &self.site.registry;
            self.robots.compile_with(Reading::Standard, |name| registry.stands_for(name.value()))
        })
    }

    /// The hosts that sitemaps with https are on, with their ports, in lower case.
    pub(super) fn hosts_with_tls(&self) -> &HashSet<Vec<u8>> {
        self.hosts_with_tls.get_or_init(|| {
            let host = |url: &[u8]| {
                let (scheme, authority, _) = Authority::of_url(url)?;
                (scheme == b"https").then(|| authority.host_and_port.to_ascii_lowercase())
            };
            self.robots.sitemaps().filter_map(|sitemap| host(sitemap.value)).collect()
        })
    }
}

/// How a comment that turns lints off begins, behind its `#` and blanks.
const MARK: &[u8] = b"robots-check:";

/// The lints that comments of a file turn off, in the order of the file: `# robots-check: allow(secret-path,
/// duplicate-group)`.
///
/// On a line with something else the comment speaks of that line; on a line of its own, of the next one.
#[derive(Debug, Default)]
pub(super) struct Allowed<'a>(Vec<(Range<usize>, &'a [u8])>);

impl<'a> Allowed<'a> {
    pub(super) fn of(robots: &'a RobotsTxt) -> Self {
        let mut allowed = Self::default();
        // Nearly no file has such a comment.
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

    /// Where this lint is turned off.
    pub(super) fn ranges(&self, lint: &str) -> Vec<Range<usize>> {
        let mut ranges: Vec<_> =
            self.0.iter().filter(|(_, code)| *code == lint.as_bytes()).map(|(range, _)| range.clone()).collect();
        ranges.dedup();
        ranges
    }
}

/// Where the codes stand that a line's comment names.
pub(super) fn codes(line: &Line<'_>) -> impl Iterator<Item = Range<usize>> {
    let octets = line.bytes();
    let list = list(octets).unwrap_or(0..0);
    let mut at = line.range.start + list.start;
    octets[list].split(|octet| *octet == b',').filter_map(move |code| {
        let start = at + code.len() - code.trim_ascii_start().len();
        at += code.len() + 1;
        let code = code.trim_ascii();
        (!code.is_empty()).then(|| start..start + code.len())
    })
}

/// What stands between the parentheses.
fn list(line: &[u8]) -> Option<Range<usize>> {
    let comment = memchr::memchr(b'#', line)?;
    let rest = line[comment + 1..].trim_ascii_start().strip_prefix(MARK)?.trim_ascii_start().strip_prefix(b"allow(")?;
    let start = line.len() - rest.len();
    Some(start..start + memchr::memchr(b')', rest)?)
}

#[cfg(test)]
mod tests {
    use crate::check::{Options, check};
    use crate::rules::RobotsTxt;

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
    fn what_is_turned_off_is_not_counted() {
        let file = ["User-agent: *\n", &"Disallow: x # robots-check: allow(path-without-slash)\n".repeat(300)].concat();
        let report = check(&RobotsTxt::parse(file.as_bytes()), &Options::new());
        assert_eq!((report.findings.len(), report.omitted()), (0, 0), "{:?}", report.findings.first());
    }
}
