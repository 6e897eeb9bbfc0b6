//! The forms of a request's path: all paths that the server behind a proxy may derive from the
//! request.
//!
//! A server may transform a path by some of the following steps, in its own order: decoding
//! `%uXXXX`, cutting path parameters, decoding `%2F` and `%5C`, treating the segment after `//` as
//! an authority, resolving dot segments, and merging empty segments. Each [kind of form](PathForm)
//! is named after one step. Forms are computed only for those orders of steps that occur in real
//! servers. If no step changes a path, the path has only its standard form.
//!
//! URL crates compute only one of these forms.

use std::borrow::Cow;

use memchr::{memchr, memchr_iter, memchr2, memchr3_iter, memrchr};

use super::spelling::{TargetPart, escaped, push_escape, split_query, standard};
use crate::keyword_enum;

/// Maximum number of forms of a path: one for the standard form, plus the product of the numbers of
/// alternatives for each step:
///
/// - two for `%u` (kept or decoded),
/// - three for parameters (kept, or cut before or after separators are decoded),
/// - four for segments before separators are decoded (unchanged, resolved, merged and resolved, or
///   resolved before they are merged and resolved),
/// - three for separators (kept, `%2F` decoded, or `%2F` and `%5C` decoded),
/// - two for an authority (kept or cut),
/// - three orders of resolving and merging,
/// - two for the slash of a final dot segment (kept or dropped).
pub(super) const MAX_FORMS: usize = 1 + 2 * 3 * 4 * 3 * 2 * 3 * 2;

/// Reports whether a target may have forms other than its standard form.
pub(super) fn may_have_other_forms(target: &[u8]) -> bool {
    let (path, _) = split_query(target);
    let behind_dot = |rest: &'_ [u8]| match rest {
        [b'.', ..] => Some(1),
        [b'%', b'2', b'e' | b'E', ..] => Some(3),
        _ => None,
    };
    // A dot segment is one or two dots, followed by a byte that may end the segment or by the end
    // of the path. So `.git` is not a dot segment.
    let is_dots = |rest: &[u8]| {
        let mut end = behind_dot(rest);
        end = end.map(|end| end + behind_dot(&rest[end..]).unwrap_or_default());
        end.is_some_and(|end| matches!(rest[end..], [] | [b'/' | b'\\' | b';' | b'%', ..]))
    };
    let slash = |at: usize| matches!(path.get(at + 1), Some(b'/')) || path.get(at + 1..).is_some_and(is_dots);
    memchr3_iter(b'/', b'\\', b';', path).any(|at| path[at] != b'/' || slash(at))
        || memchr_iter(b'%', path)
            .any(|at| matches!(path[at + 1..], [b'2', b'f' | b'F', ..] | [b'5', b'c' | b'C', ..] | [b'u' | b'U', ..]))
}

/// Returns all forms of a target except `sent`, its standard form. The simplest form comes first.
pub(super) fn of(target: &[u8], sent: &[u8], forms: PathForms) -> Vec<(PathForm, Vec<u8>)> {
    let (path, query) = split_query(target);
    let query = standard(query, TargetPart::Query);
    // All forms have the same query, so only the paths are compared.
    let path_of = |form: &'_ [u8]| form.len() - query.len();
    let mut found: Vec<(PathForm, Vec<u8>)> = Vec::new();
    for (base, path) in bases(path, forms) {
        let path = Segments { path: Cow::Borrowed(&path), slash: Slash::Own };
        let resolved = path.clone().resolve(forms);
        let merged = path.merge(forms);
        // Neither resolving nor merging creates segments that the other step would change. So the
        // order of the two steps matters only if both steps change the path.
        let (is_resolved, is_merged) = (resolved.is_changed(), merged.is_changed());
        let resolved_first = (is_resolved && is_merged).then(|| resolved.clone().merge(forms));
        let merged_first = is_merged.then(|| merged.resolve(forms));
        // If no step has changed the path, it is equal to `sent` and need not be compared.
        let resolved = (is_resolved || base != PathForm::Standard).then_some(resolved);
        let orders =
            [(PathForm::Resolved, resolved), (PathForm::Merged, merged_first), (PathForm::Merged, resolved_first)];
        let orders = orders.into_iter().filter_map(|(order, segments)| Some((order, segments?)));
        for (order, Segments { path, slash }) in orders {
            let mut add = |path: &[u8]| {
                let path = standard(path, TargetPart::Path);
                let is_new = |form: &[u8]| !are_equal(&path, &form[..path_of(form)]);
                if is_new(sent) && found.iter().all(|(_, known)| is_new(known)) {
                    found.push((base.max(order), [&path, &*query].concat()));
                }
            };
            add(&path);
            if let ([shorter @ .., b'/'], Slash::OfDots) = (&*path, slash)
                && !shorter.is_empty()
            {
                add(shorter);
            }
        }
    }
    found
}

