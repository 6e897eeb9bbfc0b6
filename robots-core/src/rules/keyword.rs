//! Values that have one written form each, the same in text, on a command line, in a configuration and with serde.

use std::error::Error;
use std::fmt;

/// A text that is none of the written forms of a type, such as `"refuze"` for a [`Mode`](crate::policy::Mode). The message
/// quotes it and lists them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeywordError {
    text: String,
    noun: &'static str,
    known: &'static [&'static str],
}

/// Gives an enum `as_str`, `Display` and `FromStr`. The noun completes the message of a [`KeywordError`].
#[doc(hidden)]
#[macro_export]
macro_rules! keywords {
    ($name:ident, $noun:literal, { $($variant:ident = $word:literal,)+ }) => {
        impl $name {
            /// The written form, in lower case. [`FromStr`](std::str::FromStr) reads it back.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        /// Writes what [`FromStr`](std::str::FromStr) reads.
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        /// Reads the written form, in lower case.
        impl std::str::FromStr for $name {
            type Err = $crate::rules::KeywordError;

            fn from_str(text: &str) -> Result<Self, $crate::rules::KeywordError> {
                match text {
                    $($word => Ok(Self::$variant),)+
                    _ => Err($crate::rules::KeywordError::new(text, $noun, &[$($word),+])),
                }
            }
        }
    };
}

/// An enum whose variants have one written form each, the same in text, configuration and serde: [`keywords`] with the type.
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
            /// Every value, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];
        }

        $crate::keywords!($name, $noun, { $($variant = $word,)+ });
    };
}

impl KeywordError {
    #[doc(hidden)]
    pub fn new(text: &str, noun: &'static str, known: &'static [&'static str]) -> Self {
        Self { text: text.to_owned(), noun, known }
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What would be right.
    pub const fn known(&self) -> &'static [&'static str] {
        self.known
    }
}

impl fmt::Display for KeywordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not {}: write ", self.text, self.noun)?;
        let last = self.known.len().saturating_sub(1);
        for (at, word) in self.known.iter().enumerate() {
            match at {
                0 => {}
                at if at == last => f.write_str(" or ")?,
                _ => f.write_str(", ")?,
            }
            write!(f, "{word:?}")?;
        }
        Ok(())
    }
}

impl Error for KeywordError {}

#[cfg(test)]
mod tests {
    use crate::rules::Reading;

    #[test]
    fn an_error_holds_the_text_and_what_would_be_right() {
        let error = "refrence".parse::<Reading>().expect_err("no reading");
        assert_eq!((error.text(), error.known()), ("refrence", &["standard", "reference", "legacy"][..]));
        let message = "\"refrence\" is not a reading: write \"standard\", \"reference\" or \"legacy\"";
        assert_eq!(error.to_string(), message);
    }
}
