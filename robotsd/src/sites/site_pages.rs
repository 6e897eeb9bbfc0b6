//! The pages that the gate of a site watches, and what is to be said about where they come from.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tower_robots::check::Page;
use tower_robots::live::WatchedPages;

use super::log_events;
use super::site_name::SiteName;
use crate::log::Log;
use crate::report::WatchedPagesReport;

/// The name of the pages that sitemaps list, as it stands behind "pages".
const OF_SITEMAPS: &str = "of the sitemaps";

/// The name of the pages that verified search engines request.
const REQUESTED: &str = "that search engines request most";

/// When sitemaps are read first: after the start, which it must not slow.
const FIRST: Duration = Duration::from_secs(10);

/// The pages of one site, and notes about what could not be read. It outlives configs. Cheap to clone; clones are the same.
#[derive(Clone, Debug)]
pub(super) struct SitePages(Arc<SitePagesParts>);

#[derive(Debug)]
struct SitePagesParts {
    site: SiteName,
    watched: WatchedPages,
    /// The name of the operator's list.
    urls: Mutex<Option<String>>,
    notes: Mutex<BTreeMap<NoteAbout, String>>,
    /// When the sitemaps are read next.
    due: Mutex<Instant>,
    log: Log,
}

/// What a note is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum NoteAbout {
    Baseline,
    Urls,
    Sitemaps,
}

impl SitePages {
    /// No pages yet; sitemaps are read after a while for the first time.
    pub(super) fn new(site: &str, log: &Log) -> Self {
        Self(Arc::new(SitePagesParts {
            site: site.into(),
            watched: WatchedPages::new(),
            urls: Mutex::default(),
            notes: Mutex::default(),
            due: Mutex::new(Instant::now() + FIRST),
            log: log.clone(),
        }))
    }

    pub(super) fn watched(&self) -> &WatchedPages {
        &self.0.watched
    }

    /// Sets the operator's list, by the name of its file.
    pub(super) fn set_urls(&self, file: &str, pages: Vec<Page>) {
        let name = format!("of {file}");
        let before = locked(&self.0.urls).replace(name.clone()).filter(|before| *before != name);
        before.iter().for_each(|before| self.0.watched.set(before, []));
        self.set(&name, pages);
    }

    /// There is no such list any more.
    pub(super) fn drop_urls(&self) {
        let before = locked(&self.0.urls).take();
        before.iter().for_each(|before| self.0.watched.set(before, []));
        self.note(NoteAbout::Urls, None);
    }

    pub(super) fn set_sitemaps(&self, pages: Vec<Page>) {
        self.set(OF_SITEMAPS, pages);
    }

    /// How many pages of the sitemaps are known.
    pub(super) fn of_sitemaps(&self) -> usize {
        self.counts().find(|(of, _)| of == OF_SITEMAPS).map_or(0, |(_, count)| count)
    }

    /// How many pages there are, of all lists.
    pub(super) fn count(&self) -> usize {
        self.counts().map(|(_, count)| count).sum()
    }

    pub(super) fn set_requested(&self, pages: Vec<Page>) {
        self.set(REQUESTED, pages);
    }

    /// Sets a list, and logs that there is one now.
    fn set(&self, of: &str, pages: Vec<Page>) {
        let is_new = !pages.is_empty() && !self.counts().any(|(known, _)| known == of);
        let count = pages.len();
        self.0.watched.set(of, pages);
        if is_new {
            log_events::gate_watches(&self.0.log, &self.0.site, count, of);
        }
    }

    fn counts(&self) -> impl Iterator<Item = (String, usize)> {
        self.0.watched.counts().into_iter()
    }

    /// Notes what could not be read, and logs it where that is news; `None` once it could.
    pub(super) fn note(&self, about: NoteAbout, note: Option<String>) {
        let mut notes = locked(&self.0.notes);
        let before = match &note {
            Some(note) => notes.insert(about, note.clone()),
            None => notes.remove(&about),
        };
        drop(notes);
        if let Some(note) = note.filter(|note| before.as_ref() != Some(note)) {
            log_events::gate_note(&self.0.log, &self.0.site, &note);
        }
    }

    pub(super) fn notes(&self) -> Vec<String> {
        locked(&self.0.notes).values().cloned().collect()
    }

    pub(super) fn note_about(&self, about: NoteAbout) -> Option<String> {
        locked(&self.0.notes).get(&about).cloned()
    }

    pub(super) fn report(&self) -> Vec<WatchedPagesReport> {
        let report = |(of, count): (String, usize)| WatchedPagesReport { of, count: count as u64 };
        self.counts().map(report).collect()
    }

    /// Whether the sitemaps are to be read; they are then due again after `next`.
    pub(super) fn take_due(&self, next: Duration) -> bool {
        let mut due = locked(&self.0.due);
        let is_due = Instant::now() >= *due;
        if is_due {
            *due = Instant::now() + next;
        }
        is_due
    }

    /// Has the sitemaps read soon.
    pub(super) fn make_due(&self) {
        *locked(&self.0.due) = Instant::now();
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
