//! The source of a `LiveRobots` whose robots.txt is a file.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant, SystemTime};
use std::{fs, io};

use super::builder::{LiveBuilder, SiteSource};
use super::file;
use super::file_system::reach;
use super::watch::{Watched, Watcher};
use crate::live::{Completion, LiveRobots, Loaded, Rejection, Reload, Site, Source, Version};

/// Interval between checks while waiting for a file to appear or to become complete.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Maximum time to wait for a missing file while its folder keeps changing.
const MAX_WAIT: Duration = Duration::from_secs(2);

/// A robots.txt in a file, see [`LiveRobots::file`].
#[derive(Debug)]
pub struct FileSource {
    path: PathBuf,
    poll: Duration,
    watcher: Option<Watcher>,
}

#[derive(Debug)]
struct OpenFile {
    path: PathBuf,
    origin: Arc<str>,
    site: Weak<Site>,
    watched: Watched,
}

impl LiveRobots {
    /// Prepares a site whose robots.txt is in a file. The file is reloaded when it changes (with
    /// the `watch` feature) and on [`LiveRobots::reload`].
    pub fn file(path: impl Into<PathBuf>) -> LiveBuilder<FileSource> {
        LiveBuilder::new(FileSource { path: path.into(), poll: Watcher::DEFAULT_POLL, watcher: None })
    }
}

#[cfg(feature = "watch")]
impl LiveBuilder<FileSource> {
    /// Sets the interval for polling the file, to find changes that the file system has not
    /// reported. Default: [`Watcher::DEFAULT_POLL`](super::Watcher::DEFAULT_POLL); minimum:
    /// [`Watcher::MIN_POLL`](super::Watcher::MIN_POLL). A second call replaces the first.
    ///
    /// Only sites with a file have this method, so this example does not compile:
    ///
    /// ```compile_fail
    /// # use std::time::Duration;
    /// # use tower_robots::live::LiveRobots;
    /// let builder = LiveRobots::text("User-agent: *\nDisallow:\n");
    /// let live = builder.poll_every(Duration::from_secs(9)).open();
    /// ```
    pub fn poll_every(self, poll: Duration) -> Self {
        self.with_source(|source| source.poll = poll.max(Watcher::MIN_POLL))
    }

    /// Sets the watcher of the file. One watcher can watch many files. By default, each site
    /// creates a watcher. A second call replaces the first.
    pub fn watcher(self, watcher: &Watcher) -> Self {
        self.with_source(|source| source.watcher = Some(watcher.clone()))
    }
}

impl LiveBuilder<FileSource> {
    pub(super) fn watched_by(self, watcher: &Watcher, poll: Duration) -> Self {
        self.with_source(|source| {
            source.watcher = Some(watcher.clone());
            source.poll = poll;
        })
    }
}

impl SiteSource for FileSource {
    fn open(builder: LiveBuilder<Self>) -> Result<LiveRobots, Rejection> {
        let LiveBuilder { source, settings } = builder;
        let origin: Arc<str> = source.path.to_string_lossy().into();
        // The watcher records changes from before the file is read, so that every change after the
        // read is noticed.
        let mut opened = None;
        let site = Site::new(settings, &origin, |site| {
            let file = Arc::new(OpenFile {
                watched: source.watcher.unwrap_or_default().robots(source.path.clone(), source.poll, site.clone()),
                path: source.path,
                origin: origin.clone(),
                site,
            });
            opened = Some(file.clone());
            file
        });
        // If the site already has versions, an earlier process has read the file. So a missing file
        // is probably just being replaced.
        if let Some(file) = opened.as_ref().filter(|_| site.has_versions()) {
            wait_for_file(&file.path);
        }
        site.start()?;
        if let Some(file) = opened {
            file.watched.begin();
        }
        Ok(LiveRobots::of(site))
    }
}

impl Source for OpenFile {
    fn load(&self) -> Loaded {
        file::load(&self.path, &self.origin)
    }

    fn reload(&self, completion: Arc<Completion>) {
        if let Some(site) = self.site.upgrade() {
            let path = self.path.clone();
            Site::reload_on_thread(site, completion, move |site| {
                wait_for_file(&path);
                reload_once_quiet(site)
            });
        }
    }

    fn watch_problem(&self) -> Option<String> {
        self.watched.problem()
    }
}

/// Waits for a missing file to appear, because another program may be replacing the file, as in `mv
/// robots.txt old; mv new robots.txt`. Waits only if the folder was changed recently, and at most
/// for `MAX_WAIT`.
fn wait_for_file(path: &Path) {
    let is_missing = || fs::metadata(reach(path)).is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let rest = || file::time_until_complete(fs::metadata(reach(folder)).ok()?.modified().ok()?);
    let end = Instant::now() + MAX_WAIT;
    while is_missing() && Instant::now() < end {
        let Some(rest) = rest() else { return };
        std::thread::sleep(rest.min(LOOK_AGAIN));
    }
}

/// Reloads the file when it is complete. A caller may request a reload while the file is being
/// written. Therefore a file that was modified recently is read twice, with a pause in between, and
/// is published only if both reads have the same result. The pause ends early if the watcher
/// publishes the content of the first read.
fn reload_once_quiet(site: &Site) -> Reload {
    let first = site.load().ok();
    if let Some(first) = &first {
        // The length of the pause depends on the file's modification time. The pause itself is
        // measured with a monotonic clock.
        let rest = first.modified.and_then(file::time_until_complete).unwrap_or_default();
        let quiet = Instant::now() + rest;
        while site.live_source() != Some(first.hash()) {
            let rest = quiet.saturating_duration_since(Instant::now());
            if rest.is_zero() {
                break;
            }
            std::thread::sleep(rest.min(LOOK_AGAIN));
        }
    }
    site.reload(|again| may_be_published(first.as_ref(), again, SystemTime::now()))
}

/// Reports whether a version may be published. Returns `true` if the first read found the same
/// content, or if the first read failed and the file now counts as complete.
fn may_be_published(first: Option<&Version>, again: &Version, now: SystemTime) -> bool {
    match first {
        Some(first) => first.hash() == again.hash(),
        None => again.modified.and_then(|modified| file::time_until_complete_at(now, modified)).is_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(not(feature = "watch"))]
    #[test]
    fn without_the_watch_feature_the_status_reports_that_changes_are_not_noticed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("robots.txt");
        fs::write(&path, "User-agent: *\nDisallow: /a\n").expect("a file");
        let live = LiveRobots::file(path).open().expect("a site");
        assert!(live.status().watch_problem.is_some_and(|problem| problem.contains("changes are not noticed")));
    }

    #[test]
    fn a_file_is_published_if_two_reads_agree_or_it_became_readable_and_is_complete() {
        let version = |text: &str, modified| Version::new(text.as_bytes(), &"robots.txt".into(), Some(modified));
        let now = SystemTime::now();
        let whole = version("User-agent: *\nDisallow: /\n", now);
        let half = version("User-agent: *\n", now);
        assert!(may_be_published(Some(&whole), &whole, now));
        assert!(!may_be_published(Some(&whole), &half, now));
        assert!(!may_be_published(None, &half, now));
        assert!(may_be_published(None, &version("User-agent: *\n", now - file::QUIET * 2), now));
    }
}
