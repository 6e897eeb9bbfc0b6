//! `not-a-field`: a line that is neither a field nor a comment.

use crate::check::directives::{first_word, nearest};
use crate::check::lint::*;
use crate::check::lints::file::byte_order_mark::is_mark;
use crate::check::quote::unquoted;

pub(crate) const LINT: Lint = Lint {
    code: "not-a-field",
    severity: Severity::Error,
    summary: "a line that is neither a field nor a comment",
    why: "Each line must consist of name, colon and value, or be a comment that begins with \"#\" (RFC 9309, section \
        2.2). Crawlers silently ignore other lines, so rules on such lines have no effect.",
    bad: Example::new(b"User-agent: *\nKeep out of the drafts\nDisallow: /drafts/\n"),
    good: Example::new(b"User-agent: *\n# Keep out of the drafts\nDisallow: /drafts/\n"),
    pass: Pass::Line(run),
    fix: Some(LintFix::new(fix).shared_by(columns)),
};

/// Maximum number of lines in a file whose lines a spreadsheet has split into columns. Longer files
/// get no fix, because the fix edits all lines and would need too much memory.
const MAX_EXPORTED: usize = 512;

fn run(line: &Line<'_>, kind: &LineKind<'_>, sink: &mut Sink) {
    let ignored = match kind {
        LineKind::Malformed => true,
        // A line with two words and no colon is a field only if the first word is a known
        // directive.
        LineKind::Field(field) => !field.has_colon && !is_known(field),
        LineKind::Blank | LineKind::Comment => false,
    };
    if !ignored {
        return;
    }
    let text = content(line);
    if is_mark(text) {
        return;
    }
    if line.cut_name().is_some() {
        sink.report(
            line.content(),
            format_args!("the file ends within a field, after {text}: crawlers ignore the line", text = Quoted(text)),
        )
        .help("write the rest of the line, and end the file with a line break");
        return;
    }
    if let [b':', value @ ..] = text {
        sink.report(
            line.content(),
            format_args!("the line {text} has no name before the colon: crawlers ignore the line", text = Quoted(text)),
        )
        .help(format_args!(
            "write a directive before the colon, for example {example}",
            example = Quoted(&[b"Disallow:", value].concat())
        ));
        return;
    }
    let draft = sink.report(
        line.content(),
        format_args!("{} is neither a field nor a comment: crawlers ignore the line", Quoted(text)),
    );
    let word = first_word(text);
    if let Some(field) = of_columns(text) {
        draft.help(format_args!("write {}", Quoted(&field)));
    } else if word.len() == text.len() && is_directive_name(word) {
        draft.help(format_args!("write {name} and its value", name = Quoted(&[word, b":"].concat())));
    } else if is_directive_name(word) {
        draft.help(format_args!("write {}", Quoted(&[word, b":", &text[word.len()..]].concat())));
    } else {
        draft.help("begin a comment with \"#\"");
    }
}

fn fix(file: &CheckedFile<'_>, finding: &Finding) -> Option<Vec<Edit>> {
    let text = file.text_of(finding);
    let start = finding.span.start;
    let word = first_word(text);
    let is_cut = || file.lines().get(file.line_of(finding)).is_some_and(|line| line.cut_name().is_some());
    // If the line is only a directive, or if the file ends within the line, the value was probably
    // lost. With an added colon, such a line would be a wrong rule: `Disallow:` allows the whole
    // site.
    if is_directive_name(text) || is_cut() {
        return None;
    }
    if of_columns(text).is_some() {
        // A spreadsheet splits every line of a file into columns, so all lines are converted
        // together. If only some lines were converted, a group might lose its rules.
        if file.lines().len() > MAX_EXPORTED {
            return None;
        }
        let edit = |line: &Line<'_>| Some(Edit::new(line.content(), of_columns(content(line))?));
        return Some(file.lines().iter().filter_map(edit).collect());
    }
    if is_directive_name(word) {
        return Some(vec![Edit::insert(start + word.len(), ":")]);
    }
    // A line becomes a comment only if it is certainly not meant as a rule.
    let is_rule = matches!(text, [] | [b':' | b'/' | b'*', ..]) || nearest(word).is_some();
    (!is_rule).then(|| vec![Edit::insert(start, "# ")])
}

/// Returns the common key of findings with the same edits. It is the same for all lines in columns,
/// because they are converted together.
fn columns(file: &CheckedFile<'_>, finding: &Finding) -> Option<usize> {
    of_columns(file.text_of(finding)).map(|_| 0)
}

/// Returns the field in a line that a spreadsheet has split into columns: `Disallow;/x/`.
fn of_columns(text: &[u8]) -> Option<Vec<u8>> {
    let at = text.iter().position(|byte| matches!(byte, b':' | b';' | b',' | b'|' | b'='))?;
    let (name, value) = (text[..at].trim_ascii_end(), text[at + 1..].trim_ascii());
    let is_column = text[at] != b':' && is_directive_name(name);
    is_column.then(|| [name, b": ", unquoted(value).unwrap_or(value)].concat())
}

fn content<'a>(line: &Line<'a>) -> &'a [u8] {
    let (start, content) = (line.range.start, line.content());
    &line.bytes()[content.start - start..content.end - start]
}
