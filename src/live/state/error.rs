//! Errors from opening or writing a state directory, and the events that report such problems to
//! listeners.

use crate::live::Mutex;
use std::collections::BTreeMap;
use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, io};

/// Why a state directory cannot be opened, or why a change could not be written to it.
#[non_exhaustive]
pub struct StateError {
    /// The directory, or the file or folder in it that could not be written.
    pub path: PathBuf,
    pub(super) cause: io::Error,
    /// The process that has locked the directory; `None` if the error has another cause.
    holder: Option<LockHolder>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LockHolder {
    ThisProcess,
    Process(u32),
    Unknown,
}

impl StateError {
    pub(super) fn new(path: &Path, cause: io::Error) -> Self {
        Self { path: path.to_owned(), cause, holder: None }
    }

    pub(super) fn in_use(path: &Path, holder: LockHolder) -> Self {
        Self { holder: Some(holder), ..Self::new(path, io::ErrorKind::ResourceBusy.into()) }
    }

    pub(super) fn handed_over(path: &Path) -> Self {
        Self::new(path, io::Error::other("another process has taken over the state directory of this process"))
    }

    /// Returns the ID of the process that has the directory open. A process in a container is
    /// identified by its ID inside the container. `None` if the ID is unknown, or if the error has
    /// another cause.
    pub fn process(&self) -> Option<u32> {
        match self.holder? {
            LockHolder::ThisProcess => Some(std::process::id()),
            LockHolder::Process(process) => Some(process),
            LockHolder::Unknown => None,
        }
    }
}

impl fmt::Display for StateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const OPEN: &str = "has the state directory open";
        const APART: &str = "stop that process, or give each process its own state directory";
        write!(f, "{}: ", self.path.display())?;
        match self.holder {
            None => {
                write!(f, "this path cannot be written, so a restart forgets the change: {cause}", cause = self.cause)
            }
            Some(LockHolder::ThisProcess) => write!(
                f,
                "this process already {OPEN}: use a clone of its StateDir, or drop every clone and every site that was \
                 opened with it"
            ),
            Some(LockHolder::Process(process)) => write!(f, "process {process} {OPEN}: {APART}"),
            Some(LockHolder::Unknown) => write!(f, "another process {OPEN}: {APART}"),
        }
    }
}

robots_core::debug_as_displayed!(StateError);

impl Error for StateError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.holder.is_none().then_some(&self.cause as _)
    }
}

/// The beginning or the end of a problem with a [`StateDir`](crate::live::StateDir), or with the
/// lists, keys and DNS names that a `Verifier` uses. `Display` prints the event in one line.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ProblemEvent<'a> {
    /// The site that has the problem. `None` for a problem of the directory itself or of a
    /// `Verifier`.
    pub site: Option<&'a str>,
    /// If `is_over` is set, a message that the problem has ended; otherwise, the problem, in the
    /// same words as in [`Status`](crate::live::Status) or `VerifierStatus`.
    pub text: &'a str,
    /// Whether the problem is over.
    pub is_over: bool,
}

pub(crate) type ProblemListener = Box<dyn Fn(&ProblemEvent<'_>) + Send + Sync>;

#[derive(Default)]
pub(super) struct StateListeners(Mutex<Vec<ProblemListener>>);

impl ProblemEvent<'_> {
    /// Notifies listeners of the event. If a listener panics, the panic hook reports the panic, and
    /// the other listeners are still notified.
    pub(crate) fn notify(&self, listeners: &[ProblemListener]) {
        for listener in listeners {
            let _ = catch_unwind(AssertUnwindSafe(|| listener(self)));
        }
    }
}

impl fmt::Display for ProblemEvent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(site) = self.site {
            write!(f, "{site}: ")?;
        }
        f.write_str(self.text)
    }
}

impl StateListeners {
    pub(super) fn add(&self, listener: ProblemListener) {
        self.0.lock().push(listener);
    }

    pub(super) fn notify(&self, event: &ProblemEvent<'_>) {
        #[cfg(feature = "tracing")]
        match event.is_over {
            false => tracing::warn!(target: "tower_robots::state", "{event}"),
            true => tracing::info!(target: "tower_robots::state", "{event}"),
        }
        event.notify(&self.0.lock());
    }
}

/// A problem with a state directory, or with the part of it that belongs to a site.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// The kind of problem.
    pub kind: ProblemKind,
    /// A description of the problem in one line.
    pub text: String,
}

