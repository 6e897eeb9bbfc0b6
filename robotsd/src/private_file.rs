//! Files below the state directory that only the owner reads, replaced whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write as _};
use std::path::Path;

/// Puts octets at a path, with the folders above it. A process that ends meanwhile leaves what was there. Blocks.
pub(crate) fn replace(path: &Path, octets: &[u8]) -> io::Result<()> {
    replace_by(path, |file| file.write_all(octets))
}

/// The same with octets that are written one after the other.
pub(crate) fn replace_by(path: &Path, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> io::Result<()> {
    let mut folders = fs::DirBuilder::new();
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
        folders.mode(0o700);
        options.mode(0o600);
    }
    folders.recursive(true).create(path.parent().unwrap_or(Path::new(".")))?;
    let aside = path.with_extension("tmp");
    // One that a process left may be open to others; a link is removed, not followed.
    match fs::remove_file(&aside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let written = options.write(true).create_new(true).open(&aside).and_then(|file| {
        let mut file = BufWriter::new(file);
        write(&mut file)?;
        file.flush()?;
        fs::rename(&aside, path)
    });
    if written.is_err() {
        let _ = fs::remove_file(&aside);
    }
    written
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn nobody_else_reads_what_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("made/a.txt");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        replace(&path, b"1").unwrap();
        // One of a version that let others read it, and a draft of it.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        fs::write(path.with_extension("tmp"), b"left").unwrap();
        replace(&path, b"2").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"2");
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
        fs::create_dir(folder.path().join("taken")).unwrap();
        assert!(replace(&folder.path().join("taken"), b"3").is_err());
    }
}
