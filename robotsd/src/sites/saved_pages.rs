//! The pages of a site's sitemaps, kept over restarts: what the gate watches does not depend on the upstream being there.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use tower_robots::check::Page;
use tower_robots::live::VersionHash;

use crate::private_file;

/// The folder below the state directory.
const FOLDER: &str = "pages";

/// Octets of a file that is read.
const LARGEST: u64 = 128 << 20;

/// The file of one site; none without a state directory.
#[derive(Clone, Debug)]
pub(super) struct SavedPages {
    path: Option<PathBuf>,
    site: String,
}

impl SavedPages {
    /// A name may be no file name, so the file has that of its hash, and the name in its first line.
    pub(super) fn of(state_dir: Option<&Path>, site: &str) -> Self {
        let name = || format!("{}.txt", VersionHash::of(site.as_bytes()).short());
        Self { path: state_dir.map(|folder| folder.join(FOLDER).join(name())), site: site.to_owned() }
    }

    /// The pages that were saved last; none where they cannot be read: they are read anew soon. Blocks.
    pub(super) fn load(&self) -> Vec<Page> {
        let Some(path) = &self.path else { return Vec::new() };
        let mut octets = Vec::new();
        if File::open(path).and_then(|file| file.take(LARGEST).read_to_end(&mut octets)).is_err() {
            return Vec::new();
        }
        octets.split(|octet| *octet == b'\n').filter(|line| line.starts_with(b"/")).map(Page::new).collect()
    }

    /// Saves pages, whole or not at all. Blocks.
    pub(super) fn save(&self, pages: &[Page]) -> io::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        let mut octets = format!("# pages of the sitemaps of site {:?}\n", self.site).into_bytes();
        for page in pages.iter().map(Page::target).filter(|target| !target.contains(&b'\n')) {
            octets.extend_from_slice(page);
            octets.push(b'\n');
        }
        private_file::replace(path, &octets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_there_again_after_a_restart() {
        let state = tempfile::tempdir().unwrap();
        let saved = SavedPages::of(Some(state.path()), "../shop");
        assert_eq!(saved.load(), []);
        let pages = ["/", "/a?b=1", "/\u{e9}"].map(Page::new);
        saved.save(&pages).unwrap();
        assert_eq!(SavedPages::of(Some(state.path()), "../shop").load(), pages);
        assert_eq!(SavedPages::of(Some(state.path()), "blog").load(), []);
        assert_eq!(SavedPages::of(None, "shop").load(), []);
    }
}
