//! Path patterns: compares them with one another, and distinguishes them from regular expressions.

use crate::rules::{PathPattern, Reading};

/// Placeholder for any sequence of bytes in the text of a pattern; no path and no pattern of a file
/// contains it.
const ANY: u8 = 0;

/// A pattern in a normal form that all patterns matching the same paths share, as far as `*`, `$`
/// and escapes are concerned.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Canonical {
    /// The text with [`ANY`] for any sequence of bytes, including one at the end if the pattern
    /// matches any continuation. There are several if a byte may occur in a path or in a query.
    texts: Vec<Vec<u8>>,
}

impl Canonical {
    /// Returns the normal form of a rule's pattern; `None` if it matches nothing or everything,
    /// because it lacks a leading slash or is empty.
    pub(super) fn of(written: &[u8]) -> Option<Self> {
        if !matches!(written, [b'/' | b'*', ..]) {
            return None;
        }
        let mut texts: Vec<_> = PathPattern::new(written, Reading::Standard).with_runs(ANY).collect();
        // Every path begins with a slash, so a sequence before it may be empty.
        for text in texts.iter_mut().filter(|text| **text == [ANY]) {
            text.insert(0, b'/');
        }
        Some(Self { texts })
    }

    /// Reports whether `other` also matches every path that this pattern matches.
    pub(super) fn is_within(&self, other: &PathPattern) -> bool {
        // `ANY` can be any bytes, so only a `*` of the other pattern is certain to match it.
        self.texts.iter().all(|text| other.matches(text))
    }

    /// Returns the bytes before the first placeholder.
    pub(super) fn prefix(&self) -> &[u8] {
        self.texts[0].split(|octet| *octet == ANY).next().unwrap_or_default()
    }

    /// Reports whether there are placeholders anywhere but at the end.
    pub(super) fn has_runs_inside(&self) -> bool {
        let text = &self.texts[0];
        memchr::memchr(ANY, text).is_some_and(|at| at + 1 < text.len())
    }
}

/// Returns a pattern with its bytes from 0x80 escaped.
pub(super) fn escaped(pattern: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(pattern.len());
    for octet in pattern {
        match octet {
            0x80.. => text.extend_from_slice(format!("%{octet:02X}").as_bytes()),
            _ => text.push(*octet),
        }
    }
    text
}

/// Returns a pattern as all readings spell it: escaped, with the digits of escapes in upper case.
pub(super) fn spelled(pattern: &[u8]) -> Vec<u8> {
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

/// Returns a pattern that matches the same paths, with each run of `*` reduced to one and none at
/// the end.
pub(super) fn without_runs(mut pattern: Vec<u8>) -> Vec<u8> {
    pattern.dedup_by(|next, last| *next == b'*' && *last == b'*');
    let kept = pattern.strip_suffix(b"*$").or_else(|| pattern.strip_suffix(b"*")).map_or(pattern.len(), <[u8]>::len);
    // A `$` as the last byte would mean the end of the path.
    if !pattern[..kept].ends_with(b"$") {
        pattern.truncate(kept);
    }
    pattern
}

/// Reports whether one of these patterns matches every path that a rule matches.
pub(super) fn covered<'p>(written: &[u8], by: impl IntoIterator<Item = &'p PathPattern>) -> bool {
    Canonical::of(written).is_some_and(|pattern| by.into_iter().any(|other| pattern.is_within(other)))
}

/// Reports whether a pattern contains syntax that is used only in regular expressions, not in URLs
/// or patterns: `[0-9]`, `(a|b)`, `\d`, `/.*`. `/index.*`, `/a+b`, `/*?$` and `/filter[price]` may
/// be intended as written.
pub(super) fn is_expression(pattern: &[u8]) -> bool {
    let has_choice = |rest: &[u8]| rest.iter().take_while(|octet| **octet != b')').any(|octet| *octet == b'|');
    (0..pattern.len()).any(|at| is_sign(&pattern[..at], &pattern[at..]))
        || pattern.split(|octet| *octet == b'(').skip(1).any(has_choice)
}

/// Reports whether such syntax begins at `rest`; `before` is the text in front of it.
fn is_sign(before: &[u8], rest: &[u8]) -> bool {
    // What may follow a repetition in an expression.
    let is_end = |rest: &[u8]| matches!(rest, [] | [b'$' | b'/' | b'(' | b')' | b'\\', ..]);
    match rest {
        [b'[', b'^', ..] | [b'(', b'?', ..] | [b'/' | b'(', b'.', b'*' | b'+', ..] => true,
        [b']' | b')' | b'.', b'{', b'0'..=b'9', ..] => true,
        [b'.' | b']' | b')', b'+', rest @ ..] | [b')', b'?', rest @ ..] => is_end(rest),
        [b'.', b'*', b'$'] => before.last().is_some_and(u8::is_ascii_alphanumeric),
        // A slash that may be missing; `/?$` is the home page with an empty query.
        [b'/', b'?', b'$'] => before.last().is_some_and(|octet| *octet != b'*'),
        // A range, followed by the end, more ranges, or punctuation; `[e-mail]` has none of these.
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

/// Reports whether a character class begins here that contains only punctuation: `[&%]`, but not
/// `[]`, `[*]` or `[price]`.
fn is_class_of_marks(rest: &[u8]) -> bool {
    /// Maximum length of a class, in bytes; bounds the cost of a pattern full of brackets.
    const MAX_CLASS: usize = 16;
    let Some(end) = memchr::memchr(b']', &rest[..rest.len().min(MAX_CLASS)]) else { return false };
    let is_mark = |octet: &u8| octet.is_ascii_punctuation() && !matches!(octet, b'*' | b'$' | b'[');
    end > 0 && rest[..end].iter().all(is_mark)
}

/// Returns the pattern that matches the same paths as an expression: `/foo` for `^/foo.*$`. `None`
/// unless the expression uses only "any text" and anchors.
pub(super) fn of_expression(expression: &[u8]) -> Option<Vec<u8>> {
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
    let pattern = without_runs([front, pattern.as_slice()].concat());
    Some(if pattern.is_empty() { b"/".to_vec() } else { pattern })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_pattern_are_one() {
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
    fn one_pattern_may_take_in_another() {
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
            // Within a query they differ.
            ("/*%3A", "/*:", false),
            ("/a*%3Ab", "/a*%3A", true),
        ] {
            let other_pattern = PathPattern::new(other.as_bytes(), Reading::Standard);
            let one_pattern = Canonical::of(one.as_bytes()).expect("a pattern");
            assert_eq!(one_pattern.is_within(&other_pattern), want, "{one} {other}");
        }
    }

    #[test]
    fn a_simple_expression_has_a_pattern() {
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
            assert_eq!(of_expression(expression.as_bytes()).as_deref(), want.map(str::as_bytes), "{expression}");
        }
    }
}
