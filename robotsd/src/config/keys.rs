//! The tables and keys of a document, as its types have them.

use std::marker::PhantomData;

use serde::de::DeserializeOwned;
use toml::de::DeValue;

use super::document_entry::DocumentEntry;
use super::error::Fault;
use crate::suggestion::{did_you_mean, nearest};

/// A key that no table has.
const NO_KEY: &str = "no-such-key";

/// A file whose tables are known by their paths.
pub(crate) trait Document: DeserializeOwned {
    /// Every table, as `site.robots`, those that can be repeated with `[]` at their end; the top of the file is none of them.
    const TABLES: &'static [&'static str];

    /// What it is called in a message.
    const NAME: &'static str;
}

/// What the tables of a document hold. Asked of its types, so that there is no second list of keys.
#[derive(Debug)]
pub(super) struct Keys<D>(PhantomData<D>);

impl<D> Default for Keys<D> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<D: Document> Keys<D> {
    /// The keys of a table. The error for an unknown key lists the known ones.
    pub(super) fn of(table: &str) -> Vec<String> {
        let text = format!("{}{NO_KEY} = 1\n", Self::headers(table));
        let Err(error) = toml::from_str::<D>(&text) else { return Vec::new() };
        let unknown = error.message().strip_prefix("unknown field `");
        let listed = unknown.and_then(|rest| rest.split_once("expected")).map_or("", |(_, listed)| listed);
        listed.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    }

    /// The values of a key that is one of several words; none where it is not.
    pub(super) fn words(table: &str, key: &str) -> Vec<String> {
        let text = |value: &str| format!("{}{key} = {value}\n", Self::headers(table));
        let word = format!("{NO_KEY:?}");
        for value in [word.clone(), format!("[{word}]")] {
            let Err(error) = toml::from_str::<D>(&text(&value)) else { continue };
            if let Some((_, listed)) = error.message().split_once(&format!("unknown variant `{NO_KEY}`, expected")) {
                return listed.split('`').skip(1).step_by(2).map(str::to_owned).collect();
            }
        }
        Vec::new()
    }

    /// How a table is written: `[site.robots]`, `[[site]]`.
    pub(super) fn header(table: &str) -> String {
        if Self::is_list(table) { format!("[[{table}]]") } else { format!("[{table}]") }
    }

    pub(super) fn is_table(path: &str) -> bool {
        D::TABLES.iter().any(|table| table.trim_end_matches("[]") == path)
    }

    pub(super) fn is_list(table: &str) -> bool {
        D::TABLES.iter().any(|listed| listed.strip_suffix("[]") == Some(table))
    }

    /// What an unknown key of a table may be meant for.
    pub(super) fn help(&self, table: &str, key: &str) -> Option<String> {
        let here = Self::of(table);
        // One of many, or many of one.
        let is_number_of =
            |known: &&String| known.strip_suffix('s') == Some(key) || key.strip_suffix('s') == Some(known.as_str());
        if let Some(known) = here.iter().find(is_number_of) {
            return Some(format!("did you mean {known:?}?"));
        }
        let others: Vec<&str> = self.tables().filter(|other| *other != table).collect();
        let has = |other: &&&str| Self::of(other).iter().any(|known| known == key);
        let homes: Vec<&str> = others.iter().filter(has).copied().collect();
        // Where tables below this one have it, those are meant.
        let below: Vec<&str> =
            homes.iter().filter(|home| !table.is_empty() && home.starts_with(table)).copied().collect();
        let homes = if below.is_empty() { homes } else { below };
        if !homes.is_empty() {
            let homes: Vec<String> = homes.into_iter().map(called::<D>).collect();
            return Some(format!("{key} belongs to {}", homes.join(" or ")));
        }
        if let Some(help) = did_you_mean(key, here.iter().map(String::as_str)) {
            return Some(help);
        }
        for other in others {
            if let Some(near) = nearest(key, Self::of(other).iter().map(String::as_str)) {
                return Some(format!("did you mean {near:?} of {}?", called::<D>(other)));
            }
        }
        Some(format!("its keys are {}", here.join(", ")))
    }

    /// Tables that stand in double brackets, although there is one of each.
    pub(super) fn repeated(&self, entries: &[DocumentEntry<'_>]) -> Vec<Fault> {
        // A list of anything else is a value of the wrong type.
        let has_tables = |value: &DeValue<'_>| match value {
            DeValue::Array(items) => items.iter().any(|item| item.get_ref().is_table()),
            _ => false,
        };
        let is_one = |entry: &&DocumentEntry<'_>| {
            let path = entry.keys.join(".");
            has_tables(entry.value) && Self::is_table(&path) && !Self::is_list(&path)
        };
        let fault = |entry: &DocumentEntry<'_>| {
            let path = entry.keys.join(".");
            let span = match entry.value {
                DeValue::Array(items) => items.first().map_or(entry.value_span.clone(), toml::Spanned::span),
                _ => entry.value_span.clone(),
            };
            Fault::new(span, format!("there is one table {path}, not a list of them")).help(format!("write [{path}]"))
        };
        entries.iter().filter(is_one).map(fault).collect()
    }

    fn tables(&self) -> impl Iterator<Item = &'static str> {
        [""].into_iter().chain(D::TABLES.iter().map(|table| table.trim_end_matches("[]")))
    }

    /// A document with this table as the last one, open.
    fn headers(table: &str) -> String {
        let mut text = String::new();
        let mut at = 0;
        while at < table.len() {
            at = table[at..].find('.').map_or(table.len(), |dot| at + dot);
            text += &format!("{}\n", Self::header(&table[..at]));
            at += 1;
        }
        text
    }
}

/// What a table is called in a message.
pub(super) fn called<D: Document>(table: &str) -> String {
    if table.is_empty() { "the top of the file".to_owned() } else { Keys::<D>::header(table) }
}
