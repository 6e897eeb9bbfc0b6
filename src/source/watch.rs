//! Finding out that a file has changed, without ever taking a half-written one.
//!
//! The *directories* of the path and of every link on the way to it are watched, because a watch on the file dies at
//! the first atomic rename. A rename or a close after writing is a finished version and is taken at once, unless another
//! modification follows on its heels; a bare modification waits until the file has been quiet; and since network file systems and some mounts tell nothing at
//! all, the contents are also looked at every few seconds and taken when they are the same twice.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use notify::event::{AccessKind, AccessMode, EventKind, ModifyKind};
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher};

use super::hash::Hash;
use super::live::{QUIET, Shared};
use super::reload::Cause;

/// How long the events of a modification may take to get here once the modification can be read.
const SETTLE: Duration = Duration::from_millis(20);

/// Links followed on the way to a file, as many as Linux does.
const MAX_LINKS: usize = 40;

/// A thread that watches one file; stops when dropped.
#[derive(Debug)]
pub(super) struct Watch {
    messages: Sender<Message>,
    trouble: Arc<Mutex<Option<String>>>,
}

#[derive(Debug)]
enum Message {
    Event(notify::Result<Event>),
    Stop,
}

/// How soon an event calls for a look at the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Urgency {
    Never,
    /// It was modified: once it is left alone.
    WhenQuiet,
    /// Whoever wrote to it has closed it: now.
    Closed,
    /// Another file has taken its name, finished: now.
    Renamed,
}

impl Watch {
    pub(super) fn start(path: PathBuf, poll: Duration, shared: Weak<Shared>) -> Self {
        let (messages, inbox) = mpsc::channel();
        let trouble = Arc::new(Mutex::new(None));
        let events = messages.clone();
        let watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            // Reading raises events too: our own would never end, and a folder of static files is read all the time.
            let is_reading = |event: &Event| match event.kind {
                EventKind::Access(kind) => kind != AccessKind::Close(AccessMode::Write),
                _ => false,
            };
            if !event.as_ref().is_ok_and(is_reading) {
                let _ = events.send(Message::Event(event));
            }
        });
        let watcher = watcher.map_err(|error| format!("no file events, changes are found by polling: {error}"));
        let mut armed = Armed { watcher, path, files: BTreeSet::new(), folders: Vec::new() };
        report(&trouble, armed.arm());
        let thread = Thread { armed, poll, shared, trouble: trouble.clone(), seen: None };
        let spawned = std::thread::Builder::new().name("robots-watch".into()).spawn(move || thread.run(&inbox));
        if let Err(error) = spawned {
            report(&trouble, Err(format!("no thread to watch the file could be started: {error}")));
        }
        Self { messages, trouble }
    }

    pub(super) fn trouble(&self) -> Option<String> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.messages.send(Message::Stop);
    }
}

fn report(trouble: &Mutex<Option<String>>, result: Result<(), String>) {
    *trouble.lock().unwrap_or_else(PoisonError::into_inner) = result.err();
}

struct Thread {
    armed: Armed,
    poll: Duration,
    shared: Weak<Shared>,
    trouble: Arc<Mutex<Option<String>>>,
    /// What the last poll saw, where it was not what is live.
    seen: Option<Option<Hash>>,
}

impl Thread {
    fn run(mut self, inbox: &Receiver<Message>) {
        let mut next_poll = Instant::now() + self.poll;
        // What was opened was read before the folders were armed.
        let changed = self.shared.upgrade().is_some_and(|shared| shared.peek() != shared.live());
        let mut quiet = changed.then(Instant::now);
        loop {
            let deadline = quiet.map_or(next_poll, |quiet| quiet.min(next_poll));
            let urgency = match inbox.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(first) => match self.drain(Some(first), inbox) {
                    Some(urgency) => urgency,
                    None => return,
                },
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => Urgency::Never,
            };
            let Some(shared) = self.shared.upgrade() else { return };
            let now = Instant::now();
            let due = match urgency {
                Urgency::Closed | Urgency::Renamed => true,
                Urgency::WhenQuiet => {
                    quiet = Some(now + QUIET);
                    false
                }
                Urgency::Never => quiet.is_some_and(|quiet| quiet <= now),
            };
            if due {
                quiet = match self.take(&shared, inbox) {
                    Some(Urgency::Never) => None,
                    Some(Urgency::WhenQuiet) => Some(Instant::now() + QUIET),
                    // A finished version came meanwhile: the deadline has passed, so it is taken in the next round.
                    Some(Urgency::Closed | Urgency::Renamed) => Some(now),
                    None => return,
                };
            }
            if next_poll <= now {
                self.look(&shared);
                next_poll = now + self.poll;
            }
        }
    }

    /// What the events that have come call for; `None` when told to stop.
    ///
    /// The last one counts: a close after writing that was followed by another modification finished nothing.
    fn drain(&self, first: Option<Message>, inbox: &Receiver<Message>) -> Option<Urgency> {
        self.urgencies(first, inbox).map(|urgencies| urgencies.last().copied().unwrap_or(Urgency::Never))
    }

    fn urgencies(&self, first: Option<Message>, inbox: &Receiver<Message>) -> Option<Vec<Urgency>> {
        let mut urgencies = Vec::new();
        for message in first.into_iter().chain(inbox.try_iter()) {
            match message {
                Message::Event(event) => urgencies.push(self.armed.urgency(&event)),
                Message::Stop => return None,
            }
        }
        urgencies.retain(|urgency| *urgency != Urgency::Never);
        Some(urgencies)
    }

    /// Reloads after an event, unless the file is written to while it is read: a file that takes its name meanwhile does
    /// not touch what was read. What the events that came meanwhile call for; `None` when told to stop.
    fn take(&mut self, shared: &Shared, inbox: &Receiver<Message>) -> Option<Urgency> {
        let mut meanwhile = Some(Vec::new());
        // Before reading, so that no change after it goes unnoticed, wherever a link leads by now.
        report(&self.trouble, self.armed.arm());
        let reload = shared.reload_if(Cause::Event, |_| {
            std::thread::sleep(SETTLE);
            meanwhile = self.urgencies(None, inbox);
            meanwhile.iter().flatten().all(|urgency| *urgency == Urgency::Renamed)
        });
        self.seen = None;
        match meanwhile?.last() {
            Some(urgency) => Some(*urgency),
            None if reload.is_unstable() => Some(Urgency::WhenQuiet),
            None => Some(Urgency::Never),
        }
    }

    /// Looks at the contents; a change is taken when two looks agree.
    fn look(&mut self, shared: &Shared) {
        report(&self.trouble, self.armed.arm());
        let now = shared.peek();
        if now == shared.live() {
            self.seen = None;
        } else if self.seen.replace(now) == Some(now) {
            shared.reload(Cause::Poll);
        }
    }
}

