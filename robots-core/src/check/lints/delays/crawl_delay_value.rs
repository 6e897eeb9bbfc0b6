//! `crawl-delay-value`: a delay that is no number.

use crate::check::directives::is_named;
use crate::check::lint::*;
use crate::rules::{Field, crawl_delay};

pub(crate) const LINT: Lint = Lint {
    code: "crawl-delay-value",
    severity: Severity::Warning,
    summary: "a Crawl-delay that is not a number of seconds",
    why: "The crawlers that read Crawl-delay want a number of seconds, perhaps with a decimal point, and ignore \
          anything else.",
    bad: Example::new(b"User-agent: bingbot\nCrawl-delay: 10s\nDisallow: /private/\n"),
    good: Example::new(b"User-agent: bingbot\nCrawl-delay: 10\nDisallow: /private/\n"),
    pass: Pass::Field(run),
    fix: Some(LintFix::new(fix)),
};

fn run(_: &CheckedFile<'_>, field: &Field<'_>, sink: &mut Sink) {
    if !is_named(field, "crawl-delay") {
        return;
    }
    let value = field.value;
    let span = if value.is_empty() { field.name_range.clone() } else { field.value_range.clone() };
    if crawl_delay(value).is_none() {
        sink.report(span, format_args!("{} is not a number of seconds", Quoted(value)))
            .help(format_args!("write a number, such as \"10\""));
    }
}

/// A number of seconds with its unit: `10s`, `10 seconds`.
fn fix(file: &FixableFile<'_>, finding: &Finding) -> Option<Vec<Edit>> {
    let field = file.field_of(finding)?;
    let value = field.value;
    let end = value.iter().position(|octet| !octet.is_ascii_digit() && *octet != b'.')?;
    let unit = value[end..].trim_ascii().to_ascii_lowercase();
    let is_seconds = [&b"s"[..], b"s.", b"sec", b"sec.", b"secs", b"second", b"seconds"].contains(&unit.as_slice());
    let start = field.value_range.start;
    (is_seconds && crawl_delay(&value[..end]).is_some()).then(|| vec![Edit::remove(start + end..field.value_range.end)])
}
