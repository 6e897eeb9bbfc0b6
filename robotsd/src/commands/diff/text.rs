//! Renders changes for crawlers, the worst first, as text or as Markdown for a comment on a pull
//! request.
//!
//! In Markdown, text from a file is rendered as code, so it cannot contain markup, mention a user
//! or create a link. The size of a comment is limited.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::io::{self, Write};

use askama::Template;
use tower_robots::check::{Breadth, Change, Diff, Effect, Finding, Subject};
use tower_robots::internals::first_few;
use tower_robots::rules::Access;

use super::lists::{ListLoss, ListLosses, SITEMAP_PAGES};
use crate::html::{counted, filters, grouped, percent};
use crate::render::{finding_line, markdown_code, markdown_text, plural, printable, truncated};

/// Maximum number of crawlers of each kind that are shown by name.
const MAX_SHOWN: usize = 4;

/// Maximum number of rules that are shown for a loss.
const MAX_RULES: usize = 10;

/// Function that formats a name or a path from a file, so that it can be printed.
type NameStyle = fn(&str) -> String;

fn plain(name: &str) -> String {
    printable(name)
}

pub(in crate::commands) struct DiffNames {
    old: String,
    new: String,
}

impl DiffNames {
    pub(in crate::commands) fn new(old: &str, new: &str) -> Self {
        Self { old: printable(old), new: printable(new) }
    }
}

/// Text about the pages that search engines lose. The text is empty if no list of pages is given.
#[derive(Template)]
#[template(path = "commands/diff/losses.txt", whitespace = "preserve")]
pub(super) struct LossesText<'a> {
    pub(super) names: &'a DiffNames,
    pub(super) pages: &'a ListLosses,
}

/// Formats a line such as `Googlebot, bingbot and 9 more search engines lose 1,204 of 9,800 pages
/// of the sitemaps (12 %)`.
fn loss_line(loss: &ListLoss, style: NameStyle) -> String {
    let ((lost, of), list) = ((loss.lost, loss.allowed), list_name(&loss.of, style));
    let names: Vec<_> = loss.crawlers.iter().take(MAX_SHOWN).map(|name| style(name)).collect();
    let more = match loss.crawlers.len().saturating_sub(MAX_SHOWN) {
        0 => String::new(),
        more => format!(" and {}", plural(more, "more search engine")),
    };
    let crawlers = format!("{}{more}", names.join(", "));
    let verb = if loss.crawlers.len() == 1 { "loses" } else { "lose" };
    let pages = format!("{crawlers} {verb} {} of {}", grouped(lost), counted(of, "page"));
    let excess = loss.permitted.map_or_else(String::new, |most| format!("; --max-loss permits at most {most} %"));
    match loss.requests {
        Some(requests) => {
            let (share, all) = (percent(requests.lost, requests.all), grouped(requests.all));
            format!(
                "{pages} {list}, and {share} of its requests ({requests} of {all}){excess}",
                requests = grouped(requests.lost)
            )
        }
        None => format!("{pages} {list} ({}){excess}", percent(lost, of)),
    }
}

/// Describes a list of pages, with a phrase that follows the word "pages" in output.
fn list_name(of: &str, style: NameStyle) -> String {
    match of.strip_prefix("of ") {
        Some(file) if of != SITEMAP_PAGES => format!("of {}", style(file)),
        _ => of.to_owned(),
    }
}

fn no_loss_line(of: &str, count: u64, style: NameStyle) -> String {
    let list = list_name(of, style);
    match count {
        0 => format!("there are no pages {list}"),
        1 => format!("search engines do not lose the only page {list}"),
        _ => format!("search engines lose none of the {count} pages {list}", count = grouped(count)),
    }
}

/// The effects of a change, followed by the lines of the new file that crawlers ignore or read in
/// an unexpected way.
#[derive(Template)]
#[template(path = "commands/diff/changes.txt", whitespace = "preserve")]
pub(in crate::commands) struct ChangesText<'a> {
    pub(in crate::commands) names: &'a DiffNames,
    pub(in crate::commands) diff: &'a Diff,
    pub(in crate::commands) unread: &'a [&'a Finding],
}

