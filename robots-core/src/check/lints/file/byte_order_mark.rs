//! `byte-order-mark`: invisible octets before the first line.

use crate::check::lint::*;

pub(crate) const LINT: Lint = Lint {
    code: "byte-order-mark",
    severity: Severity::Note,
    summary: "a byte order mark at the start of the file",
    why: "Crawlers that follow the reference parser skip a UTF-8 byte order mark, so a whole one is only noted; others \
          take it for part of the first word, and then the first line, often the only user-agent line, is lost to them. \
          A mark cut off in the middle is skipped too, but says that something went wrong with the file.",
    bad: Example::new(b"\xEF\xBB\xBFUser-agent: *\nDisallow: /private/\n"),
    good: Example::new(b"User-agent: *\nDisallow: /private/\n"),
    pass: Pass::File(run),
    fix: Some(LintFix::new(fix)),
};

const MARK: usize = 3;

fn run(file: &CheckedFile<'_>, sink: &mut Sink) {
    let skipped = file.robots.lines().next().map_or(0, |line| line.range.start);
    match skipped {
        0 => {}
        MARK => sink
            .report(
                0..MARK,
                "the file begins with a byte order mark: crawlers that do not skip it misread the first line",
            )
            .help("save the file as UTF-8 without a byte order mark"),
        part => sink
            .report_at(Severity::Warning, 0..part, "the file begins with part of a byte order mark")
            .help(format_args!("remove the first {part} octets of the file")),
    }
}

fn fix(file: &CheckedFile<'_>, _: &Finding) -> Option<Vec<Edit>> {
    let mut end = file.lines().first().map_or(0, |line| line.range.start);
    // Some editors add another one.
    while file.bytes()[end..].starts_with(b"\xEF\xBB\xBF") {
        end += MARK;
    }
    Some(vec![Edit::remove(0..end)])
}
