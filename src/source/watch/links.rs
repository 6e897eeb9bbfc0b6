//! Where a path leads: the links on the way to a file, each of which may be changed to bring another version.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use crate::source::file_system;

/// Links followed on the way to a file, as many as Linux does.
const MAX_LINKS: usize = 40;

/// The path itself and every link that is followed on the way to the file, each in its resolved folder.
pub(super) fn links_to(path: &Path) -> BTreeSet<PathBuf> {
    let mut files = BTreeSet::new();
    let mut pending = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    // What events call the file: its name in the folder as it was given.
    files.insert(pending.clone());
    for _ in 0..MAX_LINKS {
        let Some((link, target)) = first_link(&pending) else { break };
        files.insert(link.clone());
        pending = target;
    }
    files.insert(pending);
    files
}

/// The first component of a path that is a link, and the path with that link followed.
fn first_link(path: &Path) -> Option<(PathBuf, PathBuf)> {
    let mut walked = PathBuf::new();
    let mut components = path.components();
    while let Some(component) = components.next() {
        match component {
            Component::ParentDir => {
                walked.pop();
                continue;
            }
            Component::CurDir => continue,
            _ => walked.push(component),
        }
        if let Ok(target) = file_system::read_link(&walked) {
            let folder = walked.parent().unwrap_or(Path::new("/")).to_owned();
            let rest: &OsStr = components.as_path().as_os_str();
            let followed = folder.join(target);
            return Some((walked, if rest.is_empty() { followed } else { followed.join(rest) }));
        }
    }
    None
}
