//! The JSON format of a site's state and history.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::live::{
    AcceptedState, AcceptedVersion, AcceptedVersions, Attribution, HistoryEntry, Objection, Pending, Version,
    VersionHash,
};
use serde_json::{Value, json};

/// Version of the format. Increase this number when the format changes so much that older releases
/// would misread it.
const FORMAT: u64 = 1;

pub(super) struct ListedState {
    /// A number that increases with each write. If this number is smaller than the stamp in the
    /// record of the live version, the record is newer than `state.json`.
    pub(super) stamp: u64,
    pub(super) versions: Vec<Listed<AcceptedState>>,
    pub(super) is_absent: bool,
    pub(super) pending: Option<Listed<Vec<Objection>>>,
}

/// A version without its bytes. `state` is an [`AcceptedState`] for an accepted version, and the
/// list of objections for a pending version.
pub(super) struct Listed<T> {
    pub(super) hash: VersionHash,
    pub(super) origin: Arc<str>,
    pub(super) modified: Option<SystemTime>,
    pub(super) since: SystemTime,
    pub(super) state: T,
}

pub(super) fn write(stamp: u64, versions: &AcceptedVersions, pending: Option<&Pending>) -> Vec<u8> {
    let listed = |version: &Version, since: SystemTime, name: &str, state: Value| {
        let mut listed = json!({
            "hash": version.hash().to_string(),
            "origin": &*version.origin,
            "modified": version.modified.map(millis),
            "since": millis(since),
        });
        listed[name] = state;
        listed
    };
    let is_absent = versions.is_absent;
    let versions = versions
        .iter()
        .map(|AcceptedVersion { version, since, standing }| listed(version, *since, "fate", standing.as_str().into()));
    let versions: Value = versions.collect();
    let pending = pending.map(|pending| {
        let objection = |objection: &Objection| json!([objection.kind.as_str(), objection.to_string()]);
        listed(&pending.version, pending.since, "objections", pending.objections.iter().map(objection).collect())
    });
    let document = json!({
        "format": FORMAT,
        "stamp": stamp,
        "versions": versions,
        "absent": is_absent,
        "pending": pending,
    });
    format!("{document:#}\n").into_bytes()
}

/// Parses `state.json`; `None` if the bytes are not in the format of [`write()`]. `modified` is
/// when `state.json` was written. If the modification time of a version is in the future, it is
/// changed to `now`. A `since` in the future is not changed here; the caller must correct it.
pub(super) fn read(bytes: &[u8], modified: Option<SystemTime>, now: SystemTime) -> Option<ListedState> {
    let document: Value = serde_json::from_slice(bytes).ok()?;
    if document["format"].as_u64()? != FORMAT {
        return None;
    }
    let versions = document["versions"].as_array()?.iter();
    let versions = versions.map(|version| listed(version, now, version["fate"].as_str()?.parse().ok()?));
    let pending = match &document["pending"] {
        Value::Null => None,
        pending => {
            let objections = pending["objections"].as_array()?.iter().map(|objection| {
                Some(Objection::new(objection[0].as_str()?.parse().ok()?, objection[1].as_str()?.to_owned()))
            });
            Some(listed(pending, now, objections.collect::<Option<_>>()?)?)
        }
    };
    let versions: Vec<Listed<AcceptedState>> = versions.collect::<Option<_>>()?;
    // Older releases write no stamp. If an older release ran last, its `state.json` may be newer
    // than the record of the live version. So the modification time of `state.json` is used as a
    // stamp.
    let newest = || versions.iter().map(|version| millis(version.since)).max().unwrap_or_default();
    let written = || modified.map_or_else(newest, |modified| millis(modified.min(SystemTime::now())));
    let stamp = document["stamp"].as_u64().unwrap_or_else(|| written().try_into().unwrap_or_default());
    let is_absent = document["absent"].as_bool().unwrap_or_default();
    Some(ListedState { stamp, versions, is_absent, pending })
}

fn listed<T>(value: &Value, now: SystemTime, state: T) -> Option<Listed<T>> {
    Some(Listed {
        hash: hash(&value["hash"])?,
        origin: value["origin"].as_str()?.into(),
        modified: time(&value["modified"], now),
        since: parse_time(&value["since"])?,
        state,
    })
}

pub(super) fn write_entry(entry: &HistoryEntry) -> Vec<u8> {
    let value = json!({
        "when": millis(entry.when),
        "cause": entry.cause.as_str(),
        "outcome": entry.outcome.as_str(),
        "origin": &*entry.origin,
        "hash": entry.hash.map(|hash| hash.to_string()),
        "findings": entry.findings,
        "effect": entry.effect,
        "detail": entry.detail,
        "who": entry.by.who,
        "reason": entry.by.reason,
    });
    format!("{value}\n").into_bytes()
}

pub(super) fn read_entry(line: &[u8]) -> Option<HistoryEntry> {
    let value: Value = serde_json::from_slice(line).ok()?;
    let text = |key: &str| value[key].as_str().map(str::to_owned);
    let findings = |at: usize| value["findings"][at].as_u64().and_then(|count| usize::try_from(count).ok());
    Some(HistoryEntry {
        when: parse_time(&value["when"])?,
        cause: value["cause"].as_str()?.parse().ok()?,
        outcome: value["outcome"].as_str()?.parse().ok()?,
        origin: value["origin"].as_str()?.into(),
        hash: hash(&value["hash"]),
        findings: [findings(0)?, findings(1)?, findings(2)?],
        effect: text("effect"),
        detail: value["detail"].as_str()?.to_owned(),
        by: Attribution { who: text("who"), reason: text("reason") },
    })
}

fn hash(value: &Value) -> Option<VersionHash> {
    value.as_str()?.parse().ok()
}

/// Returns the milliseconds since 1970; negative for earlier times.
pub(super) fn millis(time: SystemTime) -> i64 {
    let whole = |age: Duration| i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
    match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(age) => whole(age),
        Err(before) => -whole(before.duration()),
    }
}

pub(super) fn time(value: &Value, now: SystemTime) -> Option<SystemTime> {
    Some(parse_time(value)?.min(now))
}

fn parse_time(value: &Value) -> Option<SystemTime> {
    let millis = value.as_i64()?;
    let age = Duration::from_millis(millis.unsigned_abs());
    if millis < 0 { SystemTime::UNIX_EPOCH.checked_sub(age) } else { SystemTime::UNIX_EPOCH.checked_add(age) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_before_1970_are_kept_and_future_times_become_the_current_time() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_790_000_000);
        let day = Duration::from_secs(86400);
        let before = SystemTime::UNIX_EPOCH.checked_sub(day).expect("a day");
        for moment in [before, SystemTime::UNIX_EPOCH, now] {
            assert_eq!(time(&json!(millis(moment)), now), Some(moment));
        }
        assert_eq!(time(&json!(millis(now + day)), now), Some(now), "none lies ahead");
        for millis in [i64::MIN, i64::MAX] {
            // `time` must not panic, even if the system cannot represent the time.
            assert!(time(&json!(millis), now).is_none_or(|time| time <= now));
        }
    }
}
