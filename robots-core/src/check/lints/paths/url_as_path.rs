//! `url-as-path`: a whole URL where a path belongs.

use crate::check::lint::*;

pub(crate) const LINT: Lint = Lint {
    code: "url-as-path",
    severity: Severity::Error,
    summary: "a whole URL as a path pattern",
    why: "A rule holds a path, because a robots.txt speaks of its own host only (RFC 9309, sections 2.2.2 and 2.3). A \
          pattern that begins with \"https://\" matches no path.",
    bad: Example::new(b"User-agent: *\nDisallow: https://example.com/private/\n"),
    good: Example::new(b"User-agent: *\nDisallow: /private/\n"),
    pass: Pass::Field(run),
    fix: Some(LintFix::new(|file, finding| {
        file.with_value(finding, |url| Some(RequestPath::verbatim(url).as_bytes().to_vec()))
    })),
};

fn run(_: &CheckedFile<'_>, field: &Field<'_>, sink: &mut Sink) {
    if is_rule(field) && is_url(field.value) {
        let url = field.value;
        sink.report(
            field.value_range.clone(),
            format_args!("{} is a URL, not a path: it matches nothing", Quoted(url)),
        )
        .help(format_args!("write the path alone: {}", Quoted(RequestPath::verbatim(url).as_bytes())));
    }
}
