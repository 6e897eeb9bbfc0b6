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
use super::writer::{QueueMembership, StateJob, StateWriter};
use crate::live::{Enforcement, KillSwitch, Mutex, Remembered, clock};

/// How long to wait for another handle to release its lock. After the application has dropped a
/// site, the thread of a file watcher may still hold the site, and so the lock, for a moment.
const PATIENCE: Duration = Duration::from_secs(2);

/// A folder that stores the accepted and pending versions of sites, the history of their reloads,
/// and the kill switches. Cloning is cheap.
///
/// A folder can be open only once at a time, because two independent handles would overwrite each
/// other's files. To use the folder in several places, clone the `StateDir`. The folder is locked
/// until the last clone and all sites that were opened with it are dropped. The system also
/// releases the lock when the process ends. A `StateDir` that is opened later finds everything that
/// was written to the folder. A site that is opened again with the same `StateDir`, for example
/// with other settings, also finds the changes that are not written yet.
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
    began: SystemTime,
    hold: Arc<LockHold>,
    /// The open sites, by folder. A site that is opened again finds its unwritten changes here.
    sites: Mutex<HashMap<PathBuf, Weak<SiteStore>>>,
}

struct StateFolder {
    path: PathBuf,
    disk: Disk,
    lock: Arc<FolderLock>,
    listeners: Arc<StateListeners>,
    problems: Problems,
    membership: Mutex<QueueMembership>,
    switch: SwitchFile,
}

