//! A document that is published at a URL, and the hosts for which its server's certificate is trusted.

use std::path::{Path, PathBuf};

use toml::Spanned;
use tower_robots::source::fetch::FetchUrl;

use super::{Fault, Placed};
use crate::authorities::Authorities;

/// The URL at which a registry or a part of a robots.txt is published, and the folder in which it is kept.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct DocumentSettings {
    pub(crate) url: FetchUrl,
    /// The certificate authorities to trust instead of those that the system trusts.
    pub(crate) ca: Option<Authorities>,
    /// The folder of the last good one; none without a state directory.
    pub(crate) saved_in: Option<PathBuf>,
}

tower_robots::internals::debug_as!(|it| DocumentSettings { url: it.url.to_string() });

impl DocumentSettings {
    /// The document that is kept in that folder of the state directory.
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

/// Reads the certificate authorities of a file.
pub(super) fn authorities(ca: &Spanned<PathBuf>, folder: &Path) -> Result<Authorities, Fault> {
    Authorities::read(&folder.join(ca.get_ref())).map_err(|why| ca.fault(why))
}
