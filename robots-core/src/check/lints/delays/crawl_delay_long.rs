//! `crawl-delay-long`: a delay at which crawlers leave.

use std::time::Duration;

use crate::check::directives::is_named;
use crate::check::lint::*;
use crate::rules::{CrawlDelay, Field, crawl_delay};

pub(crate) const LINT: Lint = Lint {
    code: "crawl-delay-long",
    severity: Severity::Warning,
    summary: "a Crawl-delay of more than 30 seconds",
    why: "Bing reads a Crawl-delay up to 30 seconds, others up to 10 or 20, and crawlers built with Nutch skip a host that \
          asks for more than 30. A limit that is enforced by the file counts 30 seconds then. At an hour a crawler sees no \
          more than two dozen pages a day.",
    bad: Example::new(b"User-agent: bingbot\nCrawl-delay: 60\nDisallow: /private/\n"),
    good: Example::new(b"User-agent: bingbot\nCrawl-delay: 30\nDisallow: /private/\n"),
    pass: Pass::Field(run),
    fix: Some(LintFix::new(fix)),
};

fn run(_: &CheckedFile<'_>, field: &Field<'_>, sink: &mut Sink) {
    if !is_named(field, "crawl-delay")
        || crawl_delay(field.value).is_none_or(|delay| delay <= CrawlDelay::LONGEST_ENFORCED)
    {
        return;
    }
    let is_hours = crawl_delay(field.value).is_some_and(|delay| delay > Duration::from_secs(3600));
    let help = if is_hours {
        "disallow what should not be fetched"
    } else {
        "write at most 30, or disallow what should not be fetched"
    };
    sink.report(
        field.value_range.clone(),
        format_args!(
            "at {} seconds a request some crawlers leave, and no more than 30 are enforced",
            Quoted(field.value)
        ),
    )
    .help(format_args!("{help}"));
}

fn fix(file: &FixableFile<'_>, finding: &Finding) -> Option<Vec<Edit>> {
    // A longer one means that the site is closed.
    let delay = crawl_delay(file.text_of(finding)).filter(|delay| *delay <= Duration::from_secs(3600));
    delay.map(|_| vec![Edit::new(finding.span.clone(), CrawlDelay::LONGEST_ENFORCED.as_secs().to_string())])
}
