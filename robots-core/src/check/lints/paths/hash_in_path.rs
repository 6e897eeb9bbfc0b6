//! `hash-in-path`: a `#` that was meant as part of a path.

use crate::check::lint::*;

pub(crate) const LINT: Lint = Lint {
    code: "hash-in-path",
    severity: Severity::Warning,
    summary: "a \"#\" right after a path",
    why: "\"#\" begins a comment at any position of a line (RFC 9309, section 2.2), so \"/page#part\" is the pattern \
          \"/page\". Rules cannot match a fragment anyway, because requests never contain fragments.",
    bad: Example::new(b"User-agent: *\nDisallow: /page#part\n"),
    good: Example::new(b"User-agent: *\nDisallow: /page # and its parts\n"),
    pass: Pass::Field(run),
    fix: Some(LintFix::new(|_, finding| Some(vec![Edit::insert(finding.span.start, " ")]))),
};

fn run(file: &CheckedFile<'_>, field: &Field<'_>, sink: &mut Sink) {
    let end = field.value_range.end;
    if !is_rule(field) || field.value.is_empty() || file.bytes().get(end) != Some(&b'#') {
        return;
    }
    sink.report(
        end..end + 1,
        format_args!("the \"#\" begins a comment, so the pattern is only {pattern}", pattern = Quoted(field.value)),
    )
    .help("put a space before a comment, and write \"%23\" for a \"#\" in a path");
}
