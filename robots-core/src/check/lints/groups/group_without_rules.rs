//! `group-without-rules`: names at the end of the file that nothing follows.

use crate::check::lint::*;

pub(crate) const LINT: Lint = Lint {
    code: "group-without-rules",
    severity: Severity::Warning,
    summary: "user-agent lines that nothing follows",
    why: "A group without rules restricts nothing, and a crawler it names no longer obeys the group for \"*\". Only the \
          last group of a file can be so: user-agent lines that other user-agent lines follow share the rules after \
          them. A group that sets a Crawl-delay or another extension is left alone.",
    bad: Example::new(b"User-agent: *\nDisallow: /private/\n\nUser-agent: ExampleBot\n"),
    good: Example::new(b"User-agent: *\nDisallow: /private/\n\nUser-agent: ExampleBot\nDisallow:\n"),
    pass: Pass::File(run),
    fix: Some(LintFix::new(fix)),
};

fn run(file: &CheckedFile<'_>, sink: &mut Sink) {
    let Some(group) = file.robots.groups().last().filter(|group| group.rules().len() == 0) else { return };
    // A line without a name is another lint's.
    let Some(name) = group.names().find(|name| !name.value().is_empty()) else { return };
    let is_extension = |(line, field): (usize, Field<'_>)| {
        line > name.line() && is_known(&field) && !matches!(field.directive, Directive::UserAgent | Directive::Sitemap)
    };
    if !file.fields().any(is_extension) {
        let named = Quoted(name.value());
        sink.report(
            name.range(),
            format_args!("no rule follows the user-agent line of {named}: everything is allowed to it"),
        )
        .help("add a rule, or \"Disallow:\" to show that everything is allowed");
    }
}

fn fix(file: &CheckedFile<'_>, _: &Finding) -> Option<Vec<Edit>> {
    let is_name = |line: &usize| file.directive(*line) == Some(Directive::UserAgent);
    let last = (0..file.lines().len()).rev().find(is_name)?;
    Some(vec![file.lines_after(last, [&b"Disallow:"[..]])])
}
