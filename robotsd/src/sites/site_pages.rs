//! The pages that the gate of a site watches: the notes about their sources, their copies in the
//! state directory, and the memory limit that all sites share.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;
use tower_robots::check::Page;
use tower_robots::internals::WatchedPages;
use tower_robots::live::VersionHash;

use super::log_events::SiteName;
use crate::files;
use crate::log::{Log, LogEvent, LogLevel};
use crate::pages::{PageSet, held_octets};
use crate::render::plural;
use crate::report::WatchedPagesReport;

/// Name of the pages that sitemaps list, as it follows the word "pages".
const OF_SITEMAPS: &str = "of the sitemaps";

/// Name of the pages that verified search engines request.
const REQUESTED: &str = "that search engines request most";

/// Delay of the first reading of sitemaps, so that it does not slow down the start.
const FIRST: Duration = Duration::from_secs(10);

/// The pages of one site, and notes about sources that could not be read. They outlive configs.
#[derive(Debug)]
pub(super) struct SitePages {
    site: SiteName,
    pub(super) watched: WatchedPages,
    /// Name of the operator's list.
    urls: Mutex<Option<String>>,
    notes: Mutex<BTreeMap<NoteAbout, String>>,
    /// Number of pages in each list when it was last complete, by the name of the list.
    whole: Mutex<BTreeMap<String, usize>>,
    /// Memory that the pages of the sitemaps take, in bytes.
    held: AtomicUsize,
    /// Time of the next read of the sitemaps.
    due: Mutex<Instant>,
    /// Held while the sitemaps are read.
    reading: Arc<tokio::sync::Mutex<()>>,
    log: Log,
}

/// The subject of a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum NoteAbout {
    Expectations,
    Baseline,
    Urls,
    Sitemaps,
    /// Most of the operator's list is gone.
    UrlsLost,
    /// Most of the pages of the sitemaps are gone.
    SitemapsLost,
}

impl SitePages {
    /// Creates an empty set of pages; sitemaps are read after a while for the first time.
    pub(super) fn new(site: &str, log: &Log) -> Self {
        Self {
            site: site.into(),
            watched: WatchedPages::default(),
            urls: Mutex::default(),
            notes: Mutex::default(),
            whole: Mutex::default(),
            held: AtomicUsize::new(0),
            due: Mutex::new(Instant::now() + FIRST),
            reading: Arc::default(),
            log: log.clone(),
        }
    }

    /// Returns a copy of the pages for a site that inherits from this one.
    pub(super) fn of_heir(&self, site: &str) -> Self {
        let (watched, urls) = (self.watched.copied(), Mutex::new(self.urls.lock().clone()));
        Self { watched, urls, held: self.held_of_sitemaps().into(), ..Self::new(site, &self.log) }
    }

    /// Sets the operator's list, by the name of its file.
    pub(super) fn set_urls(&self, file: &str, pages: Vec<Page>) {
        let name = format!("of {file}");
        let before = self.urls.lock().replace(name.clone()).filter(|before| *before != name);
        before.iter().for_each(|before| self.watched.set(before, []));
        self.compare(NoteAbout::UrlsLost, &name, pages.len());
        self.set(&name, pages);
    }

    /// Removes the operator's list.
    pub(super) fn drop_urls(&self) {
        let before = self.urls.lock().take();
        before.iter().for_each(|before| self.watched.set(before, []));
        self.forget([NoteAbout::Urls, NoteAbout::UrlsLost]);
    }

    /// Sets the pages of the sitemaps. The sitemaps list `listed` pages; there may not be memory
    /// for all of them.
    pub(super) fn set_sitemaps(&self, pages: Vec<Page>, listed: usize) {
        self.held.store(held_octets(&pages), Ordering::Relaxed);
        self.compare(NoteAbout::SitemapsLost, OF_SITEMAPS, listed);
        self.set(OF_SITEMAPS, pages);
    }

    /// Removes the pages of the sitemaps.
    pub(super) fn drop_sitemaps(&self) {
        self.held.store(0, Ordering::Relaxed);
        self.watched.set(OF_SITEMAPS, []);
        self.forget([NoteAbout::Sitemaps, NoteAbout::SitemapsLost]);
    }