fn width(effect: &Effect) -> usize {
    distinct_changes(effect).map(|change| changed_part(change, plain).chars().count()).max().unwrap_or(0).min(40)
}

/// Lists the crawlers that a change of the group for `*` does not affect, because another group
/// contains their own name or the name of a related crawler. Returns `None` if there are no such
/// crawlers.
fn unaffected_note(diff: &Diff, style: NameStyle) -> Option<String> {
    let class_text = |class: &Vec<Subject>| {
        let (named, others): (Vec<_>, Vec<_>) = class.iter().partition(|subject| subject.named);
        let whose = if named.len() == 1 { "its" } else { "their" };
        let others = (!others.is_empty()).then(|| {
            format!(
                ", and {crawlers} that obey {whose} group",
                crawlers = list(&others, style, |more| format!("{more} more"))
            )
        });
        format!("{}{}", list(&named, style, more_named), others.unwrap_or_default())
    };
    let classes: Vec<_> = diff.spared.iter().take(MAX_SHOWN).map(class_text).collect();
    let more = diff.spared.len() - classes.len();
    let more = if more > 0 { format!("; and {}", plural(more, "more group")) } else { String::new() };
    (!classes.is_empty()).then(|| format!("unchanged: {}{more}", classes.join("; ")))
}

fn summary(diff: &Diff, style: NameStyle) -> String {
    let mut totals: Vec<_> = (!diff.effects.is_empty()).then(|| totals(&diff.effects)).into_iter().collect();
    if !diff.delays.is_empty() {
        let crawlers = diff.delays.iter().map(|delay| &*delay.crawlers);
        totals.push(format!("the delay changed for {crawlers}", crawlers = affected_crawlers(crawlers)));
    }
    if !diff.usage.is_empty() {
        let crawlers = diff.usage.iter().map(|usage| &*usage.crawlers);
        totals.push(format!("usage preferences changed for {}", affected_crawlers(crawlers)));
    }
    for (what, addresses) in [
        ("sitemaps that the new file no longer names", &diff.sitemaps_removed),
        ("sitemaps that are only in the new file", &diff.sitemaps_added),
        ("licences that the new file no longer names", &diff.licenses_removed),
        ("licences that are only in the new file", &diff.licenses_added),
    ] {
        let list = first_few(addresses.iter().map(|address| style(address)), MAX_SHOWN);
        totals.extend((!addresses.is_empty()).then(|| format!("{what}: {list}")));
    }
    if diff.is_empty() {
        let none = if totals.is_empty() { "nothing changes for any crawler" } else { "no rule changed" };
        totals.insert(0, none.to_owned());
    }
    totals.join("; ")
}

/// Returns the changes of an effect, except changes that another change includes. For example, a
/// change that disallows the whole site includes changes that disallow parts of it.
fn distinct_changes(effect: &Effect) -> impl Iterator<Item = &Change> {
    let is_covered = |change: &Change| {
        let covers = |other: &Change| other.access == change.access && other.breadth != Breadth::Part;
        change.breadth == Breadth::Part && effect.changes.iter().any(covers)
    };
    effect.changes.iter().filter(move |change| !is_covered(change))
}

fn changed_part(change: &Change, style: NameStyle) -> String {
    match (change.breadth, change.access) {
        (Breadth::Site, _) => "the whole site".to_owned(),
        (Breadth::Rest, Access::Disallow) => "all paths that no other rule allows".to_owned(),
        (Breadth::Rest, Access::Allow) => "all paths that no other rule disallows".to_owned(),
        _ => style(&change.path),
    }
}

