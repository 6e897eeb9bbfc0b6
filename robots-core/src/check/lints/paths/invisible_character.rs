//! `invisible-character`: a character in a path that nobody sees.

use crate::check::lint::*;
use crate::check::path_text::without_invisible;

pub(crate) const LINT: Lint = Lint {
    code: "invisible-character",
    severity: Severity::Warning,
    summary: "a character of no width in a path",
    why: "Text that is copied from a web page or a word processor may hold zero-width spaces, soft hyphens, marks of direction, and \
          no-break spaces around it. These characters count as part of the path, which then matches nothing, however right it looks. \
          Joiners between letters of scripts that need them are left alone.",
    bad: Example::new("User-agent: *\nDisallow: /private/\u{200b}\n".as_bytes()),
    good: Example::new(b"User-agent: *\nDisallow: /private/\n"),
    pass: Pass::Field(run),
    fix: Some(LintFix::new(|file, finding| file.with_value(finding, without_invisible))),
};

fn run(_: &CheckedFile<'_>, field: &Field<'_>, sink: &mut Sink) {
    if is_rule(field)
        && let Some(seen) = without_invisible(field.value)
    {
        sink.report(
            field.value_range.clone(),
            format_args!("{} holds characters that nobody sees, and that no path holds", Quoted(field.value)),
        )
        .help(format_args!("write {}", Quoted(seen.as_bytes())));
    }
}
