//! `misspelled-directive`: a name that only lenient crawlers understand.

use crate::check::lint::*;

pub(crate) const LINT: Lint = Lint {
    code: "misspelled-directive",
    severity: Severity::Warning,
    summary: "a directive that only lenient crawlers understand",
    why: "The reference parser accepts common misspellings (dissallow, useragent, site-map) and any longer word that \
          begins with a directive (Disallowed). Other crawlers ignore the line, so the file means different things to \
          different crawlers.",
    bad: Example::new(b"Useragent: *\nDissallow: /private/\n"),
    good: Example::new(b"User-agent: *\nDisallow: /private/\n"),
    pass: Pass::Field(run),
    fix: Some(LintFix::new(fix)),
};

fn run(_: &CheckedFile<'_>, field: &Field<'_>, sink: &mut Sink) {
    let Some(spelling) = field.directive.spelling() else { return };
    if field.name.eq_ignore_ascii_case(spelling.as_bytes()) || lost_colon(field).is_some() {
        return;
    }
    sink.report(
        field.name_range.clone(),
        format_args!("{} is read as \"{spelling}\" by lenient crawlers and ignored by others", Quoted(field.name)),
    )
    .help(format_args!("write \"{spelling}\""));
}

fn fix(file: &CheckedFile<'_>, finding: &Finding) -> Option<Vec<Edit>> {
    let field = file.field_of(finding)?;
    let spelling = field.directive.spelling()?;
    Some(vec![Edit::new(field.name_range, spelling)])
}
