//! Reads and writes files. The paths come from configs and requests, and may lead to FIFOs,
//! devices, or other files that are not regular files. Files in the state directory are replaced
//! atomically, and only their owner can read them.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, BufWriter, Read as _, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

use tower_robots::internals;

/// Returns the folder that contains a file. The file need not exist.
pub(crate) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Opens a regular file, and returns it with its metadata. Never blocks on devices or on FIFOs
/// without a writer. The type is checked after opening, because a file that is checked before
/// opening could be replaced in between.
///
/// # Errors
///
/// Returns the errors of the system, and [`InvalidInput`](io::ErrorKind::InvalidInput) if the file
/// is not a regular file.
pub(crate) fn open(path: &Path) -> io::Result<(File, Metadata)> {
    let other = || io::Error::new(io::ErrorKind::InvalidInput, "this is not a regular file");
    // With `O_NOCTTY`, a terminal that is opened does not become the controlling terminal of the
    // process.
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path);
    let file = opened.map_err(|error| if is_unopenable(&error) { other() } else { error })?;
    let metadata = file.metadata()?;
    if metadata.is_file() { Ok((file, metadata)) } else { Err(other()) }
}

/// Reads a regular file, and returns its contents with its metadata. If the file is longer than
/// `most` bytes, returns only its first `most + 1` bytes.
///
/// # Errors
///
/// Returns the same errors as [`open`].
pub(crate) fn read_at_most(path: &Path, most: u64) -> io::Result<(Vec<u8>, Metadata)> {
    let (file, metadata) = open(path)?;
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok((bytes, metadata))
}

/// Reads a regular file.
///
/// # Errors
///
/// Returns the same errors as [`open`].
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    read_at_most(path, u64::MAX).map(|(bytes, _)| bytes)
}

/// Maximum length of a line that contains a secret, in bytes.
const MAX_LINE: u64 = 8 * 1024;

/// Reads a secret, which must be the only line of a regular file. Error messages contain the path
/// of the file, but no part of its contents.
pub(crate) fn read_line(path: &Path) -> Result<Vec<u8>, String> {
    let shown = path.display();
    let (bytes, _) = read_at_most(path, MAX_LINE).map_err(|error| format!("{shown}: {error}"))?;
    if bytes.len() as u64 > MAX_LINE {
        return Err(format!("{shown}: the file is longer than {MAX_LINE} bytes"));
    }
    // Some editors write a byte order mark, which is not part of the secret.
    let line = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&bytes).trim_ascii_end();
    if line.is_empty() {
        return Err(format!("{shown}: the file is empty"));
    }
    if line.iter().any(|byte| matches!(byte, b'\r' | b'\n')) {
        return Err(format!("{shown}: the file contains more than one line"));
    }
    Ok(line.to_vec())
}

/// Reports whether opening failed because the path leads to a socket, or to a device file without a
/// device.
fn is_unopenable(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENXIO | libc::ENODEV | libc::EOPNOTSUPP))
}

/// Replaces a file atomically. Creates missing parent folders. Only the owner can read the file.
/// Blocks.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace_by(path, |file| file.write_all(bytes))
}

/// Like [`replace`], but syncs the new file to the disk, so that it survives a crash of the
/// machine.
pub(crate) fn replace_durably(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace_by(path, |file| {
        file.write_all(bytes)?;
        file.flush()?;
        file.get_ref().sync_all()
    })?;
    internals::sync_folder(folder_of(path))
}

pub(crate) fn replace_by(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<&mut File>) -> io::Result<()>,
) -> io::Result<()> {
    let written = internals::replace(path, &path.with_extension("tmp"), |file| {
        let mut file = BufWriter::new(file);
        write(&mut file)?;
        file.flush()
    });
    written.map(drop)
}

/// Appends `room` spaces to JSON. The spaces reserve disk space, so that [`overwrite`] can later
/// write longer JSON to the file, even on a full disk.
pub(crate) fn padded(json: &[u8], room: usize) -> Vec<u8> {
    let mut bytes = json.to_vec();
    bytes.resize(json.len() + room, b' ');
    bytes
}

/// Overwrites a file in place with JSON that is not longer than the file. Works even on a full
/// disk, unlike creating a new file. If the process ends during the write, the file contains
/// invalid JSON. Blocks.
///
/// # Errors
///
/// Returns the errors of the system, and [`StorageFull`](io::ErrorKind::StorageFull) if the JSON is
/// longer than the file.
pub(crate) fn overwrite(path: &Path, json: &[u8]) -> io::Result<()> {
    let file = OpenOptions::new().write(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
    let metadata = file.metadata()?;
    let room = usize::try_from(metadata.len()).ok().and_then(|length| length.checked_sub(json.len()));
    let (Some(room), Some((first, rest)), true) = (room, json.split_first(), metadata.is_file()) else {
        return Err(io::ErrorKind::StorageFull.into());
    };
    file.write_all_at(b"!", 0)?;
    file.write_all_at(&padded(rest, room), 1)?;
    file.write_all_at(&[*first], 0)?;
    file.sync_data()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_path_to_anything_but_a_regular_file_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        assert!(std::process::Command::new("mkfifo").arg(path("fifo")).status().unwrap().success());
        let _socket = std::os::unix::net::UnixListener::bind(path("socket")).unwrap();
        fs::write(path("file"), "text").unwrap();
        for (name, target) in [("to-device", "/dev/null"), ("to-fifo", "fifo"), ("to-file", "file")] {
            std::os::unix::fs::symlink(target, path(name)).unwrap();
        }
        for name in ["fifo", "to-fifo", "socket", "to-device", "."] {
            let error = read(&path(name)).unwrap_err();
            let want = (io::ErrorKind::InvalidInput, "this is not a regular file");
            assert_eq!((error.kind(), &*error.to_string()), want, "{name}");
        }
        assert_eq!(read(&path("missing")).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(read(&path("to-file")).unwrap(), b"text");
        assert_eq!(read_at_most(&path("file"), 2).unwrap().0, b"tex");
    }

    #[test]
    fn only_the_owner_can_read_a_replaced_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("made/a.txt");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        replace(&path, b"1").unwrap();
        // An earlier version of robotsd may have left a file that other users can read, and a
        // temporary file.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        fs::write(path.with_extension("tmp"), b"left").unwrap();
        replace(&path, b"2").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"2");
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
        fs::create_dir(folder.path().join("taken")).unwrap();
        assert!(replace(&folder.path().join("taken"), b"3").is_err());
    }
    #[test]
    fn a_file_is_overwritten_in_place_if_the_new_content_fits() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        replace(&path, &padded(b"[1]", 4)).unwrap();
        for json in ["[123,4]", "[]", "{}"] {
            overwrite(&path, json.as_bytes()).unwrap();
            let bytes = fs::read(&path).unwrap();
            assert_eq!((bytes.len(), bytes.trim_ascii_end()), (7, json.as_bytes()));
        }
        assert_eq!(overwrite(&path, b"[123,45]").unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(fs::read(&path).unwrap().trim_ascii_end(), b"{}");
        std::os::unix::fs::symlink(&path, folder.path().join("link")).unwrap();
        assert!(overwrite(&folder.path().join("link"), b"1").is_err());
    }
}
