//! How what a source holds becomes live, or does not.

use std::error::Error;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use super::compile_cache::CompileCache;
use super::date;
use super::gate::{Gate, Objection, Pending};
use super::handle::{Shared, WhenMissing};
use super::rejection::{Rejection, RejectionKind};
use super::reload::{Cause, Reload, ReloadOutcome};
use super::snapshot::{Content, Snapshot};
use super::state::{Durability, WasLive};
use super::version_hash::{VersionHash, VersionHashPrefix};
use super::versions::{Fate, Version, Versions};
use crate::agent::Registry;
use crate::check;
use crate::policy::Grace;
use crate::rules::{Reading, RobotsTxt};

/// How often whoever waits for a file to be quiet looks whether it was taken already.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Where the bytes come from.
#[derive(Debug)]
pub(crate) enum Source {
    Inline(Arc<[u8]>),
    File(PathBuf),
    #[cfg(feature = "fetch")]
    Remote(crate::source::RemoteSource),
}

/// What a source holds.
#[derive(Clone, Debug)]
pub(crate) struct Loaded {
    pub(crate) bytes: Arc<[u8]>,
    pub(crate) modified: Option<SystemTime>,
}

pub(crate) type Listener = Box<dyn Fn(&Reload, &Snapshot) + Send + Sync>;

pub(crate) struct Settings {
    pub(crate) reading: Reading,
    pub(crate) max_age: Duration,
    pub(crate) grace: Duration,
    pub(crate) when_missing: WhenMissing,
    pub(crate) listeners: Vec<Listener>,
    pub(crate) compile_cache: CompileCache,
}

/// What a version is made with, and what was made before it.
pub(crate) struct Making {
    pub(crate) registry: Arc<Registry>,
    pub(crate) check: check::Options,
    gate: Gate,
    pub(crate) versions: Versions,
    pub(crate) pending: Option<Pending>,
    was_live: WasLive,
    examined: Examined,
    /// What has changed since it was written down: going live waits for no disk.
    pub(crate) unsaved: Option<Durability>,
}

/// Whether what waits was examined by the gate there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Examined {
    Yes,
    No,
}

/// Why a version was not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcceptError {
    asked: VersionHashPrefix,
    pending: Option<VersionHash>,
}

/// There is no version to go back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RollbackError;

impl Source {
    pub(crate) fn origin(&self) -> Arc<str> {
        match self {
            Self::Inline(_) => "inline".into(),
            Self::File(path) => path.to_string_lossy().into(),
            #[cfg(feature = "fetch")]
            Self::Remote(remote) => remote.to_string().into(),
        }
    }

    fn load(&self, origin: &Arc<str>) -> Result<Loaded, Rejection> {
        match self {
            Self::Inline(text) => Ok(Loaded { bytes: text.clone(), modified: None }),
            Self::File(path) => crate::source::file::read(path, origin)
                .map(|read| Loaded { bytes: read.bytes.into(), modified: read.modified }),
            // What is fetched is brought by whoever fetches it.
            #[cfg(feature = "fetch")]
            Self::Remote(_) => Err(Rejection::new(RejectionKind::NotFetched, origin)),
        }
    }
}

impl Settings {
    fn content(&self, robots: RobotsTxt, modified: Option<SystemTime>, making: &Making) -> Content {
        let options = making.check.clone().with_registry(making.registry.clone());
        Content::new(self.compile_cache.compile(robots, self.reading, &making.registry, options), modified)
    }
}

impl Making {
    pub(crate) fn new(
        registry: Arc<Registry>,
        check: check::Options,
        gate: Gate,
        versions: Versions,
        pending: Option<Pending>,
        was_live: WasLive,
    ) -> Self {
        Self { registry, check, gate, versions, pending, was_live, examined: Examined::No, unsaved: None }
    }
}

