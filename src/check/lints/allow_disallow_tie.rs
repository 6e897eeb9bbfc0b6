//! `allow-disallow-tie`: the same path allowed and disallowed.

use std::collections::HashMap;

use crate::check::Severity;
use crate::check::checked_file::CheckedFile;
use crate::check::edit::Edit;
use crate::check::finding::Finding;
use crate::check::fixable_file::{FixableFile, LintFix};
use crate::check::lint::{Example, Lint, Pass};
use crate::check::pattern::{Canonical, priority};
use crate::check::quote::Quoted;
use crate::check::sink::Sink;
use crate::rules::{Access, Rule};

pub(super) const LINT: Lint = Lint {
    code: "allow-disallow-tie",
    severity: Severity::Warning,
    summary: "one pattern that is allowed and disallowed",
    why: "Where an allow and a disallow rule are equally long and match the same path, the allow rule decides (RFC \
          9309, section 2.2.2), whatever their order. Parsers of the older draft take the first of the two. Either \
          way one of them is never in force.",
    bad: Example::new(b"User-agent: *\nDisallow: /news/\nAllow: /news/\n"),
    good: Example::new(b"User-agent: *\nDisallow: /news/\nAllow: /news/today/\n"),
    pass: Pass::File(run),
};

pub(super) const FIX: LintFix = LintFix::choice(LINT.code, fix);

fn run(file: &CheckedFile<'_>, sink: &mut Sink) {
    for group in file.robots.groups() {
        let mut allowed: HashMap<(usize, Canonical), Rule<'_>> = HashMap::new();
        for rule in group.rules().filter(|rule| rule.access() == Access::Allow) {
            if let Some(pattern) = Canonical::of(rule.pattern()) {
                allowed.entry((priority(rule.pattern()), pattern)).or_insert(rule);
            }
        }
        if allowed.is_empty() {
            continue;
        }
        for rule in group.rules().filter(|rule| rule.access() == Access::Disallow) {
            let Some(pattern) = Canonical::of(rule.pattern()) else { continue };
            if let Some(allow) = allowed.get(&(priority(rule.pattern()), pattern)) {
                sink.report(
                    rule.range(),
                    format_args!(
                        "line {} allows {}: of equally long patterns the one that allows decides",
                        allow.line(),
                        Quoted(allow.pattern())
                    ),
                )
                .help(format_args!("remove the one that is not meant"));
            }
        }
    }
}

fn fix(file: &FixableFile<'_>, finding: &Finding) -> Option<Vec<Edit>> {
    Some(vec![file.without_field(file.line_of(finding))?])
}

#[cfg(test)]
mod tests {
    use crate::check::lints::tests::found;

    #[test]
    fn ties_are_found_at_the_rule_that_loses() {
        for (rules, want) in [
            ("Disallow: /\nAllow: /", vec!["2:11"]),
            ("Allow: /a\nDisallow: /a", vec!["3:11"]),
            ("Allow: /a\nDisallow: /b", vec![]),
            ("Allow: /a*\nDisallow: /a", vec![]),
            ("Allow:\nDisallow:", vec![]),
            ("Allow: /a\nUser-agent: a\nDisallow: /a", vec![]),
        ] {
            let file = format!("User-agent: *\n{rules}\n");
            assert_eq!(found("allow-disallow-tie", file.as_bytes()), want, "{rules}");
        }
    }
}
