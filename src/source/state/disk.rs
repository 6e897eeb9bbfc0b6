//! Files that are whole or not there.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
#[cfg(unix)]
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;

use super::StateError;
use crate::source::enforcement::Enforcement;
use crate::source::file;
use crate::source::hash::Hash;

const SWITCH: &str = "enforcement";

/// What a write must outlive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::source) enum Durability {
    /// The process: what a source holds can be read again, and ten thousand files that change at once must not wait for
    /// the disk.
    Process,
    /// The machine: what somebody decided, and what waits for a decision.
    Machine,
}

/// Writes a file aside and renames it. The folder is made where there is none. Both are for their owner alone, and a link
/// that somebody has put there leads nowhere.
pub(super) fn write(path: &Path, bytes: &[u8], durability: Durability) -> Result<(), StateError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // One thread writes one file at a time, and another process has another number.
    let aside = folder.join(format!(".{name}.{}.{:?}.tmp", std::process::id(), std::thread::current().id()));
    let written = (|| {
        let mut file = create(&aside).or_else(|error| match error.kind() {
            io::ErrorKind::NotFound => make(folder).and_then(|()| create(&aside)),
            // Left by a process of that number which was killed.
            io::ErrorKind::AlreadyExists => fs::remove_file(&aside).and_then(|()| create(&aside)),
            _ => Err(error),
        })?;
        file.write_all(bytes)?;
        if durability == Durability::Machine {
            file.sync_all()?;
        }
        drop(file);
        fs::rename(&aside, path)?;
        if durability == Durability::Machine {
            sync(folder)?;
        }
        Ok(())
    })();
    written.map_err(|cause| {
        // What could not be finished may not be there either.
        let _ = fs::remove_file(&aside);
        StateError::new(path, cause)
    })
}

/// Adds lines to a file. They are written at once; one that is cut by the end of the process is skipped when read.
pub(super) fn append(path: &Path, lines: &[u8]) -> Result<(), StateError> {
    let open = || {
        let mut options = for_owner();
        #[cfg(unix)]
        options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
        options.create(true).append(true).open(path)
    };
    let file = open().or_else(|error| match error.kind() {
        io::ErrorKind::NotFound => make(path.parent().unwrap_or(Path::new("."))).and_then(|()| open()),
        _ => Err(error),
    });
    file.and_then(|mut file| file.write_all(lines)).map_err(|cause| StateError::new(path, cause))
}

/// A file that is new: nothing that stands there under its name is written to, nor what a link there leads to.
fn create(path: &Path) -> io::Result<File> {
    for_owner().write(true).create_new(true).open(path)
}

fn for_owner() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    options.mode(0o600);
    options
}

fn make(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}

