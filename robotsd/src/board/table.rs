//! Collects the counts of a process's workers in a table, together with the periods in which
//! every fetch of robots.txt was recorded (watches). The control thread adds to the table once per
//! second, and a blocking thread writes the counts to files once per minute.
//!
//! Counts are lost if there are too many rows, for example because writing fails for a long time.
//! The table then records a gap. Without the gap, a crawler whose fetch of robots.txt was not
//! counted could be reported as ignoring robots.txt.
//!
//! **The history is locked while counts are written to files and while counts are read.** A reader
//! therefore finds each count exactly once, in the table or in the files. Old files are removed and
//! folded without the lock, because each file is removed or replaced in one step.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower_robots::agent::Registry;
use tower_robots::live::Content;

use super::day::{DayRows, SiteLine};
use super::history::{Added, History, Retention, mark_folded, unfolded};
use super::recorder::{Counted, MAX_UNREGISTERED, OTHER_CRAWLERS, claim_result, cut, row_of, written};
use super::report::{RecentTraffic, TrafficTotals, TrafficWindow};
use super::requested_paths::RequestedPaths;
use super::row::{DAY, HOUR, MINUTE, RowKey, Second, day_of, hour_of};
use super::visitors::Service;
use super::watch::{Sight, Watch, Watches};
use crate::config::BoardConfig;
use crate::counting::{PageTotals, VisitorTotals};

/// Maximum number of unwritten rows of all sites together.
pub(crate) const MAX_LIVE: usize = 65_536;

/// Length of the period that [`most_requested`](Board::most_requested) covers, in seconds.
const WEEK: Second = 7 * DAY;

/// Maximum number of concurrent readers of the history. Every reader blocks a thread, possibly for
/// a long time if the file system hangs.
const MAX_READERS: usize = 4;

#[derive(Debug)]
pub(crate) struct Board {
    pub(super) settings: BoardConfig,
    /// Folder of the board's files; `None` if there is no state directory.
    folder: Option<PathBuf>,
    readers: Arc<Semaphore>,
    /// Time when the process began to count.
    pub(super) since: Second,
    /// Rows that were moved out of the table. Lock this before `table`, and hold the lock while
    /// counts are moved, because readers must find every count exactly once.
    history: Mutex<History>,
    table: Mutex<Table>,
    /// Whether the process is ending. An ending process leaves the removal and folding of old files
    /// to the next process.
    is_ending: AtomicBool,
}

#[derive(Debug, Default)]
struct Table {
    sites: HashMap<String, SiteTable>,
    /// Number of unwritten rows of all sites.
    rows: usize,
    written: Second,
    pruned: Second,
    is_urgent: bool,
    /// Error of the last write, if it failed.
    problem: Option<String>,
    /// Error of the last attempt to remove or fold old files. The next write tries again.
    cleanup_outcome: Option<String>,
    lost: u64,
}

#[derive(Debug, Default)]
struct SiteTable {
    counted: DayRows,
    /// Totals per service at the last call of `add_visitors`. The next call adds only the
    /// difference.
    visitors_before: VisitorTotals,
    /// Totals per crawler at the last call of `add_pages`. The next call adds only the difference.
    pages_before: PageTotals,
    unregistered: UnregisteredNames,
    watches: Watches,
    traffic: TrafficWindow,
    live: Option<Arc<Content>>,
    registry: Arc<Registry>,
    /// Whether the site is no longer served. The entry is removed as soon as its counts are
    /// written.
    is_gone: bool,
}

impl SiteTable {
    fn is_changed(&self) -> bool {
        !self.counted.is_empty() || self.watches.are_changed()
    }

    fn with_watches(&self, counted: DayRows) -> DayRows {
        DayRows { watches: self.watches.list.clone(), lost: self.watches.lost.clone(), ..counted }
    }

    /// Returns the counts, and removes them from the table. The result also contains copies of the
    /// watches, because the table keeps its watches until they are written.
    fn take(&mut self) -> DayRows {
        let counted = std::mem::take(&mut self.counted);
        self.with_watches(counted)
    }

