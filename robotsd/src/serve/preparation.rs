//! Reads a config and opens everything that is new in it, on a blocking thread.
//!
//! A preparation never returns to an earlier stage. Until a preparation begins to apply settings,
//! it can be abandoned, which closes its bound sockets. Once settings are being applied, the
//! preparation is always completed, so that all sites have the settings of the same config.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{Instant, sleep_until};
use tower_robots::internals::Watched;

use super::listeners::{ListenerPlan, Listeners};
use super::watched_files::WatchedFiles;
use crate::config::{Config, ConfigError, ConfigFile, RobotsSource, SettingChange, setting_changes};
use crate::sites::{Renewal, Sites};

/// Time that a file must stay unchanged before it is read, because a reload may be requested while
/// a file is being written.
const QUIET: Duration = Duration::from_millis(400);

const MAX_WAIT: Duration = Duration::from_secs(2);

/// A config whose new listeners are bound and whose new sources are open.
#[derive(Debug)]
pub(super) struct PreparedConfig {
    pub(super) config: Arc<Config>,
    pub(super) watched: Vec<(PathBuf, Watched)>,
    pub(super) plan: ListenerPlan,
    pub(super) renewal: Renewal,
    /// Settings that differ from the previous config.
    pub(super) changes: Vec<SettingChange>,
}

#[derive(Debug)]
pub(super) struct RejectedConfig {
    pub(super) why: String,
    /// Settings that the config would change; `None` if the config cannot be parsed.
    pub(super) changes: Option<Vec<SettingChange>>,
}

type Prepared = Result<PreparedConfig, RejectedConfig>;

/// A config that is being prepared on a thread. Dropping this value abandons the preparation. The
/// thread of an abandoned preparation changes nothing, but may still wait for a hanging file
/// system.
#[derive(Debug)]
pub(super) struct Preparation {
    thread: JoinHandle<Prepared>,
    began: Instant,
    stage: Stage,
}

/// Progress of a preparation, shared by its thread and the control thread. The lock is held only
/// briefly, or while sockets are bound.
#[derive(Clone, Debug, Default)]
struct Stage(Arc<Mutex<StageState>>);

#[derive(Debug, Default)]
enum StageState {
    #[default]
    Waiting,
    Reading,
    /// Sockets of new listeners are bound, and the sites are being opened.
    Bound(ListenerPlan),
    /// Settings are being applied to sites that are served.
    Applying,
    Abandoned,
}

impl Preparation {
    /// Waits until the config file and its included files have not changed for [`QUIET`], and then
    /// starts to read them. `before` is the served config.
    pub(super) fn begin(
        path: PathBuf,
        before: Arc<Config>,
        sites: Arc<Sites>,
        listeners: Arc<Mutex<Listeners>>,
        watches: &WatchedFiles,
        workers: NonZeroUsize,
    ) -> Self {
        let (watch, watched) = (watches.watch.clone(), watches.paths());
        Self::of(move |stage| {
            wait_until_quiet(&config_paths(&path, &before));
            let mut read = None;
            let mut prepared = || {
                stage.read()?;
                let file = ConfigFile::read(&path, Some(&before.included.good)).map_err(|error| error.to_string())?;
                let config = read.insert(file).config().map_err(|error| error.to_string())?;
                stage.read()?;
                // The files must be watched before they are read, so that no change is missed.
                let watched = watch.files_of(&config, &watched);
                stage.bind(|| listeners.lock().plan(&config, workers))?;
                let renewal = sites.renew(&config)?;
                let plan = stage.apply()?;
                renewal.apply_settings(&sites);
                let changes = setting_changes(&before.text, &config.text).unwrap_or_default();
                Ok(PreparedConfig { config: Arc::new(config), watched, plan, renewal, changes })
            };
            let prepared = prepared();
            prepared.map_err(|why| RejectedConfig {
                why,
                changes: read.and_then(|file| setting_changes(&before.text, &file.text())),
            })
        })
    }

    fn of(work: impl FnOnce(&Stage) -> Prepared + Send + 'static) -> Self {
        let stage = Stage::default();
        let of_thread = stage.clone();
        Self { thread: spawn_blocking(move || work(&of_thread)), began: Instant::now(), stage }
    }

    /// Reports whether the preparation has already opened the config file. If so, the preparation
    /// may miss later changes to the file.
    pub(super) fn is_reading(&self) -> bool {
        !matches!(*self.stage.0.lock(), StageState::Waiting)
    }

