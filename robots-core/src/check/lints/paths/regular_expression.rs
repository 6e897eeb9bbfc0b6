//! `regular-expression`: a regular expression instead of a robots.txt pattern.

use crate::check::lint::*;
use crate::check::pattern::is_expression;

pub(crate) const LINT: Lint = Lint {
    code: "regular-expression",
    severity: Severity::Warning,
    summary: "a path pattern that is a regular expression",
    why: "A pattern has two special characters: \"*\" for any characters, and a final \"$\" for the end of the path \
          (RFC 9309, section 2.2.3). Everything else is literal: \"/[0-9]+/\" matches paths that contain exactly \
          these characters, and \"/x/.*\" those that continue with a dot. Characters that are common in URLs and \
          patterns (\"/filter[price]\", \"/index.*\") are not reported.",
    bad: Example::new(b"User-agent: *\nDisallow: /page-[0-9]+/\nDisallow: /old/.*\n"),
    good: Example::new(b"User-agent: *\nDisallow: /page-*/\nDisallow: /old/\n"),
    pass: Pass::Field(run),
    fix: None,
};

fn run(_: &CheckedFile<'_>, field: &Field<'_>, sink: &mut Sink) {
    if is_rule(field) && is_expression(field.value) {
        let pattern = Quoted(field.value);
        sink.report(field.value_range.clone(), format_args!("{pattern} is read literally, not as an expression")).help(
            "only \"*\" and a final \"$\" are special: write \"*\" for \".*\" or a class, one rule per alternative",
        );
    }
}
