//! Path patterns: what a rule compares a path with.

use std::fmt;

use super::reading::Reading;
use super::text;

/// The path pattern of a rule in the form that is compared (RFC 9309, sections 2.2.2 and 2.2.3).
///
/// Anchored at the start of the path; `*` is any run of octets, `/` included; a last `$` is the end of the path.
#[derive(Clone, PartialEq, Eq)]
pub struct PathPattern {
    text: Box<[u8]>,
    priority: usize,
}

impl PathPattern {
    /// The pattern of an allow or disallow line, as written.
    #[must_use]
    pub fn new(written: &[u8], reading: Reading) -> Self {
        let mut text = Vec::with_capacity(written.len());
        text::write(&mut text, written, reading);
        Self { text: text.into(), priority: priority(written) }
    }

    /// What decides between patterns that match: the length of the pattern as written, in octets.
    #[must_use]
    pub const fn priority(&self) -> usize {
        self.priority
    }

    /// Whether a path, in the form the reading wants, matches. An empty pattern matches every path.
    #[must_use]
    pub fn matches(&self, path: &[u8]) -> bool {
        text::matches(&self.text, path)
    }
}

impl fmt::Debug for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (prefix, rest) = text::split_prefix(&self.text);
        let literals = std::iter::once(prefix).chain(text::literals(rest));
        let literals: Vec<_> = literals.map(String::from_utf8_lossy).collect();
        let end = if text::is_anchored(&self.text) { "$" } else { "" };
        write!(f, "PathPattern({:?}{end})", literals.join("*"))
    }
}

/// The length of the pattern once octets ≥ 0x80 are escaped, as the reference parser counts it.
pub(super) fn priority(written: &[u8]) -> usize {
    written.iter().map(|byte| if *byte >= 0x80 { 3 } else { 1 }).sum()
}

/// The pattern tried in place of an allow rule that ends in `/index.htm` and does not match: the directory alone.
/// A leniency of the reference parser, read by every reading.
pub(super) fn directory_of_index(written: &[u8]) -> Option<Vec<u8>> {
    let slash = memchr::memrchr(b'/', written)?;
    written[slash..].starts_with(b"/index.htm").then(|| [&written[..=slash], b"$"].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, path: &str, reading: Reading) -> bool {
        PathPattern::new(pattern.as_bytes(), reading).matches(path.as_bytes())
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
