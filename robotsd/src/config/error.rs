//! Errors of config files, with line and column.

use std::fmt;
use std::io;
use std::ops::Range;
use std::path::Path;

use toml::Spanned;

use crate::input::place;

/// Why a config file is refused, with its path and, where known, line and column.
#[derive(Debug)]
pub(crate) struct ConfigError(String);

/// An error in a value, before its line and column are known.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) span: Range<usize>,
    pub(crate) message: String,
}

impl ConfigError {
    pub(super) fn unreadable(path: &Path, error: &io::Error) -> Self {
        Self(format!("{}: the config file cannot be read: {error}", path.display()))
    }

    /// The message of the error names the file.
    pub(super) fn unread(error: &io::Error) -> Self {
        Self(error.to_string())
    }

    pub(super) fn syntax(path: &Path, text: &str, error: &toml::de::Error) -> Self {
        let place = error.span().map_or((1, 1), |span| place(text, span.start));
        // The message of a failed choice or of two keys that clash runs over several lines.
        let message = error.message().trim_end().replace('\n', "; ");
        Self::at(path, place, &message)
    }

    /// Every value that can be read can be written, unless a path is not UTF-8.
    pub(super) fn unprintable(path: &Path, text: &str, error: &toml::ser::Error) -> Self {
        Self::at(path, place(text, 0), &format!("the config cannot be shown: {error}"))
    }

    fn at(path: &Path, (line, column): (usize, usize), message: &str) -> Self {
        Self(format!("{}:{line}:{column}: {message}", path.display()))
    }
}

impl Fault {
    pub(super) fn new(span: Range<usize>, message: impl Into<String>) -> Self {
        Self { span, message: message.into() }
    }

    /// At the value of a list that the library refuses.
    pub(super) fn of_value(values: &[Spanned<String>], refused: &str, error: &dyn std::error::Error) -> Self {
        let value = values.iter().find(|value| value.get_ref() == refused);
        Self::new(value.map_or(0..0, Spanned::span), error.to_string())
    }

    pub(super) fn at(self, path: &Path, text: &str) -> ConfigError {
        ConfigError::at(path, place(text, self.span.start), &self.message)
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ConfigError {}