    /// Waits for the end of the preparation. Returns `None` if the preparation took longer than
    /// `limit` and was abandoned.
    pub(super) async fn end_within(&mut self, limit: Option<Duration>) -> Option<Prepared> {
        let stage = self.stage.clone();
        let late = async {
            match limit {
                Some(limit) => sleep_until(self.began + limit).await,
                None => std::future::pending().await,
            }
            // If the preparation cannot be abandoned, settings are already being applied. The
            // preparation does not read files any more, so it ends soon.
            if !stage.abandon() {
                std::future::pending().await
            }
        };
        tokio::select! {
            biased;
            end = &mut self.thread => {
                let panicked = |error| format!("the config could not be read: {error}");
                Some(end.unwrap_or_else(|error| Err(RejectedConfig { why: panicked(error), changes: None })))
            }
            () = late => None,
        }
    }
}

impl Drop for Preparation {
    fn drop(&mut self) {
        self.stage.abandon();
    }
}

impl Stage {
    /// Enters the stage `Reading`. Returns an error if the preparation was abandoned, which can
    /// happen if reading a file hangs and a newer preparation begins.
    fn read(&self) -> Result<(), String> {
        self.enter(|| Ok(StageState::Reading)).map(drop)
    }

    fn bind(&self, plan: impl FnOnce() -> Result<ListenerPlan, String>) -> Result<(), String> {
        self.enter(|| plan().map(StageState::Bound)).map(drop)
    }

    /// Enters the stage `Applying`, and returns the plan with the bound sockets. From then on, the
    /// preparation cannot be abandoned.
    fn apply(&self) -> Result<ListenerPlan, String> {
        match self.enter(|| Ok(StageState::Applying))? {
            StageState::Bound(plan) => Ok(plan),
            _ => Err("the listeners could not be opened".to_owned()),
        }
    }

    /// Abandons the preparation and closes its sockets, unless it is already applying settings.
    /// Returns whether the preparation was abandoned.
    fn abandon(&self) -> bool {
        let mut state = self.0.lock();
        let can_be = !matches!(*state, StageState::Applying);
        if can_be {
            *state = StageState::Abandoned;
        }
        can_be
    }

    /// Enters a stage, and returns the previous stage. Returns an error if the preparation was
    /// abandoned.
    fn enter(&self, next: impl FnOnce() -> Result<StageState, String>) -> Result<StageState, String> {
        let mut state = self.0.lock();
        match *state {
            StageState::Abandoned => Err("a newer reload has replaced this reload".to_owned()),
            _ => Ok(std::mem::replace(&mut *state, next()?)),
        }
    }
}

/// Reads the config of a process that replaces another process. Such a process may start while
/// files are being replaced. So this function waits until the config files and the folders of
/// robots.txt files stop changing. Otherwise, a host whose robots.txt is missing for a moment
/// during the replacement would have no rules.
pub(super) fn load_when_quiet(path: &Path) -> Result<Config, ConfigError> {
    let config = Config::load(path);
    let mut paths = vec![path];
    if let Ok(config) = &config {
        paths = config_paths(path, config);
        paths.extend(config.sites.iter().filter_map(|site| match &site.robots {
            RobotsSource::Directory { path, .. } => Some(&**path),
            _ => None,
        }));
    }
    if wait_until_quiet(&paths) { Config::load(path) } else { config }
}

/// Returns the paths of the config, of its included files, and of the folders where included files
/// may be added.
fn config_paths<'p>(path: &'p Path, config: &'p Config) -> Vec<&'p Path> {
    let folders = config.included.patterns.iter().map(|pattern| &*pattern.folder);
    config.included.paths.iter().map(PathBuf::as_path).chain(folders).chain([path]).collect()
}

/// Waits until these paths have not changed for [`QUIET`], but at most [`MAX_WAIT`]. Returns
/// whether a wait was necessary.
fn wait_until_quiet(paths: &[&Path]) -> bool {
    let modified = |path: &Path| std::fs::metadata(path)?.modified();
    // A file may be missing for a moment while it is being replaced. During this moment, the
    // modification time of its folder is used.
    let of_folder = |path: &Path| {
        let folder = path.parent()?;
        modified(if folder.as_os_str().is_empty() { Path::new(".") } else { folder }).ok()
    };
    // The modification time may be in the future, because the clock of a file server may be ahead.
    let age = |path: &Path| match modified(path).ok().or_else(|| of_folder(path))?.elapsed() {
        Ok(age) => Some(age),
        Err(ahead) => (ahead.duration() < MAX_WAIT).then_some(Duration::ZERO),
    };
    let time_until_complete = || paths.iter().filter_map(|path| QUIET.checked_sub(age(path)?)).max();
    // The wait is limited, because some files change all the time.
    let end = SystemTime::now() + MAX_WAIT;
    let mut has_waited = false;
    while let Some(rest) = time_until_complete().filter(|_| SystemTime::now() < end) {
        std::thread::sleep(rest);
        has_waited = true;
    }
    has_waited
}

