//! Parts of a config file that commands need, read also where the rest of the file has faults: the robotsd that runs with an
//! earlier version of the file must stay within reach.
//!
//! Only entries that are certain are read. An entry on a line with a syntax error is left out, and so is one below a header
//! with an error, because the parser adds it to the table before.

use std::collections::BTreeSet;
use std::ops::Range;

use serde::de::DeserializeOwned;
use toml::de::{DeTable, DeValue, Deserializer};

use super::document_entry::{entries, entry_at, remove};
use super::error::Fault;
use super::value_error;

/// A part of a file, and the faults that were found on the way to it.
#[derive(Debug)]
pub(super) struct Salvaged<D> {
    pub(super) part: D,
    /// Of the syntax of the file, and of the values of the part.
    pub(super) faults: Vec<Fault>,
}

/// Reads the top-level entries that have one of these names.
///
/// # Errors
///
/// If none of the file can be read.
pub(super) fn read<D: DeserializeOwned>(text: &str, names: &[&str]) -> Result<Salvaged<D>, Fault> {
    let (_, errors) = DeTable::parse_recoverable(text);
    let mut faults: Vec<_> = errors.iter().map(|error| value_error::syntax(text, error)).collect();
    let own = if faults.is_empty() { text.to_owned() } else { own_lines(text, names) };
    if own.trim().is_empty()
        && let Some(fault) = recognize(text, errors.first().and_then(toml::de::Error::span))
    {
        return Err(fault);
    }
    let (mut document, errors) = DeTable::parse_recoverable(&own);
    let lines = Lines::of(&own);
    let spans = errors.iter().map(|error| error.span().unwrap_or_default());
    let faulty: BTreeSet<usize> = spans.map(|span| lines.number_at(span.start)).collect();
    let others: Vec<String> = document.get_ref().keys().map(|name| name.get_ref().to_string()).collect();
    for name in others.iter().filter(|name| !names.contains(&name.as_str())) {
        document.get_mut().remove(name.as_str());
    }
    let is_uncertain = |key: &Range<usize>, value: &Range<usize>| {
        let header = lines.header_above(key.start);
        faulty.range(lines.number_at(key.start)..=lines.number_at(value.end)).next().is_some()
            || header.is_some_and(|header| faulty.contains(&header))
    };
    // Values alone: a table that has a faulty entry keeps the others. The last come first, so that the numbers of items stay.
    let is_table = |value: &DeValue<'_>| match value {
        DeValue::Table(_) => true,
        DeValue::Array(items) => items.iter().any(|item| item.get_ref().is_table()),
        _ => false,
    };
    let uncertain = entries(&document)
        .into_iter()
        .filter(|entry| !is_table(entry.value) && is_uncertain(&entry.key_span, &entry.value_span))
        .map(|entry| entry.steps);
    for steps in uncertain.collect::<Vec<_>>().iter().rev() {
        remove(&mut document, steps);
    }
    loop {
        let error = match D::deserialize(Deserializer::from(document.clone())) {
            Ok(part) => return Ok(Salvaged { part, faults }),
            Err(error) => error,
        };
        faults.push(value_error::syntax(&own, &error));
        let found = entries(&document);
        let steps = error.span().and_then(|span| entry_at(&found, &span)).map(|entry| entry.steps.clone());
        if !steps.is_some_and(|steps| remove(&mut document, &steps)) {
            return Err(faults.remove(0));
        }
    }
}

/// The text without the lines of other entries, blank so that every octet keeps its place: a list or a text that is not closed
/// would take what follows into itself.
fn own_lines(text: &str, names: &[&str]) -> String {
    let is_own = |name: &str| {
        let first = name.split(['.', '=']).next().unwrap_or_default();
        names.contains(&first.trim_matches([' ', '\t', '"', '\'']))
    };
    // Before the first header, and of each table.
    let (mut is_below_header, mut is_in_own_table) = (false, false);
    let lines = text.split_inclusive('\n').map(|line| {
        let trimmed = line.trim_start_matches([' ', '\t']);
        let is_header = trimmed.starts_with('[');
        if is_header {
            let name = trimmed.trim_start_matches('[').split_once(']').map(|(name, _)| name);
            (is_below_header, is_in_own_table) = (true, name.is_some_and(is_own));
        }
        let is_kept = if is_below_header { is_in_own_table } else { trimmed.contains('=') && is_own(trimmed) };
        if is_kept { line.to_owned() } else { blank(line) }
    });
    lines.collect()
}

