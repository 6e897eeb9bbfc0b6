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

/// A value of a file that has a bound.
pub(crate) trait Bounded<T> {
    /// Notes that it is out of its bound.
    fn check(&self, key: &str, bound: &Bound<T>, faults: &mut Faults);
}

impl<T: PartialOrd + Display> Bounded<T> for Spanned<T> {
    fn check(&self, key: &str, bound: &Bound<T>, faults: &mut Faults) {
        let (value, Bound { range, says }) = (self.get_ref(), bound);
        if range.contains(value) {
            return;
        }
        let usual = || format!("{key} is {value}: it may be from {} to {}", range.start(), range.end());
        let says =
            says.as_ref().map_or_else(usual, |says| says.replace("{key}", key).replace("{}", &value.to_string()));
        faults.push(self.fault(says));
    }
}

impl<T: PartialOrd + Display> Bounded<T> for Option<Spanned<T>> {
    fn check(&self, key: &str, bound: &Bound<T>, faults: &mut Faults) {
        self.iter().for_each(|value| value.check(key, bound, faults));
    }
}
