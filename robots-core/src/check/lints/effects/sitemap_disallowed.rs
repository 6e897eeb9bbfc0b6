//! `sitemap-disallowed`: a sitemap that the file itself disallows.

use crate::check::lint::*;
use crate::rules::Authority;

pub(crate) const LINT: Lint = Lint {
    code: "sitemap-disallowed",
    severity: Severity::Warning,
    summary: "a sitemap that the file itself disallows",
    why: "The rules of the file also apply to sitemaps. If the group for \"*\" disallows a sitemap, only crawlers \
          with a group of their own can fetch it. Sitemaps on other hosts are not checked, because the rules of \
          those hosts apply to them. If the host of the site is unknown, sitemaps are checked only if all of them \
          have the same host.",
    bad: Example::new(b"User-agent: *\nDisallow: /feeds/\nSitemap: https://example.com/feeds/sitemap.xml\n"),
    good: Example::new(
        b"User-agent: *\nDisallow: /feeds/\nAllow: /feeds/sitemap.xml\nSitemap: https://example.com/feeds/sitemap.xml\n",
    ),
    pass: Pass::File(run),
    fix: Some(LintFix::new(fix)),
};

fn run(file: &CheckedFile<'_>, sink: &mut Sink) {
    let Some(host) = host_of_site(file) else { return };
    for sitemap in file.robots.sitemaps().filter(|sitemap| is_url(sitemap.value) && has_host(sitemap.value, host)) {
        let selection = file.rules().select(&[], Fallback::Star);
        let verdict = selection.verdict(&RequestPath::new(sitemap.value));
        if let (Access::Disallow, Some(rule)) = (verdict.access(), verdict.rule()) {
            let (line, pattern) = (rule.line(), Quoted(rule.pattern()));
            sink.report(
                sitemap.range,
                format_args!(
                    "line {line} disallows {pattern}: crawlers without a group of their own may not read the sitemap"
                ),
            )
            .related_to(line)
            .help_with(|| {
                let path = RequestPath::new(sitemap.value);
                Some(format!("add {}", Quoted(&[b"Allow: ", path.as_bytes()].concat())))
            });
        }
    }
}

fn host_of_site<'f>(file: &'f CheckedFile<'_>) -> Option<&'f [u8]> {
    if let Some(host) = &file.site.host {
        return Some(Authority::of_host_field(host.as_bytes()).host);
    }
    let mut sitemaps = file.robots.sitemaps().filter(|sitemap| is_url(sitemap.value));
    let (_, authority, _) = Authority::of_url(sitemaps.next()?.value)?;
    sitemaps.all(|sitemap| has_host(sitemap.value, authority.host)).then_some(authority.host)
}

fn has_host(url: &[u8], host: &[u8]) -> bool {
    Authority::of_url(url).is_some_and(|(_, authority, _)| authority.host.eq_ignore_ascii_case(host))
}

fn fix(file: &CheckedFile<'_>, finding: &Finding) -> Option<Vec<Edit>> {
    let path = RequestPath::new(file.text_of(finding));
    let line = file.rules().select(&[], Fallback::Star).verdict(&path).line()?;
    let allow = [b"Allow: ", path.as_bytes()].concat();
    Some(vec![file.lines_after(line - 1, [allow.as_slice()])])
}
