//! `unknown-lint`: a comment that turns off an unknown lint.

use strsim::osa_distance;

use crate::check::checked_file::codes;
use crate::check::lint::*;

pub(crate) const LINT: Lint = Lint {
    code: "unknown-lint",
    severity: Severity::Warning,
    summary: "a comment that turns off a lint with an unknown code",
    why: "A comment such as \"# robots-check: allow(secret-path)\" turns a lint off for its line. If no lint has \
          this code, the comment has no effect, and the findings remain.",
    bad: Example::new(b"User-agent: *\nDisallow: /private/ # robots-check: allow(secret-paths)\n"),
    good: Example::new(b"User-agent: *\nDisallow: /backup/ # robots-check: allow(secret-path)\n"),
    pass: Pass::File(run),
    fix: Some(LintFix::new(fix)),
};

/// Maximum number of wrong letters in a misspelled lint code.
const MAX_SLIPS: usize = 3;

fn run(file: &CheckedFile<'_>, sink: &mut Sink) {
    if memchr::memmem::find(file.bytes(), b"robots-check:").is_none() {
        return;
    }
    for line in file.robots.lines() {
        for span in codes(&line) {
            let code = &file.bytes()[span.clone()];
            if file.codes.iter().any(|known| known.as_bytes() == code) {
                continue;
            }
            sink.report(span, format_args!("no lint has the code {}", Quoted(code)))
                .help_with(|| nearest(file.codes, code).map(|known| format!("did you mean \"{known}\"?")));
        }
    }
}

fn nearest(codes: &[&'static str], code: &[u8]) -> Option<&'static str> {
    let code = std::str::from_utf8(code).ok()?;
    let near = codes.iter().filter(|known| known.len().abs_diff(code.len()) <= MAX_SLIPS);
    let near = near.map(|known| (osa_distance(code, known), *known));
    near.filter(|(distance, _)| *distance <= MAX_SLIPS).min_by_key(|(distance, _)| *distance).map(|(_, known)| known)
}

fn fix(file: &CheckedFile<'_>, finding: &Finding) -> Option<Vec<Edit>> {
    Some(vec![Edit::new(finding.span.clone(), nearest(file.codes, file.text_of(finding))?)])
}
