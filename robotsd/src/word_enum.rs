//! Enums with a string form for each variant, for the log, metrics, JSON and pages.

/// Declares such an enum, with `ALL` in the order of declaration and `as_str`. The strings are
/// never parsed.
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
            #[allow(dead_code, reason = "not every one is gone through")]
            $vis const ALL: [Self; [$($word),+].len()] = [$(Self::$value),+];

            /// Returns the string form.
            $vis const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$value => $word,)+
                }
            }
        }
    };
}

pub(crate) use word_enum;
