//! `--fleet`: sends a command to the admin listeners of all replicas of `[fleet]`, in parallel.
//! robotsd does not have to run on this machine.
//!
//! If a replica cannot be reached, the command reports this replica and continues with the other
//! replicas. Exit status:
//!
//! - 0 if every replica has confirmed;
//! - 1 if a replica reports a problem, or replicas serve different versions;
//! - 2 if any replica could not be reached or refused the command.
//!
//! If the fleet has a name, its replicas share a document in a store. In a named fleet, a change is
//! sent to only one replica. This replica writes the change to the store, and the other replicas
//! read it from there a second later. `enforce off` must work without the store, so it is sent to
//! every replica, and all replicas get the same switch ID. If only some replicas of a named fleet
//! cannot be reached, the exit status is 1 instead of 2, because they will read the change from the
//! store.

use std::collections::BTreeMap;
use std::io;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use askama::Template;
use http::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::output::{Page, print_report};
use super::running::{Running, query_running, refusal};
use crate::admin::client::{AdminCall, AskError, ROWS_PATH, ask_replica};
use crate::admin::{ask_all, replica_error, resolve_place};
use crate::board::{BoardQuery, BoardReport, join, seconds};
use crate::config::{AdminPlace, replicas};
use crate::exit::{FAILED, exit_code_for};
use crate::fleet::random;
use crate::render::{plural, shell_line, short_hash};
use crate::report::{
    ChangeReport, FleetReplica, FleetReport, NextStep, ReplicaAnswer, ReplicaState, ServedVersions, StatusReport,
};

/// Option that sends a command to every replica.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct FleetArg {
    /// Act on every replica in fleet.replicas of the config, through its admin listener; exit with
    /// status 0 only if all replicas have confirmed the change
    #[arg(long, conflicts_with = "admin")]
    pub(in crate::commands) fleet: bool,
}

impl<T> ReplicaAnswer<T> {
    fn confirms(&self, judge: Judge<T>) -> bool {
        self.answer.as_ref().is_some_and(|answer| judge(answer).0)
    }

    fn replica_message(&self, judge: Judge<T>) -> String {
        let message = self.answer.as_ref().map(|answer| judge(answer).1).or(self.error.clone()).unwrap_or_default();
        format!("{}: {message}", self.replica)
    }
}

/// Maximum time to wait until the other replicas have made a change that was sent to one replica.
const MAX_FOLLOW_WAIT: Duration = Duration::from_secs(3);

/// Note about a replica of a named fleet that has not confirmed a change.
const FOLLOWS_NOTE: &str = "; this replica makes the change when it next reads the store";

/// Note about a replica that is in the fleet's document, although no address in `fleet.replicas`
/// belongs to it.
const NO_ADDRESS_NOTE: &str =
    "fleet.replicas contains no address of this replica, so `enforce off --fleet` reaches it only through the store";

/// Switches enforcement off or on, on every replica. All replicas get the same switch ID, so that a
/// single command can later remove the switch from all of them.
pub(super) fn enforce(running: &Running, target: &str) -> io::Result<ExitCode> {
    let target = format!("{target}&mark={}", random());
    let (is_named, places) = places(running)?;
    let answers: Vec<ReplicaAnswer<ChangeReport>> = ask_all_replicas(running, (&Method::POST, &target))?;
    let reached = answers.iter().filter(|of| of.answer.is_some()).count();
    if !is_named || reached == 0 {
        return print_answers(running, &answers, judge_change, &[]);
    }
    let followed = wait_until_synced(running, &places, MAX_FOLLOW_WAIT);
    let is_confirmed = answers.iter().all(|of| of.confirms(judge_change));
    let is_done = is_confirmed && followed.as_ref().is_ok_and(FleetReport::is_synced);
    let text = |page: &mut Page| {
        print_each(page, &answers, judge_change, FOLLOWS_NOTE);
        match &followed {
            Ok(report) => print_unsynced(page, report),
            Err(error) => page.title(&error.to_string()),
        }
        page.title(&format!("replicas reached directly: {reached}; not reached: {}", answers.len() - reached));
    };
    print_report(&(&answers, followed.as_ref().ok()), running.json, text, exit_code_for(is_done))
}

