//! `rule-before-group`: a rule that does not belong to any group.

use crate::check::lint::*;

pub(crate) const LINT: Lint = Lint {
    code: "rule-before-group",
    severity: Severity::Error,
    summary: "a rule before the first user-agent line",
    why: "A group begins with a user-agent line (RFC 9309, section 2.2.1). Crawlers ignore a rule before the first \
          user-agent line, because it does not belong to any group.",
    bad: Example::new(b"Disallow: /private/\nUser-agent: *\nDisallow: /drafts/\n"),
    good: Example::new(b"User-agent: *\nDisallow: /private/\nDisallow: /drafts/\n"),
    pass: Pass::Field(run),
    fix: Some(LintFix::new(fix).shared_by(|_, _| Some(0))),
};

fn run(file: &CheckedFile<'_>, field: &Field<'_>, sink: &mut Sink) {
    if !matches!(field.directive, Directive::Allow | Directive::Disallow) {
        return;
    }
    let grouped = file.first_name.is_some_and(|name| name.range().start < field.name_range.start);
    if !grouped {
        sink.report(
            field.range(),
            format_args!(
                "{directive} is above the first user-agent line: crawlers ignore it",
                directive = Quoted(field.name)
            ),
        )
        .help("if the rule is for every crawler, put \"User-agent: *\" above it");
    }
}

fn fix(file: &CheckedFile<'_>, _: &Finding) -> Option<Vec<Edit>> {
    let is_rule = |line: &usize| matches!(file.directive(*line), Some(Directive::Allow | Directive::Disallow));
    // One new line before the first rule corrects all findings.
    let first = (0..file.lines().len()).find(is_rule)?;
    Some(vec![file.line_before(first, b"User-agent: *")?])
}
