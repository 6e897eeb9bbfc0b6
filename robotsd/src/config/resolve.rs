//! From a config file to the settings.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toml::Spanned;

use super::file::Reviewable;
use super::{
    AdminSettings, Config, ConfigError, Fault, Faults, RawConfig, RegistrySources, Value as _, admin, board, identity,
    listener, log, rate_store, reader, registry, review, site, translation,
};

/// A config file that was read, once: whatever is made of it is made of the same text.
#[derive(Debug)]
pub(crate) struct ConfigFile {
    path: PathBuf,
    pub(crate) text: Arc<str>,
}

impl ConfigFile {
    pub(crate) fn read(path: &Path) -> Result<Self, ConfigError> {
        Ok(Self { path: path.to_owned(), text: reader::read_text(path)?.into() })
    }

    /// The settings. Paths in the file are relative to its folder.
    pub(crate) fn config(&self) -> Result<Config, ConfigError> {
        let (path, text) = (&*self.path, &*self.text);
        let file = self.raw()?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let at = |faults| ConfigError::at(path, text, faults);
        let mut config = resolve(&file, folder).map_err(at)?;
        for (site, raw) in config.sites.iter_mut().zip(&file.site) {
            site.refusal = site::resolve_refusal(&raw.get_ref().refusal, folder, path, text)?;
        }
        let admin = match config.admin {
            None if file.admin.is_none() => AdminSettings::usual(path),
            admin => admin.map(|admin| admin.on_usual_place(path)),
        };
        let reviewable = Arc::new(Reviewable { name: path.to_string_lossy().into_owned(), file });
        Ok(Config { admin, text: Arc::clone(&self.text), reviewable: Some(reviewable), ..config })
    }

    fn raw(&self) -> Result<RawConfig, ConfigError> {
        let Some(translation) = translation::translate(&self.text) else {
            return reader::read(&self.text).map_err(|faults| ConfigError::at(&self.path, &self.text, faults));
        };
        // The faults besides keys of before.
        let mut others = reader::read::<RawConfig>(&self.text).err().unwrap_or_default();
        others.retain(|fault| !translation.places.contains(&fault.span));
        // A translation that is no better is not offered.
        let is_read =
            |text: &str| reader::read::<RawConfig>(text).map_or_else(|faults| faults.len() <= others.len(), |_| true);
        let text = Some(translation.text).filter(|text| is_read(text));
        let faults = translation.faults.into_iter().chain(others).collect();
        let translated = ConfigError::at(&self.path, &self.text, faults);
        Err(ConfigError { translation: text, ..translated })
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
        toml::to_string(&file.raw()?).map_err(|error| {
            ConfigError::without_place(format!("{}: the config cannot be shown: {error}", path.display()))
        })
    }
}

/// The settings of a file, or its problems: all of them, as far as one does not hide another.
fn resolve(file: &RawConfig, folder: &Path) -> Result<Config, Vec<Fault>> {
    let mut faults = Faults::default();
    collect(file, folder, &mut faults).filter(|_| faults.0.is_empty()).ok_or(faults.0)
}

/// Resolves every part, also after one of them has a problem; none where one has.
fn collect(file: &RawConfig, folder: &Path, faults: &mut Faults) -> Option<Config> {
    file.check_bounds(faults);
    if file.listener.is_empty() {
        let fault = Fault::new(0..0, "there is no [[listener]]: write one with an address such as \"127.0.0.1:8080\"");
        faults.push(fault);
    }
    if file.site.is_empty() {
        faults.push(Fault::new(0..0, "there is no [[site]]: write one with a name and upstreams or a root"));
    }
    listener::conflicts(&file.listener, file.admin.as_ref(), faults);
    let listeners = faults.keep_all(file.listener.iter().map(|listener| listener::resolve(listener, folder)));
    site::names_and_hosts(&file.site, faults);
    // Every site is looked at, also after the first problem.
    let state_dir = file.state_dir.as_ref().map(|path| folder.join(path.get_ref()));
    let all = site::OfAllSites {
        mode: file.mode,
        grace: file.grace.get_ref().0,
        agents: &file.agents,
        exempt: &file.exempt,
        identity: file.identity_rules(),
        check: &file.check,
        gate: &file.gate,
        listeners: &file.listener,
        state_dir: state_dir.as_deref(),
    };
    let sites: Vec<_> = file.site.iter().map(|site| site::resolve(all, site, folder, faults)).collect();
    let gate = faults.keep(site::resolve_gate(&file.gate));
    let identity = file.identity.as_ref().map(|identity| {
        let trusted = listeners.iter().flatten().flat_map(|listener| listener.trusted.networks.clone());
        identity::resolve(identity, trusted.collect(), folder, faults)
    });
    let admin = faults.keep(file.admin.as_ref().map_or(Ok(None), |settings| admin::resolve(settings, folder)));
    let board = faults.keep(board::resolve(&file.board));
    let rate_store = faults.keep(rate_store::resolve(&file.rate, folder));
    let limits = file.limits.resolve(faults);
    let log = faults.keep(log::resolve(&file.log, folder));
    let registry = RegistrySources::resolve(&file.agents, state_dir.as_deref(), folder, faults);
    let registry_accept = faults.keep(registry::accepted(&file.agents));
    Some(Config {
        text: "".into(),
        reviewable: None,
        workers: workers(file),
        state_dir,
        state_dir_span: file.state_dir.as_ref().map_or(0..0, Spanned::span),
        gate: gate?,
        listeners: listeners?,
        sites: sites.into_iter().collect::<Option<_>>()?,
        registry: registry?,
        registry_accept: registry_accept?,
        registry_extra_span: file.agents.registry_extra.as_ref().map_or(0..0, Spanned::span),
        // None where it has a problem is none at all.
        identity: identity.map_or(Some(None), |identity| identity.map(Some))?,
        admin: admin?,
        board: board?,
        rate_store: rate_store?,
        rate_store_unasked: review::why_unasked(file),
        connections: file.limits.connections(),
        edge: limits.edge,
        upgrade: file.limits.upgrade.get_ref().0,
        upstream: limits.upstream,
        log: log?,
    })
}

fn workers(file: &RawConfig) -> NonZeroUsize {
    // One worker where the system does not report the number of cores.
    let usual = || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    file.workers.as_ref().map_or_else(usual, |workers| *workers.get_ref())
}
