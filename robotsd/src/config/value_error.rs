//! Problems of a document's syntax, keys and types, as its author would put them.
//!
//! The parser knows Rust's types ("expected a sequence", "a nonzero usize"); an operator knows keys and what stands there.

use std::ops::Range;

use toml::de::{DeValue, Error};

use super::document_entry::{DocumentEntry, Step};
use super::error::Fault;
use super::keys::{Document, Keys, called};
use crate::suggestion::{did_you_mean, nearest};

/// What a required key looks like.
const EXAMPLES: [(&str, &str); 7] = [
    ("address", "\"127.0.0.1:8080\""),
    ("name", "\"shop\""),
    ("mode", "\"tag\""),
    ("chain", "\"fullchain.pem\""),
    ("key", "\"privkey.pem\""),
    ("agents", "[\"Googlebot\"]"),
    ("paths", "[\"/\"]"),
];

/// A problem of the syntax.
pub(super) fn syntax(text: &str, error: &Error) -> Fault {
    let span = error.span().unwrap_or(0..0);
    if let Some(fault) = unclosed(text, &span, error.message().trim_end()) {
        return fault;
    }
    let message = match error.message().trim_end() {
        "duplicate key" => "this key stands in its table already: keep one of the two".to_owned(),
        "invalid basic string, expected `\"`" => "the text has no end: close it with \"".to_owned(),
        message if message.starts_with("string values must be quoted") || message.starts_with("invalid boolean") => {
            "text is written in quotes".to_owned()
        }
        message => message.replace('\n', "; "),
    };
    let start = span.start.min(text.len());
    let line_start = text.get(..start).and_then(|before| before.rfind('\n')).map_or(0, |end| end + 1);
    let line = text.get(line_start..).and_then(|rest| rest.lines().next()).unwrap_or_default().trim();
    let help = match line.split_once('=') {
        Some((_, "")) => return Fault::new(span, "the key has no value"),
        Some((key, value)) if message == "text is written in quotes" => {
            let value = value.split('#').next().unwrap_or_default().trim();
            Some(format!("write {} = {value:?}", key.trim()))
        }
        None => match line.split_once(": ") {
            Some((key, value)) if !line.starts_with('#') => Some(format!("write {} = {}", key.trim(), value.trim())),
            _ => None,
        },
        _ => None,
    };
    Fault::new(span, message).help(help)
}

const UNCLOSED_TEXT: &str = "the text of several lines has no end: close it with ";
const UNCLOSED_LIST: &str = "the list has no end: close it with ]";

/// Whether a fault is that something has no end.
pub(super) fn is_unclosed(fault: &Fault) -> bool {
    fault.message == UNCLOSED_LIST || fault.message.starts_with(UNCLOSED_TEXT)
}

/// A list or a text of several lines that has no end. The parser finds it where something else begins, lines below.
fn unclosed(text: &str, span: &Range<usize>, message: &str) -> Option<Fault> {
    let before = text.get(..span.start)?;
    if message.starts_with("invalid multi-line ") {
        let quotes = if message.contains("literal") { "'''" } else { "\"\"\"" };
        let start = before.rfind(quotes)?;
        return Some(Fault::new(start..start + quotes.len(), format!("{UNCLOSED_TEXT}{quotes}")));
    }
    if !message.starts_with("missing comma between array elements") {
        return None;
    }
    // The list is open where a line begins that is another key or a header.
    let line_start = before.rfind('\n')? + 1;
    let line = text.get(line_start..)?.lines().next()?.trim();
    let is_next = line.starts_with('[') || line.split_once('=').is_some_and(|(key, _)| is_key(key.trim()));
    let start = before.get(..line_start)?.rfind("= [")? + "= ".len();
    is_next.then(|| Fault::new(start..start + 1, UNCLOSED_LIST))
}

fn is_key(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|octet| octet.is_ascii_alphanumeric() || matches!(octet, b'_' | b'-' | b'.'))
}

/// The key that a table lacks.
pub(super) fn missing(error: &Error) -> Option<&str> {
    error.message().strip_prefix("missing field `")?.split('`').next()
}

/// The key that an unknown one is probably meant to be.
pub(super) fn suggested<D: Document>(error: &Error, entry: &DocumentEntry<'_>, _: &Keys<D>) -> Option<String> {
    let key = error.message().strip_prefix("unknown field `")?.split('`').next()?;
    let known = Keys::<D>::of(&table_of(entry));
    nearest(key, known.iter().map(String::as_str)).map(str::to_owned)
}