/// Sends a decision about a site to one replica, which applies it to the whole fleet. Returns
/// `None` if the fleet has no name.
fn decide_in_named_fleet(running: &Running, target: &str, site: &str) -> io::Result<Option<ExitCode>> {
    let (is_named, places) = places(running)?;
    if !is_named {
        return Ok(None);
    }
    let change: ChangeReport = ask_first_reachable(running, &places, (&Method::POST, &format!("{target}&fleet=1")))?;
    let report = wait_until_synced(running, &places, MAX_FOLLOW_WAIT)?;
    let mut answers = statuses(running)?;
    let differing = differing(&report.replicas, &answers).remove(site);
    // The output lists only the replicas that did not respond. The report of the fleet shows which
    // of the other replicas have not made the change.
    answers.retain(|of| of.answer.is_none());
    let text = |page: &mut Page| {
        page.text(&change.message);
        print_each(page, &answers, |_| (true, String::new()), FOLLOWS_NOTE);
        print_unsynced(page, &report);
        differing.iter().for_each(|line| page.text(line));
    };
    let is_done = report.is_synced() && answers.is_empty() && differing.is_none();
    print_report(&(&change, &report, &answers), running.json, text, exit_code_for(is_done)).map(Some)
}

/// The document of a fleet in its store
#[derive(Debug, clap::Subcommand)]
pub(crate) enum FleetCommand {
    /// Create the document of a fleet, once, before its replicas enforce rules
    #[command(after_help = "Exit status: 0 if the document was created, 2 if not.")]
    Init(Running),
    /// Write the entries of a replica into a store that has lost the document of the fleet, or
    /// contains an older document
    #[command(after_help = "Exit status: 0 if the document was written, 2 if not.")]
    Restore {
        #[command(flatten)]
        running: Running,

        /// Also repair fields that cannot be read: off switches are kept, and dropped fields are
        /// listed
        #[arg(long)]
        repair: bool,
    },
    /// Show the document and the state of each replica
    #[command(after_help = "Exit status: 0 if every replica is synced, 1 if one is not, 2 if none answered.")]
    Status {
        #[command(flatten)]
        running: Running,

        #[command(flatten)]
        wait: WaitArg,
    },
}

/// How long to wait for the replicas.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct WaitArg {
    /// In a fleet with a name: wait until every replica is synced, at most this long, such as 30s
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    wait: Option<Duration>,
}

/// Exit status: 0 if the change was made or every replica is synced; 1 if some replicas are not
/// synced; 2 if no replica could be reached, or if the queried replica refused the command.
pub(crate) fn run(command: &FleetCommand) -> io::Result<ExitCode> {
    let (running, path) = match command {
        FleetCommand::Status { running, wait } => return document(running, *wait, None),
        FleetCommand::Init(running) => (running, "/fleet/init"),
        FleetCommand::Restore { running, repair: false } => (running, "/fleet/restore"),
        FleetCommand::Restore { running, repair: true } => (running, "/fleet/restore?repair=1"),
    };
    let change: ChangeReport = ask_first_reachable(running, &known_places(running), (&Method::POST, path))?;
    print_report(&change, running.json, |page| page.title(&change.message), ExitCode::SUCCESS)
}

/// The fleet's document and the state of every replica, with each replica's own response if
/// requested.
#[derive(Serialize, Template)]
#[template(path = "commands/fleet.txt", whitespace = "preserve")]
struct FleetStatus<'a> {
    #[serde(flatten)]
    report: FleetReport,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    answers: Vec<ReplicaAnswer<StatusReport>>,
    /// One line for each site whose replicas serve different versions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    differing: Vec<String>,
    #[serde(skip)]
    judge: Judge<StatusReport>,
    #[serde(skip)]
    running: &'a Running,
}

impl FleetStatus<'_> {
    /// Returns the commands that the operator should run next, each with its reason.
    fn next(&self) -> BTreeMap<String, String> {
        let is_new = self.report.state == ReplicaState::Unknown && self.report.problems.is_empty();
        let sites = self.answers.iter().flat_map(|of| &of.answer).flat_map(|status| &status.sites);
        let accepts = sites.flat_map(|site| &site.next).filter(|step| step.command.iter().any(|word| word == "accept"));
        let steps = is_new.then(NextStep::create_fleet_document).into_iter().chain(accepts.cloned());
        steps.map(|step| (shell_line(self.running.command(&step.command)), step.what)).collect()
    }
}

