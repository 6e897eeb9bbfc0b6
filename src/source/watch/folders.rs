//! Registers folders with the operating system, which then reports events for the files in these
//! folders.
//!
//! When a folder is registered, the system resolves its path, which blocks if the file system does
//! not respond. Therefore each file system has a separate event source with its own lock and thread
//! (up to [`MAX_SOURCES`]). A caller that drops a target does not wait, because a worker
//! unregisters the target's folders.

use crate::live::Mutex;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use notify::{Event, RecursiveMode};

use super::debounce::Urgency;
use super::polled_changes::links_to;
use super::routes::{FolderId, Routes, WatchId, WatchedName};
use crate::source::file_system::{FileSystemId, reach, reach_to_register};

pub(super) type EventSource = Box<dyn notify::Watcher + Send>;

/// A callback that receives the events of a source, on the thread of that source.
pub(super) type EventHandler = Box<dyn Fn(notify::Result<Event>) + Send>;

pub(super) type OpenEvents = fn(EventHandler) -> notify::Result<EventSource>;

/// Maximum number of file systems with their own event source. All further file systems share one
/// additional source. On Linux, all processes of a user together may have only 128 event sources.
const MAX_SOURCES: usize = 8;

pub(super) struct Folders {
    open: OpenEvents,
    handler: Arc<AffectedHandler>,
    /// Event sources by file system; `None` after the watcher was stopped. File systems without
    /// their own source share the source that is stored under the key `None`. The lock is held only
    /// briefly.
    sources: Mutex<Option<HashMap<Option<FileSystemId>, Arc<SystemEvents>>>>,
}

/// A callback that receives the targets that an event affects. The callback runs on the thread of
/// the event source.
type AffectedHandler = dyn Fn(Vec<(WatchId, Urgency)>) + Send + Sync;

struct SystemEvents {
    /// The event source, or the reason why it could not be opened. The lock is held while a folder
    /// is registered or unregistered, which blocks if the file system does not respond. The thread
    /// that delivers events never needs this lock.
    source: Mutex<Result<EventSource, String>>,
    /// The watched folders and their targets. The thread that delivers events also needs this lock,
    /// so the lock is held only briefly.
    routes: Arc<Mutex<Routes>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Listing {
    Contents,
    Names,
}

impl Folders {
    pub(super) fn new(open: OpenEvents, handler: impl Fn(Vec<(WatchId, Urgency)>) + Send + Sync + 'static) -> Self {
        Self { open, handler: Arc::new(handler), sources: Mutex::new(Some(HashMap::new())) }
    }

    /// Closes the event sources. Does not wait for a file system that hangs: if another thread is
    /// still using a source, that thread closes it.
    pub(super) fn stop(&self) {
        let sources = self.sources.lock().take();
        drop(sources);
    }

    /// Registers a target for its path and for the symbolic links that currently lead to it.
    /// Removes its registrations for links that no longer lead to the target.
    pub(super) fn register(
        &self,
        id: WatchId,
        path: &Path,
        listing: Listing,
        registered: &mut BTreeSet<WatchedName>,
    ) -> Result<(), String> {
        let (wanted, mut result) = watched_names(path, listing);
        self.leave(id, registered.iter().filter(|name| !wanted.contains_key(*name)));
        for (name, folder) in &wanted {
            if let Err(error) = self.watch(id, name, folder) {
                result = Err(problem(&name.folder, &error));
            }
        }
        *registered = wanted.into_keys().collect();
        result
    }

    pub(super) fn unregister(&self, id: WatchId, registered: &mut BTreeSet<WatchedName>) {
        self.leave(id, &std::mem::take(registered));
    }

    fn watch(&self, id: WatchId, name: &WatchedName, folder: &FolderId) -> Result<(), String> {
        let events = self.events_of(name.system)?;
        let mut source = events.source.lock();
        // The source must be locked before `add` checks whether the folder is watched. Without the
        // lock, a folder could count as watched while another thread is still registering it, and
        // this registration could fail.
        let is_watched = events.routes.lock().add(id, name, folder);
        if is_watched { Ok(()) } else { events.register_folder(folder, &name.folder, &mut source) }
    }

