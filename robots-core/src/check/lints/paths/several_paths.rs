//! `several-paths`: paths joined by commas in one rule.

use crate::check::lint::*;
use crate::check::path_text::joined_paths;

pub(crate) const LINT: Lint = Lint {
    code: "several-paths",
    severity: Severity::Warning,
    summary: "several paths in one rule, joined by commas",
    why: "A rule has one path (RFC 9309, section 2.2). \"/cart,/login\" is a pattern with a comma in it, which matches neither \
          \"/cart\" nor \"/login\"; semicolons and bars join no paths either.",
    bad: Example::new(b"User-agent: *\nDisallow: /cart,/checkout\n"),
    good: Example::new(b"User-agent: *\nDisallow: /cart\nDisallow: /checkout\nDisallow: /a,b.html\n"),
    pass: Pass::Field(run),
    fix: Some(LintFix::new(fix)),
};

fn run(_: &CheckedFile<'_>, field: &Field<'_>, sink: &mut Sink) {
    let pattern = field.value;
    if is_rule(field)
        && let Some(paths) = joined_paths(pattern)
    {
        sink.report(
            field.value_range.clone(),
            format_args!(
                "{} is one path to crawlers, and matches none of {}",
                Quoted(pattern),
                quoted_list(paths.into_iter())
            ),
        )
        .help("give each path a line of its own");
    }
}

fn fix(file: &CheckedFile<'_>, finding: &Finding) -> Option<Vec<Edit>> {
    let field = file.field_of(finding)?;
    let between = [file.line_end(), field.name, b": ".as_slice()].concat();
    Some(vec![Edit::new(field.value_range, joined_paths(field.value)?.join(&between[..]))])
}
