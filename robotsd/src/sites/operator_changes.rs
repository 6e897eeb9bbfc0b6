//! Makes changes for operators: accepts a version, rolls back, and switches enforcement. A change
//! takes effect immediately.
//!
//! These functions write to the disk and compile rules, so they must be called on blocking threads.

use std::fmt::Write as _;

use tower_robots::internals::Attribution;
use tower_robots::live::{
    Enforcement, LiveRobots, ObjectionKind, ProblemKind, ReloadOutcome, Status, VersionHashPrefix,
};

use super::log_events;
use super::served_site::ServedSite;
use super::site_list::Sites;
use super::site_robots::LiveSite;
use crate::config::{Config, SiteConfig, owners};
use crate::log::{LogEntry, LogEvent, LogLevel};
use crate::names::quoted_list;
use crate::report::{ChangeReport, NextStep};

#[derive(Debug)]
pub(crate) enum ChangeError {
    Unknown(String),
    Conflict(String),
}

impl Sites {
    pub(crate) fn accept(
        &self,
        site: &str,
        hash: &VersionHashPrefix,
        by: &Attribution,
    ) -> Result<ChangeReport, ChangeError> {
        let (of, live) = self.named(site)?;
        let report = accept(&live.name, &live.robots, hash, by)?;
        let has_parts = of.robots.parts.is_some();
        let next = log_events::after_accepting(&live.robots.status(), has_parts, of.gate.baseline_path());
        let report = ChangeReport { next, ..report };
        self.note(LogEvent::Accept, Some(&live), &report);
        Ok(self.done(report))
    }

    pub(crate) fn roll_back(&self, site: &str, by: &Attribution) -> Result<ChangeReport, ChangeError> {
        let (_, live) = self.named(site)?;
        let report = roll_back(&live.name, &live.robots, by)?;
        self.note(LogEvent::Rollback, Some(&live), &report);
        Ok(self.done(report))
    }

    pub(crate) fn rollback_effect(&self, site: &str) -> Result<ChangeReport, ChangeError> {
        let (_, LiveSite { name, robots, .. }) = self.named(site)?;
        let found = robots.rollback_effect();
        let (before, effect) = found.map_err(|error| ChangeError::Conflict(format!("site {name:?}: {error}")))?;
        let message = format!(
            "site {name:?}: a rollback would make version {version} live again{changes}",
            version = before.short(),
            changes = changes(effect)
        );
        let command = log_events::command(&["rollback", &name], self.fleet_flags()[0]);
        Ok(ChangeReport {
            next: vec![NextStep::command("to roll back to this version", command)],
            site: Some(name),
            hash: robots.status().live.map(|hash| hash.to_string()),
            before: Some(before.to_string()),
            running: true,
            kept: true,
            ..ChangeReport::new(message)
        })
    }

    pub(crate) fn enforce(&self, site: Option<&str>, to: Enforcement) -> Result<ChangeReport, ChangeError> {
        let site = site.map(|name| self.named(name)).transpose()?;
        let (before, written) = match &site {
            Some((of, live)) => (live.robots.status().switch, self.state.set_site_switch(&of.name, &live.name, to)),
            None => (self.state.switch(), self.state.set_switch(to)),
        };
        match (&site, to) {
            (_, Enforcement::On) => {}
            (Some((of, _)), Enforcement::Off) => of.record_switch_off(),
            (None, Enforcement::Off) => self.record_switch_off(),
        }
        let site = site.as_ref().map(|(_, live)| live);
        if to == Enforcement::Off {
            self.confirm_off(|name| site.is_none_or(|site| site.name == name)).map_err(ChangeError::Conflict)?;
        }
        let of = site.map_or_else(|| "every site".to_owned(), |site| format!("site {:?}", site.name));
        let mut message = if before == to {
            format!("enforcement of {of} was already switched {to}")
        } else {
            format!("enforcement of {of} is switched {to}")
        };
        if to == Enforcement::On {
            self.append_remaining_off(&mut message, site);
        }
        let report = ChangeReport {
            site: site.map(|site| site.name.to_string()),
            enforcement: Some(to.as_str().to_owned()),
            enforcement_before: Some(before.as_str().to_owned()),
            problem: written.err().map(|error| error.to_string()),
            ..ChangeReport::new(message)
        };
        self.note(LogEvent::Enforcement, site, &report);
        Ok(self.done(report))
    }

