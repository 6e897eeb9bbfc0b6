//! From the text of a TOML file to its tables, with every problem of syntax, keys and types on the way, as its author would put it.
//!
//! The parser goes on after a syntax error by itself, and so does [`Reader`] after a value that is not what its key holds.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue, Error};

use super::{ConfigError, Fault, Faults, Key, Keys, Kind, syntax};
use crate::names::{did_you_mean, nearest};

/// Further problems are those of a file that is something else.
const MOST: usize = 20;

/// Examples of required keys.
const EXAMPLES: [(&str, &str); 6] = [
    ("address", "\"127.0.0.1:8080\""),
    ("name", "\"shop\""),
    ("chain", "\"fullchain.pem\""),
    ("key", "\"privkey.pem\""),
    ("agents", "[\"Googlebot\"]"),
    ("paths", "[\"/\"]"),
];

/// A value of a file.
pub(crate) trait Value: Sized {
    fn kind() -> Kind;

    /// Reads it; none where it cannot be used at all, once its problems are noted.
    fn read(reader: &mut Reader<'_>, place: Place<'_>, value: &Spanned<DeValue<'_>>) -> Option<Self>;

    /// The value of a key that is not there and has no default of its own; none if the key is required.
    fn absent() -> Option<Self> {
        None
    }

    /// Notes the values in it that are out of their bounds.
    fn check_bounds(&self, _: &mut Faults) {}
}

/// A table with keys of its own.
pub(crate) trait Table: Value {
    const KEYS: &'static [Key];

    /// `table` is its path.
    fn read_table(reader: &mut Reader<'_>, table: &str, values: &DeTable<'_>, span: &Range<usize>) -> Option<Self>;
}

/// A file whose tables are known.
pub(crate) trait Document: Table {
    /// The name in a message.
    const NAME: &'static str;
}

/// The path of each key that could not be read, and where it stands; `?` is one that is unknown.
pub(super) type UnreadKeys = Vec<(String, usize)>;

/// Reads a text, or returns its problems: those of the syntax alone, where it has any.
pub(crate) fn read<D: Document>(text: &str) -> Result<D, Vec<Fault>> {
    read_with_paths(text).map(|(document, _)| document)
}

/// The same with every path of a file or folder that is written in it.
pub(super) fn read_with_paths<D: Document>(text: &str) -> Result<(D, Vec<Spanned<PathBuf>>), Vec<Fault>> {
    let mended = OnceCell::new();
    let parsed = Parsed::new(text, &mended);
    if !parsed.faults.is_empty() {
        return Err(parsed.faults);
    }
    let (document, faults, _, paths) = parsed.tables::<D>();
    document.filter(|_| faults.is_empty()).map(|document| (document, paths)).ok_or(faults)
}

/// Whether a text is TOML.
pub(super) fn has_syntax(text: &str) -> bool {
    Parsed::new(text, &OnceCell::new()).faults.is_empty()
}

/// Reads what there is in spite of problems, so that what else is wrong is found as well. A word that is misspelled counts as the one
/// that it is probably meant to be, and defaults stand for what cannot be read.
pub(super) fn read_on<D: Document>(text: &str) -> (Option<D>, Vec<Fault>, UnreadKeys) {
    let (document, faults, unread, _) = Parsed::new(text, &OnceCell::new()).tables();
    (document, faults, unread)
}

/// What the parser made of a text, and the faults of its syntax.
struct Parsed<'t> {
    text: &'t str,
    /// None where nothing of it is certain.
    document: Option<Spanned<DeTable<'t>>>,
    errors: Vec<Error>,
    faults: Vec<Fault>,
    /// The tables that were left out.
    unread: UnreadKeys,
}

