//! Which version is live, in a record of fixed size that is overwritten in place: a full file system takes no new file, but
//! it takes other octets for those it holds. One that is read-only does not, nor may one that copies on write.
//!
//! The file has two slots, written in turn, each with a digest of its own: a slot that was cut counts for nothing, and the
//! other still says what it said. Each slot and `state.json` bear a stamp; where the slot's is newer, the state could not
//! be written down after it.

use std::time::SystemTime;

use serde_json::{Value, json};

use super::json::{millis, time};
use crate::live::accepted_versions::{AcceptedVersions, Standing};
use crate::live::version_hash::VersionHash;

/// Octets of a slot: a hash that is live and as many that were rolled back as are ever kept.
pub(super) const SLOT: usize = 1024;

/// Digits of the digest in front of a slot.
const DIGEST: usize = 16;

/// The live version, and those that were rolled back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LiveRecord {
    pub(super) live: Option<VersionHash>,
    /// When it was first accepted.
    pub(super) since: SystemTime,
    pub(super) held: Vec<VersionHash>,
}

impl LiveRecord {
    pub(super) fn of(versions: &AcceptedVersions) -> Self {
        let current = versions.current();
        Self {
            live: current.map(|version| version.hash()),
            since: current.map_or(SystemTime::UNIX_EPOCH, |version| version.since),
            held: versions
                .iter()
                .filter(|version| version.standing == Standing::RolledBack)
                .map(|version| version.hash())
                .collect(),
        }
    }

    /// A slot that says so; `None` where more was rolled back than fits, which are more than are ever kept.
    pub(super) fn slot(&self, stamp: u64) -> Option<[u8; SLOT]> {
        let Self { live, since, held } = self;
        let text = json!({
            "stamp": stamp,
            "live": live.map(|hash| hash.to_string()),
            "since": millis(*since),
            "held": held.iter().map(ToString::to_string).collect::<Vec<_>>(),
        })
        .to_string();
        let mut slot = [b' '; SLOT];
        let digest = digest(text.as_bytes());
        slot.get_mut(..DIGEST)?.copy_from_slice(digest.as_bytes());
        slot.get_mut(DIGEST + 1..DIGEST + 1 + text.len())?.copy_from_slice(text.as_bytes());
        slot[SLOT - 1] = b'\n';
        Some(slot)
    }
}

/// The newer of the slots that are whole, with its stamp. No date lies after `now`.
pub(super) fn newest(bytes: &[u8], now: SystemTime) -> Option<(u64, LiveRecord)> {
    slots(bytes, now).into_iter().flatten().max_by_key(|(stamp, _)| *stamp)
}

/// Where in a file of two slots the older one is.
pub(super) fn older(bytes: &[u8], now: SystemTime) -> u64 {
    let [first, second] = slots(bytes, now).map(|slot| slot.map(|(stamp, _)| stamp));
    if first <= second { 0 } else { SLOT as u64 }
}

fn slots(bytes: &[u8], now: SystemTime) -> [Option<(u64, LiveRecord)>; 2] {
    [0, SLOT].map(|at| parse(bytes.get(at..at + SLOT)?, now))
}

fn parse(slot: &[u8], now: SystemTime) -> Option<(u64, LiveRecord)> {
    let (written, text) = (slot.get(..DIGEST)?, slot.get(DIGEST..)?.trim_ascii());
    if written != digest(text).as_bytes() {
        return None;
    }
    let value: Value = serde_json::from_slice(text).ok()?;
    let live = match &value["live"] {
        Value::Null => None,
        live => Some(live.as_str()?.parse().ok()?),
    };
    let held = value["held"].as_array()?.iter().map(|hash| hash.as_str()?.parse().ok());
    let record = LiveRecord { live, since: time(&value["since"], now)?, held: held.collect::<Option<_>>()? };
    Some((value["stamp"].as_u64()?, record))
}

fn digest(text: &[u8]) -> String {
    let mut digits = VersionHash::of(text).hex();
    digits.truncate(DIGEST);
    digits
}
