//! The file of a kill switch: `on` or `off`.

use std::path::Path;

use super::disk::{Disk, SWITCH};
use super::error::StateError;
use crate::live::durability::Durability;
use crate::live::enforcement::Enforcement;

impl Disk {
    /// The kill switch in a folder, and what is wrong with it. One that says neither `on` nor `off` was turned by an
    /// operator: `off` refuses no client.
    pub(super) fn read_switch(&self, folder: &Path) -> (Enforcement, Option<String>) {
        let path = folder.join(SWITCH);
        match self.read(&path) {
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

    pub(super) fn write_switch(&self, folder: &Path, enforcement: Enforcement) -> Result<(), StateError> {
        self.write(&folder.join(SWITCH), format!("{enforcement}\n").as_bytes(), Durability::Machine)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_switch_that_says_neither_is_off() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(Disk::default().read_switch(folder.path()), (Enforcement::On, None));
        for enforcement in [Enforcement::Off, Enforcement::On] {
            Disk::default().write_switch(folder.path(), enforcement).expect("written");
            assert_eq!(Disk::default().read_switch(folder.path()), (enforcement, None));
        }
        fs::write(folder.path().join(SWITCH), "\0\0").expect("written");
        let (enforcement, trouble) = Disk::default().read_switch(folder.path());
        assert_eq!(enforcement, Enforcement::Off);
        assert!(trouble.expect("a trouble").ends_with("this is neither \"on\" nor \"off\"; taken for \"off\""));
    }
}