/// Lists the crawlers of an effect: search engines first, then other crawlers that a file names,
/// then all others.
fn crawlers(crawlers: &[Subject], style: NameStyle) -> String {
    let is_search = |crawler: &&Subject| crawler.is_index_engine;
    let search: Vec<_> = crawlers.iter().filter(is_search).collect();
    let named: Vec<_> = crawlers.iter().filter(|crawler| !is_search(crawler) && crawler.named).collect();
    let has_unnamed = crawlers.iter().any(|crawler| crawler.name.is_none());
    let rest = crawlers.len() - search.len() - named.len() - usize::from(has_unnamed);
    let mut parts = Vec::new();
    parts.extend((!search.is_empty()).then(|| list(&search, style, |more| plural(more, "more search engine"))));
    parts.extend((!named.is_empty()).then(|| list(&named, style, more_named)));
    parts.extend((rest > 0).then(|| plural(rest, "other known crawler")));
    parts.extend(has_unnamed.then(|| "any crawler that is named in neither file".to_owned()));
    parts.join("; ")
}

fn more_named(more: usize) -> String {
    format!("{more} more named in the files")
}

/// Lists the first [`MAX_SHOWN`] names. `more` formats the number of the crawlers that are not
/// listed.
fn list(crawlers: &[&Subject], style: NameStyle, more: impl Fn(usize) -> String) -> String {
    let names = crawlers.iter().filter_map(|crawler| crawler.name.as_deref()).take(MAX_SHOWN).map(style);
    let names = names.collect::<Vec<_>>().join(", ");
    match crawlers.len().saturating_sub(MAX_SHOWN) {
        0 => names,
        rest => format!("{names} and {}", more(rest)),
    }
}

/// Formats a summary such as `3 rules changed for 372 crawlers: the whole site is disallowed now
/// for 4 of them, 2 parts of it are disallowed now`. A rule is counted once, even if it affects
/// many crawlers.
fn totals(effects: &[Effect]) -> String {
    let changes = || effects.iter().flat_map(distinct_changes);
    // A path may be allowed because of a rule in the new file, or because a rule of the old file
    // was removed.
    let rules: HashSet<_> = changes()
        .filter_map(|change| match (change.after.as_ref(), change.before.as_ref()) {
            (Some(after), _) => Some(("new", after.line)),
            (None, before) => before.map(|before| ("old", before.line)),
        })
        .collect();
    let mut parts: Vec<String> = Vec::new();
    for (access, state) in [(Access::Disallow, "disallowed"), (Access::Allow, "allowed")] {
        for (breadth, site) in [(Breadth::Site, "the whole site"), (Breadth::Rest, "the site except for some paths")] {
            let is_one = |change: &Change| change.access == access && change.breadth == breadth;
            let affected: Vec<_> = effects.iter().filter(|effect| effect.changes.iter().any(is_one)).collect();
            if affected.is_empty() {
                continue;
            }
            let affected_crawlers = if affected.len() == effects.len() {
                String::new()
            } else {
                format!(" for {}", affected_crawlers(affected.into_iter().map(|effect| &*effect.crawlers)))
            };
            parts.push(format!("{site} is {state} now{affected_crawlers}"));
        }
        let is_part = |change: &&Change| change.access == access && change.breadth == Breadth::Part;
        match changes().filter(is_part).map(|change| change.path.clone()).collect::<HashSet<_>>().len() {
            0 => {}
            1 => parts.push(format!("1 part of the site is {state} now")),
            count => parts.push(format!("{count} parts of the site are {state} now")),
        }
    }
    let omitted: usize = effects.iter().map(|effect| effect.omitted).sum();
    let more = if omitted > 0 { format!(", not shown: {}", plural(omitted, "more change")) } else { String::new() };
    let (rules, affected_crawlers) =
        (plural(rules.len(), "rule"), affected_crawlers(effects.iter().map(|effect| &*effect.crawlers)));
    format!("{rules} changed for {affected_crawlers}: {}{more}", parts.join(", "))
}