/// Prints the fleet's document. If `judge` is given, also prints each replica's own response.
fn document(running: &Running, WaitArg { wait }: WaitArg, judge: Option<Judge<StatusReport>>) -> io::Result<ExitCode> {
    let mut report = wait_until_synced(running, &known_places(running), wait.unwrap_or_default())?;
    let answers = judge.map_or_else(|| Ok(Vec::new()), |_| statuses(running))?;
    if judge.is_some() {
        show_answers(&mut report, &answers);
    }
    let differing: Vec<_> = differing(&report.replicas, &answers).into_values().collect();
    let judge = judge.unwrap_or(|_| (true, String::new()));
    let is_healthy = report.is_synced() && differing.is_empty() && answers.iter().all(|of| of.confirms(judge));
    let status = FleetStatus { report, answers, differing, judge, running };
    print_report(&status, running.json, |page| page.append_template(&status), exit_code_for(is_healthy))
}

/// Replaces the versions in the report with the versions in each replica's own response, which is
/// newer than the replica's heartbeat in the store. Also adds [`NO_ADDRESS_NOTE`] to each replica
/// that has no address in `fleet.replicas`.
fn show_answers(report: &mut FleetReport, answers: &[ReplicaAnswer<StatusReport>]) {
    for FleetReplica { replica, why, sites, .. } in &mut report.replicas {
        let is_own = |status: &&StatusReport| status.fleet.as_ref().is_some_and(|fleet| fleet.replica == *replica);
        match answers.iter().filter_map(|of| of.answer.as_ref()).find(is_own) {
            Some(status) => *sites = versions(status),
            // If any address did not respond, it may be the address of this replica.
            None if why.is_none() && answers.iter().all(|of| of.answer.is_some()) => {
                *why = Some(NO_ADDRESS_NOTE.to_owned())
            }
            None => {}
        }
    }
}

/// Returns the version that a replica serves for each site, according to its own response.
fn versions(status: &StatusReport) -> ServedVersions {
    let sites = status.sites.iter();
    sites.map(|site| (site.name.clone(), site.hash.as_deref().map_or("", short_hash).to_owned())).collect()
}

fn replica_line(FleetReplica { replica, state, why, version, .. }: &FleetReplica) -> String {
    let why = why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    // The version is empty if the heartbeat cannot be read.
    let version = if version.is_empty() { String::new() } else { format!(", robotsd {version}") };
    format!("{replica}: {}{why}{version}", state.as_str())
}

fn print_unsynced(page: &mut Page, report: &FleetReport) {
    report.problems.iter().for_each(|problem| page.text(problem));
    for replica in report.replicas.iter().filter(|replica| replica.state != ReplicaState::Synced) {
        let is_late = matches!(replica.state, ReplicaState::Behind | ReplicaState::Missing);
        page.title(&format!("{}{}", replica_line(replica), if is_late { FOLLOWS_NOTE } else { "" }));
    }
    let synced = format!("{} of {} synced", report.synced(), plural(report.replicas.len(), "replica"));
    let seconds = MAX_FOLLOW_WAIT.as_secs();
    let as_read = if report.state == ReplicaState::Stale { " according to the last data from the store" } else { "" };
    let late = format!(
        "after {seconds} s, {synced}{as_read}: to wait for the other replicas, run `robotsd status --fleet --wait 30s`"
    );
    page.title(if report.synced() == report.replicas.len() { &synced } else { &late });
}

/// Waits until every replica is synced, but at most for the time `wait`. Returns the last report.
fn wait_until_synced(running: &Running, places: &[AdminPlace], wait: Duration) -> io::Result<FleetReport> {
    let began = Instant::now();
    loop {
        let report: FleetReport = ask_first_reachable(running, places, (&Method::GET, "/fleet"))?;
        if report.is_synced() || began.elapsed() >= wait {
            return Ok(report);
        }
        thread::sleep(Duration::from_millis(200));
    }
}

/// Returns the addresses of the replicas in the config. The list is empty if the config cannot be
/// read; the command then queries the local robotsd.
fn known_places(running: &Running) -> Vec<AdminPlace> {
    places(running).map(|(_, places)| places).unwrap_or_default()
}

