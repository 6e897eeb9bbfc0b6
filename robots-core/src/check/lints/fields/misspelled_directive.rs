//! `misspelled-directive`: a directive that only lenient crawlers understand.

use crate::check::lint::*;

pub(crate) const LINT: Lint = Lint {
    code: "misspelled-directive",
    severity: Severity::Warning,
    summary: "a directive that only lenient crawlers understand",
    why: "The reference parser accepts common misspellings (dissallow, useragent, site-map) and any longer word that \
          begins with a directive (Disallowed). Other crawlers ignore the line, so the file means different things to \
          different crawlers. Some longer words have a meaning of their own, such as DisallowAITraining in a draft \
          about uses of content. But search engines, and servers that enforce the file, treat a DisallowAITraining \
          line as a Disallow line.",
    bad: Example::new(b"Useragent: *\nDissallow: /private/\n"),
    good: Example::new(b"User-agent: *\nDisallow: /private/\n"),
    pass: Pass::Field(run),
    fix: Some(LintFix::new(fix)),
};

fn run(_: &CheckedFile<'_>, field: &Field<'_>, sink: &mut Sink) {
    let Some(spelling) = field.directive.spelling() else { return };
    if field.name.eq_ignore_ascii_case(spelling.as_bytes()) || directive_without_colon(field).is_some() {
        return;
    }
    if has_other_meaning(field, spelling) {
        sink.report_at(
            Severity::Error,
            field.name_range.clone(),
            format_args!(
                "lenient crawlers (including Google) and servers that enforce the file read {name} as the rule \
                 \"{spelling}\"; other crawlers ignore the line",
                name = Quoted(field.name)
            ),
        )
        .help(format_args!(
            "write \"{spelling}\" if the rule is for every use; if it is for AI only, name AI crawlers in a group, \
             or write \"Content-Usage\""
        ));
        return;
    }
    sink.report(
        field.name_range.clone(),
        format_args!(
            "lenient crawlers read {name} as \"{spelling}\"; other crawlers ignore the line",
            name = Quoted(field.name)
        ),
    )
    .help(format_args!("write \"{spelling}\""));
}

/// Reports whether a name begins with `Allow` or `Disallow` but probably has another meaning, such
/// as `DisallowAITraining`. A short ending, as in `Disallowed`, does not change the meaning.
fn has_other_meaning(field: &Field<'_>, spelling: &str) -> bool {
    const ENDING: usize = 3;
    matches!(field.directive, Directive::Allow | Directive::Disallow) && field.name.len() > spelling.len() + ENDING
}

fn fix(file: &CheckedFile<'_>, finding: &Finding) -> Option<Vec<Edit>> {
    let field = file.field_of(finding)?;
    let spelling = field.directive.spelling().filter(|spelling| !has_other_meaning(&field, spelling))?;
    Some(vec![Edit::new(field.name_range, spelling)])
}
