//! Reads the tables of a TOML file. If the file has a syntax error, only this error is reported.
//! Without a syntax error, all problems with keys and types are reported: [`Reader`] continues
//! after a value of the wrong type.

use std::ops::Range;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{ConfigError, Fault, Faults, Key, Keys, Kind};
use crate::input;
use crate::names::did_you_mean;

/// Maximum number of reported problems with keys and types. The number is limited because a file in
/// another format may have a problem on every line, and finding the line and column of each problem
/// takes time.
const MAX_PROBLEMS: usize = 20;

const EXAMPLES: [(&str, &str); 6] = [
    ("address", "\"127.0.0.1:8080\""),
    ("name", "\"shop\""),
    ("chain", "\"fullchain.pem\""),
    ("key", "\"privkey.pem\""),
    ("agents", "[\"Googlebot\"]"),
    ("paths", "[\"/\"]"),
];

pub(crate) trait Value: Sized {
    fn kind() -> Kind;

    /// Reads the value, and adds its problems to the faults of the reader. Returns `None` if the
    /// value is unusable.
    fn read(reader: &mut Reader<'_>, place: Place<'_>, value: &Spanned<DeValue<'_>>) -> Option<Self>;

    /// Returns the value of an absent key whose declaration has no default; `None` if such a key is
    /// required.
    fn absent() -> Option<Self> {
        None
    }

    fn check_bounds(&self, _: &mut Faults) {}
}

/// A table whose keys are declared with the macro `tables`.
pub(crate) trait Table: Value {
    const KEYS: &'static [Key];

    fn read_table(reader: &mut Reader<'_>, table: &str, values: &DeTable<'_>, span: &Range<usize>) -> Option<Self>;
}

/// A kind of file, such as the config, whose tables are declared with the macro `tables`.
pub(crate) trait Document: Table {
    const NAME: &'static str;
}

/// The path and the position of each key that could not be read. The path of an unknown key ends
/// with the key that was probably meant, or with `?` if no key is similar.
pub(super) type UnreadKeys = Vec<(String, usize)>;

pub(super) struct ReadText<D> {
    /// The document that was read; `None` if the text is not TOML. Keys with unreadable values have
    /// their defaults.
    pub(super) document: Option<D>,
    pub(super) faults: Vec<Fault>,
    pub(super) unread: UnreadKeys,
    pub(super) paths: Vec<Spanned<PathBuf>>,
}

pub(super) fn parse(text: &str) -> Result<Spanned<DeTable<'_>>, Fault> {
    DeTable::parse(text).map_err(|error| syntax_fault(&error))
}

/// The help for a key that occurs twice, and for dotted keys that conflict with a table of the same
/// name.
const DUPLICATE_KEY_HELP: &str =
    "write each key once, and all keys of a table in one place: as dotted keys, or below a [table] header";

pub(super) fn syntax_fault(error: &toml::de::Error) -> Fault {
    let fault = Fault::new(error.span().unwrap_or_default(), error.message());
    match error.message() {
        "duplicate key" => fault.help(DUPLICATE_KEY_HELP.to_owned()),
        _ => fault,
    }
}

pub(crate) fn read<D: Document>(text: &str) -> Result<D, Vec<Fault>> {
    let ReadText { document, faults, .. } = read_with_faults(text);
    document.filter(|_| faults.is_empty()).ok_or(faults)
}

/// Reads a document, and returns every problem with its keys and types. After a syntax error,
/// returns only that error, because the parser may misread the text after the error.
pub(super) fn read_with_faults<D: Document>(text: &str) -> ReadText<D> {
    let table = match parse(text) {
        Ok(table) => table,
        Err(fault) => return ReadText { document: None, faults: vec![fault], unread: Vec::new(), paths: Vec::new() },
    };
    let mut reader = Reader::new(text, Keys { top: D::KEYS, name: D::NAME });
    let document = D::read_table(&mut reader, "", table.get_ref(), &table.span());
    let Reader { mut faults, unread, paths, .. } = reader;
    faults.sort_by_key(|fault| fault.order(text));
    faults.truncate(MAX_PROBLEMS);
    ReadText { document, faults, unread, paths }
}

pub(super) fn read_text(path: &Path) -> Result<String, ConfigError> {
    let bytes = input::read_whole(path).map_err(|error| ConfigError::unreadable(path, &error))?;
    as_utf8(path, bytes)
}

pub(crate) fn as_utf8(path: &Path, bytes: Vec<u8>) -> Result<String, ConfigError> {
    String::from_utf8(bytes).map_err(|error| {
        let start = error.utf8_error().valid_up_to();
        let text = String::from_utf8_lossy(error.as_bytes());
        Fault::new(start..start, "the file is not valid UTF-8: save it as UTF-8").at(path, &text)
    })
}

