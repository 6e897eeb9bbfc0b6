//! The errors of opening a state directory and of writing to it, and the events that report them to listeners.

use crate::live::Mutex;
use std::collections::BTreeMap;
use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, io};

/// Why a state directory cannot be opened; or what could not be written to it, which a restart forgets.
#[non_exhaustive]
pub struct StateError {
    /// The directory, or the part of it that could not be written.
    pub path: PathBuf,
    pub(super) cause: io::Error,
    /// The holder of the lock, another process or this one, because of which it cannot be opened.
    holder: Option<LockHolder>,
}

/// The process that holds the lock.
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

    /// Another handle has it open.
    pub(super) fn in_use(path: &Path, holder: LockHolder) -> Self {
        Self { holder: Some(holder), ..Self::new(path, io::ErrorKind::ResourceBusy.into()) }
    }

    /// Another process writes here by now.
    pub(super) fn handed_over(path: &Path) -> Self {
        Self::new(path, io::Error::other("another process has taken over the state directory"))
    }

    /// The number of the process that has the directory open, as that process knows it; `None` where that is unknown, and for
    /// what could not be written. In a container it may be another number than outside.
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
        const APART: &str = "stop it, or give each process a state directory of its own";
        write!(f, "{}: ", self.path.display())?;
        match self.holder {
            None => write!(f, "cannot be written, so a restart forgets it: {}", self.cause),
            Some(LockHolder::ThisProcess) => write!(
                f,
                "this process {OPEN} already: use a clone of its StateDir, or drop every clone and every site that was opened \
                 with it"
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

/// A problem begins or ends: of a [`StateDir`](crate::live::StateDir), or with the evidence of a `Verifier`. `Display` gives it in one
/// line.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ProblemEvent<'a> {
    /// The site whose part of the directory it is about; `None` where it is the directory itself, or evidence.
    pub site: Option<&'a str>,
    /// The problem, in the words of [`Status`](crate::live::Status) or `VerifierStatus`; or
    /// the message that it is over.
    pub text: &'a str,
    /// Whether it is over.
    pub is_over: bool,
}

pub(crate) type ProblemListener = Box<dyn Fn(&ProblemEvent<'_>) + Send + Sync>;

#[derive(Default)]
pub(super) struct StateListeners(Mutex<Vec<ProblemListener>>);

impl ProblemEvent<'_> {
    /// Notifies listeners of it. Their panics must not end the work that they are notified from; the panic hook has reported them.
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

/// Something that is wrong with a state directory, or with a site's part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// The kind of problem.
    pub kind: ProblemKind,
    /// The description in one line.
    pub text: String,
}

/// The kind of a [`Problem`]; the most pressing come first. Each ends when it is over; a damaged file stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ProblemKind {
    /// A restart would forget the live version, or the one that waits: it cannot be written down. Or only the record cannot be
    /// written, which says what is live where nothing else can be. The write is tried again.
    Save,
    /// A restart would forget how the kill switch stands: it cannot be written down. The write is tried again.
    Switch,
    /// Entries of the history wait: they cannot be written down. The write is tried again.
    History,
    /// The live version is, or may be, older than the one before the restart: that one could not be written down, and the
    /// source held nothing that can be served.
    Behind,
    /// The kill switch was taken for [`Enforcement::Off`](crate::live::Enforcement::Off) although no operator turned it: its file
    /// could not be read, or is damaged. It is over once the file is written again.
    UnreadSwitch,
    /// Another file was damaged when it was read.
    Damaged,
    /// Nothing can be written to the directory.
    Unwritable,
    /// Nothing keeps another process out of the directory.
    Unlocked,
}

impl ProblemKind {
    /// The message when it is over.
    const fn over(self) -> &'static str {
        match self {
            Self::Save => "the live version is saved again",
            Self::Switch => "the kill switch is saved again",
            Self::History => "the history is saved again",
            Self::Behind => "the live version is no older than the one before the restart",
            Self::UnreadSwitch => "the file of the kill switch is whole again",
            Self::Damaged => "",
            Self::Unwritable => "the state directory can be written again",
            Self::Unlocked => "the state directory is locked",
        }
    }
}

/// The problems of a directory or of a site's part of it, at most one of a kind, and who is notified of them.
pub(super) struct Problems {
    site: Option<String>,
    listeners: Arc<StateListeners>,
    current: Mutex<BTreeMap<ProblemKind, String>>,
}

impl Problems {
    pub(super) fn new(site: Option<&str>, listeners: &Arc<StateListeners>) -> Self {
        Self { site: site.map(str::to_owned), listeners: listeners.clone(), current: Mutex::default() }
    }

    /// Problems from before there are listeners.
    pub(super) fn begin(&self, problems: impl IntoIterator<Item = (ProblemKind, Option<String>)>) {
        let begun = problems.into_iter().filter_map(|(kind, problem)| Some((kind, problem?)));
        self.current.lock().extend(begun);
    }

    pub(super) fn get(&self, kind: ProblemKind) -> Option<String> {
        self.current.lock().get(&kind).cloned()
    }

    /// Whether nothing waits to be written, and nothing is known to be in the way.
    pub(super) fn is_all_written(&self) -> bool {
        use ProblemKind::{History, Save, Switch, Unwritable};
        let current = self.current.lock();
        ![Save, Switch, History, Unwritable].iter().any(|kind| current.contains_key(kind))
    }

    /// All of them, the most pressing first.
    pub(super) fn all(&self) -> Vec<Problem> {
        let problem = |(kind, text): (&ProblemKind, &String)| Problem { kind: *kind, text: text.clone() };
        self.current.lock().iter().map(problem).collect()
    }

    /// Sets or ends a problem, and notifies the listeners where it is another one than before.
    pub(super) fn set(&self, kind: ProblemKind, problem: Option<String>) {
        self.set_shown(kind, problem, str::to_owned);
    }

    /// The same for one of which more is shown than what tells it from another.
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
                self.listeners.notify(&ProblemEvent { site, text: kind.over(), is_over: true });
            }
            _ => {}
        }
    }
}

/// The kill switch cannot be written down.
pub(super) fn switch_problem(error: &StateError) -> String {
    let StateError { path, cause, .. } = error;
    format!("{}: cannot be written, so a restart forgets the kill switch: {cause}; it is tried again", path.display())
}
