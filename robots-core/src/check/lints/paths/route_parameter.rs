//! `route-parameter`: placeholders in paths, as in routes of web frameworks.

use std::ops::Range;

use crate::check::lint::*;
use crate::check::path_text::has_one_path;
use crate::check::pattern::{is_expression, without_redundant_stars};

pub(crate) const LINT: Lint = Lint {
    code: "route-parameter",
    severity: Severity::Warning,
    summary: "route parameters in a path pattern",
    why: "In routers of web frameworks, \":id\", \"[slug]\", \"{id}\" or \"<name>\" stand for any text. In a path \
          pattern, only \"*\" stands for any text (RFC 9309, section 2.2.3), so \"/users/:id\" matches only paths \
          with exactly these characters.",
    bad: Example::new(b"User-agent: *\nDisallow: /users/:id/edit\nDisallow: /[lang]/cart\n"),
    good: Example::new(
        b"User-agent: *\nDisallow: /users/*/edit\nDisallow: /*/cart\nDisallow: /search?filter[price]=\n",
    ),
    pass: Pass::Field(run),
    fix: None,
};

/// Maximum length of a placeholder in brackets, in bytes. The limit bounds the cost of patterns
/// full of brackets.
const MAX_NAME: usize = 64;

fn run(_: &CheckedFile<'_>, field: &Field<'_>, sink: &mut Sink) {
    let pattern = field.value;
    if !has_one_path(field) || is_expression(pattern) {
        return;
    }
    let parameters = parameters(pattern);
    let Some(first) = parameters.first().cloned() else { return };
    let start = field.value_range.start;
    sink.report(
        start + first.start..start + first.end,
        format_args!(
            "{parameter} is not a placeholder: crawlers compare it literally",
            parameter = Quoted(&pattern[first])
        ),
    )
    .help_with(|| {
        let (mut meant, mut end) = (Vec::with_capacity(pattern.len()), 0);
        for range in parameters {
            meant.extend_from_slice(&pattern[end..range.start]);
            meant.push(b'*');
            end = range.end;
        }
        meant.extend_from_slice(&pattern[end..]);
        let meant = without_redundant_stars(meant);
        Some(match meant.as_slice() {
            b"/" => "write \"*\" for any text: the pattern then matches every path of the site".to_owned(),
            meant => format!(
                "write {pattern}: \"*\" stands for any text, and is not needed at the end",
                pattern = Quoted(meant)
            ),
        })
    });
}

fn parameters(pattern: &[u8]) -> Vec<Range<usize>> {
    // The query is excluded, because a placeholder in a query may be meant literally. For example,
    // crawlers find `?q={search_term_string}` in the markup of search boxes, and request URLs with
    // this query.
    let is_query = |at: &usize| pattern[*at] == b'?' && !matches!(pattern.get(at + 1), None | Some(b'}' | b'/'));
    let path = &pattern[..(0..pattern.len()).find(is_query).unwrap_or(pattern.len())];
    let mut found: Vec<Range<usize>> = Vec::new();
    for at in 1..path.len() {
        let last = found.last().map_or(0, |last| last.end);
        if at < last {
            continue;
        }
        // After `*/`, a placeholder is probably meant literally: a template may have left the
        // placeholder in links by mistake, and the rule blocks these broken links.
        let is_start = match path[at - 1] {
            b'/' => !path[..at].ends_with(b"*/"),
            // After these characters, `[` is usually part of a name: `/filter-[price]`.
            b'-' | b'.' | b'_' => path[at] != b'[',
            _ => at == last,
        };
        if is_start && let Some(length) = parameter(&path[at..]) {
            found.push(at..at + length);
        }
    }
    found
}

fn parameter(text: &[u8]) -> Option<usize> {
    let length = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
    let is_name = |name: &[u8]| {
        name.first().is_some_and(u8::is_ascii_alphabetic)
            && name.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
    };
    let end = match text {
        [b':', rest @ ..] => is_name(&rest[..length(rest)]).then(|| 1 + length(rest)),
        [open @ (b'[' | b'{' | b'<'), rest @ ..] => {
            let close = match open {
                b'[' => b']',
                b'{' => b'}',
                _ => b'>',
            };
            let inside = &rest[..memchr::memchr(close, &rest[..rest.len().min(MAX_NAME)])?];
            let optional = inside.strip_prefix(b"[").unwrap_or(inside);
            let closed = 2 + inside.len() + inside.len() - optional.len();
            // Other recognised forms: `[...slug]`, `[[...slug]]`, `{*path}`, `{**path}`,
            // `{id:int}`, `{id?}`, `<int:id>`.
            let name =
                ["...", "**", "*"].iter().find_map(|sign| optional.strip_prefix(sign.as_bytes())).unwrap_or(optional);
            let name = name.strip_suffix(b"?").unwrap_or(name);
            let mut names = name.split(|byte| *byte == b':');
            (names.all(is_name) && text.len() >= closed).then_some(closed)
        }
        _ => None,
    }?;
    match text[end..] {
        // A `?` or `+` marks a placeholder as optional or as repeated.
        [b'?' | b'+', b'/', ..] | [b'?' | b'+'] => Some(end + 1),
        [] | [b'/' | b'.' | b'-' | b'_' | b'*' | b'$' | b'(' | b'?' | b'{' | b'<', ..] => Some(end),
        _ => None,
    }
}
