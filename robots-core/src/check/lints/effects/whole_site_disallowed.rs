//! `whole-site-disallowed`: a group whose crawlers may not fetch any page.

use std::collections::HashMap;

use crate::check::lint::*;
use crate::check::reach::{Extent, Reach};

pub(crate) const LINT: Lint = Lint {
    code: "whole-site-disallowed",
    severity: Severity::Warning,
    summary: "the whole site is blocked for a crawler, or for every crawler",
    why: "\"Disallow: /\" blocks the whole site unless other rules allow more than the home page; \"Allow: /$\" allows \
          only the home page. In a group for \"*\", \"Disallow: /\" blocks all crawlers that have no group, including \
          search engines: many sites were removed from an index because the file of a staging site was published. For \
          a named crawler that does not belong to a search engine that people use, the block is usually intended, so \
          the finding is only a note.",
    bad: Example::new(b"User-agent: *\nDisallow: /\n"),
    good: Example::new(b"User-agent: *\nDisallow: /private/\n"),
    pass: Pass::File(run),
    fix: None,
};

const HELP: &str = "to allow the whole site, write \"Disallow:\" without a path";

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
    let everyone = everyone.blocking_rule();
    if let Some((rule, extent)) = everyone {
        let message = format_args!("{extent} is disallowed for every crawler without a group of its own");
        sink.report(rule.range(), message).help(HELP);
    }
    // All named crawlers share one finding, because lists of unwanted crawlers are common and often
    // long.
    let mut shut: Vec<(Name<'_>, Rule<'_>, Extent)> = named
        .into_values()
        .filter_map(|(name, reach)| reach.blocking_rule().map(|(rule, extent)| (name, rule, extent)))
        .filter(|(_, rule, _)| everyone.is_none_or(|(of_everyone, _)| of_everyone.range() != rule.range()))
        .collect();
    shut.sort_by_key(|(name, ..)| name.range().start);
    let is_search = |(name, ..): &(Name<'_>, Rule<'_>, Extent)| {
        let crawler = file.crawlers.named(*name);
        crawler.is_some_and(|crawler| crawler.category == Category::Search && crawler.is_index_engine)
    };
    let (search, others): (Vec<_>, Vec<_>) = shut.into_iter().partition(is_search);
    for (shut, severity) in [(search, Severity::Warning), (others, Severity::Note)] {
        let Some((first, rule, extent)) = shut.first() else { continue };
        let names = quoted_list(shut.iter().map(|(name, ..)| name.value()));
        let effect = if severity == Severity::Warning { ": the site will be dropped from the index" } else { "" };
        // If the disallowed extents differ, the message names the smallest one, because it is
        // disallowed for all of these crawlers.
        let all = shut.iter().fold(*extent, |all, (.., extent)| all.max(*extent));
        let draft = sink.report_at(severity, rule.range(), format_args!("{all} is disallowed for {names}{effect}"));
        let draft = draft.of_agent(first.value());
        if severity == Severity::Warning {
            draft.help(HELP);
        }
    }
}
