//! What must not be lost when the process ends.
//!
//! ```text
//! enforcement                the kill switch of all sites: `on` or `off`
//! sites/NAME/enforcement     that of one
//! sites/NAME/state.json      which versions were accepted and when, which one waits and why
//! sites/NAME/HASH.txt        their bytes
//! sites/NAME/history.jsonl   what was tried and what came of it
//! ```
//!
//! Every file is written aside and renamed, so it is whole whenever the process is killed, and is for its owner alone.
//! What a source said is written a moment after it is live, by one thread for all sites; what somebody decided before
//! they are answered. Several processes may use one
//! directory: whoever writes last wins, and none takes another's file for its own, because bytes are named by their hash.
//! What is damaged or foreign is told of and ignored; where nothing can be written, everything goes on and is told of, and
//! is forgotten at the end.

mod disk;
mod json;
mod site;
mod writer;

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

pub(super) use self::disk::Durability;
pub(super) use self::site::{Remembered, SiteState};

use self::writer::Writer;
use super::enforcement::{Enforcement, KillSwitch};

/// A folder in which sites remember what they accepted, what waits, what they tried, and the kill switch. Cheap to clone.
///
/// ```no_run
/// use tower_robots::source::{Enforcement, LiveRobots, StateDir};
///
/// let state = StateDir::open("/var/lib/robotsd");
/// let live = LiveRobots::file("/etc/robotsd/shop.txt").state(&state, "shop").open()?;
/// state.set_enforcement(Enforcement::Off)?; // for every site, and after a restart
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct StateDir {
    root: Arc<Root>,
}

struct Root {
    path: PathBuf,
    trouble: Mutex<Option<String>>,
    switch: KillSwitch,
    writer: Arc<Writer>,
}

/// What could not be written, and so will be forgotten.
#[derive(Debug)]
pub struct StateError {
    path: PathBuf,
    cause: io::Error,
}

impl StateDir {
    /// Opens a folder, which is made where there is none. Where that fails, or what stands in it is damaged, it goes on
    /// without: [`StateDir::trouble`] says so.
    #[must_use]
    pub fn open(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let (enforcement, mut trouble) = disk::read_switch(&path);
        if let Err(error) = disk::probe(&path) {
            trouble = Some(error.to_string());
        }
        let switch = KillSwitch::standing(enforcement);
        Self { root: Arc::new(Root { path, trouble: Mutex::new(trouble), switch, writer: Arc::default() }) }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.root.path
    }

    /// The kill switch of all sites.
    #[must_use]
    pub fn enforcement(&self) -> Enforcement {
        self.root.switch.enforcement()
    }

    /// Turns enforcement off, or on again, for every site opened with this folder (this value or a clone of it), at once
    /// and for those opened later. A site's own switch stays as it is.
    ///
    /// # Errors
    ///
    /// If it could not be written down: it is done, and will be forgotten when the process ends.
    pub fn set_enforcement(&self, enforcement: Enforcement) -> Result<(), StateError> {
        let write = || disk::write_switch(self.path(), enforcement);
        self.root.switch.turn(enforcement, || write().inspect_err(|error| self.report(error.to_string())))
    }

    /// Turns the switch of one site where no process serves it: it holds for whoever opens the site from now on. A site
    /// that is open has [`LiveRobots::set_enforcement`](super::LiveRobots::set_enforcement).
    ///
    /// # Errors
    ///
    /// If it could not be written down: nothing changes then.
    pub fn set_enforcement_of(&self, site: &str, enforcement: Enforcement) -> Result<(), StateError> {
        self.site(site).set_enforcement(enforcement)
    }

    /// Waits until what sites have to remember so far is written down: a thread does so a moment after it is live. A site
    /// that is dropped is written before. What somebody decided is written when whoever decided it is answered.
    pub fn flush(&self) {
        self.root.writer.wait();
    }

    /// What is wrong with the folder itself; what is wrong with a site's part of it stands in its
    /// [`Status::state_trouble`](super::Status::state_trouble).
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        self.root.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What is remembered of a site.
    pub(super) fn site(&self, name: &str) -> SiteState {
        SiteState::new(self.path().join("sites").join(disk::folder_name(name)), self.root.writer.clone())
    }

    /// The one of all sites.
    pub(super) fn switch(&self) -> &KillSwitch {
        &self.root.switch
    }

    fn report(&self, trouble: String) {
        *self.root.trouble.lock().unwrap_or_else(PoisonError::into_inner) = Some(trouble);
    }
}

impl fmt::Debug for StateDir {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StateDir")
            .field("path", &self.path())
            .field("enforcement", &self.enforcement())
            .finish_non_exhaustive()
    }
}

impl StateError {
    fn new(path: &Path, cause: io::Error) -> Self {
        Self { path: path.to_owned(), cause }
    }
}

impl fmt::Display for StateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: cannot be written, so it will be forgotten: {}", self.path.display(), self.cause)
    }
}

impl Error for StateError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.cause)
    }
}
