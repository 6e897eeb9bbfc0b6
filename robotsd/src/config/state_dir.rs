//! Checks in advance whether the state directory and the audit file can be created and written.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use rustix::fs::{Access, access, statfs};
use rustix::io::Errno;

use super::log::is_writable;
use super::{Config, Fault, Placed as _, RawConfig};
use crate::files;

impl Config {
    /// Returns the reason why no user can create the state directory, for example because a file
    /// has this path, or because the file system does not allow new folders. If no user can create
    /// the directory, robotsd does not start. Blocks while the file system hangs.
    pub(crate) fn state_dir_problem(&self) -> Option<String> {
        let path = self.state_dir.as_deref()?;
        let is_file = |part: &&Path| part.exists() && !part.is_dir();
        if let Some(file) = path.ancestors().find(is_file) {
            return Some(format!(
                "{path} is not a folder: write the path of a folder; robotsd creates the folder if it does not exist",
                path = file.display()
            ));
        }
        let why = creation_problem(path)?;
        Some(format!(
            "{path} cannot be a state_dir, because {why}: write a folder on a disk, such as /var/lib/robotsd",
            path = path.display()
        ))
    }
}

/// Returns the reason why no user can create this folder or, if the folder exists, create files in
/// it. Returns `None` if some user may be able to create the folder or the files, or if this
/// process does not have the permission to find out.
fn creation_problem(path: &Path) -> Option<String> {
    let exists = match fs::metadata(path) {
        Ok(_) => true,
        Err(error) if error.kind() == ErrorKind::NotFound => false,
        Err(error) if error.kind() == ErrorKind::PermissionDenied => return None,
        // Examples: a name is too long, or links form a cycle.
        Err(error) => return Some(error.to_string()),
    };
    let there = nearest(path);
    let shown = there.display();
    if !there.exists() {
        return Some(format!("{shown} is a symbolic link whose target does not exist"));
    }
    if !exists && access(there, Access::WRITE_OK) == Err(Errno::ROFS) {
        return Some(format!("{shown} is mounted read-only"));
    }
    is_kernel_file_system(there).then(|| {
        format!("{shown} is on a file system of the kernel, such as /proc, and programs cannot create files there")
    })
}

/// Returns the reason why the current user cannot write a file; `None` if the user can. If the
/// folder of the file does not exist, the user must be able to create the folder.
pub(super) fn write_problem(path: &Path) -> Option<String> {
    if path.is_dir() {
        return Some("it is a folder".to_owned());
    }
    if path.exists() {
        return access(path, Access::WRITE_OK).err().map(|error| error.to_string());
    }
    let folder = files::folder_of(path);
    creation_problem(folder).or_else(|| {
        let there = nearest(folder);
        (!is_writable(there))
            .then(|| format!("the current user cannot create a file in {folder}", folder = there.display()))
    })
}

/// Returns the nearest ancestor that exists, or the path itself. A symbolic link exists even if its
/// target does not.
fn nearest(path: &Path) -> &Path {
    path.ancestors().find(|part| fs::symlink_metadata(part).is_ok()).unwrap_or(Path::new("."))
}

/// Reports whether the file system of this folder exposes the kernel's state. A file system of the
/// kernel refuses new folders regardless of permissions, or gives new folders a special meaning
/// (proc(5), sysfs(5), cgroups(7)).
fn is_kernel_file_system(folder: &Path) -> bool {
    statfs(folder).is_ok_and(|found| {
        matches!(
            found.f_type,
            0x9fa0 // proc
            | 0x6265_6572 // sysfs
            | 0x0027_e0eb | 0x6367_7270 // cgroup, cgroup2
            | 0x1cd1 // devpts
            | 0x6462_6720 | 0x7472_6163 | 0x7363_6673 // debugfs, tracefs, securityfs
        )
    })
}

/// Returns an error if the current user cannot write to the state directory. The caller reports a
/// warning, because the server may run as another user.
pub(super) fn unwritable_state_dir(file: &RawConfig, config: &Config) -> Option<Fault> {
    let (written, path) = (file.state_dir.as_ref()?, config.state_dir.as_ref()?);
    let there = nearest(path);
    if is_writable(there) || config.state_dir_problem().is_some() {
        return None;
    }
    let done = if there == path { "write to" } else { "create" };
    let forgets = "a restart would forget the kill switch, the accepted versions and the history";
    Some(written.fault(format!(
        "the current user cannot {done} {path}; if robotsd runs as this user, {forgets}",
        path = path.display()
    )))
}