/// Reports whether two forms are equal. Compares the last bytes first, because forms may be long
/// and usually differ at the end.
fn are_equal(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.last_chunk::<16>() == other.last_chunk() && one == other
}

/// Reports whether a path contains these two bytes in sequence. The scan has no early exit, so that
/// the compiler can vectorise it.
fn holds_pair(path: &[u8], [one, other]: [u8; 2]) -> bool {
    let pairs = path.iter().zip(path.get(1..).unwrap_or_default());
    pairs.fold(false, |any, (byte, next)| any | (*byte == one) & (*next == other))
}

/// Returns the results of all steps except the last two, which resolve and merge the segments of a
/// path. The path itself comes first. Escaped reserved bytes stay escaped, because an escaped `;`
/// does not begin a parameter.
fn bases(path: &[u8], forms: PathForms) -> Vec<(PathForm, Cow<'_, [u8]>)> {
    // In standard form, bytes with the same meaning have the same spelling, so the steps can
    // compare bytes.
    let path = standard(path, TargetPart::Query);
    // Only paths with a `%`, a `;` or a `//` can be changed by the steps below.
    let is_base = memchr2(b'%', b';', &path).is_none() && !holds_pair(&path, *b"//");
    let mut bases = vec![(PathForm::Standard, path)];
    if is_base {
        return bases;
    }
    let mut grow = |kind: PathForm, change: &dyn Fn(&[u8]) -> Option<Vec<u8>>| {
        for at in 0..if forms.contains(kind) { bases.len() } else { 0 } {
            let (base, path) = &bases[at];
            if let Some(changed) = change(path)
                && bases.iter().all(|(_, known)| **known != *changed)
            {
                bases.push(((*base).max(kind), changed.into()));
            }
        }
    };
    grow(PathForm::Unicode, &decode_unicode);
    // Some servers cut parameters before they decode separators; other servers cut parameters
    // afterwards.
    grow(PathForm::Parameters, &cut_parameters);
    // A proxy, or `new URL` in JavaScript, may resolve dot segments first. The server behind the
    // proxy may then apply the other steps and resolve dot segments again.
    grow(PathForm::Resolved, &|path| apply_first(path, |path| path.resolve(forms)));
    // Merging removes `//`, so later steps find no authority in the path. Later steps can change
    // the path only if it still contains a `%` or `;`.
    grow(PathForm::Merged, &|path| {
        memchr2(b'%', b';', path).and_then(|_| apply_first(path, |path| path.merge(forms).resolve(forms)))
    });
    // `%5C` is a separator on some systems and an ordinary byte on others.
    grow(PathForm::Decoded, &|path| decode(path, b"/"));
    grow(PathForm::Decoded, &|path| decode(path, b"/\\"));
    grow(PathForm::Parameters, &cut_parameters);
    grow(PathForm::Authority, &behind_authority);
    bases
}

/// Converts `%uXXXX` (UTF-16) to percent-encoded UTF-8.
fn decode_unicode(path: &[u8]) -> Option<Vec<u8>> {
    memchr_iter(b'%', path).find(|at| unicode_unit(&path[*at..]).is_some())?;
    let mut out = Vec::with_capacity(path.len());
    let (mut rest, mut units) = (path, Vec::new());
    loop {
        if let Some(unit) = unicode_unit(rest) {
            units.push(unit);
            rest = &rest[6..];
            continue;
        }
        for char in char::decode_utf16(units.drain(..)) {
            let char = char.unwrap_or(char::REPLACEMENT_CHARACTER);
            char.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| push_escape(&mut out, byte));
        }
        let [byte, behind @ ..] = rest else { break };
        out.push(*byte);
        rest = behind;
    }
    Some(standard(&out, TargetPart::Query).into_owned())
}

