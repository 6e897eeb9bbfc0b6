//! Builds the board for a query, from the counts of this process or of several processes. The rows
//! of other processes are read from files or fetched over HTTP.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize};
use tower_robots::agent::Registry;

use super::day::DayRows;
use super::history::History;
use super::report::{BoardReport, SiteBoard};
use super::row::{DAY, HOUR, Second, written};
use super::summary::{Evidence, Period, never_hit, sum_up, with_balance};
use super::table::{Board, SiteState};
use crate::render::plural;
use crate::report::ReplicaAnswer;
use crate::word_enum::word_enum;

/// Maximum number of sites in a report. All other sites can be queried one at a time.
const MAX_SITES: usize = 50;

/// Length of the time before a report's period, in seconds. Fetches of robots.txt in this time are
/// used to judge the requests in the period.
const READ_LOOKBACK: Second = 14 * DAY;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BoardQuery {
    /// The requested site; `None` for all sites.
    pub(crate) site: Option<String>,
    pub(crate) span: BoardSpan,
    /// Whether to include all replicas of the fleet.
    pub(crate) is_of_fleet: bool,
}

impl BoardQuery {
    pub(crate) fn at(&self, path: &str) -> String {
        let site = self.site.as_ref().map(|site| format!("&site={}", utf8_percent_encode(site, NON_ALPHANUMERIC)));
        let fleet = if self.is_of_fleet { "&fleet=1" } else { "" };
        format!("{path}?period={}{}{fleet}", self.span.as_str(), site.unwrap_or_default())
    }
}

/// Response to `GET /board/rows`: the counts of one replica, for a board of all replicas.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct ReplicaRows {
    pub(crate) replica: String,
    /// Unique ID of the process. A host name may resolve to several addresses of the same process,
    /// which must be counted only once.
    pub(crate) process: String,
    /// Names of the replicas that this replica knows from the fleet's store.
    pub(crate) heard: Vec<String>,
    pub(crate) notes: Vec<String>,
    pub(crate) sites: BTreeMap<String, DayRows>,
}

word_enum! {
    /// Length of the period that the board shows.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
    pub(crate) enum BoardSpan {
        /// The last 24 hours, hour by hour
        #[default]
        #[value(name = "24h")]
        Day = "24h",
        /// The last 30 days, day by day
        #[value(name = "30d")]
        Month = "30d",
    }
}

impl BoardSpan {
    const fn ending(self, now: Second) -> Period {
        match self {
            Self::Day => Period::day(now),
            Self::Month => Period::days(now, 30),
        }
    }
}

impl Board {
    /// Builds the report of the board at `now`. Blocks while it reads files.
    pub(crate) fn report(&self, query: &BoardQuery, now: Second) -> BoardReport {
        let settings = self.settings;
        let period = query.span.ending(now);
        let replicas = settings.replicas.get();
        let mut report = new_report(period, settings.sees_all, replicas, 1);
        report.notes = self.notes();
        if replicas > 1 {
            report.notes.push(format!(
                "This report is from one of {replicas} replicas: use `robotsd board --fleet` to ask all of them, or \
                 `robotsd board --merge` to merge their files."
            ));
        }
        let evidence = if settings.sees_all && replicas == 1 { Evidence::Complete } else { Evidence::Partial };
        let sites = self.served_sites();
        for (site, SiteState { version, content, traffic, registry }) in select_sites(sites, query, &mut report.notes) {
            let from = period.from.saturating_sub(READ_LOOKBACK);
            let rows = self.rows(&site, from, period.to);
            let never_hit = content.map(|content| never_hit(&content, &rows, from, replicas));
            let rows = [rows];
            let board = sum_up(&site, &rows, period, evidence, version.as_deref());
            let board = with_balance(board, &rows, period, &registry);
            report.sites.push(SiteBoard { traffic, never_hit, ..board });
        }
        report
    }

    /// Returns notes about periods and counts that are missing from the report.
    fn notes(&self) -> Vec<String> {
        let since = written(self.since);
        let unkept = format!(
            "There is no state_dir, so the report covers only the time since {since}, when this process started."
        );
        (!self.is_persistent()).then_some(unkept).into_iter().chain(self.problems()).collect()
    }

    /// Returns the rows in the period of the query, and fetches of robots.txt before that period.
    /// Blocks the thread.
    pub(crate) fn rows_of(&self, query: &BoardQuery, now: Second) -> ReplicaRows {
        let period = query.span.ending(now);
        let mut notes = self.notes();
        let sites = select_sites(self.served_sites(), query, &mut notes).into_iter().map(|(site, _)| {
            let mut rows = self.rows(&site, period.from.saturating_sub(READ_LOOKBACK), period.to);
            if period.step == DAY {
                rows.fold();
            }
            // The clocks of replicas may differ, so the hour before the period is kept, too.
            rows.keep_reads_before(period.from.saturating_sub(HOUR));
            (site, rows)
        });
        ReplicaRows { sites: sites.collect(), notes, ..ReplicaRows::default() }
    }
}