impl<'t> Parsed<'t> {
    /// `mended` keeps the text without the tables whose headers have no end, where there are some.
    fn new(text: &'t str, mended: &'t OnceCell<String>) -> Self {
        // A byte order mark is no part of a text; octets are counted with it.
        let (mut document, mut errors) = DeTable::parse_recoverable(text);
        if let Some(fault) = syntax::recognize(text, errors.first().and_then(Error::span)) {
            return Self { text, document: None, errors, faults: vec![fault], unread: Vec::new() };
        }
        let (closed, unread) = without_open_tables(text, &mut errors);
        if !unread.is_empty() {
            let (others, of_others) = DeTable::parse_recoverable(mended.get_or_init(|| closed));
            document = others;
            errors.extend(of_others);
        }
        // One a line: the others are most often its consequences.
        let (line_at, mut seen) = (line_numbers(text), BTreeSet::new());
        let faults = errors.iter().map(|error| syntax::fault(text, error));
        let mut faults: Vec<_> = faults.filter(|fault| seen.insert(line_at(fault.span.start))).take(MOST).collect();
        // Text that follows a list, a table or a text without an end was read as a part of it.
        faults.sort_by_key(|fault| fault.span.start);
        let unclosed = faults.iter().position(syntax::is_unclosed);
        faults.truncate(unclosed.map_or(MOST, |at| at + 1));
        Self { text, document: Some(document).filter(|_| unclosed.is_none()), errors, faults, unread }
    }

    fn tables<D: Document>(self) -> (Option<D>, Vec<Fault>, UnreadKeys, Vec<Spanned<PathBuf>>) {
        let Self { text, document, errors, faults, unread } = self;
        let Some(document) = document else { return (None, faults, Vec::new(), Vec::new()) };
        let (keys, is_certain) = (Keys { top: D::KEYS, name: D::NAME }, certain_places(text, &errors));
        let paths = Vec::new();
        let mut reader = Reader { text, keys, is_certain: &is_certain, guesses: true, faults, unread, paths };
        let document = D::read_table(&mut reader, "", document.get_ref(), &document.span());
        let Reader { mut faults, unread, paths, .. } = reader;
        faults.sort_by_key(|fault| fault.order(text));
        faults.truncate(MOST);
        (document, faults, unread, paths)
    }
}

/// Whether a value is what its author wrote, from the places of its key and of itself, in spite of errors of the syntax: it is not
/// on a line with one, nor below a header with one.
pub(super) fn certain_places(text: &str, errors: &[Error]) -> impl Fn(&Range<usize>, &Range<usize>) -> bool {
    let line_at = line_numbers(text);
    let faulty: BTreeSet<usize> = errors.iter().map(|error| line_at(error.span().unwrap_or_default().start)).collect();
    // Every value asks, so the lines are looked through once.
    let headers: Vec<usize> =
        text.lines().enumerate().filter(|(_, line)| is_header(line)).map(|(number, _)| number).collect();
    move |key, value| {
        if faulty.is_empty() {
            return true;
        }
        let first = line_at(key.start);
        let header = headers[..headers.partition_point(|number| *number < first)].last();
        faulty.range(first..=line_at(value.end)).next().is_none() && header.is_none_or(|line| !faulty.contains(line))
    }
}

fn is_header(line: &str) -> bool {
    line.trim_start_matches([' ', '\t']).starts_with('[')
}

/// The text with blanks in place of the tables whose headers have no end, because the parser would give what they and the next table hold
/// to others; and their paths and places. Of the errors those in them are left: reading the rest finds the others.
fn without_open_tables(text: &str, errors: &mut Vec<Error>) -> (String, UnreadKeys) {
    let line_at = line_numbers(text);
    let line_of = |error: &Error| line_at(error.span().unwrap_or_default().start);
    let faulty: BTreeSet<usize> = errors.iter().filter(|error| syntax::is_of_header(error)).map(line_of).collect();
    let (mut closed, mut left_out, mut open, mut is_open) = (String::new(), BTreeSet::new(), Vec::new(), false);
    for (number, line) in text.split_inclusive('\n').enumerate().filter(|_| !faulty.is_empty()) {
        if is_header(line) {
            is_open = faulty.contains(&number);
            let name = line.split([']', '#']).next().unwrap_or_default().trim_matches(['[', ' ', '\t', '\r', '\n']);
            open.extend(is_open.then(|| (name.to_owned(), closed.len())));
        }
        left_out.extend(is_open.then_some(number));
        closed += &if is_open { syntax::blank(line) } else { line.to_owned() };
    }
    if !open.is_empty() {
        errors.retain(|error| left_out.contains(&line_of(error)) && !syntax::is_of_place(error));
    }
    (closed, open)
}

