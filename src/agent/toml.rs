//! The part of TOML that a registry file uses: `[[table]]` headings, strings, booleans, arrays of strings, comments.
//!
//! Not a TOML parser: what it does not know it refuses, with the line and what would be right. It keeps the library
//! free of one, and its messages speak of crawlers.

use std::fmt;

/// Why a registry file was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegistryError {
    line: usize,
    kind: RegistryErrorKind,
    message: String,
}

/// What kind of mistake a [`RegistryError`] reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RegistryErrorKind {
    /// The line is not of the form this reader takes.
    Syntax,
    /// A key that no crawler has.
    UnknownKey,
    /// A value of the wrong type, or a word that is not one of those allowed.
    WrongValue,
    /// A key that every crawler must have is missing.
    MissingKey,
    /// Two crawlers, or two lines, say the same thing.
    Clash,
    /// A crawler to remove does not exist.
    NotFound,
}

/// One `[[crawler]]` as it stands in the file.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) line: usize,
    pub(super) entries: Vec<Entry>,
}

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) line: usize,
    pub(super) key: String,
    pub(super) value: Value,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Value {
    Text(String),
    List(Vec<String>),
    Bool(bool),
}

impl RegistryError {
    pub(super) fn new(line: usize, kind: RegistryErrorKind, message: impl Into<String>) -> Self {
        Self { line, kind, message: message.into() }
    }

    /// The line of the file, from 1.
    #[must_use]
    pub const fn line(&self) -> usize {
        self.line
    }

    /// What kind of mistake it is.
    #[must_use]
    pub const fn kind(&self) -> RegistryErrorKind {
        self.kind
    }
}

/// `12: what is wrong`, to stand behind the name of the file and a colon.
impl fmt::Display for RegistryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.line, self.message)
    }
}

impl std::error::Error for RegistryError {}

/// Reads every table named `heading`; any other heading is an error.
pub(super) fn read(text: &str, heading: &str) -> Result<Vec<Table>, RegistryError> {
    let mut reader = Reader { rest: text, line: 1 };
    let mut tables: Vec<Table> = Vec::new();
    loop {
        reader.skip_blank_lines();
        let line = reader.line;
        let Some(first) = reader.peek() else { return Ok(tables) };
        if first == '[' {
            reader.heading(heading)?;
            tables.push(Table { line, entries: Vec::new() });
        } else {
            let key = reader.key()?;
            let Some(table) = tables.last_mut() else {
                return Err(reader.syntax(format!("\"{key}\" stands before any crawler: begin with [[{heading}]]")));
            };
            if table.entries.iter().any(|entry| entry.key == key) {
                let message = format!("\"{key}\" is given twice for one crawler: keep one of the lines");
                return Err(RegistryError::new(line, RegistryErrorKind::Clash, message));
            }
            let value = reader.value()?;
            table.entries.push(Entry { line, key, value });
        }
        reader.end_of_line()?;
    }
}

