//! The file of the record of what is live, overwritten in place.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
#[cfg(unix)]
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::SystemTime;

use super::disk::Disk;
use super::error::StateError;
use super::record::{self, LiveRecord, SLOT};
use crate::live::durability::Durability;

/// The record and its stamp; `None` where there is none that is whole. No date lies after `now`.
pub(super) fn read(disk: &Disk, path: &Path, now: SystemTime) -> Result<Option<(u64, LiveRecord)>, String> {
    let bytes = disk.read(path)?.unwrap_or_default();
    Ok(record::newest(&bytes, now))
}

/// Writes a record over the older of the two slots. Only a file that is missing, or is none of ours, takes room.
pub(super) fn write(
    disk: &Disk,
    path: &Path,
    stamp: u64,
    record: &LiveRecord,
    durability: Durability,
) -> Result<(), StateError> {
    // As many are rolled back as versions are kept, and those fit.
    let slot = record.slot(stamp).ok_or_else(|| StateError::new(path, io::ErrorKind::InvalidInput.into()))?;
    disk.reach(path);
    if disk.is_read_only {
        return Ok(());
    }
    match overwrite(path, &slot, durability) {
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
    file.seek(SeekFrom::Start(record::older(&bytes, SystemTime::now())))?;
    file.write_all(slot)?;
    if durability == Durability::Machine {
        file.sync_data()?;
    }
    Ok(())
}

/// Opens a file to be overwritten.
pub(super) fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    options.read(true).write(true).open(path).map_err(|error| match error.raw_os_error() {
        // A symlink in its place is replaced; the file it leads to stays as it is.
        #[cfg(unix)]
        Some(libc::ELOOP) => io::ErrorKind::InvalidData.into(),
        _ => error,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use super::*;
    use crate::live::version_hash::VersionHash;

    fn record(text: &str) -> LiveRecord {
        let since = SystemTime::UNIX_EPOCH + Duration::from_secs(1_790_000_000);
        LiveRecord { live: Some(VersionHash::of(text.as_bytes())), since, held: vec![VersionHash::of(b"held"); 7] }
    }

    #[test]
    fn a_record_is_overwritten_in_place_and_a_cut_one_leaves_the_one_before() {
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
    fn a_link_in_its_place_leads_nowhere() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, foreign) = (folder.path().join("live"), folder.path().join("foreign"));
        fs::write(&foreign, vec![b'x'; 2 * SLOT]).expect("written");
        std::os::unix::fs::symlink(&foreign, &path).expect("a link");
        write(&Disk::default(), &path, 1, &record("a"), Durability::Process).expect("written in place of the link");
        assert_eq!(fs::read(&foreign).expect("read"), vec![b'x'; 2 * SLOT]);
        assert!(fs::symlink_metadata(&path).expect("it is there").is_file());
    }
}
