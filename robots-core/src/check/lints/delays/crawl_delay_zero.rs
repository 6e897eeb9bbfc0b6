//! `crawl-delay-zero`: a delay of 0, which has no effect.

use crate::check::lint::*;

pub(crate) const LINT: Lint = Lint {
    code: "crawl-delay-zero",
    severity: Severity::Note,
    summary: "a Crawl-delay of 0, which has no effect",
    why: "A delay of 0 seconds has no effect: crawlers behave as if the line were missing. In particular, this line \
        does not cancel a delay on another line of the group.",
    bad: Example::new(b"User-agent: bingbot\nCrawl-delay: 0\nDisallow: /private/\n"),
    good: Example::new(b"User-agent: bingbot\nDisallow: /private/\n"),
    pass: Pass::Named("crawl-delay", run),
    fix: Some(LintFix::DROP_FIELD),
};

fn run(_: &CheckedFile<'_>, field: &Field<'_>, sink: &mut Sink) {
    if crawl_delay(field.value).is_some_and(|delay| delay.is_zero()) {
        sink.report(field.range(), "a Crawl-delay of 0 seconds has no effect").help("remove the line");
    }
}