fn blank(line: &str) -> String {
    let blank = |octet: u8| if matches!(octet, b'\n' | b'\r') { char::from(octet) } else { ' ' };
    line.bytes().map(blank).collect()
}

/// Where the lines of a text begin.
struct Lines<'t> {
    text: &'t str,
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    fn of(text: &'t str) -> Self {
        let ends = text.match_indices('\n').map(|(end, _)| end + 1);
        Self { text, starts: std::iter::once(0).chain(ends).collect() }
    }

    /// The line that an octet is in, from 0.
    fn number_at(&self, octet: usize) -> usize {
        self.starts.partition_point(|start| *start <= octet).saturating_sub(1)
    }

    /// The line of the last header before an octet.
    fn header_above(&self, octet: usize) -> Option<usize> {
        let is_header = |line: &usize| {
            let rest = self.starts.get(*line).and_then(|start| self.text.get(*start..));
            rest.is_some_and(|rest| rest.trim_start_matches([' ', '\t']).starts_with('['))
        };
        (0..self.number_at(octet)).rev().find(is_header)
    }
}

/// The problem of a text that is another format; none where it may be TOML. `error` is where the parser first failed.
/// One sentence then says so in place of an error for every line.
pub(super) fn recognize(text: &str, error: Option<Range<usize>>) -> Option<Fault> {
    if let Some(at) = text.find('\0') {
        let message = "the file holds NUL octets, so it is no text, or is encoded as UTF-16: save it as UTF-8";
        return Some(Fault::new(at..at + 1, message));
    }
    error?;
    let (start, line) = lines(text).find(|(_, line)| !line.is_empty() && !line.starts_with('#'))?;
    let form = if line.starts_with('{') {
        Some("JSON: the file is read as TOML, with [tables] and key = value")
    } else if line.ends_with('{') {
        Some("a block in braces, as nginx and Caddy have them: the file is read as TOML, with [tables] and key = value")
    } else if line.starts_with('<') {
        Some("XML or HTML: the file is read as TOML, with [tables] and key = value")
    } else if line.to_ascii_lowercase().starts_with("user-agent:") {
        Some("a robots.txt: the file is read as TOML, and names the robots.txt")
    } else {
        None
    };
    if let Some(form) = form {
        return Some(Fault::new(start..start + line.len(), format!("this looks like {form}")));
    }
    let yaml = lines(text).find(|(_, line)| *line == "---" || line.starts_with("- ") || is_yaml_pair(line));
    let is_toml = lines(text)
        .any(|(_, line)| line.starts_with('[') || line.split_once(" = ").is_some_and(|(key, _)| is_key(key)));
    if let (Some((start, line)), false) = (yaml, is_toml) {
        let help = match line.split_once(": ") {
            Some((key, value)) if is_key(key) => format!("write {key} = {}", quoted(value)),
            Some(_) | None => match line.strip_suffix(':') {
                Some(key) if is_key(key) => format!("write [{key}], or [[{key}]] for each of several"),
                _ => "write [[table]] for each of several, and key = value".to_owned(),
            },
        };
        return Some(
            Fault::new(start..start + line.len(), "this looks like YAML: the file is read as TOML").help(help),
        );
    }
    None
}

/// The lines without the blanks around them, each with where it begins.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut start = 0;
    text.split_inclusive('\n').map(move |line| {
        let at = start + line.len() - line.trim_start().len();
        start += line.len();
        (at, line.trim())
    })
}

