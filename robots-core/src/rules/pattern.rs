//! Path patterns: the part of a rule that is compared with a path.
//!
//! **`%2A` and `%24` are literal** in patterns (RFC 9309, section 2.2.3), so the standard form decodes them in targets,
//! and a pattern keeps its literal octets apart from its wildcards. A literal behind a `*` may be met in a path or in a
//! query, which spell reserved octets differently: such a pattern compiles to up to three texts of one precedence (18
//! of 97,047 rules in real files).

use std::fmt;

use super::Reading;
use super::document::RobotsTxt;
use super::keyword::ValueError;
use super::text::{self, Query};

/// The path pattern of a rule in the form that is compared (RFC 9309, sections 2.2.2 and 2.2.3).
///
/// Anchored at the start of the path; `*` is any run of octets, `/` included; a last `$` is the end of the path.
#[derive(Clone, PartialEq, Eq)]
pub struct PathPattern {
    texts: Box<[Box<[u8]>]>,
    priority: usize,
}

impl PathPattern {
    /// The patterns of paths that are always exempt: `/.well-known/`, metadata about a site (RFC 8615) on which its certificates depend.
    pub(crate) fn exempt_by_default() -> Vec<Self> {
        vec![Self::new(b"/.well-known/", Reading::Standard)]
    }

    /// Parses several patterns, as [`PathPattern::parse`] does.
    pub(crate) fn parse_all<P: AsRef<[u8]>>(patterns: impl IntoIterator<Item = P>) -> Result<Vec<Self>, ValueError> {
        patterns.into_iter().map(Self::parse).collect()
    }

    /// The pattern of a setting, in [`Reading::Standard`].
    ///
    /// # Errors
    ///
    /// If it begins with neither `/` nor `*`: it would match no path.
    pub fn parse(written: impl AsRef<[u8]>) -> Result<Self, ValueError> {
        match written.as_ref() {
            written @ [b'/' | b'*', ..] => Ok(Self::new(written, Reading::Standard)),
            other => Err(ValueError::new(
                String::from_utf8_lossy(other),
                "is not a path pattern: it matches nothing unless it begins with \"/\" or \"*\"",
            )),
        }
    }

    /// The pattern of an allow or disallow line, as written.
    pub fn new(written: &[u8], reading: Reading) -> Self {
        let text = |query: Query| {
            let mut text = Vec::with_capacity(written.len());
            text::write(&mut text, written, reading, query);
            text.into()
        };
        Self { texts: text::queries(written, reading).map(text).collect(), priority: priority(written) }
    }

    /// The priority between patterns that match: the length of the pattern as written, in octets.
    pub const fn priority(&self) -> usize {
        self.priority
    }

    /// Whether a path, in the form the reading wants, matches. An empty pattern matches every path.
    pub fn matches(&self, path: &[u8]) -> bool {
        self.texts.iter().any(|text| text::matches(text, path))
    }

    /// Whether both match the same paths, as far as their spelling shows.
    pub(crate) fn is_spelling_of(&self, other: &Self) -> bool {
        self.texts == other.texts
    }

    /// The pattern with `any` for each run of octets, once for each part of a target that a literal can be met in.
    pub(crate) fn with_runs(&self, any: u8) -> impl Iterator<Item = Vec<u8>> {
        self.texts.iter().map(move |text| text::with_runs(text, any))
    }
}

impl fmt::Debug for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |text| {
            let (prefix, rest) = text::split_prefix(text);
            let literals = std::iter::once(prefix).chain(text::literals(rest));
            let literals: Vec<_> = literals.map(String::from_utf8_lossy).collect();
            format!("{:?}{}", literals.join("*"), if text::is_anchored(text) { "$" } else { "" })
        };
        let texts: Vec<_> = self.texts.iter().map(|one| text(one)).collect();
        write!(f, "PathPattern({})", texts.join(" or "))
    }
}

/// The length of the pattern once octets ≥ 0x80 are escaped, as the reference parser counts it.
pub(crate) fn priority(written: &[u8]) -> usize {
    written.iter().map(|byte| if *byte >= 0x80 { 3 } else { 1 }).sum()
}

/// The pattern tried in place of an allow rule that ends in `/index.htm` and does not match: the directory alone.
/// A leniency of the reference parser, read by every reading.
pub(super) fn directory_of_index(written: &[u8]) -> Option<Vec<u8>> {
    let slash = memchr::memrchr(b'/', written)?;
    written[slash..].starts_with(b"/index.htm").then(|| [&written[..=slash], b"$"].concat())
}

