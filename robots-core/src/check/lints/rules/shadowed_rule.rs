//! `shadowed-rule`: a rule that never applies, because a longer rule of the other kind (allow or
//! disallow) also matches every path of the shorter rule.

use std::collections::{BTreeSet, HashMap};

use crate::check::lint::*;
use crate::check::pattern::Canonical;
use crate::rules::priority;

pub(crate) const LINT: Lint = Lint {
    code: "shadowed-rule",
    severity: Severity::Warning,
    summary: "a rule that never applies",
    why: "If several rules match a path, the rule with the longest pattern applies (RFC 9309, section 2.2.2). If a \
          Disallow rule with a redundant or very general \"*\" is longer than an Allow rule, and matches the same \
          paths, the Allow rule never applies. In the same way, an Allow rule can disable a Disallow rule. Only rules \
          of the same group are compared, and only a limited number of patterns with \"*\" inside.",
    bad: Example::new(b"User-agent: *\nAllow: /fish\nDisallow: /*fish\n"),
    good: Example::new(b"User-agent: *\nAllow: /fish/bowl\nDisallow: /*fish\n"),
    pass: Pass::File(run),
    fix: Some(LintFix::DROP_FIELD),
};

/// Maximum number of pairs of patterns that are compared per file, to bound the cost.
const PAIRS: usize = 50_000;

fn run(file: &CheckedFile<'_>, sink: &mut Sink) {
    let mut pairs = PAIRS;
    for group in file.robots.groups() {
        if group.rules().len() > 1 {
            group_rules(group, &mut pairs, sink);
        }
    }
}

fn group_rules(group: Group<'_>, pairs: &mut usize, sink: &mut Sink) {
    let patterns: Vec<ComparedRule<'_>> = group.rules().filter_map(ComparedRule::of).collect();
    let mut strongest: HashMap<&Canonical, &ComparedRule<'_>> = HashMap::new();
    let mut wide: Wide<'_, '_> = Wide::default();
    for pattern in &patterns {
        if pattern.canonical.has_inner_stars() {
            wide.insert(pattern);
        }
        let known = strongest.entry(&pattern.canonical).or_insert(pattern);
        if known.priority < pattern.priority {
            *known = pattern;
        }
    }
    for pattern in &patterns {
        let same =
            strongest.get(&pattern.canonical).filter(|other| other.priority > pattern.priority).map(|other| other.rule);
        let by = same.or_else(|| wide.covering(pattern, pairs));
        let Some(by) = by.filter(|by| by.access() != pattern.rule.access()) else { continue };
        let (shorter, longer) = (Quoted(pattern.rule.pattern()), Quoted(by.pattern()));
        let (line, access) = (by.line(), by.access());
        sink.report(
            pattern.rule.range(),
            format_args!(
                "{shorter} never applies, because the {access} rule {longer} in line {line} is longer and matches the \
                 same paths"
            ),
        )
        .related_to(line)
        .help("remove this rule, or make its pattern more specific, so that it is longer than the other one");
    }
}

struct ComparedRule<'r> {
    rule: Rule<'r>,
    priority: usize,
    canonical: Canonical,
}

impl<'r> ComparedRule<'r> {
    fn of(rule: Rule<'r>) -> Option<Self> {
        Some(Self { rule, priority: priority(rule.pattern()), canonical: Canonical::of(rule.pattern())? })
    }
}

/// Patterns with a `*` before their end, by the literal text before the first `*`. Such a pattern
/// can match all paths of another pattern only if the other pattern begins with the same text.
#[derive(Default)]
struct Wide<'p, 'r> {
    by_prefix: HashMap<&'p [u8], Vec<(&'p ComparedRule<'r>, PathPattern)>>,
    lengths: BTreeSet<usize>,
}

impl<'p, 'r> Wide<'p, 'r> {
    fn insert(&mut self, pattern: &'p ComparedRule<'r>) {
        let prefix = pattern.canonical.prefix();
        let compiled = PathPattern::new(pattern.rule.pattern(), Reading::Standard);
        self.lengths.insert(prefix.len());
        self.by_prefix.entry(prefix).or_default().push((pattern, compiled));
    }

    /// Returns a rule with a higher priority that matches every path that `pattern` matches.
    fn covering(&self, pattern: &ComparedRule<'_>, pairs: &mut usize) -> Option<Rule<'r>> {
        let own = pattern.canonical.prefix();
        for length in self.lengths.range(..=own.len()) {
            for (other, compiled) in self.by_prefix.get(&own[..*length]).into_iter().flatten() {
                *pairs = pairs.checked_sub(1)?;
                if other.priority > pattern.priority && pattern.canonical.is_within(compiled) {
                    return Some(other.rule);
                }
            }
        }
        None
    }
}