/// What is being watched: the folders of a path and of every link on the way to it.
struct Armed {
    watcher: Result<RecommendedWatcher, String>,
    path: PathBuf,
    files: BTreeSet<PathBuf>,
    folders: Vec<Folder>,
}

/// A folder as it was when it was armed: one that was replaced has to be armed again.
#[derive(Debug, PartialEq, Eq)]
struct Folder {
    path: PathBuf,
    identity: Option<(u64, u64)>,
}

impl Armed {
    /// Brings the watches up to what the path leads to now.
    fn arm(&mut self) -> Result<(), String> {
        let watcher = self.watcher.as_mut().map_err(|trouble| trouble.clone())?;
        self.files = links_to(&self.path);
        let folders: BTreeSet<&Path> = self.files.iter().filter_map(|file| file.parent()).collect();
        let folders: Vec<_> = folders.into_iter().map(Folder::at).collect();
        if folders == self.folders {
            return Ok(());
        }
        for folder in self.folders.drain(..) {
            // A folder that is gone took its watch with it.
            let _ = watcher.unwatch(&folder.path);
        }
        let mut result = Ok(());
        for folder in folders {
            match watcher.watch(&folder.path, RecursiveMode::NonRecursive) {
                Ok(()) => self.folders.push(folder),
                Err(error) => {
                    result = Err(format!(
                        "{}: no file events, changes are found by polling: {error}",
                        folder.path.display()
                    ));
                }
            }
        }
        result
    }

    fn urgency(&self, event: &notify::Result<Event>) -> Urgency {
        // An overflow or another fault of the queue: something may have been missed.
        let Ok(event) = event else { return Urgency::WhenQuiet };
        let ours = event.paths.iter().any(|path| self.files.contains(path));
        match event.kind {
            EventKind::Access(AccessKind::Close(AccessMode::Write)) if ours => Urgency::Closed,
            EventKind::Access(_) => Urgency::Never,
            EventKind::Modify(ModifyKind::Name(_)) if ours => Urgency::Renamed,
            _ if ours => Urgency::WhenQuiet,
            // A rename in a folder may have moved the folder itself.
            _ if event.need_rescan() => Urgency::WhenQuiet,
            _ => Urgency::Never,
        }
    }
}

impl Folder {
    fn at(path: &Path) -> Self {
        #[cfg(unix)]
        let identity = std::fs::metadata(path).ok().map(|metadata| {
            use std::os::unix::fs::MetadataExt;
            (metadata.dev(), metadata.ino())
        });
        #[cfg(not(unix))]
        let identity = None;
        Self { path: path.to_owned(), identity }
    }
}

/// The path itself and every link that is followed on the way to the file, each in its resolved folder.
fn links_to(path: &Path) -> BTreeSet<PathBuf> {
    let mut files = BTreeSet::new();
    let mut pending = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    // What events call the file: its name in the folder as it was given.
    files.insert(pending.clone());
    for _ in 0..MAX_LINKS {
        let Some((link, target)) = first_link(&pending) else { break };
        files.insert(link.clone());
        pending = target;
    }
    files.insert(pending);
    files
}

/// The first component of a path that is a link, and the path with that link followed.
fn first_link(path: &Path) -> Option<(PathBuf, PathBuf)> {
    let mut walked = PathBuf::new();
    let mut components = path.components();
    while let Some(component) = components.next() {
        match component {
            Component::ParentDir => {
                walked.pop();
                continue;
            }
            Component::CurDir => continue,
            _ => walked.push(component),
        }
        if let Ok(target) = std::fs::read_link(&walked) {
            let folder = walked.parent().unwrap_or(Path::new("/")).to_owned();
            let rest: &OsStr = components.as_path().as_os_str();
            let followed = folder.join(target);
            return Some((walked, if rest.is_empty() { followed } else { followed.join(rest) }));
        }
    }
    None
}
