//! `redundant-star`: a `*` that has no effect.

use crate::check::lint::*;
use crate::check::path_text::{has_one_path, is_blank};
use crate::check::pattern::{is_expression, without_redundant_stars};

pub(crate) const LINT: Lint = Lint {
    code: "redundant-star",
    severity: Severity::Note,
    summary: "a \"*\" that changes nothing",
    why: "A pattern matches every path that begins with it (RFC 9309, section 2.2.2), so a \"*\" at its end, or next \
          to another \"*\", does not match more paths. But it makes the pattern longer, and longer patterns take \
          precedence over shorter ones, which is rarely intended.",
    bad: Example::new(b"User-agent: *\nDisallow: /private/*\n"),
    good: Example::new(b"User-agent: *\nDisallow: /private/\n"),
    pass: Pass::Field(run),
    fix: Some(LintFix::new(|file, finding| {
        file.with_value(finding, |value| Some(without_redundant_stars(value.to_vec())))
    })),
};

fn run(_: &CheckedFile<'_>, field: &Field<'_>, sink: &mut Sink) {
    let pattern = field.value;
    // Other lints report regular expressions (`/x/.*`) and values that are not patterns (`.*`). If
    // this lint removed the `*` from such a value, the real problem would be hidden.
    let is_pattern = matches!(pattern, [b'/' | b'*', ..]) && !is_expression(pattern);
    if memchr::memchr(b'*', pattern).is_none() || !is_pattern || !has_one_path(field) {
        return;
    }
    let without = without_redundant_stars(pattern.to_vec());
    // `*` and `/*` alone are not reported, because many people write them for "every path".
    if without.is_empty()
        || matches!(pattern, b"/*" | b"*")
        || without == pattern
        || without.last().is_some_and(is_blank)
    {
        return;
    }
    let range = field.value_range.clone();
    let start = pattern.iter().zip(&without).take_while(|(a, b)| a == b).count();
    sink.report(
        range.start + start..range.end,
        format_args!("{} matches the same paths as {}", Quoted(pattern), Quoted(&without)),
    )
    .help(format_args!("write {}", Quoted(&without)));
}
