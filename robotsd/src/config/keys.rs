//! The tables and keys of a document, and suggestions for unknown keys.

use crate::names::nearest;

/// The type of a key's value, for messages and for the JSON schema.
pub(crate) enum Kind {
    Text,
    /// A duration, as a string with a unit.
    Time,
    /// A number of bytes, as a number or as a string with a unit.
    Size,
    /// A whole number that is not less than the value in parentheses.
    Number(u64),
    Flag,
    Date,
    /// One of several strings.
    Words(Vec<&'static str>),
    List(Box<Kind>),
    Table(&'static [Key]),
    /// A table with keys that the operator chooses.
    Named(Box<Kind>),
    /// A value with a short form and longer forms.
    Either(Vec<Kind>),
}

pub(crate) struct Key {
    pub(crate) name: &'static str,
    /// Description of the key; empty if its name is clear enough.
    pub(crate) about: &'static str,
    pub(crate) kind: fn() -> Kind,
    pub(crate) is_required: fn() -> bool,
}

#[derive(Clone, Copy)]
pub(crate) struct Keys {
    pub(super) top: &'static [Key],
    pub(super) name: &'static str,
}

pub(super) struct KnownTable {
    /// Path of the table, such as `site.robots`; empty for the top level of the file.
    pub(super) path: String,
    /// Whether the table may occur several times.
    pub(super) is_list: bool,
    pub(super) keys: &'static [Key],
}

impl Keys {
    /// Returns every table. A table comes before its subtables.
    pub(super) fn tables(self) -> Vec<KnownTable> {
        fn add(path: String, is_list: bool, keys: &'static [Key], found: &mut Vec<KnownTable>) {
            let below = if path.is_empty() { String::new() } else { format!("{path}.") };
            found.push(KnownTable { path, is_list, keys });
            for key in keys {
                let path = format!("{below}{}", key.name);
                match (key.kind)() {
                    Kind::Table(keys) => add(path, false, keys, found),
                    Kind::List(item) => {
                        if let Kind::Table(keys) = *item {
                            add(path, true, keys, found);
                        }
                    }
                    _ => {}
                }
            }
        }
        let mut found = Vec::new();
        add(String::new(), false, self.top, &mut found);
        found
    }

    /// Returns the header of a table, such as `[site.robots]` or `[[site]]`.
    pub(super) fn header(self, path: &str) -> String {
        let is_list = self.tables().iter().any(|table| table.path == path && table.is_list);
        if is_list { format!("[[{path}]]") } else { format!("[{path}]") }
    }

    pub(super) fn table_label(self, path: &str) -> String {
        if path.is_empty() { "the top of the file".to_owned() } else { self.header(path) }
    }

    /// Returns the known key that was probably meant, and the advice for the message.
    pub(super) fn meant(self, table: &str, keys: &[Key], key: &str) -> (Option<&'static str>, String) {
        let tables = self.tables();
        let names = |table: &KnownTable| table.keys.iter().map(|key| key.name).collect::<Vec<_>>();
        // The unknown key may be the singular of a known key, or its plural.
        let is_list = |key: &&Key| matches!((key.kind)(), Kind::List(_));
        let is_number_of = |known: &&str| known.strip_suffix('s') == Some(key) || key.strip_suffix('s') == Some(known);
        let of_number = keys.iter().filter(is_list).map(|known| known.name).find(is_number_of);
        let others = || tables.iter().filter(|other| other.path != table);
        let homes: Vec<_> = others().filter(|other| names(other).contains(&key)).map(|home| &*home.path).collect();
        if of_number.is_none() && !homes.is_empty() {
            // If subtables of `table` have the key, only these subtables are suggested.
            let is_below = |home: &&str| !table.is_empty() && home.starts_with(table);
            let below: Vec<_> = homes.iter().copied().filter(is_below).collect();
            let homes = if below.is_empty() { homes } else { below };
            let homes: Vec<String> = homes.into_iter().map(|home| self.table_label(home)).collect();
            return (None, format!("{key:?} belongs to {}", homes.join(" or ")));
        }
        let here = || keys.iter().map(|key| key.name);
        if let Some(meant) = of_number.or_else(|| nearest(key, here())) {
            return (Some(meant), format!("did you mean {meant:?}?"));
        }
        let near = |other: &KnownTable| {
            let near = nearest(key, names(other))?;
            Some(format!("did you mean {near:?} in {table}?", table = self.table_label(&other.path)))
        };
        let list = || format!("its keys are {}", here().collect::<Vec<_>>().join(", "));
        (None, others().find_map(near).unwrap_or_else(list))
    }
}
