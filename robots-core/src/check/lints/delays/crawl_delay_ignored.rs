//! `crawl-delay-ignored`: a delay before the first group, or in a group whose crawlers all ignore
//! delays.

use crate::check::directives::is_named;
use crate::check::lint::*;

pub(crate) const LINT: Lint = Lint {
    code: "crawl-delay-ignored",
    severity: Severity::Note,
    summary: "a Crawl-delay that no crawler obeys",
    why: "Crawl-delay is an extension. A line before the first user-agent line belongs to no group, so no crawler \
          obeys it. Google's crawlers have never obeyed Crawl-delay, and Yandex's crawlers stopped in 2018; both \
          operators document other ways to slow them down. A line in a group is reported only if all crawlers that \
          the group names ignore it according to the registry.",
    bad: Example::new(b"User-agent: Googlebot\nCrawl-delay: 10\nDisallow: /private/\n"),
    good: Example::new(b"User-agent: bingbot\nCrawl-delay: 10\nDisallow: /private/\n"),
    pass: Pass::File(run),
    fix: None,
};

fn run(file: &CheckedFile<'_>, sink: &mut Sink) {
    // Whether all crawlers that the current group has named so far ignore Crawl-delay; `None`
    // before the first name.
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
            _ if is_named(&field, "crawl-delay") && ignored.is_none() => {
                sink.report(field.range(), "Crawl-delay precedes every user-agent line: no crawler obeys it")
                    .help("move the line into a group, below its user-agent lines");
            }
            _ if is_named(&field, "crawl-delay") && ignored == Some(true) => {
                sink.report(field.range(), "all crawlers that this group names ignore Crawl-delay")
                    .help("limit the crawl rate in the search engine's console, or answer with status 429");
            }
            _ => {}
        }
    }
}

fn ignores(file: &CheckedFile<'_>, name: &[u8]) -> bool {
    let Some(token) = ProductToken::from_name(name) else { return false };
    file.crawlers.of_token(&token).is_some_and(|crawler| crawler.obeys_crawl_delay == Obeys::No)
}
