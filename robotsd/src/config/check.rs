//! How a site's robots.txt is checked.

use toml::Spanned;
use tower_robots::agent::{Category, Crawler, Registry};
use tower_robots::check::{Options, Severity, lint};
use tower_robots::policy::Mode;

use super::error::Fault;
use super::raw::{RawConfig, RawSite};

/// The lints and exemptions of a site, and what decides which crawlers it refuses.
#[derive(Clone, Debug)]
pub(crate) struct CheckSettings {
    options: Options,
    mode: Mode,
    overrides: Vec<CrawlerMode>,
}

/// An override, as far as it is for crawlers of the registry.
#[derive(Clone, Debug)]
struct CrawlerMode {
    category: Option<Category>,
    agent: Option<String>,
    mode: Mode,
}

impl CheckSettings {
    pub(super) fn resolve(file: &RawConfig, site: &RawSite) -> Result<Self, Fault> {
        let known = |code: &Spanned<String>| {
            let wrong = || format!("there is no lint {:?}: `robotsd check --explain` lists them", code.get_ref());
            lint(code.get_ref()).ok_or_else(|| Fault::new(code.span(), wrong()))
        };
        let mut options = Options::new()
            .exempt_paths(file.exempt.paths.iter().map(Spanned::get_ref))
            .map_err(|error| Fault::of_value(&file.exempt.paths, error.value(), &error))?;
        for code in &file.check.deny {
            options = options.report_as(known(code)?, Severity::Error);
        }
        for code in &file.check.allow {
            options = options.allow(known(code)?);
        }
        let overrides = site.overrides.iter().map(|over| {
            let over = over.get_ref();
            CrawlerMode { category: over.category, agent: over.agent.clone(), mode: over.mode }
        });
        let mode = site.enforcement.mode.unwrap_or(file.mode);
        Ok(Self { options, mode, overrides: overrides.collect() })
    }

    /// The options, with the crawlers of a registry that the site refuses. The registry itself is not among them: what is
    /// live has one of its own.
    pub(crate) fn options(&self, registry: &Registry) -> Options {
        let refused = registry.crawlers().filter(|crawler| self.mode_for(crawler) == Mode::Refuse).map(Crawler::name);
        self.options.clone().refused_crawlers(refused)
    }

    /// As for policies, the last override that fits decides.
    fn mode_for(&self, crawler: &Crawler) -> Mode {
        let fits = |over: &&CrawlerMode| {
            let is_called = |name: &String| name.eq_ignore_ascii_case(crawler.name());
            over.category == Some(crawler.category()) || over.agent.as_ref().is_some_and(is_called)
        };
        self.overrides.iter().rev().find(fits).map_or(self.mode, |over| over.mode)
    }
}
