//! `--fleet`: a command is sent to each replica of `[fleet]`, by its admin listener, to all at the same time. No robotsd has to run here.
//!
//! A replica that is not reached keeps no other from its answer, and is named. Exit status: 0 only where every replica has confirmed,
//! 1 where one has answered that not all is well, 2 where one could not be reached, or refused.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::net::ToSocketAddrs;
use std::panic::resume_unwind;
use std::process::ExitCode;
use std::thread;

use http::Method;
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::output::{Page, say_report};
use super::running::{Running, refusal};
use crate::admin::client::{AskError, ask_one_of_many};
use crate::config::{AdminPlace, replicas};
use crate::exit::{FAILED, answer};
use crate::render::{plural, short_hash};
use crate::report::{ChangeReport, StatusReport};

/// Whether every replica is meant.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct FleetArg {
    /// Every replica that fleet.replicas in the config names, each by its admin listener; end with 0 only where all have confirmed
    #[arg(long, conflicts_with = "admin")]
    pub(in crate::commands) fleet: bool,
}

/// What a replica answered, or why it did not.
#[derive(Debug, Serialize)]
struct ReplicaAnswer<T> {
    replica: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<T>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Sends a decision to every replica.
pub(super) fn decide(running: &Running, target: &str) -> io::Result<ExitCode> {
    let answers = ask_all(running, |replica| ask_one_of_many(replica, &Method::POST, target))?;
    say_changes(running, &answers)
}

/// Accepts a version on every replica; one on which it is live has confirmed it.
pub(super) fn accept(running: &Running, target: &str, site: &str, hash: &str) -> io::Result<ExitCode> {
    let answers = ask_all(running, |replica| {
        let refused = match ask_one_of_many(replica, &Method::POST, target) {
            Err(error @ AskError::Refused(..)) => error,
            answer => return answer,
        };
        let status: StatusReport = ask_one_of_many(replica, &Method::GET, "/status")?;
        let is_live = |live: &String| live.trim_start_matches("sha256:").starts_with(hash);
        let live = status.sites.into_iter().find(|of| of.name == site).and_then(|of| of.hash).filter(is_live);
        let message = |live: &String| format!("site {site:?}: version {} is live already", short_hash(live));
        live.map(|live| ChangeReport { kept: true, ..ChangeReport::new(message(&live)) }).ok_or(refused)
    })?;
    say_changes(running, &answers)
}

/// Rolls back every replica, where all serve the same version: it is the one that is left.
pub(super) fn roll_back(running: &Running, target: &str, site: &str) -> io::Result<ExitCode> {
    let served = ask_all(running, |replica| ask_one_of_many::<StatusReport>(replica, &Method::GET, "/status"))?;
    let versions = versions(&served);
    if let Some(of_site) = versions.get(site).filter(|of_site| of_site.len() > 1) {
        let served = shown_versions(of_site);
        return Err(refusal(format_args!(
            "site {site:?}: replicas serve different versions, so none is rolled back: {served}; roll back those that serve \
             the one to leave with --admin PLACE"
        )));
    }
    decide(running, target)
}

/// Asks every replica for a report, of which `is_well` says whether it confirms, and `line` what is in it.
pub(super) fn report<T: DeserializeOwned + Serialize + Send>(
    running: &Running,
    method: &Method,
    target: &str,
    is_well: impl Fn(&T) -> bool,
    line: impl Fn(&T) -> String,
) -> io::Result<ExitCode> {
    let answers = ask_all(running, |replica| ask_one_of_many(replica, method, target))?;
    say_answers(running, &answers, is_well, line, |_| {})
}

/// The status of every replica, and the sites of which they serve different versions.
pub(super) fn status(
    running: &Running,
    is_well: impl Fn(&StatusReport) -> bool,
    line: impl Fn(&StatusReport) -> String,
) -> io::Result<ExitCode> {
    let answers = ask_all(running, |replica| ask_one_of_many(replica, &Method::GET, "/status"))?;
    let versions = versions(&answers);
    say_answers(running, &answers, is_well, line, |page| {
        for (site, of_site) in versions.iter().filter(|(_, of_site)| of_site.len() > 1) {
            page.text(&format!("site {site:?}: replicas serve different versions: {}", shown_versions(of_site)));
        }
    })
}

fn say_changes(running: &Running, answers: &[ReplicaAnswer<ChangeReport>]) -> io::Result<ExitCode> {
    let line = |change: &ChangeReport| match change.end() {
        Some(end) => format!("{}; {end}", change.message),
        None => change.message.clone(),
    };
    say_answers(running, answers, |change| change.trouble.is_none(), line, |_| {})
}

fn say_answers<T: Serialize>(
    running: &Running,
    answers: &[ReplicaAnswer<T>],
    is_well: impl Fn(&T) -> bool,
    line: impl Fn(&T) -> String,
    more: impl FnOnce(&mut Page),
) -> io::Result<ExitCode> {
    let confirmed = answers.iter().filter(|of| of.answer.as_ref().is_some_and(&is_well)).count();
    let code = if answers.iter().any(|of| of.answer.is_none()) {
        ExitCode::from(FAILED)
    } else {
        answer(confirmed == answers.len())
    };
    let text = || {
        let mut page = Page::default();
        for ReplicaAnswer { replica, answer, error } in answers {
            let said = answer.as_ref().map(&line).or(error.clone()).unwrap_or_default();
            page.title(&format!("{replica}: {said}"));
        }
        more(&mut page);
        page.title(&format!("{confirmed} of {} confirmed", plural(answers.len(), "replica")));
        page.into_string()
    };
    say_report(&answers, running.json, text, code)
}

/// The versions of each site, with the replicas that serve it.
fn versions(answers: &[ReplicaAnswer<StatusReport>]) -> BTreeMap<&str, BTreeMap<Option<&str>, Vec<&str>>> {
    let mut versions: BTreeMap<_, BTreeMap<_, Vec<_>>> = BTreeMap::new();
    for ReplicaAnswer { replica, answer, .. } in answers {
        for site in answer.iter().flat_map(|status| &status.sites) {
            versions.entry(&*site.name).or_default().entry(site.hash.as_deref()).or_default().push(&**replica);
        }
    }
    versions
}

fn shown_versions(versions: &BTreeMap<Option<&str>, Vec<&str>>) -> String {
    let version = |(hash, replicas): (&Option<&str>, &Vec<&str>)| {
        format!("{} on {}", hash.map_or("none", short_hash), replicas.join(", "))
    };
    versions.iter().map(version).collect::<Vec<_>>().join("; ")
}

/// Asks every replica at the same time. The answers are in the order of the config.
fn ask_all<T: Send>(
    running: &Running,
    ask: impl Fn(&AdminPlace) -> Result<T, AskError> + Sync,
) -> io::Result<Vec<ReplicaAnswer<T>>> {
    let unknown = || refusal("with --fleet name the config whose [fleet] has the replicas, with --config FILE");
    let path = running.config_path().ok_or_else(unknown)?;
    let places = replicas(&path).map_err(refusal)?;
    let answered = |place: &AdminPlace, answer: Result<T, String>| {
        let (answer, error) = answer.map_or_else(|error| (None, Some(error)), |answer| (Some(answer), None));
        ReplicaAnswer { replica: place.to_string(), answer, error }
    };
    // A name may stand for an address that is written as well.
    let asked = Mutex::new(HashSet::new());
    let answers = each_at_once(&places, |place| match single(place) {
        Err(error) => vec![answered(place, Err(format!("NOT REACHED: {error}")))],
        Ok(mut found) => {
            found.retain(|place| asked.lock().insert(place.to_string()));
            each_at_once(&found, |place| answered(place, ask(place).map_err(|error| unconfirmed(&error))))
        }
    });
    Ok(answers.into_iter().flatten().collect())
}

/// What a function makes of each of several things, on a thread each.
fn each_at_once<P: Sync, T: Send>(of: &[P], make: impl Fn(&P) -> T + Sync) -> Vec<T> {
    let make = &make;
    thread::scope(|scope| {
        let making: Vec<_> = of.iter().map(|one| scope.spawn(move || make(one))).collect();
        making.into_iter().map(|made| made.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
}

/// The places of which each is one replica.
fn single(place: &AdminPlace) -> Result<Vec<AdminPlace>, String> {
    let AdminPlace::Name(name, port) = place else { return Ok(vec![place.clone()]) };
    let found = (&**name, *port).to_socket_addrs().map_err(|error| error.to_string())?;
    let found: Vec<_> = found.map(AdminPlace::Address).collect();
    if found.is_empty() { Err("the name has no address".to_owned()) } else { Ok(found) }
}

fn unconfirmed(error: &AskError) -> String {
    match error {
        AskError::NotRunning(_) => "NOT REACHED: no process listens there".to_owned(),
        AskError::Refused(_, message) => format!("REFUSED: {message}"),
        AskError::Broken(_, message) => format!("NOT REACHED: {message}"),
    }
}
