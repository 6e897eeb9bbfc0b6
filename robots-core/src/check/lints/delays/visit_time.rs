//! `visit-time`: a well-known field that few crawlers read.

use crate::check::lint::*;
use crate::rules::TimeWindow;

pub(crate) const LINT: Lint = Lint {
    code: "visit-time",
    severity: Severity::Note,
    summary: "a Visit-time line, which few crawlers read",
    why: "Visit-time, from a draft of 1996, limits the time of day (GMT) for a crawler's requests: \"0600-0845\". No \
          large search engine obeys this line, and robotsd and tower-robots do not enforce it.",
    bad: Example::new(b"User-agent: bingbot\nVisit-time: 0600-0845\nDisallow: /private/\n"),
    good: Example::new(b"User-agent: bingbot\nDisallow: /private/\n"),
    pass: Pass::Named("visit-time", run),
    fix: None,
};

fn run(_: &CheckedFile<'_>, field: &Field<'_>, sink: &mut Sink) {
    let value = Quoted(field.value);
    let (severity, message) = match TimeWindow::parse(field.value) {
        Some(_) => (LINT.severity, "few crawlers read Visit-time, and no large search engine does".to_owned()),
        None => (
            Severity::Warning,
            format!("{value} is not a valid Visit-time, which is two times of the day such as \"0600-0845\""),
        ),
    };
    let help = "to spread a crawler's requests over the day, give its group a Crawl-delay";
    sink.report_at(severity, field.range(), message).help(help);
}