/// The rename itself lasts once the folder is written.
fn sync(folder: &Path) -> io::Result<()> {
    // Elsewhere a folder cannot be opened as a file, and renames last by themselves.
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

/// Reads a file of bounded size: `None` where there is none.
pub(super) fn read(path: &Path) -> Result<Option<Vec<u8>>, String> {
    let origin: Arc<str> = path.to_string_lossy().into();
    // Below a file there is nothing: an io error of its own, but no trouble.
    let is_absent = |error: io::Error| matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
    if fs::symlink_metadata(path).is_err_and(is_absent) {
        return Ok(None);
    }
    match file::read(path, &origin) {
        Ok(reading) => Ok(Some(reading.bytes)),
        Err(rejection) => Err(rejection.to_string()),
    }
}

/// Whether the folder can be written to: found out before it matters.
pub(super) fn probe(folder: &Path) -> Result<(), StateError> {
    let path = folder.join(".probe");
    write(&path, b"", Durability::Process)?;
    fs::remove_file(&path).map_err(|cause| StateError::new(&path, cause))
}

/// The kill switch in a folder, and what is wrong with it. One that says neither `on` nor `off` was turned by somebody:
/// off is the side on which nobody is refused.
pub(super) fn read_switch(folder: &Path) -> (Enforcement, Option<String>) {
    let path = folder.join(SWITCH);
    match read(&path) {
        Ok(None) => (Enforcement::On, None),
        Ok(Some(bytes)) => match bytes.trim_ascii() {
            b"on" => (Enforcement::On, None),
            b"off" => (Enforcement::Off, None),
            _ => {
                let path = path.display();
                (Enforcement::Off, Some(format!("{path}: this is neither \"on\" nor \"off\"; taken for \"off\"")))
            }
        },
        Err(trouble) => (Enforcement::Off, Some(format!("{trouble}; taken for \"off\""))),
    }
}

pub(super) fn write_switch(folder: &Path, enforcement: Enforcement) -> Result<(), StateError> {
    write(&folder.join(SWITCH), format!("{enforcement}\n").as_bytes(), Durability::Machine)
}

/// A site's name as the name of a folder: letters in lower case, digits, `-`, `_` and inner dots stand for themselves.
/// Different names stay different, on file systems without case too, and none leaves its folder.
pub(super) fn folder_name(site: &str) -> String {
    let plain = |at: usize, byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_') || byte == b'.' && at > 0
    };
    let escape = |(at, byte)| if plain(at, byte) { char::from(byte).to_string() } else { format!("%{byte:02x}") };
    let name: String = site.bytes().enumerate().map(escape).collect();
    match name.len() {
        0 => "%".to_owned(),
        1..=120 => name,
        _ => format!("{}%{}", &name[..60], Hash::of(site.as_bytes()).short()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_is_a_folder_of_its_own() {
        for (site, name) in [
            ("shop.example.com", "shop.example.com"),
            ("Shop", "%53hop"),
            ("..", "%2e."),
            (".", "%2e"),
            ("a/b\\c", "a%2fb%5cc"),
            ("", "%"),
            ("%", "%25"),
            ("m\u{fc}nchen", "m%c3%bcnchen"),
        ] {
            assert_eq!(folder_name(site), name);
        }
        let long = "x".repeat(300);
        assert!(folder_name(&long).len() < 100);
        assert_ne!(folder_name(&long), folder_name(&"x".repeat(301)));
    }

    #[cfg(unix)]
    #[test]
    fn what_is_written_is_for_its_owner_and_no_link_leads_elsewhere() {
        use std::os::unix::fs::{PermissionsExt, symlink};

        let folder = tempfile::tempdir().expect("a folder");
        let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
        let inner = folder.path().join("a/b");
        write(&inner.join("state"), b"1", Durability::Machine).expect("written");
        append(&inner.join("lines"), b"1\n").expect("written");
        assert_eq!((mode(&inner), mode(&inner.join("state")), mode(&inner.join("lines"))), (0o700, 0o600, 0o600));
        let foreign = folder.path().join("foreign");
        fs::write(&foreign, "theirs").expect("written");
        for name in ["state", "lines"] {
            fs::remove_file(inner.join(name)).expect("removed");
            symlink(&foreign, inner.join(name)).expect("a link");
        }
        let aside = format!(".state.{}.{:?}.tmp", std::process::id(), std::thread::current().id());
        symlink(&foreign, inner.join(aside)).expect("a link");
        write(&inner.join("state"), b"2", Durability::Process).expect("written in place of the links");
        assert!(append(&inner.join("lines"), b"2\n").is_err());
        assert_eq!(fs::read(&foreign).expect("read"), b"theirs");
        assert_eq!(fs::read(inner.join("state")).expect("read"), b"2");
        assert!(fs::symlink_metadata(inner.join("state")).expect("it is there").is_file());
    }

    #[test]
    fn a_switch_that_says_neither_is_off() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(read_switch(folder.path()), (Enforcement::On, None));
        for enforcement in [Enforcement::Off, Enforcement::On] {
            write_switch(folder.path(), enforcement).expect("written");
            assert_eq!(read_switch(folder.path()), (enforcement, None));
        }
        fs::write(folder.path().join(SWITCH), "\0\0").expect("written");
        let (enforcement, trouble) = read_switch(folder.path());
        assert_eq!(enforcement, Enforcement::Off);
        assert!(trouble.expect("told").ends_with("this is neither \"on\" nor \"off\"; taken for \"off\""));
    }
}
