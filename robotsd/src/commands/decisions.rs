//! An operator's decisions: `accept`, `rollback` and `enforce`.
//!
//! A decision is sent to the running robotsd. If robotsd is not running, the decision is written to
//! the state directory, and takes effect at the next start.
//!
//! Exit status:
//!
//! - 0 if the decision took effect, or, for `accept` without a hash, if no version is pending;
//! - 1 if the decision took effect but could not be written to the state directory, or, for
//!   `accept` without a hash, if a version is pending;
//! - 2 if the decision failed.

use std::io;
use std::path::Path;
use std::process::ExitCode;

use askama::Template;
use http::Method;
use tower_robots::internals::Attribution;
use tower_robots::live::{Enforcement, StateDir, StateError, VersionHashPrefix};
use tower_robots::rules::ValueError;

use super::fleet::{self, FleetArg};
use super::output::{Page, print_report};
use super::running::{Reason, Running, RunningSite, query, query_running, refusal};
use crate::admin::client::{AskError, ask};
use crate::audit::{self, AuditRecord};
use crate::config::{AdminPlace, Config, StateSettings};
use crate::exit::{self, complain};
use crate::render::{shell_line, short_hash};
use crate::report::{ChangeReport, SiteReport, StatusReport};
use crate::sites::{ChangeError, accept_unserved, has_own_state, roll_back_unserved, unknown};

/// Function that applies a decision if robotsd is not running: takes the path of the config, and
/// writes the decision to the state directory.
type ApplyOffline<'a> = &'a dyn Fn(&Path) -> Result<ChangeReport, String>;

/// A decision of an operator: the path and the query parameters of the request to robotsd, and the
/// operator's reason.
struct OperatorDecision<'a> {
    path: &'a str,
    pairs: Vec<(&'a str, &'a str)>,
    reason: &'a Reason,
}

impl OperatorDecision<'_> {
    /// Returns the user who runs this command, and the reason, for the audit record of a decision
    /// that is applied without a running robotsd.
    fn attribution(&self) -> Attribution {
        let who = format!("uid {}", rustix::process::getuid().as_raw());
        Attribution { who: Some(who), reason: self.reason.reason.as_deref().map(audit::cut) }
    }

    fn target(&self) -> String {
        self.reason.target(self.path, self.pairs.iter().copied())
    }
}

fn decide(
    running: &Running,
    decision: &OperatorDecision<'_>,
    apply_offline: &dyn Fn(&Config) -> Result<ChangeReport, ChangeError>,
) -> io::Result<ExitCode> {
    send(running, decision, &|path| {
        let config = Config::load(path).map_err(|error| error.to_string())?;
        if config.state_dir.is_none() {
            return Err(no_state_dir_message(path));
        }
        apply_offline(&config).map_err(|(ChangeError::Unknown(message) | ChangeError::Conflict(message))| message)
    })
}

fn send(running: &Running, decision: &OperatorDecision<'_>, apply_offline: ApplyOffline<'_>) -> io::Result<ExitCode> {
    let place = running.place();
    let target = &*decision.target();
    let send_to = |place: &AdminPlace| ask::<ChangeReport>(place, (&Method::POST, target), complain);
    let unreachable = match place.as_ref().map(send_to) {
        Ok(Ok(report)) => return print_change(&report, None, running),
        Ok(Err(error @ AskError::NotRunning(_))) => error.to_string(),
        Ok(Err(error)) => return Err(refusal(error)),
        // Without an admin address, it is unknown whether robotsd is running. The lock of the state
        // directory shows whether a process is using the directory.
        Err(unreachable) => unreachable.clone(),
    };
    let offline_result = apply_and_audit(running, decision, apply_offline);
    // A robotsd that started while the decision was being written may have read the old state, or
    // may have locked the state directory. The decision is therefore also sent to this process.
    if let Ok(Ok(report)) = place.as_ref().map(send_to) {
        return print_change(&report, None, running);
    }
    match offline_result {
        Ok(report) => {
            print_change(&report, Some(&format!("{unreachable}; the change takes effect at the next start")), running)
        }
        Err(message) if unreachable.contains(&message) => Err(refusal(unreachable)),
        Err(message) => Err(refusal(format_args!("{unreachable}; {message}"))),
    }
}

fn print_change(report: &ChangeReport, note: Option<&str>, running: &Running) -> io::Result<ExitCode> {
    let code = exit::exit_code_for(report.problem.is_none());
    print_report(report, running.json, |page| text(page, report, note, running), code)
}

