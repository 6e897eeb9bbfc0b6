//! `line-between-names`: another directive between the user-agent lines of one group.

use crate::check::lint::*;

pub(crate) const LINT: Lint = Lint {
    code: "line-between-names",
    severity: Severity::Warning,
    summary: "another directive between the user-agent lines of a group",
    why: "Only an allow or disallow line ends the list of names of a group (RFC 9309, section 2.2.1). So in standard \
          parsers, the names before and after a Crawl-delay form one group. Other parsers treat the Crawl-delay as \
          the first rule of the group, so the rules below do not apply to the names above it.",
    bad: Example::new(b"User-agent: bingbot\nCrawl-delay: 5\nUser-agent: *\nDisallow: /private/\n"),
    good: Example::new(b"User-agent: bingbot\nUser-agent: *\nCrawl-delay: 5\nDisallow: /private/\n"),
    pass: Pass::File(run),
    fix: Some(LintFix::choice(fix).shared_by(group_of)),
};

fn run(file: &CheckedFile<'_>, sink: &mut Sink) {
    let mut named = false;
    let mut between: Option<Field<'_>> = None;
    for (_, field) in file.fields() {
        match field.directive {
            Directive::UserAgent => {
                if let Some(between) = between.take() {
                    sink.report(
                        between.name_range,
                        format_args!(
                            "the {directive} line is between user-agent lines: in standard parsers, the names above \
                             and below form one group, but other parsers end the group here",
                            directive = Quoted(between.name)
                        ),
                    )
                    .help("move the line below all user-agent lines of the group, or add a rule to each group");
                }
                named = true;
            }
            Directive::Allow | Directive::Disallow => (named, between) = (false, None),
            // Sitemap lines are not reported, because they do not belong to groups in any parser.
            Directive::Sitemap => {}
            _ if named && between.is_none() && field.has_colon => between = Some(field),
            _ => {}
        }
    }
}

/// Moves the fields that are between two user-agent lines of a group, except sitemaps, below the
/// group's last user-agent line.
fn fix(file: &CheckedFile<'_>, finding: &Finding) -> Option<Vec<Edit>> {
    let group = *file.groups().groups.get(group_of(file, finding)?)?;
    let (first, last) = (group.line() - 1, group.names().last()?.line() - 1);
    let is_moved = |line: &usize| {
        file.field(*line).is_some_and(|field| {
            field.has_colon && !matches!(field.directive, Directive::UserAgent | Directive::Sitemap)
        })
    };
    let moved: Vec<usize> = (first..last).filter(is_moved).collect();
    let mut edits: Vec<Edit> = moved.iter().map(|line| file.without_line(*line)).collect::<Option<_>>()?;
    edits.push(file.lines_after(last, moved.iter().map(|line| file.lines()[*line].bytes())));
    Some(edits)
}

fn group_of(file: &CheckedFile<'_>, finding: &Finding) -> Option<usize> {
    file.groups().at(finding.line)
}
