//! `star-with-text`: a name that is `*` followed by more text.

use crate::check::lint::*;

pub(crate) const LINT: Lint = Lint {
    code: "star-with-text",
    severity: Severity::Warning,
    summary: "a name that begins with \"* \"",
    why: "To crawlers based on the reference parser, \"*\" followed by a space and any text means every crawler. \
          Other crawlers compare the whole value, which is not the name of any crawler.",
    bad: Example::new(b"User-agent: * bots\nDisallow: /private/\n"),
    good: Example::new(b"User-agent: *\nDisallow: /private/\n"),
    pass: Pass::Name(run),
    fix: Some(LintFix::choice(|file, finding| file.with_value(finding, |_| Some("*")))),
};

fn run(_: &CheckedFile<'_>, name: Name<'_>, sink: &mut Sink) {
    if name.is_star() && name.value() != b"*" {
        sink.report(
            name.range(),
            format_args!("to some crawlers, {} means every crawler; to others, it means none", Quoted(name.value())),
        )
        .help("write \"*\" for every crawler, or the name of one crawler");
    }
}
