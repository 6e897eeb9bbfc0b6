//! Reading a config file.

use std::path::Path;
use std::time::SystemTime;

use super::admin::AdminSettings;
use super::error::ConfigError;
use super::raw::RawConfig;
use super::settings::Config;
use super::{document, file_text, refusal, resolve, review};

impl Config {
    /// Reads a config file. Paths in it are relative to its folder.
    pub(crate) fn load(path: &Path) -> Result<Self, ConfigError> {
        let (text, file) = read(path)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let config = resolve::resolve(&file, folder);
        let mut config = config.map_err(|(first, others)| ConfigError::at(path, &text, first, others))?;
        for (site, raw) in config.sites.iter_mut().zip(&file.site) {
            site.refusal = refusal::resolve(&raw.get_ref().refusal, folder, path, &text)?;
        }
        let usual = || AdminSettings::usual(path);
        let admin = if file.admin.is_none() { usual() } else { config.admin };
        let config = Self { admin, ..config };
        let warnings = review::review(&file, &config, &path.to_string_lossy(), &text, SystemTime::now());
        Ok(Self { text: text.into(), warnings, ..config })
    }

    /// A config file with every default written out, after it was validated.
    pub(crate) fn show(path: &Path) -> Result<String, ConfigError> {
        Self::load(path)?;
        let (_, file) = read(path)?;
        toml::to_string(&file).map_err(|error| ConfigError::unprintable(path, &error))
    }
}

fn read(path: &Path) -> Result<(String, RawConfig), ConfigError> {
    let text = file_text::read(path)?;
    let file = document::read(&text).map_err(|(first, others)| ConfigError::at(path, &text, first, others))?;
    Ok((text, file))
}