    /// Confirms that nothing is enforced for the sites that `is_meant` selects, by checking the
    /// snapshots that requests use, not the switch.
    ///
    /// # Errors
    ///
    /// Returns an error that lists the sites whose rules are still enforced.
    pub(crate) fn confirm_off(&self, is_meant: impl Fn(&str) -> bool) -> Result<(), String> {
        let enforced = self.live_sites().filter(|live| is_meant(&live.name) && !is_off(live)).map(|live| live.name);
        let enforced: Vec<_> = enforced.collect();
        if enforced.is_empty() {
            return Ok(());
        }
        Err(format!(
            "enforcement was switched off, but is NOT off for these sites: {sites}",
            sites = quoted_list(enforced)
        ))
    }

    /// Records on the board, for every site, that enforcement may have been off for some time.
    pub(crate) fn record_switch_off(&self) {
        self.iter().for_each(ServedSite::record_switch_off);
    }

    /// Returns `Off` if nothing is enforced for any site.
    pub(crate) fn enforcement(&self) -> Enforcement {
        let mut live_sites = self.live_sites().peekable();
        if live_sites.peek().is_some() && live_sites.all(|live| is_off(&live)) {
            Enforcement::Off
        } else {
            Enforcement::On
        }
    }

    /// Returns the state of the kill switch for all sites: `Off` if enforcement is switched off for
    /// this process or for the fleet, or if the fleet's switches are unknown. Switches for single
    /// sites are not considered.
    pub(crate) fn switch(&self) -> Enforcement {
        let is_off =
            self.state.fleet.as_ref().is_some_and(|fleet| fleet.is_off() || fleet.missing_document_message().is_some());
        if is_off { Enforcement::Off } else { self.state.switch() }
    }

    pub(crate) fn switched_off(&self) -> Vec<String> {
        self.live_sites().filter(is_off).map(|live| live.name).collect()
    }

    pub(crate) fn advice(&self) -> Vec<NextStep> {
        let (fleet, [_, of_switch]) = (self.state.fleet.as_deref(), self.fleet_flags());
        let is_off = self.state.switch() == Enforcement::Off;
        let by_fleet = "enforcement is off for the whole fleet; to enforce again on every replica";
        let on = |what, flags| NextStep::command(what, log_events::command(&["enforce", "on"], flags));
        let steps = [
            is_off.then(|| on("to enforce again", of_switch)),
            fleet.filter(|fleet| fleet.is_off()).map(|_| on(by_fleet, &["--fleet"])),
            fleet.filter(|fleet| fleet.missing_document_message().is_some()).map(|_| NextStep::create_fleet_document()),
            fleet.filter(|fleet| fleet.problem().is_some()).map(|_| {
                NextStep::command("to see the state of each replica, and why", ["robotsd", "fleet", "status"])
            }),
        ];
        steps.into_iter().flatten().collect()
    }

    /// Returns the robots.txt with this name, and its site. The name is `SITE`, or `SITE/HOST` if
    /// each host has its own robots.txt.
    pub(super) fn named(&self, name: &str) -> Result<(&ServedSite, LiveSite), ChangeError> {
        self.live(name).ok_or_else(|| ChangeError::Unknown(self.unknown(name)))
    }

    pub(crate) fn unknown(&self, name: &str) -> String {
        match self.site_of_host(name) {
            Some(site) => format!("there is no site {name:?}, but the site {site:?} serves a host of this name"),
            None => unknown(name, self.live_sites().map(|live| live.name)),
        }
    }

