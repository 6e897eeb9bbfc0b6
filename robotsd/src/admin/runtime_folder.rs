//! The folder of the default socket, made where it is missing, and refused where another user could replace the socket.

use std::fs::DirBuilder;
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

/// Makes the folder for its owner alone, or checks the one that is there.
pub(super) fn prepare(folder: &Path) -> Result<()> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    // Links are followed: with DynamicUser= the runtime folder of systemd is one, in a folder that only root can write to.
    let found = std::fs::metadata(folder)?;
    let refused = |why: &str| Err(Error::new(ErrorKind::PermissionDenied, format!("{}: {why}", folder.display())));
    if !found.is_dir() {
        return refused("the runtime folder is a file");
    }
    if found.uid() != 0 && found.uid() != rustix::process::geteuid().as_raw() {
        return refused("the runtime folder belongs to another user");
    }
    if found.mode() & 0o022 != 0 {
        return refused("others may write to the runtime folder");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_folder_is_its_owners_or_it_is_refused() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("robotsd");
        prepare(&folder).unwrap();
        assert_eq!(std::fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
        prepare(&folder).unwrap();
        for (mode, is_refused) in [(0o750, false), (0o770, true), (0o707, true)] {
            std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(prepare(&folder).is_err(), is_refused, "{mode:o}");
        }
        let file = parent.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(prepare(&file).is_err());
        assert!(prepare(&parent.path().join("no/such")).is_err());
    }
}
