//! `star-rules-dropped`: a group whose author seems to believe that its crawlers also obey the
//! group for `*`.

use std::collections::{BTreeSet, HashSet};

use crate::check::checked_file::compared;
use crate::check::diff::{SiteExtent, shortest_path};
use crate::check::lint::*;
use crate::check::pattern::covered;
use crate::check::reach::{disallows_part, is_every_path};
use crate::rules::MatchBudget;

pub(crate) const LINT: Lint = Lint {
    code: "star-rules-dropped",
    severity: Severity::Warning,
    summary: "a crawler's group that lacks rules of the group for \"*\"",
    why: "A crawler that a group names obeys only that group (RFC 9309, section 2.2.1), and none of the rules for \
          \"*\". If its group contains only an additional rule or delay, the crawler may fetch everything that \"*\" \
          disallows. If the group repeats only some rules of \"*\", the crawler may fetch the paths of the missing \
          rules. This also applies to image, video and news crawlers: if a group names Googlebot-Image, it obeys \
          neither \"*\" nor the group for Googlebot. If only one rule of \"*\" is missing, the finding is just a note. \
          Groups that allow everything (\"Disallow:\" without a path), and copies of the group for \"*\" that lack \
          only rules for scripts, styles and pictures, are not reported.",
    bad: Example::new(
        b"User-agent: *\nDisallow: /cart/\nDisallow: /login/\n\nUser-agent: Googlebot\nDisallow: /drafts/\n",
    ),
    good: Example::new(
        b"User-agent: *\nDisallow: /cart/\nDisallow: /login/\n\nUser-agent: Googlebot\nDisallow: /drafts/\n\
          Disallow: /cart/\nDisallow: /login/\n",
    ),
    pass: Pass::File(run),
    fix: None,
};

/// Maximum number of rules for `*` that are examined, to bound the cost.
const MAX_RULES: usize = 64;

/// Maximum number of disallow rules that an incomplete copy of the group for `*` may add. A group
/// that adds more rules is treated as a copy only if it repeats at least as many rules for `*` as
/// it adds.
const MAX_ADDED_RULES: usize = 24;

/// Words that suggest that a path is disallowed on purpose. The message lists paths with these
/// words first.
const DELIBERATE_WORDS: &str = "account accounts admin administrator api auth basket cart cgi-bin checkout customer draft drafts internal login \
                     logout member members myaccount order orders password preview private profile register search signin \
                     staging test tmp user";

/// Folder names and file extensions of files that are needed to display pages.
const PAGE_RESOURCES: &str = "assets css dist fonts gif icons image images img javascript jpg js media png script scripts skin skins \
                          static style styles svg template templates theme themes";

/// A rule for `*` that disallows a part of the site, with sample paths that the rule matches.
struct Closed<'r> {
    rule: Rule<'r>,
    paths: [Vec<u8>; 2],
}

#[derive(Default)]
struct Dropped {
    places: BTreeSet<usize>,
    /// Whether the group repeats some of the rules for `*`.
    is_rest: bool,
}

fn run(file: &CheckedFile<'_>, sink: &mut Sink) {
    let star = file.rules().select(&[], Fallback::Star);
    // If most of the site is disallowed for `*`, groups for single crawlers are intended
    // exceptions, and nothing is reported.
    if !SiteExtent::allows_unmentioned_paths(star) {
        return;
    }
    let rules = star.groups().flat_map(Group::rules).filter(disallows_part).take(MAX_RULES);
    let closed: Vec<Closed<'_>> = rules
        .filter(|rule| !covered(rule.pattern(), &file.site.exempt))
        .map(|rule| {
            let path = shortest_path(rule.pattern());
            Closed { rule, paths: [[path.as_slice(), b"/x"].concat(), path] }
        })
        .filter(|closed| star.verdict(&RequestPath::new(&closed.paths[1])).access() == Access::Disallow)
        .collect();
    if closed.is_empty() {
        return;
    }
    let mut seen = HashSet::new();
    for group in file.robots.groups().filter(|group| !group.is_global()) {
        // Each known crawler is examined only once, to limit the number of verdicts.
        let names = group.names().filter(|name| reads_sites(file, *name) && seen.insert(compared(*name)));
        let mut dropped = Dropped::default();
        let dropping: Vec<Name<'_>> = names.filter(|name| dropped.add_missing_rules(file, *name, &closed)).collect();
        let Some(first) = dropping.first() else { continue };
        let mut known = HashSet::new();
        let rules = dropped.places.iter().map(|at| closed[*at].rule);
        let mut rules: Vec<Rule<'_>> = rules.filter(|rule| known.insert(rule.pattern())).collect();
        let lines = of_lines(rules.iter().map(|rule| rule.line()));
        rules.sort_by_key(|rule| !is_deliberate(rule.pattern()));
        let (verb, whom) = if dropping.len() == 1 { ("ignores", "it") } else { ("ignore", "them") };
        // A finding about a single missing rule is only a note. Such a rule often comes from a
        // template, and the disallowed pages require a login.
        let (open, severity) = match rules.len() {
            1 => ("is open to", Severity::Note),
            _ => ("are open to", Severity::Warning),
        };
        let rest = if dropped.is_rest { ", and this group repeats only some of its rules" } else { "" };
        let names = quoted_list(dropping.iter().map(|name| name.value()));
        let paths = quoted_list(rules.iter().map(|rule| rule.pattern()));
        sink.report_at(
            severity,
            first.range(),
            format_args!("{names} {verb} the group for \"*\"{rest}: {paths} {open} {whom}"),
        )
        .of_agent(first.value())
        .help(format_args!("if the rules in {lines} are also meant for {whom}, repeat them in this group"));
    }
}

