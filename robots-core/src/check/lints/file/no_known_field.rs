//! `no-known-field`: text that is not a robots.txt.

use crate::check::file_kind::FileKind;
use crate::check::lint::*;

pub(crate) const LINT: Lint = Lint {
    code: "no-known-field",
    severity: Severity::Error,
    summary: "text without any field that crawlers know",
    why: "If an application fails, or a deployment copies the wrong file, an error message, JSON or a Git LFS \
          pointer is served instead of the robots.txt. Crawlers find no rules in it and fetch \
          everything. tower-robots \
          does not publish such a file: at least one line must be a field that crawlers know, or every line must be a \
          comment.",
    bad: Example::new(b"Error: cannot connect to database   # robots-check: allow(unknown-directive)\n"),
    good: Example::new(b"User-agent: *\nDisallow:\n"),
    pass: Pass::OfKind(FileKind::OtherText, run),
    fix: None,
};

fn run(file: &CheckedFile<'_>, sink: &mut Sink) {
    let line = file.robots.lines().next().map_or(0..0, |line| line.content());
    sink.report(line, FileKind::NO_ROBOTS_TXT).help(FileKind::NO_RESTRICTIONS);
}
