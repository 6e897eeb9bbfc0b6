//! Which folders are watched, and who hears of what happens in them.
//!
//! A folder that thousands of files lie in is watched once. It is known by what it is, not by a path to it: the system
//! gives two paths to one folder one watch, whose events bear one of the paths.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use notify::event::{AccessKind, AccessMode, EventKind, ModifyKind};
use notify::{Event, RecursiveMode};

use super::debounce::Urgency;
use super::links::links_to;

/// The name of a watched thing among others.
pub(super) type WatchId = u64;

/// What the system tells of events through.
pub(super) type EventSource = Box<dyn notify::Watcher + Send>;

/// Whom it tells.
pub(super) type EventHandler = Box<dyn Fn(notify::Result<Event>) + Send>;

/// Asks the system for it.
pub(super) type OpenEvents = fn(EventHandler) -> notify::Result<EventSource>;

/// What a path leads through, and through which folders one hears of it.
#[derive(Debug, Default)]
pub(super) struct Registration {
    places: BTreeSet<WatchedName>,
    /// Whether every folder is watched.
    whole: bool,
}

/// A name in a watched folder; without a name, whatever happens in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct WatchedName {
    folder: FolderId,
    name: Option<OsString>,
}

/// What a folder is, wherever it is moved: device and inode, where there are such.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum FolderId {
    #[cfg(unix)]
    Inode(u64, u64),
    #[cfg(not(unix))]
    Path(PathBuf),
}

/// Every watched folder.
pub(super) struct Folders {
    ask: OpenEvents,
    /// ReadResult while the system is asked, which answers through the thread that tells of events: that thread never takes it.
    watcher: Mutex<Result<EventSource, String>>,
    /// ReadResult for a moment only, by that thread too.
    routes: Mutex<Routes>,
}

#[derive(Debug, Default)]
struct Routes {
    /// The path a folder is watched by.
    roots: HashMap<FolderId, PathBuf>,
    listeners: HashMap<PathBuf, FolderListeners>,
}

#[derive(Debug)]
struct FolderListeners {
    folder: FolderId,
    named: HashMap<OsString, Vec<WatchId>>,
    /// Those who want to know of every name.
    every: Vec<WatchId>,
    /// It was moved or removed: the system has forgotten its watch, or will tell of another place.
    is_gone: bool,
}

/// What an event calls for.
#[derive(Debug)]
pub(super) enum Impact {
    Nothing,
    For(Vec<(WatchId, Urgency)>),
    /// Something may have been missed.
    ForAll,
}

impl Folders {
    pub(super) fn new(ask: OpenEvents) -> Self {
        Self { ask, watcher: Mutex::new(Err("it is stopped".into())), routes: Mutex::default() }
    }

    pub(super) fn start(&self, tell: impl Fn(notify::Result<Event>) + Send + 'static) {
        let watcher = (self.ask)(Box::new(tell)).map_err(|error| error.to_string());
        *self.watcher() = watcher;
    }

    /// Lets go of what tells of events, which holds on to whoever it tells.
    pub(super) fn stop(&self) {
        let watcher = std::mem::replace(&mut *self.watcher(), Err("it is stopped".into()));
        drop(watcher);
    }

    /// Brings the watches up to what a path leads to now. Whoever is left over has to be armed anew: a folder it
    /// listened to is no longer where it was.
    pub(super) fn arm(
        &self,
        id: WatchId,
        path: &Path,
        listing: Listing,
        armed: &mut Registration,
    ) -> (Result<(), String>, Vec<WatchId>) {
        let (wanted, mut result) = places(path, listing);
        let same = armed.whole && wanted.len() == armed.places.len() && wanted.keys().eq(&armed.places);
        if same && self.routes().all_watched(&armed.places) {
            return (result, Vec::new());
        }
        let mut watcher = self.watcher();
        let mut have = BTreeSet::new();
        let mut orphans = Vec::new();
        for (place, path) in wanted {
            match self.watch(&mut watcher, &place.folder, &path) {
                Ok(left) => {
                    orphans.extend(left);
                    self.routes().add(id, &place);
                    have.insert(place);
                }
                Err(error) => result = Err(trouble(&path, &error)),
            }
        }
        let left: Vec<_> = armed.places.difference(&have).cloned().collect();
        self.leave(&mut watcher, id, &left);
        *armed = Registration { places: have, whole: result.is_ok() };
        orphans.retain(|orphan| *orphan != id);
        (result, orphans)
    }

