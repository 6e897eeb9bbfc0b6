//! `space-in-path`: a blank inside a pattern.

use crate::check::lint::*;
use crate::check::path_text::joined_paths;

pub(crate) const LINT: Lint = Lint {
    code: "space-in-path",
    severity: Severity::Warning,
    summary: "a blank inside a path pattern",
    why: "A path pattern holds no blank (RFC 9309, section 2.2), and a request sends one as \"%20\". Crawlers that escape \
          pattern and path alike before they compare them (section 2.2.2), as this matcher does, read \"/a b\" as \
          \"/a%20b\"; the reference parser compares octets as they stand, so that the pattern matches nothing. Two paths \
          on one line are one pattern with a blank in it.",
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
            "{} holds a blank, which a request has as \"%20\": not every crawler reads the pattern so",
            Quoted(pattern)
        ),
    );
    let (path, rest) = (&pattern[..at], pattern[at..].trim_ascii_start());
    let words: Vec<&[u8]> = pattern.split(is_blank).filter(|word| !word.is_empty()).collect();
    let joined = words.join(&b"%20"[..]);
    if begins_path(rest) {
        draft.help("give each path a line of its own");
    } else if is_whole(path) {
        draft.help(format_args!("write {}, or \"#\" in front of {} if it is a comment", Quoted(&joined), Quoted(rest)));
    } else {
        draft.help(format_args!("write {}", Quoted(&joined)));
    }
}

fn fix(file: &CheckedFile<'_>, finding: &Finding) -> Option<Vec<Edit>> {
    let field = file.field_of(finding)?;
    let mut text: Vec<u8> = Vec::new();
    let mut last: &[u8] = b"";
    for word in field.value.split(is_blank).filter(|word| !word.is_empty()) {
        if begins_path(word) && !text.is_empty() {
            text.extend_from_slice(file.line_end());
            text.extend_from_slice(field.name);
            text.extend_from_slice(b": ");
        } else if is_whole(last) {
            return None;
        } else if !text.is_empty() {
            text.extend_from_slice(b"%20");
        }
        text.extend_from_slice(word);
        last = word;
    }
    Some(vec![Edit::new(field.value_range, text)])
}

const fn begins_path(text: &[u8]) -> bool {
    matches!(text, [b'/', ..] | [b'*', b'/' | b'.', ..])
}

/// Whether a path is whole, so that words behind it may be a remark (`/private/ for staff`).
const fn is_whole(path: &[u8]) -> bool {
    matches!(path, [.., b'/' | b'*' | b'$'])
}

const fn is_blank(octet: &u8) -> bool {
    matches!(octet, b' ' | b'\t' | 0x0B | 0x0C)
}
