//! `utf-16`: a file in UTF-16 instead of UTF-8.

use crate::check::file_kind::{FileKind, Utf16Form, utf_16_form};
use crate::check::lint::*;

pub(crate) const LINT: Lint = Lint {
    code: "utf-16",
    severity: Severity::Error,
    summary: "text saved as UTF-16",
    why: "A robots.txt must be UTF-8 (RFC 9309, section 2.2). In UTF-16, every second byte of ordinary text is NUL. \
          Crawlers read a line only up to its first NUL, so they find no rules in a UTF-16 file. Other lints do not \
          check such a file.",
    bad: Example::new(b"\xFF\xFEU\0s\0e\0r\0-\0a\0g\0e\0n\0t\0:\0 \0*\0\n\0"),
    good: Example::new(b"User-agent: *\nDisallow: /private/\n"),
    pass: Pass::OfKind(FileKind::Utf16, run),
    fix: Some(LintFix::new(fix)),
};

fn run(file: &CheckedFile<'_>, sink: &mut Sink) {
    if let Some(form) = utf_16_form(file.bytes()) {
        let order = if form == Utf16Form::LittleEndian { "little" } else { "big" };
        sink.report(0..2, format_args!("the file is UTF-16 ({order} endian): crawlers find no rules in it"))
            .help("save the file as UTF-8 without a byte order mark");
    }
}

fn fix(file: &CheckedFile<'_>, _: &Finding) -> Option<Vec<Edit>> {
    let bytes = file.bytes();
    let unit = match utf_16_form(bytes)? {
        Utf16Form::LittleEndian => u16::from_le_bytes,
        Utf16Form::BigEndian => u16::from_be_bytes,
    };
    let (pairs, rest) = bytes.as_chunks::<2>();
    let text: String = char::decode_utf16(pairs.iter().map(|pair| unit(*pair))).collect::<Result<_, _>>().ok()?;
    let text = text.trim_start_matches('\u{feff}');
    rest.is_empty().then(|| vec![Edit::new(0..bytes.len(), text)])
}
