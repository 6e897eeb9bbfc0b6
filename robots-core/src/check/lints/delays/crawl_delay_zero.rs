//! `crawl-delay-zero`: a delay that says nothing.

use crate::check::directives::is_named;
use crate::check::lint::*;
use crate::rules::{Field, crawl_delay};

pub(crate) const LINT: Lint = Lint {
    code: "crawl-delay-zero",
    severity: Severity::Note,
    summary: "a Crawl-delay of 0, which says nothing",
    why: "A delay of 0 seconds is no delay: every crawler behaves as without the line. It does not lift a delay that \
          another line of the group asks for.",
    bad: Example::new(b"User-agent: bingbot\nCrawl-delay: 0\nDisallow: /private/\n"),
    good: Example::new(b"User-agent: bingbot\nDisallow: /private/\n"),
    pass: Pass::Field(run),
    fix: Some(LintFix::new(fix)),
};

fn run(_: &CheckedFile<'_>, field: &Field<'_>, sink: &mut Sink) {
    if is_named(field, "crawl-delay") && crawl_delay(field.value).is_some_and(|delay| delay.is_zero()) {
        sink.report(field.name_range.start..field.value_range.end, format_args!("a delay of 0 seconds is no delay"))
            .help(format_args!("drop the line"));
    }
}

fn fix(file: &FixableFile<'_>, finding: &Finding) -> Option<Vec<Edit>> {
    Some(vec![file.without_field(file.line_of(finding))?])
}