    /// Returns the name of the site that serves this host. A string without a dot or colon is not
    /// treated as a host, because it is probably a misspelled site name.
    fn site_of_host(&self, host: &str) -> Option<String> {
        let live_sites: Vec<_> = self.live_sites().filter(|_| host.contains(['.', ':'])).collect();
        let hosts = live_sites.iter().flat_map(|live| live.hosts.iter().map(|pattern| (pattern.as_str(), &live.name)));
        owners(hosts).get(host).map(|name| (*name).clone())
    }

    /// Extends the message of `enforce on` if enforcement is still off: the command changes only
    /// one of several switches.
    fn append_remaining_off(&self, message: &mut String, site: Option<&LiveSite>) {
        let fleet = self.state.fleet.as_deref();
        match site {
            Some(_) if self.state.switch() == Enforcement::Off => {
                message.push_str(
                    "; enforcement is still switched off for every site: to switch it on, run `robotsd enforce on`",
                );
            }
            _ if fleet.is_some_and(|fleet| fleet.is_off()) => {
                message.push_str(
                    "; enforcement is still off for the whole fleet: to switch it on, run `robotsd \
                     enforce on --fleet`",
                );
            }
            Some(live) if fleet.is_some_and(|fleet| fleet.missing_document_message().is_none()) && is_off(live) => {
                message.push_str(
                    "; the fleet has still switched enforcement off for this site: `robotsd fleet \
                     status` shows the switch",
                );
            }
            Some(_) => {}
            None => {
                let off = self.switched_off();
                if !off.is_empty() {
                    let of_fleet = ", or by an off switch of the fleet (see `robotsd fleet status`; to switch a site \
                        on, run `robotsd enforce on --site SITE --fleet`)";
                    let or = fleet.map_or("", |_| of_fleet);
                    let _ = write!(
                        message,
                        "; these sites are still off, by their own switch{or}: {sites}",
                        sites = quoted_list(off)
                    );
                }
            }
        }
    }

    fn note(&self, event: LogEvent, site: Option<&LiveSite>, report: &ChangeReport) {
        let problem = report.problem.as_ref().map(|problem| format!("; {problem}")).unwrap_or_default();
        let is_off = report.enforcement.as_deref() == Some(Enforcement::Off.as_str());
        let level = if is_off || report.problem.is_some() { LogLevel::Warn } else { event.level() };
        self.log.write(&LogEntry {
            level,
            site: site.map(|site| &*site.name),
            robots_hash: site.and_then(|site| site.robots.status().live).map(|hash| hash.short()),
            message: Some(format!("{}{problem}", report.message)),
            ..LogEntry::now(event)
        });
    }

    fn done(&self, report: ChangeReport) -> ChangeReport {
        ChangeReport { running: true, kept: self.state.directory.is_some() && report.problem.is_none(), ..report }
    }
}

/// Accepts a version in the state directory, while no process serves the site.
pub(crate) fn accept_unserved(
    config: &Config,
    site: &str,
    hash: &VersionHashPrefix,
    by: &Attribution,
) -> Result<ChangeReport, ChangeError> {
    let live = open_unserved(config, site)?.robots;
    let report = accept(site, &live, hash, by)?;
    let of = config.sites.iter().find(|of| of.name == site);
    let baseline = of.and_then(|of| of.gate_basis.baseline.as_ref());
    let has_parts = of.is_some_and(|of| !of.append.is_empty());
    let next = log_events::after_accepting(&live.status(), has_parts, baseline.map(|file| &**file.get_ref()));
    Ok(ChangeReport { kept: report.problem.is_none(), next, ..report })
}

/// Rolls a site back in the state directory, while no process serves the site.
pub(crate) fn roll_back_unserved(config: &Config, site: &str, by: &Attribution) -> Result<ChangeReport, ChangeError> {
    let report = roll_back(site, &open_unserved(config, site)?.robots, by)?;
    Ok(ChangeReport { kept: report.problem.is_none(), ..report })
}

pub(crate) fn unknown<N: AsRef<str>>(name: &str, known: impl IntoIterator<Item = N>) -> String {
    format!("there is no site {name:?}: the sites are {known}", known = quoted_list(known))
}

