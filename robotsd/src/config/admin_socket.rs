//! The socket of the admin interface where a config has no `[admin]`.
//!
//! It is in the runtime folder: `$RUNTIME_DIRECTORY`, which systemd sets, else `$XDG_RUNTIME_DIR/robotsd`, else `/run/robotsd`. Its
//! name is `admin.sock` for the usual config and `admin-XXXXXXXX.sock` for any other, by a hash of its path, so that two
//! instances do not meet and a command with a config asks the one that runs with it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::location::USUAL_CONFIG;

/// The socket that a server with this config opens.
pub(super) fn of_config(path: &Path) -> Option<PathBuf> {
    folders().into_iter().next().map(|folder| folder.join(name(path)))
}

/// The socket of a server that runs with this config; a command may lack the environment that the server has. A socket that
/// a killed process left behind is passed over.
pub(super) fn running_with(path: &Path) -> Option<PathBuf> {
    let name = name(path);
    let mut places = folders().into_iter().map(|folder| folder.join(&name));
    let first = places.next()?;
    Some(std::iter::once(first.clone()).chain(places).find(|place| is_served(place)).unwrap_or(first))
}

/// The sockets of all servers that have one by default and run: a process that was killed leaves its socket behind.
pub(super) fn all() -> Vec<PathBuf> {
    let entries = folders().into_iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
    let is_ours = |name: &OsStr| {
        name.to_str()
            .is_some_and(|name| name.starts_with("admin") && Path::new(name).extension() == Some("sock".as_ref()))
    };
    let sockets = entries.filter(|entry| is_ours(&entry.file_name())).map(|entry| entry.path());
    let mut found: Vec<_> = sockets.filter(|socket| is_served(socket)).collect();
    found.sort();
    found.dedup();
    found
}

#[cfg(unix)]
fn is_served(socket: &Path) -> bool {
    // Without the permission to connect it is left to the command to say so.
    std::os::unix::net::UnixStream::connect(socket)
        .map_or_else(|error| error.kind() == std::io::ErrorKind::PermissionDenied, |_| true)
}

#[cfg(not(unix))]
fn is_served(_: &Path) -> bool {
    false
}

/// The runtime folders, the server's first.
pub(super) fn folders() -> Vec<PathBuf> {
    if cfg!(not(unix)) {
        return Vec::new();
    }
    let variable = |name: &str| std::env::var(name).ok().filter(|value| value.starts_with('/'));
    // systemd separates several by colons.
    let systemd = variable("RUNTIME_DIRECTORY").and_then(|folders| folders.split(':').next().map(PathBuf::from));
    let session = variable("XDG_RUNTIME_DIR").map(|folder| Path::new(&folder).join("robotsd"));
    let mut folders: Vec<_> = systemd.into_iter().chain(session).chain([PathBuf::from("/run/robotsd")]).collect();
    folders.dedup();
    folders
}

fn name(path: &Path) -> String {
    let path = absolute(path);
    if path == Path::new(USUAL_CONFIG) {
        return "admin.sock".to_owned();
    }
    let hash = Sha256::digest(path.as_os_str().as_encoded_bytes());
    let digits: String = hash.iter().take(4).map(|octet| format!("{octet:02x}")).collect();
    format!("admin-{digits}.sock")
}

/// The path from the root. Links of its folder are followed; one that is the file itself may lead elsewhere tomorrow.
fn absolute(path: &Path) -> PathBuf {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match (folder.canonicalize(), path.file_name()) {
        (Ok(folder), Some(name)) if path != Path::new(USUAL_CONFIG) => folder.join(name),
        _ => path.to_path_buf(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_config_has_one_name_however_its_path_is_written() {
        assert_eq!(name(Path::new(USUAL_CONFIG)), "admin.sock");
        let folder = tempfile::tempdir().expect("a folder");
        let (path, other) = (folder.path().join("a.toml"), folder.path().join("b.toml"));
        assert_eq!(name(&path), name(&folder.path().join(".").join("a.toml")));
        assert_ne!(name(&path), name(&other));
        assert!(
            name(&path).starts_with("admin-") && name(&path).len() == "admin-01234567.sock".len(),
            "{}",
            name(&path)
        );
    }
}