/// `key: value` or `key:`.
fn is_yaml_pair(line: &str) -> bool {
    let key = line.split_once(": ").map(|(key, _)| key).or_else(|| line.strip_suffix(':'));
    key.is_some_and(is_key)
}

fn is_key(word: &str) -> bool {
    let word = word.trim();
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
}

/// A plain word as TOML writes it.
fn quoted(value: &str) -> String {
    let value = value.trim();
    let is_bare =
        value.starts_with(['"', '\'', '[']) || value.parse::<f64>().is_ok() || matches!(value, "true" | "false");
    if is_bare { value.to_owned() } else { format!("{value:?}") }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Default, Deserialize, PartialEq, Eq)]
    #[serde(default)]
    struct Part {
        state_dir: Option<String>,
        admin: Option<Admin>,
    }

    #[derive(Debug, Default, Deserialize, PartialEq, Eq)]
    #[serde(default, deny_unknown_fields)]
    struct Admin {
        socket: Option<String>,
        address: Option<String>,
    }

    fn salvaged(text: &str) -> (Option<String>, Option<String>, Option<String>, bool) {
        let Salvaged { part, faults } = read::<Part>(text, &["state_dir", "admin"]).expect("something is read");
        let admin = part.admin.unwrap_or_default();
        (part.state_dir, admin.socket, admin.address, faults.is_empty())
    }

    #[test]
    fn what_is_certain_is_read_and_nothing_else() {
        let some = |text: &str| Some(text.to_owned());
        let (state, socket, address) = (some("state"), some("a.sock"), some("127.0.0.1:1"));
        for (text, want) in [
            ("state_dir = \"state\"\n[admin]\nsocket = \"a.sock\"\n", (&state, &socket, &None, true)),
            // A fault elsewhere, before and after.
            ("mode = refuse\nstate_dir = \"state\"\n[admin]\nsocket = \"a.sock\"\n", (&state, &socket, &None, false)),
            (
                "state_dir = \"state\"\n[admin]\nsocket = \"a.sock\"\n[[site]]\nname = \n",
                (&state, &socket, &None, false),
            ),
            // What is not closed, before it.
            ("upstreams = [\"http://127.0.0.1:1]\n[admin]\nsocket = \"a.sock\"\n", (&None, &socket, &None, false)),
            (
                "state_dir = \"state\"\n[[site]]\nhosts = [\"a\", \"b\"\n[admin]\nsocket = \"a.sock\"\n",
                (&state, &socket, &None, false),
            ),
            ("[[site]]\nname = \"\"\"shop\"\n[admin]\nsocket = \"a.sock\"\n", (&None, &socket, &None, false)),
            ("<<<<<<< HEAD\nmode refuse\n=======\n[ admin ]\nsocket = \"a.sock\"\n", (&None, &socket, &None, false)),
            // In the part itself: a typo, a wrong type, an unclosed text.
            ("[admin]\nsokcet = \"b.sock\"\naddress = \"127.0.0.1:1\"\n", (&None, &None, &address, false)),
            ("[admin]\nsocket = 1\naddress = \"127.0.0.1:1\"\n", (&None, &None, &address, false)),
            ("state_dir = \"state\n[admin]\nsocket = \"a.sock\"\n", (&None, &socket, &None, false)),
            ("[admin]\nsocket = \"a.so\naddress = \"127.0.0.1:1\"\n", (&None, &None, &address, false)),
            // What follows a broken header is of another table.
            ("[admin]\nsocket = \"a.sock\"\n[listener\naddress = \"127.0.0.1:1\"\n", (&None, &socket, &None, false)),
            ("state_dir = \"state\"\n[admin\nsocket = \"a.sock\"\n", (&state, &None, &None, false)),
        ] {
            let (state_dir, socket, address, is_clean) = salvaged(text);
            assert_eq!((&state_dir, &socket, &address, is_clean), want, "{text}");
        }
        assert!(read::<Part>("server {\n  listen 80;\n}\n", &["admin"]).is_err());
    }
}
