//! `invisible-character`: an invisible character in a path.

use crate::check::lint::*;
use crate::check::path_text::{has_one_path, visible_path};

pub(crate) const LINT: Lint = Lint {
    code: "invisible-character",
    severity: Severity::Warning,
    summary: "an invisible character in a path",
    why: "Text that is copied from a web page or a word processor may contain zero-width spaces, soft hyphens, \
          direction marks, or no-break spaces at its ends. Crawlers treat these characters as part of the path, so \
          the path looks correct but matches nothing. Joiners between letters are not reported in scripts that need \
          them.",
    bad: Example::new("User-agent: *\nDisallow: /private/\u{200b}\n".as_bytes()),
    good: Example::new(b"User-agent: *\nDisallow: /private/\n"),
    pass: Pass::Field(run),
    fix: Some(LintFix::new(|file, finding| file.with_value(finding, visible_path))),
};

fn run(_: &CheckedFile<'_>, field: &Field<'_>, sink: &mut Sink) {
    let Some(seen) = visible_path(field.value).filter(|_| has_one_path(field)) else { return };
    // An invisible character before the slash is an error, because the pattern then matches
    // nothing.
    let severity = if matches!(field.value, [b'/' | b'*', ..]) { LINT.severity } else { Severity::Error };
    let draft = sink.report_at(
        severity,
        field.value_range.clone(),
        format_args!("{pattern} contains invisible characters, so it matches no path", pattern = Quoted(field.value)),
    );
    match seen.as_str() {
        "" => draft.help("remove the line: its value consists of invisible characters only"),
        seen => draft.help(format_args!("write {}", Quoted(seen.as_bytes()))),
    }
}
