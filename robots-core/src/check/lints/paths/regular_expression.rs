//! `regular-expression`: a regular expression instead of a robots.txt pattern.

use crate::check::lint::*;
use crate::check::pattern::is_expression;

pub(crate) const LINT: Lint = Lint {
    code: "regular-expression",
    severity: Severity::Warning,
    summary: "a path pattern that is a regular expression",
    why: "A pattern has two special characters: \"*\" for any text, and a final \"$\" for the end of the path (RFC \
          9309, section 2.2.3). Everything else is literal: \"/[0-9]+/\" matches only paths with exactly these \
          characters, and \"/x/.*\" only paths with a dot after \"/x/\". Characters that are common in URLs and \
          patterns (\"/filter[price]\", \"/index.*\") are not reported.",
    bad: Example::new(b"User-agent: *\nDisallow: /page-[0-9]+/\nDisallow: /old/.*\n"),
    good: Example::new(b"User-agent: *\nDisallow: /page-*/\nDisallow: /old/\n"),
    pass: Pass::Field(run),
    fix: None,
};

fn run(_: &CheckedFile<'_>, field: &Field<'_>, sink: &mut Sink) {
    if is_rule(field) && is_expression(field.value) {
        let pattern = Quoted(field.value);
        sink.report(field.value_range.clone(), format_args!("crawlers compare {pattern} literally, not as a regular expression")).help(
            "write \"*\" for \".*\" or a character class, and one rule per alternative: only \"*\" and a final \"$\" are special",
        );
    }
}