    /// Adds the counts of a worker, up to `most` rows. Returns the number of requests that could
    /// not be counted.
    fn add_counted(&mut self, now: Second, counted: Counted, most: usize) -> u64 {
        let mut lost = counted.lost;
        if !counted.requested.is_empty() {
            self.counted.requested.entry(day_of(now)).or_default().merge(&counted.requested);
        }
        let rows = &mut self.counted.rows;
        for (mut key, row) in counted.rows {
            if row.operator.is_empty() && !self.unregistered.admit(key.begin, &key.crawler) {
                OTHER_CRAWLERS.clone_into(&mut key.crawler);
            }
            if rows.len() < most || rows.contains_key(&key) {
                rows.entry(key).or_default().merge(&row);
            } else {
                lost += row.allowed + row.disallowed + row.reads.iter().map(|read| read.count).sum::<u64>();
            }
        }
        lost
    }

    /// Adds the visitors since the last call. If the total of a service is lower than at the last
    /// call, the site's name now belongs to another site. The counts of the other site began at
    /// zero, so its whole total is added. While crawlers are not recognised, visitors are not
    /// counted, because they cannot be distinguished from crawlers.
    fn add_visitors(&mut self, now: Second, sight: Sight, totals: VisitorTotals) {
        for (service, total) in &totals {
            let before = self.visitors_before.get(service).copied().filter(|before| before <= total).unwrap_or(0);
            if *total > before && sight == Sight::Clear {
                self.counted.visitors.add(hour_of(now), Service::from(&**service), total - before);
            }
        }
        self.visitors_before = totals;
    }

    fn add_pages(&mut self, now: Second, totals: PageTotals) {
        for (reader, total) in &totals {
            let before = self.pages_before.get(reader).filter(|before| *before <= total);
            let pages = total - before.unwrap_or(&0);
            if pages > 0 {
                let (crawler, identity) = (cut(reader.name()).to_owned(), claim_result(reader.identity));
                let key = RowKey { begin: hour_of(now), crawler, identity };
                let row = self.counted.rows.entry(key).or_insert_with(|| row_of(&reader.agent));
                row.pages = row.pages.saturating_add(pages);
            }
        }
        self.pages_before = totals;
    }
}

/// Unregistered crawlers that have their own row in the current hour, including crawlers whose rows
/// are already written. Their number is limited, because clients can invent names.
#[derive(Debug, Default)]
pub(super) struct UnregisteredNames {
    hour: Second,
    names: HashSet<String>,
}

impl UnregisteredNames {
    /// Reports whether the crawler gets its own row in this hour.
    pub(super) fn admit(&mut self, hour: Second, crawler: &str) -> bool {
        if hour > self.hour {
            *self = Self { hour, names: HashSet::new() };
        }
        self.names.contains(crawler) || self.names.len() < MAX_UNREGISTERED && self.names.insert(crawler.to_owned())
    }
}

/// Counts of a site since the previous call of `Board::add`, and the current state of the site.
#[derive(Debug, Default)]
pub(crate) struct SiteUpdate {
    pub(crate) site: String,
    pub(crate) counted: Vec<Counted>,
    /// `None` if there is no live version, or if each host has its own version.
    pub(crate) version: Option<String>,
    pub(crate) content: Option<Arc<Content>>,
    /// Totals of the traffic. `None` in most calls, because totals are stored only every few
    /// seconds.
    pub(crate) traffic: Option<TrafficTotals>,
    /// Visitors that services referred since the process started.
    pub(crate) visitors: VisitorTotals,
    /// Pages that crawlers received since the process started.
    pub(crate) pages: PageTotals,
    /// Registry of the site. If the registry is missing, visitors are not counted.
    pub(crate) registry: Option<Arc<Registry>>,
    /// Whether fetches of robots.txt are recorded. While enforcement is off or no version is live,
    /// crawlers are not recognised, so fetches are not recorded.
    pub(crate) sight: Sight,
    /// Whether the hosts of the site have changed since the previous call.
    pub(crate) has_new_hosts: bool,
}

#[derive(Debug)]
pub(crate) struct SiteState {
    pub(crate) version: Option<String>,
    pub(crate) content: Option<Arc<Content>>,
    pub(crate) traffic: Option<RecentTraffic>,
    pub(crate) registry: Arc<Registry>,
}

impl SiteUpdate {
    pub(crate) fn new(site: &str, counted: Vec<Counted>, content: Option<Arc<Content>>, sight: Sight) -> Self {
        let version = content.as_ref().map(|content| written(content.hash()));
        Self { site: site.to_owned(), counted, version, content, sight, ..Self::default() }
    }

