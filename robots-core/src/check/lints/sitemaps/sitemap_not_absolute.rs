//! `sitemap-not-absolute`: a sitemap address that is not an absolute URL.

use crate::check::lint::*;
use crate::rules::is_absolute_url;

pub(crate) const LINT: Lint = Lint {
    code: "sitemap-not-absolute",
    severity: Severity::Warning,
    summary: "a sitemap that is not an absolute http or https URL",
    why: "The sitemap protocol requires the full URL of a sitemap, including scheme and host, because a sitemap may \
          be on another host. Search engines document that they ignore other values.",
    bad: Example::new(b"User-agent: *\nDisallow: /private/\nSitemap: /sitemap.xml\n"),
    good: Example::new(b"User-agent: *\nDisallow: /private/\nSitemap: https://example.com/sitemap.xml\n"),
    pass: Pass::Field(run),
    fix: Some(LintFix::new(fix)),
};

fn run(file: &CheckedFile<'_>, field: &Field<'_>, sink: &mut Sink) {
    let address = field.value;
    if field.directive != Directive::Sitemap || is_absolute_url(address) || directive_without_colon(field).is_some() {
        return;
    }
    if address.is_empty() {
        sink.report(field.range(), "the sitemap line has no address")
            .help("write the whole URL, such as \"Sitemap: https://YOUR-SITE/sitemap.xml\"");
        return;
    }
    sink.report(
        field.value_range.clone(),
        format_args!("{address} is not an absolute http or https URL", address = Quoted(address)),
    )
    .help_with(|| {
        let named = |host: &[u8]| memchr::memchr(b'.', host).is_some() && memchr::memchr(b':', host).is_none();
        let whole = match address {
            [b'/', b'/', _, ..] => [b"https:", address].concat(),
            [b'/', ..] => match file.own_origin() {
                Some(origin) => [origin, address].concat(),
                None => {
                    let address = [b"https://YOUR-SITE", address].concat();
                    return Some(format!("write the whole URL, such as {address}", address = Quoted(&address)));
                }
            },
            _ if named(&address[..memchr::memchr(b'/', address).unwrap_or(0)]) => [b"https://", address].concat(),
            // If the address is only a file name, the help line adds the origin of the site.
            _ if !address.contains(&b'/') && file.own_origin().is_some() => {
                [file.own_origin()?, b"/", address].concat()
            }
            _ => return Some("write the whole address, beginning with \"https://\"".to_owned()),
        };
        Some(format!("write {}", Quoted(&whole)))
    });
}

fn fix(file: &CheckedFile<'_>, finding: &Finding) -> Option<Vec<Edit>> {
    let field = file.field_of(finding)?;
    let address = field.value;
    let start = field.value_range.start;
    let host = &address[..memchr::memchr(b'/', address)?];
    match address {
        [b'/', b'/', _, ..] => Some(vec![Edit::insert(start, "https:")]),
        [b'/', ..] => Some(vec![Edit::insert(start, file.own_origin()?)]),
        // The value may be a URL without a scheme, such as `www.example.com/sitemap.xml`.
        _ => (memchr::memchr(b'.', host).is_some() && memchr::memchr(b':', host).is_none())
            .then(|| vec![Edit::insert(start, "https://")]),
    }
}
