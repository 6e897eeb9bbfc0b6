//! `duplicate-rule`: a rule that repeats another rule of its group.

use std::collections::HashMap;

use crate::check::lint::*;
use crate::check::pattern::Canonical;

pub(crate) const LINT: Lint = Lint {
    code: "duplicate-rule",
    severity: Severity::Note,
    summary: "a rule that is already in its group",
    why: "A rule that repeats another rule of its group has no effect. But if somebody changes only one of the two \
        rules, the other one still applies.",
    bad: Example::new(b"User-agent: *\nDisallow: /private/\nDisallow: /drafts/\nDisallow: /private/\n"),
    good: Example::new(b"User-agent: *\nDisallow: /private/\nDisallow: /drafts/\n"),
    pass: Pass::Group(run),
    fix: Some(LintFix::DROP_FIELD),
};

fn run(_: &CheckedFile<'_>, group: Group<'_>, sink: &mut Sink) {
    let mut seen: HashMap<(Access, Canonical), Rule<'_>> = HashMap::new();
    for rule in group.rules() {
        let Some(pattern) = Canonical::of(rule.pattern()) else { continue };
        let first = *seen.entry((rule.access(), pattern)).or_insert(rule);
        if first.range() == rule.range() {
            continue;
        }
        let (pattern, line) = (Quoted(rule.pattern()), first.line());
        let draft = if first.pattern() == rule.pattern() {
            sink.report(rule.range(), format_args!("line {line} already contains {pattern}"))
        } else {
            let other = Quoted(first.pattern());
            sink.report(rule.range(), format_args!("{pattern} matches the same paths as {other} in line {line}"))
        };
        draft.related_to(line).help("remove one of the lines");
    }
}
