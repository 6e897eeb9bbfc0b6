//! Path patterns: the values of allow and disallow lines.
//!
//! **In patterns, `%2A` and `%24` match a literal `*` and `$`** (RFC 9309, section 2.2.3). So the
//! standard form of a request target contains `*` and `$` instead of these escapes. An encoded
//! pattern contains markers for its wildcards, so a literal `*` is not mistaken for a wildcard. A
//! pattern with an escaped reserved byte after a `*` has up to three encoded forms
//! ([`text`]), all with the same priority. In a collection of real files, 18 of 97,047
//! rules have several encoded forms.

use std::fmt;

use super::Reading;
use super::document::RobotsTxt;
use super::keyword::ValueError;
use super::match_budget::MatchBudget;
use super::text::{self, Missing, Query, Tail};

/// The path pattern of a rule, encoded for comparison (RFC 9309, sections 2.2.2 and 2.2.3).
///
/// A pattern must match from the start of the path. A `*` matches any sequence of bytes, including
/// `/`, and a `$` at the end of the pattern matches the end of the path.
#[derive(Clone, PartialEq, Eq)]
pub struct PathPattern {
    texts: Box<[Box<[u8]>]>,
    priority: usize,
}

/// Cost of comparing a path with the literal prefix of a pattern, in units of [`MatchBudget`].
const PREFIX_COST: usize = 4;

impl PathPattern {
    /// Returns the patterns of paths that are exempt from the rules by default: only
    /// `/.well-known/` (RFC 8615). Certificate authorities fetch files below this path before they
    /// issue certificates for the site.
    pub(crate) fn exempt_by_default() -> Vec<Self> {
        vec![Self::new(b"/.well-known/", Reading::Standard)]
    }

    /// Parses the patterns of exempt paths, each with [`PathPattern::parse`]. Rejects route
    /// patterns with braces (`/api/{*rest}`), because such patterns would exempt nothing.
    pub(crate) fn parse_exempt<P: AsRef<[u8]>>(patterns: impl IntoIterator<Item = P>) -> Result<Vec<Self>, ValueError> {
        let parse = |written: P| {
            let written = written.as_ref();
            if written.contains(&b'{') && written.contains(&b'}') {
                return Err(ValueError::new(
                    String::from_utf8_lossy(written),
                    "has braces like a pattern of a router: write a pattern as in robots.txt, such as \"/api/*\", or \
                     %7B and %7D if the paths really contain braces",
                ));
            }
            Self::parse(written)
        };
        patterns.into_iter().map(parse).collect()
    }

    /// Parses a pattern from a configuration, in [`Reading::Standard`].
    ///
    /// # Errors
    ///
    /// Returns an error if the pattern begins with neither `/` nor `*`, because such a pattern
    /// matches no path.
    pub fn parse(written: impl AsRef<[u8]>) -> Result<Self, ValueError> {
        match written.as_ref() {
            written @ [b'/' | b'*', ..] => Ok(Self::new(written, Reading::Standard)),
            other => Err(ValueError::new(
                String::from_utf8_lossy(other),
                "is not a path pattern: it matches nothing unless it begins with \"/\" or \"*\"",
            )),
        }
    }

    /// Creates a pattern from the value of an allow or disallow line, as written in the file.
    pub fn new(written: &[u8], reading: Reading) -> Self {
        let text = |query: Query| {
            let mut text = Vec::with_capacity(written.len());
            text::write(&mut text, written, reading, query);
            text.into()
        };
        Self { texts: text::queries(written, reading).map(text).collect(), priority: priority(written) }
    }

    /// Returns the priority of the pattern: its length as written, in bytes. A byte ≥ 0x80 counts
    /// as three bytes, the length of its escape. If several patterns match a path, the pattern with
    /// the highest priority decides.
    #[doc(hidden)]
    pub const fn priority(&self) -> usize {
        self.priority
    }

