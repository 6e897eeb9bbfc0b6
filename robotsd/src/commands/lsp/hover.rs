//! Hovers: facts about a crawler, or the crawlers and URLs that a rule applies to. This module also
//! finds the groups that apply to a crawler.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::SystemTime;

use serde_json::{Value, json};
use tower_robots::agent::{Agent, Crawler, NamedAs, Obeys, Registry};
use tower_robots::check::Page;
use tower_robots::internals::first_few;
use tower_robots::rules::{
    Access, Fallback, Group, Name, PathPattern, ProductToken, Reading, RequestPath, Rule, RuleSet, Selection,
};

use super::document::{Document, Item};
use super::protocol::{MarkupKind, Position};
use crate::commands::agents::AgentSummary;
use crate::evaluator::Evaluator;
use crate::input;
use crate::names::crawler_hint;
use crate::pages::read_urls;
use crate::render::{plural, printable, printable_path};

const MAX_SHOWN: usize = 8;

/// The configured list of URLs, which is read again when its file changes.
#[derive(Debug)]
pub(super) struct UrlList {
    path: PathBuf,
    modified: Option<SystemTime>,
    pages: Result<Vec<Page>, String>,
}

impl UrlList {
    pub(super) const fn new(path: PathBuf) -> Self {
        Self { path, modified: None, pages: Ok(Vec::new()) }
    }

    fn pages(&mut self) -> &Result<Vec<Page>, String> {
        let modified = std::fs::metadata(&self.path).and_then(|metadata| metadata.modified()).ok();
        if modified.is_none() || self.modified != modified {
            self.pages = read_urls(&self.path, input::read_configured, &[]);
            self.modified = modified;
        }
        &self.pages
    }
}

pub(super) fn hover(
    document: &Document,
    position: Position,
    kind: MarkupKind,
    urls: Option<&mut UrlList>,
) -> Option<Value> {
    let (text, span) = match document.item_at(position)? {
        Item::Name(name) => (about_name(document.evaluator(), name, kind), name.range()),
        Item::Rule(rule) => (about_rule(document.evaluator(), rule, kind, urls), rule.range()),
    };
    Some(json!({ "contents": { "kind": kind.name(), "value": text }, "range": document.range(span) }))
}

fn about_name(evaluator: &Evaluator, name: Name<'_>, kind: MarkupKind) -> String {
    let value = String::from_utf8_lossy(name.value());
    let (named_as, agents) = evaluator.resolve(&value);
    let agent = agents.first();
    let mut text = match (named_as, agent.registered()) {
        (NamedAs::Star, _) => "Every crawler that is not named in any group.".to_owned(),
        (_, Some(crawler)) => about_crawler(crawler, kind),
        _ => {
            let hint = crawler_hint(value.trim(), &evaluator.settings.registry, std::iter::empty());
            let hint = hint.map_or_else(|| ".".to_owned(), |hint| format!(": {hint}"));
            format!("{} is not in the registry{hint}", kind.code(&printable(&*value)))
        }
    };
    if named_as != NamedAs::Star {
        let summary = AgentSummary::new(agent, agent.fallback() == Fallback::Star).to_string();
        let _ = write!(text, "\n\n{}", kind.code(&summary));
    }
    let groups = deciding_groups(evaluator, agent, named_as);
    if groups.len() > 1 {
        let lines: Vec<_> = groups.iter().map(|name| name.line().to_string()).collect();
        let _ = write!(text, "\n\nObeys the groups in lines {} as one group.", lines.join(", "));
    }
    text
}

pub(super) fn operator_of(crawler: &Crawler) -> &str {
    if crawler.operator.is_empty() { "operator unknown" } else { &crawler.operator }
}

fn about_crawler(crawler: &Crawler, kind: MarkupKind) -> String {
    let Crawler { name, category, obeys_robots, obeys_star, obeys_crawl_delay, .. } = crawler;
    let operator = operator_of(crawler);
    let (name, star) = (kind.strong(name), kind.code("*"));
    let mut text = format!("{name} ({operator}): {category}\n\n");
    let _ = write!(
        text,
        "Obeys robots.txt: {obeys_robots}. Obeys {star}: {obeys_star}. Obeys Crawl-delay: {obeys_crawl_delay}."
    );
    if crawler.is_control {
        text.push_str("\n\nA control token: it is never sent in a request.");
    }
    if crawler.is_index_engine {
        text.push_str("\n\nIt fetches pages for a search engine that people use.");
    }
    if let Some(source) = &crawler.source {
        let _ = write!(text, "\n\n{}", kind.link("Documentation of the operator", source));
        if let Some(day) = &crawler.checked_on {
            let _ = write!(text, ", checked on {day}");
        }
    }
    text
}

