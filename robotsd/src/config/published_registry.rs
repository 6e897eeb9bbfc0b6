//! A registry that is published at a URL: `registry_url` and the keys beside it.

use std::path::Path;

use toml::Spanned;
use tower_robots::live::VersionHash;
use tower_robots::source::fetch::{FetchUrl, UrlError};

use super::error::Fault;
use super::settings::PublishedRegistrySettings;
use super::source;
use super::toml_tables::{RawAgents, RawConfig};

/// The folder of the state directory in which it is kept.
const FOLDER: &str = "registry";

pub(super) fn resolve(file: &RawConfig, folder: &Path) -> Result<Option<PublishedRegistrySettings>, Fault> {
    let agents = &file.agents;
    let Some(written) = &agents.registry_url else {
        let stray = agents.registry_ca.as_ref().map(|ca| ("registry_ca", ca.span()));
        let accept = || agents.registry_accept.first().map(|hash| ("registry_accept", hash.span()));
        return match stray.or_else(accept) {
            Some((key, span)) => Err(Fault::new(span, format!("{key} goes with registry_url, and there is none"))),
            None => Ok(None),
        };
    };
    let url: FetchUrl =
        written.get_ref().parse().map_err(|error: UrlError| Fault::new(written.span(), error.to_string()))?;
    if !url.to_string().starts_with("https://") {
        let message = "a registry decides who is refused, so it is not fetched in the clear: write an https URL";
        return Err(Fault::new(written.span(), message));
    }
    let ca = agents.registry_ca.as_ref().map(|ca| source::authorities(ca, folder)).transpose()?;
    let saved_in = file.state_dir.as_ref().map(|state| folder.join(state.get_ref()).join(FOLDER));
    Ok(Some(PublishedRegistrySettings { url, ca, saved_in }))
}

pub(super) fn accepted(agents: &RawAgents) -> Result<Vec<VersionHash>, Fault> {
    let hash = |text: &Spanned<String>| {
        text.get_ref().parse::<VersionHash>().map_err(|error| Fault::new(text.span(), error.to_string()))
    };
    agents.registry_accept.iter().map(hash).collect()
}
