//! `search-engine-refused`: the policy refuses a search engine what the file disallows.

use crate::agent::{Category, Obeys};
use crate::check::Severity;
use crate::check::checked_file::CheckedFile;
use crate::check::lint::{Example, Lint, Pass};
use crate::check::quote::Quoted;
use crate::check::sink::Sink;
use crate::rules::{Access, Fallback};

pub(super) const LINT: Lint = Lint {
    code: "search-engine-refused",
    severity: Severity::Warning,
    summary: "a search engine is refused what the file disallows to it",
    why: "A search engine that obeys robots.txt meets a refusal only where its copy of the file is old or where \
          enforcing is mistaken, and a page that answers 403 leaves the index. Tagging shows the same requests and \
          costs nothing. Only a configuration can say so: without one this lint is silent.",
    bad: Example::new(b"User-agent: bingbot\nDisallow: /private/\n").where_refused(&["bingbot"]),
    good: Example::new(b"User-agent: GPTBot\nDisallow: /private/\n").where_refused(&["bingbot"]),
    pass: Pass::File(run),
};

fn run(file: &CheckedFile<'_>, sink: &mut Sink) {
    let registry = file.crawlers.registry();
    for crawler in file.site.refused.iter().filter_map(|name| registry.crawler(name)) {
        if crawler.category() != Category::Search || crawler.obeys_robots() == Obeys::No {
            continue;
        }
        let fallback = if crawler.obeys_star() == Obeys::No { Fallback::Nothing } else { Fallback::Star };
        let rules = file.rules().select(crawler.tokens(), fallback);
        if !rules.applies() {
            continue;
        }
        let group = file.robots.groups().find(|group| {
            let named = group.names().any(|name| {
                !name.is_star() && file.crawlers.named(name).is_some_and(|other| shares_token(other, crawler))
            });
            named || (rules.is_star() && group.is_global())
        });
        let rule = group.and_then(|group| {
            group.rules().find(|rule| rule.access() == Access::Disallow && matches!(rule.pattern(), [b'/' | b'*', ..]))
        });
        let Some(rule) = rule else { continue };
        sink.report(
            rule.range(),
            format_args!(
                "{} is refused what this rule disallows: refused pages leave its index",
                Quoted(crawler.name().as_bytes())
            ),
        )
        .help(format_args!("set the category \"search\" to \"tag\""));
    }
}

fn shares_token(named: &crate::agent::Crawler, crawler: &crate::agent::Crawler) -> bool {
    named.tokens().first().is_some_and(|own| crawler.tokens().contains(own))
}

#[cfg(test)]
mod tests {
    use crate::check::{Options, check};
    use crate::rules::RobotsTxt;

    fn lines(file: &str, refused: &[&str]) -> Vec<usize> {
        let report = check(&RobotsTxt::parse(file.as_bytes()), &Options::new().refused_crawlers(refused));
        let own = report.findings().iter().filter(|finding| finding.code() == "search-engine-refused");
        own.map(super::super::super::finding::Finding::line).collect()
    }

    #[test]
    fn only_search_engines_that_something_is_disallowed_to_are_found() {
        let file = "User-agent: Googlebot\nAllow: /\nDisallow: /x\n\nUser-agent: *\nDisallow: /y\n";
        assert_eq!(lines(file, &["Googlebot"]), [3]);
        assert_eq!(lines(file, &["bingbot", "GPTBot", "nobody"]), [6]);
        assert_eq!(lines("User-agent: bingbot\nDisallow:\n\nUser-agent: *\nDisallow: /\n", &["bingbot"]), [0; 0]);
        assert_eq!(lines(file, &[]), [0; 0]);
    }
}
