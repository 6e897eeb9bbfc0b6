//! Opening files that a config names, or a request: anything may stand in their place.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read as _};
use std::path::Path;

/// Opens a regular file, and says what it is. A FIFO would wait for a writer, and a device for whatever it likes, so nothing is waited
/// for; what was opened is looked at, so nothing can take its place in between.
///
/// # Errors
///
/// Those of the system, and [`InvalidInput`](io::ErrorKind::InvalidInput) where it is no regular file.
pub(crate) fn open(path: &Path) -> io::Result<(File, Metadata)> {
    let other = || io::Error::new(io::ErrorKind::InvalidInput, "this is not a regular file");
    let file = options().open(path).map_err(|error| if is_unopenable(&error) { other() } else { error })?;
    let metadata = file.metadata()?;
    if metadata.is_file() { Ok((file, metadata)) } else { Err(other()) }
}

/// The octets of a regular file, and what it is; one octet more than `most` shows that it is larger.
///
/// # Errors
///
/// As [`open`].
pub(crate) fn read_at_most(path: &Path, most: u64) -> io::Result<(Vec<u8>, Metadata)> {
    let (file, metadata) = open(path)?;
    let mut octets = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut octets)?;
    Ok((octets, metadata))
}

/// The octets of a regular file.
///
/// # Errors
///
/// As [`open`].
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    read_at_most(path, u64::MAX).map(|(octets, _)| octets)
}

#[cfg(unix)]
fn options() -> OpenOptions {
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut options = OpenOptions::new();
    // A terminal would become that of the process.
    options.read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    options
}

#[cfg(not(unix))]
fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true);
    options
}

/// The error for a socket, and a device that is not there.
#[cfg(unix)]
fn is_unopenable(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENXIO | libc::ENODEV | libc::EOPNOTSUPP))
}

#[cfg(not(unix))]
fn is_unopenable(_: &io::Error) -> bool {
    false
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_no_regular_file_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        assert!(std::process::Command::new("mkfifo").arg(path("fifo")).status().unwrap().success());
        let _socket = std::os::unix::net::UnixListener::bind(path("socket")).unwrap();
        std::fs::write(path("file"), "text").unwrap();
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
}
