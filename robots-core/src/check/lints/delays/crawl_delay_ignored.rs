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
          operators document other ways to limit the rate of their crawlers. A line in a group is reported only if, \
          according to the registry, all crawlers that the group names ignore Crawl-delay.",
    bad: Example::new(b"User-agent: Googlebot\nCrawl-delay: 10\nDisallow: /private/\n"),
    good: Example::new(b"User-agent: bingbot\nCrawl-delay: 10\nDisallow: /private/\n"),
    pass: Pass::File(run),
    fix: None,
};

fn run(file: &CheckedFile<'_>, sink: &mut Sink) {
    let is_ignored: Vec<bool> =
        file.robots.groups().map(|group| group.names().all(|name| ignores(file, name.value()))).collect();
    for (_, field, begun) in file.robots.fields().filter(|(_, field, _)| is_named(field, "crawl-delay")) {
        match begun.checked_sub(1) {
            None => {
                sink.report(field.range(), "Crawl-delay is above the first user-agent line: no crawler obeys it")
                    .help("move the line into a group, below its user-agent lines");
            }
            Some(group) if is_ignored[group] => {
                sink.report(field.range(), "all crawlers that this group names ignore Crawl-delay")
                    .help("limit the crawl rate in the search engine's console, or answer with status 429");
            }
            Some(_) => {}
        }
    }
}

fn ignores(file: &CheckedFile<'_>, name: &[u8]) -> bool {
    let Some(token) = ProductToken::from_name(name) else { return false };
    file.crawlers.of_token(&token).is_some_and(|crawler| crawler.obeys_crawl_delay == Obeys::No)
}
