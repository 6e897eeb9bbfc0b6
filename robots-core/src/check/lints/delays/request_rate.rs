//! `request-rate`: a well-known field that few crawlers read.

use crate::check::lint::*;
use crate::rules::RequestRate;

pub(crate) const LINT: Lint = Lint {
    code: "request-rate",
    severity: Severity::Note,
    summary: "a Request-rate line, which few crawlers read",
    why: "Request-rate, from a draft of 1996, limits the number of pages that a crawler may fetch in a period, and \
          optionally the time of day: \"1/10m 1300-1659\". No large search engine obeys this line, and robotsd and \
          tower-robots do not enforce it. More crawlers obey Crawl-delay.",
    bad: Example::new(b"User-agent: bingbot\nRequest-rate: 1/10\nDisallow: /private/\n"),
    good: Example::new(b"User-agent: bingbot\nCrawl-delay: 10\nDisallow: /private/\n"),
    pass: Pass::Named("request-rate", run),
    fix: Some(LintFix::new(fix)),
};

fn run(_: &CheckedFile<'_>, field: &Field<'_>, sink: &mut Sink) {
    let (severity, message) = match RequestRate::parse(field.value) {
        Some(_) => (LINT.severity, "few crawlers read Request-rate, and no large search engine does".to_owned()),
        None => (
            Severity::Warning,
            format!(
                "{value} is not a valid Request-rate: it needs a number of pages, a slash and a time",
                value = Quoted(field.value)
            ),
        ),
    };
    sink.report_at(severity, field.range(), message).help("write \"Crawl-delay\" with a number of seconds");
}

fn fix(file: &CheckedFile<'_>, finding: &Finding) -> Option<Vec<Edit>> {
    let field = file.field_of(finding)?;
    let rate = RequestRate::parse(field.value).filter(|rate| rate.window.is_none())?;
    let seconds = rate.period.as_secs().div_ceil(u64::from(rate.pages));
    Some(vec![Edit::new(field.range(), format!("Crawl-delay: {seconds}"))])
}
