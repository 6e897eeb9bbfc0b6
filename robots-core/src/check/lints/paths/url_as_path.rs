//! `url-as-path`: a whole URL instead of a path.

use crate::check::lint::*;
use crate::check::path_text::{has_one_path, is_same_host};
use crate::rules::Authority;

pub(crate) const LINT: Lint = Lint {
    code: "url-as-path",
    severity: Severity::Error,
    summary: "a whole URL as a path pattern",
    why: "Rules contain only paths, because a robots.txt applies only to its own host (RFC 9309, sections 2.2.2 and \
          2.3). A pattern that begins with \"https://\" matches no path.",
    bad: Example::new(b"User-agent: *\nDisallow: https://example.com/private/\n"),
    good: Example::new(b"User-agent: *\nDisallow: /private/\n"),
    pass: Pass::Field(run),
    fix: Some(LintFix::new(fix)),
};

fn run(file: &CheckedFile<'_>, field: &Field<'_>, sink: &mut Sink) {
    if has_one_path(field) && is_url(field.value) {
        let url = field.value;
        let draft = sink.report(
            field.value_range.clone(),
            format_args!("{url} is a URL and not a path, so it matches nothing", url = Quoted(url)),
        );
        let path = RequestPath::verbatim(url);
        let path = Quoted(path.as_bytes());
        match other_host(file, url) {
            None => draft.help(format_args!("write only the path: {path}")),
            Some(host) => draft.help(format_args!(
                "if {host} is this site, write only the path, {path}; rules for another host belong in the \
                 robots.txt of that host",
                host = Quoted(host)
            )),
        }
    }
}

fn fix(file: &CheckedFile<'_>, finding: &Finding) -> Option<Vec<Edit>> {
    file.with_value(finding, |url| match other_host(file, url) {
        Some(_) => None,
        None => Some(RequestPath::verbatim(url).as_bytes().to_vec()),
    })
}

/// Returns the host of a URL if it may be the host of another site. If the host of the checked site
/// is unknown, the URL is assumed to belong to this site, unless its path is `/` or `/*`.
fn other_host<'u>(file: &CheckedFile<'_>, url: &'u [u8]) -> Option<&'u [u8]> {
    let (_, authority, _) = Authority::of_url(url)?;
    let is_own = match file.own_host() {
        Some(own) => is_same_host(authority.host, own),
        None => !matches!(RequestPath::verbatim(url).as_bytes(), b"/" | b"/*"),
    };
    (!is_own).then_some(authority.host)
}