    /// Returns the memory that the pages of the sitemaps take, in bytes.
    pub(super) fn held_of_sitemaps(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// Returns the number of known pages of the sitemaps.
    pub(super) fn of_sitemaps(&self) -> usize {
        self.count_of(OF_SITEMAPS)
    }

    /// Returns the number of pages in all lists.
    pub(super) fn count(&self) -> usize {
        self.counts().map(|(_, count)| count).sum()
    }

    pub(super) fn set_requested(&self, pages: Vec<Page>) {
        self.set(REQUESTED, pages);
    }

    /// Sets a list, and logs it if it is new.
    fn set(&self, of: &str, pages: Vec<Page>) {
        let is_new = !pages.is_empty() && !self.counts().any(|(known, _)| known == of);
        let count = pages.len();
        self.watched.set(of, pages);
        if is_new {
            self.say(LogLevel::Info, &format!("the gate watches {} {of}", plural(count, "page")));
        }
    }

    /// Notes that a list has less than half of its previous pages. The note stays until the list
    /// has half of them again, or a reload is requested. A gate that watches hardly any pages would
    /// hold nothing back.
    fn compare(&self, about: NoteAbout, of: &str, count: usize) {
        let mut whole = self.whole.lock();
        let had = whole.entry(of.to_owned()).or_insert_with(|| self.count_of(of));
        let is_lost = count.saturating_mul(2) < *had;
        if !is_lost {
            *had = count;
        }
        let note = is_lost.then(|| {
            let count = plural(count, "page");
            format!(
                "the list of pages {of} has {count}, it had {had}: the gate does not watch pages that are not in it; \
                 `robotsd reload` accepts the list as it is"
            )
        });
        drop(whole);
        self.note(about, note);
    }

    fn forget(&self, notes: [NoteAbout; 2]) {
        notes.into_iter().for_each(|about| self.note(about, None));
    }

    fn count_of(&self, of: &str) -> usize {
        self.counts().find(|(known, _)| known == of).map_or(0, |(_, count)| count)
    }

    fn counts(&self) -> impl Iterator<Item = (String, usize)> {
        self.watched.counts().into_iter()
    }

    /// Sets the note about a source that could not be read, and logs it if it is new. `None`
    /// removes the note, which is logged, too.
    pub(super) fn note(&self, about: NoteAbout, note: Option<String>) {
        let mut notes = self.notes.lock();
        let before = match &note {
            Some(note) => notes.insert(about, note.clone()),
            None => notes.remove(&about),
        };
        drop(notes);
        // Without expectations the gate may hold versions back, or let them pass, by mistake.
        let level = if about == NoteAbout::Expectations { LogLevel::Error } else { LogLevel::Warn };
        match (note, before) {
            (Some(note), before) if before.as_ref() != Some(&note) => self.say(level, &note),
            (None, Some(before)) => self.say(LogLevel::Info, &format!("resolved: {before}")),
            _ => {}
        }
    }

    fn say(&self, level: LogLevel, message: &str) {
        let Self { site, log, .. } = self;
        log.say_of(site, level, LogEvent::Gate, format!("{site}: {message}"));
    }

    pub(super) fn notes(&self) -> Vec<String> {
        self.notes.lock().values().cloned().collect()
    }

    pub(super) fn note_about(&self, about: NoteAbout) -> Option<String> {
        self.notes.lock().get(&about).cloned()
    }

    pub(super) fn report(&self) -> Vec<WatchedPagesReport> {
        let report = |(of, count): (String, usize)| WatchedPagesReport { of, count: count as u64 };
        self.counts().map(report).collect()
    }

    /// Reports whether the sitemaps are due. If so, they are due again after `next`.
    pub(super) fn take_due(&self, next: Duration) -> bool {
        let mut due = self.due.lock();
        let is_due = Instant::now() >= *due;
        if is_due {
            *due = Instant::now() + next;
        }
        is_due
    }

    /// Returns a guard to hold while the sitemaps are read; `None` if another read is still in
    /// progress.
    pub(super) fn begin_reading(&self) -> Option<OwnedMutexGuard<()>> {
        Arc::clone(&self.reading).try_lock_owned().ok()
    }

    /// Makes the sitemaps due now, and treats every list as complete.
    pub(super) fn renew(&self) {
        self.whole.lock().clear();
        self.forget([NoteAbout::UrlsLost, NoteAbout::SitemapsLost]);
        *self.due.lock() = Instant::now();
    }
}

/// Maximum memory for the pages of all sites, in bytes. The total limit is 64 MiB. It also has to
/// hold the pages of one site being read again, a part of a sitemap, and what an allocator keeps of
/// freed pages: 27 MiB were measured in addition to the pages of ten sites.
const MAX_BYTES_OF_ALL: usize = 24 << 20;

/// Maximum memory for the pages of one site, in bytes. While they are read again, the known ones
/// stay in memory, too.
const MAX_BYTES_OF_SITE: usize = 8 << 20;

/// Returns the memory that the pages of one site may take, in bytes, given the number of sites and
/// what the others take. Half of the total is divided evenly, so that a site that is read late has
/// room. The other half is given to sites that need more, in the order of their reading.
pub(super) fn room_for_pages(sites: usize, of_others: impl Iterator<Item = usize>) -> usize {
    let half = MAX_BYTES_OF_ALL / 2;
    let share = half / sites.max(1);
    let taken: usize = of_others.map(|octets| octets.saturating_sub(share)).sum();
    MAX_BYTES_OF_SITE.min(share + half.saturating_sub(taken))
}

/// Name of the folder in the state directory.
const FOLDER: &str = "pages";

/// Maximum size of a file, in bytes.
const MAX_FILE_BYTES: u64 = 128 << 20;

/// Maximum length of a line, in bytes. Longer lines are not pages.
const MAX_LINE_LENGTH: u64 = 4096;

/// The file with one site's sitemap pages, kept across restarts, so that the watched pages do not
/// depend on the upstream being reachable. It has no path without a state directory.
#[derive(Clone, Debug)]
pub(super) struct SavedPages {
    path: Option<PathBuf>,
    site: String,
}

impl SavedPages {
    /// Returns the file of a site. A site name may not be a valid file name, so the file is named
    /// by its hash, and its first line contains the name.
    pub(super) fn of(state_dir: Option<&Path>, site: &str) -> Self {
        let name = || format!("{}.txt", VersionHash::of(site.as_bytes()).short());
        Self { path: state_dir.map(|folder| folder.join(FOLDER).join(name())), site: site.to_owned() }
    }

