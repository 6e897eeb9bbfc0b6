//! Which version each hook announced last, in the state directory: a restart with the same version sends nothing.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use tower_robots::live::VersionHash;

use crate::private_file;

/// Octets of a file of it.
const MOST: u64 = 200;

/// A folder with a file for each hook of a robots.txt.
#[derive(Clone, Debug)]
pub(super) struct DeliveryRecord(PathBuf);

impl DeliveryRecord {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self(folder)
    }

    /// The version that was delivered last; `None` if none was, or that is not known.
    pub(super) fn read(&self, name: &str, hook: &str) -> Option<String> {
        let mut text = String::new();
        fs::File::open(self.path(name, hook)).ok()?.take(MOST).read_to_string(&mut text).ok()?;
        Some(text.trim_end().to_owned())
    }

    /// Writes it in one step: a process that ends meanwhile leaves the one before.
    pub(super) fn write(&self, name: &str, hook: &str, version: &str) -> io::Result<()> {
        private_file::replace(&self.path(name, hook), format!("{version}\n").as_bytes())
    }

    fn path(&self, name: &str, hook: &str) -> PathBuf {
        let hash = VersionHash::of(format!("{name}\n{hook}").as_bytes()).to_string();
        let hex = hash.rsplit(':').next().unwrap_or_default();
        Path::new(&self.0).join(format!("{}.txt", hex.get(..32).unwrap_or(hex)))
    }
}
