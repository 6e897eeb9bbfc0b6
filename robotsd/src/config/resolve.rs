//! From the raw config to the settings.

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::path::Path;

use serde::Serialize;
use toml::Spanned;
use tower_robots::live::{LONGEST_MAX_AGE, WhenMissing};
use tower_robots::policy::Mode;
use tower_robots::source::HostMap;

use super::check::CheckSettings;
use super::error::Fault;
use super::raw::{self, AccessLogging, Dotfiles, ListenerKind, OnMissing, RawConfig};
use super::settings::{AccessFormat, AccessSettings, Backend, Config, LogConfig, SiteConfig, StaticFiles};
use super::{admin, gate, limits, listener, policy, source, upstreams};

/// More threads than any machine has cores to run them on.
const MOST_WORKERS: usize = 1024;

pub(super) fn resolve(file: &RawConfig, folder: &Path) -> Result<Config, Fault> {
    if file.listener.is_empty() {
        return Err(Fault::new(0..0, "there is no [[listener]]: write one with an address such as \"127.0.0.1:8080\""));
    }
    if file.site.is_empty() {
        return Err(Fault::new(0..0, "there is no [[site]]: write one with a name and upstreams or a root"));
    }
    let mut names = HashSet::new();
    let mut hosts = HostMap::new();
    let mut sites = Vec::new();
    for site in &file.site {
        let span = site.span();
        let site = site.get_ref();
        if site.name.get_ref().is_empty() {
            return Err(Fault::new(site.name.span(), "the name is empty: the log names sites by it"));
        }
        if !names.insert(site.name.get_ref()) {
            return Err(Fault::new(
                site.name.span(),
                format!("the name {:?} is taken by another site", site.name.get_ref()),
            ));
        }
        for host in &site.hosts {
            hosts.insert(host.get_ref(), ()).map_err(|error| Fault::new(host.span(), error.to_string()))?;
        }
        if site.hosts.is_empty() && hosts.insert("*", ()).is_err() {
            let message = "an earlier site has no hosts, so it matches every host: name the hosts of each";
            return Err(Fault::new(site.name.span(), message));
        }
        sites.push(resolve_site(file, site, span, folder)?);
    }
    let (edge, upstream) = limits::resolve(&file.limits)?;
    listener::names(&file.listener)?;
    Ok(Config {
        workers: resolve_workers(file)?,
        state_dir: file.state_dir.as_ref().map(|path| folder.join(path.get_ref())),
        gate: gate::resolve(&file.gate)?,
        listeners: file
            .listener
            .iter()
            .map(|listener| listener::resolve(listener, folder))
            .collect::<Result<_, _>>()?,
        sites,
        registry_extra: file.agents.registry_extra.as_ref().map(|path| folder.join(path.get_ref())),
        admin: file.admin.as_ref().map(|settings| admin::resolve(settings, folder)).transpose()?,
        connections: limits::connections(&file.limits)?,
        edge,
        upstream,
        log: resolve_log(&file.log, folder)?,
    })
}

fn resolve_log(log: &raw::RawLog, folder: &Path) -> Result<LogConfig, Fault> {
    let format = match (log.access, &log.access_path) {
        (AccessLogging::Off, Some(path)) => {
            let message = "access_path goes with access = \"combined\" or access = \"json\"";
            return Err(Fault::new(path.span(), message));
        }
        (AccessLogging::Off, None) => None,
        (AccessLogging::Combined, _) => Some(AccessFormat::Combined),
        (AccessLogging::Json, _) => Some(AccessFormat::Json),
    };
    let path = log.access_path.as_ref().map(|path| folder.join(path.get_ref()));
    Ok(LogConfig {
        format: log.format,
        query: log.query,
        address: log.address,
        access: format.map(|format| AccessSettings { format, path }),
    })
}

