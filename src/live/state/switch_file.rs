//! The file that contains the position of a kill switch, `on` or `off`. There is one switch for all
//! sites together, and one for each site.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::disk::{Access, Disk, SWITCH};
use super::error::{ProblemKind, Problems, StateError, switch_problem};
use super::lock::FolderLock;
use super::record_file;
use crate::live::{Durability, Enforcement, Mutex};

pub(super) struct SwitchFile {
    disk: Disk,
    folder: PathBuf,
    /// Whether the file exists and is not empty, so that it can be overwritten in place if the disk
    /// is full. This mutex is locked while the file is written, so that concurrent changes are
    /// written in order.
    file_exists: Mutex<bool>,
    /// The position that must still be written; `None` if there is none. This mutex is never locked
    /// while the disk is accessed.
    unwritten: Mutex<Option<Enforcement>>,
}

impl SwitchFile {
    pub(super) fn new(disk: &Disk, folder: &Path) -> Self {
        Self {
            disk: disk.clone(),
            folder: folder.to_owned(),
            file_exists: Mutex::new(false),
            unwritten: Mutex::new(None),
        }
    }

    pub(super) fn unwritten(&self) -> Option<Enforcement> {
        *self.unwritten.lock()
    }

    /// Writes a new position of the switch. A position that cannot be written now is kept in memory
    /// and written later.
    pub(super) fn set(
        &self,
        enforcement: Enforcement,
        lock: &FolderLock,
        problems: &Problems,
    ) -> Result<(), StateError> {
        // The folder was handed over. The position is not written, because the process that now has
        // the folder open would not notice the change.
        let Some(_held) = lock.writing() else {
            *self.unwritten.lock() = Some(enforcement);
            return Err(StateError::handed_over(&self.folder));
        };
        let _writing = self.file_exists.lock();
        *self.unwritten.lock() = Some(enforcement);
        self.try_write(enforcement, problems)
    }

    /// Writes the position that could not be written before. If there is no such position, creates
    /// the file unless it exists. Returns whether everything is written.
    pub(super) fn write(&self, problems: &Problems) -> bool {
        let mut file_exists = self.file_exists.lock();
        let Some(enforcement) = self.unwritten() else {
            *file_exists = *file_exists || self.disk.make_switch(&self.folder);
            return true;
        };
        self.try_write(enforcement, problems).is_ok()
    }

    fn try_write(&self, enforcement: Enforcement, problems: &Problems) -> Result<(), StateError> {
        let written = self.disk.write_switch(&self.folder, enforcement);
        if written.is_ok() {
            *self.unwritten.lock() = None;
        }
        problems.set(ProblemKind::Switch, written.as_ref().err().map(switch_problem));
        if written.is_ok() {
            problems.set(ProblemKind::UnreadSwitch, None);
        }
        written
    }
}

impl Disk {
    /// Reads the kill switch in a folder. Also returns a problem if the file is unreadable or
    /// invalid. A file that contains neither `on` nor `off` was probably edited by an operator.
    /// Such a file counts as `off`, so that no client is refused by mistake. An empty file counts
    /// as `on`. Every change of the switch is synced to the disk, so a file can be empty only after
    /// a power failure before the first change.
    pub(super) fn read_switch(&self, folder: &Path) -> (Enforcement, Option<String>) {
        let path = folder.join(SWITCH);
        match self.read(&path) {
            Ok(None) => (Enforcement::On, None),
            Ok(Some(bytes)) if is_blank(&bytes) => (Enforcement::On, None),
            Ok(Some(bytes)) => match bytes.trim_ascii() {
                b"on" => (Enforcement::On, None),
                b"off" => (Enforcement::Off, None),
                _ => {
                    let path = path.display();
                    (
                        Enforcement::Off,
                        Some(format!(
                            "{path}: the file contains neither \"on\" nor \"off\"; enforcement is treated as \"off\""
                        )),
                    )
                }
            },
            Err(problem) => (Enforcement::Off, Some(format!("{problem}; enforcement is treated as \"off\""))),
        }
    }

