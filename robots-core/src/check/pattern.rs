//! Compares path patterns with each other, and distinguishes them from regular expressions.

use crate::rules::{PathPattern, Reading};

/// Byte that represents any sequence of bytes in the canonical form of a pattern. Paths, and
/// patterns in files, never contain this byte.
const ANY: u8 = 0;

/// The canonical form of a pattern. Patterns that match the same paths and differ only in the
/// spelling of `*`, `$` and escapes have the same canonical form.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Canonical {
    /// The encoded forms of the pattern, with [`ANY`] instead of each `*`. If the pattern does not
    /// end with the anchor `$`, [`ANY`] is appended. A pattern has several forms if one of its
    /// bytes is encoded differently in paths and in queries, and may match in both.
    texts: Vec<Vec<u8>>,
}

impl Canonical {
    pub(super) fn of(written: &[u8]) -> Option<Self> {
        if !matches!(written, [b'/' | b'*', ..]) {
            return None;
        }
        let mut texts: Vec<_> = PathPattern::new(written, Reading::Standard).with_wildcards_as(ANY).collect();
        // A pattern that consists of `*` matches the same paths as `/`, because every path begins
        // with a slash.
        for text in texts.iter_mut().filter(|text| **text == [ANY]) {
            text.insert(0, b'/');
        }
        Some(Self { texts })
    }

    /// Reports whether `other` also matches every path that this pattern matches.
    pub(super) fn is_within(&self, other: &PathPattern) -> bool {
        // Only a `*` of the other pattern can match [`ANY`], because no literal contains this byte.
        self.texts.iter().all(|text| other.matches(text))
    }

    pub(super) fn prefix(&self) -> &[u8] {
        self.texts[0].split(|byte| *byte == ANY).next().unwrap_or_default()
    }

    pub(super) fn has_inner_stars(&self) -> bool {
        let text = &self.texts[0];
        memchr::memchr(ANY, text).is_some_and(|at| at + 1 < text.len())
    }
}

pub(super) fn escaped(pattern: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(pattern.len());
    for byte in pattern {
        match byte {
            0x80.. => text.extend_from_slice(format!("%{byte:02X}").as_bytes()),
            _ => text.push(*byte),
        }
    }
    text
}

/// Normalises the spelling of a pattern: escapes bytes ≥ 0x80, and upper-cases the digits of
/// escapes. The meaning stays the same in every [`Reading`].
pub(super) fn with_normal_escapes(pattern: &[u8]) -> Vec<u8> {
    let mut text = escaped(pattern);
    let mut at = 0;
    while let Some(next) = memchr::memchr(b'%', &text[at..]) {
        at += next + 1;
        if let Some([high, low]) = text.get_mut(at..at + 2)
            && high.is_ascii_hexdigit()
            && low.is_ascii_hexdigit()
        {
            high.make_ascii_uppercase();
            low.make_ascii_uppercase();
        }
    }
    text
}

/// Returns a pattern that matches the same paths, but with one `*` instead of several consecutive
/// ones, and without a `*` at the end.
pub(super) fn without_redundant_stars(mut pattern: Vec<u8>) -> Vec<u8> {
    pattern.dedup_by(|next, last| *next == b'*' && *last == b'*');
    let kept = pattern.strip_suffix(b"*$").or_else(|| pattern.strip_suffix(b"*")).map_or(pattern.len(), <[u8]>::len);
    // A `*` after a `$` is kept. Otherwise, the `$` would be the last byte, and mean the end of the
    // path.
    if !pattern[..kept].ends_with(b"$") {
        pattern.truncate(kept);
    }
    pattern
}

/// Reports whether one of the patterns in `by` matches every path that the pattern `written`
/// matches.
pub(super) fn covered<'p>(written: &[u8], by: impl IntoIterator<Item = &'p PathPattern>) -> bool {
    Canonical::of(written).is_some_and(|pattern| by.into_iter().any(|other| pattern.is_within(other)))
}

