//! Enums whose values have one word each, for the log, metrics, JSON and pages.

/// Declares one, with `ALL` in the order of declaration and `as_str`. Nothing reads the words back.
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
            /// Every value, in the order of declaration.
            #[allow(dead_code, reason = "not every one is gone through")]
            $vis const ALL: [Self; [$($word),+].len()] = [$(Self::$value),+];

            /// The word of it.
            $vis const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$value => $word,)+
                }
            }
        }
    };
}

pub(crate) use word_enum;
