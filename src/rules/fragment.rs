//! A part of a robots.txt that is kept elsewhere, such as a list of AI crawlers.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use super::document::RobotsTxt;
use super::line::bom_length;

/// Characters of a title that are kept.
const MOST_TITLE: usize = 120;

/// The groups of a file that others keep, to be appended to a robots.txt with [`RobotsTxt::append`].
///
/// It comes from elsewhere, so it has to be clean: UTF-8 without control characters, no HTML, and at least one crawler
/// that is named. A truncated or mistaken file never takes the place of a list.
///
/// ```
/// use tower_robots::rules::Fragment;
///
/// let list = Fragment::parse("ai.txt", "User-agent: GPTBot\nUser-agent: CCBot\nDisallow: /\n").unwrap();
/// assert_eq!(list.title(), "ai.txt");
/// let error = Fragment::parse("ai.txt", "<!doctype html>").unwrap_err();
/// assert_eq!(error.to_string(), "this is an HTML page, not a robots.txt");
/// ```
#[derive(Clone, Debug)]
pub struct Fragment {
    title: Arc<str>,
    robots: RobotsTxt,
}

/// Why a file cannot be appended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FragmentError {
    kind: FragmentErrorKind,
    line: Option<usize>,
}

/// What is wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FragmentErrorKind {
    /// It is an HTML page.
    Html,
    /// It is not UTF-8, or holds control characters.
    Binary,
    /// No group of it names a crawler.
    NoCrawler,
}

impl Fragment {
    /// Reads a file that others keep. The title names it in comments of the file that is served: one line, up to 120
    /// characters.
    ///
    /// # Errors
    ///
    /// If it cannot be a list of rules for crawlers.
    pub fn parse(title: &str, bytes: impl AsRef<[u8]>) -> Result<Self, FragmentError> {
        let bytes = bytes.as_ref();
        let text = &bytes[bom_length(bytes)..];
        if text.trim_ascii_start().starts_with(b"<") {
            return Err(FragmentError { kind: FragmentErrorKind::Html, line: None });
        }
        if let Some(at) = first_unclean(text) {
            let line = Some(line_ends(&text[..at]) + 1);
            return Err(FragmentError { kind: FragmentErrorKind::Binary, line });
        }
        let robots = RobotsTxt::parse(text);
        if !robots.groups().any(|group| group.names().any(|name| !name.is_star() && !name.value().is_empty())) {
            return Err(FragmentError { kind: FragmentErrorKind::NoCrawler, line: None });
        }
        let title = title.chars().map(|char| if char.is_control() { ' ' } else { char }).take(MOST_TITLE);
        Ok(Self { title: title.collect::<String>().trim().into(), robots })
    }

    /// What comments call it.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Its document.
    #[must_use]
    pub const fn robots(&self) -> &RobotsTxt {
        &self.robots
    }

    pub(super) const fn shared_title(&self) -> &Arc<str> {
        &self.title
    }
}

/// CR, LF and CRLF each end a line.
pub(super) fn line_ends(text: &[u8]) -> usize {
    let is_end = |(at, octet): (usize, &u8)| match octet {
        b'\n' => true,
        b'\r' => text.get(at + 1) != Some(&b'\n'),
        _ => false,
    };
    text.iter().enumerate().filter(|pair| is_end(*pair)).count()
}

/// Where the first octet stands that is no text. A file with such octets could make a binary file of what it is appended to.
fn first_unclean(text: &[u8]) -> Option<usize> {
    let is_control = |octet: &u8| matches!(octet, 0..=8 | 0x0E..=0x1F | 0x7F);
    let valid = std::str::from_utf8(text).err().map(|error| error.valid_up_to());
    let control = text.iter().position(is_control);
    valid.into_iter().chain(control).min()
}

impl FragmentError {
    /// What is wrong with it.
    #[must_use]
    pub const fn kind(&self) -> FragmentErrorKind {
        self.kind
    }

    /// The line of the first octet that is no text.
    #[must_use]
    pub const fn line(&self) -> Option<usize> {
        self.line
    }
}

impl fmt::Display for FragmentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.kind, self.line) {
            (FragmentErrorKind::Html, _) => f.write_str("this is an HTML page, not a robots.txt"),
            (FragmentErrorKind::Binary, line) => {
                let line = line.unwrap_or(1);
                write!(
                    f,
                    "line {line} holds octets that are no text: write the file as UTF-8 without control characters"
                )
            }
            (FragmentErrorKind::NoCrawler, _) => {
                f.write_str("no group of it names a crawler: a list begins with a line such as \"User-agent: GPTBot\"")
            }
        }
    }
}

impl Error for FragmentError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &[u8]) -> Option<String> {
        Fragment::parse("list", text).err().map(|error| error.to_string())
    }

    #[test]
    fn what_is_no_list_says_why() {
        for (text, begins) in [
            (&b""[..], "no group of it names a crawler"),
            (b"# nothing\n", "no group of it names a crawler"),
            (b"User-agent: *\nDisallow: /\n", "no group of it names a crawler"),
            (b"User-agent:\nDisallow: /\n", "no group of it names a crawler"),
            (b"Sitemap: https://a.test/\nDisallow: /\n", "no group of it names a crawler"),
            (b"\xEF\xBB\xBF \n<html>\nUser-agent: a\n", "this is an HTML page"),
            (b"User-agent: a\r\nDisallow: /\xff\n", "line 2 holds octets that are no text"),
            (b"User-agent: a\rDisallow: /\r# \x1b[2J\r", "line 3 holds octets that are no text"),
            (b"\xFF\xFEU\0", "line 1 holds octets that are no text"),
        ] {
            assert!(
                message(text).is_some_and(|message| message.starts_with(begins)),
                "{:?}: {:?}",
                text,
                message(text)
            );
        }
        assert_eq!(message(b"\xEF\xBB\xBFUser-agent: a"), None);
    }

    #[test]
    fn a_title_is_one_short_line() {
        let title = format!(" a\nUser-agent: *\r\0{}", "x".repeat(500));
        let fragment = Fragment::parse(&title, "User-agent: a\n").expect("a list");
        assert!(fragment.title().starts_with("a User-agent: *  xx"), "{}", fragment.title());
        assert!(fragment.title().chars().count() <= MOST_TITLE);
    }
}
