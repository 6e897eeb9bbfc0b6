//! `nul-octet`: a NUL byte, which makes crawlers ignore the rest of the line.

use crate::check::lint::*;

pub(crate) const LINT: Lint = Lint {
    code: "nul-octet",
    severity: Severity::Error,
    summary: "a NUL byte inside a line",
    why: "Crawlers based on the reference parser read a line only up to its first NUL byte, so a rule may match \
          fewer or more paths than it seems to. Such bytes occur in files saved as UTF-16, in damaged files and in \
          the output of programs that write fixed-size buffers.",
    bad: Example::new(b"User-agent: *\nDisallow: /private\0/drafts/\n"),
    good: Example::new(b"User-agent: *\nDisallow: /private/drafts/\n"),
    pass: Pass::Line(run),
    fix: Some(LintFix::new(fix)),
};

fn run(line: &Line<'_>, _: &LineKind<'_>, sink: &mut Sink) {
    if let Some(at) = memchr::memchr(0, line.bytes()) {
        let start = line.range.start + at;
        sink.report(start..start + 1, "the line contains a NUL byte: crawlers ignore the rest of the line")
            .help("save the file as plain UTF-8 text");
    }
}

fn fix(file: &CheckedFile<'_>, finding: &Finding) -> Option<Vec<Edit>> {
    let line = file.lines().get(file.line_of(finding))?;
    let start = line.range.start;
    Some(Edit::each(file.bytes(), memchr::memchr_iter(0, line.bytes()).map(|at| start + at), ""))
}
