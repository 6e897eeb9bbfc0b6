//! Finds modes of a config that refuse more or fewer requests than the operator may expect: without
//! a grace period or a state directory, or because another setting is milder.

use toml::Spanned;
use tower_robots::policy::{Impostors, Mode, RateMode};

use crate::config::{Fault, Placed, RawConfig, RawSite};

/// Returns a note if the site enforces new rules or crawl delays immediately, before crawlers have
/// fetched them.
pub(super) fn without_grace(file: &RawConfig, site: &RawSite) -> Option<Fault> {
    let refuses = strictest_mode(file, site) == Mode::Refuse;
    let limits = strictest_limit(file, site) == RateMode::Refuse;
    let unseen = match (refuses, limits) {
        (true, true) => "rules and delays",
        (true, false) => "rules",
        (false, true) => "delays",
        (false, false) => return None,
    };
    file.grace.get_ref().0.is_zero().then(|| {
        let name = site.name.get_ref();
        let message = format!(
            "the site {name:?} refuses requests without a grace period: crawlers may use a cached robots.txt for 24 \
             hours (RFC 9309, section 2.4), so crawlers are refused because of {unseen} that they have not read yet"
        );
        site.name.fault(message).help("write grace = \"24h\" at the top of the file".to_owned()).of_site(name)
    })
}

/// If `state_dir` is not set, returns a note about the first site that refuses requests. Without a
/// state directory, a restart would reset the kill switch and the grace periods.
pub(super) fn without_state(file: &RawConfig) -> Option<Fault> {
    let refuses =
        |site: &&RawSite| strictest_mode(file, site) == Mode::Refuse || strictest_limit(file, site) == RateMode::Refuse;
    let site = file.site.iter().map(Spanned::get_ref).find(refuses).filter(|_| file.state_dir.is_none())?;
    let then = if file.grace.get_ref().0.is_zero() {
        "so robotsd then refuses requests even if `robotsd enforce off` was run before"
    } else {
        "and begins the grace period of all rules again, during which no rule is enforced"
    };
    let message = format!(
        "this site refuses requests, but \"state_dir\" is not set: a restart forgets the accepted versions and the kill \
         switch, {then}"
    );
    Some(site.name.fault(message).help("write state_dir = \"/var/lib/robotsd\" at the top of the file".to_owned()))
}

/// Returns the strictest mode that a site has for any crawler.
fn strictest_mode(file: &RawConfig, site: &RawSite) -> Mode {
    site.modes.0.iter().filter_map(|exception| exception.modes.get_ref().mode).fold(file.mode_of(site), Mode::max)
}

/// Returns the strictest action of a site for requests that a crawler sends before its crawl delay
/// has passed.
fn strictest_limit(file: &RawConfig, site: &RawSite) -> RateMode {
    let of_site = site.rate.mode.get_ref().within(strictest_mode(file, site));
    let overrides =
        site.modes.0.iter().filter_map(|exception| Some(*exception.modes.get_ref().rate.as_ref()?.get_ref()));
    overrides.fold(of_site, RateMode::max)
}

/// Returns a note if the mode of a site makes the site's rate mode less strict than configured.
pub(super) fn weakened_rate(file: &RawConfig, site: &RawSite) -> Option<Fault> {
    let (rate, mode) = (&site.rate.mode, file.mode_of(site));
    let left = rate.get_ref().within(mode);
    let does = if left == RateMode::Off { "has no effect" } else { "only observes" };
    let message =
        format!("rate.mode = \"{rate}\" {does}, because the mode of the site is \"{mode}\"", rate = rate.get_ref());
    let help = match rate.get_ref() {
        RateMode::Refuse => {
            "to refuse requests that come too fast, write mode = \"refuse\" for the site, or rate = \"refuse\" for a \
             crawler in [site.modes]"
        }
        _ => "write mode = \"observe\" for the site",
    };
    (left != *rate.get_ref()).then(|| rate.fault(message).help(help.to_owned()).of_site(site.name.get_ref()))
}

/// Returns a note if the action for impostors is stricter than the mode of a site, because the site
/// then acts only as strictly as its mode.
pub(super) fn weakened_impostors(file: &RawConfig) -> Option<Fault> {
    let impostors = &file.identity.as_ref()?.impostors;
    let wanted = match impostors.get_ref() {
        Impostors::Tag => Mode::Tag,
        Impostors::Refuse => Mode::Refuse,
        _ => return None,
    };
    let mut bounded = file.site.iter().map(Spanned::get_ref).filter(|site| file.mode_of(site) < wanted);
    let first = bounded.next()?;
    let mode = file.mode_of(first);
    let does = match mode {
        Mode::Off => "has no effect",
        Mode::Tag => "only tags",
        _ => "only observes",
    };
    let others = match bounded.count() {
        0 => String::new(),
        others => format!("; further sites with the same problem: {others}"),
    };
    let message = format!(
        "impostors = \"{wanted}\" {does} for the site {site:?}, because the mode of the site is \"{mode}\"{others}",
        site = first.name.get_ref()
    );
    Some(impostors.fault(message).help(format!("write mode = \"{wanted}\" for the site")))
}

pub(super) fn unused_store(file: &RawConfig) -> Option<Fault> {
    let help = "write mode = \"observe\" or \"refuse\" below [site.rate], or remove the store";
    Some(file.rate.store.as_ref()?.fault(unused_store_reason(file)?).help(help.to_owned()))
}

/// Returns the reason why the store in `[rate]` is never used. `None` if the store is used, or if
/// `[rate]` has no store.
pub(in crate::config) fn unused_store_reason(file: &RawConfig) -> Option<&'static str> {
    file.rate.store.as_ref()?;
    let limits = |site: &RawSite| strictest_limit(file, site) != RateMode::Off;
    // A fleet without its own store uses the store in `[rate]`, even if no site limits the rate of
    // crawlers.
    let is_used = file.fleet.name.is_some() && file.fleet.store.is_none();
    let is_asked = is_used || file.site.iter().any(|site| limits(site.get_ref()));
    (!is_asked).then_some("no site limits the rate of crawlers, so the store is never used")
}
