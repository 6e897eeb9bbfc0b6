//! `--fleet`: a command is sent to each replica of `[fleet]`, by its admin listener, to all at the same time. No robotsd has to run here.
//!
//! A replica that is not reached keeps no other from its answer, and is named. Exit status: 0 only where every replica has confirmed,
//! 1 where one has answered that not all is well, 2 where one could not be reached, or refused.
//!
//! A fleet with a name has a document in a store, so one replica speaks for all: what it is told is in the store, and the others have it a
//! second later. *Off* is sent to every replica all the same, by the same mark: it has to work without the store.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use askama::Template;
use http::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::output::{Page, say_report};
use super::running::{Running, asked, refusal};
use crate::admin::client::{AdminQuestion, AskError, ROWS, ask_one_of_many};
use crate::admin::{ask_all, single, unconfirmed};
use crate::board::{BoardQuery, BoardReport, join, seconds};
use crate::config::{AdminPlace, replicas};
use crate::exit::{FAILED, answer};
use crate::fleet::random;
use crate::render::{plural, shell_line, short_hash};
use crate::report::{ChangeReport, FleetReplica, FleetReport, ReplicaAnswer, ReplicaState, StatusReport};

/// Whether every replica is meant.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct FleetArg {
    /// Every replica that fleet.replicas in the config names, each by its admin listener; end with 0 only where all have confirmed
    #[arg(long, conflicts_with = "admin")]
    pub(in crate::commands) fleet: bool,
}

impl<T> ReplicaAnswer<T> {
    fn confirms(&self, judge: Judge<T>) -> bool {
        self.answer.as_ref().is_some_and(|answer| judge(answer).0)
    }

    fn said(&self, judge: Judge<T>) -> String {
        let said = self.answer.as_ref().map(|answer| judge(answer).1).or(self.error.clone()).unwrap_or_default();
        format!("{}: {said}", self.replica)
    }
}

/// How long replicas have to follow the one that was told.
const FOLLOWED: Duration = Duration::from_secs(3);

/// Turns enforcement off or on, on every replica. Each has the same mark, so that it is lifted from all.
pub(super) fn enforce(running: &Running, target: &str) -> io::Result<ExitCode> {
    let target = format!("{target}&mark={}", random());
    let (is_named, places) = places(running)?;
    if !is_named {
        return decide(running, &target);
    }
    let answers: Vec<ReplicaAnswer<ChangeReport>> = ask_every(running, (&Method::POST, &target))?;
    let reached = answers.iter().filter(|of| of.answer.is_some()).count();
    if reached == 0 {
        return say_answers(running, &answers, judge_change, |_| {});
    }
    let followed = wait_until_synced(running, &places, FOLLOWED);
    let is_stored = answers.iter().filter_map(|of| of.answer.as_ref()).all(|answer| answer.trouble.is_none());
    let is_done = is_stored && followed.as_ref().is_ok_and(FleetReport::is_synced);
    let text = |page: &mut Page| {
        say_each(page, &answers, judge_change);
        match &followed {
            Ok(report) => say_unsynced(page, report),
            Err(error) => page.title(&error.to_string()),
        }
        page.title(&format!("{reached} reached directly, {} not", answers.len() - reached));
    };
    say_report(&(&answers, followed.as_ref().ok()), running.json, text, answer(is_done))
}

/// Sends a decision to every replica.
fn decide(running: &Running, target: &str) -> io::Result<ExitCode> {
    let answers = ask_every(running, (&Method::POST, target))?;
    say_answers(running, &answers, judge_change, |_| {})
}

/// Sends a decision to one replica, for a fleet with a name; it holds for all. None for another fleet.
fn decide_by_store(running: &Running, target: &str) -> io::Result<Option<ExitCode>> {
    let (is_named, places) = places(running)?;
    if !is_named {
        return Ok(None);
    }
    let change: ChangeReport = ask_any(running, &places, (&Method::POST, &format!("{target}&fleet=1")))?;
    let report = wait_until_synced(running, &places, FOLLOWED)?;
    let text = |page: &mut Page| {
        page.text(&change.message);
        say_unsynced(page, &report);
    };
    say_report(&(&change, &report), running.json, text, answer(report.is_synced())).map(Some)
}

/// The document of a fleet in its store
#[derive(Debug, clap::Subcommand)]
pub(crate) enum FleetCommand {
    /// Make the document of a fleet: once, before its replicas enforce
    Init(Running),
    /// Write what a replica knows of the document into a store that has lost it, or has an older one
    Restore(Running),
    /// Show the document, and how each replica stands to it
    Status {
        #[command(flatten)]
        running: Running,

        #[command(flatten)]
        wait: WaitArg,
    },
}

/// How long replicas may take.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct WaitArg {
    /// With a fleet that has a name: wait until every replica is synced, for at most so long, such as 30s
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    wait: Option<Duration>,
}