fn unicode_unit(bytes: &[u8]) -> Option<u16> {
    let [b'%', b'u' | b'U', digits @ ..] = bytes else { return None };
    let digits: &[u8; 4] = digits.first_chunk()?;
    digits.iter().try_fold(0, |unit: u16, digit| {
        let digit = char::from(*digit).to_digit(16)?;
        Some(unit << 4 | u16::try_from(digit).ok()?)
    })
}

fn cut_parameters(path: &[u8]) -> Option<Vec<u8>> {
    memchr(b';', path)?;
    let name = |segment: &'_ [u8]| memchr(b';', segment).unwrap_or(segment.len());
    let segments: Vec<_> = path.split(|byte| *byte == b'/').map(|segment| &segment[..name(segment)]).collect();
    Some(segments.join(&b'/'))
}

/// Applies `step` to the segments of a path before the remaining steps. Returns `None` if `step`
/// changes nothing, or if the result contains no parameters, authority or escaped separators that
/// the remaining steps would change.
fn apply_first(path: &[u8], step: impl Fn(Segments<'_>) -> Segments<'_>) -> Option<Vec<u8>> {
    let changed = step(Segments { path: Cow::Borrowed(path), slash: Slash::Own }).path;
    let finds = [cut_parameters, behind_authority, |path: &[u8]| decode(path, b"/\\")];
    (*changed != *path && finds.iter().any(|find| find(&changed).is_some())).then(|| changed.into_owned())
}

/// Replaces the escapes of the given separators with `/`.
fn decode(path: &[u8], separators: &[u8]) -> Option<Vec<u8>> {
    let is_separator = |at: &usize| escaped(&path[*at..]).is_some_and(|byte| separators.contains(&byte));
    let mut found = memchr_iter(b'%', path).filter(is_separator).peekable();
    found.peek()?;
    let (mut out, mut start) = (Vec::with_capacity(path.len()), 0);
    for at in found {
        out.extend_from_slice(&path[start..at]);
        out.push(b'/');
        start = at + 3;
    }
    out.extend_from_slice(&path[start..]);
    Some(out)
}

/// Returns the path after the authority; `None` if the path does not begin with an authority (RFC
/// 3986, section 3.2). As in browsers, two or more slashes or backslashes introduce an authority.
fn behind_authority(path: &[u8]) -> Option<Vec<u8>> {
    let (mut slashes, mut authority) = (0, path);
    while let Some(rest) = authority.strip_prefix(b"/").or_else(|| authority.strip_prefix(b"%5C")) {
        (slashes, authority) = (slashes + 1, rest);
    }
    (slashes >= 2).then(|| memchr(b'/', authority).map_or(b"/".to_vec(), |end| authority[end..].to_vec()))
}

#[derive(Clone)]
struct Segments<'p> {
    path: Cow<'p, [u8]>,
    slash: Slash,
}

/// The origin of a slash at the end of a path.
#[derive(Clone, Copy)]
enum Slash {
    /// The path has no slash at the end, or the client sent this slash.
    Own,
    /// The slash remained when a dot segment at the end of the path was removed.
    OfDots,
}

impl Segments<'_> {
    /// Reports whether a step has changed the path. A path is borrowed until a step changes it.
    const fn is_changed(&self) -> bool {
        matches!(self.path, Cow::Owned(_))
    }

    /// Removes dot segments. A `..` at the root has no effect.
    fn resolve(self, forms: PathForms) -> Self {
        if !forms.contains(PathForm::Resolved) || !holds_pair(&self.path, *b"/.") {
            return self;
        }
        let mut out = Vec::with_capacity(self.path.len());
        let mut slash = Slash::Own;
        let mut rest = self.path.strip_prefix(b"/");
        while let Some(segments) = rest {
            let end = memchr(b'/', segments).unwrap_or(segments.len());
            let segment = &segments[..end];
            rest = segments.get(end + 1..);
            if !matches!(segment, b"." | b"..") {
                out.push(b'/');
                out.extend_from_slice(segment);
                continue;
            }
            if segment == b".." {
                out.truncate(memrchr(b'/', &out).unwrap_or(0));
            }
            if rest.is_none() {
                out.push(b'/');
                slash = Slash::OfDots;
            }
        }
        if out.is_empty() {
            out.push(b'/');
        }
        Self { path: out.into(), slash }
    }

    fn merge(self, forms: PathForms) -> Self {
        if !forms.contains(PathForm::Merged) || !holds_pair(&self.path, *b"//") {
            return self;
        }
        let mut out: Vec<u8> = Vec::with_capacity(self.path.len());
        for segment in self.path.split_inclusive(|byte| *byte == b'/') {
            if segment != b"/" || !out.ends_with(b"/") {
                out.extend_from_slice(segment);
            }
        }
        Self { path: out.into(), ..self }
    }
}