    fn leave<'n>(&self, id: WatchId, names: impl IntoIterator<Item = &'n WatchedName>) {
        for name in names {
            let Ok(events) = self.events_of(name.system) else { return };
            let mut source = events.source.lock();
            let is_unused = events.routes.lock().remove(id, name);
            if let (true, Ok(source)) = (is_unused, &mut *source) {
                let _ = source.unwatch(&name.folder);
            }
        }
    }

    fn events_of(&self, system: FileSystemId) -> Result<Arc<SystemEvents>, String> {
        let mut sources = self.sources.lock();
        let sources = sources.as_mut().ok_or("the watcher is stopped")?;
        let key = Some(system).filter(|_| sources.contains_key(&Some(system)) || sources.len() < MAX_SOURCES);
        if let Some(events) = sources.get(&key) {
            return Ok(events.clone());
        }
        let handler = self.handler.clone();
        let routes = Arc::new(Mutex::new(Routes::default()));
        let event_routes = routes.clone();
        let hand_on = move |event| {
            let affected_targets = event_routes.lock().affected_targets(&event);
            handler(affected_targets);
        };
        let source = (self.open)(Box::new(hand_on)).map_err(|error| error.to_string());
        let events = Arc::new(SystemEvents { source: Mutex::new(source), routes });
        sources.insert(key, events.clone());
        Ok(events)
    }
}

impl SystemEvents {
    fn register_folder(
        &self,
        folder: &FolderId,
        path: &Path,
        source: &mut Result<EventSource, String>,
    ) -> Result<(), String> {
        let source = source.as_mut().map_err(|problem| problem.clone())?;
        // The route is added before the folder is registered, because events may arrive immediately
        // after the registration.
        let before = self.routes.lock().watch(folder, path);
        for path in before.as_deref().into_iter().chain([path]) {
            // Errors are ignored, because the path may not be registered, or its watch may have
            // ended when the folder was removed.
            let _ = source.unwatch(path);
        }
        source.watch(reach_to_register(path), RecursiveMode::NonRecursive).map_err(|error| {
            self.routes.lock().forget(path);
            error.to_string()
        })
    }
}

/// Opens the system's own event source: inotify on Linux.
pub(super) fn recommended(handler: EventHandler) -> notify::Result<EventSource> {
    Ok(Box::new(notify::recommended_watcher(handler)?))
}

/// Returns the names to watch: the name of the path itself, and the names of the symbolic links on
/// the path. If any of these names changes, the path may lead to another file. The second value is
/// an error if the folder of a name cannot be found.
fn watched_names(path: &Path, listing: Listing) -> (BTreeMap<WatchedName, FolderId>, Result<(), String>) {
    let mut result = Ok(());
    let mut names = BTreeMap::new();
    let mut add = |folder: &Path, name: Option<&OsStr>| {
        let found = fs::canonicalize(reach(folder)).and_then(|path| Ok((FolderId::of(&path)?, path)));
        match found {
            Ok((id, folder)) => {
                names.insert(WatchedName { system: id.system, folder, name: name.map(OsStr::to_owned) }, id);
            }
            Err(error) => result = Err(problem(folder, &error)),
        }
    };
    for link in &links_to(path) {
        if let (Some(folder), Some(name)) = (link.parent(), link.file_name()) {
            add(folder, Some(name));
        }
    }
    if listing == Listing::Names {
        add(&std::path::absolute(path).unwrap_or_else(|_| path.to_owned()), None);
    }
    (names, result)
}

