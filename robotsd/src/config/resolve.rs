//! From the raw config to the settings.

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use serde::Serialize;
use toml::Spanned;
use tower_robots::live::{LiveRobots, WhenMissing};
use tower_robots::policy::{IdentityNeeded, Impostors, Mode};
use tower_robots::source::HostMap;

use super::check::CheckSettings;
use super::error::{Fault, Faults, Placed};
use super::gate::GateBasis;
use super::settings::{
    AccessFormat, AccessSettings, Backend, Config, LogConfig, RegistrySources, SiteConfig, StaticFiles,
};
use super::tables::{
    AccessLogging, Dotfiles, ListenerKind, OnMissing, RawAgents, RawCheck, RawConfig, RawEnforcement, RawExempt,
    RawGate, RawLog, RawOverride, RawRate, RawSite,
};
use super::{
    admin, board, gate, identity, limits, listener, policy, publish_hooks, rate_store, registry_extra, review, source,
    upstreams,
};

/// More threads than any machine has cores to run them on.
const MOST_WORKERS: usize = 1024;

/// The settings of a file, or its problems: all of them, as far as one does not hide another.
pub(super) fn resolve(file: &RawConfig, folder: &Path) -> Result<Config, Vec<Fault>> {
    let mut faults = Faults::default();
    collect(file, folder, &mut faults).filter(|_| faults.0.is_empty()).ok_or(faults.0)
}

/// Resolves every part, also after one of them has a problem; none where one has.
fn collect(file: &RawConfig, folder: &Path, faults: &mut Faults) -> Option<Config> {
    if file.listener.is_empty() {
        let fault = Fault::new(0..0, "there is no [[listener]]: write one with an address such as \"127.0.0.1:8080\"");
        faults.push(fault);
    }
    if file.site.is_empty() {
        faults.push(Fault::new(0..0, "there is no [[site]]: write one with a name and upstreams or a root"));
    }
    let workers = faults.keep(resolve_workers(file));
    listener::conflicts(&file.listener, file.admin.as_ref(), faults);
    let listeners = faults.keep_all(file.listener.iter().map(|listener| listener::resolve(listener, folder)));
    names_and_hosts(file, faults);
    // Every site is looked at, also after the first problem.
    let sites: Vec<_> =
        file.site.iter().map(|site| resolve_site(file, site.get_ref(), site.span(), folder, faults)).collect();
    let gate = faults.keep(gate::resolve(&file.gate));
    let identity = file.identity.as_ref().map(|identity| {
        let trusted = listeners.iter().flatten().flat_map(|listener| listener.trusted.networks.clone());
        identity::resolve(identity, trusted.collect(), folder, faults)
    });
    let admin = faults.keep(file.admin.as_ref().map_or(Ok(None), |settings| admin::resolve(settings, folder)));
    let board = faults.keep(board::resolve(&file.board));
    let rate_store = faults.keep(rate_store::resolve(&file.rate, folder));
    let (edge, upstream) = limits::resolve(&file.limits, faults);
    let log = faults.keep(resolve_log(&file.log, folder));
    let registry_extra = faults.keep(registry_extra(file, folder));
    let published = faults.keep(registry_extra::resolve(file, folder));
    let registry_accept = faults.keep(registry_extra::accepted(&file.agents));
    Some(Config {
        text: "".into(),
        reviewable: None,
        workers: workers?,
        state_dir: file.state_dir.as_ref().map(|path| folder.join(path.get_ref())),
        state_dir_span: file.state_dir.as_ref().map_or(0..0, Spanned::span),
        gate: gate?,
        listeners: listeners?,
        sites: sites.into_iter().collect::<Option<_>>()?,
        registry: RegistrySources { extra: registry_extra?, published: published? },
        registry_accept: registry_accept?,
        registry_extra_span: file.agents.registry_extra.as_ref().map_or(0..0, Spanned::span),
        // None where it has a problem is none at all.
        identity: match identity {
            Some(identity) => Some(identity?),
            None => None,
        },
        admin: admin?,
        board: board?,
        rate_store: rate_store?,
        rate_store_unasked: review::why_unasked(file),
        connections: limits::connections(&file.limits),
        edge,
        upgrade: file.limits.upgrade.get_ref().0,
        upstream,
        log: log?,
    })
}