pub(crate) struct Reader<'t> {
    text: &'t str,
    keys: Keys,
    pub(super) faults: Vec<Fault>,
    unread: UnreadKeys,
    pub(super) paths: Vec<Spanned<PathBuf>>,
}

/// The table and the key that contain a value. An item of a list has the key of the list.
#[derive(Clone, Copy)]
pub(crate) struct Place<'p> {
    /// Path of the table, such as `site.robots`; empty at the top of the file.
    pub(super) table: &'p str,
    pub(super) key: &'p str,
}

impl Place<'_> {
    pub(super) fn path(self) -> String {
        if self.table.is_empty() { self.key.to_owned() } else { format!("{}.{}", self.table, self.key) }
    }
}

impl<'t> Reader<'t> {
    pub(super) const fn new(text: &'t str, keys: Keys) -> Self {
        Self { text, keys, faults: Vec::new(), unread: Vec::new(), paths: Vec::new() }
    }

    pub(crate) fn value<T: Value>(&mut self, table: &str, key: &str, values: &DeTable<'_>) -> Option<T> {
        let (written, value) = values.get_key_value(key)?;
        let place = Place { table, key };
        let read = T::read(self, place, value);
        self.note_unread(place, written.span().start, read)
    }

    pub(super) fn note_unread<T>(&mut self, place: Place<'_>, at: usize, read: Option<T>) -> Option<T> {
        if read.is_none() {
            self.unread.push((place.path(), at));
        }
        read
    }

    pub(crate) fn table<T: Table>(&mut self, place: Place<'_>, value: &Spanned<DeValue<'_>>) -> Option<T> {
        match value.get_ref() {
            DeValue::Table(table) => T::read_table(self, &place.path(), table, &value.span()),
            _ => self.wrong::<T>(place, value),
        }
    }

    /// Adds an error for each unknown key of a table. Returns the known keys that were probably
    /// meant.
    pub(crate) fn unknown_keys<T: Table>(&mut self, table: &str, values: &DeTable<'_>) -> Vec<&'static str> {
        let mut all_meant = Vec::new();
        for key in values.keys().filter(|key| T::KEYS.iter().all(|known| known.name != key.get_ref().as_ref())) {
            let (meant, help) = self.keys.meant(table, T::KEYS, key.get_ref());
            self.unread.push((Place { table, key: meant.unwrap_or("?") }.path(), key.span().start));
            all_meant.extend(meant);
            let place = if table.is_empty() { self.keys.name.to_owned() } else { self.keys.table_label(table) };
            self.faults.push(Fault::new(key.span(), format!("{place} has no key {:?}", key.get_ref())).help(help));
        }
        all_meant
    }

    /// Adds an error if the key is missing, unless `meant` contains the key. `meant` contains the
    /// known keys that were probably misspelled in this table.
    pub(crate) fn missing(
        &mut self,
        table: &str,
        key: &str,
        values: &DeTable<'_>,
        span: &Range<usize>,
        meant: &[&'static str],
    ) {
        if values.contains_key(key) || meant.contains(&key) {
            return;
        }
        let example = EXAMPLES.iter().find(|(known, _)| *known == key).map_or("\"…\"", |(_, example)| *example);
        let place =
            if table.is_empty() { self.keys.name.to_owned() } else { format!("this {}", self.keys.header(table)) };
        let fault = Fault::new(span.clone(), format!("{place} lacks the key {key:?}"));
        self.faults.push(fault.help(format!("write {key} = {example}")));
    }

    pub(crate) fn word<'v, T: Value>(&mut self, place: Place<'_>, value: &'v Spanned<DeValue<'_>>) -> Option<&'v str> {
        let (DeValue::String(word), Kind::Words(known)) = (value.get_ref(), T::kind()) else {
            return self.wrong::<T>(place, value).and(None);
        };
        if known.contains(&&**word) {
            return Some(word);
        }
        let message =
            format!("{word:?} is not a value of {key:?}: write {known}", key = place.key, known = one_of(&known));
        self.faults.push(Fault::new(value.span(), message).help(did_you_mean(word, known)));
        None
    }

    pub(super) fn fault<T>(&mut self, value: &Spanned<DeValue<'_>>, message: impl Into<String>) -> Option<T> {
        self.faults.push(Fault::new(value.span(), message));
        None
    }

    pub(super) fn wrong<T: Value>(&mut self, place: Place<'_>, value: &Spanned<DeValue<'_>>) -> Option<T> {
        let fault = self.describe(&T::kind(), place, value);
        self.faults.push(fault);
        None
    }

