//! The outline of a document: symbols and folding ranges. The outline does not include lines after
//! the first 512,000 bytes, because crawlers do not read these lines.

use serde_json::{Value, json};
use tower_robots::rules::{Access, Group, LineKind};

use super::document::Document;
use super::protocol::{Client, Range};
use crate::render::printable;

/// `SymbolKind` values of the protocol.
const CLASS: u8 = 5;
const FIELD: u8 = 8;
const CONSTANT: u8 = 14;

/// Maximum number of symbols of each kind: groups, rules and sitemaps. Larger outlines would take
/// too long to create.
const MAX_OF_KIND: usize = 2000;

pub(super) fn symbols(client: &Client, document: &Document) -> Vec<Value> {
    let robots = document.robots();
    let mut left = MAX_OF_KIND;
    let groups = robots.groups().take(MAX_OF_KIND).map(|group| {
        let shown = group.rules().len().min(left);
        left -= shown;
        group_symbol(document, group, shown)
    });
    let sitemaps = robots.sitemaps().take(MAX_OF_KIND).map(|sitemap| {
        let name = format!("Sitemap: {}", printable(sitemap.value));
        symbol(&name, CONSTANT, document.line_range(sitemap.line), document.range(sitemap.range))
    });
    let mut symbols: Vec<Value> = groups.chain(sitemaps).collect();
    symbols.sort_by_key(|symbol| symbol["range"]["start"]["line"].as_u64());
    if client.nests_symbols { symbols } else { flat(document, symbols) }
}

fn group_symbol(document: &Document, group: Group<'_>, rules: usize) -> Value {
    let names: Vec<_> = group.names().map(|name| printable(name.value())).collect();
    let first = group.names().next().map_or(0..0, |name| name.range());
    let mut symbol =
        symbol(&format!("User-agent: {}", names.join(", ")), CLASS, extent(document, group), document.range(first));
    let rules = group.rules().take(rules).map(|rule| {
        let field = match rule.access() {
            Access::Allow => "Allow",
            Access::Disallow => "Disallow",
        };
        let name = format!("{field}: {}", printable(rule.pattern()));
        self::symbol(&name, FIELD, document.line_range(rule.line()), document.range(rule.range()))
    });
    symbol["children"] = rules.collect();
    symbol
}

fn symbol(name: &str, kind: u8, range: Range, selection: Range) -> Value {
    json!({ "name": name, "kind": kind, "range": range, "selectionRange": selection })
}

/// Flattens nested symbols for editors that do not support them.
fn flat(document: &Document, symbols: Vec<Value>) -> Vec<Value> {
    let mut all = Vec::new();
    for mut symbol in symbols {
        let children = symbol["children"].take();
        let (name, kind) = (&symbol["name"], &symbol["kind"]);
        let location = json!({ "uri": document.uri, "range": symbol["range"] });
        all.push(json!({ "name": name, "kind": kind, "location": location }));
        if let Value::Array(children) = children {
            all.extend(flat(document, children));
        }
    }
    all
}

fn extent(document: &Document, group: Group<'_>) -> Range {
    let names = group.names().last().map_or(0, |name| name.line());
    let last = group.rules().last().map_or(names, |rule| rule.line());
    Range { start: document.line_range(group.line()).start, end: document.line_range(last).end }
}

pub(super) fn folding(document: &Document) -> Vec<Value> {
    let robots = document.robots();
    let mut ranges: Vec<Value> = Vec::new();
    for group in robots.groups() {
        let Range { start, end } = extent(document, group);
        if start.line < end.line {
            ranges.push(json!({ "startLine": start.line, "endLine": end.line, "kind": "region" }));
        }
    }
    let mut begun: Option<usize> = None;
    let lines = robots.lines().map(|line| (line.number, line.kind() == LineKind::Comment));
    let end = robots.lines().count() + 1;
    for (number, is_comment) in lines.chain([(end, false)]) {
        match begun {
            None if is_comment => begun = Some(number),
            Some(first) if !is_comment => {
                if first + 1 < number {
                    ranges.push(json!({ "startLine": first - 1, "endLine": number - 2, "kind": "comment" }));
                }
                begun = None;
            }
            _ => {}
        }
    }
    ranges
}