/// Applies and records a decision when robotsd is not running. Enforcement can be switched off even
/// if the audit file cannot be written.
fn apply_and_audit(
    running: &Running,
    decision: &OperatorDecision<'_>,
    apply_offline: ApplyOffline<'_>,
) -> Result<ChangeReport, String> {
    let value = |name: &str| decision.pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
    let config = running.config_path();
    let place = config.as_deref().and_then(|path| StateSettings::load(path).ok());
    let (place, replica) = place.map_or_else(|| (None, audit::host_name()), |place| (place.audit, place.replica));
    let Attribution { who, reason } = decision.attribution();
    let record = AuditRecord {
        who,
        site: Some(value("site").unwrap_or("*").to_owned()),
        reason,
        replica,
        ..AuditRecord::new("command", decision.path.trim_start_matches('/'))
    };
    let write = |record: &AuditRecord| place.as_deref().map_or(Ok(()), |place| audit::append(place, record));
    if value("to") != Some("off") {
        write(&record.with_result("started")).map_err(|why| format!("{why}; nothing was changed"))?;
    }
    let without_config = || {
        "to make the change at the next start, give --config FILE: the change is then written to the state directory"
            .to_owned()
    };
    let result = config.ok_or_else(without_config).and_then(|path| apply_offline(&path));
    let outcome = match &result {
        Ok(report) => AuditRecord {
            before: report.before.clone(),
            after: report.enforcement.clone().or_else(|| report.hash.clone()),
            ..record.with_result("done")
        },
        Err(message) => AuditRecord { message: Some(message.clone()), ..record.with_result("failed") },
    };
    if let Err(why) = write(&outcome) {
        complain(&why);
    }
    result
}

fn text(page: &mut Page, report: &ChangeReport, note: Option<&str>, running: &Running) {
    let change_warning = report.change_warning();
    [Some(&*report.message), note, change_warning.as_deref()].into_iter().flatten().for_each(|text| page.text(text));
    if let (Some(site), Some(waiting)) = (&report.site, &report.waiting) {
        page.text("to publish that version again:");
        let hash = short_hash(waiting);
        page.command(&running.command(&["robotsd", "accept", site, hash]));
    }
    for step in &report.next {
        if step.command.is_empty() {
            page.text(&step.what);
        } else {
            page.text(&format!("{}:", step.what));
            page.command(&running.step(step));
        }
    }
}

fn no_state_dir_message(path: &Path) -> String {
    format!("{}: the config has no state_dir, so the change cannot be saved for the next start", path.display())
}

#[derive(Debug, clap::Args)]
pub(crate) struct AcceptArgs {
    #[command(flatten)]
    of: RunningSite,

    #[command(flatten)]
    fleet: FleetArg,

    /// Hash of the pending version: the 16 hex digits that messages show; without a hash, the
    /// command shows the pending version
    hash: Option<String>,

    #[command(flatten)]
    reason: Reason,
}

pub(crate) fn accept(args: &AcceptArgs) -> io::Result<ExitCode> {
    let Some(hash) = &args.hash else {
        return match args.fleet.fleet {
            false => show_pending(args),
            true => Err(refusal(
                "--fleet needs the hash of the version to accept: `robotsd status --fleet` shows the pending versions",
            )),
        };
    };
    let hash: VersionHashPrefix = hash.parse().map_err(|error: ValueError| refusal(error))?;
    let written = hash.to_string();
    let pairs = vec![("site", &*args.of.site), ("hash", &*written)];
    let decision = OperatorDecision { path: "/accept", pairs, reason: &args.reason };
    if args.fleet.fleet {
        return fleet::accept(&args.of.running, &decision.target(), &args.of.site, &written);
    }
    decide(&args.of.running, &decision, &|config| {
        accept_unserved(config, &args.of.site, &hash, &decision.attribution())
    })
}

fn show_pending(args: &AcceptArgs) -> io::Result<ExitCode> {
    let report: StatusReport = query_running(&args.of.running, (&Method::GET, "/status"))?;
    let Some(site) = report.sites.iter().find(|site| site.name == args.of.site) else {
        return Err(refusal(unknown(&args.of.site, report.sites.iter().map(|site| &site.name))));
    };
    let text = PendingText { report: &report, site, running: &args.of.running };
    let code = exit::exit_code_for(site.pending.is_none());
    print_report(&site.pending, args.of.running.json, |page| page.append_template(&text), code)
}