#[cfg(test)]
mod tests {
    use std::io::{PipeReader, PipeWriter, Write as _};
    use std::os::fd::AsRawFd as _;
    use std::sync::mpsc;

    use super::*;
    use crate::http_common::test_peer::refusing;
    use crate::log::Log;

    fn rejected(why: &str) -> RejectedConfig {
        RejectedConfig { why: why.to_owned(), changes: None }
    }

    #[tokio::test]
    async fn a_hanging_preparation_can_be_abandoned_and_its_next_step_fails() {
        let (release, hanging) = mpsc::channel::<()>();
        let (ended, end) = mpsc::channel();
        let (begins, begun) = mpsc::channel();
        let mut preparation = Preparation::of(move |stage| {
            stage.read().unwrap();
            begins.send(()).unwrap();
            // Acts like a file system that hangs until the test releases it.
            let _ = hanging.recv();
            let _ = ended.send(stage.read().is_err());
            Err(rejected("the end"))
        });
        begun.recv_timeout(Duration::from_secs(60)).unwrap();
        assert!(preparation.end_within(Some(Duration::from_millis(1))).await.is_none());
        drop(preparation);
        release.send(()).unwrap();
        assert!(end.recv_timeout(Duration::from_secs(60)).unwrap());
    }

    const CONFIG: &str = "[[listener]]\naddress = \"127.0.0.1:0\"\n[[site]]\nname = \"a\"\nroot = \".\"\n\
                          robots.text = \"User-agent: *\"\n";

    /// A config whose sites are open. Another config will replace this config.
    struct Served {
        folder: tempfile::TempDir,
        config: Arc<Config>,
        sites: Arc<Sites>,
        watches: WatchedFiles,
    }

    impl Served {
        fn start() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("robotsd.toml");
            std::fs::write(&path, CONFIG).unwrap();
            let config = Arc::new(Config::load(&path).unwrap());
            let sites = Arc::new(Sites::open(&config, false, &Log::without_output()).unwrap());
            let watches = WatchedFiles::of(&path, &config, &sites.watcher());
            Self { folder, config, sites, watches }
        }