    /// Writes the file of a kill switch: `on` or `off`.
    ///
    /// The file is written under a temporary name and renamed. If a new file cannot be written, for
    /// example on a full disk, the existing file is overwritten in place. If the machine crashes
    /// while the file is overwritten, the file may contain an invalid value, which counts as `off`.
    pub(super) fn write_switch(&self, folder: &Path, enforcement: Enforcement) -> Result<(), StateError> {
        let path = folder.join(SWITCH);
        let written = self.write(&path, format!("{enforcement}\n").as_bytes(), Durability::Machine);
        let overwrite = || self.reach(Access::Overwrite, &path).and_then(|()| overwrite(&path, enforcement));
        written.or_else(|error| overwrite().map_err(|_| error))
    }

    /// Creates the file of a switch that was never used, so that it can later be overwritten even
    /// on a full disk. The file contains `on`, which is equivalent to a missing file. Returns
    /// whether the file now exists and is not empty.
    pub(super) fn make_switch(&self, folder: &Path) -> bool {
        let path = folder.join(SWITCH);
        match self.read(&path) {
            Ok(Some(bytes)) if !is_blank(&bytes) => true,
            // If an error prevents the file from being created now, the file is created when the
            // switch is first used.
            Ok(_) => self.write(&path, &switch_bytes(Enforcement::On), Durability::Process).is_ok(),
            // A file that cannot be read, for example because an operator has changed its
            // permissions, is not replaced here. The next write tries to read the file again.
            Err(_) => false,
        }
    }
}

/// Reports whether the file is empty or contains only zero bytes, as after a loss of data in the
/// file system.
fn is_blank(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

/// Returns the bytes of a switch file with this position. The number of bytes is the same for `on`
/// and `off`, so that the file can be overwritten in place.
fn switch_bytes(enforcement: Enforcement) -> [u8; 4] {
    match enforcement {
        Enforcement::On => *b"on \n",
        Enforcement::Off => *b"off\n",
    }
}

fn overwrite(path: &Path, enforcement: Enforcement) -> io::Result<()> {
    let mut file = record_file::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let bytes = switch_bytes(enforcement);
    file.write_all(&bytes)?;
    file.set_len(bytes.len() as u64)?;
    file.sync_data()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn an_empty_or_zeroed_switch_file_counts_as_on_and_is_written_again() {
        let folder = tempfile::tempdir().expect("a folder");
        for lost in ["", "\0\0\0\0"] {
            fs::write(folder.path().join(SWITCH), lost).expect("written");
            assert_eq!(Disk::default().read_switch(folder.path()), (Enforcement::On, None));
            assert!(Disk::default().make_switch(folder.path()));
            assert_eq!(fs::read(folder.path().join(SWITCH)).expect("read"), switch_bytes(Enforcement::On));
        }
        fs::remove_file(folder.path().join(SWITCH)).expect("removed");
        fs::create_dir(folder.path().join(SWITCH)).expect("a folder");
        assert!(!Disk::default().make_switch(folder.path()), "what cannot be read is no switch to overwrite");
    }

    #[test]
    fn a_switch_file_is_read_as_written_and_counts_as_off_if_it_is_invalid() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(Disk::default().read_switch(folder.path()), (Enforcement::On, None));
        for enforcement in [Enforcement::Off, Enforcement::On] {
            Disk::default().write_switch(folder.path(), enforcement).expect("written");
            assert_eq!(Disk::default().read_switch(folder.path()), (enforcement, None));
        }
        for enforcement in [Enforcement::Off, Enforcement::On, Enforcement::Off] {
            overwrite(&folder.path().join(SWITCH), enforcement).expect("written");
            assert_eq!(Disk::default().read_switch(folder.path()), (enforcement, None));
            Disk::default().make_switch(folder.path());
            assert_eq!(Disk::default().read_switch(folder.path()), (enforcement, None), "it was there");
        }
        fs::remove_file(folder.path().join(SWITCH)).expect("removed");
        assert!(overwrite(&folder.path().join(SWITCH), Enforcement::Off).is_err());
        Disk::default().make_switch(folder.path());
        assert_eq!(Disk::default().read_switch(folder.path()), (Enforcement::On, None));
        fs::write(folder.path().join(SWITCH), "o\0\0").expect("written");
        let (enforcement, problem) = Disk::default().read_switch(folder.path());
        assert_eq!(enforcement, Enforcement::Off);
        assert!(
            problem
                .expect("a problem")
                .ends_with("the file contains neither \"on\" nor \"off\"; enforcement is treated as \"off\"")
        );
    }
}
