//! Path patterns: what a rule compares a path with.

use std::fmt;

use memchr::memmem;

use super::path::{escaped, push_escape, standard};
use super::reading::Reading;

/// The path pattern of a rule in the form that is compared (RFC 9309, sections 2.2.2 and 2.2.3).
///
/// Anchored at the start of the path; `*` is any run of octets, `/` included; a last `$` is the end of the path.
#[derive(Clone, PartialEq, Eq)]
pub struct PathPattern {
    segments: Vec<Box<[u8]>>,
    anchored: bool,
    priority: usize,
}

impl PathPattern {
    /// The pattern of an allow or disallow line, as written.
    #[must_use]
    pub fn new(written: &[u8], reading: Reading) -> Self {
        let priority = priority(written);
        let written = match reading {
            Reading::Legacy if !matches!(written, [] | [b'/' | b'*', ..]) => &[b"/", written].concat(),
            _ => written,
        };
        let (written, anchored) = match written {
            [body @ .., b'$'] => (body, true),
            _ => (written, false),
        };
        let segments = written.split(|byte| *byte == b'*').map(|segment| octets(segment, reading).into()).collect();
        Self { segments, anchored, priority }
    }

    /// What decides between patterns that match: the length of the pattern as written, in octets.
    #[must_use]
    pub const fn priority(&self) -> usize {
        self.priority
    }

    /// Whether a path, in the form the reading wants, matches. An empty pattern matches every path.
    #[must_use]
    pub fn matches(&self, path: &[u8]) -> bool {
        let Some((first, rest)) = self.segments.split_first() else { return true };
        let Some(mut left) = path.strip_prefix(&**first) else { return false };
        let Some((last, between)) = rest.split_last() else { return !self.anchored || left.is_empty() };
        // Each segment takes the first place it fits: what is left for the next is then as long as it can be.
        for segment in between {
            let Some(at) = memmem::find(left, segment) else { return false };
            left = &left[at + segment.len()..];
        }
        if self.anchored { left.ends_with(last) } else { memmem::find(left, last).is_some() }
    }

    /// The pattern tried in place of an allow rule that ends in `/index.htm` and does not match: the directory alone.
    /// A leniency of the reference parser, read by every reading.
    pub(super) fn directory_of_index(written: &[u8], reading: Reading) -> Option<Self> {
        let slash = memchr::memrchr(b'/', written)?;
        written[slash..].starts_with(b"/index.htm").then(|| Self::new(&[&written[..=slash], b"$"].concat(), reading))
    }
}

impl fmt::Debug for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let segments: Vec<_> = self.segments.iter().map(|segment| String::from_utf8_lossy(segment)).collect();
        write!(f, "PathPattern({:?}{})", segments.join("*"), if self.anchored { "$" } else { "" })
    }
}

/// The octets of a literal part as they are compared.
fn octets(segment: &[u8], reading: Reading) -> Vec<u8> {
    match reading {
        Reading::Reference => {
            let mut out = Vec::with_capacity(segment.len());
            let mut at = 0;
            while at < segment.len() {
                match escaped(&segment[at..]) {
                    Some(octet) => {
                        push_escape(&mut out, octet);
                        at += 3;
                    }
                    None if segment[at] >= 0x80 => {
                        push_escape(&mut out, segment[at]);
                        at += 1;
                    }
                    None => {
                        out.push(segment[at]);
                        at += 1;
                    }
                }
            }
            out
        }
        Reading::Standard | Reading::Legacy => standard(segment).into_owned(),
    }
}

/// The length of the pattern once octets ≥ 0x80 are escaped, as the reference parser counts it.
fn priority(written: &[u8]) -> usize {
    written.iter().map(|byte| if *byte >= 0x80 { 3 } else { 1 }).sum()
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