/// A rule, or the rules for one crawler, that can make a verdict slow. It is found when rules are compiled, and the
/// check reports it.
///
/// The work of a verdict grows with the product of the wildcards and the path, up to a bound for each request. On paths
/// made for it, each wildcard costs some nanoseconds, and thousands of them reach the bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Costly {
    /// The line of the rule, or the first of the groups.
    pub line: usize,
    /// How many wildcards it has, or they have.
    pub wildcards: usize,
    /// Whether it is about all rules for one crawler, and not about one.
    pub is_together: bool,
}

impl Costly {
    /// Wildcards of one pattern that no honest rule needs.
    pub const MANY_WILDCARDS: usize = 16;

    /// Wildcards of all rules for one crawler that cost about a tenth of a millisecond at worst.
    pub const MANY_TOGETHER: usize = 10_000;
}

/// The costly patterns in the rules that end within the first `limit` octets, for sets of groups that apply together; in the
/// order of the file.
pub(super) fn find(document: &RobotsTxt, limit: usize, sets: &[Vec<usize>]) -> Vec<Costly> {
    let mut costly = Vec::new();
    let mut of_group = Vec::with_capacity(document.groups().len());
    for group in document.groups() {
        let mut together = 0;
        for rule in group.rules().take_while(|rule| rule.range().end <= limit) {
            let wildcards = wildcards(rule.pattern());
            if wildcards > Costly::MANY_WILDCARDS {
                costly.push(Costly { line: rule.line(), wildcards, is_together: false });
            }
            together += wildcards;
        }
        of_group.push(together);
    }
    let mut reported = vec![false; of_group.len()];
    for set in sets {
        let together = set.iter().map(|group| of_group[*group]).sum();
        if together > Costly::MANY_TOGETHER && !std::mem::replace(&mut reported[set[0]], true) {
            let line = document.group(set[0]).line();
            costly.push(Costly { line, wildcards: together, is_together: true });
        }
    }
    costly.sort_by_key(|costly| costly.line);
    costly
}

