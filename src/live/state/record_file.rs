//! The record of the live version: a file that is overwritten in place.
//!
//! On a full file system, no new file can be written, but an existing file can usually be
//! overwritten in place. Overwriting fails on a read-only file system, and on a full copy-on-write
//! file system. In these cases, the next process does not know that a later version was live.
//!
//! The record does not replace `state.json`. Both files contain a stamp, a number that increases
//! with each write. If the stamp of the record is smaller than that of `state.json`, the record is
//! outdated and is ignored.
//!
//! If the disk is full, the file of a kill switch is also overwritten in place. So the file is
//! created before the switch is used for the first time.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::SystemTime;

use serde_json::{Value, json};

use super::disk::{Access, Disk, nonblocking};
use super::error::StateError;
use super::json::{millis, time};
use crate::live::{AcceptedState, AcceptedVersions, Durability, VersionHash};

/// Returns the newest undamaged record and its stamp, if any. A date after `now` is changed to
/// `now`.
pub(super) fn read(disk: &Disk, path: &Path, now: SystemTime) -> Result<Option<(u64, LiveRecord)>, String> {
    let bytes = disk.read(path)?.unwrap_or_default();
    Ok(newest(&bytes, now))
}

/// Overwrites the older of the file's two slots in place. The write needs free disk space only if
/// the file is missing, or must be replaced because it has the wrong size or is not a regular file.
pub(super) fn write(
    disk: &Disk,
    path: &Path,
    stamp: u64,
    record: &LiveRecord,
    durability: Durability,
) -> Result<(), StateError> {
    // `slot` never returns `None` here, because a slot is large enough for the maximum number of
    // rolled-back versions.
    let slot = record.slot(stamp).ok_or_else(|| StateError::new(path, io::ErrorKind::InvalidInput.into()))?;
    if disk.is_read_only {
        return Ok(());
    }
    match disk.reach(Access::Overwrite, path).and_then(|()| overwrite(path, &slot, durability)) {
        Ok(()) => Ok(()),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidData) => {
            disk.write(path, &[&slot[..], &[b' '; SLOT]].concat(), durability)
        }
        Err(error) => Err(StateError::new(path, error)),
    }
}

fn overwrite(path: &Path, slot: &[u8; SLOT], durability: Durability) -> io::Result<()> {
    let mut file = open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() || metadata.len() != 2 * SLOT as u64 {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = [0; 2 * SLOT];
    file.read_exact(&mut bytes)?;
    file.seek(SeekFrom::Start(older(&bytes, SystemTime::now())))?;
    file.write_all(slot)?;
    if durability == Durability::Machine {
        file.sync_data()?;
    }
    Ok(())
}

pub(super) fn open(path: &Path) -> io::Result<File> {
    nonblocking(OpenOptions::new()).read(true).write(true).open(path).map_err(|error| match error.raw_os_error() {
        // If the path is a symbolic link, `InvalidData` makes `write` replace the link. The target
        // of the link does not change.
        #[cfg(unix)]
        Some(libc::ELOOP) => io::ErrorKind::InvalidData.into(),
        _ => error,
    })
}

/// Size of a slot, in bytes. The hash of the live version and the hashes of the maximum number of
/// rolled-back versions fit into a slot.
const SLOT: usize = 1024;

/// Number of hex digits in the digest at the beginning of each slot.
const DIGEST: usize = 16;

/// The record of the live version and of the versions that were rolled back.
///
/// The file has two slots, which are written alternately, each with its own digest. A truncated
/// slot is ignored, and the other slot remains valid. Each slot has a stamp. If the stamp is
/// greater than the stamp of `state.json`, the slot was written, but the following write of
/// `state.json` failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LiveRecord {
    pub(super) live: Option<VersionHash>,
    /// When the live version was first accepted.
    pub(super) since: SystemTime,
    pub(super) held: Vec<VersionHash>,
    /// Whether the robots.txt was removed after this version was live.
    pub(super) is_absent: bool,
}