    fn describe(&self, kind: &Kind, place: Place<'_>, value: &Spanned<DeValue<'_>>) -> Fault {
        let (span, value, key) = (value.span(), value.get_ref(), place.key);
        let written = self.text.get(span.clone()).unwrap_or_default();
        let (path, word) = (place.path(), type_name(value));
        match (kind, value) {
            (Kind::List(item), DeValue::Table(_)) if matches!(**item, Kind::Table(_)) => {
                let message = format!("the table {path:?} may occur several times, so its name needs double brackets");
                Fault::new(span, message).help(format!("write [[{path}]]"))
            }
            (Kind::Table(_), DeValue::Array(items)) if items.iter().any(|item| item.get_ref().is_table()) => {
                let first = items.first().map_or(span, Spanned::span);
                let message = format!("the table {path:?} may occur only once, so its name needs single brackets");
                Fault::new(first, message).help(format!("write [{path}]"))
            }
            (Kind::List(item), _) if matches!(**item, Kind::Table(_)) => {
                self.missing_table_error(span, &path, word, written)
            }
            (Kind::Table(_) | Kind::Named(_), _) => self.missing_table_error(span, &path, word, written),
            (Kind::List(_), DeValue::String(_) | DeValue::Integer(_)) => {
                Fault::new(span, format!("{key:?} must be a list, not {word}"))
                    .help(format!("write {key} = [{written}]"))
            }
            (Kind::Words(known), _) => string_list_error(span, key, known, word),
            (Kind::List(item), _) => match &**item {
                Kind::Words(known) => string_list_error(span, key, known, word),
                _ => Fault::new(span, format!("{key:?} must be a list, not {word}")),
            },
            (Kind::Date, _) => {
                let date = if let DeValue::String(date) = value { date } else { "2027-03-31" };
                Fault::new(span, format!("{key:?} must be a date, not {word}"))
                    .help(format!("write {key} = {date}, without quotes"))
            }
            (Kind::Flag, _) => Fault::new(span, format!("{key:?} must be true or false, not {word}"))
                .help(format!("write {key} = true, without quotes")),
            (Kind::Number(_), DeValue::String(digits)) => {
                let number = if digits.parse::<u64>().is_ok() { digits } else { "4" };
                Fault::new(span, format!("{key:?} must be a number, not {word}"))
                    .help(format!("write {key} = {number}, without quotes"))
            }
            (Kind::Size, _) => {
                Fault::new(span, format!("{key:?} is {written}: write a size such as 65536 or \"64KiB\""))
            }
            (Kind::Number(least), DeValue::Integer(_)) => {
                Fault::new(span, format!("{key:?} is {written}: write a whole number, at least {least}"))
            }
            (Kind::Number(_), _) => Fault::new(span, format!("{key:?} is {written}: write a whole number")),
            (Kind::Text | Kind::Time | Kind::Either(_), DeValue::Array(_) | DeValue::Table(_)) => {
                Fault::new(span, format!("{key:?} must be a string, not {word}"))
            }
            (Kind::Text | Kind::Time | Kind::Either(_), _) => {
                Fault::new(span, format!("{key:?} must be a string, not {word}"))
                    .help(format!("write {key} = \"{written}\""))
            }
        }
    }

    fn missing_table_error(&self, span: Range<usize>, path: &str, word: &str, written: &str) -> Fault {
        let key = path.rsplit('.').next().unwrap_or_default();
        let help = match path {
            "site.upstream" if written.starts_with('[') => {
                format!("write upstreams = {written} for the servers of the site")
            }
            "site.upstream" => format!("write upstreams = [{written}] for the servers of the site"),
            "gate.must_allow" => {
                "write [[gate.must_allow]], and below it agents = [\"Googlebot\"] and paths = [\"/\"]".to_owned()
            }
            "site.robots" => format!("write robots.path = {written}"),
            "admin" => "write the line [admin], and below it the line enabled = false or socket = \"…\"".to_owned(),
            path => format!(
                "write {header} on a line of its own, and the keys of the table below it",
                header = self.keys.header(path)
            ),
        };
        Fault::new(span, format!("{key:?} must be a table, not {word}")).help(help)
    }
}

fn string_list_error(span: Range<usize>, key: &str, known: &[&str], word: &str) -> Fault {
    Fault::new(span, format!("{key:?} must be a string, not {word}: write {known}", known = one_of(known)))
}

/// Returns the name of a value's type for messages.
fn type_name(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// Returns a list such as `"a", "b" or "c"`.
fn one_of(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}