/// Exit status: 0 when it was done, or every replica is synced, 1 when one is not, 2 when no replica could be reached, or it was refused.
pub(crate) fn run(command: &FleetCommand) -> io::Result<ExitCode> {
    let (running, path) = match command {
        FleetCommand::Status { running, wait } => {
            return document(running, *wait, |_| Ok(Vec::new()), |_| (true, String::new()));
        }
        FleetCommand::Init(running) => (running, "/fleet/init"),
        FleetCommand::Restore(running) => (running, "/fleet/restore"),
    };
    let change: ChangeReport = ask_any(running, &known_places(running), (&Method::POST, path))?;
    say_report(&change, running.json, |page| page.title(&change.message), ExitCode::SUCCESS)
}

/// The document, and the state of every replica; with what each answers itself, where that is asked.
#[derive(Serialize, Template)]
#[template(path = "commands/fleet.txt", whitespace = "preserve")]
struct FleetStatus<'a> {
    #[serde(flatten)]
    report: FleetReport,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    answers: Vec<ReplicaAnswer<StatusReport>>,
    #[serde(skip)]
    judge: Judge<StatusReport>,
    #[serde(skip)]
    running: &'a Running,
}

impl FleetStatus<'_> {
    /// The commands that accept what waits.
    fn accepts(&self) -> BTreeSet<String> {
        let sites = self.answers.iter().flat_map(|of| &of.answer).flat_map(|status| &status.sites);
        let steps = sites.flat_map(|site| &site.next).filter(|step| step.command.iter().any(|word| word == "accept"));
        steps.map(|step| shell_line(self.running.command(&step.command))).collect()
    }
}

fn document(
    running: &Running,
    WaitArg { wait }: WaitArg,
    ask: impl FnOnce(&Running) -> io::Result<Vec<ReplicaAnswer<StatusReport>>>,
    judge: Judge<StatusReport>,
) -> io::Result<ExitCode> {
    let report = wait_until_synced(running, &known_places(running), wait.unwrap_or_default())?;
    let status = FleetStatus { report, answers: ask(running)?, judge, running };
    let is_well = status.report.is_synced() && status.answers.iter().all(|of| of.confirms(judge));
    say_report(&status, running.json, |page| page.lay_out(&status), answer(is_well))
}

fn replica_line(FleetReplica { replica, state, why, version, .. }: &FleetReplica) -> String {
    let why = why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    // One whose heartbeat cannot be read has said none.
    let version = if version.is_empty() { String::new() } else { format!(", robotsd {version}") };
    format!("{replica}: {}{why}{version}", state.as_str())
}

/// The replicas that do not have what the store has.
fn say_unsynced(page: &mut Page, report: &FleetReport) {
    report.troubles.iter().for_each(|trouble| page.text(trouble));
    let others = report.replicas.iter().filter(|replica| replica.state != ReplicaState::Synced);
    others.for_each(|replica| page.title(&replica_line(replica)));
    page.title(&format!("{} of {} synced", report.synced(), plural(report.replicas.len(), "replica")));
}

/// Asks for the fleet until every replica is synced, or the time is over.
fn wait_until_synced(running: &Running, places: &[AdminPlace], wait: Duration) -> io::Result<FleetReport> {
    let began = Instant::now();
    loop {
        let report: FleetReport = ask_any(running, places, (&Method::GET, "/fleet"))?;
        if report.is_synced() || began.elapsed() >= wait {
            return Ok(report);
        }
        thread::sleep(Duration::from_millis(200));
    }
}

/// The replicas of the config; none where it cannot be read, which is no reason not to ask the one that runs.
fn known_places(running: &Running) -> Vec<AdminPlace> {
    places(running).map(|(_, places)| places).unwrap_or_default()
}

/// Asks the first of these replicas that answers, or without any the one that runs with the config.
fn ask_any<T: DeserializeOwned>(running: &Running, places: &[AdminPlace], of: AdminQuestion<'_>) -> io::Result<T> {
    let mut unreached = Vec::new();
    for place in places {
        let found = single(place).map_err(|error| unreached.push(format!("{place}: NOT REACHED: {error}")));
        for place in found.into_iter().flatten() {
            match ask_one_of_many(&place, of) {
                Ok(answer) => return Ok(answer),
                Err(AskError::Refused(_, message)) => return Err(refusal(message)),
                Err(error) => unreached.push(format!("{place}: {}", unconfirmed(&error))),
            }
        }
    }
    if unreached.is_empty() { asked(running, of) } else { Err(refusal(unreached.join("; "))) }
}

