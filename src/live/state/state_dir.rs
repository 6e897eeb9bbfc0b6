//! The state directory: the kill switch of all sites, and what each site remembers.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use super::disk::Disk;
use super::error::{ProblemEvent, ProblemKind, Problems, StateError, StateListeners};
use super::folder_name::{folder_name, site_of_folder};
use super::lock::{FolderLock, LockHold};
use super::site::{SiteState, SiteStore};
use super::switch_file::SwitchFile;
use super::writer::{QueuePlace, StateJob, StateWriter};
use crate::live::{Enforcement, KillSwitch, Mutex, Remembered, clock};

/// How long to wait for the lock of a handle that is being dropped. A file watcher's thread may
/// keep a site alive slightly longer than its last owner.
const PATIENCE: Duration = Duration::from_secs(2);

/// A folder for the sites' accepted and pending versions, their reloads, and the kill switch. Cheap
/// to clone.
///
/// Only one process at a time can have a folder open, with one `StateDir` and its clones: two that
/// do not know of each other would both record what is live. The system holds the lock, so the lock
/// ends with the process at the latest. It ends earlier if the last clone and the last site that
/// was opened with it are dropped. The next process or handle that opens the folder finds
/// everything that was written. Sites opened with the same `StateDir`, such as one that replaces
/// another, also find changes that are not written yet.
///
/// ```no_run
/// use tower_robots::live::{Enforcement, LiveRobots, StateDir};
///
/// let state = StateDir::open("/var/lib/robotsd")?;
/// let live = LiveRobots::file("/etc/robotsd/shop.txt").state(&state, "shop").open()?;
/// state.set_enforcement(Enforcement::Off)?; // for every site, and after a restart
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct StateDir {
    root: Arc<StateRoot>,
}

struct StateRoot {
    folder: Arc<StateFolder>,
    switch: KillSwitch,
    writer: Arc<StateWriter>,
    /// When the directory was opened: older unfinished files are from another process.
    began: SystemTime,
    hold: Arc<LockHold>,
    /// By folder, so that a site that is opened again finds changes that could not be written yet.
    sites: Mutex<HashMap<PathBuf, Weak<SiteStore>>>,
}

/// The content of the folder itself.
struct StateFolder {
    path: PathBuf,
    disk: Disk,
    lock: Arc<FolderLock>,
    listeners: Arc<StateListeners>,
    problems: Problems,
    place: Mutex<QueuePlace>,
    switch: SwitchFile,
}