impl LiveRecord {
    pub(super) fn of(versions: &AcceptedVersions) -> Self {
        let current = versions.current();
        Self {
            live: current.map(|version| version.hash()),
            since: current.map_or(SystemTime::UNIX_EPOCH, |version| version.since),
            held: versions
                .iter()
                .filter(|version| version.standing == AcceptedState::RolledBack)
                .map(|version| version.hash())
                .collect(),
            is_absent: versions.is_absent,
        }
    }

    /// Returns the content of a slot. `None` if the record has more than the maximum number of
    /// rolled-back versions.
    pub(super) fn slot(&self, stamp: u64) -> Option<[u8; SLOT]> {
        let Self { live, since, held, is_absent } = self;
        let text = json!({
            "stamp": stamp,
            "live": live.map(|hash| hash.to_string()),
            "since": millis(*since),
            "held": held.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "absent": is_absent,
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

pub(super) fn newest(bytes: &[u8], now: SystemTime) -> Option<(u64, LiveRecord)> {
    slots(bytes, now).into_iter().flatten().max_by_key(|(stamp, _)| *stamp)
}

/// Returns the offset of the older slot in the file, in bytes.
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
    let (since, held) = (time(&value["since"], now)?, held.collect::<Option<_>>()?);
    let record = LiveRecord { live, since, held, is_absent: value["absent"].as_bool().unwrap_or_default() };
    Some((value["stamp"].as_u64()?, record))
}

fn digest(text: &[u8]) -> String {
    let mut digits = VersionHash::of(text).hex();
    digits.truncate(DIGEST);
    digits
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use super::*;
    use crate::live::versions::VersionHash;

    fn record(text: &str) -> LiveRecord {
        let since = SystemTime::UNIX_EPOCH + Duration::from_secs(1_790_000_000);
        let (live, held) = (Some(VersionHash::of(text.as_bytes())), vec![VersionHash::of(b"held"); 7]);
        LiveRecord { live, since, held, is_absent: false }
    }

    #[test]
    fn a_record_is_overwritten_in_place_and_a_damaged_one_leaves_the_previous_record() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("live");
        let now = SystemTime::now() + Duration::from_secs(1 << 32);
        assert_eq!(read(&Disk::default(), &path, now), Ok(None));
        for (stamp, text) in [(1, "a"), (2, "b"), (5, "c"), (6, "d")] {
            write(&Disk::default(), &path, stamp, &record(text), Durability::Machine).expect("written");
            assert_eq!(read(&Disk::default(), &path, now), Ok(Some((stamp, record(text)))));
            assert_eq!(fs::metadata(&path).expect("it is there").len(), 2 * SLOT as u64);
        }
        let whole = fs::read(&path).expect("read");
        let newest = if whole[..SLOT].windows(9).any(|text| text == b"\"stamp\":6") { 0 } else { SLOT };
        for damage in [newest + 3, newest + 40, newest + 90] {
            let mut bytes = whole.clone();
            bytes[damage] ^= 1;
            fs::write(&path, bytes).expect("written");
            assert_eq!(read(&Disk::default(), &path, now), Ok(Some((5, record("c")))), "{damage}");
        }
        for bytes in [&whole[..SLOT - 1], b"", b"foreign"] {
            fs::write(&path, bytes).expect("written");
            assert_eq!(read(&Disk::default(), &path, now), Ok(None));
            write(&Disk::default(), &path, 7, &record("e"), Durability::Process).expect("made anew");
            assert_eq!(read(&Disk::default(), &path, now), Ok(Some((7, record("e")))));
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_symbolic_link_in_place_of_the_record_is_replaced_and_not_followed() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, foreign) = (folder.path().join("live"), folder.path().join("foreign"));
        fs::write(&foreign, vec![b'x'; 2 * SLOT]).expect("written");
        std::os::unix::fs::symlink(&foreign, &path).expect("a link");
        write(&Disk::default(), &path, 1, &record("a"), Durability::Process).expect("written in place of the link");
        assert_eq!(fs::read(&foreign).expect("read"), vec![b'x'; 2 * SLOT]);
        assert!(fs::symlink_metadata(&path).expect("it is there").is_file());
    }
}
