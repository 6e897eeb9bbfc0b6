//! `crawl-delay-long`: a delay so long that some crawlers skip the site.

use std::time::Duration;

use crate::check::lint::*;
use crate::rules::CrawlDelay;

pub(crate) const LINT: Lint = Lint {
    code: "crawl-delay-long",
    severity: Severity::Warning,
    summary: "a Crawl-delay of more than 30 seconds",
    why: "Bing reads a Crawl-delay up to 30 seconds, others up to 10 or 20, and crawlers built with Nutch skip hosts \
          that ask for more than 30. Rate limits that enforce the file therefore use at most 30 seconds. With a delay \
          of an hour a crawler can read only two dozen pages per day.",
    bad: Example::new(b"User-agent: bingbot\nCrawl-delay: 60\nDisallow: /private/\n"),
    good: Example::new(b"User-agent: bingbot\nCrawl-delay: 30\nDisallow: /private/\n"),
    pass: Pass::Named("crawl-delay", run),
    fix: Some(LintFix::new(|file, finding| file.with_value(finding, enforced))),
};

/// Maximum delay that is still a delay; a longer one is meant to close the site.
const HOUR: Duration = Duration::from_secs(3600);

fn run(_: &CheckedFile<'_>, field: &Field<'_>, sink: &mut Sink) {
    let Some(delay) = crawl_delay(field.value).filter(|delay| *delay > CrawlDelay::MAX_ENFORCED) else { return };
    let help = if delay > HOUR {
        "disallow the paths that should not be fetched"
    } else {
        "write at most 30, or disallow the paths that should not be fetched"
    };
    let seconds = Quoted(field.value);
    sink.report(
        field.value_range.clone(),
        format_args!("with {seconds} seconds per request some crawlers skip the site, and at most 30 are enforced"),
    )
    .help(help);
}

fn enforced(value: &[u8]) -> Option<String> {
    let delay = crawl_delay(value).filter(|delay| *delay <= HOUR);
    delay.map(|_| CrawlDelay::MAX_ENFORCED.as_secs().to_string())
}
