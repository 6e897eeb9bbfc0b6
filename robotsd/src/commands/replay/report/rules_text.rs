//! The rules that decide, with the paths that were requested, for a terminal.

use std::io::{self, Write};

use super::contents::Report;
use super::rule_rows::RuleRows;
use crate::html::figures::{counted, grouped};
use crate::render::printable;

/// How many rules are shown of a crawler, and how many patterns of a rule.
const RULES: usize = 8;
const PATTERNS: usize = 5;

/// The rules that decide about what is requested under a name, and its paths.
pub(super) fn rules(out: &mut impl Write, report: &Report, name: &str, by_rule: &RuleRows) -> io::Result<()> {
    let what = if report.is_compared() { "what changes" } else { "what is disallowed" };
    writeln!(out, "\n{}: {what}, by rule and path", shown(name))?;
    for rule in by_rule.rules.iter().take(RULES) {
        writeln!(out, "  {:>10}  {}", grouped(rule.requests), shown(&rule.sentence()))?;
        for path in rule.paths.iter().take(PATTERNS) {
            writeln!(out, "  {:>10}    {}", grouped(path.requests), shown(&path.pattern))?;
        }
        let rest = rule.paths.iter().skip(PATTERNS);
        let count = rest.clone().count() as u64 + rule.other_paths;
        let requests = rest.map(|path| path.requests).sum::<u64>() + rule.other_paths_requests;
        if count > 0 {
            writeln!(out, "  {:>10}    of {}", grouped(requests), counted(count, "more pattern"))?;
        }
    }
    let rest = by_rule.rules.iter().skip(RULES);
    let count = rest.clone().count() as u64 + by_rule.other_rules;
    let requests = rest.map(|rule| rule.requests).sum::<u64>() + by_rule.other_rules_requests;
    if count > 0 {
        writeln!(out, "  {:>10}  by {}", grouped(requests), counted(count, "more rule"))?;
    }
    Ok(())
}

/// Text of a log or a file, without what does not print.
pub(super) fn shown(text: &str) -> String {
    printable(text.as_bytes())
}
