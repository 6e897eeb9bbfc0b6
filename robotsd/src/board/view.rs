//! The board of a request: of which sites, over which time, of this process or of several that are merged.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use tower_robots::agent::Registry;

use super::day::DayRows;
use super::history::History;
use super::report::{BoardReport, SiteBoard};
use super::row::{DAY, Second, written};
use super::summary::{Evidence, Period, never_hit, sum_up, with_balance};
use super::table::{Board, SiteNow};
use crate::word_enum::word_enum;

/// Sites whose crawlers are shown together; of more, one is named.
const MOST_SITES: usize = 50;

/// How long before a period reads are looked for.
const EARLIER: Second = 14 * DAY;

/// The query of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BoardQuery {
    /// Every site where it is none.
    pub(crate) site: Option<String>,
    pub(crate) span: BoardSpan,
}

word_enum! {
    /// The time that is counted.
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
    /// The report of the board now. Blocks while files are read.
    pub(crate) fn report(&self, query: &BoardQuery, now: Second) -> BoardReport {
        let settings = self.settings;
        let period = query.span.ending(now);
        let replicas = settings.replicas.get();
        let mut report = begin(period, settings.sees_all, replicas, 1);
        if !self.is_kept() {
            let since = written(self.since);
            report.notes.push(format!("There is no state_dir: this covers the life of the process, since {since}."));
        }
        if replicas > 1 {
            report.notes.push(format!(
                "This is one of {replicas} replicas, and the others see reads too: `robotsd board --merge` joins their files."
            ));
        }
        report.notes.extend(self.troubles());
        let evidence = if settings.sees_all && replicas == 1 { Evidence::Complete } else { Evidence::Partial };
        let sites = self.sites_now();
        for (site, SiteNow { version, content, traffic, registry }) in chosen(sites, query, &mut report.notes) {
            let from = period.from.saturating_sub(EARLIER);
            let rows = self.rows(&site, from, period.to);
            let never_hit = content.map(|content| never_hit(&content, &rows, from, replicas));
            let rows = [rows];
            let board = sum_up(&site, &rows, period, evidence, version.as_deref());
            let board = with_balance(board, &rows, period, &registry);
            report.sites.push(SiteBoard { traffic, never_hit, ..board });
        }
        report
    }
}

/// The report that the files of several processes make together. Blocks.
///
/// # Errors
///
/// If a folder is named twice, or holds no board.
pub(crate) fn merge(folders: &[PathBuf], query: &BoardQuery, now: Second) -> Result<BoardReport, String> {
    let mut seen = BTreeSet::new();
    let mut histories = Vec::new();
    for folder in folders {
        let shown = folder.display();
        let real = folder.canonicalize().map_err(|error| format!("{shown}: {error}"))?;
        if !seen.insert(real) {
            return Err(format!("{shown} is named twice: its requests would count twice"));
        }
        let history = History::of_folder(folder);
        let history = history.ok_or_else(|| format!("{shown}: there is no board: name the state_dir of a robotsd"))?;
        histories.push(history);
    }
    let period = query.span.ending(now);
    let names: BTreeSet<String> = histories.iter().flat_map(History::sites).collect();
    let mut report = begin(period, true, 1, histories.len());
    let sites = chosen(names.into_iter().map(|name| (name, ())).collect(), query, &mut report.notes);
    for (site, ()) in sites {
        let processes: Vec<DayRows> = histories
            .iter()
            .map(|history| history.range(&site, period.from.saturating_sub(EARLIER), period.to, histories.len()))
            .collect();
        let lines = || processes.iter().filter_map(|process| process.site.as_ref());
        let replicas = lines().map(|line| line.replicas).max().unwrap_or(1);
        let sees_all = lines().count() == processes.len() && lines().all(|line| line.sees_all);
        report.sees_all &= sees_all;
        report.replicas = report.replicas.max(replicas);
        if processes.len() < replicas {
            report.notes.push(format!(
                "Site {site:?} has {replicas} replicas, and {} are counted here: reads by way of the others are missing.",
                processes.len()
            ));
        }
        let evidence = if sees_all && processes.len() >= replicas { Evidence::Complete } else { Evidence::Partial };
        let live = processes.iter().flat_map(|process| &process.watches).max_by_key(|watch| watch.to);
        let live = live.and_then(|watch| watch.version.clone());
        let board = sum_up(&site, &processes, period, evidence, live.as_deref());
        // The files name no registry: services that another one knows count where they have sent visitors.
        report.sites.push(with_balance(board, &processes, period, Registry::builtin()));
    }
    Ok(report)
}

fn begin(period: Period, sees_all: bool, replicas: usize, counted_replicas: usize) -> BoardReport {
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

/// The sites that are requested, as far as they can be shown together.
fn chosen<T>(mut sites: Vec<(String, T)>, query: &BoardQuery, notes: &mut Vec<String>) -> Vec<(String, T)> {
    if let Some(wanted) = &query.site {
        sites.retain(|(site, _)| site == wanted);
    } else if sites.len() > MOST_SITES {
        notes
            .push(format!("There are {} sites, and {MOST_SITES} are shown: name another with site=NAME.", sites.len()));
        sites.truncate(MOST_SITES);
    }
    sites
}

impl History {
    /// The files of a state directory, or of its folder for the board.
    fn of_folder(folder: &Path) -> Option<Self> {
        let below = Self::below(folder);
        if !below.sites().is_empty() {
            return Some(below);
        }
        let itself = Self::Files(folder.to_owned());
        (!itself.sites().is_empty()).then_some(itself)
    }
}