/// The number of the line that holds an octet, the first being 0.
fn line_numbers(text: &str) -> impl Fn(usize) -> usize + use<> {
    let ends: Vec<usize> = memchr::memchr_iter(b'\n', text.as_bytes()).collect();
    move |octet| ends.partition_point(|end| *end < octet)
}

/// The text of a config file.
pub(super) fn read_text(path: &Path) -> Result<String, ConfigError> {
    let octets = std::fs::read(path).map_err(|error| ConfigError::unreadable(path, &error))?;
    as_utf8(path, octets)
}

/// The text that octets are, or where they are none.
pub(crate) fn as_utf8(path: &Path, octets: Vec<u8>) -> Result<String, ConfigError> {
    String::from_utf8(octets).map_err(|error| {
        let start = error.utf8_error().valid_up_to();
        let text = String::from_utf8_lossy(error.as_bytes());
        Fault::new(start..start, "the file is not UTF-8, which TOML is: save it as UTF-8").at(path, &text)
    })
}

/// A document on its way to its tables.
pub(crate) struct Reader<'t> {
    pub(super) text: &'t str,
    pub(super) keys: Keys,
    /// Whether a value is what its author wrote, from the places of its key and of itself.
    pub(super) is_certain: &'t dyn Fn(&Range<usize>, &Range<usize>) -> bool,
    /// Whether a word that is misspelled is read as the one that it is probably meant to be.
    pub(super) guesses: bool,
    pub(super) faults: Vec<Fault>,
    pub(super) unread: UnreadKeys,
    /// The paths that were read.
    pub(super) paths: Vec<Spanned<PathBuf>>,
}

/// Keys that a table has, with the unknown key that is near to each, where it is hardly meant otherwise.
pub(crate) type MisspelledKeys = Vec<(&'static str, Option<String>)>;

/// The place of a value. The items of a list stand where the list does.
#[derive(Clone, Copy)]
pub(crate) struct Place<'p> {
    /// The path of its table, as `site.robots`; none at the top of the file.
    pub(super) table: &'p str,
    pub(super) key: &'p str,
}

impl Place<'_> {
    pub(super) fn path(self) -> String {
        if self.table.is_empty() { self.key.to_owned() } else { format!("{}.{}", self.table, self.key) }
    }
}