    /// EventSource nothing for this one any more.
    pub(super) fn disarm(&self, id: WatchId, armed: &Registration) {
        let mut watcher = self.watcher();
        let places: Vec<_> = armed.places.iter().cloned().collect();
        self.leave(&mut watcher, id, &places);
    }

    /// EventSource a folder unless it is watched already; whoever listened to what is no longer there.
    fn watch(
        &self,
        watcher: &mut Result<EventSource, String>,
        folder: &FolderId,
        path: &Path,
    ) -> Result<Vec<WatchId>, String> {
        if self.routes().is_watched(folder) {
            return Ok(Vec::new());
        }
        let watcher = watcher.as_mut().map_err(|trouble| trouble.clone())?;
        // The path without links: what a link leads to may become another folder while this one is still watched.
        let root = std::fs::canonicalize(path).map_err(|error| error.to_string())?;
        let mut orphans = Vec::new();
        let before = {
            let mut routes = self.routes();
            let before = routes.roots.get(folder).cloned();
            for root in before.iter().chain([&root]) {
                if let Some(old) = routes.listeners.remove(root) {
                    routes.roots.remove(&old.folder);
                    orphans.extend(old.all());
                }
            }
            before
        };
        for root in before.iter().chain([&root]) {
            // Most are not watched, and a folder that is gone took its watch with it.
            let _ = watcher.unwatch(root);
        }
        // Before the system is asked: events may come at once.
        {
            let mut routes = self.routes();
            routes.roots.insert(folder.clone(), root.clone());
            routes.listeners.insert(root.clone(), FolderListeners::new(folder.clone()));
        }
        match watcher.watch(&root, RecursiveMode::NonRecursive) {
            Ok(()) => Ok(orphans),
            Err(error) => {
                let mut routes = self.routes();
                routes.roots.remove(folder);
                routes.listeners.remove(&root);
                Err(error.to_string())
            }
        }
    }

    fn leave(&self, watcher: &mut Result<EventSource, String>, id: WatchId, places: &[WatchedName]) {
        for place in places {
            let unheard = self.routes().remove(id, place);
            if let (Some(root), Ok(watcher)) = (unheard, watcher.as_mut()) {
                let _ = watcher.unwatch(&root);
            }
        }
    }

    /// Who has to hear of an event. Called by the thread that tells of events.
    pub(super) fn news(&self, event: &notify::Result<Event>) -> Impact {
        // An overflow or another fault of the queue.
        let Ok(event) = event else { return Impact::ForAll };
        if event.need_rescan() {
            return Impact::ForAll;
        }
        let urgency = match event.kind {
            EventKind::Access(AccessKind::Close(AccessMode::Write)) => Urgency::Closed,
            // Reading raises events too: our own would never end, and a folder of static files is read all the time.
            EventKind::Access(_) => return Impact::Nothing,
            EventKind::Modify(ModifyKind::Name(_)) => Urgency::Renamed,
            EventKind::Remove(_) => Urgency::Gone,
            _ => Urgency::WhenQuiet,
        };
        // Of a folder: what it holds by now is for the next look to find out.
        let of_folder = if urgency == Urgency::Gone { Urgency::Gone } else { Urgency::WhenQuiet };
        let moves = matches!(
            event.kind,
            EventKind::Create(_) | EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_)) | EventKind::Any
        );
        let mut routes = self.routes();
        let mut news = Vec::new();
        for path in &event.paths {
            if let Some(listeners) = routes.listeners.get_mut(path).filter(|_| moves) {
                listeners.is_gone = true;
                news.extend(listeners.all().map(|id| (id, of_folder)));
            }
            let folder = path.parent().and_then(|folder| routes.listeners.get(folder));
            if let (Some(listeners), Some(name)) = (folder, path.file_name()) {
                news.extend(listeners.named(name).map(|id| (id, urgency)));
                if moves {
                    news.extend(listeners.every.iter().map(|id| (*id, Urgency::Gathered)));
                }
            }
        }
        if news.is_empty() { Impact::Nothing } else { Impact::For(news) }
    }

    fn watcher(&self) -> MutexGuard<'_, Result<EventSource, String>> {
        self.watcher.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn routes(&self) -> MutexGuard<'_, Routes> {
        self.routes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many folders are watched.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.routes().listeners.len()
    }
}

