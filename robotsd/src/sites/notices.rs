//! Collects notices for operators: about pending versions, decisions of other operators,
//! enforcement that is switched off, a rejected config, and missing replicas.
//!
//! The notices are derived from the current state every few seconds. The hooks store which notices
//! they have sent, so a restart does not repeat a notice. No notice is sent about a pending version
//! that an operator has rolled back.

use std::collections::BTreeSet;
use std::time::{Duration, UNIX_EPOCH};

use tower_robots::live::{Cause, Enforcement, ObjectionKind, Pending, StateDir, VersionHash};

use super::log_events::{CommandFlags, command};
use super::site_list::Sites;
use super::site_report::{decided, recorded};
use super::site_robots::LiveSite;
use crate::date::rfc3339;
use crate::fleet::{EVERY_SITE, Fleet};
use crate::render::shell_line;
use crate::report::{ConfigReport, FleetEntry, FleetReport};
use crate::webhooks::{Notice, NotifyEvent};

/// Interval between two notices about the same pending version.
const REPEAT_INTERVAL: Duration = Duration::from_secs(4 * 3600);

/// Maximum age of an operator's decision about a version. If no earlier notice about the site is
/// recorded, older decisions are not reported.
const NEWS: Duration = Duration::from_secs(3600);

impl Sites {
    /// Sends the current notices that have not been sent yet. Blocks while it reads the state
    /// directory.
    pub(crate) fn notify(&self, config: &ConfigReport) {
        let Some(hooks) = self.hooks() else { return };
        let of_all = self.state.directory.as_ref().and_then(StateDir::switch_problem);
        let of_all =
            of_all.map(|why| format!(" because the kill switch could not be read ({why})")).unwrap_or_default();
        let replica = hooks.replica.clone();
        let flags = self.fleet_flags();
        let mut notices = vec![switched("", self.state.switch(), &of_all, flags[1], &replica)];
        let mut scopes = BTreeSet::from([EVERY_SITE.to_owned()]);
        for live in self.live_sites() {
            of_site(&live, flags, &replica, &mut notices);
            scopes.extend([&*live.name, live.name.split('/').next().unwrap_or_default()].map(str::to_owned));
        }
        if let Some(fleet) = &self.state.fleet {
            of_fleet(fleet, scopes, &mut notices);
        }
        notices.extend(rejected(config));
        for notice in &mut notices {
            notice.message = format!("{replica}: {}", notice.message);
            notice.replica.clone_from(&replica);
        }
        hooks.notify(&notices);
    }
}

fn notice(event: NotifyEvent, name: &str, version: &str, message: &str, next: &[&str]) -> Notice {
    Notice { message: message.to_owned(), next: shell_line(next), ..Notice::new(Some(event), name, version) }
}

fn of_site(live: &LiveSite, flags: [CommandFlags; 2], replica: &str, notices: &mut Vec<Notice>) {
    let ([of_decision, of_switch], name, status) = (flags, &*live.name, live.robots.status());
    let is_new = |pending: &&Pending| pending.objections.iter().all(|it| it.kind != ObjectionKind::RolledBack);
    notices.extend(status.pending.as_ref().filter(is_new).map(|pending| waits(name, pending, of_decision)));
    notices.push(switched(name, status.switch, "", of_switch, replica));
    let history = live.robots.history();
    let Some((entry, hash)) = decided(&history, status.live).zip(status.live) else { return };
    let (event, done, next) = match entry.cause {
        // The command has no `--fleet`, because `accept` without a hash reads the pending version
        // of a single replica.
        Cause::Rollback => (NotifyEvent::RolledBack, "live again after a rollback", command(&["accept", name], &[])),
        _ => (NotifyEvent::Accepted, "live, because it was accepted", command(&["rollback", name], of_decision)),
    };
    let by = recorded(entry).attribution();
    let message = format!("site {name:?}: version {} is {done}{by}", hash.short());
    let is_news = entry.when.elapsed().is_ok_and(|age| age < NEWS);
    notices.push(Notice { is_news, ..notice(event, name, &hash.to_string(), &message, &next) });
}

