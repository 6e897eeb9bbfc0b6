//! `space-in-path`: a space inside a pattern.

use crate::check::lint::*;
use crate::check::lints::paths::several_paths;
use crate::check::path_text::{is_blank, is_joint, is_path, joined_paths};

pub(crate) const LINT: Lint = Lint {
    code: "space-in-path",
    severity: Severity::Warning,
    summary: "spaces in a path pattern",
    why: "Path patterns must not contain spaces (RFC 9309, section 2.2), and requests contain \"%20\" instead. Some \
          crawlers, and servers that enforce the file, escape pattern and path before comparing them (section 2.2.2). \
          For them, \"/a b\" means \"/a%20b\". The reference parser compares the bytes as they are, so the pattern \
          matches nothing. Two paths on one line are a single pattern with a space.",
    bad: Example::new(b"User-agent: *\nDisallow: /old /new\n"),
    good: Example::new(b"User-agent: *\nDisallow: /old\nDisallow: /new\nDisallow: /my%20files/\n"),
    pass: Pass::Field(run),
    fix: Some(LintFix::new(fix)),
};

fn run(_: &CheckedFile<'_>, field: &Field<'_>, sink: &mut Sink) {
    let pattern = field.value;
    if !is_rule(field) || !matches!(pattern, [b'/' | b'*', ..]) || joined_paths(pattern).is_some() {
        return;
    }
    let Some(at) = pattern.iter().position(is_blank) else { return };
    let start = field.value_range.start + at;
    let draft = sink.report(
        start..start + 1,
        format_args!(
            "{pattern} contains a space, but requests contain \"%20\", and some crawlers do not treat the two as \
             equal",
            pattern = Quoted(pattern)
        ),
    );
    let words: Vec<_> = words(pattern).collect();
    let (path, rest) = (words[0], pattern[at..].trim_ascii_start());
    let joined = Quoted(&one_path(&words)).to_string();
    if words[1..].iter().any(|word| is_path(word)) {
        draft.help("write one path per line");
    } else if path.last().is_some_and(is_joint) {
        draft.help(format_args!("write {joined}, or write one path per line"));
    } else if is_whole(path) {
        draft.help(format_args!("write {joined}, or \"#\" before {rest} if it is a comment", rest = Quoted(rest)));
    } else {
        draft.help(format_args!("write {joined}"));
    }
}

fn fix(file: &CheckedFile<'_>, finding: &Finding) -> Option<Vec<Edit>> {
    if let lines @ Some(_) = several_paths::fix(file, finding) {
        return lines;
    }
    let field = file.field_of(finding)?;
    let words: Vec<_> = words(field.value).collect();
    let (last, front) = words.split_last()?;
    let is_open = |word: &&[u8]| is_whole(word) || word.last().is_some_and(is_joint);
    let is_one = !front.iter().any(is_open) && !front[1..].iter().chain([last]).any(|word| is_path(word));
    is_one.then(|| vec![Edit::new(field.value_range, one_path(&words))])
}

fn words(pattern: &[u8]) -> impl Iterator<Item = &[u8]> {
    pattern.split(is_blank).filter(|word| !word.is_empty())
}

/// Joins words into one path with escaped spaces. A space after the first slash is treated as a
/// typing error and removed.
fn one_path(words: &[&[u8]]) -> Vec<u8> {
    match words {
        [b"/", rest @ ..] => [b"/".as_slice(), &rest.join(&b"%20"[..])].concat(),
        words => words.join(&b"%20"[..]),
    }
}

/// Reports whether a path seems complete. Words after a complete path may be a remark
/// (`/private/ for staff`).
const fn is_whole(path: &[u8]) -> bool {
    matches!(path, [.., b'/' | b'*' | b'$'])
}