/// A problem of a key or of the type of a value.
pub(super) fn describe<D: Document>(error: &Error, entry: &DocumentEntry<'_>, keys: &Keys<D>, text: &str) -> Fault {
    let message = error.message().trim_end().replace('\n', "; ");
    let span = error.span().unwrap_or(0..0);
    let table = table_of(entry);
    let key = entry.keys.last().map_or("", String::as_str);
    if let Some(unknown) = message.strip_prefix("unknown field `").and_then(|rest| rest.split('`').next()) {
        let place = if table.is_empty() { D::NAME.to_owned() } else { called::<D>(&table) };
        return Fault::new(span, format!("{place} has no key {unknown:?}")).help(keys.help(&table, unknown));
    }
    if let Some(word) = message.strip_prefix("unknown variant `").and_then(|rest| rest.split("`, expected").next()) {
        let listed = message.rsplit_once("expected").map_or("", |(_, listed)| listed);
        let known: Vec<&str> = listed.split('`').skip(1).step_by(2).collect();
        let help = did_you_mean(word, known.iter().copied());
        return Fault::new(span, format!("{word:?} is not a value of {key}: write {}", one_of(&known))).help(help);
    }
    if let Some(missing) = missing(error) {
        let example = EXAMPLES.iter().find(|(key, _)| *key == missing).map_or("\"…\"", |(_, example)| *example);
        let path = entry.keys.join(".");
        let place = if path.is_empty() { D::NAME.to_owned() } else { format!("this {}", Keys::<D>::header(&path)) };
        return Fault::new(span, format!("{place} has no {missing}")).help(format!("write {missing} = {example}"));
    }
    // An enum that is neither text nor a table.
    let is_word = message == "wanted string or table";
    let is_type = is_word || message.starts_with("invalid type: ");
    let expected = message.rsplit_once("expected ").map_or("", |(_, expected)| expected);
    if !is_type && !message.starts_with("invalid value: ") {
        return Fault::new(span, message);
    }
    let written = text.get(entry.value_span.clone()).unwrap_or_default();
    let path = entry.keys.join(".");
    let word = kind(entry.value);
    match entry.value {
        DeValue::Table(_) if expected.contains("sequence") && Keys::<D>::is_list(&path) => {
            Fault::new(span, format!("there can be several of [{path}], and each is written in double brackets"))
                .help(format!("write [[{path}]]"))
        }
        _ if Keys::<D>::is_table(&path) && !matches!(entry.value, DeValue::Table(_)) => {
            no_table::<D>(span, entry, text)
        }
        DeValue::String(_) | DeValue::Integer(_) if expected.contains("sequence") => {
            Fault::new(span, format!("{key} is a list, not {word}")).help(format!("write {key} = [{written}]"))
        }
        _ if !Keys::<D>::words(&table, key).is_empty() => {
            let known = Keys::<D>::words(&table, key);
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            Fault::new(span, format!("{key} is one of several words, not {word}: write {}", one_of(&known)))
        }
        DeValue::String(date) if expected.contains("datetime") => {
            Fault::new(span, format!("{key} is a date, not {word}"))
                .help(format!("write {key} = {date}, without quotes"))
        }
        DeValue::String(_) if expected.contains("bool") => {
            Fault::new(span, format!("{key} is true or false, not {word}"))
                .help(format!("write {key} = true, without quotes"))
        }
        DeValue::String(digits) if is_number(expected) => {
            let number = if digits.parse::<u64>().is_ok() { digits } else { "4" };
            Fault::new(span, format!("{key} is a number, not {word}"))
                .help(format!("write {key} = {number}, without quotes"))
        }
        _ if expected.starts_with("a size ") => Fault::new(span, format!("{key} is {written}: write {expected}")),
        _ if is_number(expected) && !is_type => {
            let least = if expected.contains("nonzero") { 1 } else { 0 };
            Fault::new(span, format!("{key} is {written}: it is a whole number from {least} on"))
        }
        _ if is_number(expected) => Fault::new(span, format!("{key} is {written}: it is a whole number")),
        DeValue::Integer(_) | DeValue::Float(_) | DeValue::Boolean(_) | DeValue::Datetime(_)
            if expected.contains("string") =>
        {
            Fault::new(span, format!("{key} is text, not {word}")).help(format!("write {key} = \"{written}\""))
        }
        _ if expected.contains("string") => Fault::new(span, format!("{key} is text, not {word}")),
        _ => Fault::new(span, format!("{key} cannot be {word}: {message}")),
    }
}

/// Lists in the place of tables: their items would be read as the values of the table's keys, in the order that the program has them.
pub(super) fn lists_for_tables<D: Document>(entries: &[DocumentEntry<'_>], text: &str) -> Vec<Fault> {
    let is_one = |entry: &&DocumentEntry<'_>| {
        let DeValue::Array(items) = entry.value else { return false };
        let path = entry.keys.join(".");
        let is_item = matches!(entry.steps.last(), Some(Step::Item(_)));
        // Of a list of tables each item is one. Tables in a list where there is one table are told otherwise.
        let has_tables = items.iter().any(|item| item.get_ref().is_table());
        Keys::<D>::is_table(&path) && Keys::<D>::is_list(&path) == is_item && !has_tables
    };
    entries.iter().filter(is_one).map(|entry| no_table::<D>(entry.value_span.clone(), entry, text)).collect()
}

fn no_table<D: Document>(span: Range<usize>, entry: &DocumentEntry<'_>, text: &str) -> Fault {
    let written = text.get(entry.value_span.clone()).unwrap_or_default();
    let key = entry.keys.last().map_or("", String::as_str);
    let message = format!("{key} is a table, not {}", kind(entry.value));
    Fault::new(span, message).help(table_help::<D>(&entry.keys.join("."), written))
}

/// The table that an entry is in. The items of a list of tables are tables themselves.
fn table_of(entry: &DocumentEntry<'_>) -> String {
    let names = entry.keys.len().saturating_sub(1);
    entry.keys[..names].join(".")
}

fn table_help<D: Document>(path: &str, written: &str) -> String {
    match path {
        "site.upstream" if written.starts_with('[') => {
            format!("the servers of a site have another key: upstreams = {written}")
        }
        "site.upstream" => format!("the servers of a site are a list: upstreams = [{written}]"),
        "gate.must_allow" => {
            "write [[gate.must_allow]], and below it agents = [\"Googlebot\"] and paths = [\"/\"]".to_owned()
        }
        "site.robots" => format!("write robots.path = {written}"),
        "admin" => "write [admin], and below it mode = \"off\" or socket = \"…\"".to_owned(),
        path => format!("write {} on a line of its own, and its keys below", Keys::<D>::header(path)),
    }
}

fn is_number(expected: &str) -> bool {
    ["usize", "u32", "u64", "i64", "integer", "nonzero"].iter().any(|kind| expected.contains(kind))
}

/// What a value is, in a sentence.
fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "text",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// As in `"a", "b" or "c"`.
fn one_of(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}
