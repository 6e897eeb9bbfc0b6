//! The path of a request, in all forms that an upstream server may derive from the request target.
//!
//! In the standard form, escapes are normalised ([`spelling`](super::spelling)), as RFC 9309,
//! section 2.2.2, requires. Different servers interpret some paths in different ways. For such a
//! path, other [forms](super::PathForm) are also compared with the rules. All forms have the same
//! query, unless the target contains a `#` or does not begin with `/`.
//!
//! **A `RequestPath` computes its [other forms](super::PathForm) on first use.** A crafted target
//! of 8 KiB can have 577 forms, which take four milliseconds to compute. The other forms are not
//! needed if no group applies to the request.

use std::borrow::Cow;
use std::sync::OnceLock;

use super::path_form;
use super::path_form::{PathForm, PathForms};
use super::spelling::standard_target;

/// The path and query of a request, in the forms that are compared with rules.
///
/// Borrows the target without an allocation if it is already in standard form. All other forms are
/// computed on first use.
#[derive(Clone, Debug)]
pub struct RequestPath<'t> {
    form: PathForm,
    sent: Cow<'t, [u8]>,
    readings: Option<Box<Readings<'t>>>,
}

/// A target that different servers may interpret as different paths.
#[derive(Clone, Debug)]
struct Readings<'t> {
    target: Cow<'t, [u8]>,
    /// Other paths that some servers find in the target, each with its [`PathForm`]; empty if the
    /// target begins with a slash and contains no `#`.
    further: Vec<(PathForm, Vec<u8>)>,
    kinds: PathForms,
    found: OnceLock<Vec<(PathForm, Vec<u8>)>>,
}

impl<'t> RequestPath<'t> {
    /// Maximum number of forms of a target, including the standard form.
    pub const MAX_FORMS: usize = path_form::MAX_FORMS * (1 + MAX_FURTHER_FORMS);

    /// Creates a path from the target of a request, as sent: origin-form (`/path?query`) or a whole
    /// URL of any scheme.
    ///
    /// Ignores the first `#` and all bytes after it, because clients do not send the fragment of a
    /// URL. For the target of a received request, use
    /// [`Policy::path`](crate::policy::Policy::path), which also compares the part after a `#`. A
    /// target that starts with `//` is a path with an empty segment, not an authority. Some
    /// targets, such as `http://host:?/path`, `http:\\host\path` or `path` without a slash, are
    /// split differently by different servers. For such a target, the [forms](RequestPath::forms)
    /// include every path that servers may find.
    pub fn new(target: &'t (impl AsRef<[u8]> + ?Sized)) -> Self {
        Self::with_forms(target.as_ref(), PathForms::ALL)
    }

    /// Creates a path like [`RequestPath::new`], but computes only those additional forms whose
    /// kind is in `kinds`.
    pub(crate) fn with_forms(target: &'t [u8], kinds: PathForms) -> Self {
        if target.starts_with(b"/") && is_plain(target) {
            return Self::plain(target);
        }
        Self::read(target, None, kinds)
    }

    /// Creates the path of a request that a server has received, in the forms whose kind is in
    /// `kinds`.
    ///
    /// A request target has no fragment (RFC 9112, section 3.2), but some proxies forward targets
    /// that contain a `#`. The next server may drop the `#` and everything after it, or treat the
    /// `#` as an ordinary byte. So such a target has another form, with `%23` instead of `#`.
    pub(crate) fn of_request(target: &'t [u8], kinds: PathForms) -> Self {
        if target.starts_with(b"/") && is_plain(target) {
            return Self::plain(target);
        }
        let whole = || target.split(|byte| *byte == b'#').collect::<Vec<_>>().join(&b"%23"[..]);
        Self::read(target, memchr::memchr(b'#', target).map(|_| whole()), kinds)
    }

    const fn plain(target: &'t [u8]) -> Self {
        Self { form: PathForm::Standard, sent: Cow::Borrowed(target), readings: None }
    }

