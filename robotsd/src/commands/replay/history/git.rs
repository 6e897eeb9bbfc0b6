//! The versions of a file in a git repository, as the command `git` has them.
//!
//! A version is in force from the moment at which its commit was made on the branch that is checked out. Of a merge that is the
//! merge itself: what stood on another branch before was not live.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{DatedVersion, MOST_VERSIONS};
use crate::render::{printable, printable_path};

/// The file of a directory.
const FILE: &str = "robots.txt";

/// Whether a path is in a repository, or is one.
pub(super) fn has_repository(path: &Path) -> bool {
    let Ok(path) = path.canonicalize() else { return false };
    let is_bare = |folder: &Path| folder.join("HEAD").is_file() && folder.join("objects").is_dir();
    path.ancestors().any(|folder| folder.join(".git").exists() || is_bare(folder))
}

/// The versions of a file, or of the robots.txt of a directory, the newest first.
///
/// # Errors
///
/// If there is no `git`, it refuses, or no commit has the file.
pub(super) fn versions(path: &Path) -> io::Result<Vec<DatedVersion>> {
    let (folder, file) = if path.is_dir() {
        (path.to_owned(), FILE.to_owned())
    } else {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        (folder.to_owned(), name.unwrap_or_default())
    };
    let most = format!("--max-count={MOST_VERSIONS}");
    let log =
        ["log", "--first-parent", "-m", "--raw", "--no-abbrev", "--no-show-signature", "--format=%H %ct", &most, "--"];
    let log = git(&folder, log.into_iter().chain([&*file]))?;
    let mut versions = Vec::new();
    let mut commit: Option<(String, i64)> = None;
    for line in String::from_utf8_lossy(&log).lines() {
        match line.strip_prefix(':') {
            // `:100644 100644 BEFORE AFTER M\trobots.txt`
            Some(change) => {
                let (Some((hash, at)), Some(blob)) = (commit.take(), change.split(' ').nth(3)) else { continue };
                // A file that was deleted has no rules.
                let is_deleted = blob.bytes().all(|digit| digit == b'0');
                let bytes = if is_deleted { Vec::new() } else { git(&folder, ["cat-file", "blob", blob])? };
                versions.push(DatedVersion { at, source: hash.get(..12).unwrap_or(&hash).to_owned(), bytes });
            }
            None => {
                let read = line.split_once(' ').and_then(|(hash, at)| Some((hash.to_owned(), at.parse().ok()?)));
                commit = read.or(commit);
            }
        }
    }
    if versions.is_empty() {
        let file = printable_path(folder.join(&file));
        return Err(io::Error::other(format!(
            "{file}: no commit of its repository has this file: name one that is tracked"
        )));
    }
    Ok(versions)
}

fn git<'a>(folder: &PathBuf, arguments: impl IntoIterator<Item = &'a str>) -> io::Result<Vec<u8>> {
    let output = Command::new("git").arg("-C").arg(folder).args(arguments).env("GIT_OPTIONAL_LOCKS", "0").output();
    let output = output.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => io::Error::other(format!(
            "{}: it is in a git repository, and there is no command git to read its history with: install git, or name dated files",
            printable_path(folder)
        )),
        _ => io::Error::other(format!("git: {error}")),
    })?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let why = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("{}: git: {}", printable_path(folder), printable(why.trim()))))
}
