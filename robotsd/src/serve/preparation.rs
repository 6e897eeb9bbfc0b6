//! Reads a config and opens everything new of it, on a blocking thread.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{Instant, sleep_until};
use tower_robots::source::Watched;

use super::listeners::{ListenerPlan, Listeners};
use super::watched_files::WatchedFiles;
use crate::config::Config;
use crate::sites::Renewal;
use crate::sites::Sites;

/// A request may come while the file is being written: it must have been left alone for so long.
const QUIET: Duration = Duration::from_millis(400);

/// A config that works, with everything new of it open.
#[derive(Debug)]
pub(super) struct PreparedConfig {
    pub(super) config: Config,
    /// The files that it names and the config before does not.
    pub(super) watched: Vec<(PathBuf, Watched)>,
    pub(super) plan: ListenerPlan,
    pub(super) renewal: Renewal,
}

/// A config that is being prepared. Dropping it abandons it: its thread ends as soon as its file system lets it, and changes
/// nothing.
#[derive(Debug)]
pub(super) struct Preparation {
    thread: JoinHandle<Result<PreparedConfig, String>>,
    began: Instant,
    is_reading: Arc<AtomicBool>,
    is_abandoned: Arc<AtomicBool>,
}

impl Preparation {
    /// Begins to read the file, once it has been left alone for a moment.
    pub(super) fn begin(
        path: PathBuf,
        sites: Arc<Sites>,
        listeners: Arc<Mutex<Listeners>>,
        watches: &WatchedFiles,
        workers: NonZeroUsize,
    ) -> Self {
        let (watch, watched) = (watches.watch().clone(), watches.paths());
        Self::of(move |is_reading, is_abandoned| {
            wait_until_quiet(&path);
            is_reading.store(true, Ordering::SeqCst);
            let config = Config::load(&path).map_err(|error| error.to_string())?;
            // A file may hang for long: sockets and sources are then those of a newer preparation.
            if is_abandoned.load(Ordering::SeqCst) {
                return Err("another reading has taken its place".to_owned());
            }
            // Before they are read, so that no change of theirs goes unnoticed.
            let watched = watch.files_of(&config, &watched);
            let plan = listeners.lock().unwrap_or_else(PoisonError::into_inner).plan(&config, workers)?;
            let renewal = sites.renew(&config)?;
            renewal.apply_settings(|| is_abandoned.load(Ordering::SeqCst));
            Ok(PreparedConfig { config, watched, plan, renewal })
        })
    }

    fn of(work: impl FnOnce(&AtomicBool, &AtomicBool) -> Result<PreparedConfig, String> + Send + 'static) -> Self {
        let (is_reading, is_abandoned) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
        let (reading, abandoned) = (Arc::clone(&is_reading), Arc::clone(&is_abandoned));
        let thread = spawn_blocking(move || work(&reading, &abandoned));
        Self { thread, began: Instant::now(), is_reading, is_abandoned }
    }

    /// Whether the file has been opened: what is written to it from now on may not be seen.
    pub(super) fn is_reading(&self) -> bool {
        self.is_reading.load(Ordering::SeqCst)
    }

    /// Waits for the end; none once it has taken longer than the limit.
    pub(super) async fn end_within(&mut self, limit: Option<Duration>) -> Option<Result<PreparedConfig, String>> {
        let late = async {
            match limit {
                Some(limit) => sleep_until(self.began + limit).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            end = &mut self.thread => {
                Some(end.unwrap_or_else(|error| Err(format!("it could not be looked at: {error}"))))
            }
            () = late => None,
        }
    }
}

impl Drop for Preparation {
    fn drop(&mut self) {
        self.is_abandoned.store(true, Ordering::SeqCst);
    }
}

fn wait_until_quiet(path: &Path) {
    let age = |path: &Path| std::fs::metadata(path).ok()?.modified().ok()?.elapsed().ok();
    // Bounded, for a file that is written to without end.
    let end = SystemTime::now() + 5 * QUIET;
    while let Some(rest) = age(path).and_then(|age| QUIET.checked_sub(age)).filter(|_| SystemTime::now() < end) {
        std::thread::sleep(rest);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::log::Log;

    #[tokio::test]
    async fn a_preparation_that_hangs_can_be_abandoned_and_is_told_so() {
        let (release, hanging) = mpsc::channel::<()>();
        let (ended, end) = mpsc::channel();
        let mut preparation = Preparation::of(move |is_reading, is_abandoned| {
            is_reading.store(true, Ordering::SeqCst);
            // A file system that hangs until the test releases it.
            let _ = hanging.recv();
            let _ = ended.send(is_abandoned.load(Ordering::SeqCst));
            Err("the end".to_owned())
        });
        assert!(preparation.end_within(Some(Duration::from_millis(1))).await.is_none());
        drop(preparation);
        release.send(()).unwrap();
        assert!(end.recv_timeout(Duration::from_secs(20)).unwrap());
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn an_abandoned_preparation_opens_nothing_once_its_file_can_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("robotsd.toml");
        let text = "[[listener]]\naddress = \"127.0.0.1:0\"\n[[site]]\nname = \"a\"\nroot = \".\"\n\
                    robots.text = \"User-agent: *\"\n";
        std::fs::write(&path, text).unwrap();
        let config = Config::load(&path).unwrap();
        let sites = Arc::new(Sites::open(&config, false, &Log::nowhere()).unwrap());
        let watches = WatchedFiles::of(&path, &config, &sites.watcher());
        // Reading a pipe hangs until it has a writer.
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let mut preparation = Preparation::begin(pipe.clone(), sites, Arc::default(), &watches, NonZeroUsize::MIN);
        preparation.is_abandoned.store(true, Ordering::SeqCst);
        std::fs::write(&pipe, text).unwrap();
        let error = preparation.end_within(None).await.unwrap().unwrap_err();
        assert_eq!(error, "another reading has taken its place");
    }

    #[tokio::test]
    async fn a_preparation_that_ends_is_not_late() {
        let mut preparation = Preparation::of(|_, _| Err("a fault".to_owned()));
        assert_eq!(preparation.end_within(None).await.unwrap().unwrap_err(), "a fault");
    }
}