    fn read(target: &'t [u8], whole: Option<Vec<u8>>, kinds: PathForms) -> Self {
        let (target, others) = paths_of(target);
        let of_authority = |other| (PathForm::Authority, other);
        let mut further: Vec<_> = others.into_iter().map(of_authority).collect();
        if let Some(whole) = &whole {
            let (path, others) = paths_of(whole);
            further.push((PathForm::Standard, path.into_owned()));
            further.extend(others.into_iter().map(of_authority));
        }
        let is_compared = |form: PathForm| form == PathForm::Standard || kinds.contains(form);
        further.retain(|(form, other)| is_compared(*form) && **other != *target);
        let sent = match &target {
            Cow::Borrowed(target) => standard_target(target),
            Cow::Owned(target) => Cow::Owned(standard_target(target).into_owned()),
        };
        let readings = (path_form::may_have_other_forms(&target) || !further.is_empty())
            .then(|| Box::new(Readings { target, further, kinds, found: OnceLock::new() }));
        Self { form: PathForm::Standard, sent, readings }
    }

    /// Creates the path exactly as the reference parser finds it in a target: without scheme,
    /// authority and fragment, and with all other bytes unchanged.
    pub fn verbatim(target: &'t (impl AsRef<[u8]> + ?Sized)) -> Self {
        Self { form: PathForm::Verbatim, sent: path_of_url(target.as_ref()), readings: None }
    }

    /// Returns the form of [`RequestPath::as_bytes`]: standard or verbatim.
    #[doc(hidden)]
    pub const fn form(&self) -> PathForm {
        self.form
    }

    /// Returns the path and query, in standard form or verbatim.
    pub fn as_bytes(&self) -> &[u8] {
        &self.sent
    }

    /// Returns every form of the target, without duplicates. The form that
    /// [`RequestPath::as_bytes`] returns comes first. There are at most [`RequestPath::MAX_FORMS`]
    /// forms.
    pub fn forms(&self) -> impl Iterator<Item = (PathForm, &[u8])> {
        let others = self.others().iter().map(|(form, path)| (*form, path.as_slice()));
        std::iter::once((self.form, self.as_bytes())).chain(others)
    }

    /// Reports whether a request's target, as sent, is the site's own `/robots.txt`. This function
    /// is cheaper than [`RequestPath::is_robots_txt`], because most targets are not parsed. If a
    /// target contains a `#`, the result is `false`, because some servers find another path in the
    /// target.
    ///
    /// Use this function both to serve `/robots.txt` and to count requests for it, so that every
    /// served request is counted.
    pub fn is_robots_txt_target(target: &[u8]) -> bool {
        Self::is_robots_txt_url(target) && memchr::memchr(b'#', target).is_none()
    }

    /// Reports whether a URL that a crawler has found leads to the site's own `/robots.txt`. A
    /// fragment is ignored, because crawlers do not send it.
    #[doc(hidden)]
    pub fn is_robots_txt_url(target: &[u8]) -> bool {
        // Almost every client uses this spelling of the target.
        if target == b"/robots.txt" {
            return true;
        }
        // Most other targets need no parsing: if a spelling of `/robots.txt` begins with a slash,
        // the next byte is an `r` or begins an escape.
        let may_be = !target.starts_with(b"/") || matches!(target, [_, b'r' | b'%', ..]);
        may_be && RequestPath::with_forms(target, PathForms::NONE).is_robots_txt()
    }

    /// Reports whether this is the site's own `/robots.txt`, with or without a query. Returns
    /// `false` if the target of a request contains a `#`, because some servers find another path in
    /// such a target.
    pub fn is_robots_txt(&self) -> bool {
        let is_whole = |(form, _): &(PathForm, Vec<u8>)| *form == PathForm::Standard;
        let has_whole = || self.readings.as_ref().is_some_and(|readings| readings.further.iter().any(is_whole));
        self.as_bytes().strip_prefix(b"/robots.txt").is_some_and(|rest| matches!(rest, [] | [b'?', ..])) && !has_whole()
    }

