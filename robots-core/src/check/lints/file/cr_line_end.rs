//! `cr-line-end`: lines that end with a lone CR.

use crate::check::lint::*;

pub(crate) const LINT: Lint = Lint {
    code: "cr-line-end",
    severity: Severity::Warning,
    summary: "a line that ends with only CR",
    why: "According to RFC 9309, lines end with LF, CR or CRLF, and the reference parser accepts all three. Many \
          other parsers know only LF. If lines end with only CR, such a parser finds one long line, and ignores \
          everything after the first comment or field.",
    bad: Example::new(b"User-agent: *\rDisallow: /private/\r"),
    good: Example::new(b"User-agent: *\nDisallow: /private/\n"),
    pass: Pass::File(run),
    fix: Some(LintFix::new(fix)),
};

fn run(file: &CheckedFile<'_>, sink: &mut Sink) {
    let file = file.bytes();
    // One finding per file is enough, because usually all lines end in the same way.
    let lone = memchr::memchr_iter(b'\r', file).find(|at| file.get(at + 1) != Some(&b'\n'));
    if let Some(at) = lone {
        let ends_file = file[at + 1..].iter().all(|byte| *byte == b'\r');
        if ends_file && memchr::memchr(b'\n', file).is_some() {
            return;
        }
        sink.report(at..at + 1, "the line ends with CR only: many parsers do not recognise its end")
            .help("end lines with LF or CRLF");
    }
}

fn fix(file: &CheckedFile<'_>, _: &Finding) -> Option<Vec<Edit>> {
    let bytes = file.bytes();
    let is_lone = |at: &usize| bytes.get(at + 1) != Some(&b'\n');
    let has_lone_lf = memchr::memchr_iter(b'\n', bytes).any(|at| at == 0 || bytes[at - 1] != b'\r');
    let has_crlf = memchr::memmem::find(bytes, b"\r\n").is_some();
    let end = if has_crlf && !has_lone_lf { "\r\n" } else { "\n" };
    Some(Edit::each(bytes, memchr::memchr_iter(b'\r', bytes).filter(is_lone), end))
}