    /// Reports whether the pattern matches a path. The path must be in standard form, or verbatim
    /// for [`Reading::Reference`]. An empty pattern matches every path.
    pub fn matches(&self, path: &[u8]) -> bool {
        self.texts.iter().any(|text| text::matches(text, path))
    }

    /// Reports whether the pattern matches every path. A pattern that matches both `/` and `/x`
    /// contains no literal except a single `/`, so it matches every path.
    pub(crate) fn matches_all(&self) -> bool {
        self.matches(b"/") && self.matches(b"/x")
    }

    /// Like [`PathPattern::matches`], but subtracts the cost of the comparison from the work budget
    /// of the request. Returns `false` if the budget is used up.
    pub(crate) fn matches_within(&self, path: &[u8], work: &mut MatchBudget) -> bool {
        self.texts.iter().any(|text| {
            let (prefix, rest) = text::split_prefix(text);
            let has_wildcard = text::tail(rest) == Tail::Wild;
            work.take(PREFIX_COST)
                && path.strip_prefix(prefix).is_some_and(|left| {
                    (!has_wildcard || work.take(left.len() + rest.len()))
                        && text::fits(rest, left, &mut Missing::default())
                })
        })
    }

    /// Reports whether two patterns are spellings of the same pattern, and so match the same paths.
    pub(crate) fn is_spelling_of(&self, other: &Self) -> bool {
        self.texts == other.texts
    }

    /// For each encoded form of the pattern, returns one path that this form matches. In this path,
    /// the byte `any` replaces each `*`.
    pub(crate) fn with_wildcards_as(&self, any: u8) -> impl Iterator<Item = Vec<u8>> {
        self.texts.iter().map(move |text| text::with_wildcards_as(text, any))
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

/// Returns the length of the pattern with bytes ≥ 0x80 escaped, as in the reference parser.
pub(crate) fn priority(written: &[u8]) -> usize {
    written.iter().map(|byte| if *byte >= 0x80 { 3 } else { 1 }).sum()
}

/// If the last segment of an allow pattern begins with `index.htm`, returns a pattern that matches
/// only the directory. As in the reference parser, an allow rule also applies if the returned
/// pattern matches.
pub(super) fn directory_of_index(written: &[u8]) -> Option<Vec<u8>> {
    let slash = memchr::memrchr(b'/', written)?;
    written[slash..].starts_with(b"/index.htm").then(|| [&written[..=slash], b"$"].concat())
}

/// A rule, or all rules for one crawler, with so many wildcards that a verdict can be slow. A check
/// of the file reports such rules.
///
/// The time of a verdict is proportional to the number of wildcards times the length of the path,
/// up to a limit per request. For a crafted path, each wildcard takes some nanoseconds, and
/// thousands of wildcards reach the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Costly {
    /// Line of the rule. If [`is_together`](Self::is_together) is true, this is the line of the
    /// crawler's first group.
    pub line: usize,
    /// Number of wildcards in the rule, or in all rules for the crawler.
    pub wildcards: usize,
    /// Whether the wildcards of all rules for one crawler were counted, instead of the wildcards of
    /// a single rule.
    pub is_together: bool,
}

impl Costly {
    /// Maximum number of wildcards in a pattern. A pattern with more wildcards is reported; no
    /// legitimate pattern has so many.
    pub const MANY_WILDCARDS: usize = 16;

    /// Maximum number of wildcards in all rules for one crawler. If the rules have more wildcards,
    /// they are reported. At worst, matching this number of wildcards takes about a tenth of a
    /// millisecond.
    pub const MANY_TOGETHER: usize = 10_000;
}

/// Returns, in the order of the file, each rule with too many wildcards, and each set of groups
/// whose rules together have too many. Ignores rules that end after the first `limit` bytes.
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

/// Counts the wildcards in a pattern. Consecutive `*` count as one wildcard, and a `*` at the end
/// does not count.
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
    fn a_given_byte_replaces_the_wildcards_and_the_open_end_of_a_pattern() {
        let runs =
            |pattern: &str| PathPattern::new(pattern.as_bytes(), Reading::Standard).with_wildcards_as(b'~').next();
        assert_eq!(runs("/a*b").as_deref(), Some(&b"/a~b~"[..]));
        assert_eq!(runs("/a*b$").as_deref(), Some(&b"/a~b"[..]));
        assert_eq!(PathPattern::parse("a").unwrap_err().text(), "a");
    }