    /// Reports whether the target has only one form.
    #[doc(hidden)]
    pub fn is_canonical(&self) -> bool {
        self.others().is_empty()
    }

    fn others(&self) -> &[(PathForm, Vec<u8>)] {
        let Some(readings) = &self.readings else { return &[] };
        readings.found.get_or_init(|| {
            let mut found = path_form::of(&readings.target, &self.sent, readings.kinds);
            for (least, target) in &readings.further {
                let standard = standard_target(target);
                let of_target = path_form::of(target, &standard, readings.kinds);
                let of_target = std::iter::once((*least, standard.into_owned())).chain(of_target);
                for (form, path) in of_target {
                    if path != *self.sent && found.iter().all(|(_, known)| *known != path) {
                        found.push((form.max(*least), path));
                    }
                }
            }
            found
        })
    }
}

/// Reports whether an origin-form target contains only bytes that every server interprets in the
/// same way. If the result is `false`, the target may still have only one form.
///
/// The function checks blocks of bytes without an early exit, because the compiler can vectorise
/// such a loop.
fn is_plain(target: &[u8]) -> bool {
    const BLOCK: usize = 16;
    let telling = |bytes: &[u8], next: &[u8]| {
        bytes.iter().zip(next).fold(false, |any, (byte, next)| any | is_ambiguous(*byte, *next))
    };
    let Some(last) = target.last_chunk::<{ BLOCK + 1 }>() else {
        // Short targets are checked with a table. For each byte, the table has three bits: whether
        // `is_ambiguous` is true for the byte alone, and whether the byte can begin or end a pair
        // with this property.
        const ROLES: [u8; 256] = roles();
        let look = |(any, before): (u8, u8), byte: &u8| {
            let roles = ROLES[usize::from(*byte)];
            (any | roles & 1 | before >> 1 & roles >> 2, roles)
        };
        return target.iter().fold((0, 0), look).0 & 1 == 0;
    };
    let (bytes, next) = (target.as_chunks::<BLOCK>().0, target[1..].as_chunks::<BLOCK>().0);
    let within = bytes.iter().zip(next).fold(false, |any, (bytes, next)| any | telling(bytes, next));
    !(within | telling(&last[..BLOCK], &last[1..]) | is_ambiguous(last[BLOCK], 0))
}

/// Reports whether servers interpret `byte`, or the pair of `byte` and `next`, in different ways.
const fn is_ambiguous(byte: u8, next: u8) -> bool {
    (byte == b'%')
        | (byte == b';')
        | (byte == b'#')
        | (byte == b'\\')
        | (byte >= 0x80)
        | ((byte == b'/') & ((next == b'/') | (next == b'.')))
}

const fn roles() -> [u8; 256] {
    let mut roles = [0; 256];
    let mut byte = 0u8;
    while byte < u8::MAX {
        roles[byte as usize] =
            is_ambiguous(byte, 0) as u8 | ((byte == b'/') as u8) << 1 | (is_ambiguous(b'/', byte) as u8) << 2;
        byte += 1;
    }
    roles[u8::MAX as usize] = 1;
    roles
}

/// Maximum number of other paths that some servers find in a target: two in a target without a
/// leading slash, and three in the whole target if it contains a `#`.
const MAX_FURTHER_FORMS: usize = 5;

fn before_fragment(target: &[u8]) -> &[u8] {
    &target[..memchr::memchr(b'#', target).unwrap_or(target.len())]
}

