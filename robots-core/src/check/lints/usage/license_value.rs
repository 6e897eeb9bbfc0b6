//! `license-value`: a License line that is not an absolute URL.

use crate::check::lint::*;

pub(crate) const LINT: Lint = Lint {
    code: "license-value",
    severity: Severity::Warning,
    summary: "a License line that is not an absolute URL",
    why: "License, from Really Simple Licensing, contains the absolute URL of the document with the terms of use. A \
          License line before the first group applies to the whole site. For the crawlers of a group, a License line \
          in the group replaces the License lines for the whole site. Crawlers ignore values that are not absolute \
          URLs.",
    bad: Example::new(b"License: /license.xml\nUser-agent: *\nDisallow: /private/\n"),
    good: Example::new(b"License: https://example.com/license.xml\nUser-agent: *\nDisallow: /private/\n"),
    pass: Pass::Named("license", run),
    fix: Some(LintFix::new(fix)),
};

fn run(_: &CheckedFile<'_>, field: &Field<'_>, sink: &mut Sink) {
    if !is_url(field.value) {
        let span = field.value_or_name();
        sink.report(
            span,
            format_args!("{address} is not an absolute http or https URL", address = Quoted(field.value)),
        )
        .help("write the whole address, beginning with \"https://\"");
    }
}

fn fix(file: &CheckedFile<'_>, finding: &Finding) -> Option<Vec<Edit>> {
    let address = file.text_of(finding);
    let origin = if matches!(address, [b'/', b'/', ..]) { b"https:".to_vec() } else { file.own_origin()?.to_vec() };
    address.starts_with(b"/").then(|| vec![Edit::insert(finding.span.start, origin)])
}