/// The kind of a [`Problem`]. The variants are sorted by urgency, the most urgent first. A problem
/// is removed when it is over, unless its kind is [`ProblemKind::Damaged`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ProblemKind {
    /// The live version, the pending version or the record of the live version cannot be saved. A
    /// restart would forget an unsaved version, and needs the record if a later version cannot be
    /// saved. The write is retried.
    Save,
    /// The position of the kill switch cannot be saved, so a restart would forget the position. The
    /// write is retried.
    Switch,
    /// Entries of the history cannot be saved yet. The write is retried.
    History,
    /// The live version may be older than the version that was live before the restart, because the
    /// later version could not be saved, and the source had no usable content at the start.
    Behind,
    /// The file of the kill switch is damaged or could not be read, so the switch counts as
    /// [`Enforcement::Off`](crate::live::Enforcement::Off), although no operator has switched it
    /// off. The problem ends when the file is written again.
    UnreadSwitch,
    /// A file is damaged. For the file of a kill switch, the kind is `UnreadSwitch`.
    Damaged,
    /// Nothing can be written to the directory.
    Unwritable,
    /// The directory could not be locked, so another process might write to it at the same time.
    Unlocked,
}

impl ProblemKind {
    const fn end_message(self) -> &'static str {
        match self {
            Self::Save => "the live version is now saved in the state directory",
            Self::Switch => "the kill switch is now saved in the state directory",
            Self::History => "the history is now saved in the state directory",
            Self::Behind => "the live version is now at least as new as the version before the restart",
            Self::UnreadSwitch => "the file of the kill switch is valid again",
            Self::Damaged => "",
            Self::Unwritable => "the state directory can be written again",
            Self::Unlocked => "the state directory can be locked again",
        }
    }
}

/// The problems of a state directory or of one site in it. There is at most one problem of each
/// kind.
pub(super) struct Problems {
    site: Option<String>,
    listeners: Arc<StateListeners>,
    current: Mutex<BTreeMap<ProblemKind, String>>,
}

impl Problems {
    pub(super) fn new(site: Option<&str>, listeners: &Arc<StateListeners>) -> Self {
        Self { site: site.map(str::to_owned), listeners: listeners.clone(), current: Mutex::default() }
    }

    /// Adds problems that were found before a listener could be registered, without notifying
    /// listeners.
    pub(super) fn begin(&self, problems: impl IntoIterator<Item = (ProblemKind, Option<String>)>) {
        let begun = problems.into_iter().filter_map(|(kind, problem)| Some((kind, problem?)));
        self.current.lock().extend(begun);
    }

    pub(super) fn get(&self, kind: ProblemKind) -> Option<String> {
        self.current.lock().get(&kind).cloned()
    }

    /// Reports whether all changes are written to disk, and no known problem prevents the next
    /// write.
    pub(super) fn is_all_written(&self) -> bool {
        use ProblemKind::{History, Save, Switch, Unwritable};
        let current = self.current.lock();
        ![Save, Switch, History, Unwritable].iter().any(|kind| current.contains_key(kind))
    }

    pub(super) fn all(&self) -> Vec<Problem> {
        let problem = |(kind, text): (&ProblemKind, &String)| Problem { kind: *kind, text: text.clone() };
        self.current.lock().iter().map(problem).collect()
    }

    /// Stores the current problem of this kind, or removes the stored problem if `problem` is
    /// `None`. Notifies the listeners if the problem has changed.
    pub(super) fn set(&self, kind: ProblemKind, problem: Option<String>) {
        self.set_shown(kind, problem, str::to_owned);
    }

    /// Stores the problem like [`Problems::set`], but passes it through `shown` for the listeners.
    /// If only the result of `shown` has changed, listeners are not notified.
    pub(super) fn set_shown(&self, kind: ProblemKind, problem: Option<String>, shown: impl Fn(&str) -> String) {
        let before = match &problem {
            Some(problem) => self.current.lock().insert(kind, problem.clone()),
            None => self.current.lock().remove(&kind),
        };
        let site = self.site.as_deref();
        match problem {
            Some(now) if before.as_ref() != Some(&now) => {
                self.listeners.notify(&ProblemEvent { site, text: &shown(&now), is_over: false });
            }
            None if before.is_some() => {
                self.listeners.notify(&ProblemEvent { site, text: kind.end_message(), is_over: true });
            }
            _ => {}
        }
    }
}

pub(super) fn switch_problem(error: &StateError) -> String {
    let StateError { path, cause, .. } = error;
    format!(
        "{file}: the file cannot be written, so a restart forgets the kill switch: {cause}; the write is retried",
        file = path.display()
    )
}
