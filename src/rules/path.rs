//! What a request asks for, in every form an upstream may read it.
//!
//! The standard form decodes escaped unreserved octets, upper-cases hex digits and escapes octets ≥ 0x80, as RFC 9309,
//! section 2.2.2 wants before comparing. A *path* that then still holds dot segments, empty segments, `%2F` or `%5C`
//! may be read differently by the server behind us; those readings are judged too. The query is never restructured.

use std::borrow::Cow;

/// The path and query of a request, ready to be judged.
///
/// Borrows the target where it is already in standard form; then nothing is allocated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestPath<'t> {
    form: PathForm,
    sent: Cow<'t, [u8]>,
    others: Vec<(PathForm, Vec<u8>)>,
}

/// A way to read a request target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum PathForm {
    /// The octets as they came, as the reference parser takes them.
    Verbatim,
    /// Escapes made alike, structure as sent.
    Standard,
    /// Dot segments removed (RFC 3986, section 5.2.4).
    Resolved,
    /// Empty segments merged, then dot segments removed.
    Merged,
    /// `%2F` and `%5C` decoded and `\` read as `/`, then as `Resolved` or as `Merged`.
    Decoded,
}

impl PathForm {
    /// The form's name in kebab-case.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Verbatim => "verbatim",
            Self::Standard => "standard",
            Self::Resolved => "resolved",
            Self::Merged => "merged",
            Self::Decoded => "decoded",
        }
    }
}

impl<'t> RequestPath<'t> {
    /// The target of a request, as sent: origin-form (`/path?query`) or a whole URL.
    ///
    /// A fragment is dropped. A target that starts with `//` is a path with an empty segment, not an authority.
    #[must_use]
    pub fn new(target: &'t [u8]) -> Self {
        if target.starts_with(b"/") && is_plain(target) {
            return Self { form: PathForm::Standard, sent: Cow::Borrowed(target), others: Vec::new() };
        }
        let target = match target {
            [b'/', ..] => Cow::Borrowed(&target[..memchr::memchr(b'#', target).unwrap_or(target.len())]),
            _ => path_of_url(target),
        };
        let sent = match target {
            Cow::Borrowed(target) => standard(target),
            Cow::Owned(target) => Cow::Owned(standard(&target).into_owned()),
        };
        let others = other_readings(&sent);
        Self { form: PathForm::Standard, sent, others }
    }

    /// The target exactly as the reference parser reads it: scheme, authority and fragment dropped, octets untouched.
    #[must_use]
    pub fn verbatim(target: &'t [u8]) -> Self {
        Self { form: PathForm::Verbatim, sent: path_of_url(target), others: Vec::new() }
    }

    /// The form of [`RequestPath::as_bytes`]: standard or verbatim.
    #[must_use]
    pub const fn form(&self) -> PathForm {
        self.form
    }

    /// The path and query, in standard form or verbatim.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.sent
    }

    /// Every form the target can be read in, the one of [`RequestPath::as_bytes`] first; at most five.
    pub fn forms(&self) -> impl Iterator<Item = (PathForm, &[u8])> {
        let others = self.others.iter().map(|(form, path)| (*form, path.as_slice()));
        std::iter::once((self.form, self.as_bytes())).chain(others)
    }

    /// Whether this is the robots.txt of the site itself, with any query.
    #[must_use]
    pub fn is_robots_txt(&self) -> bool {
        self.as_bytes().strip_prefix(b"/robots.txt").is_some_and(|rest| matches!(rest, [] | [b'?', ..]))
    }

    /// Whether the target can be read in one way only.
    #[must_use]
    pub fn is_canonical(&self) -> bool {
        self.others.is_empty()
    }
}