/// Reports whether a pattern is meant only for `/robots.txt`. A rule with such a pattern has no
/// effect, because crawlers may always fetch `/robots.txt`.
pub(super) fn is_of_robots_txt(pattern: &[u8]) -> bool {
    let alone = || PathPattern::new(b"/robots.txt$", Reading::Standard);
    pattern == b"/robots.txt" || pattern.starts_with(b"/robots.txt") && covered(pattern, [&alone()])
}

/// Reports whether a pattern contains syntax that occurs only in regular expressions: `[0-9]`,
/// `(a|b)`, `\d`, `/.*`. Returns `false` for `/index.*`, `/a+b`, `/*?$` and `/filter[price]`,
/// because they may be intended as written.
pub(super) fn is_expression(pattern: &[u8]) -> bool {
    let has_choice = |rest: &[u8]| rest.iter().take_while(|byte| **byte != b')').any(|byte| *byte == b'|');
    (0..pattern.len()).any(|at| begins_with_regex_syntax(&pattern[..at], &pattern[at..]))
        || pattern.split(|byte| *byte == b'(').skip(1).any(has_choice)
}

/// Reports whether `rest` begins with regular expression syntax. `before` is the text that precedes
/// `rest`.
fn begins_with_regex_syntax(before: &[u8], rest: &[u8]) -> bool {
    // A `+` or `?` is an operator only at the end of the expression, or before one of these bytes.
    let is_end = |rest: &[u8]| matches!(rest, [] | [b'$' | b'/' | b'(' | b')' | b'\\', ..]);
    match rest {
        [b'[', b'^', ..] | [b'(', b'?', ..] | [b'/' | b'(', b'.', b'*' | b'+', ..] => true,
        [b']' | b')' | b'.', b'{', b'0'..=b'9', ..] => true,
        [b'.' | b']' | b')', b'+', rest @ ..] | [b')', b'?', rest @ ..] => is_end(rest),
        [b'.', b'*', b'$'] => before.last().is_some_and(u8::is_ascii_alphanumeric),
        // In a regular expression, `/?$` is an optional slash at the end. But if the whole pattern
        // is `/?$`, it is meant for the home page with an empty query.
        [b'/', b'?', b'$'] => before.last().is_some_and(|byte| *byte != b'*'),
        // A range such as `0-9` must be followed by the end of the class, by another range or by
        // punctuation. So `[e-mail]` is not a class, because letters follow `e-m`.
        [b'[', from, b'-', to, next, rest @ ..] if from.is_ascii_alphanumeric() => {
            from < to && (matches!(next, b']' | b'_' | b'.') || rest.starts_with(b"-"))
        }
        [b'[', rest @ ..] => is_class_of_marks(rest),
        [b'\\', b'd' | b'w' | b's' | b'D' | b'W' | b'S', rest @ ..] => {
            !rest.first().is_some_and(u8::is_ascii_alphanumeric)
        }
        [b'\\', b'$', _, ..] => true,
        [b'\\', mark, ..] => b"./?+()[]{}|^&=:-".contains(mark),
        _ => false,
    }
}

/// Reports whether `rest` begins with a character class of a regular expression that contains only
/// punctuation: `[&%]`, but not `[]`, `[*]` or `[price]`.
fn is_class_of_marks(rest: &[u8]) -> bool {
    /// Maximum length of a character class, in bytes. The limit bounds the cost of patterns full of
    /// brackets.
    const MAX_CLASS: usize = 16;
    let Some(end) = memchr::memchr(b']', &rest[..rest.len().min(MAX_CLASS)]) else { return false };
    let is_mark = |byte: &u8| byte.is_ascii_punctuation() && !matches!(byte, b'*' | b'$' | b'[');
    end > 0 && rest[..end].iter().all(is_mark)
}

