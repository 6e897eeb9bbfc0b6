//! The tables and keys of a document, and what an unknown key is probably meant for.

use crate::suggestion::{did_you_mean, nearest};

/// How a value is written.
pub(crate) enum Kind {
    Text,
    /// A length of time, as text with a unit.
    Time,
    /// Octets: a number, or text with a unit.
    Size,
    /// A whole number from this on.
    Number(u64),
    /// True or false.
    Flag,
    Date,
    /// One of these.
    Words(Vec<&'static str>),
    List(Box<Kind>),
    Table(&'static [Key]),
    /// A table whose keys are the operator's.
    Named(Box<Kind>),
    /// The short form, and the ones that say more.
    Either(Vec<Kind>),
}

/// A key of a table.
pub(crate) struct Key {
    pub(crate) name: &'static str,
    /// What it is for; empty where its name says it.
    pub(crate) about: &'static str,
    pub(crate) kind: fn() -> Kind,
    pub(crate) is_required: fn() -> bool,
}

/// The keys of a document.
#[derive(Clone, Copy)]
pub(crate) struct Keys {
    pub(super) top: &'static [Key],
    /// What the document is called in a message.
    pub(super) name: &'static str,
}

/// A table that a document may have.
pub(super) struct KnownTable {
    /// As `site.robots`; empty for the top of the file.
    pub(super) path: String,
    /// Whether there can be several, in double brackets.
    pub(super) is_list: bool,
    pub(super) keys: &'static [Key],
}

impl Keys {
    /// Every table, each before those in it.
    pub(super) fn tables(self) -> Vec<KnownTable> {
        let mut found = vec![KnownTable { path: String::new(), is_list: false, keys: self.top }];
        let mut at = 0;
        while let Some(table) = found.get(at) {
            let of_key = |key: &Key| {
                let (is_list, kind) = match (key.kind)() {
                    Kind::List(item) => (true, *item),
                    kind => (false, kind),
                };
                let Kind::Table(keys) = kind else { return None };
                let path = [&*table.path, key.name].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>();
                Some(KnownTable { path: path.join("."), is_list, keys })
            };
            let inside: Vec<_> = table.keys.iter().filter_map(of_key).collect();
            at += 1;
            found.splice(at..at, inside);
        }
        found
    }

    /// How a table is written: `[site.robots]`, `[[site]]`.
    pub(super) fn header(self, path: &str) -> String {
        let is_list = self.tables().iter().any(|table| table.path == path && table.is_list);
        if is_list { format!("[[{path}]]") } else { format!("[{path}]") }
    }

    /// What a table is called in a message.
    pub(super) fn called(self, path: &str) -> String {
        if path.is_empty() { "the top of the file".to_owned() } else { self.header(path) }
    }

    /// What an unknown key of a table may be meant for.
    pub(super) fn help(self, table: &str, keys: &[Key], key: &str) -> Option<String> {
        let tables = self.tables();
        let names = |table: &KnownTable| table.keys.iter().map(|key| key.name).collect::<Vec<_>>();
        let here: Vec<_> = keys.iter().map(|key| key.name).collect();
        // One of many, or many of one.
        let is_list = |key: &&Key| matches!((key.kind)(), Kind::List(_));
        let is_number_of = |known: &&str| known.strip_suffix('s') == Some(key) || key.strip_suffix('s') == Some(known);
        if let Some(known) = keys.iter().filter(is_list).map(|known| known.name).find(is_number_of) {
            return Some(format!("did you mean {known:?}?"));
        }
        let others = || tables.iter().filter(|other| other.path != table);
        let homes: Vec<_> = others().filter(|other| names(other).contains(&key)).map(|home| &*home.path).collect();
        // Where tables below this one have it, those are meant.
        let below: Vec<_> = homes.iter().copied().filter(|home| !table.is_empty() && home.starts_with(table)).collect();
        let homes = if below.is_empty() { homes } else { below };
        if !homes.is_empty() {
            let homes: Vec<String> = homes.into_iter().map(|home| self.called(home)).collect();
            return Some(format!("{key} belongs to {}", homes.join(" or ")));
        }
        let near = |other: &KnownTable| {
            let near = nearest(key, names(other))?;
            Some(format!("did you mean {near:?} of {}?", self.called(&other.path)))
        };
        did_you_mean(key, here.iter().copied())
            .or_else(|| others().find_map(near))
            .or_else(|| Some(format!("its keys are {}", here.join(", "))))
    }
}
