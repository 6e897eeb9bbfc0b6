//! A macro for enums whose variants are written as words in the log, metrics, JSON and pages.

/// Declares an enum and the word for each variant. Adds the constant `ALL` and the method `as_str`.
/// Does not add a parser for the words.
macro_rules! word_enum {
    (
        $(#[$about:meta])*
        $vis:vis enum $name:ident { $($(#[$of_value:meta])* $value:ident = $word:literal,)+ }
    ) => {
        $(#[$about])*
        $vis enum $name {
            $($(#[$of_value])* $value,)+
        }

        impl $name {
            #[allow(dead_code, reason = "some enums do not use this constant")]
            $vis const ALL: [Self; [$($word),+].len()] = [$(Self::$value),+];

            $vis const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$value => $word,)+
                }
            }
        }
    };
}

pub(crate) use word_enum;