    /// Returns the pages that were saved last; empty if they cannot be read, because they are read
    /// again soon. Blocks.
    pub(super) fn load(&self) -> Vec<Page> {
        let mut pages = PageSet::within(MAX_BYTES_OF_SITE);
        let read = |path| -> io::Result<()> {
            let mut lines = BufReader::new(File::open(path)?.take(MAX_FILE_BYTES));
            let mut line = Vec::new();
            while lines.by_ref().take(MAX_LINE_LENGTH).read_until(b'\n', &mut line)? > 0 {
                // The last line may be cut off.
                if let Some(page) = line.strip_suffix(b"\n").filter(|page| page.starts_with(b"/")) {
                    pages.add_target(page);
                }
                line.clear();
            }
            Ok(())
        };
        match self.path.as_ref().map(read) {
            Some(Ok(())) => pages.into_pages(),
            _ => Vec::new(),
        }
    }

    /// Saves pages, all or none. Blocks.
    pub(super) fn save(&self, pages: &[Page]) -> io::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        files::replace_by(path, |file| {
            writeln!(file, "# pages of the sitemaps of site {:?}", self.site)?;
            for page in pages.iter().map(Page::target).filter(|target| !target.contains(&b'\n')) {
                file.write_all(page)?;
                file.write_all(b"\n")?;
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pages_of_a_site_that_goes_on_from_another_are_kept_apart() {
        let before = SitePages::new("a", &Log::nowhere());
        before.set_sitemaps(vec![Page::new("/x")], 1);
        let heir = before.of_heir("b");
        assert_eq!(heir.of_sitemaps(), 1);
        heir.set_sitemaps(Vec::new(), 0);
        assert_eq!((before.of_sitemaps(), heir.of_sitemaps()), (1, 0));
    }

    #[test]
    fn sites_that_take_all_they_may_stay_within_the_whole_and_leave_the_others_a_share() {
        for sites in [1, 3, 10, 1000] {
            let mut taken = vec![0; sites];
            // The room of each site stays the same in later rounds.
            for round in 0..3 {
                for site in 0..sites {
                    let others =
                        taken.iter().enumerate().filter(|(other, _)| *other != site).map(|(_, octets)| *octets);
                    let room = room_for_pages(sites, others);
                    assert!(room >= MAX_BYTES_OF_ALL / 2 / sites.max(2), "{site} of {sites}: {room}");
                    assert!(round == 0 || room == taken[site], "{site} of {sites}: {room} after {}", taken[site]);
                    taken[site] = room;
                }
            }
            assert!(taken.iter().sum::<usize>() <= MAX_BYTES_OF_ALL);
        }
        assert_eq!(room_for_pages(1000, std::iter::repeat_n(1000, 999)), MAX_BYTES_OF_SITE, "small sites leave room");
    }

    #[test]
    fn pages_are_there_again_after_a_restart() {
        let state = tempfile::tempdir().unwrap();
        let saved = SavedPages::of(Some(state.path()), "../shop");
        assert_eq!(saved.load(), []);
        let pages = ["/", "/a?b=1", "/\u{e9}"].map(Page::new);
        saved.save(&pages).unwrap();
        assert_eq!(SavedPages::of(Some(state.path()), "../shop").load(), pages);
        assert_eq!(SavedPages::of(Some(state.path()), "blog").load(), []);
        assert_eq!(SavedPages::of(None, "shop").load(), []);
    }
}
