//! Patterns for the reverse DNS names of a crawler's addresses.

use std::fmt;
use std::str::FromStr;

use crate::rules::ValueError;

/// A suffix (`.googlebot.com`) or a pattern (`crawl-*-*-*-*.googlebot.com`) for host names. Names
/// are compared label by label, ignoring case.
///
/// A suffix matches all names below the domain, so `.googlebot.com` matches neither
/// `xgooglebot.com` nor `googlebot.com.evil.example`. In a pattern, a `*` matches one or more bytes
/// of one label, and a name must have as many labels as the pattern.
///
/// ```
/// use robots_core::identity::NamePattern;
///
/// let pattern: NamePattern = "crawl-*-*-*-*.googlebot.com".parse()?;
/// assert!(pattern.matches("crawl-66-249-66-1.googlebot.com."));
/// assert!(!pattern.matches("evil.crawl-66-249-66-1.googlebot.com"));
/// # Ok::<(), robots_core::rules::ValueError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NamePattern {
    /// The pattern in lower case, without the leading dot of a suffix.
    text: Box<str>,
    is_suffix: bool,
}

/// Maximum length of a host name, in bytes (RFC 1035, section 2.3.4). A label has at most 63 bytes.
const MAX_NAME_LENGTH: usize = 253;
const MAX_LABEL_LENGTH: usize = 63;

impl NamePattern {
    /// Reports whether the pattern matches a host name. The name may end with a dot.
    pub fn matches(&self, name: &str) -> bool {
        let name = name.strip_suffix('.').unwrap_or(name);
        if !is_name(name, is_label_byte) {
            return false;
        }
        if self.is_suffix {
            let Some(below) = name.len().checked_sub(self.text.len()) else { return false };
            let (below, domain) = name.as_bytes().split_at(below);
            return below.last() == Some(&b'.') && domain.eq_ignore_ascii_case(self.text.as_bytes());
        }
        let (mut labels, mut patterns) = (name.split('.'), self.text.split('.'));
        loop {
            match (labels.next(), patterns.next()) {
                (None, None) => return true,
                (Some(label), Some(pattern)) if label_matches(label.as_bytes(), pattern.as_bytes()) => {}
                _ => return false,
            }
        }
    }
}

impl FromStr for NamePattern {
    type Err = ValueError;

    /// # Errors
    ///
    /// Returns an error if the pattern cannot match any name. Also returns an error if one of the
    /// last two labels contains `*`, because such a pattern could match names of other operators.
    fn from_str(text: &str) -> Result<Self, ValueError> {
        let error = |fault: &str| ValueError::of_any(text, format_args!("is not a pattern of host names: {fault}"));
        if !text.is_ascii() {
            return Err(error("write names with non-ASCII letters in their \"xn--\" form"));
        }
        let lower = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
        let is_suffix = !lower.contains('*');
        if !is_suffix && lower.starts_with('.') {
            return Err(error("a suffix cannot contain `*`, so leave out the first dot or the `*`"));
        }
        let name = lower.strip_prefix('.').unwrap_or(&lower);
        if !is_name(name, |byte| is_label_byte(byte) || byte == b'*') {
            let right = "write a suffix such as \".googlebot.com\" or a pattern such as \"crawl-*.googlebot.com\"";
            return Err(error(right));
        }
        let Some((below, top)) = name.rsplit_once('.') else {
            return Err(error("the pattern would match names of other operators, so add the domain of the operator"));
        };
        let domain = below.rsplit_once('.').map_or(below, |(_, domain)| domain);
        if top.contains('*') || domain.contains('*') {
            return Err(error(
                "the pattern would match names of other operators, so write the last two labels without `*`",
            ));
        }
        Ok(Self { text: name.into(), is_suffix })
    }
}

/// Reports whether a byte may occur in a label. Hyphens and underscores are allowed anywhere in a
/// label, as in the DNS.
pub(super) const fn is_label_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

pub(super) fn is_name(name: &str, is_byte: impl Fn(u8) -> bool) -> bool {
    let is_label = |label: &str| (1..=MAX_LABEL_LENGTH).contains(&label.len()) && label.bytes().all(&is_byte);
    name.len() <= MAX_NAME_LENGTH && name.split('.').all(is_label)
}

/// Reports whether a label matches a pattern. The literals between the stars are matched from left
/// to right, each at the first possible position. The last literal is matched at the end of the
/// label.
fn label_matches(label: &[u8], pattern: &[u8]) -> bool {
    let mut literals = pattern.split(|byte| *byte == b'*');
    let Some(mut rest) = literals.next().and_then(|first| without_prefix(label, first)) else { return false };
    let mut literals = literals.peekable();
    if literals.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(literal) = literals.next() {
        // Each `*` must match at least one byte.
        let Some(at) = (if literals.peek().is_none() {
            rest.len().checked_sub(literal.len()).filter(|at| rest[*at..].eq_ignore_ascii_case(literal))
        } else {
            (1..=rest.len().saturating_sub(literal.len()))
                .find(|at| rest[*at..*at + literal.len()].eq_ignore_ascii_case(literal))
        })
        .filter(|at| *at >= 1) else {
            return false;
        };
        rest = &rest[at + literal.len()..];
    }
    true
}