/// The system's own events: inotify, where there is Linux.
pub(super) fn recommended(tell: EventHandler) -> notify::Result<EventSource> {
    Ok(Box::new(notify::recommended_watcher(tell)?))
}

/// Whether it is a folder whose names are what counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Listing {
    Contents,
    Names,
}

/// The names that a change of what a path leads to can show at, with paths to their folders; the error is a folder that
/// is not there.
fn places(path: &Path, listing: Listing) -> (BTreeMap<WatchedName, PathBuf>, Result<(), String>) {
    let mut result = Ok(());
    let mut places = BTreeMap::new();
    let mut add = |folder: &Path, name: Option<&OsStr>| match FolderId::of(folder) {
        Ok(identity) => {
            places.insert(WatchedName { folder: identity, name: name.map(OsStr::to_owned) }, folder.to_owned());
        }
        Err(error) => result = Err(trouble(folder, &error)),
    };
    for link in &links_to(path) {
        if let (Some(folder), Some(name)) = (link.parent(), link.file_name()) {
            add(folder, Some(name));
        }
    }
    if listing == Listing::Names {
        add(&std::path::absolute(path).unwrap_or_else(|_| path.to_owned()), None);
    }
    (places, result)
}

fn trouble(folder: &Path, error: &dyn std::fmt::Display) -> String {
    format!("{}: no file events, changes are found by polling: {error}", folder.display())
}

impl FolderId {
    fn of(folder: &Path) -> std::io::Result<Self> {
        let metadata = std::fs::metadata(folder)?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            Ok(Self::Inode(metadata.dev(), metadata.ino()))
        }
        #[cfg(not(unix))]
        {
            drop(metadata);
            Ok(Self::Path(folder.to_owned()))
        }
    }
}

impl Routes {
    fn is_watched(&self, folder: &FolderId) -> bool {
        self.listeners_of(folder).is_some_and(|listeners| !listeners.is_gone)
    }

    fn all_watched(&self, places: &BTreeSet<WatchedName>) -> bool {
        places.iter().all(|place| self.is_watched(&place.folder))
    }

    fn listeners_of(&self, folder: &FolderId) -> Option<&FolderListeners> {
        self.listeners.get(self.roots.get(folder)?)
    }

    fn add(&mut self, id: WatchId, place: &WatchedName) {
        let Some(listeners) = self.roots.get(&place.folder).and_then(|root| self.listeners.get_mut(root)) else {
            return;
        };
        let ids = match &place.name {
            Some(name) => listeners.named.entry(name.clone()).or_default(),
            None => &mut listeners.every,
        };
        if !ids.contains(&id) {
            ids.push(id);
        }
    }

    /// The path of a folder that nobody listens to any more.
    fn remove(&mut self, id: WatchId, place: &WatchedName) -> Option<PathBuf> {
        let root = self.roots.get(&place.folder)?.clone();
        let listeners = self.listeners.get_mut(&root)?;
        match &place.name {
            Some(name) => {
                if let Some(ids) = listeners.named.get_mut(name) {
                    ids.retain(|other| *other != id);
                    if ids.is_empty() {
                        listeners.named.remove(name);
                    }
                }
            }
            None => listeners.every.retain(|other| *other != id),
        }
        if listeners.all().next().is_some() {
            return None;
        }
        self.roots.remove(&place.folder);
        self.listeners.remove(&root);
        Some(root)
    }
}