impl Shared {
    /// Brings the first version live: what the source holds, or else what was accepted last. The error is what to tell
    /// where there is neither and there has to be one.
    pub(crate) fn start(&self) -> Result<(), Rejection> {
        let mut making = self.making();
        // Before it is looked at: a version that is not wanted costs no compiling where the next takes its place.
        let last = making.versions.current().cloned();
        let mut outcome = self.consider(&mut making, self.source.load(&self.origin), |_| true);
        let mut restored = None;
        if let (Some(last), ReloadOutcome::Kept { live, .. } | ReloadOutcome::Gated { live, .. }) = (last, &mut outcome)
        {
            self.restore(&making, &last);
            *live = Some(last.hash);
            restored = Some(self.restored(&making, &last));
        }
        let refusal = match &outcome {
            ReloadOutcome::Kept { rejection, .. } => Some(rejection.clone()),
            ReloadOutcome::Gated { pending, .. } => Some(Rejection::gated(pending.clone(), &self.origin)),
            ReloadOutcome::Published { .. } | ReloadOutcome::Unchanged { .. } | ReloadOutcome::Absent { .. } => None,
        };
        let reload = Reload { restored, ..Reload::new(Cause::Start, &self.origin, outcome) };
        if refusal.as_ref().is_some_and(|refusal| refusal.kind() == RejectionKind::NotFetched) {
            // There is nothing to tell before the first answer.
            self.note(&making, &reload);
            return Ok(());
        }
        self.remember(&mut making, &reload, None);
        match refusal {
            Some(refusal) if self.live().is_none() && self.settings.when_missing == WhenMissing::Fail => Err(refusal),
            _ => {
                self.settings.tell(&reload, &self.current.load_full());
                Ok(())
            }
        }
    }

    /// What is known of a version that is live again because its source holds none that may be: a restart does not go
    /// behind what was live without saying so.
    fn restored(&self, making: &Making, last: &Version) -> Arc<str> {
        let when = date::shown(last.since);
        let (text, is_behind) = match making.was_live {
            WasLive::Current => {
                (format!("it was accepted {when} and was live before, as far as is written down"), false)
            }
            WasLive::Unknown => (
                format!("it was accepted {when} and may be older than what was live before: nothing says what was"),
                true,
            ),
            WasLive::Other(hash, since) => {
                let (hash, since) = (hash.short(), date::shown(since));
                let text = format!(
                    "it was accepted {when} and is older than what was live before: version {hash}, accepted {since}, is not \
                     in the state directory"
                );
                (text, true)
            }
        };
        if let (Some(state), true) = (&self.state, is_behind) {
            state.is_behind(Some(format!("version {} is served; {text}", last.hash.short())));
        }
        text.into()
    }

    /// For whoever may ask in the middle of writing: what was changed a moment ago is taken once it is the same after that
    /// moment. The watcher may take it meanwhile.
    pub(crate) fn reload_once_quiet(&self, cause: Cause) -> Reload {
        let first = self.source.load(&self.origin).ok();
        if let Some(first) = &first {
            let hash = Some(VersionHash::of(&first.bytes));
            // The clock of files says how long; how long that is, one that nobody sets.
            let rest = first.modified.and_then(crate::source::file::unrest).unwrap_or_default();
            let quiet = Instant::now() + rest;
            while self.live() != hash {
                let rest = quiet.saturating_duration_since(Instant::now());
                if rest.is_zero() {
                    break;
                }
                std::thread::sleep(rest.min(LOOK_AGAIN));
            }
        }
        self.reload_if(cause, |again| first.is_none_or(|first| first.bytes == again.bytes))
    }

    /// Publishes what the source holds only if it was `settled` after it was read; else it is
    /// [`RejectionKind::Unstable`], which is told only to whoever asked: the watcher looks again by itself.
    pub(crate) fn reload_if(&self, cause: Cause, settled: impl FnOnce(&Loaded) -> bool) -> Reload {
        let mut making = self.making();
        let before = self.robots();
        let outcome = self.consider(&mut making, self.source.load(&self.origin), settled);
        let reload = Reload::new(cause, &self.origin, outcome);
        if !reload.is_unstable() || cause == Cause::Request {
            self.conclude(&mut making, &reload, before);
        }
        reload
    }

    /// Takes what was fetched, as if it had been read.
    #[cfg(feature = "fetch")]
    pub(crate) fn offer(&self, cause: Cause, fetched: crate::source::Fetched) -> Reload {
        let mut making = self.making();
        let before = self.robots();
        let outcome = match fetched {
            crate::source::Fetched::File(loaded) => self.consider(&mut making, Ok(loaded), |_| true),
            crate::source::Fetched::Nothing(rejection) => self.consider(&mut making, Err(rejection), |_| true),
            crate::source::Fetched::Absent { status } => {
                self.change(Snapshot::without_content);
                ReloadOutcome::Absent { status }
            }
        };
        let reload = Reload::new(cause, &self.origin, outcome);
        self.conclude(&mut making, &reload, before);
        reload
    }

