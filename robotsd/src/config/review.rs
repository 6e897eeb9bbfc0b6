//! What a valid config probably does not mean: names that no crawler has, exceptions that have ended, folders that cannot be
//! written. None of it stops a start, so each is a warning or a note, with its place.

use std::path::Path;
use std::time::SystemTime;

use toml::Spanned;
use tower_robots::agent::Registry;
use tower_robots::check::Severity;
use tower_robots::policy::Mode;
use tower_robots::rules::RobotsTxt;

use super::error::Fault;
use super::policy;
use super::registry_extra::load_registry;
use super::settings::{Config, RobotsSource};
use super::toml_tables::{RawConfig, RawSite};
use crate::input;
use crate::render::Diagnostic;
use crate::suggestion::did_you_mean;

impl Config {
    /// What the config probably does not mean: warnings and notes, in the order of the file. Blocks: it reads files.
    pub(crate) fn review(&self) -> Vec<Diagnostic> {
        let Some((name, file)) = self.reviewable.file() else { return Vec::new() };
        review(file, self, name, &self.text, SystemTime::now())
    }
}

fn review(file: &RawConfig, config: &Config, name: &str, text: &str, now: SystemTime) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let warning = |fault| (Severity::Warning, fault);
    found.extend(unknown_crawlers(file, config).into_iter().map(warning));
    found.extend(ended(file, now).into_iter().map(warning));
    found.extend(state_dir(file, config).map(warning));
    found.extend(
        file.site.iter().filter_map(|site| without_grace(file, site.get_ref())).map(|note| (Severity::Note, note)),
    );
    found.sort_by_key(|(_, fault): &(_, Fault)| fault.span.start);
    found.iter().map(|(severity, fault)| fault.diagnostic(*severity, name, text)).collect()
}

/// Names in `ignore` and in overrides that neither the registry nor a robots.txt has: they have no effect.
fn unknown_crawlers(file: &RawConfig, config: &Config) -> Vec<Fault> {
    // Its own problems are errors, which opening the sites reports.
    if config.registry.extra.as_deref().is_some_and(|extra| !extra.is_file()) {
        return Vec::new();
    }
    let Ok(registry) = load_registry(&config.registry) else { return Vec::new() };
    let of_sites = file.site.iter().zip(&config.sites).flat_map(|(site, settings)| {
        site.get_ref()
            .overrides
            .iter()
            .filter_map(move |over| Some((over.get_ref().agent.as_ref()?, std::slice::from_ref(settings))))
    });
    let of_all = file.agents.ignore.iter().map(|name| (name, &*config.sites));
    let is_unknown = |(name, sites): &(&Spanned<String>, &[_])| {
        !is_registered(&registry, name.get_ref()) && !sites.iter().any(|site| may_name(site, name.get_ref()))
    };
    let fault = |(name, _): (&Spanned<String>, _)| {
        let known = registry.crawlers().map(|crawler| crawler.name());
        let help =
            did_you_mean(name.get_ref(), known).unwrap_or_else(|| "`robotsd agents` lists the crawlers".to_owned());
        let message = format!("no crawler is called {:?}, so this has no effect", name.get_ref());
        Fault::new(name.span(), message).help(help)
    };
    of_all.chain(of_sites).filter(is_unknown).map(fault).collect()
}

/// By its name, or by a product token that it obeys.
fn is_registered(registry: &Registry, name: &str) -> bool {
    registry.crawler(name).is_some()
        || registry
            .crawlers()
            .any(|crawler| crawler.tokens().iter().any(|token| token.to_string().eq_ignore_ascii_case(name)))
}

/// Whether the robots.txt of a site has a group of this name: it is recognised then, too. One that is not a file at hand may.
fn may_name(site: &super::SiteConfig, name: &str) -> bool {
    let bytes = match &site.robots {
        // Reading a pipe would wait for a writer.
        RobotsSource::File(path) if path.exists() && !path.is_file() => return true,
        RobotsSource::File(path) => input::read(path).unwrap_or_default(),
        RobotsSource::Inline(text) => text.clone().into_bytes(),
        // A name that is nearly a crawler's is a slip all the same.
        RobotsSource::Directory { .. } | RobotsSource::Upstream { .. } | RobotsSource::Url { .. } => {
            let known = Registry::builtin().crawlers().map(|crawler| crawler.name());
            return did_you_mean(name, known).is_none();
        }
    };
    let robots = RobotsTxt::parse(bytes);
    robots.groups().any(|group| group.names().any(|named| named.value().eq_ignore_ascii_case(name.as_bytes())))
}

/// Overrides whose end has passed.
fn ended(file: &RawConfig, now: SystemTime) -> Vec<Fault> {
    let overrides = file.site.iter().flat_map(|site| &site.get_ref().overrides);
    let untils = overrides.filter_map(|over| over.get_ref().until.as_ref());
    let has_ended = |until: &&Spanned<_>| policy::end(until).is_ok_and(|end| end <= now);
    let message = "this override has ended: it has no effect any more";
    untils
        .filter(has_ended)
        .map(|until| Fault::new(until.span(), message).help("take it out, or write a later day".to_owned()))
        .collect()
}

/// A state directory that this user cannot write.
fn state_dir(file: &RawConfig, config: &Config) -> Option<Fault> {
    let (written, path) = (file.state_dir.as_ref()?, config.state_dir.as_ref()?);
    let shown = path.display();
    let reason = if path.exists() {
        match path.is_dir() {
            false => format!("{shown} is not a folder"),
            true if is_writable(path) => return None,
            true => format!("{shown} cannot be written by this user"),
        }
    } else {
        match path.ancestors().skip(1).find(|folder| folder.exists() || folder.as_os_str().is_empty()) {
            Some(folder) if folder.as_os_str().is_empty() || is_writable(folder) => return None,
            _ => format!("{shown} cannot be made by this user"),
        }
    };
    Some(Fault::new(written.span(), format!("{reason}: a restart forgets versions, history and the kill switch")))
}

/// Whether this process may make files in a folder.
pub(super) fn is_writable(folder: &Path) -> bool {
    #[cfg(unix)]
    return rustix::fs::access(folder, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK).is_ok();
    #[cfg(not(unix))]
    return std::fs::metadata(folder).is_ok_and(|found| !found.permissions().readonly());
}

/// A site that refuses on the strength of rules that crawlers may not have seen yet.
fn without_grace(file: &RawConfig, site: &RawSite) -> Option<Fault> {
    let mode = site.enforcement.mode.unwrap_or(file.mode);
    let refuses = mode == Mode::Refuse || site.overrides.iter().any(|over| over.get_ref().mode == Mode::Refuse);
    (refuses && site.enforcement.grace.0.is_zero()).then(|| {
        let name = site.name.get_ref();
        let message = format!(
            "the site {name:?} refuses without grace: crawlers may use a cached robots.txt for 24 hours (RFC 9309, \
             section 2.4), and are refused for rules that they have not seen"
        );
        Fault::new(site.name.span(), message).help("write enforcement.grace = \"24h\"".to_owned())
    })
}
