//! `crawl-delay-ignored`: a delay for crawlers that ignore it.

use crate::check::directives::is_named;
use crate::check::lint::*;

pub(crate) const LINT: Lint = Lint {
    code: "crawl-delay-ignored",
    severity: Severity::Note,
    summary: "a Crawl-delay that none of the named crawlers reads",
    why: "Crawl-delay is an extension. Google's crawlers never read it, and Yandex's have not since 2018; both \
          document other ways to slow them down. The registry knows which crawlers ignore it. The line is reported \
          only if the group names no other crawler.",
    bad: Example::new(b"User-agent: Googlebot\nCrawl-delay: 10\nDisallow: /private/\n"),
    good: Example::new(b"User-agent: bingbot\nCrawl-delay: 10\nDisallow: /private/\n"),
    pass: Pass::File(run),
    fix: None,
};

fn run(file: &CheckedFile<'_>, sink: &mut Sink) {
    // Whether all names of the group so far belong to crawlers that ignore it; `None` before any
    // name.
    let mut ignored: Option<bool> = None;
    let mut in_names = false;
    for (_, field) in file.fields() {
        match field.directive {
            Directive::UserAgent => {
                let ignores = ignores(file, field.value);
                ignored = Some(ignores && (!in_names || ignored.unwrap_or(true)));
                in_names = true;
            }
            Directive::Allow | Directive::Disallow => in_names = false,
            _ if is_named(&field, "crawl-delay") && ignored == Some(true) => {
                sink.report(field.range(), "none of the crawlers in this group reads Crawl-delay")
                    .help("slow it down in the search engine's own console, or answer 429");
            }
            _ => {}
        }
    }
}

/// Reports whether the name is that of a crawler documented to ignore the line.
fn ignores(file: &CheckedFile<'_>, name: &[u8]) -> bool {
    let Some(token) = ProductToken::from_name(name) else { return false };
    file.crawlers.of_token(&token).is_some_and(|crawler| crawler.obeys_crawl_delay == Obeys::No)
}