#[derive(Template)]
#[template(path = "commands/waiting.txt", whitespace = "preserve")]
struct PendingText<'a> {
    report: &'a StatusReport,
    site: &'a SiteReport,
    running: &'a Running,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RollbackArgs {
    #[command(flatten)]
    of: RunningSite,

    #[command(flatten)]
    reason: Reason,

    /// Do not roll back, but show the version that the running robotsd would restore, and
    /// everything that it would change for crawlers; exit with status 1 if there is such a version
    #[arg(long, conflicts_with = "fleet")]
    diff: bool,

    #[command(flatten)]
    fleet: FleetArg,
}

pub(crate) fn rollback(RollbackArgs { of, reason, diff, fleet }: &RollbackArgs) -> io::Result<ExitCode> {
    if *diff {
        let target = query("/rollback/effect", &[("site", &of.site)]);
        let report: ChangeReport = query_running(&of.running, (&Method::GET, &target))?;
        let text = |page: &mut Page| text(page, &report, None, &of.running);
        return print_report(&report, of.running.json, text, exit::exit_code_for(false));
    }
    let decision = OperatorDecision { path: "/rollback", pairs: vec![("site", &*of.site)], reason };
    if fleet.fleet {
        return fleet::roll_back(&of.running, &decision.target(), &of.site);
    }
    decide(&of.running, &decision, &|config| roll_back_unserved(config, &of.site, &decision.attribution()))
}

#[derive(Debug, clap::Args)]
pub(crate) struct EnforceArgs {
    #[command(flatten)]
    running: Running,

    /// Whether disallowed requests are refused, tagged and logged
    to: To,

    /// Switch only this site [default: every site]
    #[arg(long, value_name = "NAME")]
    site: Option<String>,

    #[command(flatten)]
    reason: Reason,

    #[command(flatten)]
    fleet: FleetArg,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum To {
    /// Act according to the mode of each site
    On,
    /// Let every request pass; /robots.txt is still served
    Off,
}

pub(crate) fn enforce(args: &EnforceArgs) -> io::Result<ExitCode> {
    let to = match args.to {
        To::On => Enforcement::On,
        To::Off => Enforcement::Off,
    };
    let mut pairs = vec![("to", to.as_str())];
    pairs.extend(args.site.as_deref().map(|site| ("site", site)));
    let decision = OperatorDecision { path: "/enforce", pairs, reason: &args.reason };
    if args.fleet.fleet {
        return fleet::enforce(&args.running, &decision.target());
    }
    send(&args.running, &decision, &|path| {
        // The kill switch must work even if other parts of the config are invalid.
        let StateSettings { folder, sites, .. } = StateSettings::load(path).map_err(|error| error.to_string())?;
        let folder = folder.ok_or_else(|| no_state_dir_message(path))?;
        let state = StateDir::open(&folder).map_err(|error| state_in_use_message(&error))?;
        let (of, written) = match &args.site {
            Some(name) if !sites.contains(name) => return Err(unknown(name, &sites)),
            Some(name) if to == Enforcement::On && !has_own_state(&state, name) => {
                return Err(format!(
                    "no robotsd has served site {name:?} yet. A new site starts switched off if it shares \
                     hosts with a switched-off site: start robotsd, then switch the site on"
                ));
            }
            Some(name) => (format!("site {name:?}"), state.set_enforcement_of(name, to)),
            None => ("every site".to_owned(), state.set_enforcement(to)),
        };
        written.map_err(|error| error.to_string())?;
        Ok(ChangeReport {
            site: args.site.clone(),
            enforcement: Some(to.as_str().to_owned()),
            kept: true,
            ..ChangeReport::new(format!("enforcement of {of} is switched {to} in {folder}", folder = folder.display()))
        })
    })
}

/// Returns the error message for a state directory that is in use. The process that uses the
/// directory keeps the kill switch in memory, so changing the switch's file would have no effect.
fn state_in_use_message(error: &StateError) -> String {
    let stop = error.process().map_or_else(|| "stop that process".to_owned(), |process| format!("`kill {process}`"));
    format!(
        "{error}. To switch enforcement while that process runs, name its admin interface with --admin PLACE. \
         Otherwise stop the process ({stop}), and switch enforcement before the next start"
    )
}
