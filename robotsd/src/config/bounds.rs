//! The range of a value, and what is said of one beyond it.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;

use toml::Spanned;

use super::values::LONGEST;
use super::{Faults, Placed, Span};

/// The range of the values of a key.
pub(crate) struct Bound<T> {
    range: RangeInclusive<T>,
    /// What is wrong with a value beyond it: the value takes the place of `{}`, its key that of `{key}`.
    says: Option<String>,
}

/// A range that speaks for itself.
pub(crate) const fn within<T>(range: RangeInclusive<T>) -> Bound<T> {
    Bound { range, says: None }
}

pub(crate) fn bound<T>(range: RangeInclusive<T>, says: impl Into<String>) -> Bound<T> {
    Bound { range, says: Some(says.into()) }
}

/// More than no time.
pub(crate) fn some_time(says: &str) -> Bound<Span> {
    bound(Span(Duration::from_nanos(1))..=Span(LONGEST), says)
}

impl<T: PartialOrd + Display> Bound<T> {
    /// Notes that the value of a key, where it is written, is beyond it.
    pub(crate) fn check<'v>(&self, key: &str, value: impl Into<Option<&'v Spanned<T>>>, faults: &mut Faults)
    where
        T: 'v,
    {
        let Some(written) = value.into().filter(|value| !self.range.contains(value.get_ref())) else { return };
        let (value, Self { range, says }) = (written.get_ref(), self);
        let usual = || format!("{key} is {value}: it may be from {} to {}", range.start(), range.end());
        let says =
            says.as_ref().map_or_else(usual, |says| says.replace("{key}", key).replace("{}", &value.to_string()));
        faults.push(written.fault(says));
    }
}
