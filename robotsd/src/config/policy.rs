//! A site's policy.

use std::time::{Duration, SystemTime};

use toml::Spanned;
use toml::value::{Datetime, Offset};
use tower_robots::policy::{Network, Override, Policy, PolicyError};
use tower_robots::rules::PathForm;

use super::error::Fault;
use super::raw::{Family, RawConfig, RawSite};

const DAY: Duration = Duration::from_secs(24 * 3600);

pub(super) fn resolve(file: &RawConfig, site: &RawSite) -> Result<Policy, Fault> {
    let network = |text: &Spanned<String>| {
        text.get_ref().parse::<Network>().map_err(|error| Fault::new(text.span(), error.to_string()))
    };
    let networks = file.exempt.cidrs.iter().map(network).collect::<Result<Vec<_>, _>>()?;
    let (agents, exempt) = (&file.agents, &file.exempt);
    let refused = |values| move |error: PolicyError| Fault::of_value(values, error.value(), &error);
    let mut policy = Policy::builder()
        .mode(site.enforcement.mode.unwrap_or(file.mode))
        .star_scope(agents.star_scope)
        .star_exempt(agents.star_exempt.iter().copied())
        .star_exceptions(agents.star_exceptions)
        .star_empty(agents.star_empty)
        .forms(site.enforcement.forms.iter().map(|form| *form.get_ref()).collect())
        .exempt_networks(networks)
        .suspect_human(agents.suspect_human)
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
    for over in &site.overrides {
        let span = over.span();
        let over = over.get_ref();
        let until = over.until.as_ref().map(end).transpose()?;
        let over = match (&over.category, &over.agent, &over.pattern) {
            (Some(category), None, None) => Ok(Override::category(*category, over.mode)),
            (None, Some(agent), None) => Override::agent(agent, over.mode),
            (None, None, Some(pattern)) => Override::pattern(pattern, over.mode),
            _ => return Err(Fault::new(span, "an override has exactly one of category, agent and pattern")),
        };
        let over = over.map_err(|error| Fault::new(span, error.to_string()))?;
        policy = policy.with_override(match until {
            Some(end) => over.until(end),
            None => over,
        });
    }
    Ok(policy.build())
}

/// When an override ends: a moment, or the end of a day in UTC.
fn end(until: &Spanned<Datetime>) -> Result<SystemTime, Fault> {
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
