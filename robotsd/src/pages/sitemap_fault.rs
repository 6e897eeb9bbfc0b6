//! What is wrong with a sitemap, and where.

use std::fmt;

use crate::input::place;
use crate::render::printable;

/// Octets of a sitemap, unpacked: what the protocol allows.
pub(crate) const MOST_OCTETS: usize = 50 << 20;

/// Characters of a message that are shown: a parser repeats names of elements, which a stranger may have made as long as a sitemap.
const LONGEST: usize = 160;

/// A fault of a sitemap, without the name of the sitemap: `line 2, column 14: …`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SitemapFault {
    /// It is larger than a sitemap may be.
    TooLarge,
    /// It is broken, or something else; with line and column where an editor shows one.
    Broken { place: Option<(usize, usize)>, message: String },
}

impl SitemapFault {
    /// A fault of the whole document.
    pub(super) fn of_document(message: &dyn fmt::Display) -> Self {
        Self::Broken { place: None, message: shown(message) }
    }

    /// A fault at an octet of its text.
    pub(super) fn at(text: &str, octet: usize, message: &dyn fmt::Display) -> Self {
        Self::Broken { place: Some(place(text, octet)), message: shown(message) }
    }

    /// With the document before it: `sitemap.xml:2:14: …`.
    pub(super) fn in_document(&self, name: &dyn fmt::Display) -> String {
        match self {
            Self::Broken { place: Some((line, column)), message } => format!("{name}:{line}:{column}: {message}"),
            Self::Broken { .. } | Self::TooLarge => format!("{name}: {self}"),
        }
    }
}

impl fmt::Display for SitemapFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge => write!(f, "it is larger than {} MiB", MOST_OCTETS >> 20),
            Self::Broken { place: Some((line, column)), message } => {
                write!(f, "line {line}, column {column}: {message}")
            }
            Self::Broken { place: None, message } => f.write_str(message),
        }
    }
}

fn shown(message: &dyn fmt::Display) -> String {
    let mut message = printable(message.to_string().as_bytes());
    if let Some((end, _)) = message.char_indices().nth(LONGEST) {
        message.truncate(end);
        message.push('…');
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_a_stranger_is_short_and_safe_to_print() {
        let fault = SitemapFault::at("a\nb\u{e9}c", 5, &"</\u{1b}[31m>");
        assert_eq!(fault.in_document(&"s.xml"), "s.xml:2:3: </\\u{1b}[31m>");
        assert_eq!(fault.to_string(), "line 2, column 3: </\\u{1b}[31m>");
        let long = SitemapFault::of_document(&"\u{e9}".repeat(1 << 20)).in_document(&"s.xml");
        assert_eq!(long, format!("s.xml: {}…", "\u{e9}".repeat(LONGEST)));
    }
}
