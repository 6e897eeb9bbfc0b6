//! `crawl-delay-decimal`: a delay with a fraction, which not every crawler reads.

use crate::check::directives::is_named;
use crate::check::lint::*;
use crate::rules::{Field, crawl_delay};

pub(crate) const LINT: Lint = Lint {
    code: "crawl-delay-decimal",
    severity: Severity::Note,
    summary: "a Crawl-delay with a decimal point",
    why: "Some parsers read digits only, that of Python's standard library among them: to their crawlers a delay with a \
          decimal point is none at all.",
    bad: Example::new(b"User-agent: bingbot\nCrawl-delay: 2.5\nDisallow: /private/\n"),
    good: Example::new(b"User-agent: bingbot\nCrawl-delay: 3\nDisallow: /private/\n"),
    pass: Pass::Field(run),
    fix: Some(LintFix::new(fix)),
};

fn run(_: &CheckedFile<'_>, field: &Field<'_>, sink: &mut Sink) {
    let value = field.value;
    let is_decimal = memchr::memchr(b'.', value).is_some() && crawl_delay(value).is_some();
    if is_named(field, "crawl-delay") && is_decimal {
        sink.report(
            field.value_range.clone(),
            format_args!("some crawlers do not read {}, because of its point", Quoted(value)),
        )
        .help(format_args!("write whole seconds"));
    }
}

fn fix(file: &FixableFile<'_>, finding: &Finding) -> Option<Vec<Edit>> {
    let delay = crawl_delay(file.text_of(finding))?;
    let seconds = delay.as_secs() + u64::from(delay.subsec_nanos() > 0);
    Some(vec![Edit::new(finding.span.clone(), seconds.to_string())])
}