impl Reader<'_> {
    /// The value of a key; none where it is not there or cannot be used.
    pub(crate) fn value<T: Value>(
        &mut self,
        table: &str,
        key: &str,
        values: &DeTable<'_>,
        misspelled: &MisspelledKeys,
    ) -> Option<T> {
        let guess = || misspelled.iter().find(|(meant, _)| *meant == key && self.guesses);
        let found = values.get_key_value(key);
        let (written, value) = found.or_else(|| values.get_key_value(guess()?.1.as_deref()?))?;
        let place = Place { table, key };
        let is_certain = is_table(value.get_ref()) || (self.is_certain)(&written.span(), &value.span());
        let read = if is_certain { T::read(self, place, value) } else { None };
        self.note_unread(place, written.span().start, read)
    }

    /// A value, or the note that there is none.
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

    /// Notes keys that a table does not have; returns those that they are probably meant to be.
    pub(crate) fn unknown_keys<T: Table>(&mut self, table: &str, values: &DeTable<'_>) -> MisspelledKeys {
        let known = || T::KEYS.iter().map(|key| key.name);
        let mut misspelled = Vec::new();
        for key in values.keys().filter(|key| known().all(|name| name != key.get_ref().as_ref())) {
            let near = nearest(key.get_ref(), known());
            let help = self.keys.help(table, T::KEYS, key.get_ref());
            // A key of another table is hardly a misspelled one of this.
            let is_meant = near.is_some_and(|near| help.as_deref() == Some(&*format!("did you mean {near:?}?")));
            let written = is_meant.then(|| key.get_ref().to_string());
            if written.is_none() {
                self.unread.push((Place { table, key: "?" }.path(), key.span().start));
            }
            misspelled.extend(near.map(|near| (near, written)));
            if !(self.is_certain)(&key.span(), &key.span()) {
                continue;
            }
            let place = if table.is_empty() { self.keys.name.to_owned() } else { self.keys.called(table) };
            self.faults.push(Fault::new(key.span(), format!("{place} has no key {:?}", key.get_ref())).help(help));
        }
        misspelled
    }

    /// Notes that a table lacks a key, unless that is the consequence of another fault.
    pub(crate) fn missing(
        &mut self,
        table: &str,
        key: &str,
        values: &DeTable<'_>,
        span: &Range<usize>,
        misspelled: &MisspelledKeys,
    ) {
        // A line with an error of the syntax may have it.
        let is_misspelled = misspelled.iter().any(|(meant, _)| *meant == key);
        if values.contains_key(key) || is_misspelled || !(self.is_certain)(&(0..0), &(0..self.text.len())) {
            return;
        }
        let example = EXAMPLES.iter().find(|(known, _)| *known == key).map_or("\"…\"", |(_, example)| *example);
        let place =
            if table.is_empty() { self.keys.name.to_owned() } else { format!("this {}", self.keys.header(table)) };
        let fault = Fault::new(span.clone(), format!("{place} has no {key}"));
        self.faults.push(fault.help(format!("write {key} = {example}")));
    }

    /// The text of a value that is one of several words; none where it is none of them, once that is noted.
    pub(crate) fn word<'v, T: Value>(&mut self, place: Place<'_>, value: &'v Spanned<DeValue<'_>>) -> Option<&'v str> {
        let (DeValue::String(word), Kind::Words(known)) = (value.get_ref(), T::kind()) else {
            return self.wrong::<T>(place, value).and(None);
        };
        if known.contains(&&**word) {
            return Some(word);
        }
        let message = format!("{word:?} is not a value of {}: write {}", place.key, one_of(&known));
        self.faults.push(Fault::new(value.span(), message).help(did_you_mean(word, known.iter().copied())));
        nearest(word, known).filter(|_| self.guesses)
    }

    /// Notes what is wrong with a value.
    pub(super) fn fault<T>(&mut self, value: &Spanned<DeValue<'_>>, message: impl Into<String>) -> Option<T> {
        self.faults.push(Fault::new(value.span(), message));
        None
    }

    /// Notes that a value is not what its key holds.
    pub(super) fn wrong<T: Value>(&mut self, place: Place<'_>, value: &Spanned<DeValue<'_>>) -> Option<T> {
        let fault = self.describe(&T::kind(), place, value);
        self.faults.push(fault);
        None
    }

    fn describe(&self, kind: &Kind, place: Place<'_>, value: &Spanned<DeValue<'_>>) -> Fault {
        let (span, value, key) = (value.span(), value.get_ref(), place.key);
        let written = self.text.get(span.clone()).unwrap_or_default();
        let (path, word) = (place.path(), sort(value));
        match (kind, value) {
            (Kind::List(item), DeValue::Table(_)) if matches!(**item, Kind::Table(_)) => {
                let message = format!("there can be several of [{path}], and each is written in double brackets");
                Fault::new(span, message).help(format!("write [[{path}]]"))
            }
            (Kind::Table(_), DeValue::Array(items)) if items.iter().any(|item| item.get_ref().is_table()) => {
                let first = items.first().map_or(span, Spanned::span);
                let message = format!("there is one table {path}, not a list of them");
                Fault::new(first, message).help(format!("write [{path}]"))
            }
            (Kind::List(item), _) if matches!(**item, Kind::Table(_)) => self.no_table(span, &path, word, written),
            (Kind::Table(_) | Kind::Named(_), _) => self.no_table(span, &path, word, written),
            (Kind::List(_), DeValue::String(_) | DeValue::Integer(_)) => {
                Fault::new(span, format!("{key} is a list, not {word}")).help(format!("write {key} = [{written}]"))
            }
            (Kind::Words(known), _) => several_words(span, key, known, word),
            (Kind::List(item), _) => match &**item {
                Kind::Words(known) => several_words(span, key, known, word),
                _ => Fault::new(span, format!("{key} is a list, not {word}")),
            },
            (Kind::Date, _) => {
                let date = if let DeValue::String(date) = value { date } else { "2027-03-31" };
                Fault::new(span, format!("{key} is a date, not {word}"))
                    .help(format!("write {key} = {date}, without quotes"))
            }
            (Kind::Flag, _) => Fault::new(span, format!("{key} is true or false, not {word}"))
                .help(format!("write {key} = true, without quotes")),
            (Kind::Number(_), DeValue::String(digits)) => {
                let number = if digits.parse::<u64>().is_ok() { digits } else { "4" };
                Fault::new(span, format!("{key} is a number, not {word}"))
                    .help(format!("write {key} = {number}, without quotes"))
            }
            (Kind::Size, _) => Fault::new(span, format!("{key} is {written}: write a size such as 65536 or \"64KiB\"")),
            (Kind::Number(least), DeValue::Integer(_)) => {
                Fault::new(span, format!("{key} is {written}: it is a whole number from {least} on"))
            }
            (Kind::Number(_), _) => Fault::new(span, format!("{key} is {written}: it is a whole number")),
            (Kind::Text | Kind::Time | Kind::Either(_), DeValue::Array(_) | DeValue::Table(_)) => {
                Fault::new(span, format!("{key} is text, not {word}"))
            }
            (Kind::Text | Kind::Time | Kind::Either(_), _) => {
                Fault::new(span, format!("{key} is text, not {word}")).help(format!("write {key} = \"{written}\""))
            }
        }
    }

    fn no_table(&self, span: Range<usize>, path: &str, word: &str, written: &str) -> Fault {
        let key = path.rsplit('.').next().unwrap_or_default();
        let help = match path {
            "site.upstream" if written.starts_with('[') => {
                format!("the servers of a site have another key: upstreams = {written}")
            }
            "site.upstream" => format!("the servers of a site are a list: upstreams = [{written}]"),
            "gate.must_allow" => {
                "write [[gate.must_allow]], and below it agents = [\"Googlebot\"] and paths = [\"/\"]".to_owned()
            }
            "site.robots" => format!("write robots.path = {written}"),
            "admin" => "write [admin], and below it enabled = false or socket = \"…\"".to_owned(),
            path => format!("write {} on a line of its own, and its keys below", self.keys.header(path)),
        };
        Fault::new(span, format!("{key} is a table, not {word}")).help(help)
    }
}

/// A table, or a list of them.
fn is_table(value: &DeValue<'_>) -> bool {
    match value {
        DeValue::Table(_) => true,
        DeValue::Array(items) => items.iter().any(|item| item.get_ref().is_table()),
        _ => false,
    }
}

fn several_words(span: Range<usize>, key: &str, known: &[&str], word: &str) -> Fault {
    Fault::new(span, format!("{key} is one of several words, not {word}: write {}", one_of(known)))
}

/// The kind of a value, in a sentence.
fn sort(value: &DeValue<'_>) -> &'static str {
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
