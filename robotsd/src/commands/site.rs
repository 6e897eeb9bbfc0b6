//! The site whose settings a command uses: `--config FILE` and `--site NAME`.
//!
//! Without them a command uses the built-in registry and the default policy. A robots.txt on the command line takes the place
//! of the site's; the settings stay those of the site.

use std::io;
use std::path::{Path, PathBuf};

use tower_robots::agent::Registry;
use tower_robots::source::{Directory, HostMap};

use crate::config::{self, Config, RobotsSource};
use crate::evaluator::EvaluatorSettings;
use crate::input;
use crate::quoted_list::QuotedList;
use crate::render::printable;
use crate::sites;

#[derive(Debug, clap::Args)]
pub(super) struct SiteArgs {
    /// Use the settings of a site of this config file, as serve does: registry_extra, policy, exemptions and checks
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,

    /// Which site of the config, by its name or one of its hosts; NAME/HOST for one file of a directory [default: the
    /// only site]
    #[arg(long, value_name = "NAME", requires = "config")]
    site: Option<String>,
}

/// The settings, and the site they belong to, if any.
#[derive(Debug)]
pub(super) struct SelectedSite {
    pub(super) settings: EvaluatorSettings,
    configured: Option<ConfiguredSite>,
}

#[derive(Debug)]
struct ConfiguredSite {
    site: config::SiteConfig,
    /// The host that was named, for a site with a file for each.
    host: Option<String>,
}

/// A robots.txt, and what answers call it.
#[derive(Debug)]
pub(super) struct RobotsFile {
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
}

impl SiteArgs {
    pub(super) fn select(&self) -> io::Result<SelectedSite> {
        let Some(path) = &self.config else {
            return Ok(SelectedSite { settings: EvaluatorSettings::default(), configured: None });
        };
        let config = Config::load(path).map_err(io::Error::other)?;
        let configured = find(&config, path, self.site.as_deref()).map_err(io::Error::other)?;
        let settings = EvaluatorSettings::of_site(&config, &configured.site).map_err(io::Error::other)?;
        Ok(SelectedSite { settings, configured: Some(configured) })
    }

    /// The registry alone, which is the same for every site of a config.
    pub(super) fn registry(&self) -> io::Result<Option<std::sync::Arc<Registry>>> {
        let Some(path) = &self.config else { return Ok(None) };
        let config = Config::load(path).map_err(io::Error::other)?;
        config::load_registry(config.registry_extra.as_deref()).map(Some).map_err(io::Error::other)
    }
}

impl SelectedSite {
    pub(super) const fn is_configured(&self) -> bool {
        self.configured.is_some()
    }

    /// The robots.txt that the command line names, or that of the site.
    pub(super) fn robots(&self, named: Option<&Path>) -> io::Result<RobotsFile> {
        match (named, &self.configured) {
            (Some(path), _) => RobotsFile::read(path),
            (None, Some(configured)) => configured.robots(),
            (None, None) => Err(io::Error::other("there is no robots.txt: name a file, or a site with --config FILE")),
        }
    }

    /// The file of expectations of the site.
    pub(super) fn expectations(&self) -> io::Result<PathBuf> {
        let site = self.configured.as_ref().map(|configured| &configured.site);
        let missing = || match site {
            Some(site) => format!("the site {:?} has no expectations: name a file of them", site.name),
            None => "there are no expectations: name a file of them".to_owned(),
        };
        site.and_then(|site| site.expectations.clone()).ok_or_else(|| io::Error::other(missing()))
    }
}

impl RobotsFile {
    /// Reads a file; `-` is standard input.
    pub(super) fn read(path: &Path) -> io::Result<Self> {
        Ok(Self { name: path.display().to_string(), bytes: input::read(path)? })
    }
}

impl ConfiguredSite {
    fn robots(&self) -> io::Result<RobotsFile> {
        let name = &self.site.name;
        match &self.site.robots {
            RobotsSource::File(path) => RobotsFile::read(path),
            RobotsSource::Inline(text) => {
                Ok(RobotsFile { name: "<inline>".to_owned(), bytes: text.clone().into_bytes() })
            }
            RobotsSource::Directory { path, fallback } => self.robots_of_host(path, fallback),
            RobotsSource::Upstream { .. } | RobotsSource::Url { .. } => Err(io::Error::other(format!(
                "the robots.txt of the site {name:?} is fetched, which a command does not do: name a copy of it"
            ))),
        }
    }

    /// As `serve` opens the folder, so that a name means the same host.
    fn robots_of_host(&self, path: &Path, fallback: &str) -> io::Result<RobotsFile> {
        let name = &self.site.name;
        let directory = Directory::new(path).fallback(fallback).open().map_err(|error| {
            io::Error::other(format!("{}: {error}", printable(path.as_os_str().as_encoded_bytes())))
        })?;
        let list = || QuotedList::of(directory.hosts().into_iter().map(|(host, _)| format!("{name}/{host}")));
        let Some(host) = &self.host else {
            let message = format!("the site {name:?} has a robots.txt for each host: name one with --site: {}", list());
            return Err(io::Error::other(message));
        };
        let sites = directory.sites().load();
        let live = sites.get(host).ok_or_else(|| {
            io::Error::other(format!("the site {name:?} has no robots.txt for the host {host:?}; there is {}", list()))
        })?;
        let status = live.status();
        let reload = status.last_reload();
        match live.snapshot().content() {
            Some(content) => Ok(RobotsFile { name: reload.origin().to_string(), bytes: content.body().to_vec() }),
            None => Err(io::Error::other(reload.to_string())),
        }
    }
}

/// The site that is meant, by its name, by `NAME/HOST`, or by a host that it serves.
fn find(config: &Config, path: &Path, wanted: Option<&str>) -> Result<ConfiguredSite, String> {
    let names = || QuotedList::of(config.sites.iter().map(|site| &site.name));
    let found = |site: &config::SiteConfig, host: Option<&str>| ConfiguredSite {
        site: site.clone(),
        host: host.map(Into::into),
    };
    let Some(wanted) = wanted else {
        return match &*config.sites {
            [site] => Ok(found(site, None)),
            sites => {
                Err(format!("{}: it has {} sites: name one with --site: {}", path.display(), sites.len(), names()))
            }
        };
    };
    if let Some(site) = config.sites.iter().find(|site| site.name == wanted) {
        return Ok(found(site, None));
    }
    for site in config.sites.iter().filter(|site| matches!(site.robots, RobotsSource::Directory { .. })) {
        if let Some(host) = wanted.strip_prefix(&*site.name).and_then(|rest| rest.strip_prefix('/')) {
            return Ok(found(site, Some(host)));
        }
    }
    let mut hosts = HostMap::new();
    for site in &config.sites {
        let all = ["*".to_owned()];
        for host in if site.hosts.is_empty() { &all[..] } else { &site.hosts } {
            // A config with a host that is none, or that two sites have, was refused.
            let _ = hosts.insert(host, site);
        }
    }
    // A word without a dot is a name with a slip in it, which a site with every host would answer for.
    match hosts.get(wanted).filter(|_| wanted.contains(['.', ':'])) {
        Some(site) => Ok(found(site, Some(wanted))),
        None => Err(sites::unknown(wanted, config.sites.iter().map(|site| &site.name))),
    }
}