impl StateDir {
    /// Opens a folder, and creates it if it does not exist. If that fails, a file in it is damaged,
    /// or the file system has no locks, the directory is used nevertheless and
    /// [`StateDir::problems`] reports it.
    ///
    /// # Errors
    ///
    /// If the folder is open already, in another process or in this one. `open` waits two seconds
    /// for a handle that is just being dropped.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, StateError> {
        let disk = Disk { lock_patience: PATIENCE, ..Disk::default() };
        Self::open_on(disk, StateWriter::default(), path.into())
    }

    /// Opens a folder to see what the next start would find. Sites opened with it have the versions
    /// and switches that the folder contains, and nothing they do is written. No lock is needed, so
    /// another process may have the folder open.
    pub fn read_only(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let lock = FolderLock::none(&path);
        Self::with_lock(Disk::read_only(), StateWriter::default(), path, lock, None)
    }

    pub(in crate::live) fn open_on(disk: Disk, writer: StateWriter, path: PathBuf) -> Result<Self, StateError> {
        // Lock first, so that files that another process is writing are neither read nor taken for
        // leftovers of a killed process.
        let (lock, unlocked) = FolderLock::take(&disk, &path)?;
        Ok(Self::with_lock(disk, writer, path, lock, unlocked))
    }

    fn with_lock(disk: Disk, writer: StateWriter, path: PathBuf, lock: FolderLock, unlocked: Option<String>) -> Self {
        let began = SystemTime::now();
        let lock = Arc::new(lock);
        disk.clean(&path, began);
        let (enforcement, damaged) = disk.read_switch(&path);
        let probe = disk.probe(&path);
        let is_unwritable = probe.is_some();
        let listeners = Arc::default();
        let problems = Problems::new(None, &listeners);
        problems.begin([
            (ProblemKind::UnreadSwitch, damaged),
            (ProblemKind::Unwritable, probe),
            (ProblemKind::Unlocked, unlocked),
        ]);
        let switch = SwitchFile::new(&disk, &path);
        if !is_unwritable {
            switch.write(&problems);
        }
        let (lock_of_folder, place) = (lock.clone(), Mutex::default());
        let folder = Arc::new(StateFolder { path, disk, lock: lock_of_folder, listeners, problems, place, switch });
        let writer = Arc::new(writer);
        let switch = KillSwitch::standing(enforcement, folder.problems.get(ProblemKind::UnreadSwitch));
        if is_unwritable {
            writer.call_later(folder.clone());
        }
        let hold = Arc::new(LockHold { lock, writer: writer.clone() });
        Self { root: Arc::new(StateRoot { folder, switch, writer, began, hold, sites: Mutex::default() }) }
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.root.folder.path
    }

    /// Returns the position of the kill switch of all sites.
    pub fn enforcement(&self) -> Enforcement {
        self.root.switch.enforcement()
    }

    /// Switches enforcement on or off for every site opened with this value or a clone of it: at
    /// once, and for sites opened later. A site's own switch stays as it is.
    ///
    /// # Errors
    ///
    /// If the change could not be written. It is in force nevertheless, and the write is tried
    /// again. If the process ends before a write succeeds, the change is lost.
    pub fn set_enforcement(&self, enforcement: Enforcement) -> Result<(), StateError> {
        let StateRoot { folder, switch, writer, .. } = &*self.root;
        switch.turn(enforcement, None, || {
            let written = folder.switch.set(enforcement, &folder.lock, &folder.problems);
            if written.is_err() {
                writer.call_later(folder.clone());
            }
            written
        })
    }

    /// Writes the kill switch of a site that no process serves; it takes effect when the site is
    /// opened. For an open site, use
    /// [`LiveRobots::set_enforcement`](crate::live::LiveRobots::set_enforcement).
    ///
    /// # Errors
    ///
    /// If the switch could not be written; nothing changes then.
    pub fn set_enforcement_of(&self, site: &str, enforcement: Enforcement) -> Result<(), StateError> {
        self.root.folder.disk.write_switch(&self.folder_of(site), enforcement)
    }

    /// Returns the switch of a site as written in the folder, whether or not a process serves the
    /// site. Off if the file cannot be read.
    pub fn enforcement_of(&self, site: &str) -> Enforcement {
        self.root.folder.disk.read_switch(&self.folder_of(site)).0
    }

    /// Returns the names of the sites that the folder remembers, open or not, in sorted order.
    /// Sites whose folder name would exceed 120 bytes are missing.
    pub fn site_names(&self) -> Vec<String> {
        let folders = self.root.folder.disk.names(&self.path().join("sites"));
        let mut names: Vec<_> = folders.iter().filter_map(|name| site_of_folder(name)).collect();
        names.sort();
        names
    }

    /// Returns what the folder keeps of a site, whether or not a process serves it. Reads the
    /// site's files.
    pub fn remembered(&self, site: &str) -> Remembered {
        self.site(site).load(SystemTime::now())
    }

    /// Waits until the state of all sites is written. A thread writes it soon after a version goes
    /// live. A site also writes its state when it is dropped. An operator's decision is written
    /// before its call returns. Failed writes are tried once more. Returns whether everything is
    /// written. Do not call this from a callback of this directory: the callback would wait for
    /// itself.
    pub fn flush(&self) -> bool {
        self.root.writer.flush(None)
    }

    /// Flushes like [`StateDir::flush`], but gives up after `limit`, because a file system may
    /// hang. Sites that are dropped after such a timeout write nothing: otherwise the end of the
    /// process would wait for them.
    pub fn flush_within(&self, limit: Duration) -> bool {
        self.root.writer.flush(Some(limit))
    }

    /// Writes all changes within `limit` and releases the folder, so that another process can open
    /// it. Returns whether that succeeded: if something cannot be written, the folder stays open.
    ///
    /// Handles and sites continue as they are. Their writes, including those of a kill switch, wait
    /// for [`StateDir::take_back`]. So a process that replaces this one finds everything that was
    /// known, and is the only one that writes.
    pub fn hand_over(&self, limit: Duration) -> bool {
        let is_written = self.flush_within(limit);
        if is_written {
            self.root.folder.lock.hand_over();
        }
        is_written
    }

    /// Opens the folder again after [`StateDir::hand_over`], if no other process replaced this one
    /// after all. Writes the changes made meanwhile.
    ///
    /// # Errors
    ///
    /// If another process has the folder open. Waits two seconds, in case that process is just
    /// ending. Nothing is written then.
    pub fn take_back(&self) -> Result<(), StateError> {
        let StateRoot { folder, writer, sites, .. } = &*self.root;
        // A folder that was not handed over is unchanged, and so are its problems.
        if folder.lock.writing().is_some() {
            return Ok(());
        }
        let unlocked = folder.lock.take_back(&folder.disk, &folder.path)?;
        folder.problems.set(ProblemKind::Unlocked, unlocked);
        writer.call(folder.clone());
        // After releasing the lock of `sites`, because files are read here.
        let stores: Vec<_> = sites.lock().values().filter_map(Weak::upgrade).collect();
        for store in stores {
            store.trust_nothing();
            writer.call(store);
        }
        Ok(())
    }

    /// Registers a callback for when a problem of the directory, or of a site's part of it, begins
    /// or ends. Problems that began before are in [`StateDir::problems`]. The callback runs on the
    /// writing thread and delays the next write. It must neither use a kill switch nor call
    /// [`StateDir::flush`]. Its panics are caught.
    pub fn on_event(&self, listener: impl Fn(&ProblemEvent<'_>) + Send + Sync + 'static) {
        self.root.folder.listeners.add(Box::new(listener));
    }

    /// Returns every problem of the folder itself, the most urgent first. Problems with a site's
    /// part of it are in the site's
    /// [`Status::state_problems`](crate::live::Status::state_problems).
    pub fn problems(&self) -> Vec<String> {
        let problems = self.root.folder.problems.all();
        // A folder that cannot be written cannot be locked either.
        let is_unwritable = problems.iter().any(|problem| problem.kind == ProblemKind::Unwritable);
        let shown = problems.into_iter().filter(|problem| !is_unwritable || problem.kind != ProblemKind::Unlocked);
        shown.map(|problem| problem.text).chain(self.clock_problem()).collect()
    }

    /// Returns a problem if the last entry of a site was more than an hour ahead of the clock when
    /// the site was opened: one of the two is wrong. `None` after the clock has passed that time.
    pub fn clock_problem(&self) -> Option<String> {
        let now = self.root.folder.disk.clock.now();
        let sites = self.root.sites.lock();
        let last = sites.values().filter_map(Weak::upgrade).filter_map(|store| *store.ahead.lock()).max()?;
        let [says, has] = [now, last].map(clock::shown);
        let problem = format!("the clock says {says}, but state_dir has entries of {has}: the clock is wrong, or was");
        (last > now).then_some(problem)
    }

    /// Reports whether the last attempt to write to the folder, including the parts of its sites,
    /// succeeded. [`StateDir::open`], every write and [`StateDir::probe`] are such attempts.
    /// Problems with a site's part are in the site's
    /// [`Status::state_problems`](crate::live::Status::state_problems).
    pub fn is_writable(&self) -> bool {
        let sites = self.root.sites.lock();
        self.root.folder.problems.is_all_written()
            && sites.values().filter_map(Weak::upgrade).all(|store| store.problems.is_all_written())
    }

    /// Tests on another thread whether the folder can be written to, so that a problem is known
    /// before something has to be written.
    pub fn probe(&self) {
        let StateRoot { folder, writer, .. } = &*self.root;
        writer.call(folder.clone());
    }

    /// Returns why the kill switch of all sites counts as [`Enforcement::Off`] although no operator
    /// switched it off: its file could not be read, or is damaged. `None` after the file is written
    /// again.
    pub fn switch_problem(&self) -> Option<String> {
        self.root.folder.problems.get(ProblemKind::UnreadSwitch)
    }

    /// Returns a site's part of the directory. Reads no file.
    pub(in crate::live) fn site(&self, name: &str) -> SiteState {
        let StateRoot { folder, writer, began, hold, sites, .. } = &*self.root;
        let path = self.folder_of(name);
        let mut sites = sites.lock();
        let store = sites.get(&path).and_then(Weak::upgrade).unwrap_or_else(|| {
            if sites.len() == sites.capacity() {
                // Only before the map grows: doing this at every site would visit ten thousand
                // entries ten thousand times.
                sites.retain(|_, store| store.strong_count() > 0);
            }
            let store = Arc::new(SiteStore::new(
                folder.disk.clone(),
                hold.lock.clone(),
                path.clone(),
                name,
                *began,
                &folder.listeners,
            ));
            sites.insert(path, Arc::downgrade(&store));
            store
        });
        SiteState { store, writer: writer.clone(), hold: hold.clone() }
    }

    fn folder_of(&self, site: &str) -> PathBuf {
        self.path().join("sites").join(folder_name(site))
    }

    /// Returns the kill switch of all sites.
    pub(in crate::live) fn switch(&self) -> &KillSwitch {
        &self.root.switch
    }
}

impl StateJob for StateFolder {
    fn place(&self) -> &Mutex<QueuePlace> {
        &self.place
    }

    fn write(&self) -> bool {
        let Some(writing) = self.lock.writing() else { return true };
        let is_written = self.switch.write(&self.problems);
        let was_unwritable = self.problems.get(ProblemKind::Unwritable).is_some();
        let probe = self.disk.probe(&self.path);
        let is_writable = probe.is_none();
        self.problems.set(ProblemKind::Unwritable, probe);
        if was_unwritable && is_writable {
            self.switch.write(&self.problems);
        }
        drop(writing);
        if was_unwritable && is_writable {
            let problem = self.lock.retry(&self.disk, &self.path);
            self.problems.set(ProblemKind::Unlocked, problem);
        }
        is_written && is_writable
    }
}

robots_core::debug_as!(|it| StateDir { path: it.path(), enforcement: it.enforcement() });