    #[test]
    fn rfc_2_2_3_star_matches_any_bytes_and_dollar_matches_the_end() {
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
    fn reference_8_escapes_are_upper_cased_and_non_ascii_bytes_are_escaped() {
        assert!(matches("/a%2fb", "/a%2Fb", Reading::Reference));
        assert!(!matches("/a%2fb", "/a%2fb", Reading::Reference));
        assert!(matches("/\u{e9}", "/%C3%A9", Reading::Reference));
        assert!(!matches("/%61", "/a", Reading::Reference));
        assert!(matches("/a b{|}%zz", "/a b{|}%zz", Reading::Reference));
    }

    #[test]
    fn ours_escapes_of_unreserved_bytes_in_a_pattern_are_decoded() {
        assert!(matches("/%61%2f", "/a%2F", Reading::Standard));
        assert!(!matches("/%61", "/%61", Reading::Standard));
        assert_eq!(PathPattern::new(b"/%61", Reading::Standard).priority(), 4);
    }

    #[test]
    fn ours_raw_and_escaped_reserved_bytes_of_a_pattern_are_equal_in_the_path() {
        for (pattern, other) in [("/@adm/", "/%40adm/"), ("/wiki/Special:", "/wiki/Special%3a"), ("/m=n;", "/m%3Dn%3B")]
        {
            let path = other.replace("%40", "@").replace("%3a", ":").replace("%3D", "=").replace("%3B", ";");
            assert!(matches(pattern, &path, Reading::Standard), "{pattern}");
            assert!(matches(other, &path, Reading::Standard), "{other}");
            assert!(!matches(other, &path, Reading::Reference), "{other}");
        }
        // In a query, escapes of reserved bytes are not decoded.
        assert!(matches("/?u=%3a", "/?u=%3A", Reading::Standard));
        assert!(!matches("/?u=%3A", "/?u=:", Reading::Standard));
        assert!(matches("/%3A?u=%3A", "/:?u=%3A", Reading::Standard));
    }

    #[test]
    fn ours_an_escape_after_a_star_can_match_in_the_path_or_in_the_query() {
        for path in ["/a:b@c", "/a:b?%40c", "/a?%3A%40", "/?u=%3Ax%40"] {
            assert!(matches("/*%3A*%40", path, Reading::Standard), "{path}");
        }
        for path in ["/a%3Ab@c", "/a?%3A@"] {
            assert!(!matches("/*%3A*%40", path, Reading::Standard), "{path}");
        }
        // Everything after a `?` in the pattern can only match in the query.
        assert!(matches("/*%3A?x=%3A", "/a:?x=%3A", Reading::Standard));
        assert!(matches("/*%3A?x=%3A", "/?%3A?x=%3A", Reading::Standard));
        assert!(!matches("/*%3A?x=%3A", "/a:?x=:", Reading::Standard));
        // The literal after `*` is compared in both spellings, because it may match in the path,
        // where `%3A` is written as `:`, or in the query. So the literal also matches a `:` in the
        // query.
        assert!(matches("/*%3A", "/a?:", Reading::Standard));
        // A pattern has several encoded forms only if an escape after a `*` is decoded in paths but
        // not in queries.
        let cases = [("/a%3A*b%2F%20", 1), ("/*?x=%3A", 1), ("/*%3A", 2), ("/*%3A*%3A*%3A", text::MAX_TEXTS)];
        for (pattern, texts) in cases {
            assert_eq!(PathPattern::new(pattern.as_bytes(), Reading::Standard).texts.len(), texts, "{pattern}");
        }
    }

    #[test]
    fn two_spellings_of_one_pattern_are_recognised() {
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
