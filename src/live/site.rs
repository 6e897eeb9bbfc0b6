//! One site: the one place that swaps snapshots, and the locks around it.
//!
//! | lock | held while | never while |
//! |---|---|---|
//! | `reading` | a caller's reload loads the source and offers it, or a caller's text is offered | the status is read, a listener runs |
//! | `publisher` | a candidate is parsed, compiled and compared, and its snapshot stored | a source or the disk is read or written, a listener runs |
//! | `record` | a value is read or replaced | anything else |
//! | `switch` | the site's kill switch is turned and written down | anything else |
//!
//! What only reads takes `record` and no other of them.

use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::SystemTime;

use arc_swap::ArcSwap;

use super::appending::Appending;
use super::appendix::AppendsParts;
use super::clock::Clock;
use super::compile_cache::CompileSettings;
use super::earlier_process::Remembered;
use super::enforcement::Enforcement;
use super::gate::Gate;
use super::kill_switch::Switched;
use super::notices::Notices;
use super::publisher::{AcceptError, Publisher, Republished, RollbackError};
use super::rejection::{Rejection, RejectionKind};
use super::reload::{Cause, Reload, ReloadOutcome, ReloadOutcomeKind};
use super::reload_history::HistoryEntry;
use super::reload_record::{ReloadRecord, Restoration, history_entry};
use super::reloading::Completion;
use super::settings::SiteSettings;
use super::snapshot::{Snapshot, WhenMissing};
use super::source::{Candidate, Loaded, Source, load_text};
use super::state::{SiteState, StateError};
use super::status::Status;
use super::version::Version;
use super::version_hash::{VersionHash, VersionHashPrefix};
use crate::agent::Registry;
use crate::check;
use crate::policy::Policy;
use crate::rules::RobotsTxt;

/// One site's published state, shared by its handles and its source.
pub(crate) struct Site {
    current: ArcSwap<Snapshot>,
    source: Arc<dyn Source>,
    origin: Arc<str>,
    when_missing: WhenMissing,
    reading: Mutex<()>,
    publisher: Mutex<Publisher>,
    record: Mutex<ReloadRecord>,
    switch: Mutex<()>,
    notices: Notices,
    state: Option<SiteState>,
    appending: Option<Appending>,
    clock: Clock,
    faults: AtomicU64,
    callback_faults: AtomicU64,
    stripped_targets: AtomicU64,
}