struct Reader<'t> {
    rest: &'t str,
    line: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn bump(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.rest = &self.rest[next.len_utf8()..];
        if next == '\n' {
            self.line += 1;
        }
        Some(next)
    }

    fn skip_spaces(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\r']);
    }

    fn skip_comment(&mut self) {
        if self.peek() == Some('#') {
            self.rest = &self.rest[self.rest.find('\n').unwrap_or(self.rest.len())..];
        }
    }

    fn skip_blank_lines(&mut self) {
        loop {
            self.skip_spaces();
            self.skip_comment();
            if self.peek() != Some('\n') {
                return;
            }
            self.bump();
        }
    }

    fn end_of_line(&mut self) -> Result<(), RegistryError> {
        self.skip_spaces();
        self.skip_comment();
        match self.peek() {
            None | Some('\n') => Ok(()),
            Some(other) => Err(self.syntax(format!("\"{other}\" after the value: end the line there"))),
        }
    }

    fn heading(&mut self, heading: &str) -> Result<(), RegistryError> {
        let line = self.rest.split(['\n', '#']).next().unwrap_or_default().trim_end();
        if line != format!("[[{heading}]]") {
            return Err(self.syntax(format!("\"{line}\" is not a heading of this file: write [[{heading}]]")));
        }
        self.rest = &self.rest[line.len()..];
        Ok(())
    }

    fn key(&mut self) -> Result<String, RegistryError> {
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-');
        let (key, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        self.skip_spaces();
        if key.is_empty() || self.peek() != Some('=') {
            return Err(self.syntax("not a line of this file: write key = value".to_owned()));
        }
        self.bump();
        self.skip_spaces();
        Ok(key.to_owned())
    }

    fn value(&mut self) -> Result<Value, RegistryError> {
        match self.peek() {
            Some('"' | '\'') => self.text().map(Value::Text),
            Some('[') => self.list().map(Value::List),
            _ if self.take("true") => Ok(Value::Bool(true)),
            _ if self.take("false") => Ok(Value::Bool(false)),
            _ => Err(self.syntax("not a value of this file: write \"text\", [\"text\", …], true or false".to_owned())),
        }
    }

    fn take(&mut self, word: &str) -> bool {
        let found = self.rest.strip_prefix(word);
        if let Some(rest) = found {
            self.rest = rest;
        }
        found.is_some()
    }

    fn list(&mut self) -> Result<Vec<String>, RegistryError> {
        self.bump();
        let mut list = Vec::new();
        loop {
            self.skip_blank_lines();
            match self.peek() {
                Some(']') => {
                    self.bump();
                    return Ok(list);
                }
                Some('"' | '\'') => list.push(self.text()?),
                _ => return Err(self.syntax("not an item of a list: write \"text\" or close it with ]".to_owned())),
            }
            self.skip_blank_lines();
            match self.peek() {
                Some(',') => {
                    self.bump();
                }
                Some(']') => {}
                _ => return Err(self.syntax("items of a list are separated by commas".to_owned())),
            }
        }
    }

    fn text(&mut self) -> Result<String, RegistryError> {
        let quote = self.bump();
        let mut text = String::new();
        loop {
            match self.peek() {
                None | Some('\n') => return Err(self.syntax("the text is not closed: add the quote".to_owned())),
                next if next == quote => {
                    self.bump();
                    return Ok(text);
                }
                Some('\\') if quote == Some('"') => {
                    self.bump();
                    match self.bump() {
                        Some(escaped @ ('"' | '\\')) => text.push(escaped),
                        _ => return Err(self.syntax("only \\\" and \\\\ are escapes here".to_owned())),
                    }
                }
                Some(next) => {
                    self.bump();
                    text.push(next);
                }
            }
        }
    }

    fn syntax(&self, message: String) -> RegistryError {
        RegistryError::new(self.line, RegistryErrorKind::Syntax, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_registry_uses_is_read() {
        let text = "# a file\n[[crawler]] # one\nname = \"a \\\"b\\\"\"\nheader = [\n  'x\\y', # why\n  \"z\",\n]\ncontrol = true\n\n[[crawler]]\nname='c'\n";
        let tables = read(text, "crawler").unwrap();
        assert_eq!(tables.iter().map(|table| table.line).collect::<Vec<_>>(), [2, 10]);
        let values: Vec<_> = tables[0].entries.iter().map(|entry| (entry.key.as_str(), &entry.value)).collect();
        assert_eq!(values[0], ("name", &Value::Text("a \"b\"".into())));
        assert_eq!(values[1], ("header", &Value::List(vec!["x\\y".into(), "z".into()])));
        assert_eq!(values[2], ("control", &Value::Bool(true)));
        assert_eq!(tables[0].entries[2].line, 8);
    }

    #[test]
    fn anything_else_is_refused_with_its_line() {
        for (text, line, kind) in [
            ("name = \"a\"", 1, RegistryErrorKind::Syntax),
            ("[[crawler]]\nname = 1", 2, RegistryErrorKind::Syntax),
            ("[[crawler]]\nname = \"a", 2, RegistryErrorKind::Syntax),
            ("[[crawler]]\nheader = [\"a\" \"b\"]", 2, RegistryErrorKind::Syntax),
            ("\n[crawler]", 2, RegistryErrorKind::Syntax),
            ("[[bot]]", 1, RegistryErrorKind::Syntax),
            ("[[crawler]]\nname = \"a\" \"b\"", 2, RegistryErrorKind::Syntax),
            ("[[crawler]]\nname = \"a\"\nname = \"b\"", 3, RegistryErrorKind::Clash),
            ("[[crawler]]\njust words", 2, RegistryErrorKind::Syntax),
        ] {
            let error = read(text, "crawler").unwrap_err();
            assert_eq!((error.line(), error.kind()), (line, kind), "{text:?}: {error}");
        }
    }
}
