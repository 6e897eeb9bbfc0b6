//! `shadowed-rule`: a rule that never decides, because a stronger one matches wherever it does.

use std::collections::HashMap;

use crate::check::Severity;
use crate::check::lint::{Example, Lint, Pass, Subject};
use crate::check::pattern::{Canonical, priority};
use crate::check::quote::Quoted;
use crate::check::sink::Sink;
use crate::rules::{Group, PathPattern, Reading, Rule};

pub(super) const LINT: Lint = Lint {
    code: "shadowed-rule",
    severity: Severity::Warning,
    summary: "a rule that can never decide",
    why: "Of all patterns that match a path the longest one decides (RFC 9309, section 2.2.2). Where a longer pattern \
          of the other kind matches everything that a shorter one does, because of a \"*\" that changes nothing or \
          takes it all in, the shorter rule is never asked. Only rules of one group are compared, and of patterns \
          with a \"*\" inside only so many.",
    bad: Example::new(b"User-agent: *\nAllow: /fish\nDisallow: /*fish\n"),
    good: Example::new(b"User-agent: *\nAllow: /fish/bowl\nDisallow: /*fish\n"),
    pass: Pass::File(run),
};

/// Pairs of patterns that are compared in one file: a bound on the cost.
const PAIRS: usize = 200_000;

fn run(subject: &Subject<'_>, sink: &mut Sink) {
    let mut pairs = PAIRS;
    for group in subject.robots.groups() {
        group_rules(group, &mut pairs, sink);
    }
}

fn group_rules(group: Group<'_>, pairs: &mut usize, sink: &mut Sink) {
    let mut strongest: HashMap<Canonical, (usize, Rule<'_>)> = HashMap::new();
    let mut wide: Vec<(usize, PathPattern, Canonical, Rule<'_>)> = Vec::new();
    for rule in group.rules() {
        let Some(canonical) = Canonical::of(rule.pattern()) else { continue };
        let priority = priority(rule.pattern());
        if canonical.has_runs_inside() {
            let pattern = PathPattern::new(rule.pattern(), Reading::Standard);
            wide.push((priority, pattern, canonical.clone(), rule));
        }
        match strongest.get(&canonical) {
            Some((known, _)) if *known >= priority => {}
            _ => drop(strongest.insert(canonical, (priority, rule))),
        }
    }
    for rule in group.rules() {
        let Some(canonical) = Canonical::of(rule.pattern()) else { continue };
        let own = priority(rule.pattern());
        let same = strongest.get(&canonical).filter(|(other, _)| *other > own).map(|(_, other)| *other);
        let by = same.or_else(|| {
            let stronger = wide.iter().filter(|(other, _, _, _)| *other > own);
            // A pattern that begins otherwise takes nothing in.
            let fitting = stronger.filter(|(_, _, other, _)| canonical.prefix().starts_with(other.prefix()));
            let mut asked = fitting.take_while(|_| {
                *pairs = pairs.saturating_sub(1);
                *pairs > 0
            });
            asked.find(|(_, other, _, _)| canonical.is_within(other)).map(|(_, _, _, rule)| *rule)
        });
        let Some(by) = by.filter(|by| by.access() != rule.access()) else { continue };
        sink.report(
            rule.range(),
            format_args!(
                "{} never decides: line {} says {} {} and is longer",
                Quoted(rule.pattern()),
                by.line(),
                by.access(),
                Quoted(by.pattern())
            ),
        )
        .help(format_args!("remove it, or make it longer than the other by what it is about"));
    }
}

#[cfg(test)]
mod tests {
    use crate::check::lints::tests::found;

    #[test]
    fn only_longer_rules_of_the_other_kind_shadow() {
        for (rules, want) in [
            ("Allow: /fish\nDisallow: /fish*", vec!["2:8"]),
            ("Allow: /fish*\nDisallow: /fish", vec!["3:11"]),
            ("Disallow: /fish\nDisallow: /fish*", vec![]),
            ("Allow: /fish\nDisallow: /fish", vec![]),
            ("Allow: /%61\nDisallow: /a", vec!["3:11"]),
            ("Allow: /ab\nDisallow: /*a*b", vec!["2:8"]),
            ("Allow: /ab\nDisallow: /*a*c", vec![]),
            ("Allow: /abcdefgh\nDisallow: /*a*b", vec![]),
            ("Allow: /x/a.pdf\nDisallow: /*.pdf$", vec![]),
            ("Allow: x\nDisallow:\nAllow:", vec![]),
        ] {
            let file = format!("User-agent: *\n{rules}\n");
            assert_eq!(found("shadowed-rule", file.as_bytes()), want, "{rules}");
        }
    }
}