    pub(crate) fn accept(&self, hash: &VersionHashPrefix) -> Result<Reload, AcceptError> {
        let mut making = self.making();
        let Some(pending) = making.pending.clone().filter(|pending| hash.matches(&pending.hash())) else {
            let pending = making.pending.as_ref().map(Pending::hash);
            return Err(AcceptError { asked: hash.clone(), pending });
        };
        let before = self.robots();
        let loaded = Loaded { bytes: pending.bytes().clone(), modified: pending.modified() };
        let robots = RobotsTxt::parse(loaded.bytes.clone());
        let content = self.settings.content(robots, self.dated(&making, pending.hash(), loaded.modified), &making);
        let outcome = self.publish(&mut making, content, pending.origin().into());
        making.unsaved = Some(Durability::Machine);
        let reload = Reload::new(Cause::Accept, &self.origin, outcome);
        self.conclude(&mut making, &reload, before);
        Ok(reload)
    }

    pub(crate) fn rollback(&self) -> Result<Reload, RollbackError> {
        let mut making = self.making();
        let before = self.robots();
        let left = making.versions.roll_back().ok_or(RollbackError)?;
        let version = making.versions.current().cloned().ok_or(RollbackError)?;
        let Version { bytes, origin, modified, .. } = left;
        let objections = vec![Objection::rolled_back()];
        making.pending = Some(Pending::new(bytes, origin, modified, self.clock.now(), objections));
        making.examined = Examined::Yes;
        let outcome = self.restore(&making, &version);
        making.unsaved = Some(Durability::Machine);
        let reload = Reload::new(Cause::Rollback, &self.origin, outcome);
        self.conclude(&mut making, &reload, before);
        Ok(reload)
    }

    pub(crate) fn set_gate(&self, gate: Gate) {
        let mut making = self.making();
        making.gate = gate;
        making.examined = Examined::No;
    }

    pub(crate) fn set_registry(&self, registry: Arc<Registry>) {
        let mut making = self.making();
        if !Arc::ptr_eq(&making.registry, &registry) {
            making.registry = registry;
            self.make_again(&making);
        }
    }

    pub(crate) fn set_check(&self, options: check::Options) {
        let mut making = self.making();
        if making.check != options {
            making.check = options;
            self.make_again(&making);
        }
    }

    /// What is live, made of the same bytes.
    fn make_again(&self, making: &Making) {
        if let Some(content) = self.current.load_full().content() {
            let modified = content.modified().map(|(modified, _)| modified);
            self.show(making, self.settings.content(content.robots().clone(), modified, making));
        }
    }

    /// What the source holds now, without publishing it.
    #[cfg(feature = "watch")]
    pub(crate) fn load(&self) -> Result<Loaded, Rejection> {
        self.source.load(&self.origin)
    }

    /// Publishes what [`Shared::load`] gave, if it is to be, or keeps what is live and says why.
    #[cfg(feature = "watch")]
    pub(crate) fn take(&self, cause: Cause, loaded: Result<Loaded, Rejection>) -> Reload {
        let mut making = self.making();
        let before = self.robots();
        let outcome = self.consider(&mut making, loaded, |_| true);
        let reload = Reload::new(cause, &self.origin, outcome);
        self.conclude(&mut making, &reload, before);
        reload
    }

    /// What becomes of what the source holds.
    fn consider(
        &self,
        making: &mut Making,
        loaded: Result<Loaded, Rejection>,
        settled: impl FnOnce(&Loaded) -> bool,
    ) -> ReloadOutcome {
        let live = self.live();
        let kept = |rejection| ReloadOutcome::Kept { rejection, live };
        let loaded = match loaded {
            Ok(loaded) => loaded,
            Err(rejection) => return kept(rejection),
        };
        let hash = VersionHash::of(&loaded.bytes);
        if live == Some(hash) {
            if making.pending.take().is_some() {
                making.versions.let_go();
                making.unsaved = Some(Durability::Machine);
            }
            return ReloadOutcome::Unchanged { hash };
        }
        if !settled(&loaded) {
            return kept(Rejection::new(RejectionKind::Unstable, &self.origin));
        }
        let is_examined = |pending: &&Pending| making.examined == Examined::Yes || pending.is_rolled_back();
        if let Some(pending) = making.pending.as_ref().filter(|pending| pending.hash() == hash).filter(is_examined) {
            return ReloadOutcome::Gated { pending: pending.clone(), live };
        }
        let robots = RobotsTxt::parse(loaded.bytes.clone());
        if let Some(rejection) = Rejection::of(&robots, &self.origin) {
            return kept(rejection);
        }
        let content = self.settings.content(robots, self.dated(making, hash, loaded.modified), making);
        let objections = self.objections(making, &content);
        if objections.is_empty() {
            making.versions.let_go();
            return self.publish(making, content, self.origin.clone());
        }
        let pending = Pending::new(loaded.bytes, self.origin.clone(), loaded.modified, self.clock.now(), objections);
        making.pending = Some(pending.clone());
        making.examined = Examined::Yes;
        making.unsaved = Some(Durability::Machine);
        ReloadOutcome::Gated { pending, live }
    }