impl FolderListeners {
    fn new(folder: FolderId) -> Self {
        Self { folder, named: HashMap::new(), every: Vec::new(), is_gone: false }
    }

    fn all(&self) -> impl Iterator<Item = WatchId> {
        self.named.values().flatten().chain(&self.every).copied()
    }

    fn named(&self, name: &OsStr) -> impl Iterator<Item = WatchId> {
        self.named.get(name).into_iter().flatten().copied()
    }
}

#[cfg(test)]
mod tests {
    use notify::event::{CreateKind, RemoveKind, RenameMode};

    use super::*;

    fn armed(folders: &Folders, id: WatchId, path: &Path) -> Registration {
        let mut armed = Registration::default();
        let (result, _) = folders.arm(id, path, Listing::Contents, &mut armed);
        assert_eq!(result, Ok(()));
        armed
    }

    fn heard(folders: &Folders, kind: EventKind, path: PathBuf) -> Vec<(WatchId, Urgency)> {
        match folders.news(&Ok(Event::new(kind).add_path(path))) {
            Impact::For(news) => news,
            Impact::Nothing => Vec::new(),
            Impact::ForAll => panic!("nothing was missed"),
        }
    }

    #[test]
    fn a_folder_is_watched_once_whatever_path_leads_to_it_and_let_go_with_its_last_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("a path");
        let inner = root.join("inner");
        std::fs::create_dir(&inner).expect("a folder");
        let folders = Folders::new(recommended);
        folders.start(|_| ());
        let first: Vec<_> = (0..100).map(|id| armed(&folders, id, &inner.join(format!("{id}.txt")))).collect();
        assert_eq!(folders.len(), 1);
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(&inner, root.join("link")).expect("a link");
            let other = armed(&folders, 200, &root.join("link/7.txt"));
            // The folder of the link is watched as well, for the link itself may be changed.
            assert_eq!(folders.len(), 2);
            let rename = EventKind::Modify(ModifyKind::Name(RenameMode::To));
            assert_eq!(heard(&folders, rename, inner.join("7.txt")), [(7, Urgency::Renamed), (200, Urgency::Renamed)]);
            assert_eq!(heard(&folders, rename, root.join("link")), [(200, Urgency::Renamed)]);
            folders.disarm(200, &other);
            assert_eq!(folders.len(), 1);
        }
        let created = EventKind::Create(CreateKind::File);
        assert_eq!(heard(&folders, created, inner.join("3.txt")), [(3, Urgency::WhenQuiet)]);
        assert_eq!(heard(&folders, created, inner.join("none of ours")), []);
        for (id, armed) in first.iter().enumerate() {
            folders.disarm(id as WatchId, armed);
        }
        assert_eq!(folders.len(), 0);
    }

    #[test]
    fn a_folder_that_went_is_watched_anew_when_it_is_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("a path");
        let inner = root.join("inner");
        std::fs::create_dir(&inner).expect("a folder");
        let folders = Folders::new(recommended);
        folders.start(|_| ());
        let (mut one, path) = (armed(&folders, 1, &inner.join("a.txt")), inner.join("a.txt"));
        let _other = armed(&folders, 2, &inner.join("b.txt"));
        // The new folder may have the number of the old one: only the event tells.
        let mut all = heard(&folders, EventKind::Remove(RemoveKind::Other), inner);
        all.sort_by_key(|(id, _)| *id);
        assert_eq!(all, [(1, Urgency::Gone), (2, Urgency::Gone)]);
        let (result, orphans) = folders.arm(1, &path, Listing::Contents, &mut one);
        assert_eq!((result, orphans), (Ok(()), vec![2]));
        assert_eq!(folders.len(), 1);
    }
}