/// Combines the rows of several replicas. The notes in the report list the replicas that did not
/// respond.
pub(crate) fn join(answers: Vec<ReplicaAnswer<ReplicaRows>>, query: &BoardQuery, now: Second) -> BoardReport {
    let period = query.span.ending(now);
    let none =
        answers.is_empty().then(|| "no replica could be asked, because \"replicas\" in [fleet] is empty".to_owned());
    let (mut counted, mut missing) = (Vec::<ReplicaRows>::new(), Vec::from_iter(none));
    for ReplicaAnswer { replica, answer, error } in answers {
        missing.extend(error.map(|why| format!("{replica}: {why}")));
        match answer {
            Some(of) if !of.sites.values().all(DayRows::is_valid) => missing.push(format!("{replica}: damaged rows")),
            // The response comes from another address of a process that is already counted.
            Some(of) if counted.iter().any(|known| known.process == of.process) => {}
            of => counted.extend(of),
        }
    }
    let is_counted = |name: &&String| counted.iter().any(|of| of.replica == **name);
    let heard: BTreeSet<&String> = counted.iter().flat_map(|of| &of.heard).filter(|name| !is_counted(name)).collect();
    // A replica in `missing` may also be in `heard`, but must be counted only once.
    let known = counted.len() + missing.len().max(heard.len());
    let others = heard.len().saturating_sub(missing.len());
    if missing.is_empty() {
        missing.extend(
            heard.iter().map(|name| format!("{name}: this replica does not answer at any address in fleet.replicas")),
        );
    } else if others > 0 {
        let names: Vec<_> = heard.iter().map(|name| name.as_str()).collect();
        missing.push(format!(
            "{others} of the replicas {names}, which do not answer at any address in fleet.replicas",
            names = names.join(", ")
        ));
    }
    let mut report = new_report(period, true, known, counted.len());
    report.notes.push(format!("Counted: {} of {}.", counted.len(), plural(known, "replica")));
    report.notes.extend(missing.into_iter().map(|of| format!("Not counted: {of}.")));
    let notes = counted.iter().flat_map(|of| of.notes.iter().map(|note| format!("{}: {note}", of.replica)));
    report.notes.extend(notes);
    let names = counted.iter().flat_map(|of| of.sites.keys()).cloned().collect();
    let rows = |site: &str| counted.iter().map(|of| of.sites.get(site).cloned().unwrap_or_default()).collect();
    add_sites(report, query, period, names, rows)
}

/// Builds the report from the files of several processes. Blocks the thread.
///
/// # Errors
///
/// Returns an error if a folder is given twice, or does not contain the board's files.
pub(crate) fn merge(folders: &[PathBuf], query: &BoardQuery, now: Second) -> Result<BoardReport, String> {
    let mut seen = BTreeSet::new();
    let mut histories = Vec::new();
    for folder in folders {
        let shown = folder.display();
        let real = folder.canonicalize().map_err(|error| format!("{shown}: {error}"))?;
        if !seen.insert(real) {
            return Err(format!("{shown} is given twice, so its requests would be counted twice"));
        }
        let history = History::of_folder(folder);
        let history =
            history.ok_or_else(|| format!("{shown}: the folder contains no board: give the state_dir of a robotsd"))?;
        histories.push(history);
    }
    let period = query.span.ending(now);
    let names: BTreeSet<String> = histories.iter().flat_map(History::sites).collect();
    let (from, count) = (period.from.saturating_sub(READ_LOOKBACK), histories.len());
    let rows = |site: &str| histories.iter().map(|of| of.range(site, from, period.to, count)).collect();
    Ok(add_sites(new_report(period, true, count, count), query, period, names, rows))
}

/// Adds sites to a report. `rows` returns, for a site, the rows of each process.
fn add_sites(
    mut report: BoardReport,
    query: &BoardQuery,
    period: Period,
    names: BTreeSet<String>,
    rows: impl Fn(&str) -> Vec<DayRows>,
) -> BoardReport {
    let (counted, known) = (report.counted_replicas, report.replicas);
    for (site, ()) in select_sites(names.into_iter().map(|name| (name, ())).collect(), query, &mut report.notes) {
        let processes = rows(&site);
        let lines = || processes.iter().filter_map(|process| process.site.as_ref());
        let replicas = lines().map(|line| line.replicas).max().unwrap_or(1);
        let sees_all = lines().count() == processes.len() && lines().all(|line| line.sees_all);
        report.sees_all &= sees_all;
        report.replicas = report.replicas.max(replicas);
        if known < replicas {
            report.notes.push(format!(
                "Only {counted} of the {replicas} replicas of site {site:?} are counted, so fetches of robots.txt may \
                 be missing."
            ));
        }
        let evidence = if sees_all && counted >= replicas.max(known) { Evidence::Complete } else { Evidence::Partial };
        let live = processes.iter().flat_map(|process| &process.watches).max_by_key(|watch| watch.to);
        let live = live.and_then(|watch| watch.version.clone());
        let board = sum_up(&site, &processes, period, evidence, live.as_deref());
        // The rows do not contain a registry, so the built-in registry is used. A service that is
        // missing from the built-in registry is included only if it referred visitors.
        report.sites.push(with_balance(board, &processes, period, Registry::builtin()));
    }
    report
}

fn new_report(period: Period, sees_all: bool, replicas: usize, counted_replicas: usize) -> BoardReport {
    BoardReport {
        when: written(period.to),
        from: written(period.from),
        to: written(period.to),
        step_seconds: period.step,
        sees_all,
        replicas,
        counted_replicas,
        ..BoardReport::default()
    }
}

/// Returns at most [`MAX_SITES`] sites.
fn select_sites<T>(mut sites: Vec<(String, T)>, query: &BoardQuery, notes: &mut Vec<String>) -> Vec<(String, T)> {
    if let Some(wanted) = &query.site {
        sites.retain(|(site, _)| site == wanted);
    } else if sites.len() > MAX_SITES {
        notes.push(format!(
            "Only {MAX_SITES} of {count} sites are shown: use site=NAME to see another site.",
            count = sites.len()
        ));
        sites.truncate(MAX_SITES);
    }
    sites
}

impl History {
    /// Opens a board. `folder` is a state directory, or the board's folder in a state directory.
    fn of_folder(folder: &Path) -> Option<Self> {
        let below = Self::below(folder);
        if !below.sites().is_empty() {
            return Some(below);
        }
        let itself = Self::Files(folder.to_owned());
        (!itself.sites().is_empty()).then_some(itself)
    }
}
