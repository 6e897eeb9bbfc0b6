//! The socket of the admin interface where a config has no `[admin]`.
//!
//! It is in the runtime folder: `$RUNTIME_DIRECTORY`, which systemd sets, else `$XDG_RUNTIME_DIR/robotsd`, else `/run/robotsd`. Its
//! name is `admin.sock` for the usual config and `admin-XXXXXXXX.sock` for any other, by a hash of its path, so that two
//! instances do not meet and a command with a config asks the one that runs with it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::USUAL_CONFIG;

/// The socket that a server with this config opens.
pub(super) fn of_config(path: &Path) -> Option<PathBuf> {
    folders().into_iter().next().map(|folder| folder.join(name(path)))
}

/// The socket of a server that runs with this config, or the one that it would open.
pub(super) fn running_with(path: &Path) -> Option<PathBuf> {
    served(path).or_else(|| of_config(path))
}

/// The socket of a server that runs with this config and answers; a command may lack the environment that the server has. A
/// socket that a killed process left behind is passed over.
pub(super) fn served(path: &Path) -> Option<PathBuf> {
    let name = name(path);
    folders().into_iter().map(|folder| folder.join(&name)).find(|place| is_served(place))
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
    connect_now(socket).map_or_else(|error| error.kind() == std::io::ErrorKind::PermissionDenied, |()| true)
}

/// Where a socket is made before it is moved to its place: in a folder of its own beside it. The folder's name has one length
/// for every process, so that a path that is too long for one is too long for all.
#[cfg(unix)]
pub(crate) fn staging_socket(socket: &Path) -> PathBuf {
    socket.with_extension(format!("{:07}.new", std::process::id())).join("s")
}

/// Whether a process listens on a socket, without waiting: one whose queue is full, because it is stopped, would block.
#[cfg(unix)]
pub(crate) fn connect_now(socket: &Path) -> std::io::Result<()> {
    let stream = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None)?;
    stream.set_nonblocking(true)?;
    match stream.connect(&socket2::SockAddr::unix(socket)?) {
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Ok(()),
        connected => connected,
    }
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

    #[cfg(unix)]
    #[test]
    fn a_process_that_accepts_nothing_is_found_without_waiting() {
        use std::os::unix::net::UnixListener;
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("admin.sock");
        assert!(connect_now(&path).is_err() && !is_served(&path));
        let listener = UnixListener::bind(&path).expect("a socket");
        // A queue of one, which is full after two connections.
        socket2::SockRef::from(&listener).listen(0).expect("it listens");
        let address = socket2::SockAddr::unix(&path).expect("a path");
        let mut queued = Vec::new();
        let is_full = std::iter::repeat_with(|| {
            let stream = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None).expect("a socket");
            stream.set_nonblocking(true).expect("set");
            let is_refused = stream.connect(&address).is_err();
            queued.push(stream);
            is_refused
        });
        assert!(is_full.take(64).any(|is_refused| is_refused), "the queue is never full");
        assert!(is_served(&path));
        drop(listener);
        assert!(!is_served(&path));
    }

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
