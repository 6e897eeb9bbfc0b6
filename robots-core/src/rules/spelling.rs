//! The standard form of paths and queries: which bytes are escaped, and which are not (RFC 9309,
//! section 2.2.2).
//!
//! All spellings of one path have the same standard form, so standard forms can be compared byte by
//! byte. In the standard form of a path, an escape is decoded if it has the same meaning as the
//! byte that it encodes. All other escapes stay: `%25`, `%2F`, `%3F`, `%23`, `%5C`, control
//! characters, and bytes ≥ 0x80. In a query, escapes of reserved bytes stay, too: for example, `&`
//! separates parameters, but `%26` does not.
//!
//! Percent-encoding crates are not suitable, because they encode or decode whole strings and ignore
//! the meaning of an escape.

use std::borrow::Cow;

use memchr::{memchr, memchr_iter, memchr2};

/// A part of a target. The meaning of escapes depends on the part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TargetPart {
    /// The path, where reserved bytes mean the same as their escapes.
    Path,
    /// The query, where reserved bytes do not mean the same as their escapes.
    Query,
}

/// Converts bytes to standard form. A backslash is escaped, because a URI cannot contain a
/// backslash. [`PathForm::Decoded`](super::PathForm::Decoded) is for servers that treat a backslash
/// as a slash.
///
/// `%2A` and `%24` are decoded in both parts, because they are the only spelling of a literal `*`
/// and `$` in patterns (RFC 9309, section 2.2.3). Callers split a pattern at its wildcards first,
/// so a decoded `*` is not mistaken for a wildcard.
///
/// A `%` that does not begin an escape usually stays. Such a `%` becomes `%25` only if decoding the
/// bytes after it would create an escape: `%%361` becomes `%2561`, because `%61` would mean `a`.
pub(super) fn standard(bytes: &[u8], part: TargetPart) -> Cow<'_, [u8]> {
    let path = match part {
        TargetPart::Path => bytes.len(),
        TargetPart::Query => 0,
    };
    standard_from(bytes, || path)
}

/// Converts bytes as [`standard`] does. `path` returns the number of leading bytes that belong to
/// the path. All later bytes belong to the query.
fn standard_from(bytes: &[u8], path: impl FnOnce() -> usize) -> Cow<'_, [u8]> {
    let may_change = |byte: &u8| matches!(byte, b'%' | b'\\' | 0x80..);
    let is_ascii = bytes.is_ascii();
    // ASCII text is searched with a faster function, because forms of paths are ASCII, and a long
    // path may be converted hundreds of times.
    let next_change = |bytes: &[u8]| {
        if is_ascii { memchr2(b'%', b'\\', bytes) } else { bytes.iter().position(may_change) }
    };
    let Some(mut at) = next_change(bytes) else { return Cow::Borrowed(bytes) };
    let mut out = Vec::with_capacity(bytes.len() + 8);
    out.extend_from_slice(&bytes[..at]);
    let (path, mut stray) = (path(), None);
    while let Some(next) = bytes.get(at) {
        let part = if at < path { TargetPart::Path } else { TargetPart::Query };
        match escaped(&bytes[at..]) {
            Some(byte) => {
                if is_decoded(byte, part) {
                    out.push(byte);
                } else {
                    push_escape(&mut out, byte);
                }
                at += 3;
            }
            None if *next != b'%' && may_change(next) => {
                push_escape(&mut out, *next);
                at += 1;
            }
            None => {
                if *next == b'%' {
                    stray = Some(out.len());
                }
                let behind = &bytes[at + 1..];
                let end = at + 1 + next_change(behind).unwrap_or(behind.len());
                out.extend_from_slice(&bytes[at..end]);
                at = end;
            }
        }
        if let Some(percent) = stray
            && escaped(&out[percent..]).is_some()
        {
            out.splice(percent + 1..percent + 1, *b"25");
            stray = None;
        }
    }
    if out == bytes { Cow::Borrowed(bytes) } else { Cow::Owned(out) }
}

pub(super) fn standard_target(target: &[u8]) -> Cow<'_, [u8]> {
    standard_from(target, || split_query(target).0.len())
}

/// Splits a target into its path, and its query with the leading `?`.
pub(super) fn split_query(target: &[u8]) -> (&[u8], &[u8]) {
    target.split_at(memchr(b'?', target).unwrap_or(target.len()))
}

