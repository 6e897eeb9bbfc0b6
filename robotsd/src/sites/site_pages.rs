//! Stores the pages that the gate of a site protects, notes about problems with their sources, and
//! a copy of the pages in the state directory. All sites share a memory limit for these pages.

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
use crate::pages::{PageSet, memory_of_pages};
use crate::render::plural;
use crate::report::WatchedPagesReport;

/// Name of the list of pages from sitemaps. In messages, the name follows the word "pages".
const OF_SITEMAPS: &str = "of the sitemaps";

/// Name of the list of pages that verified search engines request. In messages, the name follows
/// the word "pages".
const REQUESTED: &str = "that search engines request most";

/// Delay between a start and the first read of the sitemaps, so that this read does not slow down
/// the start.
const FIRST: Duration = Duration::from_secs(10);

/// The pages of one site, and notes about sources that could not be read. A reload of the config
/// discards neither the pages nor the notes.
#[derive(Debug)]
pub(super) struct SitePages {
    site: SiteName,
    pub(super) watched: WatchedPages,
    /// Name of the operator's list of URLs.
    urls: Mutex<Option<String>>,
    notes: Mutex<BTreeMap<NoteAbout, String>>,
    /// Previous number of pages of each list, by the name of the list. While a list has less than
    /// half of its previous pages, the number is not updated.
    previous_counts: Mutex<BTreeMap<String, usize>>,
    /// Memory that the pages of the sitemaps use, in bytes.
    sitemap_bytes: AtomicUsize,
    due: Mutex<Instant>,
    /// The lock is held while the sitemaps are read.
    reading: Arc<tokio::sync::Mutex<()>>,
    log: Log,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum NoteAbout {
    Expectations,
    Baseline,
    Urls,
    Sitemaps,
    /// Most pages of the operator's list are gone.
    UrlsLost,
    /// Most pages of the sitemaps are gone.
    SitemapsLost,
}

impl SitePages {
    pub(super) fn new(site: &str, log: &Log) -> Self {
        Self {
            site: site.into(),
            watched: WatchedPages::default(),
            urls: Mutex::default(),
            notes: Mutex::default(),
            previous_counts: Mutex::default(),
            sitemap_bytes: AtomicUsize::new(0),
            due: Mutex::new(Instant::now() + FIRST),
            reading: Arc::default(),
            log: log.clone(),
        }
    }

    /// Returns a copy of the pages for a new site that inherits from this site.
    pub(super) fn for_heir(&self, site: &str) -> Self {
        let (watched, urls) = (self.watched.copied(), Mutex::new(self.urls.lock().clone()));
        Self { watched, urls, sitemap_bytes: self.memory_of_sitemaps().into(), ..Self::new(site, &self.log) }
    }

    /// Sets the pages from the operator's list of URLs. `file` is the file name of the list.
    pub(super) fn set_urls(&self, file: &str, pages: Vec<Page>) {
        let name = format!("of {file}");
        let before = self.urls.lock().replace(name.clone()).filter(|before| *before != name);
        before.iter().for_each(|before| self.watched.set(before, []));
        self.compare(NoteAbout::UrlsLost, &name, pages.len());
        self.set(&name, pages);
    }

    pub(super) fn drop_urls(&self) {
        let before = self.urls.lock().take();
        before.iter().for_each(|before| self.watched.set(before, []));
        self.forget([NoteAbout::Urls, NoteAbout::UrlsLost]);
    }

    /// Sets the pages of the sitemaps. `listed` is the number of pages in the sitemaps, which is
    /// larger than the length of `pages` if the memory limit was reached.
    pub(super) fn set_sitemaps(&self, pages: Vec<Page>, listed: usize) {
        self.sitemap_bytes.store(memory_of_pages(&pages), Ordering::Relaxed);
        self.compare(NoteAbout::SitemapsLost, OF_SITEMAPS, listed);
        self.set(OF_SITEMAPS, pages);
    }

    pub(super) fn drop_sitemaps(&self) {
        self.sitemap_bytes.store(0, Ordering::Relaxed);
        self.watched.set(OF_SITEMAPS, []);
        self.forget([NoteAbout::Sitemaps, NoteAbout::SitemapsLost]);
    }