keyword_enum! {
    /// A form of a request target, named after the step that produces it. If several steps are
    /// needed, the form is named after the one that comes last in this enum.
    #[derive(PartialOrd, Ord)]
    PathForm, "a form of a path", {
        /// The path and query as the client sent them. The reference parser compares this form.
        Verbatim = "verbatim",
        /// The form with normalised escapes. Its segments are as sent.
        Standard = "standard",
        /// The form without dot segments (RFC 3986, section 5.2.4). The slash before a final dot
        /// segment may also be removed.
        Resolved = "resolved",
        /// The form without empty segments. Dot segments are removed before or after the empty
        /// segments.
        Merged = "merged",
        /// The form with `%2F`, or both `%2F` and `%5C`, decoded to `/`. A raw backslash is treated
        /// like `%5C`.
        Decoded = "decoded",
        /// The form without path parameters, which begin with a `;` in a segment (RFC 3986, section
        /// 3.3).
        Parameters = "parameters",
        /// The form with each `%uXXXX` decoded to the character with this code point.
        Unicode = "unicode",
        /// For a path that begins with `//`: the path after the authority. For a target without a
        /// leading slash: another path that servers may find in the target.
        Authority = "authority",
    }
}

impl PathForm {
    /// The forms that a policy can disable.
    pub const OPTIONAL: [Self; 6] =
        [Self::Resolved, Self::Merged, Self::Decoded, Self::Parameters, Self::Unicode, Self::Authority];
}

/// The forms that are compared in addition to the first form ([`PathForm::Verbatim`] or
/// [`PathForm::Standard`]), one bit per form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathForms(u8);

impl PathForms {
    pub(crate) const ALL: Self = Self(u8::MAX);

    pub(crate) const NONE: Self = Self(0);

    pub(super) const fn contains(self, form: PathForm) -> bool {
        self.0 & 1 << form as u8 != 0
    }
}