/// Returns the path of a target without its fragment, and the other paths that some servers find in
/// a target that does not begin with `/`. Some of the returned paths may be equal.
///
/// Servers may disagree on the end of the authority in a URL. For example, a proxy may have built
/// the URL from a `Host` field with a `?` or `#`. Browsers treat `\` as `/`, and accept any number
/// of slashes before the authority. If the target is not a URL, some servers add a leading slash to
/// it, and others find the same path as the reference parser.
fn paths_of(target: &[u8]) -> (Cow<'_, [u8]>, Vec<Vec<u8>>) {
    if target.starts_with(b"/") {
        return (Cow::Borrowed(before_fragment(target)), Vec::new());
    }
    let is_slash = |byte: &u8| matches!(byte, b'/' | b'\\');
    let scheme = target.iter().position(|byte| is_slash(byte) || matches!(byte, b':' | b'?' | b'#' | b';'));
    let scheme = scheme.filter(|at| target[*at] == b':');
    let authority = scheme.map_or(target, |at| &target[at + 1..]);
    let is_url = scheme.is_some() && authority.starts_with(b"//");
    let authority = &authority[authority.iter().take_while(|byte| is_slash(byte)).count()..];
    let behind_authority =
        authority.iter().position(is_slash).map(|end| [b"/", before_fragment(&authority[end + 1..])].concat());
    if is_url || matches!(target, [] | b"*") {
        return (path_of_url(target), behind_authority.into_iter().collect());
    }
    let further = [Some(path_of_url(target).into_owned()), behind_authority];
    ([b"/", before_fragment(target)].concat().into(), further.into_iter().flatten().collect())
}