/// How many runs of stars there are, but for one at the end.
fn wildcards(pattern: &[u8]) -> usize {
    pattern.windows(2).filter(|pair| pair[0] == b'*' && pair[1] != b'*').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, path: &str, reading: Reading) -> bool {
        PathPattern::new(pattern.as_bytes(), reading).matches(path.as_bytes())
    }

    #[test]
    fn runs_stand_for_wildcards_and_for_what_follows_an_open_end() {
        let runs = |pattern: &str| PathPattern::new(pattern.as_bytes(), Reading::Standard).with_runs(b'~').next();
        assert_eq!(runs("/a*b").as_deref(), Some(&b"/a~b~"[..]));
        assert_eq!(runs("/a*b$").as_deref(), Some(&b"/a~b"[..]));
        assert_eq!(PathPattern::parse("a").unwrap_err().text(), "a");
    }

    #[test]
    fn rfc_2_2_3_star_is_any_run_and_dollar_the_end() {
        for (pattern, path, want) in [
            ("/", "/x", true),
            ("/a", "/ab", true),
            ("/a$", "/a", true),
            ("/a$", "/ab", false),
            ("/a*b$", "/acb/b", true),
            ("/a*b$", "/ab", true),
            ("/ab*b$", "/ab", false),
            ("/a**c", "/abc", true),
            ("*", "/", true),
            ("*/x", "/a/x", true),
            ("/*$", "/anything", true),
            ("/a$b", "/a$bc", true),
            ("/a$$", "/a$", true),
            ("/a$$", "/a$x", false),
            ("a", "/a", false),
            ("$", "/", false),
            ("", "/", true),
            ("/a*b*c$", "/abbcbc", true),
            ("/a*bc*c$", "/abc", false),
        ] {
            for reading in [Reading::Standard, Reading::Reference] {
                assert_eq!(matches(pattern, path, reading), want, "{pattern} {path} {reading:?}");
            }
        }
    }

    #[test]
    fn reference_8_escapes_are_upper_cased_and_raw_octets_escaped() {
        assert!(matches("/a%2fb", "/a%2Fb", Reading::Reference));
        assert!(!matches("/a%2fb", "/a%2fb", Reading::Reference));
        assert!(matches("/\u{e9}", "/%C3%A9", Reading::Reference));
        assert!(!matches("/%61", "/a", Reading::Reference));
        assert!(matches("/a b{|}%zz", "/a b{|}%zz", Reading::Reference));
    }

    #[test]
    fn ours_unreserved_octets_of_a_pattern_are_decoded() {
        assert!(matches("/%61%2f", "/a%2F", Reading::Standard));
        assert!(!matches("/%61", "/%61", Reading::Standard));
        assert_eq!(PathPattern::new(b"/%61", Reading::Standard).priority(), 4);
    }

    #[test]
    fn ours_reserved_octets_of_a_pattern_match_either_spelling_in_the_path() {
        for (pattern, other) in [("/@adm/", "/%40adm/"), ("/wiki/Special:", "/wiki/Special%3a"), ("/m=n;", "/m%3Dn%3B")]
        {
            let path = other.replace("%40", "@").replace("%3a", ":").replace("%3D", "=").replace("%3B", ";");
            assert!(matches(pattern, &path, Reading::Standard), "{pattern}");
            assert!(matches(other, &path, Reading::Standard), "{other}");
            assert!(!matches(other, &path, Reading::Reference), "{other}");
        }
        // A query keeps its spelling.
        assert!(matches("/?u=%3a", "/?u=%3A", Reading::Standard));
        assert!(!matches("/?u=%3A", "/?u=:", Reading::Standard));
        assert!(matches("/%3A?u=%3A", "/:?u=%3A", Reading::Standard));
    }

    #[test]
    fn ours_what_is_behind_a_star_is_met_in_the_path_or_in_the_query() {
        for path in ["/a:b@c", "/a:b?%40c", "/a?%3A%40", "/?u=%3Ax%40"] {
            assert!(matches("/*%3A*%40", path, Reading::Standard), "{path}");
        }
        for path in ["/a%3Ab@c", "/a?%3A@"] {
            assert!(!matches("/*%3A*%40", path, Reading::Standard), "{path}");
        }
        // Behind a `?` of the pattern there is only the query.
        assert!(matches("/*%3A?x=%3A", "/a:?x=%3A", Reading::Standard));
        assert!(matches("/*%3A?x=%3A", "/?%3A?x=%3A", Reading::Standard));
        assert!(!matches("/*%3A?x=%3A", "/a:?x=:", Reading::Standard));
        // Which part a `*` ends in is not known, so a query that spells an octet as the path does matches as well.
        assert!(matches("/*%3A", "/a?:", Reading::Standard));
        // Without such an escape there is one text.
        for (pattern, texts) in
            [("/a%3A*b%2F%20", 1), ("/*?x=%3A", 1), ("/*%3A", 2), ("/*%3A*%3A*%3A", text::MOST_TEXTS)]
        {
            assert_eq!(PathPattern::new(pattern.as_bytes(), Reading::Standard).texts.len(), texts, "{pattern}");
        }
    }

    #[test]
    fn spellings_of_one_pattern_are_known() {
        let pattern = |written: &str| PathPattern::new(written.as_bytes(), Reading::Standard);
        assert!(pattern("/%40a/*").is_spelling_of(&pattern("/@%61/")));
        assert!(!pattern("/@a/").is_spelling_of(&pattern("/@a/$")));
    }

    #[test]
    fn ours_an_escaped_star_or_dollar_is_literal() {
        assert!(matches("/a%2Ab", "/a*b", Reading::Standard));
        assert!(!matches("/a%2Ab", "/axb", Reading::Standard));
        assert!(matches("/a%24", "/a$b", Reading::Standard));
        assert!(!matches("/a%24", "/a", Reading::Standard));
    }

    #[test]
    fn ours_legacy_assumes_a_leading_slash() {
        assert!(matches("fish/", "/fish/x", Reading::Legacy));
        assert!(!matches("fish/", "/fish/x", Reading::Standard));
        assert!(matches("*.php", "/a.php", Reading::Legacy));
        assert!(matches("", "/a", Reading::Legacy));
    }

    #[test]
    fn reference_11_priority_is_the_escaped_length() {
        for (pattern, priority) in [("", 0), ("/a*$", 4), ("/\u{e9}", 7), ("/%61", 4)] {
            assert_eq!(PathPattern::new(pattern.as_bytes(), Reading::Reference).priority(), priority, "{pattern}");
        }
    }
}