fn waits(name: &str, pending: &Pending, flags: CommandFlags) -> Notice {
    let (hash, short) = (pending.hash().to_string(), pending.hash().short());
    let times = pending.since.elapsed().unwrap_or_default().as_secs() / REPEAT_INTERVAL.as_secs();
    let message = format!("site {name:?}: version {short} is held until accepted: {pending}");
    let notice = notice(NotifyEvent::Waits, name, &hash, &message, &command(&["accept", name, &short], flags));
    Notice { mark: format!("{hash} {times}"), ..notice }
}

/// Adds notices about the fleet's kill switches, and about missing replicas.
fn of_fleet(fleet: &Fleet, mut scopes: BTreeSet<String>, notices: &mut Vec<Notice>) {
    let FleetReport { name: of, marks, .. } = fleet.report();
    scopes.extend(marks.iter().map(|mark| mark.scope.clone()));
    for scope in &scopes {
        let name = if scope == EVERY_SITE { "" } else { scope };
        let first = marks.iter().filter(|mark| mark.scope == *scope).min_by_key(|mark| (&mark.at, &mark.what));
        let (to, by, occasion) = match first {
            Some(FleetEntry { what, by, why, .. }) => {
                let why = why.as_ref().map(|why| format!(": {why:?}")).unwrap_or_default();
                (Enforcement::Off, format!(" in the fleet {of:?} by {by}{why}"), what.clone())
            }
            None => (Enforcement::On, format!(" in the fleet {of:?}"), fleet.last_lifted_id()),
        };
        notices.push(Notice { occasion, is_of_fleet: true, ..switched(name, to, &by, &["--fleet"], "") });
    }
    for (replica, at) in fleet.missing() {
        let since = rfc3339(UNIX_EPOCH + Duration::from_secs(at));
        let message = format!(
            "replica {replica:?} of the fleet {of:?} is missing: the other replicas have not heard \
             from it since {since}"
        );
        let notice = notice(NotifyEvent::ReplicaMissing, &replica, "", &message, &["robotsd", "status", "--fleet"]);
        notices.push(Notice { mark: since, ..notice });
    }
}

/// Returns the notice that enforcement is off or on, for a site or for all sites. A notice that
/// enforcement is on is sent only after a notice that enforcement was off.
fn switched(name: &str, to: Enforcement, by: &str, flags: CommandFlags, replica: &str) -> Notice {
    let (of, mut site) = match name {
        "" => ("every site".to_owned(), vec![]),
        name => (format!("site {name:?}"), vec!["--site", name]),
    };
    let (message, next) = match to {
        Enforcement::Off => {
            (format!("enforcement is OFF for {of}{by}: every request passes"), &["robotsd", "enforce", "on"][..])
        }
        Enforcement::On => (format!("enforcement is on again for {of}{by}"), &["robotsd", "status"][..]),
    };
    if to == Enforcement::On && !flags.is_empty() {
        // `robotsd status --fleet` always shows every site, so `--site` is removed from the
        // command.
        site.clear();
    }
    let next = [next, flags, &site].concat();
    let is_news = to == Enforcement::Off;
    let notice = notice(NotifyEvent::Enforcement, name, "", &message, &next);
    let occasion = format!("{replica}\n{}", notice.time);
    Notice { mark: to.as_str().to_owned(), is_news, occasion, ..notice }
}

fn rejected(config: &ConfigReport) -> impl Iterator<Item = Notice> {
    let served = "the new config is rejected, so the previous config stays in use";
    let whole = config.rejected.iter().map(move |rejected| (&config.path, &rejected.why, served));
    let files = config.refused.iter().map(|file| (&file.path, &file.why, "an included file of the config is rejected"));
    whole.chain(files).map(|(path, why, what)| {
        let next = ["robotsd", "config", "check", &config.path];
        let notice = notice(NotifyEvent::ConfigRejected, path, "", &format!("{what}: {why}"), &next);
        Notice { mark: VersionHash::of(why.as_bytes()).to_string(), ..notice }
    })
}