/// Whether nothing in an origin-form target could be read in another way, without looking where it stands.
///
/// The usual target costs this one scan. It works in blocks without a way out, so that a compiler makes wide
/// instructions of it.
fn is_plain(target: &[u8]) -> bool {
    const BLOCK: usize = 16;
    let Some(last) = target.last_chunk::<{ BLOCK + 1 }>() else {
        return !target.iter().zip(&target[1..]).any(|(octet, next)| is_telling(*octet, *next))
            && !target.last().is_some_and(|octet| is_telling(*octet, 0));
    };
    let (octets, next) = (target.as_chunks::<BLOCK>().0, target[1..].as_chunks::<BLOCK>().0);
    let last = (&last[..BLOCK], &last[1..], last[BLOCK]);
    let telling = |octets: &[u8], next: &[u8]| {
        octets.iter().zip(next).fold(false, |any, (octet, next)| any | is_telling(*octet, *next))
    };
    let within = octets.iter().zip(next).fold(false, |any, (octets, next)| any | telling(octets, next));
    !(within | telling(last.0, last.1) | is_telling(last.2, 0))
}

/// Whether an octet, or the pair it begins, may be written or read in another way.
const fn is_telling(octet: u8, next: u8) -> bool {
    (octet == b'%')
        | (octet == b'#')
        | (octet == b'\\')
        | (octet >= 0x80)
        | ((octet == b'/') & ((next == b'/') | (next == b'.')))
}

/// What the reference parser takes for path, parameters and query of a URL.
fn path_of_url(url: &[u8]) -> Cow<'_, [u8]> {
    const ROOT: &[u8] = b"/";
    // A leading `//` introduces an authority here: the reference parser is asked about URLs, not request targets.
    let skip = if url.starts_with(b"//") { 2 } else { 0 };
    let first = |from: usize| memchr::memchr3(b'/', b'?', b';', &url[from..]).map(|at| from + at);
    let early = first(skip);
    let authority = memchr::memmem::find(&url[skip..], b"://").map(|at| skip + at);
    let from = match (authority, early) {
        (Some(scheme_end), Some(early)) if early < scheme_end => skip,
        (Some(scheme_end), _) => scheme_end + 3,
        (None, _) => skip,
    };
    let Some(start) = first(from) else { return Cow::Borrowed(ROOT) };
    let end = memchr::memchr(b'#', &url[skip..]).map_or(url.len(), |at| skip + at);
    if end < start {
        return Cow::Borrowed(ROOT);
    }
    match url[start] {
        b'/' => Cow::Borrowed(&url[start..end]),
        _ => Cow::Owned([ROOT, &url[start..end]].concat()),
    }
}

/// Puts octets into standard form; borrows where they already are.
///
/// `*` and `$` are decoded too, because `%2A` and `%24` are how a pattern names them literally (RFC 9309, section
/// 2.2.3); the pattern side keeps its literal `*` apart from the wildcard. A `%` that is no escape stays as it is, but
/// where what is decoded behind it would make it one, it is written as `%25`: `%%361` is a percent sign and `61`, not `a`.
pub(super) fn standard(octets: &[u8]) -> Cow<'_, [u8]> {
    let Some(first) = octets.iter().position(|byte| *byte == b'%' || *byte >= 0x80) else {
        return Cow::Borrowed(octets);
    };
    let mut out = Vec::with_capacity(octets.len() + 8);
    out.extend_from_slice(&octets[..first]);
    let (mut at, mut stray) = (first, None);
    while at < octets.len() {
        match escaped(&octets[at..]) {
            Some(octet) => {
                if is_unreserved(octet) || matches!(octet, b'*' | b'$') {
                    out.push(octet);
                } else {
                    push_escape(&mut out, octet);
                }
                at += 3;
            }
            None => {
                if octets[at] >= 0x80 {
                    push_escape(&mut out, octets[at]);
                } else {
                    if octets[at] == b'%' {
                        stray = Some(out.len());
                    }
                    out.push(octets[at]);
                }
                at += 1;
            }
        }
        if let Some(percent) = stray
            && escaped(&out[percent..]).is_some()
        {
            out.splice(percent + 1..percent + 1, *b"25");
            stray = None;
        }
    }
    if out == octets { Cow::Borrowed(octets) } else { Cow::Owned(out) }
}

