//! A macro for enums whose variants have names, for the log, metrics, JSON and pages.

/// Declares an enum whose variants have names. Adds the constant `ALL` and the method `as_str`.
/// There is no parser for the names.
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
            /// All variants, in the order of declaration.
            #[allow(dead_code, reason = "some enums do not use it")]
            $vis const ALL: [Self; [$($word),+].len()] = [$(Self::$value),+];

            /// Returns the name of the variant.
            $vis const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$value => $word,)+
                }
            }
        }
    };
}

pub(crate) use word_enum;
