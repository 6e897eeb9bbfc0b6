//! The macros [`tables`] and [`words`], which declare tables and sets of words. The declarations
//! are used to read files, to suggest similar names in messages, and to generate the JSON schema.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;

use toml::Spanned;
use toml::de::DeValue;
use toml::value::Datetime;
use tower_robots::agent::Category;
use tower_robots::policy::{
    EmptyAgent, IdentityNeeded, Impostors, Mode, RateMode, SuspectHuman, WildcardExceptions, WildcardScope,
};
use tower_robots::rules::PathForm;

use super::{Faults, Kind, Place, Reader, Value};

/// Declares tables. An absent key has the default that is written after `=` or, if there is no `=`,
/// the default of its type. A key with neither default is required. The range of a value is written
/// after `=>`.
macro_rules! tables {
    ($($(#[doc = $about:literal])* $table:ident {
        $($(#[doc = $doc:literal])* $(#[serde($($serde:tt)*)])* $key:ident: $type:ty $(= $default:expr)? $(=> $bound:expr)?,)*
    })*) => {$(
        $(#[doc = $about])*
        #[derive(Debug, serde::Serialize)]
        pub(crate) struct $table {
            $($(#[doc = $doc])* $(#[serde($($serde)*)])* pub(crate) $key: $type,)*
        }

        impl $crate::config::Table for $table {
            const KEYS: &'static [$crate::config::Key] = &[$($crate::config::Key {
                name: stringify!($key),
                about: concat!($($doc),*),
                kind: <$type as $crate::config::Value>::kind,
                is_required: || $crate::config::tables!(@absent $type $(, $default)?).is_none(),
            },)*];

            fn read_table(
                reader: &mut $crate::config::Reader<'_>,
                table: &str,
                values: &toml::de::DeTable<'_>,
                span: &std::ops::Range<usize>,
            ) -> Option<Self> {
                let meant = reader.unknown_keys::<Self>(table, values);
                $(let $key = reader
                    .value(table, stringify!($key), values)
                    .or_else(|| $crate::config::tables!(@absent $type $(, $default)?));)*
                $(if $key.is_none() {
                    reader.missing(table, stringify!($key), values, span, &meant);
                })*
                Some(Self { $($key: $key?,)* })
            }
        }

        impl $crate::config::Value for $table {
            fn kind() -> $crate::config::Kind {
                $crate::config::Kind::Table(<Self as $crate::config::Table>::KEYS)
            }

            fn read(
                reader: &mut $crate::config::Reader<'_>,
                place: $crate::config::Place<'_>,
                value: &toml::Spanned<toml::de::DeValue<'_>>,
            ) -> Option<Self> {
                reader.table(place, value)
            }

            fn absent() -> Option<Self> {
                Some(Self { $($key: $crate::config::tables!(@absent $type $(, $default)?)?,)* })
            }

            fn check_bounds(&self, _faults: &mut $crate::config::Faults) {
                $(
                    $($bound.check(stringify!($key), &self.$key, _faults);)?
                    $crate::config::Value::check_bounds(&self.$key, _faults);
                )*
            }
        }
    )*};
    (@absent $type:ty) => { <$type as $crate::config::Value>::absent() };
    (@absent $type:ty, $default:expr) => { Some::<$type>($default) };
}

/// Declares enums for keys whose value is one of several words.
macro_rules! words {
    ($($(#[$about:meta])* $name:ident { $($(#[$of_word:meta])* $word:ident = $text:literal,)+ })*) => {$(
        $crate::word_enum::word_enum! {
            $(#[$about])*
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
            pub(crate) enum $name { $($(#[$of_word])* #[serde(rename = $text)] $word = $text,)+ }
        }

        $crate::config::word_values! { Some(Self::default()) => $name; }
    )*};
}

/// Implements [`Value`] for enums that [`words`] declares. In each row, the value of an absent key
/// precedes `=>`.
macro_rules! word_values {
    ($($absent:expr => $($word:ident),+;)+) => {$($(
        impl $crate::config::Value for $word {
            fn kind() -> $crate::config::Kind {
                $crate::config::Kind::Words(Self::ALL.iter().map(|word| word.as_str()).collect())
            }

            fn read(
                reader: &mut $crate::config::Reader<'_>,
                place: $crate::config::Place<'_>,
                value: &toml::Spanned<toml::de::DeValue<'_>>,
            ) -> Option<Self> {
                let text = reader.word::<Self>(place, value)?;
                Self::ALL.iter().copied().find(|word| word.as_str() == text)
            }

            fn absent() -> Option<Self> {
                $absent
            }
        }
    )+)+};
}

pub(crate) use {tables, word_values, words};

word_values! {
    Some(Self::default()) =>
        Mode, WildcardScope, WildcardExceptions, EmptyAgent, SuspectHuman, Impostors, IdentityNeeded, RateMode;
    // All path forms are accepted here. `policy.rs` refuses the path forms that cannot be disabled,
    // because it can report a better message.
    None => Category, PathForm;
}

/// Wraps a default, which has no position in the file.
pub(crate) fn unplaced<T>(value: T) -> Spanned<T> {
    Spanned::new(0..0, value)
}

pub(crate) fn unplaced_strings<const N: usize>(texts: [&str; N]) -> Vec<Spanned<String>> {
    texts.into_iter().map(|text| unplaced(text.to_owned())).collect()
}

pub(super) fn whole_number<T: TryFrom<u64>>(value: &DeValue<'_>) -> Option<T> {
    let DeValue::Integer(number) = value else { return None };
    u64::from_str_radix(number.as_str(), number.radix()).ok()?.try_into().ok()
}

/// Implements [`Value`] for plain types. A row contains the kind of the value, the default, and a
/// function that reads the value. The function returns `None` for a value of the wrong type, and an
/// error for a value that is almost correct.
macro_rules! plain_values {
    ($($($type:ident),+: $kind:expr, $absent:expr, $read:expr;)+) => {$($(
        impl $crate::config::Value for $type {
            fn kind() -> $crate::config::Kind {
                $kind
            }

            fn read(
                reader: &mut $crate::config::Reader<'_>,
                place: $crate::config::Place<'_>,
                value: &toml::Spanned<toml::de::DeValue<'_>>,
            ) -> Option<Self> {
                let read: fn(&toml::de::DeValue<'_>) -> Result<Option<Self>, String> = $read;
                match read(value.get_ref()) {
                    Ok(read) => read.or_else(|| reader.wrong::<Self>(place, value)),
                    Err(wrong) => reader.fault(value, wrong),
                }
            }

            fn absent() -> Option<Self> {
                $absent
            }
        }
    )+)+};
}

pub(super) use plain_values;

plain_values! {
    String: Kind::Text, None, |value| Ok(value.as_str().map(Self::from));
    bool: Kind::Flag, Some(false), |value| Ok(value.as_bool());
    Datetime: Kind::Date, None, |value| Ok(value.as_datetime().copied());
    u16, u32, u64, usize: Kind::Number(0), None, |value| Ok(whole_number(value));
    NonZeroU32, NonZeroUsize: Kind::Number(1), None, |value| Ok(whole_number(value).and_then(Self::new));
}

impl Value for PathBuf {
    fn kind() -> Kind {
        Kind::Text
    }

    fn read(reader: &mut Reader<'_>, place: Place<'_>, value: &Spanned<DeValue<'_>>) -> Option<Self> {
        let Some(path) = value.get_ref().as_str() else { return reader.wrong::<Self>(place, value) };
        reader.paths.push(Spanned::new(value.span(), path.into()));
        Some(path.into())
    }
}

impl<T: Value> Value for Spanned<T> {
    fn kind() -> Kind {
        T::kind()
    }

    fn read(reader: &mut Reader<'_>, place: Place<'_>, value: &Spanned<DeValue<'_>>) -> Option<Self> {
        Some(Self::new(value.span(), T::read(reader, place, value)?))
    }

    fn check_bounds(&self, faults: &mut Faults) {
        self.get_ref().check_bounds(faults);
    }
}

impl<T: Value> Value for Option<T> {
    fn kind() -> Kind {
        T::kind()
    }

    fn read(reader: &mut Reader<'_>, place: Place<'_>, value: &Spanned<DeValue<'_>>) -> Option<Self> {
        T::read(reader, place, value).map(Some)
    }

    fn absent() -> Option<Self> {
        Some(None)
    }

    fn check_bounds(&self, faults: &mut Faults) {
        self.iter().for_each(|value| value.check_bounds(faults));
    }
}

impl<T: Value> Value for Vec<T> {
    fn kind() -> Kind {
        Kind::List(Box::new(T::kind()))
    }

    fn read(reader: &mut Reader<'_>, place: Place<'_>, value: &Spanned<DeValue<'_>>) -> Option<Self> {
        match value.get_ref() {
            DeValue::Array(items) => {
                let read = |item: &Spanned<DeValue<'_>>| {
                    let read = T::read(reader, place, item);
                    reader.note_unread(place, item.span().start, read)
                };
                Some(items.iter().filter_map(read).collect())
            }
            _ => reader.wrong::<Self>(place, value),
        }
    }

    fn absent() -> Option<Self> {
        Some(Self::new())
    }

    fn check_bounds(&self, faults: &mut Faults) {
        self.iter().for_each(|value| value.check_bounds(faults));
    }
}

impl<T: Value> Value for BTreeMap<String, T> {
    fn kind() -> Kind {
        Kind::Named(Box::new(T::kind()))
    }

    fn read(reader: &mut Reader<'_>, place: Place<'_>, value: &Spanned<DeValue<'_>>) -> Option<Self> {
        let DeValue::Table(values) = value.get_ref() else { return reader.wrong::<Self>(place, value) };
        let table = place.path();
        let read = values.iter().filter_map(|(key, value)| {
            Some((key.get_ref().to_string(), T::read(reader, Place { table: &table, key: key.get_ref() }, value)?))
        });
        Some(read.collect())
    }

    fn absent() -> Option<Self> {
        Some(Self::new())
    }
}
