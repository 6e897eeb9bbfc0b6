//! Reading a config file.

use std::path::Path;

use super::error::ConfigError;
use super::raw::RawConfig;
use super::resolve;
use super::settings::Config;

impl Config {
    /// Reads a config file. Paths in it are relative to its folder.
    pub(crate) fn load(path: &Path) -> Result<Self, ConfigError> {
        let (text, file) = read(path)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        resolve::resolve(&file, folder).map_err(|fault| fault.at(path, &text))
    }

    /// A config file with every default written out, after it was validated.
    pub(crate) fn show(path: &Path) -> Result<String, ConfigError> {
        Self::load(path)?;
        let (text, file) = read(path)?;
        toml::to_string(&file).map_err(|error| ConfigError::unprintable(path, &text, &error))
    }
}

fn read(path: &Path) -> Result<(String, RawConfig), ConfigError> {
    let text = std::fs::read_to_string(path).map_err(|error| ConfigError::unreadable(path, &error))?;
    let file = toml::from_str(&text).map_err(|error| ConfigError::syntax(path, &text, &error))?;
    Ok((text, file))
}
