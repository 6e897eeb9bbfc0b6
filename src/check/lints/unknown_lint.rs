//! `unknown-lint`: a comment that turns off what does not exist.

use crate::check::Severity;
use crate::check::allowed::codes;
use crate::check::checked_file::CheckedFile;
use crate::check::directives::distance;
use crate::check::edit::Edit;
use crate::check::finding::Finding;
use crate::check::fixable_file::{FixableFile, LintFix};
use crate::check::lint::{Example, Lint, Pass};
use crate::check::quote::Quoted;
use crate::check::sink::Sink;

pub(super) const LINT: Lint = Lint {
    code: "unknown-lint",
    severity: Severity::Warning,
    summary: "a comment that turns off a lint of no known code",
    why: "A comment such as \"# robots-check: allow(secret-path)\" turns a lint off for a line. One with a code that no \
          lint has turns nothing off, and what it was to hide goes on being found.",
    bad: Example::new(b"User-agent: *\nDisallow: /private/ # robots-check: allow(secret-paths)\n"),
    good: Example::new(b"User-agent: *\nDisallow: /backup/ # robots-check: allow(secret-path)\n"),
    pass: Pass::File(run),
};

pub(super) const FIX: LintFix = LintFix::new(LINT.code, fix);

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

/// The code that is probably meant.
fn nearest(codes: &[&'static str], code: &[u8]) -> Option<&'static str> {
    let near = codes.iter().map(|known| (distance(&code[..code.len().min(64)], known.as_bytes()), *known));
    let (distance, known) = near.min_by_key(|(distance, _)| *distance)?;
    (distance <= 3).then_some(known)
}

fn fix(file: &FixableFile<'_>, finding: &Finding) -> Option<Vec<Edit>> {
    Some(vec![Edit::new(finding.span(), nearest(file.codes, file.text_of(finding))?)])
}

#[cfg(test)]
mod tests {
    use crate::check::lints::tests::{found, helps};

    #[test]
    fn each_code_is_looked_up() {
        let file =
            b"# robots-check: allow(secret-path, nonsense-of-mine)\nAllow: / # robots-check: allow(secrets-path)\n";
        assert_eq!(found("unknown-lint", file), ["1:36", "2:32"]);
        assert_eq!(helps("unknown-lint", file), ["did you mean \"secret-path\"?"]);
    }
}