impl Site {
    /// A site that has published nothing yet. `source` makes its source, given the site's weak handle; `origin` says where
    /// the bytes come from.
    pub(crate) fn new<S: Source + 'static>(
        settings: SiteSettings,
        origin: &Arc<str>,
        source: impl FnOnce(Weak<Self>) -> Arc<S>,
    ) -> Arc<Self> {
        let SiteSettings { policy, registry, check, gate, reading, max_age, grace, when_missing, appendix, .. } =
            settings;
        let (listeners, cache) = (settings.listeners, settings.compile_cache);
        let clock = settings.clock.beginning(cache.began());
        let state = settings.state.as_ref().map(|(state, name)| state.site(name));
        let now = clock.now();
        let remembered = state.as_ref().map(|state| state.load(now)).unwrap_or_default();
        let Remembered { versions, pending, history, enforcement, was_live } = remembered;
        let snapshot = Snapshot::empty(
            policy.into(),
            clock.clone(),
            cache.join(settings.counted_as.as_deref()),
            max_age,
            when_missing,
        );
        let snapshot = snapshot.with_switches(|switches| switches.site = enforcement);
        let compile = CompileSettings { reading, registry, check };
        // Stands for "nothing yet" until `start` records what came of it.
        let rejection = Rejection::new(RejectionKind::Missing, origin);
        let last = Reload::new(Cause::Start, origin, ReloadOutcome::Kept { rejection, live: None });
        let site = Arc::new_cyclic(|site| Self {
            current: ArcSwap::from_pointee(snapshot),
            source: source(site.clone()),
            origin: origin.clone(),
            when_missing,
            reading: Mutex::default(),
            publisher: Mutex::new(Publisher::new(compile, cache, gate, grace, (versions, pending, was_live))),
            record: Mutex::new(ReloadRecord { last, since: now, history, pending: None, before: None }),
            switch: Mutex::default(),
            notices: Notices::new(listeners),
            state,
            appending: appendix.clone().map(Appending::new),
            clock,
            faults: AtomicU64::new(0),
            callback_faults: AtomicU64::new(0),
            stripped_targets: AtomicU64::new(0),
        });
        if let Some(appendix) = &appendix {
            let site: Weak<Self> = Arc::downgrade(&site);
            appendix.join(site);
        }
        if let Some(switch) = settings.state.as_ref().map(|(state, _)| state.switch()).or(settings.switch.as_ref()) {
            switch.join(&site);
        }
        site
    }

    /// Brings the first version live: what the source holds, or else what was accepted last.
    ///
    /// # Errors
    ///
    /// Why there is neither, where there has to be one.
    pub(crate) fn start(&self) -> Result<(), Rejection> {
        let candidate = self.source.load().into();
        let now = self.clock.now();
        let mut publisher = self.publisher();
        let candidate = self.appended(&publisher, candidate);
        let (outcome, restored) = publisher.start(candidate, now);
        let restored = restored.map(|last| (last.hash(), Restoration::new(publisher.was_live(), &last)));
        let is_shown = matches!(outcome, ReloadOutcome::Published { .. }) || restored.is_some();
        self.store(&publisher, is_shown);
        let behind = restored.as_ref().filter(|(_, restored)| restored.is_behind);
        let behind = behind.map(|(hash, restored)| format!("version {} is served; {}", hash.short(), restored.text));
        let refusal = match &outcome {
            ReloadOutcome::Kept { rejection, .. } => Some(rejection.clone()),
            ReloadOutcome::Gated { pending, .. } => Some(Rejection::gated(pending.clone(), &self.origin)),
            ReloadOutcome::Published { .. } | ReloadOutcome::Unchanged { .. } | ReloadOutcome::Absent { .. } => None,
        };
        let reload = Reload {
            restored: restored.map(|(_, restored)| restored.text),
            ..Reload::new(Cause::Start, &self.origin, outcome)
        };
        if refusal.as_ref().is_some_and(|refusal| refusal.kind() == RejectionKind::NotFetched) {
            // There is nothing to report before the first answer.
            self.record().update(&publisher, &reload, now);
            drop(publisher);
            if let Some(state) = &self.state {
                state.is_behind(behind);
            }
            return Ok(());
        }
        self.remember(&mut publisher, &reload, None, now);
        let has_failed = publisher.live().is_none() && self.when_missing == WhenMissing::Fail;
        if let Some(refusal) = refusal.filter(|_| has_failed) {
            return Err(refusal);
        }
        let is_current = matches!(reload.outcome, ReloadOutcome::Published { .. });
        self.notices.push(reload, self.current.load_full());
        drop(publisher);
        if let Some(state) = &self.state {
            if is_current || behind.is_some() {
                state.is_behind(behind);
            }
            state.write_soon();
        }
        self.notices.deliver();
        Ok(())
    }

    /// What the source holds now. Blocks for as long as the source does.
    pub(crate) fn load(&self) -> Loaded {
        self.source.load()
    }

    /// Loads the source and publishes what it holds, if that `settled` since a look before; else the reload ends as
    /// [`RejectionKind::Unstable`]. One such reload at a time, so that what was read earlier never replaces what was read
    /// later.
    pub(crate) fn reload(&self, settled: impl FnOnce(&Version) -> bool) -> Reload {
        let reload = {
            let _reading = self.reading();
            let candidate = match self.source.load() {
                Ok(version) if self.live_source() != Some(version.hash()) && !settled(&version) => {
                    Candidate::Rejected(Rejection::new(RejectionKind::Unstable, &self.origin))
                }
                loaded => loaded.into(),
            };
            self.consider(Cause::Request, candidate)
        };
        self.notices.deliver();
        reload
    }

    /// Publishes a text that a caller hands in, in place of what the source holds. One that is no robots.txt leaves the
    /// source as it is.
    ///
    /// # Errors
    ///
    /// Why the text is not live.
    pub(super) fn publish_text(&self, text: &[u8]) -> Result<Reload, Rejection> {
        let Some(held) = self.source.text() else {
            return Err(Rejection::new(RejectionKind::NotInline, &self.origin));
        };
        let loaded = load_text(text, &self.origin);
        let reload = {
            let _reading = self.reading();
            let reload = self.consider(Cause::Publish, loaded.clone().into());
            if let (Ok(version), false) = (loaded, matches!(reload.outcome, ReloadOutcome::Kept { .. })) {
                *held.lock().unwrap_or_else(PoisonError::into_inner) = version;
            }
            reload
        };
        self.notices.deliver();
        match reload.outcome {
            ReloadOutcome::Kept { rejection, .. } => Err(rejection),
            ReloadOutcome::Gated { pending, .. } => Err(Rejection::gated(pending, &self.origin)),
            ReloadOutcome::Published { .. } | ReloadOutcome::Unchanged { .. } | ReloadOutcome::Absent { .. } => {
                Ok(reload)
            }
        }
    }

    /// Runs a reload that a caller waits for on a thread of its own. A fault of ours leaves no caller waiting.
    pub(crate) fn reload_apart(
        site: Arc<Self>,
        completion: Arc<Completion>,
        reload: impl Fn(&Self) -> Reload + Copy + Send + 'static,
    ) {
        let run = move |site: Arc<Self>| {
            let reloaded = catch_unwind(AssertUnwindSafe(|| reload(&site)));
            let reloaded = reloaded.unwrap_or_else(|_| Reload::interrupted(Cause::Request, &site.origin, site.live()));
            // Before the caller goes on: a site that the caller drops then is dropped, and written down, by it.
            drop(site);
            completion.fill(reloaded);
        };
        let job = {
            let (site, run) = (site.clone(), run.clone());
            move || run(site)
        };
        if std::thread::Builder::new().name("robots-reload".into()).spawn(job).is_err() {
            // The system gives no thread: the caller waits for the source.
            run(site);
        }
    }

    /// Publishes a candidate, if it may go live, or keeps what is live and records why.
    #[cfg(any(test, feature = "watch", feature = "fetch"))]
    pub(crate) fn offer(&self, cause: Cause, candidate: Candidate) -> Reload {
        let reload = self.consider(cause, candidate);
        self.notices.deliver();
        reload
    }

    /// As [`Site::offer`]; the caller has the listeners notified, once it holds no lock.
    fn consider(&self, cause: Cause, candidate: Candidate) -> Reload {
        let step = |publisher: &mut Publisher, now| -> Result<_, Infallible> {
            let candidate = self.appended(publisher, candidate);
            Ok(publisher.consider(candidate, now))
        };
        match self.publish(cause, step) {
            Ok(reload) => reload,
            Err(never) => match never {},
        }
    }

    /// With what is appended. Under the publisher's lock, so that a part which is replaced meanwhile is not lost.
    fn appended(&self, publisher: &Publisher, candidate: Candidate) -> Candidate {
        let Some(appending) = &self.appending else { return candidate };
        let remembered = || publisher.versions().current().map(|current| &**current.version.bytes());
        let before = publisher.content().map(|content| &**content.body()).or_else(remembered);
        appending.append(candidate, before)
    }

    pub(super) fn accept(&self, hash: &VersionHashPrefix) -> Result<Reload, AcceptError> {
        let reload = self.publish(Cause::Accept, |publisher, now| publisher.accept(hash, now));
        self.notices.deliver();
        reload
    }

    pub(super) fn roll_back(&self) -> Result<Reload, RollbackError> {
        let reload = self.publish(Cause::Rollback, Publisher::roll_back);
        self.notices.deliver();
        reload
    }

    pub(super) fn set_gate(&self, gate: Gate) {
        self.publisher().set_gate(gate);
    }

    pub(super) fn set_registry(&self, registry: Arc<Registry>) {
        let mut publisher = self.publisher();
        let republished = publisher.set_registry(registry, self.clock.now());
        self.store(&publisher, republished == Republished::Yes);
    }

    pub(super) fn set_check(&self, options: check::Options) {
        let mut publisher = self.publisher();
        let republished = publisher.set_check(options, self.clock.now());
        self.store(&publisher, republished == Republished::Yes);
    }

    pub(super) fn set_policy(&self, policy: Policy) {
        let policy = Arc::new(policy);
        self.change(|current| current.with_policy(policy.clone()));
    }

    /// Turns the site's own switch, then writes it down.
    pub(super) fn set_enforcement(&self, enforcement: Enforcement) -> Result<(), StateError> {
        let _turning = self.switch.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.current.load().switches().site;
        self.change(|current| current.with_switches(|switches| switches.site = enforcement));
        let written = self.state.as_ref().map_or(Ok(()), |state| state.set_enforcement(enforcement));
        if before != enforcement {
            self.record_switch(enforcement, "this site");
        }
        written
    }

    /// Asks the source for a reload.
    pub(super) fn source(&self) -> &dyn Source {
        &*self.source
    }

    pub(super) const fn current(&self) -> &ArcSwap<Snapshot> {
        &self.current
    }

    /// The version that is live.
    pub(crate) fn live(&self) -> Option<VersionHash> {
        self.current.load().content().map(|content| content.hash())
    }

    /// The hash of what the source held when that went live: that of the version, where nothing is appended.
    pub(crate) fn live_source(&self) -> Option<VersionHash> {
        let live = self.live();
        match &self.appending {
            Some(appending) => appending.source_of(live?),
            None => live,
        }
    }

    #[cfg(feature = "fetch")]
    pub(crate) const fn clock(&self) -> &Clock {
        &self.clock
    }

    pub(super) fn history(&self) -> Vec<HistoryEntry> {
        self.record().history.iter().cloned().collect()
    }

    pub(super) fn status(&self) -> Status {
        let snapshot = self.current.load();
        let source = self.source.status();
        let record = self.record();
        Status {
            live: snapshot.content().map(|content| content.hash()),
            last: record.last.clone(),
            since: record.since,
            pending: record.pending.clone(),
            before: record.before,
            enforcement: snapshot.enforcement(),
            switch: snapshot.switches().site,
            grace_end: snapshot.grace_end(),
            faults: self.faults.load(Ordering::Relaxed),
            callback_faults: self.callback_faults.load(Ordering::Relaxed),
            stripped_targets: self.stripped_targets.load(Ordering::Relaxed),
            state_troubles: self.state.as_ref().map(SiteState::troubles).unwrap_or_default(),
            source,
        }
    }

    #[cfg(feature = "layer")]
    pub(super) fn origin(&self) -> &str {
        &self.origin
    }

    #[cfg(feature = "layer")]
    pub(super) fn count_fault(&self) {
        self.faults.fetch_add(1, Ordering::Relaxed);
    }

    #[cfg(feature = "layer")]
    pub(super) fn count_callback_fault(&self) {
        self.callback_faults.fetch_add(1, Ordering::Relaxed);
    }

    /// The first is reported: it is a mistake in the application, which each further one repeats.
    #[cfg(feature = "axum08")]
    pub(super) fn count_stripped_target(&self) {
        if self.stripped_targets.fetch_add(1, Ordering::Relaxed) == 0 {
            #[cfg(feature = "tracing")]
            tracing::warn!(
                target: "tower_robots::layer",
                "{}: RobotsLayer::new in a nested axum router judges targets without their prefix, so crawlers pass: use \
                 RobotsLayer::for_axum08 there",
                self.origin
            );
        }
    }

    /// Takes a step of the publisher, stores its snapshot and records the outcome; then, without the publisher's lock, writes
    /// down what an operator decided. The caller has the listeners notified.
    fn publish<E>(
        &self,
        cause: Cause,
        step: impl FnOnce(&mut Publisher, SystemTime) -> Result<ReloadOutcome, E>,
    ) -> Result<Reload, E> {
        let mut publisher = self.publisher();
        let now = self.clock.now();
        let before = publisher.content().map(|content| content.robots().clone());
        let outcome = step(&mut publisher, now)?;
        let is_shown = matches!(outcome, ReloadOutcome::Published { .. } | ReloadOutcome::Absent { .. });
        self.store(&publisher, is_shown);
        let reload = Reload::new(cause, &self.origin, outcome);
        let is_news = self.record().is_news(&reload);
        let is_saved = if is_news {
            self.remember(&mut publisher, &reload, before, now);
            self.notices.push(reload.clone(), self.current.load_full());
            true
        } else {
            self.record().update(&publisher, &reload, now);
            self.save(&mut publisher)
        };
        drop(publisher);
        if let Some(state) = &self.state {
            if !matches!(reload.outcome, ReloadOutcome::Kept { .. } | ReloadOutcome::Gated { .. }) {
                state.is_behind(None);
            }
            match cause {
                // The operator relies on the decision once it is answered.
                Cause::Accept | Cause::Rollback => state.write(),
                _ if is_saved || matches!(cause, Cause::Request | Cause::Publish) => state.write_soon(),
                _ => {}
            }
        }
        Ok(reload)
    }

    /// Replaces what is live, with one store. The publisher's lock orders the stores.
    fn store(&self, publisher: &Publisher, is_changed: bool) {
        if is_changed {
            let (content, grace) = (publisher.content(), publisher.grace());
            self.change(|current| match content {
                Some(content) => current.with_content(content.clone(), grace.cloned()),
                None => current.without_content(),
            });
        }
    }

    /// Replaces the snapshot by one made from it; made again if another change was quicker.
    fn change(&self, next: impl Fn(&Snapshot) -> Snapshot) {
        self.current.rcu(|current| next(current));
    }

    /// Records news. It is written down later, without the publisher's lock.
    fn remember(&self, publisher: &mut Publisher, reload: &Reload, before: Option<RobotsTxt>, now: SystemTime) {
        self.record().update(publisher, reload, now);
        self.save(publisher);
        let entry = history_entry(publisher, reload, before, now);
        self.record().history.push(entry.clone());
        if let Some(state) = &self.state {
            state.append(entry);
        }
    }

    fn save(&self, publisher: &mut Publisher) -> bool {
        let unsaved = publisher.take_unsaved();
        if let (Some(durability), Some(state)) = (unsaved, &self.state) {
            state.save(publisher.versions().clone(), publisher.pending().cloned(), durability);
        }
        unsaved.is_some()
    }

    fn reading(&self) -> MutexGuard<'_, ()> {
        self.reading.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publisher(&self) -> MutexGuard<'_, Publisher> {
        // Only whole values are put in, whatever panicked meanwhile.
        self.publisher.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record(&self) -> MutexGuard<'_, ReloadRecord> {
        // A panic while it was held left it as it was before: it is only written with whole values.
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Switched for Site {
    fn set_switch_of_all(&self, enforcement: Enforcement) {
        self.change(|current| current.with_switches(|switches| switches.all = enforcement));
    }

    /// Waits for no reload, and for the disk only once the entry is in the history.
    fn record_switch(&self, enforcement: Enforcement, of: &str) {
        let outcome = match enforcement {
            Enforcement::On => ReloadOutcomeKind::SwitchedOn,
            Enforcement::Off => ReloadOutcomeKind::SwitchedOff,
        };
        let entry = HistoryEntry {
            when: self.clock.now(),
            cause: Cause::Switch,
            outcome,
            origin: self.origin.clone(),
            hash: self.live(),
            findings: [0; 3],
            effect: None,
            detail: format!("enforcement of {of} is switched {enforcement}"),
        };
        self.record().history.push(entry.clone());
        if let Some(state) = &self.state {
            state.append(entry);
            state.write();
        }
    }
}

impl AppendsParts for Site {
    fn append_again(&self) {
        let step = |publisher: &mut Publisher, now| {
            let source = self.appending.as_ref().and_then(Appending::source).ok_or(())?;
            let candidate = self.appended(publisher, Candidate::Version(source));
            Ok(publisher.consider(candidate, now))
        };
        // Nothing came from the source yet: what does will have the parts.
        let _: Result<Reload, ()> = self.publish(Cause::Append, step);
        self.notices.deliver();
    }
}

#[cfg(test)]
mod tests;
