//! `host-repeated`: more than one main mirror.

use crate::check::lint::*;

pub(crate) const LINT: Lint = Lint {
    code: "host-repeated",
    severity: Severity::Warning,
    summary: "more than one Host line",
    why: "A site has one main mirror, so a file has one Host line. Of several only the first counts.",
    bad: Example::new(b"User-agent: *\nDisallow: /private/\nHost: example.com\nHost: www.example.com\n"),
    good: Example::new(b"User-agent: *\nDisallow: /private/\nHost: example.com\n"),
    pass: Pass::File(run),
    fix: Some(LintFix::DROP_FIELD),
};

fn run(file: &CheckedFile<'_>, sink: &mut Sink) {
    let mut first = None;
    for line in file.robots.lines() {
        let LineKind::Field(field) = line.kind() else { continue };
        if field.directive != Directive::Host {
            continue;
        }
        match first {
            None => first = Some(line.number),
            Some(first) => {
                sink.report(field.range(), format_args!("line {first} names the host already: only that one counts"))
                    .help(format_args!("keep one of them"));
            }
        }
    }
}
