//! Makes fleet-wide changes that an operator requests from this replica. This module also
//! implements [`FleetSites`], the trait that lets the fleet thread read and change the sites.
//!
//! An off switch takes effect on this replica even if the store cannot be reached. In this case,
//! the response reports that the off switch is not in the store yet. The response contains *off*
//! only if a check has shown that enforcement is off for the served sites.

use std::sync::Arc;

use http::StatusCode;
use tokio::task::spawn_blocking;
use tower_robots::internals::Attribution;
use tower_robots::live::{Enforcement, Status, VersionHashPrefix};

use super::reply::{AdminReply, Answer, ChangeRecord};
use super::state::{ServerState, Serving};
use crate::fleet::{EVERY_SITE, Fleet, FleetSites};
use crate::report::{ChangeReport, is_of};
use crate::sites::LiveSite;

impl FleetSites for ServerState {
    fn statuses(&self) -> Vec<(String, Status)> {
        let status = |live: LiveSite| (live.name, live.robots.status());
        self.serving().map(|serving| serving.sites.live_sites().map(status).collect()).unwrap_or_default()
    }

    fn accept(&self, site: &str, hash: &str, by: &Attribution) {
        let hash = hash.trim_start_matches("sha256:").parse::<VersionHashPrefix>();
        if let (Some(serving), Ok(hash)) = (self.serving(), hash) {
            // The result is not needed, because the site's status tells the fleet whether the
            // version is live.
            let _ = serving.sites.accept(site, &hash, by);
        }
    }

    fn roll_back(&self, site: &str, by: &Attribution) {
        if let Some(serving) = self.serving() {
            let _ = serving.sites.roll_back(site, by);
        }
    }

    fn record_switch_off(&self) {
        self.serving().iter().for_each(|serving| serving.sites.record_switch_off());
    }
}

pub(super) fn fleet_of(serving: &Serving) -> Result<&Arc<Fleet>, AdminReply> {
    let none = "this robotsd does not belong to a fleet: set \"name\" in [fleet], and restart robotsd";
    serving.sites.state.fleet.as_ref().ok_or_else(|| AdminReply::error(StatusCode::NOT_FOUND, none))
}

/// Turns enforcement off or on in the whole fleet, for `site` or, if `site` is `None`, for all
/// sites. `mark` is the ID of the off switch to add. `On` removes only off switches with exactly
/// the same scope (`site`, or all sites).
pub(super) async fn enforce(
    serving: Arc<Serving>,
    to: Enforcement,
    site: Option<String>,
    mark: String,
    by: Attribution,
) -> Answer {
    let fleet = Arc::clone(fleet_of(&serving)?);
    if let Some(site) = site.as_ref().filter(|site| !serving.sites.live_sites().any(|live| is_of(site, &live.name))) {
        return Err(AdminReply::error(StatusCode::NOT_FOUND, &serving.sites.unknown(site)));
    }
    if to == Enforcement::On {
        // Off switches that other replicas added must be removed, too, so the fleet's document is
        // read first.
        fleet.refresh().await;
    }
    let scope = site.clone().unwrap_or_else(|| EVERY_SITE.to_owned());
    let changing = Arc::clone(&fleet);
    let named = site.clone();
    let made = spawn_blocking(move || {
        let decision = match to {
            Enforcement::Off => changing.turn_off(&mark, &scope, &by)?,
            Enforcement::On => changing.lift(&scope, &by),
        };
        serving.sites.record_switch_off();
        if to == Enforcement::Off {
            serving.sites.confirm_off(|name| named.as_ref().is_none_or(|site| is_of(site, name)))?;
        }
        Ok((decision, serving.sites.switched_off()))
    });
    let made = made.await.map_err(|error| AdminReply::internal_error(&error))?;
    let (decision, still_off) = made.map_err(|why: String| AdminReply::error(StatusCode::CONFLICT, &why))?;
    let of = site.as_ref().map_or_else(|| "every site".to_owned(), |site| format!("site {site:?}"));
    let message = match (to, decision.writes, &*still_off) {
        (Enforcement::Off, ..) => format!("enforcement of {of} is switched off for the whole fleet"),
        (Enforcement::On, lifted, []) => {
            format!("enforcement of {of} is no longer switched off for the whole fleet; removed off switches: {lifted}")
        }
        (Enforcement::On, lifted, off) => {
            format!(
                "enforcement of {of} is no longer switched off for the whole fleet; removed off switches: {lifted}; \
                 still off because of other switches: {still_off}",
                still_off = off.join(", ")
            )
        }
    };
    let is_nothing = to == Enforcement::On && decision.writes == 0;
    let stored = if is_nothing { Ok(()) } else { fleet.stored(decision).await };
    Ok(AdminReply::change(ChangeReport {
        site,
        enforcement: Some(to.as_str().to_owned()),
        running: true,
        kept: fleet.is_persistent(),
        problem: stored.err().map(|why| format!("the change is not in the store yet: {why}")),
        ..ChangeReport::new(message)
    }))
}

/// Accepts the version `hash` for the fleet, or the version before the live version if `hash` is
/// `None`.
pub(super) async fn accept(serving: Arc<Serving>, site: &str, hash: Option<String>, by: &Attribution) -> Answer {
    let fleet = fleet_of(&serving)?;
    let conflict = |message: &str| AdminReply::error(StatusCode::CONFLICT, message);
    let Some(live) = serving.sites.live_sites().find(|live| live.name == site) else {
        return Err(AdminReply::error(StatusCode::NOT_FOUND, &serving.sites.unknown(site)));
    };
    let before = live.robots.status().before.map(|hash| hash.short());
    let none = || conflict(&format!("site {site:?}: this replica has no earlier version to roll back to"));
    let hash = hash.or(before).ok_or_else(none)?;
    // The fleet's document is read first, because the store accepts the change only if this replica
    // knows the site's current entry.
    fleet.refresh().await;
    let calls = fleet.accept(site, &hash, by);
    let stored = fleet.ask(calls).await;
    stored.map_err(|why| conflict(&format!("site {site:?}: the fleet does not accept {hash}: {why}")))?;
    let message = format!(
        "site {site:?}: the fleet accepts version {hash}, which goes live on each replica whose source contains this \
         version"
    );
    let report = ChangeReport { site: Some(site.to_owned()), running: true, kept: true, ..ChangeReport::new(message) };
    let mut reply = AdminReply::json(&report);
    reply.outcome = ChangeRecord { before: None, after: Some(hash) };
    Ok(reply)
}

pub(super) fn written(made: Result<String, String>) -> Answer {
    let message = made.map_err(|why| AdminReply::error(StatusCode::CONFLICT, &why))?;
    Ok(AdminReply::json(&ChangeReport { running: true, kept: true, ..ChangeReport::new(message) }))
}
