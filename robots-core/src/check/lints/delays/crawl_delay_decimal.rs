//! `crawl-delay-decimal`: a delay with a decimal point, which some crawlers cannot read.

use crate::check::lint::*;

pub(crate) const LINT: Lint = Lint {
    code: "crawl-delay-decimal",
    severity: Severity::Note,
    summary: "a Crawl-delay with a decimal point",
    why: "Some parsers, such as that of Python's standard library, accept only digits, so crawlers that use them \
          ignore a delay with a decimal point.",
    bad: Example::new(b"User-agent: bingbot\nCrawl-delay: 2.5\nDisallow: /private/\n"),
    good: Example::new(b"User-agent: bingbot\nCrawl-delay: 3\nDisallow: /private/\n"),
    pass: Pass::Named("crawl-delay", run),
    fix: Some(LintFix::new(|file, finding| file.with_value(finding, whole_seconds))),
};

fn run(_: &CheckedFile<'_>, field: &Field<'_>, sink: &mut Sink) {
    let value = field.value;
    if memchr::memchr(b'.', value).is_some() && crawl_delay(value).is_some() {
        sink.report(
            field.value_range.clone(),
            format_args!("some crawlers ignore {delay} because of its decimal point", delay = Quoted(value)),
        )
        .help("write whole seconds");
    }
}

fn whole_seconds(value: &[u8]) -> Option<String> {
    let delay = crawl_delay(value)?;
    Some((delay.as_secs() + u64::from(delay.subsec_nanos() > 0)).to_string())
}
