//! `group-without-rules`: user-agent lines at the end of the file without rules after them.

use crate::check::lint::*;

pub(crate) const LINT: Lint = Lint {
    code: "group-without-rules",
    severity: Severity::Warning,
    summary: "user-agent lines without rules after them",
    why: "A group without rules restricts nothing, and the crawlers that it names do not obey the group for \"*\", \
          either. Only the last group of a file can be without rules, because consecutive user-agent lines share the \
          rules after them. A group with a Crawl-delay or another extension is not reported. If the file contains no \
          rule at all, it was probably truncated, and the finding is an error. There is no automatic fix, because the \
          file does not show whether a rule is missing or everything is meant to be allowed.",
    bad: Example::new(b"User-agent: *\nDisallow: /private/\n\nUser-agent: ExampleBot\n"),
    good: Example::new(b"User-agent: *\nDisallow: /private/\n\nUser-agent: ExampleBot\nDisallow:\n"),
    pass: Pass::File(run),
    fix: None,
};

fn run(file: &CheckedFile<'_>, sink: &mut Sink) {
    let Some(group) = file.robots.groups().last().filter(|group| group.rules().len() == 0) else { return };
    // User-agent lines without a name are skipped, because `empty-user-agent` reports them.
    let Some(name) = group.names().find(|name| !name.value().is_empty()) else { return };
    let is_extension = |(line, field): (usize, Field<'_>)| {
        line > name.line() && is_known(&field) && !matches!(field.directive, Directive::UserAgent | Directive::Sitemap)
    };
    if file.fields().any(is_extension) {
        return;
    }
    let named = Quoted(name.value());
    let is_end = file.fields().last().is_some_and(|(_, field)| field.directive == Directive::UserAgent);
    let draft = if is_end && file.robots.groups().len() == 1 {
        sink.report_at(
            Severity::Error,
            name.range(),
            format_args!("the file ends after the user-agent line of {named}, so it contains no rules"),
        )
    } else {
        sink.report(
            name.range(),
            format_args!("no rule follows the user-agent line of {named}: this crawler may fetch everything"),
        )
    };
    draft.help("add a rule, or \"Disallow:\" to show that everything is allowed");
}
