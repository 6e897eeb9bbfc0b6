//! The `Date` of responses, formatted once a second.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::HeaderValue;

use crate::date;

/// The text of the current second, shared by the connections of a worker.
#[derive(Debug, Default)]
pub(crate) struct DateClock(Mutex<(u64, String)>);

impl DateClock {
    /// Appends the text to a head.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        self.with(|text| out.extend_from_slice(text.as_bytes()));
    }

    /// The value of the field.
    pub(crate) fn value(&self) -> Option<HeaderValue> {
        self.with(|text| HeaderValue::from_str(text).ok())
    }

    fn with<R>(&self, read: impl FnOnce(&str) -> R) -> R {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
        // Only connections of one worker share a clock, so the lock is free.
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (second, text) = &mut *kept;
        if *second != now || text.is_empty() {
            *second = now;
            *text = date::http(UNIX_EPOCH + Duration::from_secs(now));
        }
        read(text)
    }
}
