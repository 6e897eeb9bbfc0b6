//! The `Date` of responses, formatted once a second.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::HeaderValue;

use crate::date;

/// The value for the current second, shared by the connections of a worker.
#[derive(Debug, Default)]
pub(crate) struct DateClock(Mutex<Option<(u64, HeaderValue)>>);

impl DateClock {
    /// Appends the value to a head.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        self.with(|value| out.extend_from_slice(value.as_bytes()));
    }

    pub(crate) fn value(&self) -> HeaderValue {
        self.with(HeaderValue::clone)
    }

    fn with<R>(&self, read: impl FnOnce(&HeaderValue) -> R) -> R {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
        // Only connections of one worker share a clock, so the lock is free.
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (second, value) = kept.get_or_insert_with(|| (now, text(now)));
        if *second != now {
            (*second, *value) = (now, text(now));
        }
        read(value)
    }
}

fn text(second: u64) -> HeaderValue {
    let date = date::http(UNIX_EPOCH + Duration::from_secs(second));
    // It is letters, digits, spaces, commas and colons.
    HeaderValue::try_from(date).unwrap_or_else(|_| HeaderValue::from_static(""))
}