fn without_prefix<'a>(label: &'a [u8], prefix: &[u8]) -> Option<&'a [u8]> {
    let (start, rest) = label.split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(rest)
}

impl fmt::Display for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", if self.is_suffix { "." } else { "" }, self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> NamePattern {
        text.parse().expect(text)
    }

    #[test]
    fn a_suffix_is_compared_at_a_label_boundary() {
        for text in [".googlebot.com", "googlebot.com", ".GoogleBot.COM", ".googlebot.com."] {
            let suffix = pattern(text);
            let names = "crawl-66-249-66-1.googlebot.com crawl-66-249-66-1.googlebot.com. \
                CRAWL-66-249-66-1.GoogleBot.Com a.b.googlebot.com a_b.googlebot.com";
            for name in names.split(' ') {
                assert!(suffix.matches(name), "{text}: {name}");
            }
            let names = "googlebot.com~.googlebot.com~..googlebot.com~a..googlebot.com~xgooglebot.com~\
                a.xgooglebot.com~googlebot.com.evil.example~a.googlebot.com.evil.example~a.googlebot.com..~\
                a.googlebot.comx~a.googlebot~a\\.googlebot.com~a b.googlebot.com~a\0.googlebot.com~\
                ä.googlebot.com~a.googlebot。com~*.googlebot.com~.";
            for name in names.split('~').chain([""]) {
                assert!(!suffix.matches(name), "{text}: {name:?}");
            }
        }
        assert!(!pattern(".googlebot.com").matches(&format!("{}.googlebot.com", "a".repeat(64))));
        assert!(!pattern(".googlebot.com").matches(&format!("{}googlebot.com", "a.".repeat(121))));
    }

    #[test]
    fn a_star_matches_one_or_more_characters_within_one_label() {
        for (text, names, others) in [
            (
                "crawl-*-*-*-*.googlebot.com",
                &["crawl-66-249-66-1.googlebot.com", "CRAWL-1-2-3-4-5.googlebot.com."][..],
                &[
                    "crawl-66-249-66.googlebot.com",
                    "crawl-66-249-66-.googlebot.com",
                    "crawl--249-66-1.googlebot.com",
                    "xcrawl-66-249-66-1.googlebot.com",
                    "a.crawl-66-249-66-1.googlebot.com",
                    "crawl-66-249.66-1.googlebot.com",
                    "crawl-66-249-66-1.googlebot.com.evil.example",
                ][..],
            ),
            (
                "google-proxy-*.google.com",
                &["google-proxy-66-102-6-1.google.com"],
                &["google-proxy-.google.com", "rate-limited-proxy-66-249-91-1.google.com"],
            ),
            (
                "*.gae.googleusercontent.com",
                &["1.gae.googleusercontent.com"],
                &["gae.googleusercontent.com", "1.2.gae.googleusercontent.com", "1.gae.googleusercontent.com.x"],
            ),
            (
                "a*b*b.example.com",
                &["axbxb.example.com", "abbbb.example.com"],
                &["axb.example.com", "abb.example.com", "abbb.example.com"],
            ),
        ] {
            for name in names {
                assert!(pattern(text).matches(name), "{text}: {name}");
            }
            for name in others {
                assert!(!pattern(text).matches(name), "{text}: {name}");
            }
        }
        // Matching is fast even if a label almost matches a pattern with many stars.
        let stars = pattern(&format!("{}b.example.com", "a*".repeat(20)));
        assert!(!stars.matches(&format!("{}.example.com", "a".repeat(63))));
    }

    #[test]
    fn an_invalid_or_too_wide_pattern_is_refused() {
        for (text, reason) in [
            ("", "write a suffix such as"),
            (".", "write a suffix such as"),
            ("..com", "write a suffix such as"),
            ("a..b.com", "write a suffix such as"),
            ("a b.com", "write a suffix such as"),
            ("https://a.com/", "write a suffix such as"),
            (".müller.example", "\"xn--\" form"),
            (".com", "add the domain of the operator"),
            ("com.", "add the domain of the operator"),
            ("*", "add the domain of the operator"),
            ("*.com", "the last two labels"),
            ("a.*.com", "the last two labels"),
            ("a.b.c*m", "the last two labels"),
            (".crawl-*.a.com", "a suffix cannot contain `*`"),
        ] {
            let error = text.parse::<NamePattern>().expect_err(text).to_string();
            assert!(error.contains(reason), "{error}");
        }
    }
}
