//! A site's policy.

use std::time::{Duration, SystemTime};

use toml::Spanned;
use toml::value::{Datetime, Offset};
use tower_robots::policy::{Override, Policy, PolicyBuilder, PolicyError};
use tower_robots::rules::PathForm;

use super::error::{Fault, Faults};
use super::toml_tables::{Family, RawConfig, RawOverride, RawSite};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// The policy, or none once its problems are noted.
pub(super) fn resolve(file: &RawConfig, site: &RawSite, faults: &mut Faults) -> Option<Policy> {
    let policy = faults.keep(without_overrides(file, site));
    let overrides = faults.keep_all(site.overrides.iter().map(resolve_override));
    overrides?.into_iter().fold(policy, |policy, over| Some(policy?.with_override(over))).map(PolicyBuilder::build)
}

fn without_overrides(file: &RawConfig, site: &RawSite) -> Result<PolicyBuilder, Fault> {
    let networks: Vec<_> = file.exempt.cidrs.iter().map(Spanned::get_ref).collect();
    let (agents, exempt) = (&file.agents, &file.exempt);
    let refused = |values| move |error: PolicyError| Fault::of_value(values, error.value(), &error);
    let (impostors, needed) = file.identity_rules();
    let mut policy = Policy::builder()
        .mode(site.enforcement.mode.unwrap_or(file.mode))
        .star_scope(agents.star_scope)
        .star_exempt(&agents.star_exempt)
        .star_exceptions(agents.star_exceptions)
        .star_empty(agents.star_empty)
        .forms(site.enforcement.forms.iter().map(|form| *form.get_ref()).collect())
        .suspect_human(agents.suspect_human)
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
        let message = format!("{:?} is always judged: forms lists the others", form.get_ref().as_str());
        return Err(Fault::new(form.span(), message));
    }
    Ok(policy)
}

fn resolve_override(over: &Spanned<RawOverride>) -> Result<Override, Fault> {
    let span = over.span();
    let over = over.get_ref();
    let until = over.until.as_ref().map(end).transpose()?;
    let of_value = |value: &Spanned<String>, made: Result<Override, PolicyError>| {
        made.map_err(|error| Fault::new(value.span(), error.to_string()))
    };
    let made = match (&over.category, &over.agent, &over.pattern, over.index) {
        (Some(category), None, None, None) => Override::category(*category, over.mode),
        (None, Some(agent), None, None) => of_value(agent, Override::agent(agent.get_ref(), over.mode))?,
        (None, None, Some(pattern), None) => of_value(pattern, Override::pattern(pattern.get_ref(), over.mode))?,
        (None, None, None, Some(true)) => Override::index_engines(over.mode),
        _ => {
            let message = "an override has exactly one of category, agent, pattern and index = true";
            return Err(Fault::new(span, message));
        }
    };
    Ok(match until {
        Some(end) => made.until(end),
        None => made,
    })
}

/// When an override ends: a moment, or the end of a day in UTC.
pub(super) fn end(until: &Spanned<Datetime>) -> Result<SystemTime, Fault> {
    let wrong = || {
        let message = format!(
            "{} is not an end: write a day such as 2027-03-31, which is UTC's, or a moment such as 2027-03-31T12:00:00Z",
            until.get_ref()
        );
        Fault::new(until.span(), message)
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
