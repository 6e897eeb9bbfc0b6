//! `empty-file`: a file without any text, not even a comment.

use crate::check::file_kind::FileKind;
use crate::check::lint::*;

pub(crate) const LINT: Lint = Lint {
    code: "empty-file",
    severity: Severity::Warning,
    summary: "a file without a single line of text",
    why: "An empty robots.txt is valid and restricts nothing. But a full disk or an aborted deployment also leaves \
          an empty file, and nobody can see the difference. A group with an empty Disallow shows that nothing is \
          meant to be restricted.",
    bad: Example::new(b"\n"),
    good: Example::new(b"User-agent: *\nDisallow:\n"),
    pass: Pass::File(run),
    fix: None,
};

fn run(file: &CheckedFile<'_>, sink: &mut Sink) {
    if file.robots.lines().all(|line| line.kind() == LineKind::Blank) {
        sink.report(0..0, "the file is empty: it allows everything, and may have been truncated while it was written")
            .help(FileKind::NO_RESTRICTIONS);
    }
}