fn resolve_workers(file: &RawConfig) -> Result<NonZeroUsize, Fault> {
    match &file.workers {
        Some(workers) if workers.get_ref().get() > MOST_WORKERS => {
            let message = format!("{} workers are more than {MOST_WORKERS}: one a core is right", workers.get_ref());
            Err(Fault::new(workers.span(), message))
        }
        Some(workers) => Ok(*workers.get_ref()),
        // One worker where the system does not report the number of cores.
        None => Ok(std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)),
    }
}

fn resolve_site(
    file: &RawConfig,
    site: &raw::RawSite,
    span: std::ops::Range<usize>,
    folder: &Path,
) -> Result<SiteConfig, Fault> {
    if let (Some(dotfiles), None) = (&site.dotfiles, &site.root) {
        return Err(Fault::new(dotfiles.span(), "dotfiles is for static files: it goes with a root"));
    }
    let backend = match (&site.upstreams, &site.root) {
        (Some(upstreams), None) => {
            if upstreams.is_empty() {
                return Err(Fault::new(
                    span,
                    "upstreams is empty: name at least one, such as \"http://127.0.0.1:3000\"",
                ));
            }
            Some(Backend::Upstreams(upstreams::resolve(upstreams, &site.upstream, folder)?))
        }
        (None, Some(root)) => {
            let path = folder.join(root.get_ref());
            if !path.is_dir() {
                let message =
                    format!("{:?} is not a folder: root names the folder of static files", path.display().to_string());
                return Err(Fault::new(root.span(), message));
            }
            let dotfiles = site.dotfiles.as_ref().map_or_else(Dotfiles::default, |dotfiles| *dotfiles.get_ref());
            Some(Backend::Files(StaticFiles { root: path, dotfiles }))
        }
        (Some(_), Some(root)) => {
            return Err(Fault::new(root.span(), "a site has upstreams or a root, not both"));
        }
        (None, None) if file.listener.iter().all(|listener| listener.kind == ListenerKind::Decision) => None,
        (None, None) => {
            return Err(Fault::new(
                site.name.span(),
                format!("the site {:?} has no backend: give it upstreams or a root", site.name.get_ref()),
            ));
        }
    };
    if site.robots.max_age.get_ref().0 > LONGEST_MAX_AGE {
        return Err(Fault::new(
            site.robots.max_age.span(),
            "max_age is longer than crawlers may keep a robots.txt, \"24h\"",
        ));
    }
    let robots = source::resolve(site, backend.as_ref(), folder)?;
    Ok(SiteConfig {
        name: site.name.get_ref().clone(),
        hosts: site.hosts.iter().map(|host| host.get_ref().clone()).collect(),
        backend,
        robots,
        max_age: site.robots.max_age.get_ref().0,
        when_missing: match site.robots.on_missing {
            OnMissing::LastGood => WhenMissing::Unavailable,
            OnMissing::Upstream => WhenMissing::Relay,
            OnMissing::Fail => WhenMissing::Fail,
        },
        expectations: site.robots.expectations.as_ref().map(|path| folder.join(path.get_ref())),
        grace: site.enforcement.grace.0,
        policy: policy::resolve(file, site)?,
        check: CheckSettings::resolve(file, site)?,
        terms: written(file, site),
    })
}

/// The values that policy, checks and gate of a site are made from, as text.
fn written(file: &RawConfig, site: &raw::RawSite) -> String {
    #[derive(Serialize)]
    struct Terms<'a> {
        mode: Mode,
        agents: &'a raw::RawAgents,
        exempt: &'a raw::RawExempt,
        check: &'a raw::RawCheck,
        gate: &'a raw::RawGate,
        enforcement: &'a raw::RawEnforcement,
        overrides: &'a [Spanned<raw::RawOverride>],
    }
    let RawConfig { mode, agents, exempt, check, gate, .. } = file;
    let (enforcement, overrides) = (&site.enforcement, &*site.overrides);
    // Writing TOML fails only for a path that is not UTF-8: the empty text then equals no other.
    toml::to_string(&Terms { mode: *mode, agents, exempt, check, gate, enforcement, overrides }).unwrap_or_default()
}
