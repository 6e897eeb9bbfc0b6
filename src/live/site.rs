//! A site and its locks. Only this module replaces the site's snapshot. The locks are:
//!
//! - `reading` is held while a caller's reload reads the source and publishes its content, or while
//!   a caller's text is published. `reading` is never held while a listener runs.
//! - `publisher` is held while a version is parsed, compiled and compared, and its snapshot is
//!   stored. `publisher` is never held while a source or the disk is accessed, or while a listener
//!   runs.
//! - `record` is held only while the record of reloads is read or updated.
//! - `switch` is held only while the site's kill switch is changed and written.
//! - `policy` is held only while the policy is changed and its mode is recorded.
//!
//! Code that reads the status, the history or a switch locks only `record`, so it does not wait for
//! the disk. Only the locks `reading`, `switch` and `KillSwitch::change_lock` are held while files
//! or the network are accessed. A thread waits for `reading`, `switch` or `change_lock` only while
//! another thread accesses the same file or source. So a source that does not respond delays only
//! reloads of its own site.

use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwap;

use super::compile_cache::CompileSettings;
use super::mishaps::MishapCounts;
use super::publisher::{Publisher, Remembered};
use super::reload::{Notices, ReloadListener};
use super::reload_record::{ReloadRecord, Restoration, history_entry};
use super::source::{Appending, AppendsParts, Durability, load_text};
use super::state::SiteState;
use super::switch::{Switched, Switches};
use super::{
    Appendix, Attribution, Candidate, Cause, Clock, CompileCache, Completion, Enforcement, Gate, HistoryEntry,
    KillSwitch, Loaded, Mutex, Rejection, RejectionKind, Reload, ReloadOutcome, ReloadOutcomeKind, Snapshot, Source,
    StateDir, Version, VersionHash, WhenMissing,
};
use crate::agent::Registry;
use crate::check;
use crate::policy::{Mode, Policy};
use crate::rules::{Reading, RobotsTxt};

pub(crate) struct Site {
    pub(super) current: ArcSwap<Snapshot>,
    pub(super) source: Arc<dyn Source>,
    pub(crate) origin: Arc<str>,
    pub(super) when_missing: WhenMissing,
    pub(crate) opened_by: Cause,
    pub(super) reading: Mutex<()>,
    pub(super) publisher: Mutex<Publisher>,
    pub(super) record: Mutex<ReloadRecord>,
    pub(super) switch: Mutex<()>,
    pub(super) policy: Mutex<()>,
    pub(super) notices: Notices,
    pub(super) state: Option<SiteState>,
    pub(super) appending: Option<Appending>,
    pub(crate) clock: Clock,
    pub(crate) counts: MishapCounts,
}

