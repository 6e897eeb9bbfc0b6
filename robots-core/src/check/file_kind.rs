//! The kinds of files that sites serve as robots.txt: rules or other content.

use std::ops::Range;

use super::directives::is_robots_txt;
use crate::rules::{RobotsTxt, starts_with};

/// Number of leading bytes that are examined for UTF-16 if the file has no byte order mark.
const SAMPLE: usize = 64;

/// The kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileKind {
    /// A robots.txt: it has a field that crawlers know, or contains only comments and blank lines.
    Rules,
    /// Text without a field that crawlers know: an error message, JSON, YAML or a Git LFS pointer.
    OtherText,
    /// An HTML page.
    Html,
    /// UTF-16 text, with or without a byte order mark.
    Utf16,
    /// An image, an archive, or another file that is not text.
    Binary,
}

impl FileKind {
    /// Message for [`FileKind::OtherText`].
    #[doc(hidden)]
    pub const NO_ROBOTS_TXT: &str =
        "the file is not a robots.txt: it has no field that crawlers know, such as \"User-agent: *\"";

    /// Advice for sites that want to restrict nothing. An empty file or an error message has the
    /// same effect, but looks like an accident.
    #[doc(hidden)]
    pub const NO_RESTRICTIONS: &str = "to restrict nothing, write \"User-agent: *\" with an empty \"Disallow:\"";

    /// Returns the kind of a file according to its content.
    pub fn of(robots: &RobotsTxt) -> Self {
        if utf_16_form(robots.bytes()).is_some() {
            Self::Utf16
        } else if first_tag(robots).is_some() {
            Self::Html
        } else if is_binary(robots.bytes()) {
            Self::Binary
        } else if is_robots_txt(robots) {
            Self::Rules
        } else {
            Self::OtherText
        }
    }

    /// If a file is UTF-16 or binary, returns the reason why crawlers find no rules in it. An
    /// editor may still show rules. `None` if crawlers can read the file as text.
    ///
    /// ```
    /// use robots_core::check::FileKind;
    /// use robots_core::rules::RobotsTxt;
    ///
    /// let robots = RobotsTxt::parse(&b"\xFF\xFEU\0s\0e\0r\0-\0a\0g\0e\0n\0t\0:\0 \0*\0"[..]);
    /// assert_eq!(FileKind::of(&robots), FileKind::Utf16);
    /// assert!(FileKind::unreadable(&robots).is_some_and(|why| why.contains("save it as UTF-8")));
    /// ```
    pub fn unreadable(robots: &RobotsTxt) -> Option<&'static str> {
        if utf_16_form(robots.bytes()).is_some() {
            Some("the file is UTF-16, so crawlers find no rules: save it as UTF-8")
        } else {
            is_binary(robots.bytes())
                .then_some("the file is not text, so crawlers find no rules in it: save it as UTF-8 text")
        }
    }

    pub(super) const fn is_text(self) -> bool {
        matches!(self, Self::Rules | Self::OtherText)
    }
}

/// Number of leading bytes that are enough to recognise an archive or an image.
const HEAD: usize = 512;

/// Maximum number of NUL bytes that text may contain by accident.
const MAX_NULS: usize = 4;

/// Reports whether a file is not text, or is text with large parts that were overwritten with NUL
/// bytes.
///
/// Text in an old encoding contains bytes that are not UTF-8, and any text may contain a control
/// character or a few NUL bytes. But only images and archives contain both many invalid bytes and
/// many control characters. Many NUL bytes occur only in archives and in overwritten text.
pub(super) fn is_binary(file: &[u8]) -> bool {
    has_binary_content(file) || has_binary_content(&file[..file.len().min(HEAD)])
}

fn has_binary_content(bytes: &[u8]) -> bool {
    let is_control = |byte: &u8| matches!(byte, 0..=8 | 0x0E..=0x1F | 0x7F);
    let controls = bytes.iter().filter(|byte| is_control(byte)).count();
    let nuls = memchr::memchr_iter(0, bytes).count();
    if nuls > MAX_NULS && nuls * 100 > bytes.len() {
        return true;
    }
    // Invalid bytes are counted only if there are many control characters, because most files have
    // none.
    controls * 32 > bytes.len() && {
        let invalid: usize = bytes.utf8_chunks().map(|chunk| chunk.invalid().len()).sum();
        (controls + invalid) * 5 > bytes.len()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Utf16Form {
    LittleEndian,
    BigEndian,
}

pub(super) fn utf_16_form(file: &[u8]) -> Option<Utf16Form> {
    match file {
        [0xFF, 0xFE, ..] => return Some(Utf16Form::LittleEndian),
        [0xFE, 0xFF, ..] => return Some(Utf16Form::BigEndian),
        _ => {}
    }
    let sample = &file[..file.len().min(SAMPLE)];
    if sample.len() < 16 {
        return None;
    }
    let every = |first: usize, zero: bool| sample.iter().skip(first).step_by(2).all(|byte| (*byte == 0) == zero);
    if every(0, false) && every(1, true) {
        Some(Utf16Form::LittleEndian)
    } else {
        (every(0, true) && every(1, false)).then_some(Utf16Form::BigEndian)
    }
}

/// Beginnings of HTML pages. Tags such as `<pre>` are not included, because crawlers find rules
/// inside a `<pre>` element.
const BEGINNINGS: [&[u8]; 9] =
    [b"<!doctype", b"<html", b"<head", b"<body", b"<title", b"<meta", b"<script", b"<?xml", b"<!--"];

/// If the file is an HTML page, returns the range of its first tag. An HTML page begins with one of
/// the [`BEGINNINGS`], or begins with any tag and has no field that crawlers know (an error message
/// in HTML).
pub(super) fn first_tag(robots: &RobotsTxt) -> Option<Range<usize>> {
    let file = robots.bytes();
    let text = file.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(file).trim_ascii_start();
    let start = file.len() - text.len();
    let begins = |beginning: &&[u8]| starts_with(text, beginning);
    let length = match BEGINNINGS.iter().find(|beginning| begins(beginning)) {
        Some(beginning) => beginning.len(),
        None if is_tag(text) && !is_robots_txt(robots) => {
            2 + text[2..].iter().take_while(|byte| byte.is_ascii_alphanumeric()).count()
        }
        None => return None,
    };
    Some(start..start + length)
}

const fn is_tag(text: &[u8]) -> bool {
    matches!(text, [b'<', b'!' | b'?' | b'/' | b'a'..=b'z' | b'A'..=b'Z', ..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_html_start_or_any_first_tag_without_known_fields_makes_a_page() {
        for (file, want) in [
            ("<!DocType html>", Some("<!DocType")),
            ("\u{feff}\n <HTML lang=en>\nUser-agent: *", Some("<HTML")),
            ("<?xml version='1.0'?>", Some("<?xml")),
            ("<?php echo 1;", Some("<?php")),
            ("<br />\n<b>Warning</b>: include(): failed", Some("<br")),
            ("</div>", Some("</div")),
            ("<pre>User-agent: *", Some("<pre")),
            ("<pre>\nUser-agent: *\nDisallow: /x\n", None),
            ("# <html>\n", None),
            ("<3\n", None),
            ("<", None),
            ("", None),
        ] {
            let robots = RobotsTxt::parse(file.as_bytes());
            assert_eq!(first_tag(&robots).map(|at| &file[at]), want, "{file:?}");
        }
    }
}
