//! One site's robots.txt, live: the handle, and the state that it reports.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use arc_swap::Guard;
use robots_core::keyword_enum;

use super::mishaps::SERVED;
use super::publisher::Publisher;
use super::reload_record::effect;
use super::state::SiteState;
use super::switch::Switched;
use super::{
    Attribution, Cause, Enforcement, FetchStatus, Gate, HistoryEntry, NoSuchVersion, Pending, Problem, ProblemKind,
    Rejection, Reload, ReloadOutcome, ReloadOutcomeKind, Reloading, Remembered, Site, Snapshot, StateError,
    VersionHash, VersionHashPrefix,
};
use crate::agent::Registry;
use crate::check;
use crate::check::Report;
use crate::policy::{Mode, Policy};
use crate::rules::RobotsTxt;

/// One site's robots.txt, live: read, checked and compiled, and replaced while requests flow.
///
/// Cheap to clone; clones share everything. Dropping the last one stops the watching.
///
/// ```
/// use tower_robots::live::LiveRobots;
///
/// let live = LiveRobots::text("User-agent: *\nDisallow: /private/\n").open()?;
/// let snapshot = live.snapshot();
/// assert_eq!(snapshot.content.as_ref().map(|content| content.robots().groups().len()), Some(1));
/// # Ok::<(), tower_robots::live::Rejection>(())
/// ```
#[derive(Clone)]
pub struct LiveRobots {
    pub(crate) site: Arc<Site>,
}

/// Which site a handle is of. It does not keep the site; but no other site ever has the same identity, because its memory
/// is not given to another one meanwhile.
#[derive(Clone)]
pub(crate) struct SiteIdentity(Weak<Site>);

impl LiveRobots {
    /// The largest robots.txt that is read, in octets. Crawlers read 512,000.
    pub const MAX_FILE: u64 = super::rejection::MAX_FILE;

    /// How long others may cache `/robots.txt` unless a setting says otherwise.
    pub const DEFAULT_MAX_AGE: Duration = super::site::DEFAULT_MAX_AGE;

    /// How long others may cache `/robots.txt` at most (RFC 9309, section 2.4).
    pub const MAX_MAX_AGE: Duration = super::site::MAX_MAX_AGE;

    /// Entries that are kept of one site.
    pub const MAX_HISTORY: usize = super::reload::MAX_HISTORY;

