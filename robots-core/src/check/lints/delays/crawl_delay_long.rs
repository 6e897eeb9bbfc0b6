//! `crawl-delay-long`: a delay so long that some crawlers skip the site.

use std::time::Duration;

use crate::check::lint::*;
use crate::rules::CrawlDelay;

pub(crate) const LINT: Lint = Lint {
    code: "crawl-delay-long",
    severity: Severity::Warning,
    summary: "a Crawl-delay of more than 30 seconds",
    why: "Bing obeys delays of up to 30 seconds, and other crawlers up to 10 or 20 seconds. Crawlers that are built \
          with Nutch skip hosts with a delay of more than 30 seconds. robotsd and tower-robots treat longer delays as \
          30 seconds. If the delay is an hour, crawlers can fetch only two dozen pages per day.",
    bad: Example::new(b"User-agent: bingbot\nCrawl-delay: 60\nDisallow: /private/\n"),
    good: Example::new(b"User-agent: bingbot\nCrawl-delay: 30\nDisallow: /private/\n"),
    pass: Pass::Named("crawl-delay", run),
    fix: Some(LintFix::new(|file, finding| file.with_value(finding, enforced))),
};

/// Maximum delay that a fix reduces. A longer delay is probably meant to block crawlers, so its
/// finding has a different help line and no fix.
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
        format_args!(
            "some crawlers skip a site with a delay of {seconds} seconds; robotsd and tower-robots shorten it to 30 \
             seconds"
        ),
    )
    .help(help);
}

fn enforced(value: &[u8]) -> Option<String> {
    let delay = crawl_delay(value).filter(|delay| *delay <= HOUR);
    delay.map(|_| CrawlDelay::MAX_ENFORCED.as_secs().to_string())
}
