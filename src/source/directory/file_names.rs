//! The names of the files in a folder, and the host each stands for.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use crate::source::file_system;
use crate::source::hosts::HostMap;

/// The ending of every file name.
const ENDING: &str = ".txt";

/// The files one listing of the folder found.
#[derive(Default)]
pub(super) struct FolderListing {
    /// File names by host.
    pub(super) hosts: BTreeMap<String, String>,
    /// Why a name is ignored, by name.
    pub(super) ignored: BTreeMap<String, String>,
}

/// Whether a name says that its file belongs to a site.
pub(super) fn is_site_file(name: &str) -> bool {
    name.ends_with(ENDING) && !name.starts_with('.')
}

/// Lists the folder. Blocks for as long as its file system does.
pub(super) fn list(path: &Path, fallback: &str) -> io::Result<FolderListing> {
    let mut names = BTreeSet::new();
    let mut listing = FolderListing::default();
    for entry in file_system::read_dir(path)? {
        let name = entry?.file_name();
        match name.to_str() {
            Some(name) if name == fallback || is_site_file(name) => {
                names.insert(name.to_owned());
            }
            Some(_) => {}
            None => {
                listing.ignored.insert(name.to_string_lossy().into_owned(), "its name is not UTF-8".into());
            }
        }
    }
    // Decides which names are hosts, and that each host has one file.
    let mut hosts = HostMap::new();
    for name in names {
        let host = if name == fallback { "*".to_owned() } else { host_of(&name) };
        match hosts.insert(&host, ()) {
            Ok(()) => {
                listing.hosts.insert(host, name);
            }
            Err(error) => {
                listing.ignored.insert(name, error.to_string());
            }
        }
    }
    Ok(listing)
}

/// The host a file is named for, as [`HostMap::insert`] takes it.
fn host_of(name: &str) -> String {
    let host = name.strip_suffix(ENDING).unwrap_or(name);
    let host = match host.strip_prefix("_wildcard.") {
        Some(below) => format!("*.{below}"),
        None => host.to_owned(),
    };
    match host.rsplit_once('_') {
        Some((name, port)) if !name.is_empty() && port.parse::<u16>().is_ok() => format!("{name}:{port}"),
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_named_for_its_host() {
        for (name, host) in [
            ("example.com.txt", "example.com"),
            ("example.com_8080.txt", "example.com:8080"),
            ("example.com:8080.txt", "example.com:8080"),
            ("_wildcard.example.com.txt", "*.example.com"),
            ("my_host.example.txt", "my_host.example"),
            ("_dmarc.example.txt", "_dmarc.example"),
            ("[::1].txt", "[::1]"),
            ("[::1]_81.txt", "[::1]:81"),
        ] {
            assert_eq!(host_of(name), host, "{name}");
        }
    }
}