    /// The snapshot that is live now. It is immutable.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.site.current.load_full()
    }

    /// Reads the live snapshot, without the cost of sharing it. `read` must not block: the version it sees cannot be
    /// freed meanwhile.
    pub fn with<R>(&self, read: impl FnOnce(&Snapshot) -> R) -> R {
        read(&self.site.current.load())
    }

    /// As [`LiveRobots::with`], for a local: the guard must not be kept, nor held across an await.
    pub(crate) fn load(&self) -> Guard<Arc<Snapshot>> {
        self.site.current.load()
    }

    /// Reads the source again now, on a thread of its own, or fetches it. It waits for a source that hangs, and for another
    /// such reload of this site; no other call does. The reload goes on without the future, which only gives its outcome and needs
    /// no runtime of its own.
    pub fn reload(&self) -> impl Future<Output = Reload> + Send + use<> {
        self.reloading()
    }

    /// [`LiveRobots::reload`] where there is no runtime: blocks until it is done.
    pub fn reload_blocking(&self) -> Reload {
        self.reloading().wait()
    }

    fn reloading(&self) -> Reloading {
        let (reloading, completion) = Reloading::new(&self.site.origin);
        self.site.source.reload(completion);
        reloading
    }

    /// Publishes a text that a database, an admin page or a test holds, in place of the one a site was opened with by
    /// [`LiveRobots::text`]. It is checked, gated, recorded and notified of like a file that changed, and a later
    /// [`LiveRobots::reload`] reads it. A text that is live already is fine.
    ///
    /// The application has to keep the text: after a restart the site begins with the text that it is opened with, so open
    /// it with the one that was published last.
    ///
    /// It is compiled on a thread of its own, which goes on without the future; the future only gives the outcome, and needs no runtime of
    /// its own. Of calls at the same time any may be the last: await one before the next.
    ///
    /// ```
    /// use tower_robots::live::{LiveRobots, RejectionKind};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), tower_robots::live::Rejection> {
    /// let live = LiveRobots::text("User-agent: *\nDisallow: /private/\n").open()?;
    /// live.publish("User-agent: *\nDisallow: /private/\nDisallow: /drafts/\n").await?;
    /// let rejection = live.publish("<!doctype html>").await.expect_err("a page");
    /// assert_eq!(rejection.kind, RejectionKind::Html);
    /// let body = live.snapshot().content.as_ref().map(|content| content.body().clone());
    /// assert!(body.is_some_and(|body| body.ends_with(b"/drafts/\n")), "what was published before stays");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Why the text is not live; the version before stays. A text that the gate refuses waits to be accepted
    /// ([`RejectionKind::Gated`](super::RejectionKind::Gated), with its hash in [`Rejection::pending`]). A site that reads a file or fetches takes none
    /// ([`RejectionKind::NotInline`](super::RejectionKind::NotInline)), because its source would bring the other text back.
    ///
    /// A text may take the rule away that an override is for, and it goes live all the same: an admin page shows
    /// [`Snapshot::overrides_without_rule`] after it, which is an event too.
    pub fn publish<T: AsRef<[u8]>>(&self, text: T) -> impl Future<Output = Result<Reload, Rejection>> + Send + use<T> {
        let (reloading, completion) = Reloading::new(&self.site.origin);
        let text: Arc<[u8]> = text.as_ref().into();
        Site::reload_apart(self.site.clone(), completion, move |site| site.offer_text(&text));
        async { reloading.await.into_result() }
    }

    /// [`LiveRobots::publish`] where there is no runtime: blocks until the text is compiled, which takes milliseconds, and until the
    /// listeners have run. Of calls at the same time, the last one that begins wins.
    ///
    /// # Errors
    ///
    /// As those of [`LiveRobots::publish`].
    pub fn publish_blocking(&self, text: impl AsRef<[u8]>) -> Result<Reload, Rejection> {
        self.site.offer_text(text.as_ref()).into_result()
    }

    /// Replaces the policy, exemptions and overrides included: by a [`Policy`], its builder, or a [`Mode`] for the default policy. The rules
    /// stay as they are. Another mode is recorded in the history: an operator looks for it when crawlers are suddenly refused.
    ///
    /// The policy ends with the process, even if a state directory keeps the kill switch: after a restart the site has the policy that it
    /// is opened with.
    pub fn set_policy(&self, policy: impl Into<Policy>) {
        let policy = policy.into();
        self.update_policy(|current| *current = policy);
    }

    /// Replaces the mode of the policy, once observing has shown what it would do; exemptions and overrides stay.
    ///
    /// ```
    /// use tower_robots::{LiveRobots, Mode, Policy};
    ///
    /// let policy = Policy::builder().exempt_networks(["10.0.0.0/8"])?;
    /// let live = LiveRobots::text("User-agent: GPTBot\nDisallow: /drafts/\n").policy(policy).open()?;
    /// live.set_mode(Mode::Refuse);
    /// assert_eq!(live.snapshot().policy.mode, Mode::Refuse);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_mode(&self, mode: Mode) {
        self.update_policy(|policy| policy.mode = mode);
    }

    /// Changes the policy in place. Other changes of the policy wait meanwhile, so `update` must not make one.
    ///
    /// ```
    /// use tower_robots::policy::Override;
    /// use tower_robots::{LiveRobots, Mode};
    ///
    /// let live = LiveRobots::text("User-agent: *\nDisallow: /drafts/\n").mode(Mode::Refuse).open()?;
    /// let spared = Override::agent("CCBot", Mode::Observe)?;
    /// live.update_policy(|policy| policy.overrides.push(spared));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn update_policy(&self, update: impl FnOnce(&mut Policy)) {
        let site = &self.site;
        let _updating = site.policy.lock();
        let before = Arc::clone(&site.current.load().policy);
        let mut policy = Policy::clone(&before);
        update(&mut policy);
        let policy = Arc::new(policy);
        site.change(|next| next.policy = policy.clone());
        if before.mode != policy.mode {
            let detail = format!("mode: {} → {}", before.mode, policy.mode);
            let state = site.note(Cause::Policy, ReloadOutcomeKind::ModeChanged, detail);
            state.into_iter().for_each(SiteState::write_soon);
        }
        #[cfg(feature = "tracing")]
        super::reload::trace_problems(Cause::Policy, &site.origin, &site.current.load());
    }

    /// Replaces the registry: the live version is compiled again for it, and later ones are, unless it is the same registry.
    pub fn set_registry(&self, registry: Arc<Registry>) {
        let mut publisher = self.site.publisher.lock();
        let is_changed = publisher.set_registry(registry, self.site.clock.now());
        self.site.store(&publisher, is_changed);
    }

    /// Replaces how versions are checked: the live version is checked again, unless the options are the same.
    pub fn set_check(&self, options: check::Options) {
        let mut publisher = self.site.publisher.lock();
        let is_changed = publisher.set_check(options, self.site.clock.now());
        self.site.store(&publisher, is_changed);
    }

    /// Replaces the gate for later versions. A version that waits is examined again when the source is read the next time,
    /// on [`LiveRobots::reload`] for example.
    pub fn set_gate(&self, gate: Gate) {
        self.site.publisher.lock().set_gate(gate);
    }

    /// Publishes the version that waits (see [`Status::pending`]): those very bytes, whatever the source holds by now. It
    /// blocks until they are compiled and written to the state directory.
    ///
    /// # Errors
    ///
    /// If nothing waits, or another version does; nothing changes then.
    pub fn accept(&self, hash: &VersionHashPrefix) -> Result<Reload, NoSuchVersion> {
        self.accept_by(hash, &Attribution::default())
    }

    /// As [`LiveRobots::accept`], with who decided it, and why, for the history.
    ///
    /// # Errors
    ///
    /// As those of [`LiveRobots::accept`].
    pub fn accept_by(&self, hash: &VersionHashPrefix, by: &Attribution) -> Result<Reload, NoSuchVersion> {
        let reload = self.site.publish(Cause::Accept, by, |publisher, now| publisher.accept(hash, now));
        self.site.notices.deliver();
        reload
    }

    /// Publishes the version that was accepted before the live one. The live one waits from now on, like a
    /// version that the gate refused: it does not come back by itself until the source has held something else. It blocks
    /// until the version is compiled and written to the state directory. The source is not read: if it holds what is live then,
    /// the other one waits until it is ([`LiveRobots::reload`]).
    ///
    /// # Errors
    ///
    /// If no version was accepted before.
    pub fn rollback(&self) -> Result<Reload, NoSuchVersion> {
        self.rollback_by(&Attribution::default())
    }

    /// As [`LiveRobots::rollback`], with who decided it, and why, for the history.
    ///
    /// # Errors
    ///
    /// As those of [`LiveRobots::rollback`].
    pub fn rollback_by(&self, by: &Attribution) -> Result<Reload, NoSuchVersion> {
        let reload = self.site.publish(Cause::Rollback, by, Publisher::roll_back);
        self.site.notices.deliver();
        reload
    }

    /// The version that [`LiveRobots::rollback`] would go back to, and every change that this would be for crawlers, in one sentence
    /// where the two are not too large to be compared for the history. Nothing is changed.
    ///
    /// # Errors
    ///
    /// As those of [`LiveRobots::rollback`].
    pub fn rollback_effect(&self) -> Result<(VersionHash, Option<String>), NoSuchVersion> {
        let publisher = self.site.publisher.lock();
        let before = publisher.versions.before().ok_or(NoSuchVersion::Before)?;
        let (hash, robots) = (before.hash(), RobotsTxt::from(before.version.bytes().clone()));
        let live = publisher.content.as_ref().map(|content| content.robots().clone());
        let registry = publisher.registry().clone();
        drop(publisher);
        Ok((hash, effect(live, Some(robots), &registry).map(|diff| format!("{diff:#}"))))
    }

    /// Turns enforcement of this site off, or on again, at once: it waits for no reload. Then it is written to the state
    /// directory, so that it holds after a restart.
    ///
    /// # Errors
    ///
    /// If it could not be written to the state directory: it is done, and will be forgotten when the process ends unless it
    /// can be written before, which is tried.
    pub fn set_enforcement(&self, enforcement: Enforcement) -> Result<(), StateError> {
        let site = &self.site;
        let _turning = site.switch.lock();
        let before = site.current.load().switches.site;
        site.change(|next| next.switches.site = enforcement);
        let written = site.state.as_ref().map_or(Ok(()), |state| state.set_enforcement(enforcement));
        if before != enforcement {
            site.record_switch(enforcement, "this site", None);
        }
        written
    }

    /// The live version and its date, the version that waits, and the last reload. It waits for no reload and no disk.
    pub fn status(&self) -> Status {
        let Site { current, source, record, counts, state, .. } = &*self.site;
        let snapshot = current.load();
        let record = record.lock();
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Status {
            live: snapshot.content.as_ref().map(|content| content.hash()),
            report: snapshot.content.as_ref().map(|content| content.report().clone()),
            last_reload: record.last.clone(),
            last_read: record.read.clone(),
            since: record.since,
            pending: record.pending.clone(),
            before: record.before,
            enforcement: snapshot.enforcement(),
            switch: snapshot.switches.site,
            grace_end: snapshot.grace_end(),
            grace_rules: snapshot.grace_rules(),
            faults: count(&counts.faults),
            callback_faults: count(&counts.callback_faults),
            stripped_targets: count(&counts.stripped_targets),
            nested_only: count(&counts.nested_only),
            unchecked_claims: count(&counts.unchecked_claims),
            without_address: count(&counts.without_address),
            unserved: Some(count(&counts.unserved)).filter(|count| *count != SERVED).unwrap_or_default(),
            shadowed_routes: count(&counts.shadowed_routes),
            state_problems: state.as_ref().map(SiteState::problems).unwrap_or_default(),
            watch_problem: source.watch_problem(),
            fetch: source.fetch_status(),
        }
    }

    /// Counts the version that is live here, or the lack of one, as live since another handle has it, if both have the same: for a handle
    /// that is opened in the place of another one, with other settings. [`Status::since`] is about that.
    pub fn count_age_from(&self, before: &Self) {
        let before = before.status();
        let mut record = self.site.record.lock();
        if self.site.live() == before.live {
            record.since = before.since;
        }
    }

    /// Reloads with a new outcome, and turns of the kill switch, the newest last: at most
    /// [`LiveRobots::MAX_HISTORY`](super::LiveRobots::MAX_HISTORY) entries, with a state directory those of earlier processes too.
    pub fn history(&self) -> Vec<HistoryEntry> {
        self.site.record.lock().history.iter().cloned().collect()
    }

    /// What is remembered of it, for one that goes on from it under another name. It waits for a version that is being compiled.
    pub fn remembered(&self) -> Remembered {
        self.site.remembered()
    }

    /// The identity of the site, the same for every handle of it.
    pub(crate) fn identity(&self) -> SiteIdentity {
        SiteIdentity(Arc::downgrade(&self.site))
    }

    /// Whether this is a handle of that site.
    pub(crate) fn is(&self, identity: &SiteIdentity) -> bool {
        std::ptr::eq(Arc::as_ptr(&self.site), identity.0.as_ptr())
    }

    pub(crate) fn of(site: Arc<Site>) -> Self {
        Self { site }
    }
}

