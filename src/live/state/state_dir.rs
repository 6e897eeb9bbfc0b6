//! The state directory: the kill switch of all sites, and the remembered state of each site.

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

/// How long to wait for a handle that is being dropped to release the lock. The thread of a file
/// watcher may keep a site alive slightly longer than its last owner.
const PATIENCE: Duration = Duration::from_secs(2);

/// A folder for the sites' accepted and pending versions, their reloads, and the kill switch. Cheap
/// to clone.
///
/// Only one process at a time can have a folder open, with one `StateDir` and its clones: two
/// independent handles would overwrite each other's record of the live version. The folder is
/// locked until the last clone and the last site that was opened with it are dropped; the system
/// releases the lock when the process ends. The next process or handle that opens the folder finds
/// everything that was written. If a site is opened again with the same `StateDir`, for example to
/// replace its settings, it also finds changes that are not written yet.
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
    /// The open sites, by folder. A site that is opened again finds its changes that could not be
    /// written yet.
    sites: Mutex<HashMap<PathBuf, Weak<SiteStore>>>,
}

/// The files in the folder itself, without those of the sites.
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
    /// Opens a folder, and creates the folder if it does not exist. If the folder cannot be
    /// created, if one of its files is damaged, or if the file system does not support locks, the
    /// directory is used nevertheless and [`StateDir::problems`] reports the problem.
    ///
    /// # Errors
    ///
    /// If the folder is open already, in another process or in this one. `open` waits up to two
    /// seconds, in case the other handle is just being dropped.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, StateError> {
        let disk = Disk { lock_patience: PATIENCE, ..Disk::default() };
        Self::open_on(disk, StateWriter::default(), path.into())
    }

    /// Opens a folder without ever writing to it, to see the state that the next start would find.
    /// Sites opened with this handle have the versions and switches from the folder. The folder is
    /// not locked, so another process may have it open.
    pub fn read_only(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let lock = FolderLock::none(&path);
        Self::with_lock(Disk::read_only(), StateWriter::default(), path, lock, None)
    }

    pub(in crate::live) fn open_on(disk: Disk, writer: StateWriter, path: PathBuf) -> Result<Self, StateError> {
        // The folder is locked first: otherwise, files that another process is writing could be
        // read, or could be removed as files of a killed process.
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
    /// once, and for sites opened later. The own switches of the sites do not change.
    ///
    /// # Errors
    ///
    /// If the change could not be written. The change is in force nevertheless, and the write is
    /// retried. If the process ends before a write succeeds, the change is lost.
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

    /// Writes the kill switch of a site that no process serves. The change takes effect when the
    /// site is opened. For an open site, use
    /// [`LiveRobots::set_enforcement`](crate::live::LiveRobots::set_enforcement).
    ///
    /// # Errors
    ///
    /// If the switch could not be written. Nothing changes then.
    pub fn set_enforcement_of(&self, site: &str, enforcement: Enforcement) -> Result<(), StateError> {
        self.root.folder.disk.write_switch(&self.folder_of(site), enforcement)
    }

    /// Returns the position of a site's own switch from the file in the folder, whether or not a
    /// process serves the site. `Off` if the file cannot be read.
    pub fn enforcement_of(&self, site: &str) -> Enforcement {
        self.root.folder.disk.read_switch(&self.folder_of(site)).0
    }

    /// Returns the names of the sites that the folder remembers, open or not, in sorted order.
    /// Sites with long names, whose folder name had to be cut, are missing from the list.
    pub fn site_names(&self) -> Vec<String> {
        let folders = self.root.folder.disk.names(&self.path().join("sites"));
        let mut names: Vec<_> = folders.iter().filter_map(|name| site_of_folder(name)).collect();
        names.sort();
        names
    }

    /// Reads the remembered state of a site from the folder, whether or not a process serves the
    /// site.
    pub fn remembered(&self, site: &str) -> Remembered {
        self.site(site).load(SystemTime::now())
    }

    /// Waits until the state of all sites is written, and retries failed writes once. Returns
    /// whether everything is written.
    ///
    /// Calling this is rarely necessary. A thread writes versions soon after they go live, sites
    /// write their state when they are dropped, and decisions of operators are written before the
    /// call returns. Do not call this from a callback of this directory, because the callback would
    /// wait for itself.
    pub fn flush(&self) -> bool {
        self.root.writer.flush(None)
    }

    /// Flushes like [`StateDir::flush`], but stops waiting after `limit`, because a file system may
    /// hang. After such a timeout, sites that are dropped write nothing; otherwise the end of the
    /// process would wait for the file system.
    pub fn flush_within(&self, limit: Duration) -> bool {
        self.root.writer.flush(Some(limit))
    }

    /// Writes all changes within `limit` and releases the folder, so that another process can open
    /// it. Returns whether that succeeded. If a change cannot be written, the folder is not
    /// released.
    ///
    /// Handles and sites remain usable, but their changes, including those of a kill switch, are
    /// not written until [`StateDir::take_back`]. So a process that replaces this process finds the
    /// complete state, and is the only process that writes.
    pub fn hand_over(&self, limit: Duration) -> bool {
        let is_written = self.flush_within(limit);
        if is_written {
            self.root.folder.lock.hand_over();
        }
        is_written
    }

    /// Opens the folder again after [`StateDir::hand_over`], in case this process was not replaced
    /// after all. Writes the changes that were made in the meantime.
    ///
    /// # Errors
    ///
    /// If another process still has the folder open after two seconds. Nothing is written then.
    pub fn take_back(&self) -> Result<(), StateError> {
        let StateRoot { folder, writer, sites, .. } = &*self.root;
        // The folder was not handed over, so nothing has changed.
        if folder.lock.writing().is_some() {
            return Ok(());
        }
        let unlocked = folder.lock.take_back(&folder.disk, &folder.path)?;
        folder.problems.set(ProblemKind::Unlocked, unlocked);
        writer.call(folder.clone());
        // The stores are collected first, so that the lock of `sites` is not held while files are
        // read.
        let stores: Vec<_> = sites.lock().values().filter_map(Weak::upgrade).collect();
        for store in stores {
            store.trust_nothing();
            writer.call(store);
        }
        Ok(())
    }

    /// Registers a callback for when a problem of the directory, or of a site's part of it, begins
    /// or ends. Problems that began earlier are only in [`StateDir::problems`]. The callback runs
    /// on the writing thread, so it delays the next write. It must neither use a kill switch nor
    /// call [`StateDir::flush`]. Its panics are caught.
    pub fn on_event(&self, listener: impl Fn(&ProblemEvent<'_>) + Send + Sync + 'static) {
        self.root.folder.listeners.add(Box::new(listener));
    }

    /// Returns every problem with the folder itself; the most urgent is first. Problems with a
    /// site's part of the folder are in the site's
    /// [`Status::state_problems`](crate::live::Status::state_problems).
    pub fn problems(&self) -> Vec<String> {
        let problems = self.root.folder.problems.all();
        // A folder that cannot be written cannot be locked, either, so only the first problem is
        // reported.
        let is_unwritable = problems.iter().any(|problem| problem.kind == ProblemKind::Unwritable);
        let shown = problems.into_iter().filter(|problem| !is_unwritable || problem.kind != ProblemKind::Unlocked);
        shown.map(|problem| problem.text).chain(self.clock_problem()).collect()
    }

    /// Returns a problem if the last history entry of a site was more than an hour ahead of the
    /// clock when the site was opened: either the clock is wrong now, or it was wrong then. `None`
    /// if the clock has passed the time of the entry since.
    pub fn clock_problem(&self) -> Option<String> {
        let now = self.root.folder.disk.clock.now();
        let sites = self.root.sites.lock();
        let last = sites.values().filter_map(Weak::upgrade).filter_map(|store| *store.ahead.lock()).max()?;
        let [says, has] = [now, last].map(clock::shown);
        let problem = format!(
            "the clock shows {says}, but state_dir has entries of {has}: the clock is wrong now or was wrong then"
        );
        (last > now).then_some(problem)
    }

    /// Reports whether the last attempt to write to the folder, including the parts of its sites,
    /// succeeded. [`StateDir::open`], every write and [`StateDir::probe`] are such attempts.
    /// Problems with a site's part are described in the site's
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
    /// switched it off: the file of the switch could not be read, or is damaged. `None` if the file
    /// has been written since.
    pub fn switch_problem(&self) -> Option<String> {
        self.root.folder.problems.get(ProblemKind::UnreadSwitch)
    }

    /// Returns a site's part of the directory, without reading files.
    pub(in crate::live) fn site(&self, name: &str) -> SiteState {
        let StateRoot { folder, writer, began, hold, sites, .. } = &*self.root;
        let path = self.folder_of(name);
        let mut sites = sites.lock();
        let store = sites.get(&path).and_then(Weak::upgrade).unwrap_or_else(|| {
            if sites.len() == sites.capacity() {
                // Dropped sites are removed only before the map grows: doing so for each of ten
                // thousand sites would visit ten thousand entries each time.
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