/// Accepts a version on every replica; one on which it is live has confirmed it.
pub(super) fn accept(running: &Running, target: &str, site: &str, hash: &str) -> io::Result<ExitCode> {
    if let Some(code) = decide_by_store(running, target)? {
        return Ok(code);
    }
    let answers = ask_all(&some_places(running)?, |replica| {
        let refused = match ask_one_of_many(replica, (&Method::POST, target)) {
            Err(error @ AskError::Refused(..)) => error,
            answer => return answer,
        };
        let status: StatusReport = ask_one_of_many(replica, (&Method::GET, "/status"))?;
        let is_live = |live: &String| live.trim_start_matches("sha256:").starts_with(hash);
        let live = status.sites.into_iter().find(|of| of.name == site).and_then(|of| of.hash).filter(is_live);
        let message = |live: &String| format!("site {site:?}: version {} is live already", short_hash(live));
        live.map(|live| ChangeReport { kept: true, ..ChangeReport::new(message(&live)) }).ok_or(refused)
    });
    say_answers(running, &answers, judge_change, |_| {})
}

/// Rolls back every replica, where all serve the same version: it is the one that is left.
pub(super) fn roll_back(running: &Running, target: &str, site: &str) -> io::Result<ExitCode> {
    if let Some(code) = decide_by_store(running, target)? {
        return Ok(code);
    }
    let served = statuses(running)?;
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

/// Says of an answer whether it confirms, and what is in it.
type Judge<T> = fn(&T) -> (bool, String);

/// Asks every replica for a report.
pub(super) fn report<T>(running: &Running, of: AdminQuestion<'_>, judge: Judge<T>) -> io::Result<ExitCode>
where
    T: DeserializeOwned + Serialize + Send,
{
    say_answers(running, &ask_every(running, of)?, judge, |_| {})
}

fn statuses(running: &Running) -> io::Result<Vec<ReplicaAnswer<StatusReport>>> {
    ask_every(running, (&Method::GET, "/status"))
}

/// The status of every replica, and the sites of which they serve different versions.
pub(super) fn status(running: &Running, judge: Judge<StatusReport>, wait: WaitArg) -> io::Result<ExitCode> {
    if places(running)?.0 {
        return document(running, wait, statuses, judge);
    }
    let answers = statuses(running)?;
    let versions = versions(&answers);
    say_answers(running, &answers, judge, |page| {
        for (site, of_site) in versions.iter().filter(|(_, of_site)| of_site.len() > 1) {
            page.text(&format!("site {site:?}: replicas serve different versions: {}", shown_versions(of_site)));
        }
    })
}

/// The board of every replica that answers.
pub(super) fn board(running: &Running, query: &BoardQuery) -> io::Result<BoardReport> {
    let answers = ask_every(running, (&Method::GET, &query.at(ROWS)))?;
    Ok(join(answers, query, seconds(SystemTime::now())))
}

fn judge_change(change: &ChangeReport) -> (bool, String) {
    let end = change.end().map(|end| format!("; {end}")).unwrap_or_default();
    (change.trouble.is_none(), format!("{}{end}", change.message))
}

fn say_each<T>(page: &mut Page, answers: &[ReplicaAnswer<T>], judge: Judge<T>) {
    answers.iter().for_each(|of| page.title(&of.said(judge)));
}

fn say_answers<T: Serialize>(
    running: &Running,
    answers: &[ReplicaAnswer<T>],
    judge: Judge<T>,
    more: impl FnOnce(&mut Page),
) -> io::Result<ExitCode> {
    let confirmed = answers.iter().filter(|of| of.confirms(judge)).count();
    let code = if answers.iter().any(|of| of.answer.is_none()) {
        ExitCode::from(FAILED)
    } else {
        answer(confirmed == answers.len())
    };
    let text = |page: &mut Page| {
        say_each(page, answers, judge);
        more(page);
        page.title(&format!("{confirmed} of {} confirmed", plural(answers.len(), "replica")));
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

/// Whether the fleet of the config has a name, and its replicas.
fn places(running: &Running) -> io::Result<(bool, Vec<AdminPlace>)> {
    let unknown = || refusal("with --fleet name the config whose [fleet] has the replicas, with --config FILE");
    let path = running.config_path().ok_or_else(unknown)?;
    replicas(&path).map_err(refusal)
}

/// Asks every replica of the config the same.
fn ask_every<T: DeserializeOwned + Send>(
    running: &Running,
    of: AdminQuestion<'_>,
) -> io::Result<Vec<ReplicaAnswer<T>>> {
    Ok(ask_all(&some_places(running)?, |replica| ask_one_of_many(replica, of)))
}

/// The replicas of the config, or where it names none the one that runs with it.
fn some_places(running: &Running) -> io::Result<Vec<AdminPlace>> {
    let (_, mut places) = places(running)?;
    if places.is_empty() {
        places.push(running.place().map_err(refusal)?);
    }
    Ok(places)
}