    fn objections(&self, making: &Making, content: &Content) -> Vec<Objection> {
        if making.versions.holds(content.hash()) {
            return vec![Objection::rolled_back()];
        }
        let last = making.versions.current();
        let was_live = matches!(making.was_live, WasLive::Other(hash, _) if hash == content.hash());
        if was_live || last.is_some_and(|last| last.hash == content.hash()) {
            return Vec::new();
        }
        let last = last.map(|last| RobotsTxt::parse(last.bytes.clone()));
        making.gate.examine(content.robots(), content.report(), last.as_ref(), &making.registry)
    }

    /// Accepts a version and shows it.
    fn publish(&self, making: &mut Making, content: Content, origin: Arc<str>) -> ReloadOutcome {
        let now = self.clock.now();
        let hash = content.hash();
        let is_known = making.versions.current().is_some_and(|last| last.hash == hash) && making.pending.is_none();
        let modified = content.modified().map(|(modified, _)| modified);
        let bytes = content.robots().bytes().clone();
        let version = Version { hash, bytes, origin, modified, since: now, fate: Fate::Accepted };
        making.versions.accept(version, self.settings.grace, now);
        making.pending = None;
        making.was_live = WasLive::Current;
        self.show(making, content);
        if !is_known {
            // The source can be read again; ten thousand files that are changed at once must not wait for the disk.
            making.unsaved = Some(Durability::Process);
        }
        ReloadOutcome::Published { hash }
    }

    /// Shows a version that was accepted before.
    fn restore(&self, making: &Making, version: &Version) -> ReloadOutcome {
        let robots = RobotsTxt::parse(version.bytes.clone());
        let modified = self.dated(making, version.hash, version.modified);
        self.show(making, self.settings.content(robots, modified, making));
        ReloadOutcome::Published { hash: version.hash }
    }

    /// Replaces what is live, with one store.
    fn show(&self, making: &Making, content: Content) {
        let content = Arc::new(content);
        let grace = self.grace(making);
        self.change(|current| current.with_content(content.clone(), grace.clone()));
    }

    /// What is newly disallowed by the current version; `None` once everything is old enough.
    fn grace(&self, making: &Making) -> Option<Arc<Grace>> {
        let current = making.versions.current().filter(|_| self.settings.grace > Duration::ZERO)?;
        let mut grace = Grace::new(self.settings.grace, current.since);
        if grace.end() <= self.clock.now() {
            return None;
        }
        for version in making.versions.iter().filter(|version| version.since < current.since) {
            let stands_for = |name: crate::rules::Name<'_>| making.registry.stands_for(name.value());
            let rules = RobotsTxt::parse(version.bytes.clone()).compile_with(self.settings.reading, stands_for);
            grace.add(version.since, rules);
        }
        Some(grace.into())
    }

    /// A version that replaces another is never dated before it, or whoever asks by date would keep the other: an older
    /// file put back keeps its old date.
    fn dated(&self, making: &Making, hash: VersionHash, modified: Option<SystemTime>) -> Option<SystemTime> {
        let current = self.current.load();
        let before = match current.content() {
            Some(content) => content.modified().map(|(modified, _)| modified),
            // At the start the one before is what an earlier process showed.
            None => making.versions.current().filter(|last| last.hash != hash).and_then(|last| last.modified),
        };
        match (modified, before) {
            (Some(modified), Some(before)) if modified <= before => Some(SystemTime::now()),
            _ => modified,
        }
    }

    fn robots(&self) -> Option<RobotsTxt> {
        self.current.load().content().map(|content| content.robots().clone())
    }
}

impl AcceptError {
    /// The version that waits, if one does.
    #[must_use]
    pub const fn pending(&self) -> Option<VersionHash> {
        self.pending
    }
}

impl fmt::Display for AcceptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { asked, pending } = self;
        match pending {
            Some(pending) => write!(f, "no version \"{asked}\" waits to be accepted: \"{pending}\" does"),
            None => write!(f, "no version \"{asked}\" waits to be accepted: none does"),
        }
    }
}

impl Error for AcceptError {}

impl fmt::Display for RollbackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("there is no version to go back to: none is remembered from before the one that was accepted last")
    }
}

impl Error for RollbackError {}
