//! `host-in-path`: a pattern with a host before the path.

use crate::check::lint::*;
use crate::check::path_text::{HostEvidence, has_one_path, split_host};

pub(crate) const LINT: Lint = Lint {
    code: "host-in-path",
    severity: Severity::Warning,
    summary: "a host before a path",
    why: "A robots.txt applies only to its own host (RFC 9309, section 2.3), so its rules contain only paths. \
          \"/example.com/cart/\" matches paths in a folder with the name \"example.com\", not \
          \"https://example.com/cart/\". If the sitemaps show the host of the site, only this host is reported, \
          because other names are probably names of folders.",
    bad: Example::new(b"User-agent: *\nDisallow: /example.com/cart/\nSitemap: https://example.com/sitemap.xml\n"),
    good: Example::new(b"User-agent: *\nDisallow: /cart/\nSitemap: https://example.com/sitemap.xml\n"),
    pass: Pass::Field(run),
    fix: Some(LintFix::new(fix)),
};

fn run(file: &CheckedFile<'_>, field: &Field<'_>, sink: &mut Sink) {
    let Some((host, evidence, path)) = host_and_path(file, field.value).filter(|_| has_one_path(field)) else { return };
    let draft = sink.report(
        field.value_range.clone(),
        format_args!(
            "{pattern} matches a folder with the name {host}, not that host",
            pattern = Quoted(field.value),
            host = Quoted(host)
        ),
    );
    match evidence {
        HostEvidence::Own => draft.help(format_args!("write {}", Quoted(path))),
        _ => draft.help(format_args!(
            "write {path} if {host} is the host of this site",
            path = Quoted(path),
            host = Quoted(host)
        )),
    }
}

fn fix(file: &CheckedFile<'_>, finding: &Finding) -> Option<Vec<Edit>> {
    let (_, evidence, path) = host_and_path(file, file.text_of(finding))?;
    (evidence == HostEvidence::Own).then(|| vec![Edit::new(finding.span.clone(), path)])
}

/// Returns the host at the start of a pattern, the evidence that it is a host, and the path after
/// the host.
fn host_and_path<'p>(file: &CheckedFile<'_>, pattern: &'p [u8]) -> Option<(&'p [u8], HostEvidence, &'p [u8])> {
    let text = pattern.strip_prefix(b"//").or(pattern.strip_prefix(b"/"))?;
    let own = file.own_host();
    split_host(text, own)
        .filter(|(_, evidence, path)| path.len() > 1 && (own.is_none() || *evidence == HostEvidence::Own))
}