/// Queries the replicas at `places` until one responds. If `places` is empty, queries the robotsd
/// that runs with the config of this command.
fn ask_first_reachable<T: DeserializeOwned>(
    running: &Running,
    places: &[AdminPlace],
    of: AdminCall<'_>,
) -> io::Result<T> {
    let mut unreached = Vec::new();
    for place in places {
        let found = resolve_place(place).map_err(|error| unreached.push(format!("{place}: NOT REACHED: {error}")));
        for place in found.into_iter().flatten() {
            match ask_replica(&place, of) {
                Ok(answer) => return Ok(answer),
                Err(AskError::Refused(_, message)) => {
                    // This replica may have refused the change because a replica that was queried
                    // earlier has already made it, but could not confirm it. The error therefore
                    // contains the messages of all queried replicas.
                    unreached.push(message);
                    return Err(refusal(unreached.join("; ")));
                }
                Err(error) => unreached.push(format!("{place}: {}", replica_error(&error))),
            }
        }
    }
    if unreached.is_empty() { query_running(running, of) } else { Err(refusal(unreached.join("; "))) }
}

/// Accepts a version on every replica. A replica that already serves this version is treated as
/// having confirmed it.
pub(super) fn accept(running: &Running, target: &str, site: &str, hash: &str) -> io::Result<ExitCode> {
    if let Some(code) = decide_in_named_fleet(running, target, site)? {
        return Ok(code);
    }
    let answers = ask_all(&replica_places(running)?, |replica| {
        let refused = match ask_replica(replica, (&Method::POST, target)) {
            Err(error @ AskError::Refused(..)) => error,
            answer => return answer,
        };
        let status: StatusReport = ask_replica(replica, (&Method::GET, "/status"))?;
        let is_live = |live: &String| live.trim_start_matches("sha256:").starts_with(hash);
        let live = status.sites.into_iter().find(|of| of.name == site).and_then(|of| of.hash).filter(is_live);
        let message =
            |live: &String| format!("site {site:?}: version {version} is already live", version = short_hash(live));
        live.map(|live| ChangeReport { kept: true, ..ChangeReport::new(message(&live)) }).ok_or(refused)
    });
    print_answers(running, &answers, judge_change, &[])
}

/// Rolls back every replica. Returns an error if replicas serve different versions, because it is
/// not clear which version the operator wants to replace.
pub(super) fn roll_back(running: &Running, target: &str, site: &str) -> io::Result<ExitCode> {
    let answers = statuses(running)?;
    let fleets = answers.iter().filter_map(|of| of.answer.as_ref()?.fleet.as_ref());
    let latest_report = fleets.min_by_key(|fleet| fleet.state == ReplicaState::Stale);
    if let Some(line) = differing(latest_report.map_or(&[][..], |fleet| &fleet.replicas[..]), &answers).get(site) {
        let accept = shell_line(running.command(&["robotsd", "accept", site, "HASH", "--fleet"]));
        let how = match places(running)? {
            (true, _) => format!("publish one of these versions on all replicas with `{accept}`"),
            (false, _) => "roll back each replica that serves the unwanted version, with --admin PLACE".to_owned(),
        };
        return Err(refusal(format_args!(
            "{line}; no replica was rolled back, because it is not clear which version is unwanted: {how}"
        )));
    }
    // The request contains the hash of the version to restore. Without the hash, a replica that
    // gets the request twice would return to the version that was rolled back.
    let sites = answers.iter().flat_map(|of| &of.answer).flat_map(|status| &status.sites);
    let before = sites.filter(|of| of.name == site).find_map(|of| of.before.as_deref());
    let hash = before.map(|before| format!("&hash={}", short_hash(before))).unwrap_or_default();
    let by_store = decide_in_named_fleet(running, &format!("{target}{hash}"), site)?;
    by_store.map_or_else(|| report(running, (&Method::POST, target), judge_change), Ok)
}

/// Function that describes a response: `true` if the response reports no problem, and a line of
/// text.
type Judge<T> = fn(&T) -> (bool, String);

