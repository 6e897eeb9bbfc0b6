//! `path-without-slash`: a pattern that no path can match.

use crate::check::lint::*;
use crate::check::quote::unquoted;

pub(crate) const LINT: Lint = Lint {
    code: "path-without-slash",
    severity: Severity::Error,
    summary: "a path pattern that begins with neither \"/\" nor \"*\"",
    why: "Every path begins with \"/\" and patterns are compared from the first octet on (RFC 9309, section 2.2.2), so \
          a pattern that begins with anything but \"/\" or \"*\" matches no path. A few old crawlers add the slash; \
          the others ignore the rule.",
    bad: Example::new(b"User-agent: *\nDisallow: private/\n"),
    good: Example::new(b"User-agent: *\nDisallow: /private/\nDisallow: *.pdf$\nDisallow:\n"),
    pass: Pass::Field(run),
    fix: Some(LintFix::new(fix)),
};

fn run(_: &CheckedFile<'_>, field: &Field<'_>, sink: &mut Sink) {
    let path = field.value;
    if !is_rule(field) || matches!(path, [] | [b'/' | b'*', ..]) || is_url(path) {
        return;
    }
    let draft = sink.report(
        field.value_range.clone(),
        format_args!("{} begins with neither \"/\" nor \"*\": it matches no path", Quoted(path)),
    );
    draft.help(format_args!("write {}", Quoted(&with_slash(path))));
}

fn fix(file: &CheckedFile<'_>, finding: &Finding) -> Option<Vec<Edit>> {
    let path = file.text_of(finding);
    Some(vec![match unquoted(path) {
        None if !path.starts_with(b"^/") => Edit::insert(finding.span.start, "/"),
        _ => Edit::new(finding.span.clone(), with_slash(path)),
    }])
}

/// The path that is meant: quotes around it are none of it, nor is the sign with which an expression begins.
fn with_slash(path: &[u8]) -> Vec<u8> {
    let path = unquoted(path).unwrap_or(path);
    let path = path.strip_prefix(b"^").filter(|rest| rest.starts_with(b"/")).unwrap_or(path);
    let is_whole = matches!(path, [b'/' | b'*', ..]) || is_url(path);
    if is_whole { path.to_vec() } else { [b"/", path].concat() }
}