fn affected_crawlers<'e>(crawlers: impl IntoIterator<Item = &'e [Subject]>) -> String {
    let crawlers: HashSet<_> = crawlers.into_iter().flatten().map(|subject| subject.name.as_deref()).collect();
    let others = crawlers.contains(&None);
    match (crawlers.len() - usize::from(others), others) {
        (0, _) => "every crawler that is named in neither file".to_owned(),
        (count, false) => plural(count, "crawler"),
        (count, true) => {
            format!(
                "{crawlers} and every other crawler that is named in neither file",
                crawlers = plural(count, "crawler")
            )
        }
    }
}

/// Maximum size of a comment on a pull request, in bytes. Further rows are left out. GitHub allows
/// 65,536 characters.
const MAX_BYTES: usize = 48 << 10;

/// Maximum length of a path, pattern or list of crawlers in a row, in characters.
const MAX_CELL_LENGTH: usize = 300;

/// Maximum number of rows in a table that is not collapsed.
const OPEN_ROWS: usize = 20;

pub(super) fn write_markdown(
    out: &mut impl Write,
    names: &DiffNames,
    diff: &Diff,
    pages: &ListLosses,
    unread: &[&Finding],
) -> io::Result<()> {
    let mut comment = format!("### {file}: what changes for crawlers\n\n", file = cell(&names.new));
    for loss in &pages.losses {
        if comment.len() < MAX_BYTES {
            let _ = writeln!(comment, "{}\n", LossMarkdown { loss });
        }
    }
    for (of, count) in pages.without_loss() {
        let _ = writeln!(comment, "{}\n", no_loss_line(of, count, cell));
    }
    let _ = writeln!(comment, "{}.\n", summary(diff, cell));
    if let Some(unaffected_note) = unaffected_note(diff, cell) {
        let _ = writeln!(comment, "{unaffected_note}.\n");
    }
    add_changes(&mut comment, diff);
    for breach in diff.breaches.clone() {
        let (path, guard) = (cell(&breach.change.path), cell(&breach.guard.to_string()));
        if comment.len() < MAX_BYTES {
            let _ = writeln!(comment, "- **forbidden**: {path} changes for {guard}");
        }
    }
    for finding in unread {
        if comment.len() < MAX_BYTES {
            let place = cell(&format!("{}:{}:{}", names.new, finding.line, finding.column));
            let _ = writeln!(comment, "- {place}: {}: {}", finding.severity, markdown_text(&finding.message));
        }
    }
    out.write_all(comment.as_bytes())
}

#[derive(Template)]
#[template(path = "commands/diff/loss_markdown.txt", whitespace = "preserve")]
struct LossMarkdown<'a> {
    loss: &'a ListLoss,
}

fn add_changes(comment: &mut String, diff: &Diff) {
    let rows = RowsMarkdown { diff }.to_string();
    let rows: Vec<_> = rows.split_inclusive('\n').collect();
    if rows.is_empty() {
        return;
    }
    let is_folded = rows.len() > OPEN_ROWS;
    if is_folded {
        let _ = writeln!(comment, "<details><summary>{} changes</summary>\n", rows.len());
    }
    comment.push_str("| crawlers | now | by | was |\n| --- | --- | --- | --- |\n");
    let mut left = rows.len();
    for row in &rows {
        if comment.len() + row.len() > MAX_BYTES {
            break;
        }
        comment.push_str(row);
        left -= 1;
    }
    if left > 0 {
        let _ = writeln!(comment, "| and {left} more rows: run `robotsd diff` for all | | | |");
    }
    comment.push_str(if is_folded { "\n</details>\n\n" } else { "\n" });
}

/// Rows of a Markdown table, one per change.
#[derive(Template)]
#[template(path = "commands/diff/rows_markdown.txt", whitespace = "preserve")]
struct RowsMarkdown<'a> {
    diff: &'a Diff,
}

/// Truncates text longer than [`MAX_CELL_LENGTH`], and formats it as code.
fn cell(text: &str) -> String {
    markdown_code(&truncated(&printable(text), MAX_CELL_LENGTH))
}