/// Returns the path, parameters and query of a URL as the reference parser finds them.
fn path_of_url(url: &[u8]) -> Cow<'_, [u8]> {
    const ROOT: &[u8] = b"/";
    // The reference parser expects a URL instead of a request target, so a leading `//` introduces
    // an authority.
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
    fn ours_only_a_scheme_introduces_an_authority_and_a_fragment_is_dropped() {
        let cases = [("http://example.com/%70/#x", "/p/"), ("//example.com", "//example.com"), ("/a#b/../c", "/a")];
        for (target, path) in cases {
            assert_eq!(String::from_utf8_lossy(RequestPath::new(target.as_bytes()).as_bytes()), path, "{target}");
        }
    }

    #[test]
    fn ours_every_path_that_a_server_may_find_in_a_target_is_a_form() {
        let forms = |target: &str| {
            let path = RequestPath::new(target.as_bytes());
            path.forms().map(|(_, path)| String::from_utf8(path.to_vec()).unwrap()).collect::<Vec<_>>()
        };
        let targets = "http://h.test:?/private/x~http://h.test:#/private/x~http://h.test:80?x/private/x~\
            http://?/private/x~http://h.test;/private/x~http://a?b#c/private/x#d~ftp://h.test/private/x~\
            ://h.test/private/x~HTTP:///h.test/private/x~http:/private/x~http:h.test/private/x~\
            http:\\\\h.test\\private\\x~http://h.test\\private\\x~http://h.test?\\private/x~private/x~\
            h.test/private/x~ /private/x~*/private/x~http://h.test?/open/%2e%2e/private;a/x";
        for target in targets.split('~') {
            assert!(forms(target).contains(&"/private/x".to_owned()), "{target}: {:?}", forms(target));
        }
        // An ordinary URL has only one path form, even if its query contains another path or URL.
        for (target, path) in [
            ("http://h.test/a?b=/private/x", "/a?b=/private/x"),
            ("https://u@h.test:8443/a?b=http://c/private#/private", "/a?b=http://c/private"),
            ("http://h.test?a", "/?a"),
            ("http://h.test", "/"),
            ("*", "/"),
            ("", "/"),
        ] {
            assert_eq!(forms(target), [path], "{target}");
        }
        let others = PathForm::OPTIONAL.into_iter().filter(|form| *form != PathForm::Authority).collect();
        let only = RequestPath::with_forms(b"http://h:?/private/x", others);
        assert_eq!(only.forms().count(), 1);
    }

    #[test]
    fn a_target_is_robots_txt_if_its_decoded_path_is_robots_txt() {
        let of_robots_txt = "/robots.txt /robots.txt?x /%72obots.txt \
            /%72%6f%62%6F%74%73%2e%74%78%74? http://a.test/robots.txt http://a.test/%72obots.txt robots.txt";
        let others = "/robots.txt/ /x/robots.txt /./robots.txt //robots.txt /Robots.txt x/robots.txt \
            http://a.test:?/robots.txt /%2frobots.txt http://a.test/x?/robots.txt /";
        let others = others.split(' ').chain([""]).map(|target| (target, false));
        for (target, want) in of_robots_txt.split(' ').map(|target| (target, true)).chain(others) {
            assert_eq!(RequestPath::is_robots_txt_target(target.as_bytes()), want, "{target}");
            assert_eq!(RequestPath::is_robots_txt_url(target.as_bytes()), want, "{target}");
            assert_eq!(RequestPath::new(target.as_bytes()).is_robots_txt(), want, "{target}");
            assert_eq!(RequestPath::of_request(target.as_bytes(), PathForms::ALL).is_robots_txt(), want, "{target}");
        }
        // A crawler does not send the fragment of a URL. If a request contains a `#`, some servers
        // find another path.
        for target in ["/robots.txt#x", "/robots.txt#/../x", "http://a.test/robots.txt#x"] {
            assert!(RequestPath::is_robots_txt_url(target.as_bytes()), "{target}");
            assert!(RequestPath::new(target.as_bytes()).is_robots_txt(), "{target}");
            assert!(!RequestPath::is_robots_txt_target(target.as_bytes()), "{target}");
            assert!(!RequestPath::of_request(target.as_bytes(), PathForms::NONE).is_robots_txt(), "{target}");
        }
    }

    #[test]
    fn ours_the_whole_target_of_a_request_is_a_form_if_it_contains_a_number_sign() {
        let forms = |target: &str, kinds: PathForms| {
            let path = RequestPath::of_request(target.as_bytes(), kinds);
            path.forms().map(|(_, path)| String::from_utf8(path.to_vec()).unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(forms("/x#/../private/x", PathForms::NONE), ["/x", "/x%23/../private/x"]);
        assert_eq!(forms("/x#/../private/x", PathForms::ALL), ["/x", "/x%23/../private/x", "/private/x"]);
        for target in "/#/../private/x /#/../private/x?y#z /x#;/..;/private/x /x#/..%2fprivate/x /x#/..//h/private/x \
            http://h.test/x#/../private/x http://h.test?x/a#/../private/x http://h.test#/../private/x x#/../private/x"
            .split_whitespace()
        {
            let found = forms(target, PathForms::ALL);
            assert!(found.iter().any(|form| form.split('?').next() == Some("/private/x")), "{target}: {found:?}");
            assert_eq!(forms(target, PathForms::NONE).len(), 2, "{target}");
        }
        // A crawler does not send the fragment of a URL.
        assert_eq!(RequestPath::new("/x#/../private/x").forms().count(), 1);
    }

    #[test]
    fn ours_an_ordinary_target_has_one_form_and_is_borrowed() {
        for target in ["/", "/a/b.c/?x=/../y//z;%2f", "/.hidden"] {
            let path = RequestPath::new(target.as_bytes());
            assert!(path.is_canonical() && path.as_bytes().as_ptr() == target.as_ptr() || target.contains('%'));
        }
    }

    #[test]
    fn the_first_path_form_is_the_one_that_was_sent() {
        let path = RequestPath::new(b"/x/../%61");
        let want: [(PathForm, &[u8]); 2] = [(PathForm::Standard, b"/x/../a"), (PathForm::Resolved, b"/a")];
        assert_eq!(path.forms().collect::<Vec<_>>(), want);
        assert!(!path.is_canonical());
        assert!(RequestPath::with_forms(b"/x/../%61", PathForms::NONE).is_canonical());
    }

    #[test]
    fn a_byte_that_servers_may_interpret_differently_is_found_at_every_position() {
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
