//! `byte-order-mark`: a byte order mark before the first line, or on a line of its own.

use crate::check::lint::*;

pub(crate) const LINT: Lint = Lint {
    code: "byte-order-mark",
    severity: Severity::Note,
    summary: "a byte order mark",
    why: "Crawlers based on the reference parser skip a UTF-8 byte order mark at the beginning of the file, so the \
          finding is only a note. Other crawlers treat it as part of the first word and ignore the first line, which \
          is often the only user-agent line. The reference parser also skips a truncated mark, but such a mark \
          indicates that the file is damaged. No crawler skips a mark inside the file, where another file was \
          appended. If such a mark precedes a directive, the lint unknown-directive reports an error; if it is on a \
          blank line or precedes a comment, this lint reports a note.",
    bad: Example::new(b"\xEF\xBB\xBFUser-agent: *\nDisallow: /private/\n"),
    good: Example::new(b"User-agent: *\nDisallow: /private/\n"),
    pass: Pass::File(run),
    fix: Some(LintFix::new(fix)),
};

const MARK: usize = 3;

pub(in crate::check::lints) fn is_mark(text: &[u8]) -> bool {
    !text.is_empty() && text.chunks(MARK).all(|part| part == b"\xEF\xBB\xBF")
}

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
            .help(format_args!("remove the first {part} bytes of the file")),
    }
    if memchr::memmem::find(&file.bytes()[skipped..], b"\xEF\xBB\xBF").is_none() {
        return;
    }
    for line in file.robots.lines().map(|line| line.content()).filter(|line| is_mark(&file.bytes()[line.clone()])) {
        sink.report(line, "there is a byte order mark inside the file: another file was probably appended here")
            .help("remove it");
    }
}

fn fix(file: &CheckedFile<'_>, finding: &Finding) -> Option<Vec<Edit>> {
    if finding.span.start > 0 {
        return Some(vec![Edit::remove(finding.span.clone())]);
    }
    let mut end = file.lines().first().map_or(0, |line| line.range.start);
    // There may be several byte order marks, because some editors add one to a file that already
    // has one.
    while file.bytes()[end..].starts_with(b"\xEF\xBB\xBF") {
        end += MARK;
    }
    Some(vec![Edit::remove(0..end)])
}