fn accept(
    name: &str,
    live: &LiveRobots,
    hash: &VersionHashPrefix,
    by: &Attribution,
) -> Result<ChangeReport, ChangeError> {
    let before = live.status();
    let reload = live.accept_by(hash, by).map_err(|error| ChangeError::Conflict(refused(name, &error, &before)))?;
    let why =
        before.pending.as_ref().map(|pending| format!("; the gate had held it because: {pending}")).unwrap_or_default();
    let hash = reload.outcome.hash().map(|hash| hash.short()).unwrap_or_default();
    Ok(change_report(name, live, &before, format!("site {name:?}: version {hash} is live{why}")))
}

fn roll_back(name: &str, live: &LiveRobots, by: &Attribution) -> Result<ChangeReport, ChangeError> {
    let before = live.status();
    let reload = live.rollback_by(by).map_err(|error| ChangeError::Conflict(format!("site {name:?}: {error}")))?;
    let ReloadOutcome::Published { hash, .. } = reload.outcome else {
        return Err(ChangeError::Conflict(format!("site {name:?}: {reload}")));
    };
    let mut message = format!("site {name:?}: version {version} is live again", version = hash.short());
    if let Some(pending) = live.status().pending.as_ref() {
        let _ = write!(
            message,
            "; version {version} is held now: it goes live only if you accept it",
            version = pending.hash().short()
        );
    }
    if let Some(dropped) = before.pending.as_ref() {
        let hash = dropped.hash().short();
        let is_back = dropped.objections.iter().any(|objection| objection.kind == ObjectionKind::RolledBack);
        message += &match is_back {
            true => format!("; version {hash}, which was rolled back before, also goes live only if you accept it"),
            false => {
                format!(
                    "; version {hash} is no longer pending: the gate checks this version again when robotsd next \
                     reads the source"
                )
            }
        };
    }
    message += &changes(live.history().pop().and_then(|entry| entry.effect));
    Ok(change_report(name, live, &before, message))
}

/// Formats the effect of a rollback for the end of a message.
fn changes(effect: Option<String>) -> String {
    effect.map(|effect| format!("; effect on crawlers: {effect}")).unwrap_or_default()
}

fn change_report(name: &str, live: &LiveRobots, before: &Status, message: String) -> ChangeReport {
    let now = live.status();
    ChangeReport {
        site: Some(name.to_owned()),
        hash: now.live.map(|hash| hash.to_string()),
        before: before.live.map(|hash| hash.to_string()),
        waiting: now.pending.as_ref().map(|pending| pending.hash().to_string()),
        problem: now.state_problem(ProblemKind::Save).map(str::to_owned),
        ..ChangeReport::new(message)
    }
}

/// Returns the message about a version that cannot be accepted. If no version is pending, the
/// message contains the live version.
fn refused(name: &str, error: &dyn std::fmt::Display, status: &Status) -> String {
    match status.live {
        Some(live) if status.pending.as_ref().is_none() => {
            format!("site {name:?}: {error}; version {version} is live", version = live.short())
        }
        _ => format!("site {name:?}: {error}"),
    }
}

/// Opens a site that no process serves, as the next start would open it.
fn open_unserved(config: &Config, name: &str) -> Result<LiveSite, ChangeError> {
    let has = |site: &&SiteConfig| name.strip_prefix(&*site.name).is_some_and(|rest| rest.starts_with('/'));
    let site = config.sites.iter().find(|site| site.name == name).or_else(|| config.sites.iter().find(has));
    let site = site.ok_or_else(|| ChangeError::Unknown(unknown(name, config.sites.iter().map(|site| &site.name))))?;
    super::robots_opener::open_unserved(config, site, name)
        .map_err(|message| ChangeError::Conflict(format!("site {name:?}: {message}")))
}

fn is_off(live: &LiveSite) -> bool {
    live.robots.with(|snapshot| snapshot.enforcement() == Enforcement::Off)
}