/// The octet of a `%hh` at the start of `octets`.
pub(super) fn escaped(octets: &[u8]) -> Option<u8> {
    let [b'%', high, low, ..] = octets else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(*high)? * 16 + digit(*low)?).ok()
}

pub(super) fn push_escape(out: &mut Vec<u8>, octet: u8) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    out.extend([b'%', HEX[usize::from(octet >> 4)], HEX[usize::from(octet & 15)]]);
}

const fn is_unreserved(octet: u8) -> bool {
    octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'.' | b'_' | b'~')
}

/// The readings of a standard-form target that differ from it.
fn other_readings(sent: &[u8]) -> Vec<(PathForm, Vec<u8>)> {
    let end = memchr::memchr(b'?', sent).unwrap_or(sent.len());
    let (path, query) = sent.split_at(end);
    if !may_be_read_otherwise(path) {
        return Vec::new();
    }
    let mut readings: Vec<(PathForm, Vec<u8>)> = Vec::with_capacity(4);
    let decoded = decode_separators(path);
    for (form, mut reading) in [
        (PathForm::Resolved, resolve(path, EmptySegments::Keep)),
        (PathForm::Merged, resolve(path, EmptySegments::Merge)),
        (PathForm::Decoded, resolve(&decoded, EmptySegments::Keep)),
        (PathForm::Decoded, resolve(&decoded, EmptySegments::Merge)),
    ] {
        reading.extend_from_slice(query);
        if reading != sent && readings.iter().all(|(_, known)| *known != reading) {
            readings.push((form, reading));
        }
    }
    readings
}

fn may_be_read_otherwise(path: &[u8]) -> bool {
    memchr::memchr2_iter(b'/', b'\\', path).any(|at| path[at] == b'\\' || matches!(path.get(at + 1), Some(b'/' | b'.')))
        || memchr::memchr_iter(b'%', path).any(|at| matches!(path.get(at + 1..at + 3), Some(b"2F" | b"5C")))
}

