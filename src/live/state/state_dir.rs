//! The state directory: the switch of all sites, and what each site remembers.

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

/// How long to wait for the lock of a handle that is being dropped: a thread that watches a file may hold a site for a moment longer than
/// its last owner.
const PATIENCE: Duration = Duration::from_secs(2);

/// A folder in which sites remember the versions they accepted, the one that waits, their attempts, and the kill switch. Cheap to clone.
///
/// One process at a time has a folder open, and in it one `StateDir` with its clones: two that did not know of each other
/// would each write down what is live. The lock is the system's, so it ends with the process at the latest; before, when
/// the last clone and the last site that was opened with it are dropped. The next process or handle that opens the folder
/// then finds all that was written. Sites that are opened with the same `StateDir`, such as one that is replaced, also
/// find what waits to be written.
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
    /// When it was opened: older unfinished files are of another process.
    began: SystemTime,
    hold: Arc<LockHold>,
    /// By folder, so that a site that is opened anew finds what could not be written yet.
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
    /// Opens a folder, which is made where there is none. If that fails, or a file in it is damaged, or the file system
    /// has no locks, it goes on without: [`StateDir::problems`] says so.
    ///
    /// # Errors
    ///
    /// If the folder is open already, in another process or in this one. It waits two seconds for a handle that is
    /// just being dropped.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, StateError> {
        let disk = Disk { lock_patience: PATIENCE, ..Disk::default() };
        Self::open_on(disk, StateWriter::default(), path.into())
    }

    /// Opens a folder to find out what the next start would: sites that are opened with it have the versions and switches
    /// that stand in it, and nothing they do is written. It needs no lock, so another process may have the folder open.
    pub fn read_only(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let lock = FolderLock::none(&path);
        Self::with_lock(Disk::read_only(), StateWriter::default(), path, lock, None)
    }

    pub(in crate::live) fn open_on(disk: Disk, writer: StateWriter, path: PathBuf) -> Result<Self, StateError> {
        // First: what another process is writing is not read, nor taken for what a killed one left.
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

    /// The path.
    pub fn path(&self) -> &Path {
        &self.root.folder.path
    }

    /// The kill switch of all sites.
    pub fn enforcement(&self) -> Enforcement {
        self.root.switch.enforcement()
    }

    /// Turns enforcement off, or on again, for every site opened with this folder (this value or a clone of it), at once
    /// and for those opened later. A site's own switch stays as it is.
    ///
    /// # Errors
    ///
    /// If it could not be written down: it is done, and will be forgotten when the process ends unless it can be written
    /// before, which is tried.
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

    /// Turns the switch of a site that no process serves: it holds when the site is opened. A site
    /// that is open has [`LiveRobots::set_enforcement`](crate::live::LiveRobots::set_enforcement).
    ///
    /// # Errors
    ///
    /// If it could not be written down: nothing changes then.
    pub fn set_enforcement_of(&self, site: &str, enforcement: Enforcement) -> Result<(), StateError> {
        self.root.folder.disk.write_switch(&self.folder_of(site), enforcement)
    }

    /// The switch of a site as it stands in the folder, whether a process serves the site or not. Off where it cannot be read.
    pub fn enforcement_of(&self, site: &str) -> Enforcement {
        self.root.folder.disk.read_switch(&self.folder_of(site)).0
    }

    /// The sites that the folder remembers, open or not, in the order of their names. A site whose name is longer than 120
    /// octets in the folder is not among them.
    pub fn site_names(&self) -> Vec<String> {
        let folders = self.root.folder.disk.names(&self.path().join("sites"));
        let mut names: Vec<_> = folders.iter().filter_map(|name| site_of_folder(name)).collect();
        names.sort();
        names
    }

    /// What the folder keeps of a site, whether a process serves it or not. It reads its files.
    pub fn remembered(&self, site: &str) -> Remembered {
        self.site(site).load(SystemTime::now())
    }

    /// Waits until the state of all sites is written: a thread writes it a moment after it is live. A site writes its own
    /// when it is dropped, and a decision of an operator before its call returns. Writes that failed are tried once more.
    /// Returns whether everything is written. Not to be called from a callback of this directory, which would wait for
    /// itself.
    pub fn flush(&self) -> bool {
        self.root.writer.flush(None)
    }

    /// [`StateDir::flush`] that gives up after a while: a file system may hang. Then sites that are dropped later write
    /// nothing either, or the end of the process would wait for them.
    pub fn flush_within(&self, limit: Duration) -> bool {
        self.root.writer.flush(Some(limit))
    }

    /// Writes what is to be written, within a while, and gives the folder up, so that another process can open it. Returns whether
    /// it has: where something cannot be written, the folder stays open.
    ///
    /// Handles and sites go on as they are; their writes, a turn of a kill switch too, wait for [`StateDir::take_back`].
    /// So a process that takes the place of this one finds all that was known, and writes alone.
    pub fn hand_over(&self, limit: Duration) -> bool {
        let is_written = self.flush_within(limit);
        if is_written {
            self.root.folder.lock.hand_over();
        }
        is_written
    }

    /// Opens the folder again that was handed over, because no other process took this one's place after all, and writes what has
    /// come meanwhile.
    ///
    /// # Errors
    ///
    /// If another process has the folder open; it waits two seconds for one that is just ending. Nothing is written then.
    pub fn take_back(&self) -> Result<(), StateError> {
        let StateRoot { folder, writer, sites, .. } = &*self.root;
        // A folder that was not handed over is as it was, its problems too.
        if folder.lock.writing().is_some() {
            return Ok(());
        }
        let unlocked = folder.lock.take_back(&folder.disk, &folder.path)?;
        folder.problems.set(ProblemKind::Unlocked, unlocked);
        writer.call(folder.clone());
        // Without the lock, as files are read.
        let stores: Vec<_> = sites.lock().values().filter_map(Weak::upgrade).collect();
        for store in stores {
            store.trust_nothing();
            writer.call(store);
        }
        Ok(())
    }

    /// Calls back when a problem of the directory or of a site's part of it begins, and when it ends. Problems from before
    /// stand in [`StateDir::problems`]. The callback runs on the thread that writes and holds up the next write, so it must
    /// neither turn a kill switch nor call [`StateDir::flush`]; its panics are caught.
    pub fn on_event(&self, listener: impl Fn(&ProblemEvent<'_>) + Send + Sync + 'static) {
        self.root.folder.listeners.add(Box::new(listener));
    }

    /// Every problem of the folder itself, the most pressing first; those of a site's part of it stand in its
    /// [`Status::state_problems`](crate::live::Status::state_problems).
    pub fn problems(&self) -> Vec<String> {
        let problems = self.root.folder.problems.all();
        // One that cannot be written cannot be locked either.
        let is_unwritable = problems.iter().any(|problem| problem.kind == ProblemKind::Unwritable);
        let shown = problems.into_iter().filter(|problem| !is_unwritable || problem.kind != ProblemKind::Unlocked);
        shown.map(|problem| problem.text).chain(self.clock_problem()).collect()
    }

    /// That the last entry of a site was more than an hour ahead of the clock when the site was opened: one of the two is wrong. `None`
    /// once the clock has passed that time.
    pub fn clock_problem(&self) -> Option<String> {
        let now = self.root.folder.disk.clock.now();
        let sites = self.root.sites.lock();
        let last = sites.values().filter_map(Weak::upgrade).filter_map(|store| *store.ahead.lock()).max()?;
        let [says, has] = [now, last].map(clock::shown);
        let problem = format!("the clock says {says}, but state_dir has entries of {has}: the clock is wrong, or was");
        (last > now).then_some(problem)
    }

    /// Whether the folder, with the parts of its sites, could be written to when that was last tried: it is at [`StateDir::open`],
    /// with what has to be written, and at [`StateDir::probe`]. The problems of a site's part stand in its
    /// [`Status::state_problems`](crate::live::Status::state_problems).
    pub fn is_writable(&self) -> bool {
        let sites = self.root.sites.lock();
        self.root.folder.problems.is_all_written()
            && sites.values().filter_map(Weak::upgrade).all(|store| store.problems.is_all_written())
    }

    /// Has it tried on another thread whether the folder can be written to, so that it is known before something has to be.
    pub fn probe(&self) {
        let StateRoot { folder, writer, .. } = &*self.root;
        writer.call(folder.clone());
    }

    /// Why the kill switch of all sites was taken for [`Enforcement::Off`] although no operator turned it: its file could
    /// not be read, or is damaged. `None` once it is written again.
    pub fn switch_problem(&self) -> Option<String> {
        self.root.folder.problems.get(ProblemKind::UnreadSwitch)
    }

    /// A site's part of the directory. It reads no file.
    pub(in crate::live) fn site(&self, name: &str) -> SiteState {
        let StateRoot { folder, writer, began, hold, sites, .. } = &*self.root;
        let path = self.folder_of(name);
        let mut sites = sites.lock();
        let store = sites.get(&path).and_then(Weak::upgrade).unwrap_or_else(|| {
            if sites.len() == sites.capacity() {
                // Before it grows: at every site, ten thousand would be looked through ten thousand times.
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

    /// The one of all sites.
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
