//! From the text of a TOML file to its raw form, with every problem on the way rather than the first.
//!
//! The parser goes on after a syntax error by itself. For the types of values it does not: here the entry with the problem is
//! taken out and the rest is read again, until nothing is wrong with it.

use std::collections::BTreeSet;
use std::path::Path;

use toml::Deserializer;
use toml::de::DeTable;

use super::document_entry::{entries, entry_at, remove, remove_at};
use super::error::{ConfigError, Fault};
use super::keys::{Document, Keys};
use super::{salvage, value_error};

/// Further problems are those of a file that is something else.
const MOST: usize = 20;

/// Reads a text, or returns its problems.
pub(crate) fn read<D: Document>(text: &str) -> Result<D, Vec<Fault>> {
    // A byte order mark is no part of a text; octets are counted with it.
    let (mut document, errors) = DeTable::parse_recoverable(text);
    if let Some(fault) = salvage::recognize(text, errors.first().and_then(toml::de::Error::span)) {
        return Err(vec![fault]);
    }
    let mut faults = first_of_each_line(text, errors.iter().map(|error| value_error::syntax(text, error)));
    // What follows a list or a text without an end was read as a part of it.
    if let Some(unclosed) = faults.iter().position(value_error::is_unclosed) {
        faults.truncate(unclosed + 1);
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let keys = Keys::<D>::default();
    faults.extend(keys.repeated(&entries(&document)));
    faults.extend(value_error::lists_for_tables::<D>(&entries(&document), text));
    for fault in &faults {
        remove_at(&mut document, &fault.span);
    }
    // What was taken out of a table is not missing in it.
    let mut taken: BTreeSet<(usize, String)> = BTreeSet::new();
    loop {
        let error = match D::deserialize(Deserializer::from(document.clone())) {
            Ok(read) if faults.is_empty() => return Ok(read),
            Ok(_) => break,
            Err(error) => error,
        };
        let span = error.span().unwrap_or(0..0);
        let found = entries(&document);
        let Some(entry) = entry_at(&found, &span) else {
            // About the file as a whole.
            let fault = Fault::new(span, error.message().trim_end().replace('\n', "; "));
            faults.push(fault);
            break;
        };
        let is_known =
            value_error::missing(&error).is_some_and(|key| taken.contains(&(entry.value_span.start, key.to_owned())));
        if !is_known {
            let fault = value_error::describe(&error, entry, &keys, text);
            taken.extend(entry.keys.last().map(|key| (entry.table.start, key.clone())));
            taken.extend(value_error::suggested(&error, entry, &keys).map(|key| (entry.table.start, key.to_owned())));
            faults.push(fault);
        }
        let steps = entry.steps.clone();
        if faults.len() >= MOST || !remove(&mut document, &steps) {
            break;
        }
    }
    if faults.is_empty() {
        faults.push(Fault::new(0..0, "the file cannot be read"));
    }
    Err(faults)
}

/// One problem a line: the others are most often its consequences.
fn first_of_each_line(text: &str, faults: impl Iterator<Item = Fault>) -> Vec<Fault> {
    let line = |fault: &Fault| text.get(..fault.span.start).unwrap_or(text).matches('\n').count();
    let mut seen = BTreeSet::new();
    faults.filter(|fault| seen.insert(line(fault))).take(MOST).collect()
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