    /// Adds the totals of the site's traffic. Does nothing if no totals are due to be stored at
    /// `now`.
    pub(crate) fn with_traffic(self, now: Second, totals: impl FnOnce() -> TrafficTotals) -> Self {
        Self { traffic: TrafficWindow::is_due(now).then(totals), ..self }
    }
}

impl Board {
    /// Creates a board. Without a state directory, all counts are lost when the process ends.
    pub(crate) fn new(settings: BoardConfig, state_dir: Option<&Path>, now: Second) -> Self {
        let folder = state_dir.map(History::folder_below);
        let history = folder.clone().map_or_else(History::memory, History::Files);
        let table = Table { written: now, ..Table::default() };
        let readers = Arc::new(Semaphore::new(MAX_READERS));
        Self {
            settings,
            folder,
            readers,
            since: now,
            history: Mutex::new(history),
            table: Mutex::new(table),
            is_ending: AtomicBool::new(false),
        }
    }

    /// Adds the counts since the last call. Returns whether the table should be written to files.
    /// Never waits for a file.
    pub(crate) fn add(&self, now: Second, moments: impl IntoIterator<Item = SiteUpdate>) -> bool {
        let mut table = self.table.lock();
        let mut served = HashSet::new();
        for moment in moments {
            served.insert(moment.site.clone());
            table.add(now, moment);
        }
        for (site, held) in &mut table.sites {
            let was_gone = std::mem::replace(&mut held.is_gone, !served.contains(site));
            if held.is_gone && !was_gone {
                // The site is no longer served. Its entry is removed when its counts are written.
                // The last watch must end before the current second, because another server may
                // already respond to requests for this site.
                held.watches.interrupt(now);
            }
        }
        // After a failed write, the next attempt is made sooner.
        let pause = if table.problem.is_some() { MINUTE / 2 } else { MINUTE };
        let is_due = now >= table.written + pause || now < table.written;
        std::mem::take(&mut table.is_urgent) || is_due
    }

    /// Writes the changes of all sites. Blocks the thread.
    ///
    /// # Errors
    ///
    /// Returns the first error. The next write retries the counts that were not written.
    pub(crate) fn write(&self, now: Second) -> Result<(), String> {
        let (sites, must_prune) = self.table.lock().begin_to_write(now);
        let mut outcome = Ok(());
        let mut history = self.history.lock();
        // During an upgrade, the previous process may still be writing its last counts.
        let _alone = history.lock();
        for site in sites {
            outcome = outcome.and(self.write_site(&mut history, &site));
        }
        self.table.lock().sites.retain(|_, held| !held.is_gone || held.is_changed());
        let mut cleanup_outcome = None;
        if self.folder.is_none() {
            cleanup_outcome = Some(self.prune(now, &mut history));
        }
        drop(history);
        // Old files are removed and folded without the lock, so that readers do not wait. This is
        // safe, because each file is removed or replaced as a whole, and only this thread writes
        // files.
        if let Some(folder) = &self.folder
            && must_prune
            && !self.is_ending()
        {
            let mut files = History::Files(folder.clone());
            let pruned = self.prune(now, &mut files);
            cleanup_outcome = Some(self.fold(now, &mut files).and(pruned));
        }
        let mut table = self.table.lock();
        table.problem = outcome.as_ref().err().cloned();
        if let Some(cleanup_outcome) = cleanup_outcome {
            table.cleanup_outcome = cleanup_outcome.err();
        }
        outcome.and(table.cleanup_outcome.clone().map_or(Ok(()), Err))
    }

    /// Writes the counts of a site. If a day cannot be written, its counts are put back into the
    /// table.
    fn write_site(&self, history: &mut History, site: &str) -> Result<(), String> {
        let taken = self.table.lock().take(site);
        let mut outcome = Ok(());
        let mut unwritten: Option<Vec<Watch>> = None;
        for (day, mut rows) in by_day(taken, self.site_line(site)) {
            if let Some(unwritten) = &mut unwritten {
                // An earlier day could not be written. Its watches must not be written to the file
                // of this day, because the file would then claim that every fetch on the earlier
                // day was counted.
                unwritten.append(&mut rows.watches);
                if rows.is_empty() {
                    continue;
                }
            }
            let problem = match history.add(site, day, &rows) {
                Ok(Added::Complete) => continue,
                Ok(Added::WithoutDamagedCopy(error)) => {
                    format!(
                        "the board of site {site:?}: a file is damaged, and its copy (.jsonl.damaged) could not be \
                         written: {error}"
                    )
                }
                Err(error) => {
                    unwritten.get_or_insert_default().append(&mut rows.watches);
                    self.table.lock().put_back(site, rows);
                    format!("the board of site {site:?} cannot be written: {error}")
                }
            };
            outcome = outcome.and(Err(problem));
        }
        if let Some(watches) = unwritten {
            self.table.lock().sites.entry(site.to_owned()).or_default().watches.put_back(watches);
        }
        outcome
    }

