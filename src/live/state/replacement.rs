//! Replaces files atomically, by writing a file under a temporary name and renaming it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
#[cfg(unix)]
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use crate::live::Durability;

/// Replaces a file: creates the new file at `aside`, calls `write` to write its content, and
/// renames it to `path`. Returns the open file. If the process ends before the rename, the previous
/// file stays. If the folder does not exist, it is created. Only the owner has access to the new
/// file and the new folder. If `path` or `aside` is a symbolic link, the link is replaced, and its
/// target does not change.
pub fn replace(path: &Path, aside: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<File> {
    let mut file = with_folder(aside, || create_or_replace(aside))?;
    let written = write(&mut file).and_then(|()| fs::rename(aside, path));
    if written.is_err() {
        let _ = fs::remove_file(aside);
    }
    written.map(|()| file)
}

pub(crate) fn put(path: &Path, aside: &Path, bytes: &[u8], durability: Durability) -> io::Result<()> {
    let is_durable = durability == Durability::Machine;
    replace(path, aside, |file| {
        file.write_all(bytes)?;
        // The bytes must be synced before the rename. Otherwise, a power failure after the rename,
        // but before the new bytes are on disk, would lose both the old and the new bytes.
        if is_durable || fs::symlink_metadata(path).is_ok() {
            file.sync_all()?;
        }
        Ok(())
    })?;
    if is_durable { sync_folder(folder_of(path)) } else { Ok(()) }
}

/// Creates a new file. If there is already a file or symbolic link at the path, for example from a
/// killed process with the same ID, it is removed first. The target of a symbolic link does not
/// change.
pub(super) fn create_or_replace(path: &Path) -> io::Result<File> {
    let create = || owner_only_options().write(true).create_new(true).open(path);
    match create() {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => fs::remove_file(path).and_then(|()| create()),
        created => created,
    }
}

pub(super) fn with_folder(path: &Path, open: impl Fn() -> io::Result<File>) -> io::Result<File> {
    match open() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => make_folder(folder_of(path)).and_then(|()| open()),
        opened => opened,
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("."))
}

pub(super) fn owner_only_options() -> OpenOptions {
    #[cfg_attr(not(unix), expect(unused_mut))]
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    options.mode(0o600);
    options
}

fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}

/// Syncs a folder, so that a rename in it survives a crash of the machine. Also syncs the parent
/// folders, because they may be new, too.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    // On systems other than Unix, a folder cannot be opened as a file, and renames are durable
    // without a sync.
    if cfg!(not(unix)) {
        return Ok(());
    }
    let sync = |folder: &Path| File::open(folder)?.sync_all();
    sync(folder)?;
    for outer in folder.ancestors().skip(1).filter(|outer| !outer.as_os_str().is_empty()) {
        // Errors are ignored. If a parent folder cannot be read, it belongs to another user, so
        // this process has not created it, and it need not be synced.
        let _ = sync(outer);
    }
    Ok(())
}
