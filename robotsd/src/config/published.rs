//! Settings for fetching a document, such as its URL and the certificate authorities to trust.

use std::path::{Path, PathBuf};

use toml::Spanned;
use tower_robots::source::fetch::FetchUrl;

use super::{Fault, Placed};
use crate::authorities::Authorities;

/// The settings for fetching a document: a published registry, or a list that is appended to a
/// robots.txt.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct DocumentSettings {
    pub(crate) url: FetchUrl,
    /// Certificate authorities to trust instead of the system's.
    pub(crate) ca: Option<Authorities>,
    /// Folder for the last good copy; `None` if there is no state directory.
    pub(crate) saved_in: Option<PathBuf>,
}

tower_robots::internals::debug_as!(|it| DocumentSettings { url: it.url.to_string() });

impl DocumentSettings {
    /// Resolves the settings. `kept_in` is the name of the folder in the state directory for the
    /// last good copy.
    pub(super) fn resolve(
        url: FetchUrl,
        ca: Option<&Spanned<PathBuf>>,
        state_dir: Option<&Path>,
        kept_in: &str,
        folder: &Path,
    ) -> Result<Self, Fault> {
        let ca = ca.map(|ca| authorities(ca, folder)).transpose()?;
        Ok(Self { url, ca, saved_in: state_dir.map(|state| state.join(kept_in)) })
    }
}

pub(super) fn authorities(ca: &Spanned<PathBuf>, folder: &Path) -> Result<Authorities, Fault> {
    Authorities::read(&folder.join(ca.get_ref())).map_err(|why| ca.fault(why))
}
