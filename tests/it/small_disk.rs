//! A file system of 68 KiB that tests can fill. Root mounts it directly, and other users mount it
//! in a mount namespace (`unshare -rm`). The tests of both packages use it.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

/// Environment variable of a process that has its own mount namespace.
const INSIDE: &str = "SMALL_DISK_INSIDE";

/// A file system of 68 KiB, unmounted when dropped.
pub(crate) struct SmallDisk {
    folder: TempDir,
}

impl SmallDisk {
    /// Runs a test with a small disk. `name` is the path of the test in this binary.
    pub(crate) fn with(name: &str, test: impl FnOnce(&Self)) {
        match Self::mount() {
            Ok(disk) => return test(&disk),
            Err(why) if std::env::var_os(INSIDE).is_some() => panic!("{why}"),
            Err(_) => {}
        }
        if !Command::new("unshare").args(["-rm", "true"]).output().is_ok_and(|output| output.status.success()) {
            assert!(std::env::var_os("CI").is_none(), "CI has to run this as root, or where `unshare -rm` works");
            println!("skipped: a small file system takes root, or `unshare -rm`");
            return;
        }
        let program = std::env::current_exe().unwrap();
        let mut command = Command::new("unshare");
        command.arg("-rm").arg(program).args(["--exact", name, "--nocapture"]).env(INSIDE, "1");
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("1 passed"), "{output:?}");
    }

    fn mount() -> Result<Self, String> {
        let folder = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=96k", "tmpfs"]).arg(folder.path());
        match mount.output() {
            Ok(output) if output.status.success() => Ok(Self { folder }),
            other => Err(format!("{mount:?}: {other:?}")),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Fills the disk to the last byte.
    pub(crate) fn fill(&self) {
        let mut filler = File::options().create(true).append(true).open(self.path().join("filler")).unwrap();
        for size in [4096, 1] {
            while filler.write_all(&vec![0; size]).is_ok() {}
        }
        assert!(fs::write(self.path().join("more"), "x").is_err(), "the disk is full");
        let _ = fs::remove_file(self.path().join("more"));
    }

    pub(crate) fn free(&self) {
        fs::remove_file(self.path().join("filler")).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}