fn problem(folder: &Path, error: &dyn std::fmt::Display) -> String {
    format!(
        "{folder}: the system cannot report file events, so changes are found only by polling: {error}",
        folder = folder.display()
    )
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use notify::event::{CreateKind, EventKind, ModifyKind, RemoveKind, RenameMode};

    use super::*;

    fn registered(folders: &Folders, id: WatchId, path: &Path) -> BTreeSet<WatchedName> {
        let mut names = BTreeSet::new();
        assert_eq!(folders.register(id, path, Listing::Contents, &mut names), Ok(()));
        names
    }

    fn affected_targets(folders: &Folders, kind: EventKind, path: PathBuf) -> Vec<(WatchId, Urgency)> {
        let event = Ok(Event::new(kind).add_path(path));
        let sources = folders.sources.lock();
        let sources = sources.as_ref().expect("it is not stopped");
        sources.values().flat_map(|events| events.routes.lock().affected_targets(&event)).collect()
    }

    fn watched(folders: &Folders) -> usize {
        let sources = folders.sources.lock();
        sources.as_ref().expect("it is not stopped").values().map(|events| events.routes.lock().folders.len()).sum()
    }

    fn folder_with_inner() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let inner = folder.path().canonicalize().expect("a path").join("inner");
        fs::create_dir(&inner).expect("a folder");
        (folder, inner)
    }

    fn started() -> Folders {
        Folders::new(recommended, |_| ())
    }

    #[test]
    fn a_folder_is_watched_once_for_all_paths_to_it_and_released_with_its_last_file() {
        let (_folder, inner) = folder_with_inner();
        let root = inner.parent().expect("a folder");
        let folders = started();
        let mut first: Vec<_> = (0..100).map(|id| registered(&folders, id, &inner.join(format!("{id}.txt")))).collect();
        assert_eq!(watched(&folders), 1);
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(&inner, root.join("link")).expect("a link");
            let mut other = registered(&folders, 200, &root.join("link/7.txt"));
            // Two folders are watched, because the link in the outer folder may also change.
            assert_eq!(watched(&folders), 2);
            let rename = EventKind::Modify(ModifyKind::Name(RenameMode::To));
            let want = [(7, Urgency::Renamed), (200, Urgency::Renamed)];
            assert_eq!(affected_targets(&folders, rename, inner.join("7.txt")), want);
            assert_eq!(affected_targets(&folders, rename, root.join("link")), [(200, Urgency::Renamed)]);
            folders.unregister(200, &mut other);
            assert_eq!(watched(&folders), 1);
        }
        let created = EventKind::Create(CreateKind::File);
        assert_eq!(affected_targets(&folders, created, inner.join("3.txt")), [(3, Urgency::WhenQuiet)]);
        assert_eq!(affected_targets(&folders, created, inner.join("none of ours")), []);
        for (id, registration) in first.iter_mut().enumerate() {
            folders.unregister(id as WatchId, registration);
        }
        assert_eq!(watched(&folders), 0);
    }

    /// In `mv robots.txt old; mv new robots.txt`, the file is missing between the two commands.
    #[test]
    fn a_rename_reports_the_old_name_as_gone_and_the_new_name_as_renamed() {
        let (_folder, inner) = folder_with_inner();
        let folders = started();
        let _names = registered(&folders, 1, &inner.join("robots.txt"));
        let rename = |mode, paths: &[&str]| {
            let event = Event::new(EventKind::Modify(ModifyKind::Name(mode)));
            let event = Ok(paths.iter().fold(event, |event, name| event.add_path(inner.join(name))));
            let sources = folders.sources.lock();
            let sources = sources.as_ref().expect("it is not stopped");
            let all = sources.values().flat_map(|events| events.routes.lock().affected_targets(&event));
            all.map(|(_, urgency)| urgency).collect::<Vec<_>>()
        };
        assert_eq!(rename(RenameMode::From, &["robots.txt"]), [Urgency::Gone]);
        assert_eq!(rename(RenameMode::Both, &["robots.txt", "old"]), [Urgency::Gone]);
        assert_eq!(rename(RenameMode::To, &["robots.txt"]), [Urgency::Renamed]);
        assert_eq!(rename(RenameMode::Both, &["new", "robots.txt"]), [Urgency::Renamed]);
    }

    #[test]
    fn a_removed_folder_is_watched_again_when_a_target_registers_again() {
        let (_folder, inner) = folder_with_inner();
        let folders = started();
        let (mut one, path) = (registered(&folders, 1, &inner.join("a.txt")), inner.join("a.txt"));
        let other = inner.join("b.txt");
        let _names = registered(&folders, 2, &other);
        // If the new folder has the same inode as the old folder, only the event shows that the old
        // folder was removed.
        let mut all = affected_targets(&folders, EventKind::Remove(RemoveKind::Other), inner);
        all.sort_by_key(|(id, _)| *id);
        assert_eq!(all, [(1, Urgency::Gone), (2, Urgency::Gone)]);
        assert_eq!(folders.register(1, &path, Listing::Contents, &mut one), Ok(()));
        assert_eq!(watched(&folders), 1);
        // The new registration is also valid for the other target in the folder.
        let created = EventKind::Create(CreateKind::File);
        assert_eq!(affected_targets(&folders, created, other), [(2, Urgency::WhenQuiet)]);
    }
}
