//! `host-repeated`: a second Host line, which crawlers ignore.

use crate::check::lint::*;
use crate::rules::Host;

pub(crate) const LINT: Lint = Lint {
    code: "host-repeated",
    severity: Severity::Warning,
    summary: "more than one Host line",
    why: "A site has one main mirror, so a file should have one Host line. If there are several, only the first one counts.",
    bad: Example::new(b"User-agent: *\nDisallow: /private/\nHost: example.com\nHost: www.example.com\n"),
    good: Example::new(b"User-agent: *\nDisallow: /private/\nHost: example.com\n"),
    pass: Pass::File(run),
    fix: Some(LintFix::DROP_FIELD),
};

fn run(file: &CheckedFile<'_>, sink: &mut Sink) {
    // Lines with an invalid value are skipped, because `host-value` reports them.
    let is_valid = |field: &Field<'_>| field.directive == Directive::Host && Host::parse(field.value).is_some();
    let mut hosts = file.fields().filter(|(_, field)| is_valid(field));
    let Some((first, _)) = hosts.next() else { return };
    for (_, field) in hosts {
        sink.report(field.range(), format_args!("line {first} already names the host, and only that line counts"))
            .related_to(first)
            .help("keep only one Host line");
    }
}
