//! `rule-on-exempt-path`: a rule about paths that are exempt from enforcement.

use crate::check::lint::*;
use crate::check::pattern::{covered, is_of_robots_txt};

pub(crate) const LINT: Lint = Lint {
    code: "rule-on-exempt-path",
    severity: Severity::Note,
    summary: "a rule about paths that are exempt from enforcement",
    why: "Some paths are exempt from enforcement: /robots.txt itself, which every crawler may always fetch (RFC \
          9309, section 2.2.2), /.well-known/, because certificates depend on it, and paths that the configuration \
          adds. Crawlers may obey a rule about such paths, but it is never enforced.",
    bad: Example::new(b"User-agent: *\nDisallow: /.well-known/\n"),
    good: Example::new(b"User-agent: *\nDisallow: /private/\n"),
    pass: Pass::Field(run),
    fix: None,
};

fn run(file: &CheckedFile<'_>, field: &Field<'_>, sink: &mut Sink) {
    let pattern = field.value;
    if !is_rule(field) || field.directive != Directive::Disallow || pattern.is_empty() {
        return;
    }
    if is_of_robots_txt(pattern) || covered(pattern, &file.site.exempt) {
        sink.report(
            field.value_range.clone(),
            format_args!(
                "{pattern} matches only paths that are exempt from enforcement, so the rule is not enforced",
                pattern = Quoted(pattern)
            ),
        );
    }
}
