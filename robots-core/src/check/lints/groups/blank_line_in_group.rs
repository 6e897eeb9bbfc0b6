//! `blank-line-in-group`: a blank line between a user-agent line and a rule of its group.

use crate::check::lint::*;

pub(crate) const LINT: Lint = Lint {
    code: "blank-line-in-group",
    severity: Severity::Note,
    summary: "blank lines inside a group",
    why: "In RFC 9309, blank lines have no meaning. In the draft of 1996, they end groups, so parsers that are based \
          on the draft ignore the rules below a blank line.",
    bad: Example::new(b"User-agent: *\n\nDisallow: /private/\n"),
    good: Example::new(b"User-agent: *\nDisallow: /private/\n"),
    pass: Pass::File(run),
    fix: Some(LintFix::new(fix)),
};

fn run(file: &CheckedFile<'_>, sink: &mut Sink) {
    let (mut in_group, mut blank) = (false, false);
    for line in file.robots.lines() {
        match line.kind() {
            LineKind::Blank => blank = true,
            LineKind::Field(field) => match field.directive {
                Directive::UserAgent => (in_group, blank) = (true, false),
                Directive::Allow | Directive::Disallow if in_group && blank => {
                    sink.report(
                        field.name_range,
                        "a blank line separates this rule from its group: old parsers end the group there",
                    )
                    .help("remove the blank line above it");
                    // The next rules of the group are not reported, because the same blank line
                    // separates them from the group.
                    in_group = false;
                }
                _ => {}
            },
            LineKind::Comment | LineKind::Malformed => {}
        }
    }
}

/// Removes the blank lines between the names and the last rule of the group. But if a blank line
/// comes after a rule and is not next to a comment, it becomes an empty comment, so that people
/// still see two parts of the group.
fn fix(file: &CheckedFile<'_>, finding: &Finding) -> Option<Vec<Edit>> {
    let is_name = |line: &usize| file.directive(*line) == Some(Directive::UserAgent);
    let is_rule = |line: &usize| matches!(file.directive(*line), Some(Directive::Allow | Directive::Disallow));
    let rule = file.line_of(finding);
    let name = (0..rule).rev().find(is_name)?;
    let last = (rule..file.lines().len()).take_while(|line| !is_name(line)).filter(is_rule).last()?;
    let mut edits = Vec::new();
    // The last non-blank line so far, and whether a rule has occurred so far.
    let (mut before, mut is_parted) = (name, false);
    let mut line = name;
    while line <= last {
        if !file.is_blank(line) {
            (before, is_parted) = (line, is_parted || is_rule(&line));
            line += 1;
            continue;
        }
        if file.has_allow_comment_above(line) {
            return None;
        }
        let next = (line..=last).find(|line| !file.is_blank(*line))?;
        let has_comment = file.is_comment(before) || file.is_comment(next);
        edits.push(match is_parted && !has_comment {
            true => Edit::new(file.lines()[line].range.clone(), "#"),
            false => Edit::remove(file.whole_line(line)),
        });
        if line + 1 < next {
            edits.push(Edit::remove(file.whole_line(line + 1).start..file.whole_line(next).start));
        }
        line = next;
    }
    Some(edits)
}
