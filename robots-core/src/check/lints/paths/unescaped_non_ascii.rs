//! `unescaped-non-ascii`: non-ASCII characters that are not escaped.

use crate::check::invisible::without_invisible;
use crate::check::lint::*;
use crate::check::pattern::escaped;

pub(crate) const LINT: Lint = Lint {
    code: "unescaped-non-ascii",
    severity: Severity::Note,
    summary: "letters outside ASCII that are not escaped in a path",
    why: "In requests, such letters are escaped: each UTF-8 byte is written as \"%\" with two hex digits. \
          Crawlers that follow RFC 9309, section 2.2.2, escape the pattern in the same way before comparing. Other \
          crawlers compare the unescaped bytes and find no match.",
    bad: Example::new("User-agent: *\nDisallow: /caf\u{e9}/\n".as_bytes()),
    good: Example::new(b"User-agent: *\nDisallow: /caf%C3%A9/\n"),
    pass: Pass::Field(run),
    fix: Some(LintFix::new(|file, finding| {
        let is_blank = String::from_utf8_lossy(file.text_of(finding)).chars().any(is_wide_blank);
        file.with_value(finding, |value| (!is_blank).then(|| escaped(value)))
    })),
};

fn run(_: &CheckedFile<'_>, field: &Field<'_>, sink: &mut Sink) {
    // Values with invisible characters, or with text before the slash, are skipped, because other
    // lints report them.
    let is_pattern = matches!(field.value, [b'/' | b'*', ..]);
    if !is_rule(field) || !is_pattern || without_invisible(field.value).is_some() {
        return;
    }
    // Values that are not UTF-8 are skipped, because `invalid-utf-8` reports them.
    let Ok(pattern) = std::str::from_utf8(field.value) else { return };
    let first = |is_one: fn(char) -> bool| pattern.char_indices().find(|(_, char)| is_one(*char));
    let Some((at, char)) = first(is_wide_blank).or_else(|| first(|char| !char.is_ascii())) else { return };
    let start = field.value_range.start + at;
    sink.report(
        start..start + char.len_utf8(),
        format_args!(
            "{letter} is not escaped, and not every crawler escapes it before comparing",
            letter = Quoted(char.to_string().as_bytes())
        ),
    )
    .help_with(|| {
        let escape = |pattern: &str| escaped(pattern.as_bytes());
        let help = format!("write {}", Quoted(&escape(pattern)));
        let usual = escape(&pattern.replace(is_wide_blank, "%20"));
        Some(if is_wide_blank(char) {
            format!("{help}, or {with_space} for an ordinary space", with_space = Quoted(&usual))
        } else {
            help
        })
    });
}

/// Reports whether a character is non-ASCII white space, such as a no-break space. Authors who
/// write such a character often mean an ordinary space.
fn is_wide_blank(char: char) -> bool {
    !char.is_ascii() && char.is_whitespace()
}
