//! The place file. A process writes the address of its admin interface to this file, and commands
//! read the address from it. Commands therefore find the process even if the config has changed
//! since the process started. The file also contains the path of the local token's file, and all
//! TCP addresses of the admin interface.
//!
//! One copy of the place file is in the runtime folder, with a name that depends only on the path
//! of the config. Another copy is in the state directory, for commands with a different runtime
//! folder. The process holds a lock on the place file until it ends. Commands ignore a file without
//! a lock, because its process has ended.

use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::iter;
use std::net::SocketAddr;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tower_robots::internals;

use super::listen::prepare_runtime_folder;
use crate::config::{AdminPlace, StateSettings, TokenFile, config_if_any, instance_name, runtime_folders};
use crate::files;

/// Name of the place file in a state directory. The name is fixed, because only one process uses a
/// state directory at a time.
const STATE_FILE_NAME: &str = "admin.place";

/// Maximum size of a place file, in bytes.
const MAX_FILE_BYTES: u64 = 8 * 1024;

#[derive(Debug)]
pub(crate) struct CommandAccess<'a> {
    pub(crate) place: &'a AdminPlace,
    pub(crate) tokens: &'a [PathBuf],
    /// All TCP addresses of the admin interface. A command uses these addresses to choose the token
    /// for the address that it connects to.
    pub(crate) addresses: Vec<SocketAddr>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Content {
    /// Address or socket path, in the form that `--admin` accepts.
    place: String,
    /// Path of a token file, preferably in the same folder as this place file, because a command
    /// may be able to read only this folder.
    token: Option<String>,
    addresses: Vec<SocketAddr>,
}

impl CommandAccess<'_> {
    fn content(&self, folder: &Path) -> io::Result<Content> {
        let place = match self.place {
            AdminPlace::Socket(socket) => format!("unix:{}", std::path::absolute(socket)?.display()),
            place => place.to_string(),
        };
        let folder = std::path::absolute(folder)?;
        let token = self.tokens.iter().find(|file| file.parent() == Some(&folder)).or(self.tokens.first());
        let addresses = self.addresses.clone();
        Ok(Content { place, token: token.map(|file| file.display().to_string()), addresses })
    }
}

/// The place file of a running process. Dropping a `PlaceFile` removes the file, unless another
/// process has replaced the file.
#[derive(Debug)]
pub(crate) struct PlaceFile {
    path: PathBuf,
    /// The open file, which holds the lock.
    file: File,
}

impl PlaceFile {
    /// Writes the place files of this process: one in the runtime folder, and one in the state
    /// directory if there is one. `config` is the path of the config that the process uses.
    ///
    /// # Errors
    ///
    /// Returns an error if neither file can be written.
    pub(crate) fn create_all(
        access: &CommandAccess<'_>,
        config: &Path,
        state: Option<&Path>,
    ) -> Result<Vec<Self>, String> {
        let of_runtime = |folder: PathBuf| (prepare_runtime_folder(&folder), folder.join(runtime_file_name(config)));
        let of_runtime = runtime_folders().into_iter().next().map(of_runtime);
        let of_state = state.map(|folder| (Ok(()), folder.join(STATE_FILE_NAME)));
        let (mut left, mut error) = (Vec::new(), String::new());
        for (prepared, path) in of_runtime.into_iter().chain(of_state) {
            match prepared.and_then(|()| Self::write(path.clone(), access)) {
                Ok(file) => left.push(file),
                Err(why) => error = format!("{}: {why}", path.display()),
            }
        }
        if left.is_empty() { Err(error) } else { Ok(left) }
    }

    /// Locks the file before moving it to its path, because a command ignores an unlocked file.
    fn write(path: PathBuf, access: &CommandAccess<'_>) -> io::Result<Self> {
        let text = serde_json::to_vec(&access.content(files::folder_of(&path))?)?;
        let aside = path.with_extension(format!("{}.new", std::process::id()));
        let file = internals::replace(&path, &aside, |file| {
            // Other users may be allowed to use the admin interface, and their commands must be
            // able to read the place file.
            file.set_permissions(fs::Permissions::from_mode(0o644))?;
            // If the file system does not support locks, commands treat the file as valid as long
            // as it exists.
            let _ = file.try_lock();
            file.write_all(&text)
        })?;
        Ok(Self { path, file })
    }
}

