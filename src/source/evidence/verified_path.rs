//! A path on which a crawler was verified, as it is saved.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

/// Times are saved in steps of ten minutes, so that a file is not written for each request that verifies.
const STEP: u64 = 10 * 60;

/// A clock may be set back a little.
pub(super) const CLOCK_STEP: Duration = Duration::from_secs(60);

/// A path, and when its crawler was last verified on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct VerifiedPath {
    pub(super) site: String,
    pub(super) listener: String,
    pub(super) crawler: String,
    /// By its address.
    pub(super) verified: Option<SystemTime>,
    /// By its signature.
    pub(super) signed: Option<SystemTime>,
}

impl VerifiedPath {
    pub(super) fn of_json(value: &Value) -> Option<Self> {
        let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        let time = |name: &str| {
            let seconds = value.get(name).and_then(Value::as_u64)?;
            SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
        };
        Some(Self {
            site: text("site")?,
            listener: text("listener")?,
            crawler: text("crawler")?,
            verified: time("verified"),
            signed: time("signed"),
        })
    }

    /// Whether a time of it is still to come: the clock was wrong then, or is wrong now.
    pub(super) fn is_ahead_of(&self, now: SystemTime) -> bool {
        let is_ahead = |at: &SystemTime| at.duration_since(now).is_ok_and(|ahead| ahead > CLOCK_STEP);
        self.verified.iter().chain(&self.signed).any(is_ahead)
    }

    pub(super) fn to_json(&self) -> Value {
        let seconds = |time: Option<SystemTime>| {
            let since = time?.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_secs();
            Some(since - since % STEP)
        };
        json!({
            "site": self.site,
            "listener": self.listener,
            "crawler": self.crawler,
            "verified": seconds(self.verified),
            "signed": seconds(self.signed),
        })
    }
}