impl StateDir {
    /// Opens a folder, and creates it if it does not exist. If the folder cannot be created, a file
    /// is damaged, or the file system does not support locks, `open` still succeeds, and
    /// [`StateDir::problems`] returns the problem.
    ///
    /// # Errors
    ///
    /// Returns an error if the folder is already open, in this or another process. `open` first
    /// waits up to two seconds, because another thread may be dropping the other handle.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, StateError> {
        let disk = Disk { lock_patience: PATIENCE, ..Disk::default() };
        Self::open_on(disk, StateWriter::default(), path.into())
    }

    /// Opens a folder without ever writing to it. Sites that are opened with this handle start with
    /// the versions and switches in the folder, but do not save their changes. The folder is not
    /// locked, so another process may have it open.
    pub fn read_only(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let lock = FolderLock::none(&path);
        Self::with_lock(Disk::read_only(), StateWriter::default(), path, lock, None)
    }

    pub(in crate::live) fn open_on(disk: Disk, writer: StateWriter, path: PathBuf) -> Result<Self, StateError> {
        // The folder is locked first, so that this process does not read files that another process
        // is writing, or remove temporary files of a process that is still running.
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
        let (lock_of_folder, membership) = (lock.clone(), Mutex::default());
        let folder =
            Arc::new(StateFolder { path, disk, lock: lock_of_folder, listeners, problems, membership, switch });
        let writer = Arc::new(writer);
        let switch = KillSwitch::standing(enforcement, folder.problems.get(ProblemKind::UnreadSwitch));
        if is_unwritable {
            writer.enqueue_retry(folder.clone());
        }
        let hold = Arc::new(LockHold { lock, writer: writer.clone() });
        Self { root: Arc::new(StateRoot { folder, switch, writer, began, hold, sites: Mutex::default() }) }
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> &Path {
        &self.root.folder.path
    }

    /// Returns `Off` if the kill switch for all sites disables enforcement.
    pub fn enforcement(&self) -> Enforcement {
        self.root.switch.enforcement()
    }

    /// Switches enforcement on or off for all sites that were or will be opened with this handle or
    /// its clones. The sites' own switches do not change.
    ///
    /// # Errors
    ///
    /// Returns an error if the change could not be written. Enforcement is switched nevertheless,
    /// and the write is retried. If the process ends before a write succeeds, the change is lost.
    pub fn set_enforcement(&self, enforcement: Enforcement) -> Result<(), StateError> {
        let StateRoot { folder, switch, writer, .. } = &*self.root;
        switch.change_position(enforcement, None, || {
            let written = folder.switch.set(enforcement, &folder.lock, &folder.problems);
            if written.is_err() {
                writer.enqueue_retry(folder.clone());
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
    /// Returns an error if the switch could not be written. After an error, the position of the
    /// switch is unchanged.
    pub fn set_enforcement_of(&self, site: &str, enforcement: Enforcement) -> Result<(), StateError> {
        self.root.folder.disk.write_switch(&self.folder_of(site), enforcement)
    }

    /// Reads the position of a site's own switch from its file in the folder, even if no process
    /// serves the site. Returns `Off` if the file cannot be read.
    pub fn enforcement_of(&self, site: &str) -> Enforcement {
        self.root.folder.disk.read_switch(&self.folder_of(site)).0
    }

    /// Returns the names of the sites in the folder, sorted, even if the sites are not open. Sites
    /// with long names are missing, because their folder names were cut.
    pub fn site_names(&self) -> Vec<String> {
        let folders = self.root.folder.disk.names(&self.path().join("sites"));
        let mut names: Vec<_> = folders.iter().filter_map(|name| site_of_folder(name)).collect();
        names.sort();
        names
    }

    /// Reads the saved state of a site from the folder, even if no process serves the site.
    pub fn remembered(&self, site: &str) -> Remembered {
        self.site(site).load(SystemTime::now())
    }

    /// Waits until the state of all sites is written, and retries failed writes once. Returns
    /// whether everything was written.
    ///
    /// You rarely need to call `flush`. A thread writes versions soon after they go live, sites
    /// write their state when they are dropped, and functions that carry out a decision of an
    /// operator return after the decision is written. Do not call `flush` in a callback of
    /// [`StateDir::on_event`]: `flush` would wait for the callback, and the callback would wait for
    /// `flush`.
    pub fn flush(&self) -> bool {
        self.root.writer.flush(None)
    }

    /// Writes the state like [`StateDir::flush`], but waits no longer than `limit`, in case the
    /// file system does not respond. After a timeout, sites write nothing when they are dropped, so
    /// that the process can end.
    pub fn flush_within(&self, limit: Duration) -> bool {
        self.root.writer.flush(Some(limit))
    }

    /// Writes all changes within `limit`, and then releases the folder so that another process can
    /// open it. If a change cannot be written, does not release the folder and returns `false`.
    ///
    /// Handles and sites remain usable, but their changes, including changes of a kill switch, are
    /// not written until [`StateDir::take_back`]. So the process that replaces this one finds the
    /// complete state, and only that process writes.
    pub fn hand_over(&self, limit: Duration) -> bool {
        let is_written = self.flush_within(limit);
        if is_written {
            self.root.folder.lock.hand_over();
        }
        is_written
    }

    /// Opens the folder again after [`StateDir::hand_over`], for example because the process that
    /// should replace this one could not open the folder. Writes the changes that were made since
    /// `hand_over`.
    ///
    /// # Errors
    ///
    /// If another process still has the folder open after two seconds, returns an error and writes
    /// nothing.
    pub fn take_back(&self) -> Result<(), StateError> {
        let StateRoot { folder, writer, sites, .. } = &*self.root;
        // If the folder was not handed over, there is nothing to do.
        if folder.lock.writing().is_some() {
            return Ok(());
        }
        let unlocked = folder.lock.take_back(&folder.disk, &folder.path)?;
        folder.problems.set(ProblemKind::Unlocked, unlocked);
        writer.call(folder.clone());
        // The stores are collected first, so `sites` is not locked while files are read.
        let stores: Vec<_> = sites.lock().values().filter_map(Weak::upgrade).collect();
        for store in stores {
            store.forget_files();
            writer.call(store);
        }
        Ok(())
    }

    /// Registers a callback that is called when a problem of the directory, or of a site in it,
    /// begins or ends. The callback is not called for problems that have already begun; see
    /// [`StateDir::problems`]. The callback runs on the thread that writes, so it delays the next
    /// write. The callback must neither use a kill switch nor call [`StateDir::flush`]. If the
    /// callback panics, the panic is caught.
    pub fn on_event(&self, listener: impl Fn(&ProblemEvent<'_>) + Send + Sync + 'static) {
        self.root.folder.listeners.add(Box::new(listener));
    }

    /// Returns every problem with the folder itself, the most urgent first. Problems of a single
    /// site are in the site's [`Status::state_problems`](crate::live::Status::state_problems).
    pub fn problems(&self) -> Vec<String> {
        let problems = self.root.folder.problems.all();
        // If nothing can be written to the folder, the folder cannot be locked, either. Only
        // `Unwritable` is reported in this case, not `Unlocked`.
        let is_unwritable = problems.iter().any(|problem| problem.kind == ProblemKind::Unwritable);
        let shown = problems.into_iter().filter(|problem| !is_unwritable || problem.kind != ProblemKind::Unlocked);
        shown.map(|problem| problem.text).chain(self.clock_problem()).collect()
    }

    /// Returns a problem if the last history entry of a site was more than an hour in the future
    /// when the site was opened. In this case, the clock is wrong now, or was wrong when the entry
    /// was written. `None` if no site has such an entry, or if the time of the entry is now in the
    /// past.
    pub fn clock_problem(&self) -> Option<String> {
        let now = self.root.folder.disk.clock.now();
        let sites = self.root.sites.lock();
        let last = sites.values().filter_map(Weak::upgrade).filter_map(|store| *store.ahead.lock()).max()?;
        let [says, has] = [now, last].map(clock::format_time);
        let problem = format!(
            "the clock shows {says}, but the state directory contains entries of {has}: the clock is wrong now, or was \
             wrong when these entries were written"
        );
        (last > now).then_some(problem)
    }

    /// Reports whether the last write to the folder, and the last write for each site, succeeded.
    /// [`StateDir::open`] and [`StateDir::probe`] also write to the folder. Problems of a single
    /// site are in the site's [`Status::state_problems`](crate::live::Status::state_problems).
    pub fn is_writable(&self) -> bool {
        let sites = self.root.sites.lock();
        self.root.folder.problems.is_all_written()
            && sites.values().filter_map(Weak::upgrade).all(|store| store.problems.is_all_written())
    }

    /// Tests on another thread whether files in the folder can be written, so that a problem is
    /// reported before there is something to write.
    pub fn probe(&self) {
        let StateRoot { folder, writer, .. } = &*self.root;
        writer.call(folder.clone());
    }

    /// Returns the problem if the file of the kill switch for all sites is damaged or could not be
    /// read. The switch then counts as [`Enforcement::Off`], although no operator has switched it
    /// off. `None` if there is no such problem, or if the switch was set afterwards.
    pub fn switch_problem(&self) -> Option<String> {
        self.root.folder.problems.get(ProblemKind::UnreadSwitch)
    }

    /// Returns the part of the directory that belongs to a site, without reading files.
    pub(in crate::live) fn site(&self, name: &str) -> SiteState {
        let StateRoot { folder, writer, began, hold, sites, .. } = &*self.root;
        let path = self.folder_of(name);
        let mut sites = sites.lock();
        let store = sites.get(&path).and_then(Weak::upgrade).unwrap_or_else(|| {
            if sites.len() == sites.capacity() {
                // Dropped sites are removed only before the map grows, because the removal visits
                // all entries.
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

    pub(in crate::live) fn switch(&self) -> &KillSwitch {
        &self.root.switch
    }
}

impl StateJob for StateFolder {
    fn membership(&self) -> &Mutex<QueueMembership> {
        &self.membership
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
