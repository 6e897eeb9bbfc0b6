//! A site's policy.

use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use toml::Spanned;
use tower_robots::policy::{IdentityNeeded, Impostors, Mode, Policy, PolicyBuilder, RateMode};
use tower_robots::rules::{PathForm, ValueError};

use super::gate::RawGate;
use super::modes::RawModes;
use crate::config::agents::Family;
use crate::config::{Fault, Faults, Placed, RawAgents, RawCheck, RawExempt, RawListener, bound, tables, unplaced};
use crate::shared_rate::SharedBucket;

const BURST: RangeInclusive<NonZeroU32> = NonZeroU32::MIN..=NonZeroU32::new(SharedBucket::MOST).unwrap();

tables! {
    RawEnforcement {
        mode: Option<Mode>,
        forms: Vec<Spanned<PathForm>> = PathForm::OPTIONAL.into_iter().map(unplaced).collect(),
    }

    RawRate {
        mode: Spanned<RateMode> = unplaced(RateMode::default()),
        burst: Spanned<NonZeroU32> = unplaced(Policy::DEFAULT_BURST) => bound(BURST, "a burst is from 1 to 10000"),
    }
}

/// What a config says of all its sites. As text it has what policy, checks and gate are made from.
#[derive(Clone, Copy, Serialize)]
pub(crate) struct OfAllSites<'f> {
    /// Where no exception fits; a site may have another.
    pub(crate) mode: Mode,
    #[serde(skip)]
    pub(crate) grace: Duration,
    pub(crate) agents: &'f RawAgents,
    pub(crate) exempt: &'f RawExempt,
    /// What becomes of impostors, and what exemptions need.
    pub(crate) identity: (Impostors, IdentityNeeded),
    pub(crate) check: &'f RawCheck,
    pub(crate) gate: &'f RawGate,
    #[serde(skip)]
    pub(crate) listeners: &'f [RawListener],
    #[serde(skip)]
    pub(crate) state_dir: Option<&'f Path>,
}

/// The policy, or none once its problems are noted.
pub(super) fn resolve(
    all: &OfAllSites<'_>,
    enforcement: &RawEnforcement,
    rate: &RawRate,
    modes: &RawModes,
    faults: &mut Faults,
) -> Option<Policy> {
    let policy = faults.keep(without_modes(all, enforcement, rate));
    modes.add_to(policy, faults).map(PolicyBuilder::build)
}

fn without_modes(all: &OfAllSites<'_>, enforcement: &RawEnforcement, rate: &RawRate) -> Result<PolicyBuilder, Fault> {
    let OfAllSites { agents, exempt, .. } = all;
    let networks: Vec<_> = exempt.cidrs.iter().map(Spanned::get_ref).collect();
    let refused = |values| move |error: ValueError| Fault::of_value(values, error.text(), &error);
    let (impostors, needed) = all.identity;
    let mut policy = Policy::builder()
        .mode(all.mode)
        .star_scope(agents.star_scope)
        .star_exempt(&agents.star_exempt)
        .star_exceptions(agents.star_exceptions)
        .star_empty(agents.star_empty)
        .forms(enforcement.forms.iter().map(|form| *form.get_ref()))
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
