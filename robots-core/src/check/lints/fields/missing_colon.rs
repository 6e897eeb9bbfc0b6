//! `missing-colon`: a directive and its value with only white space between them.

use crate::check::lint::*;

pub(crate) const LINT: Lint = Lint {
    code: "missing-colon",
    severity: Severity::Warning,
    summary: "a directive without a colon after it",
    why: "The standard requires a colon between name and value. The reference parser accepts white space instead if \
          the line has exactly two words; other crawlers ignore the line. If the value contains a colon, crawlers \
          split the line there, so they find a wrong name and a wrong value. In this case, the finding is an error.",
    bad: Example::new(b"User-agent: *\nDisallow /private/\n"),
    good: Example::new(b"User-agent: *\nDisallow: /private/\n"),
    pass: Pass::Field(run),
    fix: Some(LintFix::new(fix)),
};

fn run(_: &CheckedFile<'_>, field: &Field<'_>, sink: &mut Sink) {
    if !field.has_colon {
        if is_known(field) {
            let written = [without_punctuation(field.name), b": ", field.value].concat();
            sink.report(
                field.name_range.clone(),
                format_args!("there is no colon after {}: some crawlers ignore the line", Quoted(field.name)),
            )
            .help(format_args!("write {}", Quoted(&written)));
        }
        return;
    }
    if let Some(word) = directive_without_colon(field) {
        let rest = field.name[word.len()..].trim_ascii_start();
        let written = [word, b": ", rest, b":", field.value].concat();
        let (word, value) = (Quoted(word), Quoted(field.value));
        sink.report_at(
            Severity::Error,
            field.name_range.clone(),
            format_args!(
                "there is no colon after {word}: crawlers split the line at its first colon and find the value {value}"
            ),
        )
        .help(format_args!("write {}", Quoted(&written)));
    }
}

/// Removes punctuation at the end of a name, typed by mistake instead of a colon: `Disallow;`.
fn without_punctuation(name: &[u8]) -> &[u8] {
    let is_letter = |byte: &u8| byte.is_ascii_alphanumeric();
    &name[..name.iter().rposition(is_letter).map_or(name.len(), |last| last + 1)]
}

fn fix(file: &CheckedFile<'_>, finding: &Finding) -> Option<Vec<Edit>> {
    let field = file.field_of(finding)?;
    let name = field.name_range.clone();
    let (end, rest) = match directive_without_colon(&field) {
        Some(word) => {
            let rest = field.name[word.len()..].trim_ascii_start();
            (name.start + word.len(), name.end - rest.len())
        }
        None => (name.start + without_punctuation(field.name).len(), field.value_range.start),
    };
    Some(vec![Edit::new(end..rest, ": ")])
}
