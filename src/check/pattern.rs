//! Path patterns compared with one another.

use crate::rules::{PathPattern, Reading, RequestPath};

/// Stands for "any run of octets" in the text of a pattern; no path and no pattern of a file holds it.
const ANY: u8 = 0;

/// A pattern in the one spelling that all patterns which match the same paths share, as far as `*`, `$` and escapes go.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Canonical {
    /// [`ANY`] where a run of octets may stand, the last one for "goes on" included.
    text: Vec<u8>,
}

impl Canonical {
    /// The pattern of a rule, or `None` where it matches nothing or everything for want of a slash or of a value.
    pub(super) fn of(written: &[u8]) -> Option<Self> {
        if !matches!(written, [b'/' | b'*', ..]) {
            return None;
        }
        let (body, anchored) = match written {
            [body @ .., b'$'] => (body, true),
            _ => (written, false),
        };
        let mut text = Vec::with_capacity(body.len() + 1);
        for (at, literal) in body.split(|octet| *octet == b'*').enumerate() {
            if at > 0 && text.last() != Some(&ANY) {
                text.push(ANY);
            }
            push_standard(&mut text, literal);
        }
        if !anchored && text.last() != Some(&ANY) {
            text.push(ANY);
        }
        // Every path begins with a slash, so a run before it may be empty.
        if text == [ANY] {
            text.insert(0, b'/');
        }
        Some(Self { text })
    }

    /// Whether every path this matches is matched by `other` too.
    pub(super) fn is_within(&self, other: &PathPattern) -> bool {
        // A run of octets can be anything, so only a run of the other pattern is sure to take it in.
        other.matches(&self.text)
    }

    /// The octets in front of the first run.
    pub(super) fn prefix(&self) -> &[u8] {
        self.text.split(|octet| *octet == ANY).next().unwrap_or_default()
    }

    /// Whether runs stand anywhere but at the end.
    pub(super) fn has_runs_inside(&self) -> bool {
        memchr::memchr(ANY, &self.text).is_some_and(|at| at + 1 < self.text.len())
    }
}

/// Whether what a rule is about can be asked for only below one of these patterns.
pub(super) fn covered<'p>(written: &[u8], by: impl IntoIterator<Item = &'p PathPattern>) -> bool {
    Canonical::of(written).is_some_and(|pattern| by.into_iter().any(|other| pattern.is_within(other)))
}

/// What counts between patterns that match; see [`PathPattern::priority`].
pub(super) fn priority(written: &[u8]) -> usize {
    PathPattern::new(written, Reading::Standard).priority()
}

fn push_standard(text: &mut Vec<u8>, literal: &[u8]) {
    if literal.iter().all(|octet| *octet != b'%' && *octet < 0x80) {
        text.extend_from_slice(literal);
        return;
    }
    // Only targets are put into standard form in public; a leading slash makes the literal one.
    let target = [b"/", literal].concat();
    text.extend_from_slice(&RequestPath::new(&target).as_bytes()[1..]);
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
        ] {
            let other_pattern = PathPattern::new(other.as_bytes(), Reading::Standard);
            let one_pattern = Canonical::of(one.as_bytes()).expect("a pattern");
            assert_eq!(one_pattern.is_within(&other_pattern), want, "{one} {other}");
        }
    }
}
