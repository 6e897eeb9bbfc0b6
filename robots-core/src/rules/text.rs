//! Encodes path patterns for comparison, and compares encoded patterns (`text` in the code) with
//! paths.
//!
//! All compared bytes are ASCII, because bytes ≥ 0x80 are escaped both in patterns and in paths. So
//! bytes ≥ 0x80 are available as markers. An encoded pattern consists of literals with markers
//! between them. The marker [`END`] represents a `$` at the end. Any other marker represents one or
//! more `*`. The low bits of a `*` marker contain the offset of the rarest byte within the
//! following literal, because a search looks for this byte first. A `*` at the end has no effect
//! and is left out. Equal encoded patterns match the same paths.
//!
//! Glob and regex crates would compile each pattern, which is too expensive: one file may have
//! 30,000 patterns.
//!
//! The bytes after a `*` may match in the path or in the query. The standard form of escaped
//! reserved bytes is different in paths and in queries ([`spelling`](super::spelling)). So a
//! pattern with such an escape after a `*` is encoded once for each position where the query may
//! begin ([`Query`]).

use memchr::{memchr, memmem};

use super::Reading;
use super::line::Lines;
use super::spelling::{TargetPart, differs_by_part, escaped, push_escape, split_query, standard};

#[cfg(doc)]
use super::line::MAX_LINE;

/// Marker for the end of the path (`$`).
const END: u8 = 0xFF;

/// Marker for any sequence of bytes (`*`). Its low bits contain the offset of the rarest byte
/// within the following literal.
const STAR: u8 = 0x80;

/// Number of positions at the start of the path where a literal is compared directly. If the
/// literal is at one of these positions, comparing is faster than searching.
const NEAR: usize = 16;

/// Maximum number of occurrences of the rare byte that are tried. If the literal matches at none of
/// these occurrences, an algorithm with guaranteed linear cost continues the search.
const FALSE_STARTS: usize = 8;

/// The most common bytes in paths, most common first.
const COMMON_BYTES: &[u8] = b"/eaitonsrlcdpmu-ghb1f2y0.v3k5498w67x_jzqESATCMP";

/// Maximum number of encoded forms of a pattern. Some literals have different standard forms in the
/// path and in the query. Only the first two such literals are encoded in both forms. All later
/// ones are assumed to match in the same part (path or query) as the second one.
pub(super) const MAX_TEXTS: usize = 3;

/// The position where the query begins in an encoded pattern.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Query {
    /// The query begins at the first `?` of the pattern, if there is one.
    AsWritten,
    /// The `*` before the literal with this number matches the start of the query. The literal
    /// before the first `*` has number 0.
    Before(usize),
}

/// Returns the positions where the query may begin in a pattern. Almost all patterns have only one
/// such position.
pub(super) fn queries(written: &[u8], reading: Reading) -> impl Iterator<Item = Query> {
    let path = match reading {
        Reading::Reference => &b""[..],
        Reading::Standard | Reading::Legacy => split_query(written).0,
    };
    let behind_star = memchr(b'*', path).map_or(&b""[..], |star| &path[star..]);
    let literals = behind_star.split(|byte| *byte == b'*').enumerate();
    let differing = literals.filter(|(_, literal)| differs_by_part(literal)).map(|(number, _)| Query::Before(number));
    std::iter::once(Query::AsWritten).chain(differing.take(MAX_TEXTS - 1))
}

pub(super) fn write(out: &mut Vec<u8>, written: &[u8], reading: Reading, query: Query) {
    if reading == Reading::Legacy && !matches!(written, [] | [b'/' | b'*', ..]) {
        out.push(b'/');
    }
    let (written, anchored) = match written {
        [body @ .., b'$'] => (body, true),
        _ => (written, false),
    };
    let mut in_query = false;
    for (number, literal) in written.split(|byte| *byte == b'*').enumerate() {
        in_query |= query == Query::Before(number);
        if number > 0 && literal.is_empty() {
            continue;
        }
        let mark = out.len();
        if number > 0 {
            out.push(STAR);
        }
        let start = out.len();
        write_literal(out, literal, reading, &mut in_query);
        if number > 0 {
            out[mark] |= rarest(&out[start..]);
        }
    }
    if anchored && !written.ends_with(b"*") {
        out.push(END);
    }
}

/// Splits an encoded pattern into its literal prefix and the rest, which begins with a marker.
pub(super) fn split_prefix(text: &[u8]) -> (&[u8], &[u8]) {
    text.split_at(text.iter().position(|byte| is_mark(*byte)).unwrap_or(text.len()))
}

/// Returns the literals of an encoded pattern, except its literal prefix.
pub(super) fn literals(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| is_mark(*byte)).skip(1).filter(|literal| !literal.is_empty())
}

