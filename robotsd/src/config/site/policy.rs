//! A site's policy.

use std::num::NonZeroU32;
use std::ops::{Range, RangeInclusive};
use std::time::{Duration, SystemTime};

use serde::Serialize;
use toml::Spanned;
use toml::value::{Datetime, Offset};
use tower_robots::agent::Category;
use tower_robots::policy::{IdentityNeeded, Impostors, Mode, Override, Policy, PolicyBuilder, RateMode};
use tower_robots::rules::{PathForm, ValueError};

use crate::config::agents::{Family, RawAgents, RawExempt};
use crate::config::bounds::bound;
use crate::config::error::{Fault, Faults, Placed};
use crate::config::tables::{tables, unplaced};
use crate::config::values::Span;
use crate::shared_rate::SharedBucket;

const BURST: RangeInclusive<NonZeroU32> = NonZeroU32::MIN..=NonZeroU32::new(SharedBucket::MOST).unwrap();

tables! {
    RawEnforcement {
        mode: Option<Mode>,
        grace: Span = Span(Duration::ZERO),
        forms: Vec<Spanned<PathForm>> = PathForm::OPTIONAL.into_iter().map(unplaced).collect(),
    }

    RawRate {
        mode: Spanned<RateMode> = unplaced(RateMode::default()),
        burst: Spanned<NonZeroU32> = unplaced(Policy::DEFAULT_BURST) => bound(BURST, "a burst is from 1 to 10000"),
    }

    /// Requests of some crawlers, or for some rule, that are treated in another way.
    RawOverride {
        category: Option<Category>,
        agent: Option<Spanned<String>>,
        pattern: Option<Spanned<String>>,
        index: Option<bool>,
        /// Of disallowed requests; this, `rate` or both.
        #[serde(skip_serializing_if = "Option::is_none")]
        mode: Option<Mode>,
        /// Of requests that come too soon.
        #[serde(skip_serializing_if = "Option::is_none")]
        rate: Option<Spanned<RateMode>>,
        until: Option<Spanned<Datetime>>,
    }
}

/// What the policy of a site is made from besides its overrides.
#[derive(Serialize)]
pub(super) struct Terms<'f> {
    /// Where no override fits.
    pub(super) mode: Mode,
    pub(super) agents: &'f RawAgents,
    pub(super) exempt: &'f RawExempt,
    /// What becomes of impostors, and what exemptions need.
    pub(super) identity: (Impostors, IdentityNeeded),
    pub(super) enforcement: &'f RawEnforcement,
    pub(super) rate: &'f RawRate,
}

const DAY: Duration = Duration::from_secs(24 * 3600);

/// The policy, or none once its problems are noted.
pub(super) fn resolve(terms: &Terms<'_>, overrides: &[Spanned<RawOverride>], faults: &mut Faults) -> Option<Policy> {
    let policy = faults.keep(without_overrides(terms));
    let overrides = faults.keep_all(overrides.iter().map(resolve_override));
    let add = |policy: PolicyBuilder, (mode, rate): ResolvedOverride| {
        let policy = mode.into_iter().fold(policy, PolicyBuilder::with_override);
        rate.into_iter().fold(policy, PolicyBuilder::with_rate_override)
    };
    Some(overrides?.into_iter().fold(policy?, add).build())
}

fn without_overrides(terms: &Terms<'_>) -> Result<PolicyBuilder, Fault> {
    let Terms { agents, exempt, enforcement, rate, .. } = terms;
    let networks: Vec<_> = exempt.cidrs.iter().map(Spanned::get_ref).collect();
    let refused = |values| move |error: ValueError| Fault::of_value(values, error.text(), &error);
    let (impostors, needed) = terms.identity;
    let mut policy = Policy::builder()
        .mode(terms.mode)
        .star_scope(agents.star_scope)
        .star_exempt(&agents.star_exempt)
        .star_exceptions(agents.star_exceptions)
        .star_empty(agents.star_empty)
        .forms(enforcement.forms.iter().map(|form| *form.get_ref()).collect())
        .suspect_human(agents.suspect_human)
        .rate(*rate.mode.get_ref())
        .rate_burst(*rate.burst.get_ref())
        .impostors(impostors)
        .identity_needed(needed)
        .exempt_networks(networks)
        .map_err(refused(&exempt.cidrs))?
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
    if agents.family == Family::Ignore {
        policy = policy.without_family();
    }
    if let Some(form) = enforcement.forms.iter().find(|form| !PathForm::OPTIONAL.contains(form.get_ref())) {
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
pub(in crate::config) fn end(until: &Spanned<Datetime>) -> Result<SystemTime, Fault> {
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
