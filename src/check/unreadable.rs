//! Files in which crawlers find no rule because they are no text that crawlers read.

use std::fmt;

use super::file_kind::{is_binary, utf_16_form};
use crate::rules::RobotsTxt;

/// Why crawlers can read no rule of a file, whatever a person sees in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unreadable {
    /// Text of two octets a character, with or without a byte order mark.
    Utf16,
    /// An image, an archive, or another file that was never text.
    Binary,
}

impl Unreadable {
    /// Examines a file; `None` where it is text.
    ///
    /// ```
    /// use tower_robots::check::Unreadable;
    /// use tower_robots::rules::RobotsTxt;
    ///
    /// let robots = RobotsTxt::parse(&b"\xFF\xFEU\0s\0e\0r\0-\0a\0g\0e\0n\0t\0:\0 \0*\0"[..]);
    /// assert_eq!(Unreadable::of(&robots), Some(Unreadable::Utf16));
    /// ```
    #[must_use]
    pub fn of(robots: &RobotsTxt) -> Option<Self> {
        let bytes = robots.bytes();
        if utf_16_form(bytes).is_some() { Some(Self::Utf16) } else { is_binary(bytes).then_some(Self::Binary) }
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Utf16 => "the file is UTF-16, in which crawlers find no rule: save it as UTF-8",
            Self::Binary => "the file is not text, so crawlers find no rule in it: write it as UTF-8",
        })
    }
}