/// Kind of the part of an encoded pattern after its literal prefix: nothing (`Open`), only `$`
/// (`End`), or a wildcard and more (`Wild`).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Tail {
    Open,
    End,
    Wild,
}

/// Returns the kind of `rest`, the second value that [`split_prefix`] returns.
pub(super) fn tail(rest: &[u8]) -> Tail {
    match rest {
        [] => Tail::Open,
        [END] => Tail::End,
        _ => Tail::Wild,
    }
}

/// Replaces each wildcard of an encoded pattern with the byte `any`. Also adds an `any` at the end,
/// unless the pattern ends with `$`.
pub(super) fn with_wildcards_as(text: &[u8], any: u8) -> Vec<u8> {
    let (body, end) = match text {
        [body @ .., END] => (body, None),
        _ => (text, Some(any)),
    };
    body.iter().map(|byte| if is_mark(*byte) { any } else { *byte }).chain(end).collect()
}

pub(super) fn is_anchored(text: &[u8]) -> bool {
    text.ends_with(&[END])
}

/// A literal that does not occur in the last `end` bytes of the path. If another pattern contains
/// the same literal, these bytes need not be searched for it again.
#[derive(Default)]
pub(super) struct Missing<'t> {
    literal: &'t [u8],
    end: usize,
}

pub(super) fn matches(text: &[u8], path: &[u8]) -> bool {
    let (prefix, rest) = split_prefix(text);
    path.strip_prefix(prefix).is_some_and(|left| fits(rest, left, &mut Missing::default()))
}

/// Reports whether the rest of an encoded pattern, after its prefix, matches the rest of a path.
///
/// Each literal is matched at the first possible position, so that the next literal can match in as
/// much of the path as possible. The search never returns to an earlier position, so its cost is
/// linear in the length of path and pattern.
pub(super) fn fits<'t>(mut rest: &'t [u8], mut left: &[u8], missing: &mut Missing<'t>) -> bool {
    loop {
        let [mark, behind @ ..] = rest else { return true };
        if *mark == END {
            return left.is_empty();
        }
        let (literal, next) = split_prefix(behind);
        if let [END] = next {
            return left.ends_with(literal);
        }
        if left.len() <= missing.end && literal == missing.literal {
            return false;
        }
        let Some(at) = find(left, literal, usize::from(mark ^ STAR)) else {
            if left.len() > NEAR {
                *missing = Missing { literal, end: left.len() };
            }
            return false;
        };
        left = &left[at + literal.len()..];
        rest = next;
    }
}

/// Finds the first occurrence of a literal in a path. `rare` is the offset of the rarest byte
/// within the literal.
fn find(path: &[u8], literal: &[u8], rare: usize) -> Option<usize> {
    let byte = literal[rare];
    let places = path.get(rare..)?;
    let near = (0..NEAR).zip(places).find(|(at, place)| **place == byte && path[*at..].starts_with(literal));
    if near.is_some() || places.len() <= NEAR {
        return near.map(|(at, _)| at);
    }
    let mut start = NEAR;
    if literal.len() == 1 {
        return memchr(byte, &path[start..]).map(|at| start + at);
    }
    for _ in 0..FALSE_STARTS {
        start += memchr(byte, path.get(start + rare..)?)?;
        if path[start..].starts_with(literal) {
            return Some(start);
        }
        start += 1;
    }
    memmem::find(&path[start..], literal).map(|at| start + at)
}

/// Returns how rare a byte is in paths. Rarer bytes have higher numbers.
pub(super) const fn rarity(byte: u8) -> u8 {
    const RARITY: [u8; 256] = {
        let mut rarity = [COMMON_BYTES.len() as u8; 256];
        let mut at = 0;
        while at < COMMON_BYTES.len() {
            rarity[COMMON_BYTES[at] as usize] = at as u8;
            at += 1;
        }
        rarity
    };
    RARITY[byte as usize]
}

/// Returns the offset of the rarest byte among the first 127 bytes of a literal. The low bits of a
/// `*` marker cannot contain larger offsets: with the offset 127, the marker would be equal to
/// [`END`].
fn rarest(literal: &[u8]) -> u8 {
    let within = (0u8..END ^ STAR).zip(literal);
    within.max_by_key(|(at, byte)| (rarity(**byte), u8::MAX - at)).map_or(0, |(at, _)| at)
}

const fn is_mark(byte: u8) -> bool {
    byte >= STAR
}