    fn prune(&self, now: Second, history: &mut History) -> Result<(), String> {
        let BoardConfig { keep, keep_days, size, .. } = self.settings;
        let retention = Retention { hours: keep.as_secs(), days: keep_days.as_secs(), size };
        let pruned = history.prune(now, retention, MAX_LIVE);
        pruned.map_err(|error| format!("old files of the board cannot be removed: {error}"))
    }

    fn fold(&self, now: Second, files: &mut History) -> Result<(), String> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let before = day_of(now.saturating_sub(self.settings.keep.as_secs()));
        let failed =
            |error| format!("the board's hourly counts of past days cannot be merged into daily counts: {error}");
        let mut outcome = Ok(());
        for file in unfolded(folder, before).map_err(failed)? {
            if self.is_ending() {
                // [`mark_folded`] is not called, because the next process must fold the remaining
                // files.
                return outcome;
            }
            match files.fold(&file) {
                Ok(Added::Complete) => {}
                Ok(Added::WithoutDamagedCopy(error)) | Err(error) => outcome = outcome.and(Err(failed(error))),
            }
        }
        outcome.and_then(|()| mark_folded(folder, before).map_err(failed))
    }

    /// Records that the process is ending. An ending process still writes counts, but leaves the
    /// removal and folding of old files to the next process.
    pub(crate) fn end(&self) {
        self.is_ending.store(true, Ordering::Release);
    }

    fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::Acquire)
    }

    /// Returns the rows of a site, including unwritten rows. Blocks the thread.
    pub(crate) fn rows(&self, site: &str, from: Second, to: Second) -> DayRows {
        let history = self.history.lock();
        let mut all = history.range(site, from, to, self.settings.replicas.get());
        all.site = Some(self.site_line(site));
        if let Some(held) = self.table.lock().sites.get(site) {
            all.merge(&held.with_watches(held.counted.clone()));
        }
        all
    }

    /// Returns the paths that verified search engines requested most in the last seven days. Blocks
    /// the thread.
    pub(crate) fn most_requested(&self, site: &str, now: Second) -> Vec<String> {
        let mut all = RequestedPaths::default();
        self.rows(site, now.saturating_sub(WEEK), now).requested.values().for_each(|day| all.merge(day));
        all.most_requested().map(str::to_owned).collect()
    }

    /// Returns the served sites, sorted by name.
    pub(crate) fn served_sites(&self) -> Vec<(String, SiteState)> {
        let table = self.table.lock();
        let now = |held: &SiteTable| SiteState {
            version: held.watches.list.last().and_then(|watch| watch.version.clone()),
            content: held.live.clone(),
            traffic: held.traffic.traffic(),
            registry: Arc::clone(&held.registry),
        };
        let served = table.sites.iter().filter(|(_, held)| !held.is_gone);
        let mut sites: Vec<_> = served.map(|(site, held)| (site.clone(), now(held))).collect();
        sites.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        sites
    }

    /// Returns the reasons why some counts are not stored.
    pub(crate) fn problems(&self) -> Vec<String> {
        let table = self.table.lock();
        let lost = (table.lost > 0).then(|| {
            format!(
                "the board did not count {lost} requests of crawlers, because the board had too many rows",
                lost = table.lost
            )
        });
        table.problem.iter().chain(&table.cleanup_outcome).cloned().chain(lost).collect()
    }

    pub(crate) fn last_write_succeeded(&self) -> bool {
        self.table.lock().problem.is_none()
    }

    pub(crate) const fn is_persistent(&self) -> bool {
        self.folder.is_some()
    }

    /// Waits until fewer than [`MAX_READERS`] callers read the history, and returns a permit. The
    /// caller must hold the permit while it reads the history.
    pub(crate) async fn reader(&self) -> Option<OwnedSemaphorePermit> {
        // The semaphore is never closed.
        Arc::clone(&self.readers).acquire_owned().await.ok()
    }

    pub(crate) fn files_description(&self) -> String {
        let files = |folder: &PathBuf| format!("the files of the board in {folder}", folder = folder.display());
        self.folder.as_ref().map_or_else(|| "the board".to_owned(), files)
    }

    fn site_line(&self, site: &str) -> SiteLine {
        SiteLine { name: site.to_owned(), sees_all: self.settings.sees_all, replicas: self.settings.replicas.get() }
    }
}