robots_core::debug_as!(|it| LiveRobots { source: it.site.source, live: it.site.live() });

/// The state of a site: the live version, the last reload, and its problems.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Status {
    /// The version that is live, if any is.
    pub live: Option<VersionHash>,
    /// The findings of the check in the version that is live; [`Report::summary`] is its errors and warnings in one line.
    pub report: Option<Arc<Report>>,
    /// The last reload.
    pub last_reload: Reload,
    /// The last reload that was no decision of an operator: its outcome is about what the source holds, which may be neither live nor
    /// what waits after a rollback.
    pub last_read: Reload,
    /// Since when this version, or the lack of one, is live on this handle: of a version that an earlier process served too, since the site
    /// was opened, or as [`LiveRobots::count_age_from`] says. With a state directory [`LiveRobots::history`] has the reloads of earlier processes.
    pub since: SystemTime,
    /// The version that waits to be accepted, if one does, with the reasons.
    pub pending: Option<Pending>,
    /// The version that [`LiveRobots::rollback`](super::LiveRobots::rollback) would go back to, if there is one.
    pub before: Option<VersionHash>,
    /// Whether anything is enforced: off if the switch of the site or that of all sites is.
    pub enforcement: Enforcement,
    /// The site's own switch, whatever that of all sites says.
    pub switch: Enforcement,
    /// Until when some of what is disallowed is only observed; `None` where no grace runs.
    pub grace_end: Option<SystemTime>,
    /// Number of rules that only observed when the version went live ([`Snapshot::grace_rules`]).
    pub grace_rules: usize,
    /// How many requests passed because judging them ended in a panic of this crate, or of a callback that supplies
    /// the target, the address or the agent.
    pub faults: u64,
    /// How many times a callback panicked that runs once a request is decided, an observer or a refusal of the
    /// application's own. The decisions stood.
    pub callback_faults: u64,
    /// How many requests that a group applies to were judged by a target that is not the one the client sent: a
    /// `RobotsLayer::new` in a nested axum router gets targets without their prefix, so the rules for `/blog/drafts/` do not
    /// meet `/drafts/`. `RobotsLayer::for_axum08` is the layer for that place. 0 without the feature `axum08`, which knows.
    pub stripped_targets: u64,
    /// How many requests that a group applies to were judged by a `RobotsLayer::for_axum08` in a nested axum router, and by none outside.
    /// That layer does not get requests for `/robots.txt`, so the app enforces a file that it does not serve, unless another layer
    /// outside does: crawlers read 404 as "nothing is disallowed". A layer outside for another site counts as one where a group of that site's
    /// file is for the crawler. Put the layer on the outermost router (chapter `axum`).
    pub nested_only: u64,
    /// Number of requests that claimed to be a crawler's, and whose claim nothing checked although the policy depends on it: it tags or
    /// refuses impostors, or overrides and exemptions need an identity. The layer has neither a `Verifier` nor
    /// [`RobotsLayer::identity_from`](crate::layer::RobotsLayer::identity_from), or the latter returned `None` for the request. Impostors
    /// among them are not found. The first is logged as a warning.
    pub unchecked_claims: u64,
    /// Number of requests for which the policy needs the client's address, and none was found: networks are exempt, a delay applies, or a
    /// claim has to be checked. The layer has no [`RobotsLayer::address_from`](crate::layer::RobotsLayer::address_from), the function finds
    /// none, or a proxy of [`RobotsLayer::forwarded_for`](crate::layer::RobotsLayer::forwarded_for) named no client. The first is logged
    /// as a warning, with the rules that are not in force.
    pub without_address: u64,
    /// Number of requests of crawlers that were judged before the first request for `/robots.txt`; 0 once one has come. The hundredth is
    /// logged as a warning: the layer may be in a place that requests for `/robots.txt` do not reach, or another server answers them
    /// ([`RobotsLayer::robots_txt_served_elsewhere`](crate::layer::RobotsLayer::robots_txt_served_elsewhere)).
    pub unserved: u64,
    /// Number of requests for `/robots.txt` that the layer answered instead of a route of the application for that path. The first is
    /// logged as a warning. 0 without the feature `axum08`, which finds the route.
    pub shadowed_routes: u64,
    /// Everything that is wrong with the site's part of the state directory, the most pressing first.
    pub state_problems: Vec<Problem>,
    /// Why changes are found by polling only, where the file system reports no events.
    pub watch_problem: Option<String>,
    /// How fetching the robots.txt fares, where it is fetched.
    pub fetch: Option<FetchStatus>,
}

keyword_enum! {
    /// The condition of a site, in one word.
    Condition, "the condition of a site", {
        /// The version of the source is live, or what an operator decided last: the source may hold something else then
        /// ([`Status::last_read`]).
        Live = "live",
        /// The source holds nothing usable; the last good version is live.
        LastGood = "last-good",
        /// A version waits to be accepted; the one before it is live.
        Gated = "gated",
        /// Nothing is live, so nothing is enforced.
        None = "none",
    }
}

impl Status {
    /// The condition of the site, in one word.
    pub const fn condition(&self) -> Condition {
        match (&self.live, &self.pending, &self.last_reload.outcome) {
            (None, _, _) => Condition::None,
            (Some(_), _, ReloadOutcome::Kept { .. }) => Condition::LastGood,
            (Some(_), Some(_), _) => Condition::Gated,
            (Some(_), None, _) => Condition::Live,
        }
    }

    /// The problem of one kind with the site's part of the state directory, if there is one.
    pub fn state_problem(&self, kind: ProblemKind) -> Option<&str> {
        self.state_problems.iter().find(|problem| problem.kind == kind).map(|problem| problem.text.as_str())
    }
}
