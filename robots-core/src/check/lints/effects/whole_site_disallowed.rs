//! `whole-site-disallowed`: a group in which nothing is left to fetch.

use std::collections::HashMap;

use crate::check::lint::*;
use crate::check::reach::{Extent, Reach, Shut};

pub(crate) const LINT: Lint = Lint {
    code: "whole-site-disallowed",
    severity: Severity::Warning,
    summary: "a crawler, or every crawler, is shut out of the whole site",
    why: "\"Disallow: /\" with nothing allowed, or the home page alone (\"Allow: /$\"), shuts a crawler out of the whole site. For \"*\" that is every crawler \
          without a group of its own, search engines included: a staging file that went live has cost many a site its \
          place in the index. For a named crawler that is no search engine with an index that people use, it is mostly meant, so it is only noted.",
    bad: Example::new(b"User-agent: *\nDisallow: /\n"),
    good: Example::new(b"User-agent: *\nDisallow: /private/\n"),
    pass: Pass::File(run),
    fix: None,
};

const HELP: &str = "\"Disallow:\" without a path disallows nothing";

fn run(file: &CheckedFile<'_>, sink: &mut Sink) {
    let mut everyone = Reach::default();
    let mut named: HashMap<ProductToken, (Name<'_>, Reach<'_>)> = HashMap::new();
    for group in file.robots.groups() {
        let reach = Reach::of(group);
        for name in group.names() {
            if name.is_star() {
                everyone = everyone.merge(reach);
            } else if let Some(token) = ProductToken::from_name(name.value()) {
                let (_, merged) = named.entry(token).or_insert_with(|| (name, Reach::default()));
                *merged = merged.merge(reach);
            }
        }
    }
    let everyone = everyone.shut_by();
    if let Some(everyone) = everyone {
        sink.report(
            everyone.rule.range(),
            format_args!("{} is disallowed for every crawler without a group of its own", everyone.extent),
        )
        .help(HELP);
    }
    // One finding for all of them: a list of unwanted crawlers is ordinary, and often long.
    let mut shut: Vec<(Name<'_>, Shut<'_>)> = named
        .into_values()
        .filter_map(|(name, reach)| Some((name, reach.shut_by()?)))
        .filter(|(_, shut)| everyone.is_none_or(|everyone| everyone.rule.range() != shut.rule.range()))
        .collect();
    shut.sort_by_key(|(name, _)| name.range().start);
    let is_search = |(name, _): &(Name<'_>, Shut<'_>)| {
        let crawler = file.crawlers.named(*name);
        crawler.is_some_and(|crawler| crawler.category == Category::Search && crawler.is_index_engine)
    };
    let (search, others): (Vec<_>, Vec<_>) = shut.into_iter().partition(is_search);
    for (shut, severity) in [(search, Severity::Warning), (others, Severity::Note)] {
        let Some((first, by)) = shut.first() else { continue };
        let names = quoted_list(shut.iter().map(|(name, _)| name.value()));
        let effect = if severity == Severity::Warning { ": the site will leave the index" } else { "" };
        let all = extent(&shut);
        let draft = sink.report_at(severity, by.rule.range(), format_args!("{all} is disallowed for {names}{effect}"));
        let draft = draft.of_agent(first.value());
        if severity == Severity::Warning {
            draft.help(HELP);
        }
    }
}

/// The extent that holds for all of them.
fn extent(shut: &[(Name<'_>, Shut<'_>)]) -> Extent {
    let is_all = shut.iter().all(|(_, shut)| shut.extent == Extent::All);
    if is_all { Extent::All } else { Extent::AllButHomePage }
}