impl Table {
    fn add(&mut self, now: Second, moment: SiteUpdate) {
        let begin = || SiteTable { watches: Watches::of(now), ..SiteTable::default() };
        let site = self.sites.entry(moment.site).or_insert_with(begin);
        if std::mem::take(&mut site.is_gone) {
            site.watches.resume(now);
        } else if moment.has_new_hosts {
            site.watches.interrupt(now);
        }
        let before = site.counted.rows.len();
        let most = MAX_LIVE.saturating_sub(self.rows - before);
        let lost = moment.counted.into_iter().map(|counted| site.add_counted(now, counted, most)).sum::<u64>();
        if let Some(totals) = moment.traffic {
            site.traffic.add(now, totals);
        }
        site.live = moment.content;
        site.add_visitors(now, moment.sight, moment.visitors);
        site.add_pages(now, moment.pages);
        if let Some(registry) = moment.registry {
            site.registry = registry;
        }
        self.rows += site.counted.rows.len() - before;
        self.lost += lost;
        let sight = if lost > 0 { Sight::Blind } else { moment.sight };
        // A change of the live version is written without delay, so that it is not lost if the
        // process is killed.
        self.is_urgent |= site.watches.add(now, moment.version.as_deref(), sight);
        self.is_urgent |= self.rows > MAX_LIVE / 2;
    }

    /// Returns the sites to write now, and whether to remove old files.
    fn begin_to_write(&mut self, now: Second) -> (Vec<String>, bool) {
        self.written = now;
        let must_prune = self.cleanup_outcome.is_some() || now >= self.pruned + HOUR || now < self.pruned;
        if must_prune {
            self.pruned = now;
        }
        (self.sites.keys().cloned().collect(), must_prune)
    }

    fn take(&mut self, site: &str) -> DayRows {
        let Some(held) = self.sites.get_mut(site).filter(|held| held.is_changed()) else { return DayRows::default() };
        let taken = held.take();
        self.rows -= taken.rows.len();
        held.watches.forget_written();
        taken
    }

    fn put_back(&mut self, site: &str, rows: DayRows) {
        let held = self.sites.entry(site.to_owned()).or_default();
        let before = held.counted.rows.len();
        held.watches.put_back_lost(rows.lost);
        held.counted.merge(&DayRows { site: None, lost: Vec::new(), ..rows });
        self.rows += held.counted.rows.len() - before;
    }
}

/// Splits rows by day. A [`Watch`] that covers several days is stored with its last day. If an
/// earlier day has counts, the watch is split at the end of that day. Without the split, the last
/// day's file would claim that the earlier day is complete, even if the earlier day's file is
/// missing.
fn by_day(rows: DayRows, site: SiteLine) -> BTreeMap<Second, DayRows> {
    let mut days: BTreeMap<Second, DayRows> = BTreeMap::new();
    for (key, row) in rows.rows {
        days.entry(day_of(key.begin)).or_default().rows.insert(key, row);
    }
    for (day, requested) in rows.requested {
        days.entry(day).or_default().requested.insert(day, requested);
    }
    for (day, visitors) in rows.visitors.by_day() {
        days.entry(day).or_default().visitors = visitors;
    }
    let counted: Vec<Second> = days.keys().copied().collect();
    for mut watch in rows.watches {
        for day in &counted {
            let last = day + DAY - 1;
            if (watch.from..watch.to).contains(&last) {
                days.entry(*day).or_default().watches.push(Watch { to: last, ..watch.clone() });
                (watch.from, watch.live_since) = (last, None);
            }
        }
        days.entry(day_of(watch.to)).or_default().watches.push(watch);
    }
    for lost in rows.lost {
        days.entry(day_of(lost.from)).or_default().lost.push(lost);
    }
    days.values_mut().for_each(|day| day.site = Some(site.clone()));
    days
}