impl Dropped {
    /// Adds the rules for `*` that are missing in the crawler's groups. Returns false and adds
    /// nothing if no rule is missing, or if the rules seem to be left out on purpose.
    fn add_missing_rules(&mut self, file: &CheckedFile<'_>, name: Name<'_>, closed: &[Closed<'_>]) -> bool {
        let Some(crawler) = file.crawlers.named(name) else { return false };
        let selection = file.rules().select(&crawler.tokens, Fallback::Nothing);
        let rules: Vec<Rule<'_>> = selection.groups().flat_map(Group::rules).collect();
        // Groups without any lines are skipped, because `group-without-rules` reports them.
        let is_bare = rules.is_empty() && selection.crawl_delay().is_none();
        // If the group has a rule about the whole site, its author did not expect the crawlers to
        // obey the rules for `*`.
        if is_bare || rules.iter().any(|rule| rule.pattern().is_empty() || is_every_path(rule.pattern())) {
            return false;
        }
        let (mut open, mut opened, mut repeated) = (Vec::new(), 0, 0);
        let mut work = MatchBudget::new();
        for (at, one) in closed.iter().enumerate() {
            let verdicts =
                one.paths.each_ref().map(|path| selection.verdict_within(&RequestPath::new(path), &mut work));
            if verdicts.iter().any(|verdict| verdict.access() == Access::Disallow) {
                repeated += 1;
            } else if verdicts.iter().any(|verdict| verdict.rule().is_some()) {
                opened += 1;
            } else {
                open.push(at);
            }
        }
        let patterns: HashSet<&[u8]> = closed.iter().map(|one| one.rule.pattern()).collect();
        let own =
            rules.iter().filter(|rule| rule.access() == Access::Disallow && !patterns.contains(rule.pattern())).count();
        let all = open.len();
        open.retain(|at| !is_page_resource(closed[*at].rule.pattern()));
        // Two kinds of groups differ from the group for `*` on purpose. Groups of the first kind
        // repeat at least half of the rules for `*`, but leave out rules for images, scripts and
        // similar files. Groups of the second kind add many rules, and repeat fewer rules for `*`
        // than they add.
        let is_copy = repeated * 2 >= closed.len();
        let is_deliberate = is_copy && open.len() < all || repeated > 0 && own > MAX_ADDED_RULES.max(repeated);
        // Groups of a third kind also differ on purpose: their allow rules match at least half of
        // the paths that only the group for `*` disallows.
        if is_deliberate || open.is_empty() || all <= opened {
            return false;
        }
        self.is_rest |= repeated > 0;
        self.places.extend(open);
        true
    }
}

fn is_deliberate(pattern: &[u8]) -> bool {
    let mut words = pattern.split(|byte| !byte.is_ascii_alphanumeric() && *byte != b'-');
    words.any(|word| is_of(DELIBERATE_WORDS, word))
}

fn is_page_resource(pattern: &[u8]) -> bool {
    let is_word = |byte: &u8| !matches!(byte, b'/' | b'*' | b'.' | b'$');
    let mut words = pattern.split(|byte| !is_word(byte)).filter(|word| !word.is_empty());
    words.next().is_some_and(|word| is_of(PAGE_RESOURCES, word)) && words.next().is_none()
}

fn is_of(words: &str, word: &[u8]) -> bool {
    words.split(' ').any(|known| word.eq_ignore_ascii_case(known.as_bytes()))
}

fn of_lines(lines: impl Iterator<Item = usize>) -> String {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for line in lines {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == line => *last = line,
            _ => runs.push((line, line)),
        }
    }
    let texts: Vec<String> = runs
        .iter()
        .map(|(first, last)| if first == last { first.to_string() } else { format!("{first} to {last}") })
        .collect();
    let noun = if matches!(runs[..], [(first, last)] if first == last) { "line" } else { "lines" };
    format!("{noun} {}", texts.join(", "))
}

/// Reports whether a crawler obeys `*` and fetches whole sites, for example for a search index or
/// as training data. Archives are excluded, because sites often give them more access on purpose.
/// Crawlers for link previews and ads are excluded, because they fetch only single pages.
fn reads_sites(file: &CheckedFile<'_>, name: Name<'_>) -> bool {
    let Some(crawler) = file.crawlers.named(name) else { return false };
    let reads = match crawler.category {
        Category::Search => crawler.is_index_engine,
        category => matches!(category, Category::AiSearch | Category::AiTraining | Category::Seo),
    };
    reads && !crawler.is_control && crawler.obeys_robots != Obeys::No && crawler.obeys_star != Obeys::No
}
