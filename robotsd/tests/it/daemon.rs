//! Starts servers that a test needs: finds their programs and free ports, and ends them.

use std::fs::File;
use std::process::Child;

use crate::harness::*;

/// Returns the path of a program, or the reason why it cannot be run.
pub(super) fn find(name: &str) -> Result<PathBuf, String> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    // Debian installs servers in a folder that is not in an ordinary user's `PATH`.
    let mut folders = std::env::split_paths(&folders).chain([PathBuf::from("/usr/sbin")]);
    folders
        .find_map(|folder| Some(folder.join(name)).filter(|program| program.is_file()))
        .ok_or_else(|| format!("{name} is not in PATH"))
}

/// Returns distinct loopback ports for servers that are started later.
pub(super) fn free_ports(count: usize) -> Vec<u16> {
    (0..count).map(|_| free().port()).collect()
}

/// A process that ends when this is dropped.
pub(super) struct Daemon(Child);

impl Daemon {
    pub(super) fn spawn(command: &mut Command) -> Self {
        Self(command.spawn().unwrap())
    }

    /// Starts a command in a folder, and appends its output to the file `log` there.
    pub(super) fn logging(command: &mut Command, folder: &Folder) -> Self {
        let log = File::options().create(true).append(true).open(folder.at("log")).unwrap();
        command.current_dir(folder.path()).stdin(Stdio::null());
        Self::spawn(command.stdout(log.try_clone().unwrap()).stderr(log))
    }

    pub(super) fn is_running(&mut self) -> bool {
        matches!(self.0.try_wait(), Ok(None))
    }

    /// Waits until a condition holds. Returns `false` if the process ends first.
    pub(super) fn comes_to(&mut self, holds: impl Fn() -> bool) -> bool {
        let began = Instant::now();
        while began.elapsed() < PATIENCE && self.is_running() {
            if holds() {
                return true;
            }
            thread::sleep(Duration::from_millis(5));
        }
        false
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // SIGTERM comes first, because nginx's workers survive a kill of the master.
        signal("TERM", self.0.id());
        for _ in 0..200 {
            if !self.is_running() {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