pub(super) fn report<T>(running: &Running, of: AdminCall<'_>, judge: Judge<T>) -> io::Result<ExitCode>
where
    T: DeserializeOwned + Serialize + Send,
{
    print_answers(running, &ask_all_replicas(running, of)?, judge, &[])
}

fn statuses(running: &Running) -> Answers<StatusReport> {
    ask_all_replicas(running, (&Method::GET, "/status"))
}

pub(super) fn status(running: &Running, judge: Judge<StatusReport>, wait: WaitArg) -> io::Result<ExitCode> {
    if places(running)?.0 {
        return document(running, wait, Some(judge));
    }
    let answers = statuses(running)?;
    let differing: Vec<_> = differing(&[], &answers).into_values().collect();
    print_answers(running, &answers, judge, &differing)
}

pub(super) fn board(running: &Running, query: &BoardQuery) -> io::Result<BoardReport> {
    let answers = ask_all_replicas(running, (&Method::GET, &query.at(ROWS_PATH)))?;
    Ok(join(answers, query, seconds(SystemTime::now())))
}

fn judge_change(change: &ChangeReport) -> (bool, String) {
    let change_warning =
        change.change_warning().map(|change_warning| format!("; {change_warning}")).unwrap_or_default();
    (change.problem.is_none(), format!("{}{change_warning}", change.message))
}

/// Prints one line per replica. Appends `unanswered` to the line of each replica that did not
/// respond.
fn print_each<T>(page: &mut Page, answers: &[ReplicaAnswer<T>], judge: Judge<T>, unanswered: &str) {
    for of in answers {
        page.title(&format!("{}{}", of.replica_message(judge), if of.answer.is_none() { unanswered } else { "" }));
    }
}

/// Prints the responses, and then `faults`. Each fault describes a difference between the replicas.
fn print_answers<T: Serialize>(
    running: &Running,
    answers: &[ReplicaAnswer<T>],
    judge: Judge<T>,
    faults: &[String],
) -> io::Result<ExitCode> {
    let confirmed = answers.iter().filter(|of| of.confirms(judge)).count();
    let code = if answers.iter().any(|of| of.answer.is_none()) {
        ExitCode::from(FAILED)
    } else {
        exit_code_for(confirmed == answers.len() && faults.is_empty())
    };
    let text = |page: &mut Page| {
        print_each(page, answers, judge, "");
        faults.iter().for_each(|fault| page.text(fault));
        page.title(&format!("{confirmed} of {} confirmed", plural(answers.len(), "replica")));
    };
    print_report(&answers, running.json, text, code)
}

/// Returns a line for each site whose replicas serve different versions. For a replica that did not
/// respond, uses the versions in its last heartbeat (`reported`), which may be outdated.
fn differing(reported: &[FleetReplica], answers: &[ReplicaAnswer<StatusReport>]) -> BTreeMap<String, String> {
    let reported = reported.iter().filter(|of| of.state != ReplicaState::Missing);
    let mut replicas: BTreeMap<&str, _> = reported.map(|of| (&*of.replica, of.sites.clone())).collect();
    for (place, status) in answers.iter().filter_map(|of| Some((&*of.replica, of.answer.as_ref()?))) {
        replicas.insert(status.fleet.as_ref().map_or(place, |fleet| &*fleet.replica), versions(status));
    }
    let mut served: BTreeMap<String, BTreeMap<String, Vec<&str>>> = BTreeMap::new();
    for (replica, sites) in &replicas {
        for (site, hash) in sites.iter() {
            let hash = if hash.is_empty() { "none".to_owned() } else { short_hash(hash).to_owned() };
            served.entry(site.to_owned()).or_default().entry(hash).or_default().push(replica);
        }
    }
    served.retain(|_, of_site| of_site.len() > 1);
    let on = |(hash, replicas): (String, Vec<&str>)| format!("{hash} on {}", replicas.join(", "));
    let lines = served.into_iter().map(|(site, of_site)| {
        let shown = of_site.into_iter().map(on).collect::<Vec<_>>().join("; ");
        let line = format!("site {site:?}: replicas serve different versions: {shown}");
        (site, line)
    });
    lines.collect()
}

/// Returns two values: whether the fleet has a name, and the list of its replicas' addresses.
fn places(running: &Running) -> io::Result<(bool, Vec<AdminPlace>)> {
    let unknown = || {
        refusal(
            "--fleet needs the config with the replicas of the fleet ([fleet] replicas): specify the config with \
             --config FILE",
        )
    };
    let path = running.config_path().ok_or_else(unknown)?;
    replicas(&path).map_err(refusal)
}

type Answers<T> = io::Result<Vec<ReplicaAnswer<T>>>;

fn ask_all_replicas<T: DeserializeOwned + Send>(running: &Running, of: AdminCall<'_>) -> Answers<T> {
    Ok(ask_all(&replica_places(running)?, |replica| ask_replica(replica, of)))
}

/// Returns the addresses of the replicas that the config lists. If the config lists no addresses,
/// returns the address of the robotsd that runs with the config.
fn replica_places(running: &Running) -> io::Result<Vec<AdminPlace>> {
    let (_, mut places) = places(running)?;
    if places.is_empty() {
        places.push(running.place().map_err(refusal)?);
    }
    Ok(places)
}
