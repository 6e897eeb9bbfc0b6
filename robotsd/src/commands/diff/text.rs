//! Changes as text, the worst first.

use std::collections::HashSet;
use std::io::{self, Write};

use tower_robots::agent::Category;
use tower_robots::check::{Change, Decider, Diff, Effect, Subject};
use tower_robots::rules::Access;

use crate::render::printable;

/// Crawlers of each kind that are shown by name.
const SHOWN: usize = 4;

/// The names of the two files.
pub(super) struct DiffNames {
    old: String,
    new: String,
}

impl DiffNames {
    pub(super) fn new(old: &str, new: &str) -> Self {
        Self { old: printable(old.as_bytes()), new: printable(new.as_bytes()) }
    }
}

pub(super) fn write(out: &mut impl Write, names: &DiffNames, diff: &Diff) -> io::Result<()> {
    for effect in diff.effects() {
        writeln!(out, "{}", crawlers(effect.crawlers()))?;
        let width = effect.changes().iter().map(|change| printable(change.path().as_bytes()).chars().count()).max();
        for change in effect.changes() {
            write_change(out, names, change, width.unwrap_or(0).min(40))?;
        }
        if effect.omitted() > 0 {
            writeln!(out, "  and {} more changes", effect.omitted())?;
        }
        writeln!(out)?;
    }
    for breach in diff.breaches() {
        let (guard, change) = (breach.guard().to_string(), breach.change());
        writeln!(
            out,
            "forbidden: {} changes for {}",
            printable(change.path().as_bytes()),
            printable(guard.as_bytes())
        )?;
    }
    if diff.is_empty() {
        return writeln!(out, "nothing changes for any crawler");
    }
    writeln!(out, "{}", totals(diff.effects()))
}

fn write_change(out: &mut impl Write, names: &DiffNames, change: &Change, width: usize) -> io::Result<()> {
    let word = match change.access() {
        Access::Disallow => "- disallowed now ",
        Access::Allow => "+ allowed now    ",
    };
    let path = printable(change.path().as_bytes());
    let after = decider(&names.new, change.after());
    let before = decider(&names.old, change.before());
    writeln!(out, "  {word} {path:width$}  {after}; was {before}")
}

fn decider(file: &str, decider: Option<&Decider>) -> String {
    match decider {
        Some(rule) => format!("{file}:{}: {} {}", rule.line(), rule.access(), printable(rule.pattern().as_bytes())),
        None => "no rule".to_owned(),
    }
}

/// The crawlers of an effect: search engines, then those that a file names, then the rest.
fn crawlers(crawlers: &[Subject]) -> String {
    let is_search = |crawler: &&Subject| crawler.category() == Some(Category::Search);
    let search: Vec<_> = crawlers.iter().filter(is_search).collect();
    let named: Vec<_> = crawlers.iter().filter(|crawler| !is_search(crawler) && crawler.is_named()).collect();
    let has_unnamed = crawlers.iter().any(|crawler| crawler.name().is_none());
    let rest = crawlers.len() - search.len() - named.len() - usize::from(has_unnamed);
    let mut parts = Vec::new();
    parts.extend((!search.is_empty()).then(|| list(&search, "search engines")));
    parts.extend((!named.is_empty()).then(|| list(&named, "that the files name")));
    parts.extend((rest > 0).then(|| format!("{rest} other known crawler{}", if rest == 1 { "" } else { "s" })));
    parts.extend(has_unnamed.then(|| "any crawler that neither file names".to_owned()));
    parts.join("; ")
}

fn list(crawlers: &[&Subject], kind: &str) -> String {
    let names = crawlers.iter().filter_map(|crawler| crawler.name()).take(SHOWN).map(|name| printable(name.as_bytes()));
    let names = names.collect::<Vec<_>>().join(", ");
    match crawlers.len().saturating_sub(SHOWN) {
        0 => names,
        more => format!("{names} and {more} more {kind}"),
    }
}

/// What changes altogether, as in `3 rules change for 372 crawlers: 2 paths are disallowed now, 1 is allowed now`. A rule
/// is one line of the new file, or one that only the old file has; it may change paths for many crawlers.
fn totals(effects: &[Effect]) -> String {
    let subjects = || effects.iter().flat_map(Effect::crawlers);
    let known: HashSet<_> = subjects().filter_map(Subject::name).collect();
    let others = subjects().any(|subject| subject.name().is_none());
    let crawlers = match (known.len(), others) {
        (0, _) => "every crawler that neither file names".to_owned(),
        (count, false) => counted(count, "crawler"),
        (count, true) => format!("{} and every other that neither file names", counted(count, "crawler")),
    };
    let changes = || effects.iter().flat_map(Effect::changes);
    // A path is allowed now by a rule of the new file, or because a rule of the old one is gone.
    let rules: HashSet<_> = changes()
        .filter_map(|change| match (change.after(), change.before()) {
            (Some(after), _) => Some(("new", after.line())),
            (None, before) => before.map(|before| ("old", before.line())),
        })
        .collect();
    let paths = |access: Access| {
        let paths = changes().filter(|change| change.access() == access).map(Change::path);
        paths.collect::<HashSet<_>>().len()
    };
    let now = |(count, state): (usize, &str)| match count {
        0 => None,
        1 => Some(format!("1 path is {state} now")),
        _ => Some(format!("{count} paths are {state} now")),
    };
    let counts = [(paths(Access::Disallow), "disallowed"), (paths(Access::Allow), "allowed")];
    let counts: Vec<_> = counts.into_iter().filter_map(now).collect();
    let omitted: usize = effects.iter().map(Effect::omitted).sum();
    let more = if omitted > 0 { format!(", and {omitted} more changes are not shown") } else { String::new() };
    let change = if rules.len() == 1 { "changes" } else { "change" };
    format!("{} {change} for {crawlers}: {}{more}", counted(rules.len(), "rule"), counts.join(", "))
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
