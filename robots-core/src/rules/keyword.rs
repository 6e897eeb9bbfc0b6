//! Enums with one string per variant. A variant has the same string in messages, on a command line,
//! in a configuration and in serde formats. This module also contains the error type for invalid
//! values.

use std::error::Error;
use std::fmt;

/// Error for a string that is not a valid value of a type, such as `"refuze"` for a
/// [`Mode`](crate::policy::Mode) or `"10.0.0.1/8"` for a [`Network`](crate::agent::Network). The
/// message quotes the string and describes what to write instead. If the value is a whole file, as
/// in [`Fragment::parse`](super::Fragment::parse), the message describes the problem in the content
/// of the file.
#[derive(Clone, PartialEq, Eq)]
pub struct ValueError {
    text: String,
    message: String,
    known: &'static [&'static str],
}

/// Implements `as_str`, `Display` and `FromStr` for an enum. For the noun "a mode", the message of
/// the [`ValueError`] begins with `"refuze" is not a mode`.
#[doc(hidden)]
#[macro_export]
macro_rules! keywords {
    ($name:ident, $noun:literal, { $($variant:ident = $word:literal,)+ }) => {
        impl $name {
            /// Returns the string form, in lower case. [`FromStr`](std::str::FromStr) parses this
            /// string.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        /// Writes the string form, which [`FromStr`](std::str::FromStr) parses.
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        /// Parses the string form. Only lower case is accepted.
        impl std::str::FromStr for $name {
            type Err = $crate::rules::ValueError;

            fn from_str(text: &str) -> Result<Self, $crate::rules::ValueError> {
                match text {
                    $($word => Ok(Self::$variant),)+
                    _ => Err($crate::rules::ValueError::of_words(text, $noun, &[$($word),+])),
                }
            }
        }
    };
}

/// Defines an enum with one string per variant, and implements [`keywords`] and serde for it.
#[doc(hidden)]
#[macro_export]
macro_rules! keyword_enum {
    (
        $(#[$enum_doc:meta])*
        $name:ident, $noun:literal, { $($(#[$doc:meta])* $variant:ident = $word:literal,)+ }
    ) => {
        $(#[$enum_doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$doc])* #[cfg_attr(feature = "serde", serde(rename = $word))] $variant,)+
        }

        impl $name {
            /// All values, in the order of their declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];
        }

        $crate::keywords!($name, $noun, { $($variant = $word,)+ });
    };
}

impl ValueError {
    /// Creates an error about an invalid string. The message is the string in quotes, followed by
    /// `fault`.
    #[doc(hidden)]
    pub fn new(text: impl Into<String>, fault: impl fmt::Display) -> Self {
        let text = text.into();
        let message = format!("{text:?} {fault}");
        Self { text, message, known: &[] }
    }

    /// Creates an error about the content of the file `name`.
    pub(super) fn of_message(name: &str, message: &str) -> Self {
        Self { text: name.to_owned(), message: message.to_owned(), known: &[] }
    }

    /// Creates an error whose message quotes at most the first 256 characters of `text`.
    pub(crate) fn of_any(text: &str, fault: impl fmt::Display) -> Self {
        Self::new(text.chars().take(256).collect::<String>(), fault)
    }

    /// Creates an error about a string that is not one of the words in `known`. The message lists
    /// these words.
    #[doc(hidden)]
    pub fn of_words(text: &str, noun: &str, known: &'static [&'static str]) -> Self {
        let words: Vec<_> = known.iter().map(|word| format!("{word:?}")).collect();
        let words = match &*words {
            [all @ .., last] if !all.is_empty() => format!("{} or {last}", all.join(", ")),
            words => words.concat(),
        };
        Self { known, ..Self::new(text, format_args!("is not {noun}: write {words}")) }
    }

    /// Returns the invalid string. A long string may be cut to its first 256 characters.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the valid words; empty if the error does not list valid words.
    #[doc(hidden)]
    pub const fn known(&self) -> &'static [&'static str] {
        self.known
    }
}

impl fmt::Display for ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

crate::debug_as_displayed!(ValueError);

impl Error for ValueError {}

/// Lists the first `few` values and the number of the remaining values, as in `a, b and 3 more`.
#[doc(hidden)]
pub fn first_few<T: ToString>(values: impl ExactSizeIterator<Item = T>, few: usize) -> String {
    let more = values.len().saturating_sub(few);
    let list = values.take(few).map(|value| value.to_string()).collect::<Vec<_>>().join(", ");
    if more == 0 { list } else { format!("{list} and {more} more") }
}

#[cfg(test)]
mod tests {
    use crate::rules::Reading;

    #[test]
    fn the_error_for_an_unknown_reading_contains_the_input_and_the_valid_names() {
        let error = "refrence".parse::<Reading>().expect_err("no reading");
        assert_eq!((error.text(), error.known()), ("refrence", &["standard", "reference", "legacy"][..]));
        let message = "\"refrence\" is not a reading: write \"standard\", \"reference\" or \"legacy\"";
        assert_eq!(error.to_string(), message);
    }
}
