//! How a site's robots.txt is checked.

use std::time::SystemTime;

use toml::Spanned;
use tower_robots::agent::{Agent, Crawler, Registry};
use tower_robots::check::{Lint, Options, RefusedCrawler, Severity};
use tower_robots::policy::{Action, Override, Policy};

use super::{Fault, Placed, RawExempt, tables};
use crate::suggestion::did_you_mean;

tables! {
    /// Lints by code: findings that are errors, and lints that are off.
    RawCheck {
        deny: Vec<Spanned<String>>,
        allow: Vec<Spanned<String>>,
    }
}

/// The lints and exemptions of a site.
#[derive(Clone, Debug)]
pub(crate) struct CheckSettings {
    options: Options,
}

impl CheckSettings {
    pub(super) fn resolve(check: &RawCheck, exempt: &RawExempt) -> Result<Self, Fault> {
        let known = |code: &Spanned<String>| {
            let wrong = || format!("there is no lint {:?}: `robotsd check --explain` lists them", code.get_ref());
            let help = || did_you_mean(code.get_ref(), Lint::all().iter().map(|lint| lint.code));
            Lint::of_code(code.get_ref()).ok_or_else(|| code.fault(wrong()).help(help()))
        };
        let mut options = Options::new()
            .exempt_paths(exempt.paths.iter().map(Spanned::get_ref))
            .map_err(|error| Fault::of_value(&exempt.paths, error.text(), &error))?;
        for code in &check.deny {
            options = options.report_as(known(code)?, Severity::Error);
        }
        for code in &check.allow {
            options = options.allow(known(code)?);
        }
        Ok(Self { options })
    }

    /// The options, with the search engines of a registry that the policy refuses. The registry itself is not among them: what
    /// is live has one of its own.
    pub(crate) fn options(&self, registry: &Registry, policy: &Policy) -> Options {
        let now = SystemTime::now();
        let engines = registry.crawlers().filter(|crawler| crawler.is_index_engine);
        self.options.clone().refused_crawlers(engines.filter_map(|engine| refused(engine, policy, now)))
    }
}

/// What a policy refuses a crawler, if it does.
fn refused(crawler: &Crawler, policy: &Policy, now: SystemTime) -> Option<RefusedCrawler> {
    let agent = Agent::from(crawler);
    let is_refused = |pattern: Option<&[u8]>| policy.action_for_rule(&agent, pattern, now).0 == Action::Refuse;
    let otherwise = is_refused(None);
    let patterns = policy.overrides.iter().filter_map(Override::rule_pattern);
    let exceptions: Vec<_> = patterns.filter(|pattern| is_refused(Some(pattern)) != otherwise).collect();
    let refused = RefusedCrawler::new(crawler.name.as_str());
    let refused = match (otherwise, exceptions.is_empty()) {
        (false, true) => return None,
        (false, false) => refused.only_rules(exceptions),
        (true, _) => refused.except_rules(exceptions),
    };
    // An override with any other pattern is an error of the config.
    let refused = refused.ok()?;
    Some(if policy.holds_to_star(&agent) { refused } else { refused.where_named() })
}
