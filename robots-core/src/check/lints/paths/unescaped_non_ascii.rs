//! `unescaped-non-ascii`: letters outside ASCII as they are.

use crate::check::lint::*;
use crate::check::pattern::escaped;

pub(crate) const LINT: Lint = Lint {
    code: "unescaped-non-ascii",
    severity: Severity::Note,
    summary: "letters outside ASCII that are not escaped in a path",
    why: "Requests hold such letters as the \"%\" escapes of their UTF-8 octets. Crawlers that follow RFC 9309, section \
          2.2.2, escape the pattern the same way before comparing; others compare the octets as they stand and find \
          no match.",
    bad: Example::new("User-agent: *\nDisallow: /caf\u{e9}/\n".as_bytes()),
    good: Example::new(b"User-agent: *\nDisallow: /caf%C3%A9/\n"),
    pass: Pass::Field(run),
    fix: Some(LintFix::new(|file, finding| file.with_value(finding, |value| Some(escaped(value))))),
};

fn run(_: &CheckedFile<'_>, field: &Field<'_>, sink: &mut Sink) {
    if !is_rule(field) {
        return;
    }
    // Octets that are not UTF-8 are another lint's.
    let Ok(pattern) = std::str::from_utf8(field.value) else { return };
    let Some((at, char)) = pattern.char_indices().find(|(_, char)| !char.is_ascii()) else { return };
    let start = field.value_range.start + at;
    sink.report(
        start..start + char.len_utf8(),
        format_args!("{} is not escaped: not every crawler does that itself", Quoted(char.to_string().as_bytes())),
    )
    .help_with(|| Some(format!("write {}", Quoted(&escaped(field.value)))));
}