/// Appends a literal in the form that is compared with paths. Sets `in_query` if the literal
/// contains a `?`.
fn write_literal(out: &mut Vec<u8>, literal: &[u8], reading: Reading, in_query: &mut bool) {
    if reading == Reading::Reference {
        return write_reference(out, literal);
    }
    let (path, query) = if *in_query { (&b""[..], literal) } else { split_query(literal) };
    out.extend_from_slice(&standard(path, TargetPart::Path));
    out.extend_from_slice(&standard(query, TargetPart::Query));
    *in_query |= !query.is_empty();
}

/// Appends a literal in the form that the reference parser compares: the hex digits of escapes are
/// in upper case, and bytes ≥ 0x80 are escaped.
fn write_reference(out: &mut Vec<u8>, literal: &[u8]) {
    let mut at = 0;
    while at < literal.len() {
        match escaped(&literal[at..]) {
            Some(byte) => {
                push_escape(out, byte);
                at += 3;
            }
            None if literal[at] >= 0x80 => {
                push_escape(out, literal[at]);
                at += 1;
            }
            None => {
                out.push(literal[at]);
                at += 1;
            }
        }
    }
}

/// A line, or part of a line, that crawlers ignore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Note {
    /// Number of the line that the note is about.
    pub line: usize,
    /// Kind of the note.
    pub kind: NoteKind,
}

/// The kind of a [`Note`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NoteKind {
    /// The file begins with a byte order mark, which was skipped.
    ByteOrderMark,
    /// The line has no separator, or no name before the separator.
    Malformed,
    /// A rule comes before any user-agent line.
    RuleOutsideGroup,
    /// The line is longer than [`Line::MAX`](crate::rules::Line::MAX), and all bytes past this
    /// limit were ignored.
    LongLine,
    /// The line contains a NUL, and the bytes after it were ignored.
    Nul,
    /// The value of a host line is not a valid host.
    InvalidHost,
    /// The host line was ignored, because an earlier host line is valid.
    RepeatedHost,
    /// The value of a crawl-delay line is not a number of seconds.
    InvalidCrawlDelay,
    /// The line crosses the size limit of the [`Reading`], so it was dropped.
    CutLine,
    /// This line and all following lines are past the size limit of the [`Reading`].
    PastLimit,
}

/// Returns notes on the lines that are ignored because they end after the first `limit` bytes of
/// the file.
pub(super) fn past_limit(file: &[u8], limit: usize) -> Vec<Note> {
    if file.len() <= limit {
        return Vec::new();
    }
    let mut notes = Vec::new();
    for line in Lines::new(file).skip_while(|line| line.range.end <= limit) {
        if line.range.start >= limit {
            notes.push(Note { line: line.number, kind: NoteKind::PastLimit });
            break;
        }
        if line.content().end > limit {
            notes.push(Note { line: line.number, kind: NoteKind::CutLine });
        }
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(written: &str) -> Vec<u8> {
        let mut text = Vec::new();
        write(&mut text, written.as_bytes(), Reading::Standard, Query::AsWritten);
        text
    }

    #[test]
    fn equivalent_patterns_have_the_same_encoded_form() {
        for (one, other) in [("/a*", "/a"), ("/a**", "/a*$"), ("/a**b", "/a*b"), ("*", ""), ("/a*b*", "/a*b*$")] {
            assert_eq!(text(one), text(other), "{one} {other}");
        }
        assert_ne!(text("/a$"), text("/a"));
        assert_ne!(text("/a*b$"), text("/a*b"));
        assert_ne!(text("/%2A"), text("/*"));
    }

    #[test]
    fn a_literal_is_found_past_many_false_starts() {
        let path = [&b"/"[..], &b"za".repeat(40), b"zab"].concat();
        assert!(matches(&text("/*zab"), &path));
        assert!(matches(&text("/*zab$"), &path));
        assert!(!matches(&text("/*zabc"), &path));
        assert!(!matches(&text("/*z*bza"), &path));
    }

    #[test]
    fn a_literal_can_be_longer_than_the_largest_offset_in_a_marker() {
        let long = format!("{}?", "a".repeat(300));
        assert!(matches(&text(&format!("/*{long}")), format!("/x{long}").as_bytes()));
        assert!(!matches(&text(&format!("/*{long}")), b"/aaa?"));
    }

    #[test]
    fn ours_a_line_cut_at_the_limit_and_the_first_line_past_it_are_noted() {
        let file = b"user-agent: *\ndisallow: /a\ndisallow: /b\n";
        let notes = |limit| past_limit(file, limit).iter().map(|note| (note.line, note.kind)).collect::<Vec<_>>();
        assert_eq!(notes(40), []);
        assert_eq!(notes(39), [(4, NoteKind::PastLimit)]);
        assert_eq!(notes(30), [(3, NoteKind::CutLine), (4, NoteKind::PastLimit)]);
        assert_eq!(notes(26), [(3, NoteKind::PastLimit)]);
    }
}