impl Drop for PlaceFile {
    fn drop(&mut self) {
        let identity = |found: io::Result<Metadata>| found.ok().map(|found| (found.dev(), found.ino()));
        if identity(self.file.metadata()) == identity(fs::symlink_metadata(&self.path)) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Finds the admin interface of the process that runs with the config at `config`.
///
/// # Errors
///
/// Returns an error message if no process is found.
pub(crate) fn find_place(config: &Path) -> Result<AdminPlace, String> {
    let mut notes = String::new();
    let mut place_in = |path: &Path| match read(path) {
        Ok(Some(FoundPlace { place: AdminPlace::Address(address), token: Some(token), .. })) => {
            Some(AdminPlace::Local(address, token))
        }
        Ok(left) => left.map(|left| left.place),
        Err(why) => {
            notes = format!("{notes}; {why}");
            None
        }
    };
    if let Some(place) = runtime_folders().iter().find_map(|folder| place_in(&folder.join(runtime_file_name(config)))) {
        return Ok(place);
    }
    // The config is read last, because it may have errors or be on a file system that hangs.
    match StateSettings::load(config) {
        Ok(StateSettings { folder, socket, .. }) => {
            if let Some(place) = folder.and_then(|folder| place_in(&folder.join(STATE_FILE_NAME))) {
                return Ok(place);
            }
            // If robotsd can write to neither folder, there is no place file.
            if let Some(socket) = socket.filter(|socket| UnixStream::connect(socket).is_ok()) {
                return Ok(AdminPlace::Socket(socket));
            }
        }
        Err(error) => notes = format!("{notes}; {error}"),
    }
    Err(format!(
        "{config}: no running robotsd uses this config: give the config of a running robotsd with --config FILE, or \
         its admin interface with --admin PLACE{notes}",
        config = config.display()
    ))
}

/// Returns the local token of the process that listens on a loopback address, if this user can read
/// the token. Searches the runtime folders, and the state directory of the default config.
pub(super) fn find_token(address: SocketAddr) -> Option<String> {
    let of_runtime = runtime_folders().into_iter().flat_map(fs::read_dir).flatten().flatten().map(|entry| entry.path());
    let of_runtime = of_runtime.filter(|path| path.extension() == Some("place".as_ref()));
    let of_state = iter::once_with(|| StateSettings::load(&config_if_any(None)?).ok()?.folder).flatten();
    let mut left =
        of_runtime.chain(of_state.map(|folder| folder.join(STATE_FILE_NAME))).filter_map(|path| read(&path).ok()?);
    left.find_map(|left| left.token.filter(|_| left.addresses.contains(&address))?.read())
}

#[derive(Debug)]
struct FoundPlace {
    place: AdminPlace,
    token: Option<TokenFile>,
    addresses: Vec<SocketAddr>,
}

fn runtime_file_name(config: &Path) -> String {
    format!("{}.place", instance_name(config))
}

/// Reads a place file. Returns `None` if there is no file, or if its process has ended.
fn read(path: &Path) -> Result<Option<FoundPlace>, String> {
    let failed = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
    let (file, found) = match files::open(path) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
        opened => opened.map_err(|error| failed(&error))?,
    };
    // Other users may be able to write to the folder, so a place file is trusted only if it belongs
    // to root, to this user, or to the owner of the folder.
    let folder = fs::metadata(files::folder_of(path)).map_err(|error| failed(&error))?;
    if ![0, rustix::process::geteuid().as_raw(), folder.uid()].contains(&found.uid()) {
        return Err(failed(&"the file is ignored, because it belongs to another user"));
    }
    // If this process can lock the file, its writer has ended: a running process holds the lock,
    // even while it is stopped (SIGSTOP).
    if file.try_lock_shared().is_ok() {
        return Ok(None);
    }
    let mut text = String::new();
    file.take(MAX_FILE_BYTES).read_to_string(&mut text).map_err(|error| failed(&error))?;
    let Content { place, token, addresses } = serde_json::from_str(&text).map_err(|error| failed(&error))?;
    let token = token.map(|path| TokenFile { path: path.into(), owner: found.uid() });
    Ok(Some(FoundPlace { place: place.parse().map_err(|why: String| failed(&why))?, token, addresses }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn access(place: &AdminPlace) -> CommandAccess<'_> {
        CommandAccess { place, tokens: &[], addresses: Vec::new() }
    }

    fn left(path: &Path) -> Result<Option<String>, String> {
        Ok(read(path)?.map(|left| left.place.to_string()))
    }

    #[test]
    fn the_place_file_is_valid_only_while_the_last_process_that_wrote_it_runs() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("admin.place");
        assert_eq!(left(&path), Ok(None));
        let [address, socket] = ["127.0.0.1:7", "unix:/run/a b.sock"].map(|place| place.parse::<AdminPlace>().unwrap());
        let first = PlaceFile::write(path.clone(), &access(&address)).unwrap();
        assert_eq!(left(&path), Ok(Some("127.0.0.1:7".to_owned())));
        let second = PlaceFile::write(path.clone(), &access(&socket)).unwrap();
        drop(first);
        assert_eq!(left(&path), Ok(Some("/run/a b.sock".to_owned())));
        // A killed process leaves its file behind, but its lock is released.
        fs::hard_link(&path, folder.path().join("left")).unwrap();
        drop(second);
        assert!(!path.exists());
        fs::rename(folder.path().join("left"), &path).unwrap();
        assert_eq!(left(&path), Ok(None));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_place_file_that_another_user_owns_is_not_trusted() {
        use std::os::unix::fs::chown;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("admin.place");
        let _held = PlaceFile::write(path.clone(), &access(&"127.0.0.1:7".parse().unwrap())).unwrap();
        // Only root can give a file to another user.
        if chown(folder.path(), Some(1), None).is_err() {
            return;
        }
        for (user, is_believed) in [(0, true), (1, true), (2, false)] {
            chown(&path, Some(user), None).unwrap();
            assert_eq!(left(&path).is_ok_and(|place| place.is_some()), is_believed, "{user}");
        }
    }
}