/// Every site has a name of its own, and every host one site.
fn names_and_hosts(file: &RawConfig, faults: &mut Faults) {
    let mut names = HashSet::new();
    let mut hosts = HostMap::new();
    for site in file.site.iter().map(Spanned::get_ref) {
        if site.name.get_ref().is_empty() {
            faults.push(site.name.fault("the name is empty: the log names sites by it"));
        } else if !names.insert(site.name.get_ref()) {
            faults.push(site.name.fault(format!("the name {:?} is taken by another site", site.name.get_ref())));
        }
        for host in &site.hosts {
            let added = hosts.insert(host.get_ref(), ());
            faults.keep(added.map_err(|error| host.fault(error.to_string())));
        }
        if site.hosts.is_empty() && hosts.insert("*", ()).is_err() {
            let message = "an earlier site has no hosts, so it matches every host: name the hosts of each";
            faults.push(site.name.fault(message));
        }
    }
}

fn resolve_log(log: &RawLog, folder: &Path) -> Result<LogConfig, Fault> {
    let format = match (log.access, &log.access_path) {
        (AccessLogging::Off, Some(path)) => {
            return Err(path.fault("access_path goes with access = \"combined\" or access = \"json\""));
        }
        (AccessLogging::Off, None) => None,
        (AccessLogging::Combined, _) => Some(AccessFormat::Combined),
        (AccessLogging::Json, _) => Some(AccessFormat::Json),
    };
    let path = log.access_path.as_ref().map(|path| access_path(path, folder)).transpose()?;
    Ok(LogConfig {
        format: log.format,
        query: log.query,
        address: log.address,
        access: format.map(|format| AccessSettings { format, path }),
    })
}

/// A file that can be written, or made: opening it would end the start.
fn access_path(written: &Spanned<PathBuf>, folder: &Path) -> Result<PathBuf, Fault> {
    let path = folder.join(written.get_ref());
    let shown = path.display();
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let wrong = match std::fs::metadata(&path) {
        Ok(found) if found.is_dir() => format!("{shown} is a folder: access_path is a file"),
        Ok(_) => return Ok(path),
        Err(_) if !parent.is_dir() => format!("{shown} cannot be made: there is no folder {}", parent.display()),
        Err(_) if !review::is_writable(parent) => {
            format!("{shown} cannot be made: this user may not write to its folder")
        }
        Err(_) => return Ok(path),
    };
    Err(written.fault(wrong))
}

/// The file of further crawlers; what is in it is read when sites are opened.
fn registry_extra(file: &RawConfig, folder: &Path) -> Result<Option<PathBuf>, Fault> {
    let Some(written) = &file.agents.registry_extra else { return Ok(None) };
    let path = folder.join(written.get_ref());
    if path.is_dir() {
        return Err(written.fault(format!("{}: it is a folder, not a file of crawlers", path.display())));
    }
    match std::fs::metadata(&path) {
        Ok(_) => Ok(Some(path)),
        Err(error) => Err(written.fault(format!("{}: {error}", path.display()))),
    }
}

fn resolve_workers(file: &RawConfig) -> Result<NonZeroUsize, Fault> {
    match &file.workers {
        Some(workers) if workers.get_ref().get() > MOST_WORKERS => {
            let message = format!("{} workers are more than {MOST_WORKERS}: one a core is right", workers.get_ref());
            Err(workers.fault(message))
        }
        Some(workers) => Ok(*workers.get_ref()),
        // One worker where the system does not report the number of cores.
        None => Ok(std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)),
    }
}

