//! Resolves a site's policy and the checks of its robots.txt, which depend on the settings of the
//! site and on the settings that apply to all sites.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::Serialize;
use toml::Spanned;
use tower_robots::agent::{Agent, Category, Crawler, Registry};
use tower_robots::check::{Lint, Options, RefusedCrawler, Severity};
use tower_robots::policy::{
    Action, EmptyAgent, IdentityNeeded, Impostors, Mode, Override, Policy, PolicyBuilder, RateMode, SuspectHuman,
    WildcardExceptions, WildcardScope,
};
use tower_robots::rules::{PathForm, ValueError};

use super::gate::RawGate;
use super::modes::RawModes;
use crate::config::tables::unplaced_strings;
use crate::config::{Fault, Faults, Placed, RawListener, bound, tables, unplaced, words};
use crate::names::did_you_mean;
use crate::shared_rate::SharedBucket;

const BURST: RangeInclusive<NonZeroU32> = NonZeroU32::MIN..=NonZeroU32::new(SharedBucket::MAX_BURST).unwrap();

tables! {
    /// Which agents the groups of a robots.txt apply to.
    RawAgents {
        wildcard_scope: WildcardScope,
        wildcard_methods: Spanned<Vec<Spanned<String>>> =
            unplaced(unplaced_strings(Policy::DEFAULT_WILDCARD_METHODS)),
        wildcard_exempt: Vec<Category> = Policy::DEFAULT_WILDCARD_EXEMPT.into(),
        wildcard_exceptions: WildcardExceptions,
        wildcard_empty: EmptyAgent,
        family: Family,
        ignore: Vec<Spanned<String>>,
        registry_extra: Option<Spanned<PathBuf>>,
        registry_url: Option<Spanned<String>>,
        registry_ca: Option<Spanned<PathBuf>>,
        registry_accept: Vec<Spanned<String>>,
        session_cookies: Vec<Spanned<String>>,
        suspect_human: SuspectHuman,
    }

    RawExempt {
        paths: Vec<Spanned<String>>,
        cidrs: Vec<Spanned<String>>,
        cookies: Vec<Spanned<String>>,
    }

    /// Codes of lints: `deny` reports their findings as errors, and `allow` disables them.
    RawCheck {
        deny: Vec<Spanned<String>>,
        allow: Vec<Spanned<String>>,
    }

    RawEnforcement {
        mode: Option<Mode>,
        forms: Vec<Spanned<PathForm>> = PathForm::OPTIONAL.into_iter().map(unplaced).collect(),
    }

    RawRate {
        mode: Spanned<RateMode> = unplaced(RateMode::default()),
        burst: Spanned<NonZeroU32> = unplaced(Policy::DEFAULT_BURST) => bound(BURST, "\"burst\" is {}: write a number from 1 to 10000"),
    }
}

words! {
    /// Whether a crawler that no group names obeys the groups of its family.
    Family {
        #[default]
        Follow = "follow",
        Ignore = "ignore",
    }
}

/// The settings of a config that apply to all of its sites. Serialization includes only the values
/// that the policy, the checks and the gate depend on.
#[derive(Clone, Copy, Serialize)]
pub(crate) struct CommonSettings<'f> {
    /// Mode of sites that set no mode, for requests that match no exception.
    pub(crate) mode: Mode,
    #[serde(skip)]
    pub(crate) grace: Duration,
    pub(crate) agents: &'f RawAgents,
    pub(crate) exempt: &'f RawExempt,
    pub(crate) identity: (Impostors, IdentityNeeded),
    pub(crate) check: &'f RawCheck,
    pub(crate) gate: &'f RawGate,
    #[serde(skip)]
    pub(crate) listeners: &'f [RawListener],
    /// Addresses of the admin listeners that trust this process as their proxy.
    #[serde(skip)]
    pub(crate) proxy_trusting_admin: &'f [SocketAddr],
    #[serde(skip)]
    pub(crate) state_dir: Option<&'f Path>,
}