impl Site {
    /// Creates a site that has published nothing yet. `source` must create the site's source from a
    /// weak reference to the site. `origin` is the path or URL that the robots.txt comes from.
    pub(crate) fn new<S: Source + 'static>(
        settings: SiteSettings,
        origin: &Arc<str>,
        source: impl FnOnce(Weak<Self>) -> Arc<S>,
    ) -> Arc<Self> {
        let SiteSettings { mut policy, registry, check, gate, reading, max_age, grace, appendix, .. } = settings;
        policy.mode = settings.mode.unwrap_or(policy.mode);
        let (when_missing, opened_by) = (settings.when_missing, settings.opened_by);
        let (listeners, cache) = (settings.listeners, settings.compile_cache);
        let clock = settings.clock.beginning(cache.began());
        let state = settings.state.as_ref().map(|(state, name)| state.site(name));
        let now = clock.now();
        let mut remembered = state.as_ref().map(|state| state.load(now)).unwrap_or_default();
        let is_heir = settings.inherited.is_some();
        if let Some(before) = settings.inherited {
            inherit(&mut remembered, before, state.as_ref());
        }
        let Remembered { versions, pending, history, enforcement, was_live } = remembered;
        let snapshot = Snapshot {
            content: None,
            policy: policy.into(),
            grace: None,
            rules_in_grace: Arc::default(),
            grace_over: Duration::ZERO,
            switches: Switches { site: enforcement, ..Switches::default() },
            clock: clock.clone(),
            buckets: cache.join(settings.counted_as.as_deref()),
            max_age,
            when_missing,
            has_shared_policy: settings.has_shared_policy,
        };
        let compile = CompileSettings { reading, registry, check };
        // A placeholder for the last reload, until `start` records the first reload.
        let rejection = Rejection::new(RejectionKind::Missing, origin);
        let last = Reload::new(opened_by, origin, ReloadOutcome::Kept { rejection, live: None });
        let read = last.clone();
        let site = Arc::new_cyclic(|site| Self {
            current: ArcSwap::from_pointee(snapshot),
            source: source(site.clone()),
            origin: origin.clone(),
            when_missing,
            opened_by,
            reading: Mutex::default(),
            publisher: Mutex::new(Publisher::new(compile, cache, gate, grace, (versions, pending, was_live))),
            record: Mutex::new(ReloadRecord { last, read, since: now, history, pending: None, before: None }),
            switch: Mutex::default(),
            policy: Mutex::default(),
            notices: Notices::new(listeners),
            state,
            appending: appendix.clone().map(Appending::new),
            clock,
            counts: MishapCounts::new(origin),
        });
        if let Some(appendix) = &appendix {
            let site: Weak<Self> = Arc::downgrade(&site);
            appendix.join(site);
        }
        let state_switch = settings.state.as_ref().map(|(state, _)| state.switch());
        let shared = state_switch.into_iter().chain(&settings.switch).chain(&settings.additional_kill_switches);
        let mut shared_reason = None;
        for (place, switch) in (0..).zip(shared) {
            shared_reason = shared_reason.or(switch.join(place, &site));
        }
        let (known, found) = (site.record.lock().history.enforcement(), site.current.load().enforcement());
        // If the position of the switch differs from the position in the history, the switch was
        // changed while no process ran, or the file of the switch is damaged. Exception: if the
        // history was inherited from a site that is off, the difference is not recorded, because
        // this site is switched off later.
        if found != known && (found == Enforcement::Off || !is_heir) {
            let own = site.state.as_ref().filter(|_| found == Enforcement::Off).and_then(SiteState::unread_switch);
            let is_own = own.is_some() || site.current.load().switches.shared_off == 0;
            let (of, why) = (if is_own { "this site" } else { "every site" }, own.or(shared_reason));
            site.note_switch(found, of, why.as_deref()).into_iter().for_each(SiteState::write_soon);
        }
        site
    }

    pub(super) fn remembered(&self) -> Remembered {
        let publisher = self.publisher.lock();
        let (versions, pending) = (publisher.versions.clone(), publisher.pending.clone());
        let (history, enforcement) = (self.record.lock().history.clone(), self.current.load().switches.site);
        Remembered { versions, pending, history, enforcement, was_live: publisher.was_live }
    }

    /// Publishes the first version: the content of the source or, if that content cannot go live,
    /// the last accepted version.
    ///
    /// # Errors
    ///
    /// If neither the content of the source nor an accepted version can go live, and
    /// [`WhenMissing::Fail`] is set, returns an error with the reason.
    pub(crate) fn start(&self) -> Result<(), Rejection> {
        let candidate = self.source.load().into();
        let now = self.clock.now();
        let mut publisher = self.publisher.lock();
        let candidate = self.appended(&publisher, candidate);
        let (outcome, restored) = publisher.start(candidate, now);
        let restored = restored.map(|last| (last.hash(), Restoration::new(publisher.was_live, &last)));
        let is_shown = matches!(outcome, ReloadOutcome::Published { .. }) || restored.is_some();
        self.store(&publisher, is_shown);
        let behind = restored.as_ref().filter(|(_, restored)| restored.is_behind);
        let behind = behind.map(|(hash, restored)| format!("version {} is served; {}", hash.short(), restored.text));
        let reload = Reload {
            restored: restored.map(|(_, restored)| restored.text),
            ..Reload::new(self.opened_by, &self.origin, outcome)
        };
        let refusal = reload.refusal();
        if refusal.as_ref().is_some_and(|refusal| refusal.kind == RejectionKind::NotFetched) {
            // If the server had removed the robots.txt before the restart, requests for
            // `/robots.txt` are still forwarded to the application.
            self.store(&publisher, publisher.versions.is_absent);
            // Listeners are not notified, because nothing has been fetched yet.
            self.record.lock().update(&publisher, &reload, now);
            drop(publisher);
            if let Some(state) = &self.state {
                state.is_behind(behind);
            }
            return Ok(());
        }
        self.remember(&mut publisher, &reload, None, now, &Attribution::default());
        let has_failed = publisher.live().is_none() && self.when_missing == WhenMissing::Fail;
        if let Some(refusal) = refusal.filter(|_| has_failed) {
            return Err(refusal.with_opening_advice(self.state.is_some()));
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

    pub(crate) fn has_versions(&self) -> bool {
        self.publisher.lock().versions.current().is_some()
    }

    /// Returns the current content of the source. Blocks until the source has responded.
    pub(crate) fn load(&self) -> Loaded {
        self.source.load()
    }

    /// Reads the source and publishes its content. If the content is new, calls `settled`, which
    /// reports whether the file has been written completely. If the file is incomplete, the outcome
    /// is [`RejectionKind::Unstable`]. Only one reload of a site runs at a time, so older content
    /// never replaces newer content.
    pub(crate) fn reload(&self, settled: impl FnOnce(&Version) -> bool) -> Reload {
        let reload = {
            let _reading = self.reading.lock();
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

    /// Runs a reload on a new thread, for a caller that waits for the result. If the reload panics,
    /// the caller gets a rejection of the kind [`RejectionKind::Interrupted`].
    pub(crate) fn reload_on_thread(
        site: Arc<Self>,
        completion: Arc<Completion>,
        reload: impl Fn(&Self) -> Reload + Clone + Send + 'static,
    ) {
        let run = move |site: Arc<Self>| {
            let reloaded = catch_unwind(AssertUnwindSafe(|| reload(&site)));
            let reloaded = reloaded.unwrap_or_else(|_| Reload::interrupted(Cause::Request, &site.origin, site.live()));
            // `site` is dropped before the caller continues. So if the caller drops the last handle
            // afterwards, the site is saved and dropped on the caller's thread, not on this thread.
            drop(site);
            completion.fill(reloaded);
        };
        let job = {
            let (site, run) = (site.clone(), run.clone());
            move || run(site)
        };
        if std::thread::Builder::new().name("robots-reload".into()).spawn(job).is_err() {
            // If the system cannot create a thread, the reload runs on the caller's thread and
            // blocks it.
            run(site);
        }
    }

    /// Publishes a candidate if it can go live. Otherwise, keeps the live version and records why.
    pub(crate) fn offer(&self, cause: Cause, candidate: Candidate) -> Reload {
        let reload = self.consider(cause, candidate);
        self.notify();
        reload
    }

    /// Notifies the listeners of the reloads that they have not been notified of yet.
    pub(crate) fn notify(&self) {
        self.notices.deliver();
    }

    /// Publishes a caller's text. Rejects the text if the site's source is not inline text.
    pub(super) fn offer_text(&self, text: &[u8]) -> Reload {
        let Some(held) = self.source.text() else {
            let rejection = Rejection::new(RejectionKind::NotInline, &self.origin);
            return Reload::new(Cause::Publish, &self.origin, ReloadOutcome::Kept { rejection, live: self.live() });
        };
        let loaded = load_text(text, &self.origin);
        let reload = {
            let _reading = self.reading.lock();
            let reload = self.consider(Cause::Publish, loaded.clone().into());
            // A rejected text must not replace the text in the source.
            if let (Ok(version), false) = (loaded, matches!(reload.outcome, ReloadOutcome::Kept { .. })) {
                *held.lock() = version;
            }
            reload
        };
        self.notices.deliver();
        reload
    }

    /// Publishes a candidate like [`Site::offer`], but does not notify the listeners. The caller
    /// must notify the listeners after it has released its locks.
    pub(crate) fn consider(&self, cause: Cause, candidate: Candidate) -> Reload {
        let step = |publisher: &mut Publisher, now| -> Result<_, Infallible> {
            let candidate = self.appended(publisher, candidate);
            Ok(publisher.consider(candidate, now))
        };
        let Ok(reload) = self.publish(cause, &Attribution::default(), step);
        reload
    }

    /// Appends the lists of the site's [`Appendix`] to a candidate. The caller must hold the
    /// publisher's lock until the candidate is published. Otherwise, a change of a list in between
    /// would be lost.
    fn appended(&self, publisher: &Publisher, candidate: Candidate) -> Candidate {
        let Some(appending) = &self.appending else { return candidate };
        appending.append(candidate, publisher.before())
    }

    pub(crate) fn live(&self) -> Option<VersionHash> {
        self.current.load().content.as_ref().map(|content| content.hash())
    }

    /// Returns the hash of the source's content that the live version was created from, without the
    /// lists that the site's [`Appendix`] appended.
    pub(crate) fn live_source(&self) -> Option<VersionHash> {
        let live = self.live();
        match &self.appending {
            Some(appending) => appending.source_of(live?),
            None => live,
        }
    }

    /// Runs a step of the publisher, stores the new snapshot and records the outcome. The caller
    /// must notify the listeners.
    pub(super) fn publish<E>(
        &self,
        cause: Cause,
        by: &Attribution,
        step: impl FnOnce(&mut Publisher, SystemTime) -> Result<ReloadOutcome, E>,
    ) -> Result<Reload, E> {
        let mut publisher = self.publisher.lock();
        let now = self.clock.now();
        let before = publisher.content.as_ref().map(|content| content.robots().clone());
        let outcome = step(&mut publisher, now)?;
        let is_shown = matches!(outcome, ReloadOutcome::Published { .. } | ReloadOutcome::Absent { .. });
        self.store(&publisher, is_shown);
        let reload = Reload::new(cause, &self.origin, outcome);
        let is_notable = self.record.lock().is_notable(&reload);
        let is_saved = if is_notable {
            self.remember(&mut publisher, &reload, before, now, by);
            self.notices.push(reload.clone(), self.current.load_full());
            true
        } else {
            self.record.lock().update(&publisher, &reload, now);
            self.save(&mut publisher)
        };
        drop(publisher);
        if let Some(state) = &self.state {
            if !matches!(reload.outcome, ReloadOutcome::Kept { .. } | ReloadOutcome::Gated { .. }) {
                state.is_behind(None);
            }
            match cause {
                // The decision of an operator must be on disk when the call returns, because the
                // operator may rely on the saved decision.
                Cause::Accept | Cause::Rollback => state.write(),
                _ if is_saved || matches!(cause, Cause::Request | Cause::Publish) => state.write_soon(),
                _ => {}
            }
        }
        Ok(reload)
    }

    /// Replaces the live content with the publisher's content if `is_changed` is set. The caller
    /// must hold the publisher's lock, so that snapshots are stored in order.
    pub(super) fn store(&self, publisher: &Publisher, is_changed: bool) {
        if is_changed {
            let over = self.clock.elapsed().saturating_add(publisher.grace.rest(self.clock.now()));
            self.change(|next| {
                (next.content, next.grace) = (publisher.content.clone(), publisher.grace.running.clone());
                next.rules_in_grace = publisher.grace.rules_in_grace.clone();
                next.grace_over = over;
                if next.content.is_none() {
                    // The source has no robots.txt, so requests for `/robots.txt` are forwarded to
                    // the application.
                    next.when_missing = WhenMissing::Relay;
                }
            });
        }
    }

    /// Replaces the snapshot with a changed copy. Calls `change` again if another thread has
    /// replaced the snapshot in the meantime.
    pub(super) fn change(&self, change: impl Fn(&mut Snapshot)) {
        self.current.rcu(|current| {
            let mut next = Snapshot::clone(current);
            change(&mut next);
            next
        });
    }

    /// Records a reload in the status and in the history. The history entry is written to disk
    /// later, after the publisher is unlocked.
    fn remember(
        &self,
        publisher: &mut Publisher,
        reload: &Reload,
        before: Option<RobotsTxt>,
        now: SystemTime,
        by: &Attribution,
    ) {
        self.record.lock().update(publisher, reload, now);
        self.save(publisher);
        let entry = history_entry(publisher, reload, before, now, by);
        self.record.lock().history.push(entry.clone());
        if let Some(state) = &self.state {
            state.append(entry);
        }
    }

    /// Adds a history entry for an event that is not a reload, such as a change of the kill switch.
    /// The caller must write the entry to disk with the returned [`SiteState`].
    pub(super) fn note(&self, cause: Cause, outcome: ReloadOutcomeKind, detail: String) -> Option<&SiteState> {
        #[cfg(feature = "tracing")]
        tracing::info!(target: "tower_robots::reload", cause = cause.as_str(), "{}: {detail}", self.origin);
        let entry = HistoryEntry {
            when: self.clock.now(),
            cause,
            outcome,
            origin: self.origin.clone(),
            hash: self.live(),
            findings: [0; 3],
            effect: None,
            detail,
            by: Attribution::default(),
        };
        self.record.lock().history.push(entry.clone());
        let state = self.state.as_ref()?;
        state.append(entry);
        Some(state)
    }

    fn note_switch(&self, to: Enforcement, of: &str, why: Option<&str>) -> Option<&SiteState> {
        let outcome =
            if to == Enforcement::On { ReloadOutcomeKind::SwitchedOn } else { ReloadOutcomeKind::SwitchedOff };
        let why = why.map(|why| format!(": {why}")).unwrap_or_default();
        self.note(Cause::Switch, outcome, format!("enforcement of {of} is switched {to}{why}"))
    }

    fn save(&self, publisher: &mut Publisher) -> bool {
        let unsaved = publisher.take_unsaved();
        if let (Some(durability), Some(state)) = (unsaved, &self.state) {
            state.save(publisher.versions.clone(), publisher.pending.clone(), durability);
        }
        unsaved.is_some()
    }
}

impl Switched for Site {
    fn set_shared_switch(&self, place: u8, enforcement: Enforcement) {
        self.change(|next| next.switches.set_shared(place, enforcement));
    }

    /// Also writes the history entry to disk, on this thread.
    fn record_switch(&self, enforcement: Enforcement, of: &str, why: Option<&str>) {
        self.note_switch(enforcement, of, why).into_iter().for_each(SiteState::write);
    }
}

impl AppendsParts for Site {
    fn append_again(&self) {
        let step = |publisher: &mut Publisher, now| {
            let source = self.appending.as_ref().and_then(Appending::source).ok_or(())?;
            let candidate = self.appended(publisher, Candidate::Version(source));
            Ok(publisher.consider(candidate, now))
        };
        // An error means that the source has not provided any content yet. The lists are appended
        // later, to the first content from the source.
        let _: Result<Reload, ()> = self.publish(Cause::Append, &Attribution::default(), step);
        self.notices.deliver();
    }
}

/// Lets a site start from the saved state of another site. If the new site already has a history,
/// only entries that are later than its last entry are added. Times that differ by less than a
/// millisecond count as equal, because times are rounded on disk.
fn inherit(to: &mut Remembered, before: Remembered, state: Option<&SiteState>) {
    let last = to.history.iter().next_back().map(|entry| entry.when + Duration::from_millis(1));
    for entry in before.history.iter().filter(|entry| last.is_none_or(|last| last <= entry.when)) {
        to.history.push(entry.clone());
        state.iter().for_each(|state| state.append(entry.clone()));
    }
    (to.versions, to.pending, to.was_live) = (before.versions, before.pending, before.was_live);
    if let Some(state) = state {
        state.save(to.versions.clone(), to.pending.clone(), Durability::Machine);
        state.write_soon();
    }
}

/// Default maximum age of `/robots.txt` in caches.
pub(super) const DEFAULT_MAX_AGE: Duration = Duration::from_secs(3600);
pub(super) const MAX_AGE_LIMIT: Duration = Duration::from_secs(24 * 3600);

/// The settings of a site, for every kind of source. Only this type defines the defaults.
pub(crate) struct SiteSettings {
    pub(crate) policy: Policy,
    /// The mode that replaces the policy's mode, if any.
    pub(crate) mode: Option<Mode>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) check: check::Options,
    pub(crate) gate: Gate,
    pub(crate) reading: Reading,
    pub(crate) max_age: Duration,
    pub(crate) grace: Duration,
    pub(crate) when_missing: WhenMissing,
    /// Whether the site is one of many with the same policy ([`Snapshot::has_shared_policy`]).
    pub(crate) has_shared_policy: bool,
    pub(crate) opened_by: Cause,
    pub(crate) listeners: Vec<ReloadListener>,
    /// The state directory, and the name of the site in it.
    pub(crate) state: Option<(StateDir, String)>,
    /// The initial state of this site, inherited from a site with another name.
    pub(crate) inherited: Option<Remembered>,
    pub(crate) switch: Option<KillSwitch>,
    pub(crate) additional_kill_switches: Vec<KillSwitch>,
    pub(crate) compile_cache: CompileCache,
    /// The name of the site's inline text in messages.
    pub(crate) text_name: Option<Arc<str>>,
    /// Name of the site's rate limit buckets. Sites that use the same name share their buckets.
    /// `None` if the site has its own buckets.
    pub(crate) counted_as: Option<String>,
    pub(crate) clock: Clock,
    /// The lists that are appended to every version from the source.
    pub(crate) appendix: Option<Appendix>,
}

impl Default for SiteSettings {
    fn default() -> Self {
        Self {
            policy: Policy::default(),
            mode: None,
            registry: Registry::builtin().clone(),
            check: check::Options::default(),
            gate: Gate::open(),
            reading: Reading::default(),
            max_age: DEFAULT_MAX_AGE,
            grace: Duration::ZERO,
            when_missing: WhenMissing::default(),
            has_shared_policy: false,
            opened_by: Cause::Start,
            listeners: Vec::new(),
            state: None,
            inherited: None,
            switch: None,
            additional_kill_switches: Vec::new(),
            compile_cache: CompileCache::default(),
            text_name: None,
            counted_as: None,
            clock: Clock::default(),
            appendix: None,
        }
    }
}

#[cfg(test)]
mod tests;