        fn preparation(&self, path: &Path) -> Preparation {
            let (before, listeners) = (Arc::clone(&self.config), Arc::default());
            Preparation::begin(path.to_owned(), before, self.sites.clone(), listeners, &self.watches, NonZeroUsize::MIN)
        }
    }

    /// Replaces the config, and the file of a host, in the same way as `mv robotsd.toml old; mv new
    /// robotsd.toml`.
    #[test]
    fn a_process_that_replaces_another_waits_until_the_config_stops_changing() {
        let folder = tempfile::tempdir().unwrap();
        let [path, aside, hosts] = ["robotsd.toml", "old", "hosts"].map(|name| folder.path().join(name));
        std::fs::create_dir(&hosts).unwrap();
        let directory = "robots = { source = \"directory\", path = \"hosts\" }";
        std::fs::write(&aside, CONFIG.replace("robots.text = \"User-agent: *\"", directory)).unwrap();
        // The time is in the future, so that the test does not fail if the machine is slow.
        let changes_soon = |folder: &Path| {
            std::fs::File::open(folder).unwrap().set_modified(SystemTime::now() + 3 * QUIET).unwrap();
        };
        std::thread::scope(|scope| {
            changes_soon(folder.path());
            let reading = scope.spawn(|| load_when_quiet(&path));
            std::thread::sleep(QUIET / 4);
            std::fs::rename(&aside, &path).unwrap();
            assert_eq!(reading.join().unwrap().unwrap().sites.len(), 1);
            changes_soon(&hosts);
            let reading = scope.spawn(|| load_when_quiet(&path));
            std::thread::sleep(QUIET / 4);
            assert!(!reading.is_finished());
        });
    }

    /// A pipe like the one that a shell creates for `<(…)`. A read hangs until the writer is
    /// dropped.
    struct Pipe(PipeReader);

    impl Pipe {
        fn new() -> (Self, PipeWriter) {
            let (reader, writer) = std::io::pipe().unwrap();
            (Self(reader), writer)
        }

        fn path(&self) -> PathBuf {
            format!("/dev/fd/{}", self.0.as_raw_fd()).into()
        }
    }

    #[tokio::test]
    async fn an_abandoned_preparation_fails_once_its_file_can_be_read() {
        let served = Served::start();
        let (pipe, writer) = Pipe::new();
        let mut preparation = served.preparation(&pipe.path());
        preparation.stage.abandon();
        drop(writer);
        let error = preparation.end_within(None).await.unwrap().unwrap_err();
        assert_eq!(error.why, "a newer reload has replaced this reload");
    }

    #[tokio::test]
    async fn a_config_is_read_once_and_its_review_does_not_read_robots_txt() {
        let served = Served::start();
        let (pipe, mut writer) = Pipe::new();
        // The config is valid, but an address cannot be bound. The file must be read only once,
        // because a second read of the pipe would return nothing.
        let mut reading = served.preparation(&pipe.path());
        write!(writer, "mode = \"tag\"\n{}", CONFIG.replace("127.0.0.1:0", "192.0.2.1:1")).unwrap();
        drop(writer);
        let rejected = reading.end_within(None).await.unwrap().unwrap_err();
        assert!(rejected.why.contains("192.0.2.1:1"), "{}", rejected.why);
        assert!(rejected.changes.unwrap().iter().any(|change| change.setting == "mode"));
        // The robots.txt is a FIFO. The warning about the unknown name in `agents.ignore` must not
        // require reading this file, because the read would hang.
        let fifo = served.folder.path().join("robots.txt");
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        let config =
            format!("agents.ignore = [\"ExampleBot\"]\n{}", CONFIG.replace("robots.text = \"User-agent: *\"\n", ""));
        let path = served.folder.path().join("robotsd.toml");
        std::fs::write(&path, config).unwrap();
        assert!(Config::load(&path).unwrap().review().is_empty());
    }

    #[tokio::test]
    async fn a_preparation_that_ends_returns_its_outcome() {
        let mut preparation = Preparation::of(|_| Err(rejected("a fault")));
        assert_eq!(preparation.end_within(None).await.unwrap().unwrap_err().why, "a fault");
    }

    fn plan_of(address: &str) -> ListenerPlan {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("robotsd.toml");
        let text = format!(
            "[[listener]]\naddress = \"{address}\"\n[[site]]\nname = \"a\"\nroot = \".\"\nrobots.text = \"# a\"\n"
        );
        std::fs::write(&path, text).unwrap();
        Listeners::default().plan(&Config::load(&path).unwrap(), NonZeroUsize::MIN).unwrap()
    }

    #[tokio::test]
    async fn an_abandoned_preparation_closes_the_sockets_it_has_bound() {
        let (_reserve, free) = refusing();
        let (release, hanging) = mpsc::channel::<()>();
        let (bound, binding) = mpsc::channel();
        let address = free.to_string();
        let preparation = Preparation::of(move |stage| {
            stage.read().unwrap();
            stage.bind(|| Ok(plan_of(&address))).unwrap();
            bound.send(()).unwrap();
            // Acts like a robots.txt on a file system that hangs.
            let _ = hanging.recv();
            Err(rejected("the end"))
        });
        binding.recv_timeout(Duration::from_secs(60)).unwrap();
        assert!(std::net::TcpListener::bind(free).is_err(), "not bound");
        drop(preparation);
        std::net::TcpListener::bind(free).unwrap();
        drop(release);
    }

    #[tokio::test]
    async fn a_preparation_that_applies_its_settings_is_not_abandoned() {
        let (release, computing) = mpsc::channel::<()>();
        let (applying, applies) = mpsc::channel();
        let mut preparation = Preparation::of(move |stage| {
            stage.read().unwrap();
            stage.bind(|| Ok(plan_of("127.0.0.1:0"))).unwrap();
            let plan = stage.apply().unwrap();
            applying.send(()).unwrap();
            let _ = computing.recv();
            drop(plan);
            Err(rejected("applied to the end"))
        });
        applies.recv_timeout(Duration::from_secs(60)).unwrap();
        // The time limit has passed, but `end_within` must wait for the end of the preparation.
        let ending = preparation.end_within(Some(Duration::ZERO));
        let mut ending = std::pin::pin!(ending);
        assert!(tokio::time::timeout(Duration::from_millis(50), &mut ending).await.is_err());
        release.send(()).unwrap();
        assert_eq!(ending.await.unwrap().unwrap_err().why, "applied to the end");
    }
}
