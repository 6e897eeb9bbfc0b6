//! `duplicate-group`: several groups for the same crawlers, or a name that occurs twice in a group.

use std::collections::HashMap;

use crate::check::checked_file::compared;
use crate::check::lint::*;

pub(crate) const LINT: Lint = Lint {
    code: "duplicate-group",
    severity: Severity::Note,
    summary: "a crawler that is named more than once",
    why: "Crawlers must combine all groups for the same crawler (RFC 9309, section 2.2.1). But older parsers use \
          only the first or the last group, and people overlook the other groups.",
    bad: Example::new(b"User-agent: *\nDisallow: /private/\n\nUser-agent: *\nDisallow: /drafts/\n"),
    good: Example::new(b"User-agent: *\nDisallow: /private/\nDisallow: /drafts/\n"),
    pass: Pass::File(run),
    fix: Some(LintFix::new(fix).shared_by(shared)),
};

fn run(file: &CheckedFile<'_>, sink: &mut Sink) {
    let mut seen: HashMap<Option<ProductToken>, (Name<'_>, usize)> = HashMap::new();
    for (group, name) in
        file.robots.groups().enumerate().flat_map(|(at, group)| group.names().map(move |name| (at, name)))
    {
        let token = compared(name);
        if token.is_none() && !name.is_star() {
            continue;
        }
        let Some((first, known)) = seen.get(&token).copied() else {
            seen.insert(token, (name, group));
            continue;
        };
        let (value, line) = (Quoted(name.value()), first.line());
        if known == group {
            sink.report(name.range(), format_args!("line {line} of the same group already names {value}"))
                .related_to(line)
                .help("remove one of the lines");
        } else {
            sink.report(
                name.range(),
                format_args!("{value} already has a group in line {line}: crawlers combine the two groups"),
            )
            .related_to(line)
            .help(format_args!("move the rules to the group in line {line}"));
        }
    }
}

/// Merges all groups for the same crawlers into the first of these groups, or removes a name that
/// is repeated within a group.
fn fix(file: &CheckedFile<'_>, finding: &Finding) -> Option<Vec<Edit>> {
    let groups = file.groups();
    if groups.repeated.contains(&finding.line) {
        return Some(vec![file.without_field(file.line_of(finding))?]);
    }
    let first = shared(file, finding)?;
    let members = groups.alike.get(&first)?;
    let lines_of = |at: usize| {
        let next = groups.groups.get(at + 1).map_or(file.lines().len(), |next| next.line() - 1);
        let start = groups.groups.get(at).map_or(next, |group| group.line() - 1);
        let last = (start..next).rev().find(|line| file.field(*line).is_some()).unwrap_or(start);
        start..last + 1
    };
    let is_name = |line: &usize| file.directive(*line) == Some(Directive::UserAgent);
    // Groups for the same crawlers directly after the first group stay in place: only their
    // user-agent lines and blank lines are removed. Comments on these user-agent lines are kept.
    let is_next = |(number, at): &(usize, &usize)| first + number == **at;
    let joined = members.iter().enumerate().take_while(is_next).count();
    let end = lines_of(members[joined - 1]).end - 1;
    let between = (lines_of(first).end..=end).filter(|line| is_name(line) || file.is_blank(*line));
    let mut edits: Vec<Edit> = between.map(|line| file.without_field(line)).collect::<Option<_>>()?;
    // The lines of the other groups for these crawlers, with the comments directly above these
    // groups, are moved below the groups that stay in place.
    let mut moved = Vec::new();
    for at in &members[joined..] {
        let lines = lines_of(*at);
        let start = (0..lines.start).rev().take_while(|line| file.is_comment(*line)).last().unwrap_or(lines.start);
        for line in start..lines.end {
            if is_name(&line) && file.lines()[line].bytes().contains(&b'#') {
                return None;
            }
            if !is_name(&line) && !file.is_blank(line) {
                moved.push(file.lines()[line].bytes());
            }
        }
        if file.has_allow_comment_above(start) {
            return None;
        }
        edits.push(Edit::remove(file.whole_line(start).start..file.whole_line(lines.end - 1).end));
    }
    if !moved.is_empty() {
        edits.push(file.lines_after(end, moved));
    }
    Some(edits)
}

/// Returns the common key of all findings that one merge of groups corrects: the index of the first
/// group with the same names. `None` if the finding is about a name that is repeated within a
/// group.
fn shared(file: &CheckedFile<'_>, finding: &Finding) -> Option<usize> {
    let groups = file.groups();
    let own = groups.at(finding.line)?;
    let first = groups.first_alike[own];
    (first < own && !groups.repeated.contains(&finding.line)).then_some(first)
}