    /// Returns the memory that the pages of the sitemaps use, in bytes.
    pub(super) fn memory_of_sitemaps(&self) -> usize {
        self.sitemap_bytes.load(Ordering::Relaxed)
    }

    pub(super) fn sitemap_page_count(&self) -> usize {
        self.count_of(OF_SITEMAPS)
    }

    pub(super) fn count(&self) -> usize {
        self.counts().map(|(_, count)| count).sum()
    }

    pub(super) fn set_requested(&self, pages: Vec<Page>) {
        self.set(REQUESTED, pages);
    }

    fn set(&self, of: &str, pages: Vec<Page>) {
        let is_new = !pages.is_empty() && !self.counts().any(|(known, _)| known == of);
        let count = pages.len();
        self.watched.set(of, pages);
        if is_new {
            self.say(LogLevel::Info, &format!("the gate watches {} {of}", plural(count, "page")));
        }
    }

    /// Adds a note if a list has less than half of its previous pages, because a gate that protects
    /// only few pages could let harmful versions pass. The note is removed when the list has half
    /// of the previous pages again, or when a reload is requested.
    fn compare(&self, about: NoteAbout, of: &str, count: usize) {
        let mut previous_counts = self.previous_counts.lock();
        let had = previous_counts.entry(of.to_owned()).or_insert_with(|| self.count_of(of));
        let is_lost = count.saturating_mul(2) < *had;
        if !is_lost {
            *had = count;
        }
        let note = is_lost.then(|| {
            let count = plural(count, "page");
            format!(
                "the list of pages {of} contains only {count} (before: {had}), so the gate does not watch the \
                 missing pages: if they were removed on purpose, run `robotsd reload`"
            )
        });
        drop(previous_counts);
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

    /// Sets the note about a source, or removes it if the source is usable again, and logs the
    /// change.
    pub(super) fn note(&self, about: NoteAbout, note: Option<String>) {
        let mut notes = self.notes.lock();
        let before = match &note {
            Some(note) => notes.insert(about, note.clone()),
            None => notes.remove(&about),
        };
        drop(notes);
        // Unusable expectations are an error, because a gate without expectations may hold or
        // publish the wrong versions.
        let level = if about == NoteAbout::Expectations { LogLevel::Error } else { LogLevel::Warn };
        match (note, before) {
            (Some(note), before) if before.as_ref() != Some(&note) => self.say(level, &note),
            (None, Some(before)) => self.say(LogLevel::Info, &format!("resolved: {before}")),
            _ => {}
        }
    }

    fn say(&self, level: LogLevel, message: &str) {
        let Self { site, log, .. } = self;
        log.write_site_message(site, level, LogEvent::Gate, format!("{site}: {message}"));
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

    /// Reports whether the sitemaps must be read now, and if so, schedules the next read after
    /// `next`.
    pub(super) fn take_due(&self, next: Duration) -> bool {
        let mut due = self.due.lock();
        let is_due = Instant::now() >= *due;
        if is_due {
            *due = Instant::now() + next;
        }
        is_due
    }

    /// Returns a guard that the caller must hold while it reads the sitemaps; `None` if another
    /// read is in progress.
    pub(super) fn begin_reading(&self) -> Option<OwnedMutexGuard<()>> {
        Arc::clone(&self.reading).try_lock_owned().ok()
    }

    /// Makes a new read of the sitemaps due immediately. Also forgets how many pages each list
    /// contained before, so that shorter lists are accepted.
    pub(super) fn request_read(&self) {
        self.previous_counts.lock().clear();
        self.forget([NoteAbout::UrlsLost, NoteAbout::SitemapsLost]);
        *self.due.lock() = Instant::now();
    }
}

/// Maximum memory for the pages of all sites, in bytes. This memory and the memory for reading
/// sitemaps must not exceed 64 MiB together. Reading uses memory for the previous pages of the
/// site, for a part of a sitemap, and for freed memory that the allocator keeps: 27 MiB in a
/// measurement with ten sites.
const MAX_BYTES_OF_ALL: usize = 24 << 20;

/// Maximum memory for the pages of one site, in bytes. During a new read, the known pages stay in
/// memory as well.
const MAX_BYTES_OF_SITE: usize = 8 << 20;

/// Returns the maximum memory for the pages of one site, in bytes. `of_others` contains the memory
/// that each other site uses. Half of the total is divided evenly among `sites` sites, so that some
/// memory is left for sites that are read late. The other half of the total goes to sites that need
/// more, on a first-come, first-served basis.
pub(super) fn max_page_memory(sites: usize, of_others: impl Iterator<Item = usize>) -> usize {
    let half = MAX_BYTES_OF_ALL / 2;
    let share = half / sites.max(1);
    let taken: usize = of_others.map(|bytes| bytes.saturating_sub(share)).sum();
    MAX_BYTES_OF_SITE.min(share + half.saturating_sub(taken))
}

const FOLDER: &str = "pages";

/// Maximum size of a file with saved pages, in bytes.
const MAX_FILE_BYTES: u64 = 128 << 20;

/// Maximum length of a line, in bytes. A longer line is ignored.
const MAX_LINE_LENGTH: u64 = 4096;

/// A copy of the sitemap pages of one site, so that the gate knows them after a restart even if the
/// upstream cannot be reached. Without a state directory, `path` is `None` and nothing is saved.
#[derive(Clone, Debug)]
pub(super) struct SavedPages {
    path: Option<PathBuf>,
    site: String,
}

impl SavedPages {
    /// Returns the file of a site. The file name is a hash, because the name of the site may not be
    /// a valid file name.
    pub(super) fn of(state_dir: Option<&Path>, site: &str) -> Self {
        let name = || format!("{}.txt", VersionHash::of(site.as_bytes()).short());
        Self { path: state_dir.map(|folder| folder.join(FOLDER).join(name())), site: site.to_owned() }
    }

    /// Returns the saved pages. If the file cannot be read, returns no pages, because the sitemaps
    /// will be read soon. Blocks.
    pub(super) fn load(&self) -> Vec<Page> {
        let mut pages = PageSet::within(MAX_BYTES_OF_SITE);
        let read = |path| -> io::Result<()> {
            let mut lines = BufReader::new(File::open(path)?.take(MAX_FILE_BYTES));
            let mut line = Vec::new();
            while lines.by_ref().take(MAX_LINE_LENGTH).read_until(b'\n', &mut line)? > 0 {
                // A last line without a line feed may be truncated, so it is ignored.
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

    /// Saves pages. If saving fails, the previous file remains. Blocks.
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
    fn a_successor_site_inherits_a_separate_copy_of_the_pages() {
        let before = SitePages::new("a", &Log::without_output());
        before.set_sitemaps(vec![Page::new("/x")], 1);
        let heir = before.for_heir("b");
        assert_eq!(heir.sitemap_page_count(), 1);
        heir.set_sitemaps(Vec::new(), 0);
        assert_eq!((before.sitemap_page_count(), heir.sitemap_page_count()), (1, 0));
    }

    #[test]
    fn the_pages_of_all_sites_stay_within_the_total_and_each_site_has_a_share() {
        for sites in [1, 3, 10, 1000] {
            let mut taken = vec![0; sites];
            // In later rounds, the limit of each site must stay the same.
            for round in 0..3 {
                for site in 0..sites {
                    let others = taken.iter().enumerate().filter(|(other, _)| *other != site).map(|(_, bytes)| *bytes);
                    let room = max_page_memory(sites, others);
                    assert!(room >= MAX_BYTES_OF_ALL / 2 / sites.max(2), "{site} of {sites}: {room}");
                    assert!(round == 0 || room == taken[site], "{site} of {sites}: {room} after {}", taken[site]);
                    taken[site] = room;
                }
            }
            assert!(taken.iter().sum::<usize>() <= MAX_BYTES_OF_ALL);
        }
        let found = max_page_memory(1000, std::iter::repeat_n(1000, 999));
        assert_eq!(found, MAX_BYTES_OF_SITE, "small sites leave memory to others");
    }

    #[test]
    fn the_saved_pages_of_a_site_are_loaded_after_a_restart() {
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
