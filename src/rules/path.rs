//! The target of a request, in every form in which an upstream may read it.
//!
//! The standard form makes escapes alike ([`spelling`](super::spelling)), as RFC 9309, section 2.2.2 wants before
//! comparing. A *path* that servers read differently has further [`forms`](super::forms); those are judged too. The
//! query is never restructured.

use std::borrow::Cow;
use std::sync::OnceLock;

use super::find_forms;
use super::path_form::{PathForm, PathForms};
use super::spelling::standard_target;

/// The path and query of a request, ready to be judged.
///
/// Borrows the target where it is already in standard form; then nothing is allocated. Further forms are found when they
/// are first used: a request that no rule is for does not pay for them.
#[derive(Clone, Debug)]
pub struct RequestPath<'t> {
    form: PathForm,
    sent: Cow<'t, [u8]>,
    readings: Option<Box<Readings<'t>>>,
}

/// A target that may have further forms.
#[derive(Clone, Debug)]
struct Readings<'t> {
    target: Cow<'t, [u8]>,
    kinds: PathForms,
    found: OnceLock<Vec<(PathForm, Vec<u8>)>>,
}

impl<'t> RequestPath<'t> {
    /// How many forms a target has at most, the standard form included.
    pub const MOST_FORMS: usize = find_forms::MOST_FORMS;

    /// The target of a request, as sent: origin-form (`/path?query`) or a whole URL.
    ///
    /// A fragment is dropped. A target that starts with `//` is a path with an empty segment, not an authority.
    #[must_use]
    pub fn new(target: &'t [u8]) -> Self {
        Self::with_forms(target, PathForms::ALL)
    }

    /// As [`RequestPath::new`], with only some of the further forms.
    #[must_use]
    pub fn with_forms(target: &'t [u8], kinds: PathForms) -> Self {
        if target.starts_with(b"/") && is_plain(target) {
            return Self { form: PathForm::Standard, sent: Cow::Borrowed(target), readings: None };
        }
        let target = match target {
            [b'/', ..] => Cow::Borrowed(&target[..memchr::memchr(b'#', target).unwrap_or(target.len())]),
            _ => path_of_url(target),
        };
        let sent = match &target {
            Cow::Borrowed(target) => standard_target(target),
            Cow::Owned(target) => Cow::Owned(standard_target(target).into_owned()),
        };
        let readings =
            find_forms::may_have(&target).then(|| Box::new(Readings { target, kinds, found: OnceLock::new() }));
        Self { form: PathForm::Standard, sent, readings }
    }

    /// The target exactly as the reference parser reads it: scheme, authority and fragment dropped, octets untouched.
    #[must_use]
    pub fn verbatim(target: &'t [u8]) -> Self {
        Self { form: PathForm::Verbatim, sent: path_of_url(target), readings: None }
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

    /// Every form the target can be read in, the one of [`RequestPath::as_bytes`] first, no two alike; at most
    /// [`RequestPath::MOST_FORMS`].
    pub fn forms(&self) -> impl Iterator<Item = (PathForm, &[u8])> {
        let others = self.others().iter().map(|(form, path)| (*form, path.as_slice()));
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
        self.others().is_empty()
    }

    fn others(&self) -> &[(PathForm, Vec<u8>)] {
        let Some(readings) = &self.readings else { return &[] };
        readings.found.get_or_init(|| find_forms::of(&readings.target, &self.sent, readings.kinds))
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
        | (octet == b';')
        | (octet == b'#')
        | (octet == b'\\')
        | (octet >= 0x80)
        | ((octet == b'/') & ((next == b'/') | (next == b'.')))
}

/// Path, parameters and query of a URL, as the reference parser finds them.
fn path_of_url(url: &[u8]) -> Cow<'_, [u8]> {
    const ROOT: &[u8] = b"/";
    // A leading `//` introduces an authority here: the reference parser takes URLs, not request targets.
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

#[cfg(test)]
mod tests {
    use super::*;

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
            ("a/b://c/d", "/b://c/d"),
            ("/a%2fb%61\u{e9}", "/a%2fb%61\u{e9}"),
        ] {
            let read = RequestPath::verbatim(url.as_bytes());
            assert_eq!(String::from_utf8_lossy(read.as_bytes()), path, "{url}");
            assert!(read.is_canonical());
        }
    }

    #[test]
    fn ours_a_target_is_a_path_and_no_url() {
        for (target, path) in
            [("http://example.com/%70/#x", "/p/"), ("//example.com", "//example.com"), ("/a#b/../c", "/a")]
        {
            assert_eq!(String::from_utf8_lossy(RequestPath::new(target.as_bytes()).as_bytes()), path, "{target}");
        }
    }

    #[test]
    fn ours_an_ordinary_target_has_one_form_and_is_borrowed() {
        for target in ["/", "/a/b.c/?x=/../y//z;%2f", "/.hidden"] {
            let path = RequestPath::new(target.as_bytes());
            assert!(path.is_canonical() && path.as_bytes().as_ptr() == target.as_ptr() || target.contains('%'));
        }
    }

    #[test]
    fn forms_begin_with_the_one_that_was_sent() {
        let path = RequestPath::new(b"/x/../%61");
        let want: [(PathForm, &[u8]); 2] = [(PathForm::Standard, b"/x/../a"), (PathForm::Resolved, b"/a")];
        assert_eq!(path.forms().collect::<Vec<_>>(), want);
        assert!(!path.is_canonical());
        assert!(RequestPath::with_forms(b"/x/../%61", PathForms::NONE).is_canonical());
    }

    #[test]
    fn what_is_telling_is_seen_wherever_it_stands() {
        for length in 2..70 {
            let plain = format!("/{}", "a".repeat(length - 1));
            assert!(is_plain(plain.as_bytes()));
            for at in 1..length {
                for (telling, pair) in [
                    ("%", false),
                    (";", false),
                    ("#", false),
                    ("\\", false),
                    ("\u{e9}", false),
                    ("/", true),
                    (".", true),
                ] {
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
}
