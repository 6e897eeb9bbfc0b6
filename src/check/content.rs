//! What a file is: rules, or something that only bears the name robots.txt.

use super::lint::Lint;
use super::lints::{html_instead_of_text, utf_16};

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// Text in which rules may stand.
    Rules,
    /// A web page.
    Html,
    /// Text of two octets a character.
    Utf16,
}

impl Content {
    pub(super) fn of(file: &[u8]) -> Self {
        if utf_16::form(file).is_some() {
            Self::Utf16
        } else if html_instead_of_text::page(file).is_some() {
            Self::Html
        } else {
            Self::Rules
        }
    }

    /// Whether a lint has anything to say about such a file: to most of them every line of a web page is rubbish.
    pub(super) fn is_for(self, lint: &Lint) -> bool {
        match self {
            Self::Rules => true,
            Self::Html => lint.code() == html_instead_of_text::LINT.code(),
            Self::Utf16 => lint.code() == utf_16::LINT.code(),
        }
    }
}
