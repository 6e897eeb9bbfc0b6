//! `dollar-inside`: a `$` that is not at the end of a pattern.

use crate::check::lint::*;
use crate::check::path_text::has_one_path;

pub(crate) const LINT: Lint = Lint {
    code: "dollar-inside",
    severity: Severity::Warning,
    summary: "a \"$\" that is not at the end of a pattern",
    why: "\"$\" means the end of the path only at the end of a pattern (RFC 9309, section 2.2.3). In other positions \
          it is a dollar sign, which few paths contain, so the rule matches almost nothing.",
    bad: Example::new(b"User-agent: *\nDisallow: /*.pdf$?page\n"),
    good: Example::new(b"User-agent: *\nDisallow: /*.pdf$\nDisallow: /price%24list\n"),
    pass: Pass::Field(run),
    fix: Some(LintFix::new(fix)),
};

fn run(_: &CheckedFile<'_>, field: &Field<'_>, sink: &mut Sink) {
    let pattern = field.value;
    if !has_one_path(field) || pattern.is_empty() {
        return;
    }
    let Some(at) = memchr::memchr(b'$', &pattern[..pattern.len() - 1]) else { return };
    let start = field.value_range.start + at;
    let draft = sink.report(
        start..start + 1,
        format_args!("the \"$\" inside {pattern} is a dollar sign, not the end of the path", pattern = Quoted(pattern)),
    );
    if is_end(pattern, at) {
        draft.help(format_args!("write {}", Quoted(&pattern[..=at])));
    } else {
        draft.help("write \"%24\" for a dollar sign, and \"$\" only at the end");
    }
}

fn fix(file: &CheckedFile<'_>, finding: &Finding) -> Option<Vec<Edit>> {
    let field = file.field_of(finding)?;
    let pattern = field.value;
    let at = finding.span.start - field.value_range.start;
    if is_end(pattern, at) {
        return Some(vec![Edit::remove(finding.span.end..field.value_range.end)]);
    }
    let start = field.value_range.start;
    let inside = memchr::memchr_iter(b'$', &pattern[..pattern.len() - 1]);
    // A `$` at the end of a path segment is not changed, because it may be meant literally or as
    // the end of the path.
    let is_byte = |at: usize| pattern[at + 1].is_ascii_alphanumeric() && !is_end(pattern, at);
    inside.clone().all(is_byte).then(|| Edit::each(file.bytes(), inside.map(|at| start + at), "%24"))
}

/// Reports whether a `$` is meant as the end of the path: the `$` follows a file extension
/// (`/*.pdf$?page`), or only `*` and `$` come after the `$`. Slashes may also come after the `$`,
/// unless a slash is directly before it (`/shop$/`).
fn is_end(pattern: &[u8], at: usize) -> bool {
    /// Maximum length of a file extension, in bytes: the length of `webmanifest`.
    const MAX_EXTENSION_LENGTH: usize = 11;
    let (before, rest) = (&pattern[..at], &pattern[at + 1..]);
    let name = before.rsplit(|byte| !byte.is_ascii_alphanumeric()).next().unwrap_or_default();
    let is_file =
        (1..=MAX_EXTENSION_LENGTH).contains(&name.len()) && before[..before.len() - name.len()].ends_with(b".");
    let is_only = |signs: &[u8]| rest.iter().all(|byte| signs.contains(byte));
    is_file || is_only(b"*$") || !before.ends_with(b"/") && is_only(b"*$/")
}
