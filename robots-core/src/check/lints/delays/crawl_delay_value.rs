//! `crawl-delay-value`: a delay that is not a number.

use crate::check::lint::*;

pub(crate) const LINT: Lint = Lint {
    code: "crawl-delay-value",
    severity: Severity::Warning,
    summary: "a Crawl-delay that is not a number of seconds",
    why: "Crawlers that obey Crawl-delay expect a number of seconds, which may have a decimal point, and ignore any \
          other value.",
    bad: Example::new(b"User-agent: bingbot\nCrawl-delay: 10s\nDisallow: /private/\n"),
    good: Example::new(b"User-agent: bingbot\nCrawl-delay: 10\nDisallow: /private/\n"),
    pass: Pass::Named("crawl-delay", run),
    fix: Some(LintFix::new(fix)),
};

fn run(_: &CheckedFile<'_>, field: &Field<'_>, sink: &mut Sink) {
    if crawl_delay(field.value).is_none() {
        sink.report(
            field.value_or_name(),
            format_args!("the Crawl-delay {value} is not a number of seconds", value = Quoted(field.value)),
        )
        .help("write a number, such as \"10\"");
    }
}

/// Removes the unit after a number of seconds: `10s`, `10 seconds`.
fn fix(file: &CheckedFile<'_>, finding: &Finding) -> Option<Vec<Edit>> {
    let field = file.field_of(finding)?;
    let value = field.value;
    let end = value.iter().position(|byte| !byte.is_ascii_digit() && *byte != b'.')?;
    let unit = value[end..].trim_ascii().to_ascii_lowercase();
    let is_seconds = [&b"s"[..], b"s.", b"sec", b"sec.", b"secs", b"second", b"seconds"].contains(&unit.as_slice());
    let start = field.value_range.start;
    (is_seconds && crawl_delay(&value[..end]).is_some()).then(|| vec![Edit::remove(start + end..field.value_range.end)])
}
