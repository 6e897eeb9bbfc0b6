//! Completion of directives, and of crawlers' names in user-agent lines.

use serde_json::{Value, json};
use tower_robots::agent::{Crawler, Obeys};
use tower_robots::rules::Directive;

use super::document::Document;
use super::hover::operator_of;
use super::protocol::{Position, Range};

/// Kinds of completion items in the protocol.
const KEYWORD: u8 = 14;
const VALUE: u8 = 12;

/// Returns the completions at a position: names after `User-agent:`, and directives at the start of
/// a line. A completion replaces the whole word, including the part after the cursor.
pub(super) fn completions(document: &Document, position: Position) -> Vec<Value> {
    let text = document.buffer.text();
    let cursor = document.buffer.offset(position);
    let line = document.buffer.line(position.line as usize);
    let (before, after) = (&text[line.start.min(cursor)..cursor], &text[cursor..line.end.max(cursor)]);
    let typed = before.trim_start();
    if typed.contains('#') {
        return Vec::new();
    }
    let Some((name, value)) = typed.split_once(':') else {
        let range = document.range(cursor - typed.len()..cursor + rest_of_directive(after));
        return Directive::SPELLINGS
            .iter()
            .map(|(spelling, directive)| directive_item(spelling, *directive, range))
            .collect();
    };
    if !is_user_agent(name) {
        return Vec::new();
    }
    // The items state which range they replace, because an editor may treat a hyphen as the end of
    // the word.
    let rest = after.find([' ', '\t', '#']).unwrap_or(after.len());
    let range = document.range(cursor - value.trim_start().len()..cursor + rest);
    let star = item("*", VALUE, "every crawler that is not named in any group", "*", range);
    let crawlers = document.registry().crawlers();
    [star].into_iter().chain(crawlers.filter_map(|crawler| crawler_item(crawler, range))).collect()
}

/// Returns the length of the part of a directive that follows the cursor, including the colon and
/// one space after the colon.
fn rest_of_directive(after: &str) -> usize {
    let word = after.find([' ', '\t', '#', ':']).unwrap_or(after.len());
    let value = after[word..].strip_prefix(':').map(|value| value.strip_prefix(' ').unwrap_or(value));
    value.map_or(word, |value| after.len() - value.len())
}

fn is_user_agent(name: &str) -> bool {
    Directive::UserAgent.spelling().is_some_and(|spelling| name.trim().eq_ignore_ascii_case(spelling))
}

fn directive_item(spelling: &str, directive: Directive, range: Range) -> Value {
    let detail = match directive {
        Directive::UserAgent => "begins a group: the name of a crawler, or *",
        Directive::Allow => "paths that the crawlers of the group may fetch",
        Directive::Disallow => "paths that the crawlers of the group may not fetch",
        Directive::Sitemap => "address of a sitemap, for all crawlers",
        _ => "an extension, which some crawlers read",
    };
    item(spelling, KEYWORD, detail, &format!("{spelling}: "), range)
}

/// Returns the completion item for a crawler. The item inserts the name that a user-agent line for
/// the crawler needs. Returns `None` if the registry contains no token for the crawler.
fn crawler_item(crawler: &Crawler, range: Range) -> Option<Value> {
    let token = crawler.tokens.first()?.to_string();
    // If the crawler's name and its token differ only in case, the item inserts the name, because
    // it is more readable. Crawlers ignore the case of tokens.
    let name = if crawler.name.eq_ignore_ascii_case(&token) { crawler.name.clone() } else { token };
    let mut detail = format!("{} ({})", crawler.category, operator_of(crawler));
    if crawler.obeys_robots == Obeys::No {
        detail.push_str(", does not obey robots.txt");
    }
    Some(item(&name, VALUE, &detail, &name, range))
}

fn item(label: &str, kind: u8, detail: &str, text: &str, range: Range) -> Value {
    json!({
        "label": label,
        "kind": kind,
        "detail": detail,
        "filterText": label,
        "textEdit": { "range": range, "newText": text },
    })
}
