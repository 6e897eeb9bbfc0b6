//! Changes as Markdown, for the comment on a pull request: what changes for which crawler.
//!
//! What stands in a file is code there: no markup, no name of a person, no link. A comment has a bound, and so has this.

use std::fmt::Write as _;
use std::io::{self, Write};

use tower_robots::check::{Change, Decider, DelayChange, Diff, Finding};
use tower_robots::rules::Access;

use super::lists::{ListLoss, ListLosses};
use super::text::{self, DiffNames};
use crate::html::{counted, grouped};
use crate::render::{finding_line, markdown_code as code, printable};

/// Octets after which no more rows follow: a comment on GitHub has 65,536 characters at most.
const MOST: usize = 48 << 10;

/// Characters of a path, pattern or list of crawlers in a row.
const LONGEST: usize = 300;

/// Rows that are not folded away.
const OPEN_ROWS: usize = 20;

/// Rules of a loss that are shown.
const RULES: usize = 10;

pub(super) fn write(
    out: &mut impl Write,
    names: &DiffNames,
    diff: &Diff,
    pages: &ListLosses,
    unread: &[&Finding],
) -> io::Result<()> {
    let mut comment = format!("### {}: what changes for crawlers\n\n", cell(&names.new));
    for loss in &pages.losses {
        if comment.len() < MOST {
            add_loss(&mut comment, loss);
        }
    }
    for (of, count) in pages.without_loss() {
        let _ = writeln!(comment, "{}\n", cell(&text::nothing_lost(of, count)));
    }
    let _ = writeln!(comment, "{}.\n", text::summary(diff));
    add_changes(&mut comment, diff);
    for breach in diff.breaches.clone() {
        let (path, guard) = (cell(&breach.change.path), cell(&breach.guard.to_string()));
        if comment.len() < MOST {
            let _ = writeln!(comment, "- **forbidden**: {path} changes for {guard}");
        }
    }
    for finding in unread {
        if comment.len() < MOST {
            let _ = writeln!(comment, "- {}", cell(&finding_line(&names.new, finding)));
        }
    }
    out.write_all(comment.as_bytes())
}

/// A loss with its rules, and some of the pages folded away.
fn add_loss(comment: &mut String, loss: &ListLoss) {
    let _ = writeln!(comment, "**{}**\n", cell(&text::loss_line(loss)));
    let _ = writeln!(comment, "| rule | pages lost |\n| --- | --- |");
    for rule in loss.rules.iter().take(RULES) {
        let _ = writeln!(comment, "| line {}: {} | {} |", rule.line, cell(&rule.pattern), grouped(rule.lost));
    }
    if loss.rules.len() > RULES {
        let _ = writeln!(comment, "| and {} more rules | |", loss.rules.len() - RULES);
    }
    let shown = counted(loss.examples.len() as u64, "page");
    let _ = writeln!(comment, "\n<details><summary>{shown} of them</summary>\n");
    for example in &loss.examples {
        let line = example.line.map_or_else(String::new, |line| format!(", line {line}"));
        let _ = writeln!(comment, "- {}{line}", cell(&example.page));
    }
    comment.push_str("\n</details>\n\n");
}

fn add_changes(comment: &mut String, diff: &Diff) {
    let mut rows: Vec<String> = Vec::new();
    for effect in diff.effects.clone() {
        let crawlers = cell(&text::crawlers(&effect.crawlers));
        rows.extend(text::shown(&effect).map(|change| change_row(&crawlers, change)));
        if effect.omitted > 0 {
            rows.push(format!("| {crawlers} | and {} more changes | | |\n", effect.omitted));
        }
    }
    rows.extend(diff.delays.iter().map(delay_row));
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
        if comment.len() + row.len() > MOST {
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

fn change_row(crawlers: &str, change: &Change) -> String {
    let access = match change.access {
        Access::Disallow => "disallowed",
        Access::Allow => "allowed",
    };
    let (after, before) = (decider(change.after.as_ref()), decider(change.before.as_ref()));
    format!("| {crawlers} | {access}: {} | {after} | {before} |\n", cell(&text::what(change)))
}

fn delay_row(delay: &DelayChange) -> String {
    let crawlers = cell(&text::crawlers(&delay.crawlers));
    let line = |delay: Option<tower_robots::check::Delay>| {
        delay.map_or_else(|| "no line".to_owned(), |delay| format!("line {}", delay.line))
    };
    let effect = cell(&delay.effect().to_string());
    format!("| {crawlers} | delay: {effect} | {} | {} |\n", line(delay.after), line(delay.before))
}

fn decider(decider: Option<&Decider>) -> String {
    match decider {
        Some(rule) => format!("line {}: {} {}", rule.line, rule.access, cell(&rule.pattern)),
        None => "no rule".to_owned(),
    }
}

/// A text as code, cut where it is too long for a comment.
fn cell(text: &str) -> String {
    let text = printable(text);
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => code(&format!("{}…", &text[..end])),
        None => code(&text),
    }
}