/// Converts a regular expression to a pattern that matches the same paths: `^/foo.*$` becomes
/// `/foo`. `None` if the expression uses syntax other than `.*`, `.+`, escapes and anchors.
pub(super) fn pattern_of_expression(expression: &[u8]) -> Option<Vec<u8>> {
    let (mut rest, is_anchored) = expression.strip_prefix(b"^").map_or((expression, false), |rest| (rest, true));
    let mut pattern = Vec::with_capacity(rest.len() + 2);
    while let [first, behind @ ..] = rest {
        rest = match rest {
            [b'(', b'.', b'*' | b'+', b')', behind @ ..] | [b'.', b'*' | b'+', behind @ ..] => {
                pattern.push(b'*');
                behind
            }
            [b'\\', mark, behind @ ..] if mark.is_ascii_punctuation() && !matches!(mark, b'*' | b'$' | b'\\') => {
                pattern.push(*mark);
                behind
            }
            [b'$', _, ..] | [b'[' | b']' | b'(' | b')' | b'{' | b'}' | b'|' | b'^' | b'+' | b'?' | b'\\', ..] => {
                return None;
            }
            _ => {
                pattern.push(*first);
                behind
            }
        };
    }
    let front: &[u8] = match pattern.first() {
        Some(b'/' | b'*') => b"",
        _ if is_anchored => b"/",
        _ => b"/*",
    };
    let pattern = without_redundant_stars([front, pattern.as_slice()].concat());
    Some(if pattern.is_empty() { b"/".to_vec() } else { pattern })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_spellings_of_a_pattern_have_the_same_canonical_form() {
        for (one, other) in [
            ("/fish", "/fish*"),
            ("/fish", "/fish**"),
            ("/fish", "/fish*$"),
            ("/a**b", "/a*b"),
            ("/%61%2f", "/a%2F"),
            ("/", "*"),
            ("/\u{e9}", "/%c3%a9"),
            ("/@a/*%3a", "/%40a/*%3A"),
        ] {
            assert_eq!(Canonical::of(one.as_bytes()), Canonical::of(other.as_bytes()), "{one} {other}");
        }
        for (one, other) in [("/fish", "/fish$"), ("/a*b", "/ab"), ("/a%2Fb", "/a/b"), ("/a", "/A")] {
            assert_ne!(Canonical::of(one.as_bytes()), Canonical::of(other.as_bytes()), "{one} {other}");
        }
    }

    #[test]
    fn a_pattern_is_within_another_if_the_other_matches_all_its_paths() {
        for (one, other, want) in [
            ("/ab", "/*a*b", true),
            ("/ab", "/a", true),
            ("/a", "/ab", false),
            ("/a$", "/a", true),
            ("/a", "/a$", false),
            ("/a*c", "/a*b", false),
            ("/x/*.pdf$", "/x/", true),
            ("/x*y", "/*y", true),
            ("/*y", "/x*y", false),
            ("/%40a", "/@", true),
            // Within a query, `%3A` and `:` are different.
            ("/*%3A", "/*:", false),
            ("/a*%3Ab", "/a*%3A", true),
        ] {
            let other_pattern = PathPattern::new(other.as_bytes(), Reading::Standard);
            let one_pattern = Canonical::of(one.as_bytes()).expect("a pattern");
            assert_eq!(one_pattern.is_within(&other_pattern), want, "{one} {other}");
        }
    }

    #[test]
    fn a_simple_regular_expression_is_converted_to_a_pattern() {
        for (expression, want) in [
            ("^/foo.*$", Some("/foo")),
            ("^/foo$", Some("/foo$")),
            ("^foo/.+/x", Some("/foo/*/x")),
            (r"^/a\.php$", Some("/a.php$")),
            (r".*\.pdf$", Some("*.pdf$")),
            ("/x/(.*)", Some("/x/")),
            ("foo/.*", Some("/*foo/")),
            ("^.*$", Some("/")),
            ("^/(a|b)", None),
            ("^/[0-9]+", None),
            ("^/e/?$", None),
            (r"^/\d", None),
        ] {
            assert_eq!(
                pattern_of_expression(expression.as_bytes()).as_deref(),
                want.map(str::as_bytes),
                "{expression}"
            );
        }
    }
}