/// Resolves the policy. If the policy has errors, adds them to the faults and returns `None`.
pub(super) fn resolve(
    all: &CommonSettings<'_>,
    enforcement: &RawEnforcement,
    rate: &RawRate,
    modes: &RawModes,
    faults: &mut Faults,
) -> Option<Policy> {
    let policy = faults.keep(without_modes(all, enforcement, rate));
    modes.add_to(policy, faults).map(PolicyBuilder::build)
}

fn without_modes(
    all: &CommonSettings<'_>,
    enforcement: &RawEnforcement,
    rate: &RawRate,
) -> Result<PolicyBuilder, Fault> {
    let CommonSettings { agents, exempt, .. } = all;
    let networks: Vec<_> = exempt.cidrs.iter().map(Spanned::get_ref).collect();
    let methods = agents.wildcard_methods.get_ref();
    let forms: Vec<_> = enforcement.forms.iter().map(|form| *form.get_ref()).collect();
    let refused = |values| move |error: ValueError| Fault::of_value(values, error.text(), &error);
    let (impostors, needed) = all.identity;
    let mut policy = Policy::builder()
        .mode(all.mode)
        .wildcard_scope(agents.wildcard_scope)
        .wildcard_exempt(&agents.wildcard_exempt)
        .wildcard_exceptions(agents.wildcard_exceptions)
        .wildcard_empty(agents.wildcard_empty)
        .forms(forms)
        .suspect_human(agents.suspect_human)
        .rate(*rate.mode.get_ref())
        .rate_burst(*rate.burst.get_ref())
        .impostors(impostors)
        .identity_needed(needed)
        .exempt_networks(networks)
        .map_err(refused(&exempt.cidrs))?
        .wildcard_methods(methods.iter().map(Spanned::get_ref).collect::<Vec<_>>())
        .map_err(|error| match methods[..] {
            [] => agents.wildcard_methods.fault(error.to_string()),
            _ => refused(methods)(error),
        })?
        .exempt_paths(exempt.paths.iter().map(Spanned::get_ref))
        .map_err(refused(&exempt.paths))?
        .exempt_agents(agents.ignore.iter().map(Spanned::get_ref))
        .map_err(refused(&agents.ignore))?
        .exempt_cookies(exempt.cookies.iter().map(Spanned::get_ref))
        .map_err(refused(&exempt.cookies))?
        .session_cookies(agents.session_cookies.iter().map(Spanned::get_ref))
        .map_err(refused(&agents.session_cookies))?;
    if agents.family == Family::Ignore {
        policy = policy.without_family();
    }
    if let Some(form) = enforcement.forms.iter().find(|form| !PathForm::OPTIONAL.contains(form.get_ref())) {
        return Err(form.fault(format!(
            "rules are always matched against the form {form:?}, so remove this form from \"forms\"",
            form = form.get_ref().as_str()
        )));
    }
    Ok(policy)
}

pub(super) fn checks(check: &RawCheck, exempt: &RawExempt) -> Result<Options, Fault> {
    let known = |code: &Spanned<String>| {
        let wrong =
            || format!("there is no lint {code:?}: `robotsd check --explain` lists all codes", code = code.get_ref());
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
    Ok(options)
}

pub(super) fn refused_engines(registry: &Registry, policy: &Policy) -> impl Iterator<Item = RefusedCrawler> {
    let now = SystemTime::now();
    let engines = registry.crawlers().filter(|crawler| crawler.is_index_engine);
    engines.filter_map(move |engine| refused(engine, policy, now))
}

/// Returns the crawler, and the rules that the policy enforces by refusing this crawler's requests.
/// Returns `None` if the policy never refuses requests of the crawler.
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
    // An override with an invalid pattern was already reported as an error of the config.
    let refused = refused.ok()?;
    Some(if policy.holds_to_star(&agent) { refused } else { refused.ignore_wildcard_group() })
}
