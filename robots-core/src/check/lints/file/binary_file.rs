//! `binary-file`: an image, an archive or other bytes instead of text.

use crate::check::file_kind::FileKind;
use crate::check::lint::*;

pub(crate) const LINT: Lint = Lint {
    code: "binary-file",
    severity: Severity::Error,
    summary: "a file that is not text",
    why: "If a robots.txt was published in compressed form, or another file was published under its name, crawlers \
          find no rules in it. Other lints do not check such a file.",
    bad: Example::new(b"\x1F\x8B\x08\0\0\0\0\0\0\x03\xD3\xE2\xE2\x02\0\xF3"),
    good: Example::new(b"User-agent: *\nDisallow: /private/\n"),
    pass: Pass::OfKind(FileKind::Binary, run),
    fix: None,
};

fn run(_: &CheckedFile<'_>, sink: &mut Sink) {
    sink.report(0..1, "the file is not text: crawlers find no rules in it")
        .help("save the file as uncompressed UTF-8 text");
}