fn resolve_site(
    file: &RawConfig,
    site: &RawSite,
    span: std::ops::Range<usize>,
    folder: &Path,
    faults: &mut Faults,
) -> Option<SiteConfig> {
    let backend = faults.keep(resolve_backend(file, site, span, folder));
    upstreams::faulty(site, &file.listener, folder, faults);
    if site.robots.max_age.get_ref().0 > LiveRobots::LONGEST_MAX_AGE {
        faults.push(site.robots.max_age.fault("max_age is longer than crawlers may keep a robots.txt, \"24h\""));
    }
    // Without a backend it is not known what a source may use.
    let robots = backend.as_ref().map(|backend| source::resolve(site, backend.as_ref(), folder));
    let robots = robots.and_then(|robots| faults.keep(robots));
    let append = source::resolve_appended(file, site, folder, faults);
    let on_publish = publish_hooks::resolve(site, folder, faults);
    let policy = policy::resolve(file, site, faults);
    let check = faults.keep(CheckSettings::resolve(file));
    let gate_basis = faults.keep(GateBasis::resolve(&file.gate, &site.robots, folder));
    Some(SiteConfig {
        name: site.name.get_ref().clone(),
        hosts: site.hosts.iter().map(|host| host.get_ref().clone()).collect(),
        backend: backend?,
        robots: robots?,
        robots_span: robots_span(site),
        append: append?,
        on_publish: on_publish?,
        max_age: site.robots.max_age.get_ref().0,
        when_missing: match site.robots.on_missing {
            OnMissing::LastGood => WhenMissing::Unavailable,
            OnMissing::Upstream => WhenMissing::Relay,
            OnMissing::Fail => WhenMissing::Fail,
        },
        expectations: site.robots.expectations.as_ref().map(|path| folder.join(path.get_ref())),
        expectations_span: site.robots.expectations.as_ref().map_or(0..0, Spanned::span),
        gate_basis: gate_basis?,
        grace: site.enforcement.grace.0,
        policy: policy?,
        check: check?,
        // Its file is read once the rest is right.
        refusal: None,
        terms: written(file, site),
    })
}

/// What names the robots.txt of a site: its own keys, or those that stand for it.
fn robots_span(site: &RawSite) -> std::ops::Range<usize> {
    let robots = &site.robots;
    let path = robots.path.as_ref().map(Spanned::span);
    let text = robots.text.as_ref().or(robots.url.as_ref()).map(Spanned::span);
    let source = robots.source.as_ref().map(Spanned::span);
    let root = site.root.as_ref().map(Spanned::span);
    path.or(text).or(source).or(root).unwrap_or_else(|| site.name.span())
}

fn resolve_backend(
    file: &RawConfig,
    site: &RawSite,
    span: std::ops::Range<usize>,
    folder: &Path,
) -> Result<Option<Backend>, Fault> {
    if let (Some(dotfiles), None) = (&site.dotfiles, &site.root) {
        return Err(dotfiles.fault("dotfiles is for static files: it goes with a root"));
    }
    match (&site.upstreams, &site.root) {
        (Some(upstreams), None) if upstreams.is_empty() => {
            Err(Fault::new(span, "upstreams is empty: name at least one, such as \"http://127.0.0.1:3000\""))
        }
        (Some(upstreams), None) => {
            upstreams::resolve(upstreams, &site.upstream, folder).map(|upstreams| Some(Backend::Upstreams(upstreams)))
        }
        (None, Some(root)) => {
            let path = folder.join(root.get_ref());
            if !path.is_dir() {
                let message =
                    format!("{:?} is not a folder: root names the folder of static files", path.display().to_string());
                return Err(root.fault(message));
            }
            let dotfiles = site.dotfiles.as_ref().map_or_else(Dotfiles::default, |dotfiles| *dotfiles.get_ref());
            Ok(Some(Backend::Files(StaticFiles { root: path, dotfiles })))
        }
        (Some(_), Some(root)) => Err(root.fault("a site has upstreams or a root, not both")),
        (None, None) if file.listener.iter().all(|listener| listener.kind == ListenerKind::Decision) => Ok(None),
        (None, None) => {
            let message = format!("the site {:?} has no backend: give it upstreams or a root", site.name.get_ref());
            Err(site.name.fault(message))
        }
    }
}

/// The values that policy, checks and gate of a site are made from, as text.
fn written(file: &RawConfig, site: &RawSite) -> String {
    #[derive(Serialize)]
    struct Terms<'a> {
        mode: Mode,
        agents: &'a RawAgents,
        exempt: &'a RawExempt,
        identity: (Impostors, IdentityNeeded),
        check: &'a RawCheck,
        gate: &'a RawGate,
        enforcement: &'a RawEnforcement,
        rate: &'a RawRate,
        overrides: &'a [Spanned<RawOverride>],
    }
    let RawConfig { mode, agents, exempt, check, gate, .. } = file;
    let identity = file.identity_rules();
    let (enforcement, rate, overrides) = (&site.enforcement, &site.rate, &*site.overrides);
    // Writing TOML fails only for a path that is not UTF-8: the empty text then equals no other.
    toml::to_string(&Terms { mode: *mode, agents, exempt, identity, check, gate, enforcement, rate, overrides })
        .unwrap_or_default()
}
