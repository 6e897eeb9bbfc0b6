//! Values of a config file that have a form of their own.

use std::net::SocketAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize, Serializer};

/// The longest length of time that means anything here.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);

/// A length of time, written `"1h"`, `"400ms"`, `"2m 30s"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Span(pub(crate) Duration);

/// An address to listen on, written `"127.0.0.1:8080"` or `"[::1]:8080"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Address(pub(crate) SocketAddr);

impl Span {
    pub(super) const fn seconds(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&humantime::format_duration(self.0))
    }
}

impl Serialize for Address {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl TryFrom<String> for Span {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match humantime::parse_duration(&text) {
            Ok(span) if span <= LONGEST => Ok(Self(span)),
            Ok(_) => Err(format!("{text:?} is longer than a year")),
            Err(_) => Err(format!("{text:?} is not a length of time: write one such as \"10s\" or \"1h 30m\"")),
        }
    }
}

impl TryFrom<String> for Address {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let wrong = || {
            format!("{text:?} is not an address to listen on: write one such as \"127.0.0.1:8080\" or \"[::1]:8080\"")
        };
        text.parse().map(Self).map_err(|_| wrong())
    }
}
