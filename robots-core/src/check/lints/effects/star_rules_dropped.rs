//! `star-rules-dropped`: a group that is written as if it were added to the group for `*`.

use std::collections::{BTreeSet, HashSet};

use crate::check::checked_file::compared;
use crate::check::diff::{SiteExtent, shortest_path};
use crate::check::lint::*;
use crate::check::reach::{closes_part, is_every_path};
use crate::rules::MatchBudget;

pub(crate) const LINT: Lint = Lint {
    code: "star-rules-dropped",
    severity: Severity::Warning,
    summary: "a group for one crawler without any rule of the group for \"*\"",
    why: "A crawler that a group names obeys that group alone (RFC 9309, section 2.2.1): it does not add the rules of the group \
          for \"*\" to its own. A group that only adds a rule or a delay for one crawler so opens to it all that is \
          closed to the others. Where that is one rule of \"*\", it is only noted. What says that all is open (\"Disallow:\" without a \
          path) is meant.",
    bad: Example::new(b"User-agent: *\nDisallow: /cart/\nDisallow: /login/\n\nUser-agent: Googlebot\nDisallow: /drafts/\n"),
    good: Example::new(
        b"User-agent: *\nDisallow: /cart/\nDisallow: /login/\n\nUser-agent: Googlebot\nDisallow: /drafts/\nDisallow: /cart/\n",
    ),
    pass: Pass::File(run),
    fix: None,
};

/// Rules of `*` that are looked at: a bound on the cost, as are the budgets of verdicts.
const MOST_RULES: usize = 64;

fn run(file: &CheckedFile<'_>, sink: &mut Sink) {
    let star = file.rules().select(&[], Fallback::Star);
    // A file that closes the site to others names those that it lets in.
    if !SiteExtent::is_open_at_large(star) {
        return;
    }
    let rules = star.groups().flat_map(Group::rules).filter(closes_part).take(MOST_RULES);
    let closed: Vec<(Rule<'_>, Vec<u8>)> = rules
        .map(|rule| (rule, shortest_path(rule.pattern())))
        .filter(|(_, path)| star.verdict(&RequestPath::new(path)).access() == Access::Disallow)
        .collect();
    if closed.is_empty() {
        return;
    }
    let mut seen = HashSet::new();
    for group in file.robots.groups().filter(|group| !group.is_global()) {
        // Of those that the registry knows each once, so there are not many.
        let names = group.names().filter(|name| reads_sites(file, *name) && seen.insert(compared(*name)));
        let mut dropped = BTreeSet::new();
        let dropping: Vec<Name<'_>> = names.filter(|name| drops(file, *name, &closed, &mut dropped)).collect();
        let Some(first) = dropping.first() else { continue };
        let verb = if dropping.len() == 1 { "ignores" } else { "ignore" };
        let mut known = HashSet::new();
        let patterns = dropped.iter().map(|at| closed[*at].0.pattern());
        let paths: Vec<&[u8]> = patterns.filter(|pattern| known.insert(*pattern)).collect();
        // One rule is often that of a template, for pages that ask for a login anyway.
        let (open, severity) = match paths.len() {
            1 => ("is open to", Severity::Note),
            _ => ("are open to", Severity::Warning),
        };
        let whom = if dropping.len() == 1 { "it" } else { "them" };
        let names = QuotedList(dropping.iter().map(|name| name.value()));
        sink.report_at(
            severity,
            first.range(),
            format_args!("{names} {verb} the group for \"*\": {} {open} {whom}", QuotedList(paths.iter().copied())),
        )
        .of_agent(first.value())
        .help(format_args!("repeat the rules of \"*\" that are meant for {whom} too in this group"));
    }
}

/// Whether nothing that is closed to others is closed to a crawler, and no rule says that this is meant. Notes what no rule of its
/// own is about, by the place.
fn drops(
    file: &CheckedFile<'_>,
    name: Name<'_>,
    closed: &[(Rule<'_>, Vec<u8>)],
    dropped: &mut BTreeSet<usize>,
) -> bool {
    let Some(crawler) = file.crawlers.named(name) else { return false };
    let selection = file.rules().select(&crawler.tokens, Fallback::Nothing);
    let mut rules = selection.groups().flat_map(Group::rules).peekable();
    let is_meant = match rules.peek() {
        // Names that nothing follows are another lint's.
        None => selection.crawl_delay().is_none(),
        // "All is open" in a word, whatever stands beside it.
        Some(_) => rules.any(|rule| rule.pattern().is_empty() || is_every_path(rule.pattern())),
    };
    let mut of_no_rule = Vec::new();
    let mut work = MatchBudget::new();
    for (at, (_, path)) in closed.iter().enumerate() {
        let verdict = selection.verdict_within(&RequestPath::new(path), &mut work);
        if is_meant || verdict.access() == Access::Disallow {
            return false;
        }
        of_no_rule.extend(verdict.rule().is_none().then_some(at));
    }
    // A group that opens most of it by rules of its own means that.
    let is_most = of_no_rule.len() * 2 > closed.len();
    if is_most {
        dropped.extend(of_no_rule);
    }
    is_most
}

/// Whether a crawler reads whole sites and obeys `*`. One for pictures, news or the like beside the main crawler of its operator is
/// let into a part of a site, an archive is often let into more, and what shows links or ads fetches single pages.
fn reads_sites(file: &CheckedFile<'_>, name: Name<'_>) -> bool {
    let Some(crawler) = file.crawlers.named(name) else { return false };
    let leads = |other: &Crawler| {
        other.operator == crawler.operator && !crawler.tokens.first().is_some_and(|own| other.tokens.contains(own))
    };
    let reads = match crawler.category {
        Category::Search => crawler.is_index_engine,
        category => matches!(category, Category::AiSearch | Category::AiTraining | Category::Seo),
    };
    reads
        && !crawler.is_control
        && crawler.obeys_robots != Obeys::No
        && crawler.obeys_star != Obeys::No
        && !crawler.tokens.iter().skip(1).filter_map(|token| file.crawlers.of_token(token)).any(leads)
}