/// Reports whether the bytes contain an escape that has different meanings in paths and in queries.
pub(super) fn differs_by_part(bytes: &[u8]) -> bool {
    let differs = |byte| is_decoded(byte, TargetPart::Path) != is_decoded(byte, TargetPart::Query);
    memchr_iter(b'%', bytes).any(|at| escaped(&bytes[at..]).is_some_and(differs))
}

/// Returns the byte that the escape `%hh` at the start of `bytes` encodes.
pub(super) fn escaped(bytes: &[u8]) -> Option<u8> {
    let [b'%', high, low, ..] = bytes else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(*high)? * 16 + digit(*low)?).ok()
}

pub(super) fn push_escape(out: &mut Vec<u8>, byte: u8) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    out.extend([b'%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
}

/// Reports whether the standard form contains this byte instead of its escape.
const fn is_decoded(byte: u8, part: TargetPart) -> bool {
    match byte {
        // Unreserved characters (RFC 3986, section 2.3).
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => true,
        b'*' | b'$' => true,
        // A URI must not contain these bytes unescaped, but they are not separators, and some
        // clients do not escape all of them.
        b' ' | b'"' | b'<' | b'>' | b'^' | b'`' | b'{' | b'|' | b'}' => true,
        // Reserved characters (RFC 3986, section 2.2), without `/`, `?` and `#`, which a path
        // segment cannot contain unescaped.
        b'!' | b'&' | b'\'' | b'(' | b')' | b'+' | b',' | b';' | b'=' | b':' | b'@' | b'[' | b']' => {
            matches!(part, TargetPart::Path)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standard_of(target: &str) -> String {
        String::from_utf8_lossy(&standard_target(target.as_bytes())).into_owned()
    }

    #[test]
    fn rfc_2_2_2_bytes_are_normalised_before_comparison() {
        for (target, want) in [
            ("/a", "/a"),
            ("/%61%7e%2D%2e%5F", "/a~-._"),
            ("/%2f%3f%23%25%5c", "/%2F%3F%23%25%5C"),
            ("/%00%1f%7f", "/%00%1F%7F"),
            ("/\u{e9}%c3%a9", "/%C3%A9%C3%A9"),
            ("/sale-50%-off", "/sale-50%-off"),
            ("/%", "/%"),
            ("/%4", "/%4"),
            ("/%%361", "/%2561"),
            ("/%4%31x%4%7A", "/%2541x%4z"),
            ("/a%2Ab%24", "/a*b$"),
            ("/?%61=%2f%2A", "/?a=%2F*"),
        ] {
            assert_eq!(standard_of(target), want, "{target}");
            assert_eq!(standard_of(want), want, "{want} is stable");
        }
    }

    #[test]
    fn ours_reserved_bytes_of_a_path_equal_their_escapes() {
        let reserved = "!$&'()*+,;=:@[]";
        let escaped: String = reserved.bytes().map(|byte| format!("%{byte:02x}")).collect();
        assert_eq!(standard_of(&format!("/{escaped}")), format!("/{reserved}"));
        // A query keeps its escapes, except `%2A` and `%24`, because patterns have no other
        // spelling for a literal `*` and `$`.
        assert_eq!(standard_of("/?%21%26%3b%3D%3a%40%5b"), "/?%21%26%3B%3D%3A%40%5B");
        assert_eq!(standard_of("/%3A?%3A?%3A"), "/:?%3A?%3A");
    }

    #[test]
    fn ours_bytes_that_are_invalid_in_a_uri_equal_their_escapes() {
        assert_eq!(standard_of("/a\\b%5cc?\\"), "/a%5Cb%5Cc?%5C");
        assert_eq!(standard_of("/%20%22%3c%3E%5e%60%7b%7C%7d?%20%7B"), "/ \"<>^`{|}? {");
    }

    #[test]
    fn escapes_that_differ_between_path_and_query_are_detected() {
        for (bytes, want) in [("%3A", true), ("a%2", false), ("%2F%61%20%2A", false), ("%zz%40", true)] {
            assert_eq!(differs_by_part(bytes.as_bytes()), want, "{bytes}");
        }
    }
}