fn decode_separators(path: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(path.len());
    let mut rest = path;
    loop {
        rest = match rest {
            [b'%', b'2', b'F', rest @ ..] | [b'%', b'5', b'C', rest @ ..] | [b'\\', rest @ ..] => {
                out.push(b'/');
                rest
            }
            [octet, rest @ ..] => {
                out.push(*octet);
                rest
            }
            [] => return out,
        };
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum EmptySegments {
    Keep,
    Merge,
}

/// Removes dot segments; a path never climbs above its root.
fn resolve(path: &[u8], empty: EmptySegments) -> Vec<u8> {
    let mut out = Vec::with_capacity(path.len());
    let mut segments = path.strip_prefix(b"/").unwrap_or(path).split(|byte| *byte == b'/').peekable();
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        match segment {
            b"." | b".." => {
                if segment == b".." {
                    let parent = memchr::memrchr(b'/', &out).unwrap_or(0);
                    out.truncate(parent);
                }
                if last {
                    out.push(b'/');
                }
            }
            b"" if empty == EmptySegments::Merge && !last => {}
            _ => {
                out.push(b'/');
                out.extend_from_slice(segment);
            }
        }
    }
    if out.is_empty() {
        out.push(b'/');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forms(target: &str) -> Vec<(PathForm, String)> {
        let path = RequestPath::new(target.as_bytes());
        path.forms().map(|(form, path)| (form, String::from_utf8_lossy(path).into_owned())).collect()
    }

    fn others(target: &str) -> Vec<String> {
        forms(target).into_iter().skip(1).map(|(_, path)| path).collect()
    }

    #[test]
    fn reference_9_scheme_authority_and_fragment_are_dropped() {
        for (url, path) in [
            ("", "/"),
            ("http://www.example.com", "/"),
            ("http://www.example.com/", "/"),
            ("http://www.example.com/a", "/a"),
            ("http://www.example.com/a?b=http://b.c#d", "/a?b=http://b.c"),
            ("http://www.example.com?a", "/?a"),
            ("http://www.example.com;a", "/;a"),
            ("http://www.example.com#a/b", "/"),
            ("//a/b/c", "/b/c"),
            ("//a", "/"),
            ("a/b", "/b"),
            ("/a%2fb%61\u{e9}", "/a%2fb%61\u{e9}"),
        ] {
            let read = RequestPath::verbatim(url.as_bytes());
            assert_eq!(String::from_utf8_lossy(read.as_bytes()), path, "{url}");
            assert!(read.is_canonical());
        }
    }

    #[test]
    fn rfc_2_2_2_octets_are_made_alike_before_comparing() {
        for (target, path) in [
            ("/a", "/a"),
            ("/%61%7e%2D%2e%5F", "/a~-._"),
            ("/%2f%3f", "/%2F%3F"),
            ("/\u{e9}%c3%a9", "/%C3%A9%C3%A9"),
            ("/sale-50%-off", "/sale-50%-off"),
            ("/%", "/%"),
            ("/%4", "/%4"),
            ("/%%361", "/%2561"),
            ("/%4%31x%4%7A", "/%2541x%4z"),
            ("/a%2Ab%24", "/a*b$"),
            ("/?%61=%2f", "/?a=%2F"),
            ("http://example.com/%70/#x", "/p/"),
            ("//example.com", "//example.com"),
        ] {
            let read = RequestPath::new(target.as_bytes());
            assert_eq!(String::from_utf8_lossy(read.as_bytes()), path, "{target}");
        }
    }

    #[test]
    fn ours_an_ordinary_target_has_one_form_and_is_borrowed() {
        for target in ["/", "/a/b.c/?x=/../y//z", "/.hidden"] {
            let target = target.as_bytes();
            assert!(matches!(RequestPath::new(target).sent, Cow::Borrowed(_)));
        }
        assert!(others("/a/b.c/?x=/../y//z%2f").is_empty());
        assert!(others("/.hidden/x...y").is_empty());
        assert!(others("/go?u=https%3a%2f%2fx%2fprivate%2f").is_empty());
    }

    #[test]
    fn what_is_telling_is_seen_wherever_it_stands() {
        for length in 2..70 {
            let plain = format!("/{}", "a".repeat(length - 1));
            assert!(is_plain(plain.as_bytes()));
            for at in 1..length {
                for (telling, pair) in
                    [("%", false), ("#", false), ("\\", false), ("\u{e9}", false), ("/", true), (".", true)]
                {
                    let mut target = plain.clone();
                    target.replace_range(at..=at, telling);
                    let is_pair = at == 1 && pair;
                    assert_eq!(is_plain(target.as_bytes()), pair && !is_pair, "{target}");
                    if at > 1 && pair {
                        target.replace_range(at - 1..at, "/");
                        assert!(!is_plain(target.as_bytes()), "{target}");
                    }
                }
            }
        }
    }

    #[test]
    fn ours_a_path_that_can_be_read_otherwise_has_every_form() {
        assert_eq!(others("/x/../private/x?q=//"), ["/private/x?q=//"]);
        assert_eq!(others("//private/x"), ["/private/x"]);
        assert_eq!(others("/x/%2e%2E/private"), ["/private"]);
        assert_eq!(others("/open/..%2fx"), ["/x"]);
        assert_eq!(others("/x//..%2Fprivate"), ["/x/..%2Fprivate", "/x/private", "/private"]);
        assert_eq!(others("/private%5cx"), ["/private/x"]);
        assert_eq!(others("/private\\x"), ["/private/x"]);
        assert_eq!(others("/p/open//../../x"), ["/p/x", "/x"]);
        assert_eq!(others("/x%2Fy//../private"), ["/x%2Fy/private", "/private", "/x/y/private", "/x/private"]);
        assert_eq!(others("/../../.."), ["/"]);
        assert_eq!(others("/a/."), ["/a/"]);
        assert_eq!(others("/a/b/.."), ["/a/"]);
        assert_eq!(others("/a//"), ["/a/"]);
    }

    #[test]
    fn ours_double_encoding_is_another_resource() {
        assert!(others("/%2570rivate").is_empty());
        assert_eq!(others("/x/%252e%252e/private"), Vec::<String>::new());
    }
}
