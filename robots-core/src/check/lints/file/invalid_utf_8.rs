//! `invalid-utf-8`: octets that are no text.

use crate::check::lint::*;

pub(crate) const LINT: Lint = Lint {
    code: "invalid-utf-8",
    severity: Severity::Warning,
    summary: "octets that are not UTF-8",
    why: "A robots.txt is UTF-8 (RFC 9309, section 2.2), and the paths a browser or crawler requests are UTF-8 with \
          \"%\" escapes. A path saved in another encoding, such as Latin-1, is compared octet by octet and matches \
          nothing. In a comment it does no harm and is only noted.",
    bad: Example::new(b"User-agent: *\nDisallow: /caf\xe9/\n"),
    good: Example::new(b"User-agent: *\nDisallow: /caf%C3%A9/\n"),
    pass: Pass::Line(run),
    fix: None,
};

fn run(line: &Line<'_>, _: &LineKind<'_>, sink: &mut Sink) {
    let Err(error) = std::str::from_utf8(line.bytes()) else { return };
    let start = line.range.start + error.valid_up_to();
    let length = error.error_len().unwrap_or(line.bytes().len() - error.valid_up_to());
    let severity = if start < line.content().end { LINT.severity } else { Severity::Note };
    sink.report_at(severity, start..start + length, "the line is not UTF-8 from here on")
        .help("save the file as UTF-8, and write letters outside ASCII as \"%\" escapes in paths");
}
