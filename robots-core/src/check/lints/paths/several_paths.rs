//! `several-paths`: paths joined by commas in one rule.

use crate::check::lint::*;
use crate::check::path_text::{joined_paths, several_paths};

pub(crate) const LINT: Lint = Lint {
    code: "several-paths",
    severity: Severity::Warning,
    summary: "several paths in one rule, joined by commas",
    why: "A rule has one path (RFC 9309, section 2.2). \"/cart,/login\" is a single pattern with a comma, and \
          matches neither \"/cart\" nor \"/login\". Semicolons and bars do not separate paths, either.",
    bad: Example::new(b"User-agent: *\nDisallow: /cart,/checkout\n"),
    good: Example::new(b"User-agent: *\nDisallow: /cart\nDisallow: /checkout\nDisallow: /a,b.html\n"),
    pass: Pass::Field(run),
    fix: Some(LintFix::new(fix)),
};

fn run(_: &CheckedFile<'_>, field: &Field<'_>, sink: &mut Sink) {
    let pattern = field.value;
    if !is_rule(field) {
        return;
    }
    let Some(paths) = joined_paths(pattern) else { return };
    // If the value begins with a quote, for example, the pattern matches no path, so the finding is
    // an error.
    let severity = if matches!(pattern, [b'/' | b'*', ..]) { LINT.severity } else { Severity::Error };
    sink.report_at(
        severity,
        field.value_range.clone(),
        format_args!(
            "crawlers read {pattern} as one path, so this rule applies to none of {paths}",
            pattern = Quoted(pattern),
            paths = quoted_list(paths.into_iter())
        ),
    )
    .help("write one path per line");
}

/// Splits a rule with several paths into one line per path. `None` if one of the paths is for the
/// whole site, because such a path may be a mistake.
pub(super) fn fix(file: &CheckedFile<'_>, finding: &Finding) -> Option<Vec<Edit>> {
    let field = file.field_of(finding)?;
    let paths = several_paths(field.value)?;
    let between = [file.line_end(), field.name, b": ".as_slice()].concat();
    let is_whole_site = |path: &&[u8]| matches!(*path, b"/" | b"/*" | b"*/");
    (!paths.iter().any(is_whole_site)).then(|| vec![Edit::new(field.value_range, paths.join(&between[..]))])
}
