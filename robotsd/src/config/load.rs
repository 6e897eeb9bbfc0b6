//! Reading a config file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::admin::AdminSettings;
use super::error::ConfigError;
use super::settings::{Config, Reviewable};
use super::tables::RawConfig;
use super::{document, refusal, resolve};

/// A config file that was read, once: whatever is made of it is made of the same text.
#[derive(Debug)]
pub(crate) struct ConfigFile {
    path: PathBuf,
    pub(crate) text: Arc<str>,
}

impl ConfigFile {
    pub(crate) fn read(path: &Path) -> Result<Self, ConfigError> {
        Ok(Self { path: path.to_owned(), text: document::read_text(path)?.into() })
    }

    /// The settings. Paths in the file are relative to its folder.
    pub(crate) fn config(&self) -> Result<Config, ConfigError> {
        let (path, text) = (&*self.path, &*self.text);
        let file = self.raw()?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let at = |faults| ConfigError::at(path, text, faults);
        let mut config = resolve::resolve(&file, folder).map_err(at)?;
        for (site, raw) in config.sites.iter_mut().zip(&file.site) {
            site.refusal = refusal::resolve(&raw.get_ref().refusal, folder, path, text)?;
        }
        let admin = match config.admin {
            None if file.admin.is_none() => AdminSettings::usual(path),
            admin => admin.map(|admin| admin.on_usual_place(path)),
        };
        let reviewable = Arc::new(Reviewable { name: path.to_string_lossy().into_owned(), file });
        Ok(Config { admin, text: Arc::clone(&self.text), reviewable: Some(reviewable), ..config })
    }

    fn raw(&self) -> Result<RawConfig, ConfigError> {
        document::read(&self.text).map_err(|faults| ConfigError::at(&self.path, &self.text, faults))
    }
}

impl Config {
    /// Reads a config file.
    pub(crate) fn load(path: &Path) -> Result<Self, ConfigError> {
        ConfigFile::read(path)?.config()
    }

    /// A config file with every default written out, after it was validated.
    pub(crate) fn show(path: &Path) -> Result<String, ConfigError> {
        let file = ConfigFile::read(path)?;
        file.config()?;
        toml::to_string(&file.raw()?).map_err(|error| ConfigError::unprintable(path, &error))
    }
}