impl FromIterator<PathForm> for PathForms {
    fn from_iter<I: IntoIterator<Item = PathForm>>(forms: I) -> Self {
        forms.into_iter().fold(Self::NONE, |forms, form| Self(forms.0 | 1 << form as u8))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::spelling::standard_target;

    fn all_but(form: PathForm) -> PathForms {
        PathForm::OPTIONAL.into_iter().filter(|other| *other != form).collect()
    }

    fn forms_with(target: &str, forms: PathForms) -> Vec<(PathForm, String)> {
        let found = of(target.as_bytes(), &standard_target(target.as_bytes()), forms);
        assert!(found.is_empty() || may_have_other_forms(target.as_bytes()), "{target}");
        found.into_iter().map(|(form, path)| (form, String::from_utf8(path).unwrap())).collect()
    }

    fn paths(target: &str) -> Vec<String> {
        forms_with(target, PathForms::ALL).into_iter().map(|(_, path)| path).collect()
    }

    #[track_caller]
    fn reads(target: &str, as_kind: PathForm, path: &str) {
        let forms = forms_with(target, PathForms::ALL);
        assert!(forms.contains(&(as_kind, path.to_owned())), "{target} is not read as {path}: {forms:?}");
    }

    #[test]
    fn ours_an_ordinary_target_has_one_form() {
        let targets = "/ /a/b.c/?x=/../y//z%2f;a /.hidden/x...y /go?u=https%3a%2f%2fx%2fprivate%2f \
            /wiki/Talk%3AFoo /a%3Bb/c /%75nicode/%uXYZ0";
        for target in targets.split(' ') {
            assert_eq!(paths(target), Vec::<String>::new(), "{target}");
        }
    }

    #[test]
    fn an_ordinary_target_is_not_searched_for_forms() {
        for target in ["/", "/a/b.c/?x=/../y//z%2f;a", "/a%3Bb/c%", "/a%2/b%5d%25", "/a./b.."] {
            assert!(!may_have_other_forms(target.as_bytes()), "{target}");
        }
        for target in ["/.", "/a//b", "/a/%2E", "/a;b", "/a\\b", "/a%2F", "/a%5c", "/a%U0041", "/a%u0041"] {
            assert!(may_have_other_forms(target.as_bytes()), "{target}");
        }
    }

    #[test]
    fn path_forms_are_displayed_by_their_lowercase_names() {
        for form in PathForm::OPTIONAL.into_iter().chain([PathForm::Verbatim, PathForm::Standard]) {
            assert_eq!(form.to_string(), format!("{form:?}").to_ascii_lowercase());
        }
    }

    #[test]
    fn ours_dot_segments_are_removed() {
        assert_eq!(paths("/x/../private/x?q=//"), ["/private/x?q=//"]);
        assert_eq!(paths("/x/%2e%2E/private"), ["/private"]);
        assert_eq!(paths("/../../.."), ["/"]);
        // A final dot segment is removed with and without the slash before it.
        assert_eq!(paths("/docs/a.pdf/."), ["/docs/a.pdf/", "/docs/a.pdf"]);
        assert_eq!(paths("/a/b/.."), ["/a/", "/a"]);
        assert_eq!(paths("/a/b/../"), ["/a/"]);
    }

    #[test]
    fn ours_empty_segments_are_merged_before_and_after_dot_segments_are_removed() {
        reads("//private/a//../../x", PathForm::Merged, "/x");
        reads("//private/a//../../x", PathForm::Merged, "/private/x");
        reads("/x/..//private/x//../../x", PathForm::Merged, "/private/x");
        reads("/x/%2e%2e//private/x//%2e./../x", PathForm::Merged, "/private/x");
        assert_eq!(paths("/a//"), ["/a/"]);
        assert_eq!(paths("/p/open//../../x"), ["/p/x", "/x"]);
    }

    #[test]
    fn ours_escaped_separators_and_backslashes_are_separators_too() {
        assert_eq!(paths("/open/..%2fx"), ["/x"]);
        assert_eq!(paths("/private%5cx"), ["/private/x"]);
        assert_eq!(paths("/private\\x"), ["/private/x"]);
        reads("/x//..%2Fprivate", PathForm::Decoded, "/private");
        // In one form, `%2F` is decoded but `%5C` is not. Dot segments are removed before and after
        // decoding.
        reads("/x%5Cy/../z%2F../private/x", PathForm::Decoded, "/private/x");
        reads("/x%2Fy/../z%2F../private/x", PathForm::Decoded, "/private/x");
        reads("/x//..%2Fprivate", PathForm::Merged, "/x/..%2Fprivate");
    }

    #[test]
    fn ours_path_parameters_are_cut() {
        for (target, path) in [
            ("/private;a/x", "/private/x"),
            ("/private;a=b;c/x?d;e", "/private/x?d;e"),
            ("/;/private/x", "/private/x"),
            ("/x/..;/private/x", "/private/x"),
            ("/x/..;a=%2F/private/x", "/private/x"),
            ("/.well-known/..;/private/x", "/private/x"),
            ("/x/.;/private;/x", "/x/private/x"),
            // Parameters are cut both before and after separators are decoded.
            ("/private%2Fx;a%2F..%2F..%2Fy", "/private/x"),
            ("/private;a%2Fx", "/private/x"),
            ("/private;a%2f..%2f../x", "/private/x"),
        ] {
            reads(target, PathForm::Parameters, path);
        }
        // A proxy removes dot segments, and the server behind it cuts parameters.
        reads("/private;b/..;a/../x", PathForm::Parameters, "/private/x");
        reads("/private;b/..;a//../x", PathForm::Parameters, "/private/x");
        // An escaped `;` does not begin a parameter.
        assert_eq!(paths("/private%3Ba/x"), Vec::<String>::new());
        assert_eq!(paths("/a;b/%3Bc"), ["/a/;c"]);
    }

    #[test]
    fn ours_the_part_after_an_authority_is_a_path_form() {
        for target in
            ["//host/private/x", "///host/private/x", "/\\host/private/x", "/%2Fhost:80/private/x", "//h;a/private/x"]
        {
            reads(target, PathForm::Authority, "/private/x");
        }
        for target in ["/.//host/private/x", "/x/..//host/private/x"] {
            reads(target, PathForm::Authority, "/private/x");
        }
        let backslashes = forms_with("/\\host/private/x", all_but(PathForm::Decoded));
        assert!(backslashes.contains(&(PathForm::Authority, "/private/x".to_owned())), "{backslashes:?}");
        reads("//host", PathForm::Authority, "/");
        reads("//u@host/%2e/private;a/x", PathForm::Authority, "/private/x");
    }

    #[test]
    fn ours_unicode_escapes_are_decoded_to_characters() {
        for (target, path) in [
            ("/p%u0072ivate/x", "/private/x"),
            ("/x/%U002e%u002E/private/x", "/private/x"),
            ("/x%u002f..%u002fprivate/x", "/private/x"),
            ("/%u00e9%uD83D%uDE00%uD83D", "/%C3%A9%F0%9F%98%80%EF%BF%BD"),
        ] {
            reads(target, PathForm::Unicode, path);
        }
        // A decoded `;` is an ordinary byte and does not begin a parameter.
        assert_eq!(paths("/a%u003Bb"), ["/a;b"]);
    }

    #[test]
    fn ours_a_doubly_encoded_path_is_not_decoded_twice() {
        assert_eq!(paths("/%2570rivate"), Vec::<String>::new());
        assert_eq!(paths("/x/%252e%252e/private"), Vec::<String>::new());
    }

    #[test]
    fn every_path_form_can_be_disabled_independently_of_the_others() {
        let target = "//h/./x/..;a/y%2F..//%u0070";
        for form in PathForm::OPTIONAL {
            let without = forms_with(target, all_but(form));
            assert!(forms_with(target, PathForms::ALL).iter().any(|(kind, _)| *kind == form), "{form}");
            assert!(without.iter().all(|(kind, _)| *kind != form), "{form}");
        }
        let dots = forms_with("/x/..//y;a/%2F", all_but(PathForm::Resolved));
        assert!(!dots.is_empty() && dots.iter().all(|(_, path)| path.contains("/../")), "{dots:?}");
        let separators = all_but(PathForm::Decoded);
        assert!(forms_with(target, separators).iter().all(|(_, path)| path.contains("%2F")));
        assert_eq!(forms_with(target, PathForms::NONE), []);
        let each: PathForms = PathForm::OPTIONAL.into_iter().collect();
        assert_eq!(forms_with(target, each), forms_with(target, PathForms::ALL));
    }

    #[test]
    fn a_target_with_hundreds_of_path_forms_stays_within_the_bound() {
        let target = "/%5Ca%2F/%/;/%2F../0//..;%2Fu/%5C0%u002e/2/.%/u/..%2FF/.;//../../../%//.%2F..";
        let count = paths(target).len() + 1;
        assert!((500..=MAX_FORMS).contains(&count), "{count}");
    }

    #[test]
    fn a_set_of_path_forms_contains_only_the_forms_that_were_added() {
        let some: PathForms = [PathForm::Merged, PathForm::Unicode, PathForm::Merged].into_iter().collect();
        for form in PathForm::OPTIONAL {
            assert_eq!(some.contains(form), [PathForm::Merged, PathForm::Unicode].contains(&form), "{form}");
            assert!(PathForms::ALL.contains(form) && !all_but(form).contains(form), "{form}");
            assert!(!PathForms::NONE.contains(form), "{form}");
        }
    }

    #[test]
    fn the_verbatim_and_standard_forms_do_not_count_as_optional_forms() {
        let sent: PathForms = [PathForm::Verbatim, PathForm::Standard].into_iter().collect();
        assert_eq!(forms_with("//h/./x/..;a/y%2F..//%u0070", sent), []);
    }
}