fn about_rule(evaluator: &Evaluator, rule: Rule<'_>, kind: MarkupKind, urls: Option<&mut UrlList>) -> String {
    let (group, rules) = (rule.group(), &evaluator.rules);
    let verb = match rule.access() {
        Access::Allow => "Allows",
        Access::Disallow if rule.pattern().is_empty() => "Disallows nothing",
        Access::Disallow => "Disallows",
    };
    let pattern = match rule.pattern() {
        b"" => String::new(),
        pattern => format!(" {}", kind.code(&printable(pattern))),
    };
    let mut text =
        format!("{verb}{pattern} for {}.", obeying_crawlers(rules, &evaluator.settings.registry, group, kind));
    if let Some(urls) = urls {
        let name = kind.code(&printable_path(&urls.path));
        let matched_urls = match urls.pages() {
            Ok(pages) => matched_urls(rules, rule, pages, &name),
            Err(error) => format!("The list of URLs could not be read: {}", kind.code(&printable(error))),
        };
        let _ = write!(text, "\n\n{matched_urls}");
    }
    text
}

/// Lists the crawlers that obey a group.
fn obeying_crawlers(rules: &RuleSet, registry: &Registry, group: Group<'_>, kind: MarkupKind) -> String {
    let obeys = |crawler: &&Crawler| {
        let fallback = if crawler.obeys_star == Obeys::No { Fallback::Nothing } else { Fallback::Star };
        has_group(rules.select(&crawler.tokens, fallback), group)
    };
    let crawlers: Vec<_> = registry.crawlers().filter(obeys).collect();
    let (disobeying, obeying_crawlers): (Vec<_>, Vec<_>) =
        crawlers.iter().partition(|crawler| crawler.obeys_robots == Obeys::No);
    let names = |crawlers: &[&&Crawler]| first_few(crawlers.iter().map(|crawler| &crawler.name), MAX_SHOWN);
    let unregistered = group.names().filter(|name| !name.is_star() && !is_registered(registry, *name));
    let unregistered: Vec<_> = unregistered.map(|name| kind.code(&printable(name.value()))).collect();
    let mut parts = Vec::new();
    if group.is_global() {
        parts.push("every crawler that is not named in any group".to_owned());
    }
    if !obeying_crawlers.is_empty() {
        parts.push(format!(
            "{} of the registry ({})",
            plural(obeying_crawlers.len(), "crawler"),
            names(&obeying_crawlers)
        ));
    }
    if !unregistered.is_empty() {
        parts.push(first_few(unregistered.iter(), MAX_SHOWN));
    }
    let mut text = if parts.is_empty() { "no known crawler".to_owned() } else { parts.join(", and ") };
    if !disobeying.is_empty() {
        let _ = write!(
            text,
            "; according to their operators, these crawlers do not obey robots.txt: {}",
            names(&disobeying)
        );
    }
    text
}

fn has_group(selection: Selection<'_>, group: Group<'_>) -> bool {
    selection.groups().any(|selected| selected.line() == group.line())
}

fn is_registered(registry: &Registry, name: Name<'_>) -> bool {
    ProductToken::from_name(name.value()).is_some_and(|token| registry.knows(&token))
}

/// States how many URLs of the list a rule matches, and how many of them it decides.
fn matched_urls(rules: &RuleSet, rule: Rule<'_>, pages: &[Page], list: &str) -> String {
    let pattern = PathPattern::new(rule.pattern(), Reading::Standard);
    let tokens: Vec<_> = rule.group().names().filter_map(|name| ProductToken::from_name(name.value())).collect();
    let fallback = if rule.group().is_global() { Fallback::Star } else { Fallback::Nothing };
    let selection = rules.select(&tokens[..tokens.len().min(1)], fallback);
    let (mut matches, mut decides) = (0, 0);
    for page in pages.iter().filter(|_| !rule.pattern().is_empty()) {
        let path = RequestPath::new(page.target());
        matches += usize::from(pattern.matches(path.as_bytes()));
        decides += usize::from(selection.verdict(&path).line() == Some(rule.line()));
    }
    format!(
        "Matches {matches} of {} in {list}, and is the deciding rule for {decides} of them.",
        plural(pages.len(), "URL")
    )
}

/// Returns one name for each group that the agent obeys: the name in the group that matches the
/// agent.
fn deciding_groups<'e>(evaluator: &'e Evaluator, agent: &Agent, named_as: NamedAs) -> Vec<Name<'e>> {
    let fallback = if named_as == NamedAs::Star { Fallback::Star } else { agent.fallback() };
    let selection = evaluator.rules.select(agent.tokens(), fallback);
    let selects_agent = |name: &Name<'_>| match selection.is_star() {
        true => name.is_star(),
        false => ProductToken::from_name(name.value()).is_some_and(|token| agent.tokens().contains(&token)),
    };
    let name_of = |group: Group<'e>| group.names().find(selects_agent).or_else(|| group.names().next());
    selection.groups().filter_map(name_of).collect()
}

pub(super) fn definition(document: &Document, position: Position) -> Vec<Value> {
    let Some(Item::Name(name)) = document.item_at(position) else { return Vec::new() };
    let evaluator = document.evaluator();
    let (named_as, agents) = evaluator.resolve(&String::from_utf8_lossy(name.value()));
    let groups = deciding_groups(evaluator, agents.first(), named_as);
    groups.iter().map(|name| json!({ "uri": document.uri, "range": document.range(name.range()) })).collect()
}
