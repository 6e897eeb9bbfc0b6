//! A site's policy.

use std::ops::Range;
use std::time::{Duration, SystemTime};

use toml::Spanned;
use toml::value::{Datetime, Offset};
use tower_robots::policy::{Override, Policy, PolicyBuilder, RateMode};
use tower_robots::rules::{PathForm, ValueError};

use super::error::{Fault, Faults, Placed};
use super::tables::{Family, RawConfig, RawOverride, RawSite};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// The policy, or none once its problems are noted.
pub(super) fn resolve(file: &RawConfig, site: &RawSite, faults: &mut Faults) -> Option<Policy> {
    let policy = faults.keep(without_overrides(file, site));
    let overrides = faults.keep_all(site.overrides.iter().map(resolve_override));
    let add = |policy: PolicyBuilder, (mode, rate): ResolvedOverride| {
        let policy = mode.into_iter().fold(policy, PolicyBuilder::with_override);
        rate.into_iter().fold(policy, PolicyBuilder::with_rate_override)
    };
    Some(overrides?.into_iter().fold(policy?, add).build())
}

fn without_overrides(file: &RawConfig, site: &RawSite) -> Result<PolicyBuilder, Fault> {
    let networks: Vec<_> = file.exempt.cidrs.iter().map(Spanned::get_ref).collect();
    let (agents, exempt) = (&file.agents, &file.exempt);
    let refused = |values| move |error: ValueError| Fault::of_value(values, error.text(), &error);
    let (impostors, needed) = file.identity_rules();
    let mut policy = Policy::builder()
        .mode(file.mode_of(site))
        .star_scope(agents.star_scope)
        .star_exempt(&agents.star_exempt)
        .star_exceptions(agents.star_exceptions)
        .star_empty(agents.star_empty)
        .forms(site.enforcement.forms.iter().map(|form| *form.get_ref()).collect())
        .suspect_human(agents.suspect_human)
        .rate(*site.rate.mode.get_ref())
        .rate_burst(site.rate.burst()?)
        .impostors(impostors)
        .identity_needed(needed)
        .exempt_networks(networks)
        .map_err(refused(&file.exempt.cidrs))?
        .star_methods(agents.star_methods.iter().map(Spanned::get_ref))
        .map_err(refused(&agents.star_methods))?
        .exempt_paths(exempt.paths.iter().map(Spanned::get_ref))
        .map_err(refused(&exempt.paths))?
        .exempt_agents(agents.ignore.iter().map(Spanned::get_ref))
        .map_err(refused(&agents.ignore))?
        .exempt_cookies(exempt.cookies.iter().map(Spanned::get_ref))
        .map_err(refused(&exempt.cookies))?
        .session_cookies(agents.session_cookies.iter().map(Spanned::get_ref))
        .map_err(refused(&agents.session_cookies))?;
    if file.agents.family == Family::Ignore {
        policy = policy.without_family();
    }
    if let Some(form) = site.enforcement.forms.iter().find(|form| !PathForm::OPTIONAL.contains(form.get_ref())) {
        return Err(form.fault(format!("{:?} is always judged: forms lists the others", form.get_ref().as_str())));
    }
    Ok(policy)
}

/// The overrides of one entry: of the mode, of limiting, or of both.
type ResolvedOverride = (Option<Override>, Option<Override<RateMode>>);

fn resolve_override(over: &Spanned<RawOverride>) -> Result<ResolvedOverride, Fault> {
    let (span, over) = (over.span(), over.get_ref());
    if over.mode.is_none() && over.rate.is_none() {
        let message =
            "an override has a mode, for disallowed requests, or a rate, for those that come too soon, or both";
        return Err(Fault::new(span, message));
    }
    if let (Some(_), Some(pattern)) = (&over.rate, &over.pattern) {
        let message =
            "a rate is for crawlers, not for a rule: write category, agent or index = true in place of pattern";
        return Err(pattern.fault(message));
    }
    let is_for_index = over.index == Some(true) && over.category.is_none() && over.agent.is_none();
    if let Some(rate) = over.rate.as_ref().filter(|rate| is_for_index && *rate.get_ref() == RateMode::Refuse) {
        let message = "search engines are refused for their rate one by one: all of them are observed at most";
        let help =
            "write agent = \"bingbot\" in place of index = true, and a group for it with a Crawl-delay in robots.txt";
        return Err(rate.fault(message).help(help.to_owned()));
    }
    let end = over.until.as_ref().map(end).transpose()?;
    let mode = match (over.mode, &over.pattern) {
        (Some(mode), Some(pattern)) if over.category.is_none() && over.agent.is_none() && over.index.is_none() => {
            Some(of_value(pattern, Override::pattern(pattern.get_ref(), mode))?)
        }
        (Some(mode), None) => Some(of_crawlers(&span, over, mode)?),
        (Some(_), Some(_)) => return Err(Fault::new(span, ONE_OF)),
        (None, _) => None,
    };
    let rate = over.rate.as_ref().map(|rate| of_crawlers(&span, over, *rate.get_ref())).transpose()?;
    Ok((
        mode.map(|over| end.into_iter().fold(over, Override::until)),
        rate.map(|over| end.into_iter().fold(over, Override::until)),
    ))
}

const ONE_OF: &str = "an override has exactly one of category, agent, pattern and index = true";

/// An override for the crawlers that an entry names.
fn of_crawlers<M: Copy>(span: &Range<usize>, over: &RawOverride, mode: M) -> Result<Override<M>, Fault> {
    match (&over.category, &over.agent, over.index) {
        (Some(category), None, None) => Ok(Override::category(*category, mode)),
        (None, Some(agent), None) => of_value(agent, Override::agent(agent.get_ref(), mode)),
        (None, None, Some(true)) => Ok(Override::index_engines(mode)),
        _ => Err(Fault::new(span.clone(), ONE_OF)),
    }
}

fn of_value<T>(value: &Spanned<String>, made: Result<T, ValueError>) -> Result<T, Fault> {
    made.map_err(|error| value.fault(error.to_string()))
}

/// When an override ends: a moment, or the end of a day in UTC.
pub(super) fn end(until: &Spanned<Datetime>) -> Result<SystemTime, Fault> {
    let wrong = || {
        let message = format!(
            "{} is not an end: write a day such as 2027-03-31, which is UTC's, or a moment such as 2027-03-31T12:00:00Z",
            until.get_ref()
        );
        until.fault(message)
    };
    let date = until.get_ref();
    let text = match (date.date, date.time, date.offset) {
        (Some(day), None, None) => format!("{day}T00:00:00Z"),
        (Some(day), Some(time), Some(Offset::Z)) => format!("{day}T{time}Z"),
        _ => return Err(wrong()),
    };
    let moment = humantime::parse_rfc3339(&text).map_err(|_| wrong())?;
    Ok(if date.time.is_none() { moment + DAY } else { moment })
}
