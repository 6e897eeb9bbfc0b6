//! `duplicate-rule`: the same rule again.

use std::collections::HashMap;

use crate::check::lint::*;
use crate::check::pattern::Canonical;

pub(crate) const LINT: Lint = Lint {
    code: "duplicate-rule",
    severity: Severity::Note,
    summary: "a rule that stands in its group already",
    why: "A rule that says the same of the same paths as another one of its group changes nothing. It does harm when \
          an editor changes one of the two and nothing happens.",
    bad: Example::new(b"User-agent: *\nDisallow: /private/\nDisallow: /drafts/\nDisallow: /private/\n"),
    good: Example::new(b"User-agent: *\nDisallow: /private/\nDisallow: /drafts/\n"),
    pass: Pass::File(run),
    fix: Some(LintFix::DROP_FIELD),
};

fn run(file: &CheckedFile<'_>, sink: &mut Sink) {
    for group in file.robots.groups() {
        let mut seen: HashMap<(Access, Canonical), Rule<'_>> = HashMap::new();
        for rule in group.rules() {
            let Some(pattern) = Canonical::of(rule.pattern()) else { continue };
            let first = *seen.entry((rule.access(), pattern)).or_insert(rule);
            if first.range() == rule.range() {
                continue;
            }
            let (pattern, line) = (Quoted(rule.pattern()), first.line());
            if first.pattern() == rule.pattern() {
                sink.report(rule.range(), format_args!("{pattern} stands in line {line} already"))
                    .help(format_args!("remove one of the lines"));
            } else {
                sink.report(
                    rule.range(),
                    format_args!("{pattern} matches what {} in line {line} matches", Quoted(first.pattern())),
                )
                .help(format_args!("remove one of the lines"));
            }
        }
    }
}
