//! `empty-user-agent`: a user-agent line without a name.

use crate::check::lint::*;

pub(crate) const LINT: Lint = Lint {
    code: "empty-user-agent",
    severity: Severity::Error,
    summary: "a user-agent line without a name",
    why: "A user-agent line without a value stands for no crawler, not for every crawler. If it is the only user-agent \
          line of its group, the rules of the group do not apply to any crawler.",
    bad: Example::new(b"User-agent:\nDisallow: /private/\n"),
    good: Example::new(b"User-agent: *\nDisallow: /private/\n"),
    pass: Pass::Field(run),
    fix: Some(LintFix::new(fix)),
};

fn run(_: &CheckedFile<'_>, field: &Field<'_>, sink: &mut Sink) {
    if field.directive == Directive::UserAgent && field.value.is_empty() {
        sink.report(field.range(), "the user-agent line has no name, so it does not apply to any crawler")
            .help("if the group is for every crawler, write \"User-agent: *\"");
    }
}

fn fix(file: &CheckedFile<'_>, finding: &Finding) -> Option<Vec<Edit>> {
    let field = file.field_of(finding)?;
    let groups = file.groups();
    if groups.is_named[groups.at(finding.line)?] {
        return Some(vec![file.without_field(file.line_of(finding))?]);
    }
    Some(vec![Edit::insert(field.value_range.start, " *")])
}
