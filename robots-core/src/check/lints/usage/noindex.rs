//! `noindex`: a Noindex line, which no crawler obeys.

use crate::check::lint::*;

pub(crate) const LINT: Lint = Lint {
    code: "noindex",
    severity: Severity::Warning,
    summary: "a Noindex line, which no crawler reads",
    why: "Noindex in robots.txt was never documented. Google obeyed it until September 2019, and no other large \
          crawler ever did. To keep a page out of an index, let crawlers fetch it, and answer with an X-Robots-Tag \
          header or a robots meta element. A page that is only disallowed can still be listed by its address.",
    bad: Example::new(b"User-agent: *\nNoindex: /private/\nDisallow: /drafts/\n"),
    good: Example::new(b"User-agent: *\nDisallow: /drafts/\n"),
    pass: Pass::Named("noindex", run),
    fix: None,
};

fn run(_: &CheckedFile<'_>, field: &Field<'_>, sink: &mut Sink) {
    sink.report(field.name_range.clone(), "no crawler reads Noindex in a robots.txt")
        .help("answer with \"X-Robots-Tag: noindex\", and let crawlers fetch the page");
}
