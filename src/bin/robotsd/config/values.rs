//! Values of a config file that have a form of their own.

use std::fmt;
use std::time::Duration;

use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// A length of time, written `"1h"`, `"400ms"`, `"2m 30s"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span(pub(crate) Duration);

impl Span {
    pub(super) const fn seconds(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl Visitor<'_> for Text {
            type Value = Span;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a length of time such as \"10s\" or \"1h 30m\"")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Span, E> {
                let wrong =
                    |_| E::custom(format!("{text:?} is not a length of time: write one such as \"10s\" or \"1h 30m\""));
                humantime::parse_duration(text).map(Span).map_err(wrong)
            }
        }

        deserializer.deserialize_str(Text)
    }
}
