//! `allow-disallow-tie`: a pattern that is both allowed and disallowed.

use std::collections::{HashMap, HashSet};

use crate::check::lint::*;
use crate::check::pattern::Canonical;
use crate::rules::priority;

pub(crate) const LINT: Lint = Lint {
    code: "allow-disallow-tie",
    severity: Severity::Warning,
    summary: "a pattern that is both allowed and disallowed",
    why: "If an allow and a disallow rule are equally long and match the same path, the allow rule applies, whatever \
          the order of the two rules (RFC 9309, section 2.2.2). In parsers based on the older draft, the first rule \
          applies. In both cases, the other rule has no effect.",
    bad: Example::new(b"User-agent: *\nDisallow: /news/\nAllow: /news/\n"),
    good: Example::new(b"User-agent: *\nDisallow: /news/\nAllow: /news/today/\n"),
    pass: Pass::File(run),
    fix: Some(LintFix { is_choice: true, ..LintFix::DROP_FIELD }),
};

/// Maximum number of rules that are compared with rules of other groups for the same crawler, to
/// bound the cost.
const MAX_COMPARED: usize = 1 << 18;

/// Maps the priority and the canonical pattern of an allow rule to the rule.
type Allowed<'a> = HashMap<(usize, Canonical), Rule<'a>>;

fn run(file: &CheckedFile<'_>, sink: &mut Sink) {
    let groups: Vec<Group<'_>> = file.robots.groups().collect();
    let mut found = HashSet::new();
    for group in &groups {
        let allowed = allowed_by([*group]);
        for (rule, allow) in ties(*group, &allowed) {
            found.insert(rule.line());
            report(sink, rule, allow, "");
        }
    }
    // Crawlers combine all groups that contain their name.
    let mut compared = 0;
    for (of_name, name) in shared(&groups) {
        compared += of_name.iter().map(|at| groups[*at].rules().len()).sum::<usize>();
        if compared > MAX_COMPARED {
            return;
        }
        let allowed = allowed_by(of_name.iter().map(|at| groups[*at]));
        for (rule, allow) in of_name.iter().flat_map(|at| ties(groups[*at], &allowed)) {
            if found.insert(rule.line()) {
                report(sink, rule, allow, &format!(", in another group for {name},", name = Quoted(name.value())));
            }
        }
    }
}

fn report(sink: &mut Sink, rule: Rule<'_>, allow: Rule<'_>, place: &str) {
    let (line, pattern) = (allow.line(), Quoted(allow.pattern()));
    sink.report(
        rule.range(),
        format_args!(
            "line {line}{place} allows {pattern}: if two rules are equally long, the allow rule takes precedence"
        ),
    )
    .related_to(line)
    .help("remove the rule that you do not want");
}

/// Returns each set of groups that share a name, with this name. Crawlers combine the groups of a
/// set. A set that shares several names is returned only once.
fn shared<'a>(groups: &[Group<'a>]) -> Vec<(Vec<usize>, Name<'a>)> {
    let mut by_name: HashMap<Option<ProductToken>, (Vec<usize>, Name<'a>)> = HashMap::new();
    for (at, name) in groups.iter().enumerate().flat_map(|(at, group)| group.names().map(move |name| (at, name))) {
        let token = ProductToken::from_name(name.value()).filter(|_| !name.is_star());
        if token.is_none() && !name.is_star() {
            continue;
        }
        let (of_name, _) = by_name.entry(token).or_insert_with(|| (Vec::new(), name));
        if of_name.last() != Some(&at) {
            of_name.push(at);
        }
    }
    let mut shared: Vec<_> = by_name.into_values().filter(|(of_name, _)| of_name.len() > 1).collect();
    // A hash map returns its elements in a random order, so they are sorted in the order of the
    // file.
    shared.sort_by_key(|(_, name)| name.range().start);
    let mut seen = HashSet::new();
    shared.retain(|(of_name, _)| seen.insert(of_name.clone()));
    shared
}

fn allowed_by<'a>(groups: impl IntoIterator<Item = Group<'a>>) -> Allowed<'a> {
    let mut allowed = Allowed::new();
    for rule in groups.into_iter().flat_map(Group::rules).filter(|rule| rule.access() == Access::Allow) {
        if let Some(pattern) = Canonical::of(rule.pattern()) {
            allowed.entry((priority(rule.pattern()), pattern)).or_insert(rule);
        }
    }
    allowed
}

fn ties<'a>(group: Group<'a>, allowed: &Allowed<'a>) -> Vec<(Rule<'a>, Rule<'a>)> {
    if allowed.is_empty() {
        return Vec::new();
    }
    let disallowed = group.rules().filter(|rule| rule.access() == Access::Disallow);
    let tie = |rule: Rule<'a>| Some((rule, *allowed.get(&(priority(rule.pattern()), Canonical::of(rule.pattern())?))?));
    disallowed.filter_map(tie).collect()
}
