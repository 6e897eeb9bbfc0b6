//! A file that is replaced whole or not at all.
//!
//! The new one is written beside it, with its mode, owner and group, and takes its place. A symbolic link stays, and the file
//! that it leads to is replaced. What a new file could not keep is refused, and nothing is written: other names of the same
//! file, its group, and what was saved there since it was read.

use std::fs::{self, Metadata};
use std::io::{self, Write};
use std::path::Path;

/// Puts octets in the place of those that were read from a file.
pub(super) fn replace(path: &Path, read: &[u8], octets: &[u8]) -> io::Result<()> {
    // The file that a link leads to.
    let path = fs::canonicalize(path)?;
    let metadata = fs::metadata(&path)?;
    refuse(&metadata)?;
    let folder = path.parent().unwrap_or(Path::new("."));
    let unwritable = |error: io::Error| {
        io::Error::new(error.kind(), format!("the corrected file cannot be written to {}: {error}", folder.display()))
    };
    let mut aside = tempfile::Builder::new().prefix(".robots-").tempfile_in(folder).map_err(unwritable)?;
    aside.write_all(octets).map_err(unwritable)?;
    keep_owner(aside.path(), &metadata)?;
    aside.as_file().set_permissions(metadata.permissions()).map_err(unwritable)?;
    aside.as_file().sync_all().map_err(unwritable)?;
    if fs::read(&path)? != read {
        return Err(io::Error::other("it was changed while it was corrected, so it stays as it is now: run it again"));
    }
    aside.persist(&path).map_err(|error| unwritable(error.error))?;
    Ok(())
}

fn refuse(metadata: &Metadata) -> io::Result<()> {
    let refusal = |fault: &str| {
        Err(io::Error::other(format!(
            "{fault}: it stays as it is; send it to standard input with - for the corrected text"
        )))
    };
    if !metadata.is_file() {
        return refusal("it is no regular file, so it cannot be replaced");
    }
    if metadata.permissions().readonly() {
        return refusal("it is read-only");
    }
    match other_names(metadata) {
        0 => Ok(()),
        1 => refusal("it has another name (a hard link), which would keep the old text"),
        names => refusal(&format!("it has {names} other names (hard links), which would keep the old text")),
    }
}

#[cfg(unix)]
fn other_names(metadata: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::nlink(metadata).saturating_sub(1)
}

#[cfg(not(unix))]
fn other_names(_: &Metadata) -> u64 {
    0
}

/// Only root can give a file away: for others it becomes their own. The group, by which a server may read it, is kept.
#[cfg(unix)]
fn keep_owner(path: &Path, metadata: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, chown};
    let own = fs::metadata(path)?;
    if own.uid() != metadata.uid() && chown(path, Some(metadata.uid()), Some(metadata.gid())).is_ok() {
        return Ok(());
    }
    if own.gid() == metadata.gid() {
        return Ok(());
    }
    chown(path, None, Some(metadata.gid())).map_err(|error| {
        let fault = format!("its group {} cannot be kept ({error}), so it stays as it is", metadata.gid());
        io::Error::new(error.kind(), format!("{fault}: send it to standard input with - for the corrected text"))
    })
}

#[cfg(not(unix))]
fn keep_owner(_: &Path, _: &Metadata) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    #[cfg(unix)]
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[cfg(unix)]
    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("a file").permissions().mode() & 0o777
    }

    #[cfg(unix)]
    #[test]
    fn a_file_is_replaced_behind_a_link_and_keeps_its_mode() {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, link) = (folder.path().join("real.txt"), folder.path().join("robots.txt"));
        fs::write(&file, "old").expect("a file");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).expect("a mode");
        symlink("real.txt", &link).expect("a link");
        replace(&link, b"old", b"new").expect("a replaced file");
        assert_eq!(fs::read(&file).expect("a file"), b"new");
        assert_eq!(mode(&file), 0o640);
        assert!(fs::symlink_metadata(&link).expect("a link").is_symlink());
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 2);
    }

    #[cfg(unix)]
    #[test]
    fn what_a_new_file_would_lose_is_refused_and_nothing_is_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("robots.txt");
        let refused = |names: usize, want: &str| {
            let error = replace(&file, b"old", b"new").expect_err(want).to_string();
            assert!(error.contains(want), "{error}");
            assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), names);
        };
        fs::write(&file, "saved").expect("a file");
        refused(1, "it was changed while it was corrected");
        assert_eq!(fs::read(&file).expect("a file"), b"saved");
        fs::write(&file, "old").expect("a file");
        fs::hard_link(&file, folder.path().join("other")).expect("a link");
        refused(2, "it has another name (a hard link)");
        fs::remove_file(folder.path().join("other")).expect("a file");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o444)).expect("a mode");
        refused(1, "it is read-only");
        assert_eq!(fs::read(&file).expect("a file"), b"old");
        assert_eq!(mode(&file), 0o444);
    }
}
