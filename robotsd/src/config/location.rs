//! Which config file is meant: the one that is named, else the one of `ROBOTSD_CONFIG`, else the usual one.

use std::path::{Path, PathBuf};

/// Where the config is, if nothing says otherwise.
pub(crate) const USUAL_CONFIG: &str = "/etc/robotsd/robotsd.toml";

/// The variable of the environment that names another.
pub(crate) const CONFIG_VARIABLE: &str = "ROBOTSD_CONFIG";

/// The config of a command that needs one.
#[derive(Debug, clap::Args)]
pub(crate) struct ConfigArgument {
    /// The config file [default: $ROBOTSD_CONFIG, else /etc/robotsd/robotsd.toml]
    #[arg(value_name = "FILE", conflicts_with = "config")]
    file: Option<PathBuf>,

    /// The same, as other commands take it
    #[arg(long, short, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl ConfigArgument {
    pub(crate) fn path(&self) -> PathBuf {
        let named = self.config.as_ref().or(self.file.as_ref()).cloned();
        named.or_else(config_of_environment).unwrap_or_else(|| USUAL_CONFIG.into())
    }
}

/// The config that the environment names.
pub(crate) fn config_of_environment() -> Option<PathBuf> {
    std::env::var_os(CONFIG_VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// The config of a command that can do without one: the usual one counts where there is one.
pub(crate) fn config_if_any(named: Option<&Path>) -> Option<PathBuf> {
    let usual = || Some(PathBuf::from(USUAL_CONFIG)).filter(|path| path.exists());
    named.map(Path::to_path_buf).or_else(config_of_environment).or_else(usual)
}
