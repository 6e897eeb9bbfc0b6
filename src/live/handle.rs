//! The handle of one site's live robots.txt, and the status of the site.

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

/// A handle to the live robots.txt of one site. The site reads a robots.txt from its source, checks
/// it and compiles it. If the robots.txt changes, the new version replaces the live version while
/// requests are served.
///
/// Cloning is cheap; all clones share the site. When the last clone is dropped, the source is no
/// longer watched.
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

/// Identifies a site by its memory address. The weak reference does not keep the site alive, but it
/// keeps the site's memory allocated, so no other site can have the same address.
#[derive(Clone)]
pub(crate) struct SiteIdentity(Weak<Site>);

impl LiveRobots {
    /// Maximum size of a robots.txt, in bytes. Crawlers read only the first 512,000 bytes.
    pub const MAX_FILE: u64 = super::rejection::MAX_FILE;

    /// Default maximum age of `/robots.txt` in caches.
    pub const DEFAULT_MAX_AGE: Duration = super::site::DEFAULT_MAX_AGE;

    /// Upper limit of the maximum age of `/robots.txt` in caches (RFC 9309, section 2.4).
    pub const MAX_AGE_LIMIT: Duration = super::site::MAX_AGE_LIMIT;

    /// Maximum number of history entries that are kept per site.
    pub const MAX_HISTORY: usize = super::reload::MAX_HISTORY;

    /// Returns the live snapshot, which is immutable.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.site.current.load_full()
    }

    /// Calls `read` with the live snapshot, without incrementing its reference count. `read` must
    /// not block, because a replaced snapshot cannot be freed while `read` runs.
    pub fn with<R>(&self, read: impl FnOnce(&Snapshot) -> R) -> R {
        read(&self.site.current.load())
    }

    /// Returns the live snapshot in a guard, without incrementing its reference count. Neither
    /// store the guard nor hold it across an await.
    pub(crate) fn load(&self) -> Guard<Arc<Snapshot>> {
        self.site.current.load()
    }

    /// Reads or fetches the source now, on a new thread. The reload waits until the source
    /// responds, and until other reloads of this site are done. Apart from reloads, no function of
    /// the handle waits for the source.
    ///
    /// If the returned future is dropped, the reload continues. Any executor can poll the future.
    pub fn reload(&self) -> impl Future<Output = Reload> + Send + use<> {
        self.reloading()
    }

    /// Reloads like [`LiveRobots::reload`], but blocks until the reload is done. Use this function
    /// in code without an async runtime.
    pub fn reload_blocking(&self) -> Reload {
        self.reloading().wait()
    }

    fn reloading(&self) -> Reloading {
        let (reloading, completion) = Reloading::new(&self.site.origin);
        self.site.source.reload(completion);
        reloading
    }

    /// Publishes text, for example from a database, an admin page or a test. The new text replaces
    /// the text that was passed to [`LiveRobots::text`]. The new text is checked, examined by the
    /// gate and recorded like a changed file, and listeners are notified. A later
    /// [`LiveRobots::reload`] uses the new text. It is not an error to publish the live text again.
    ///
    /// The text is not saved for the next start. The application must save the last published text
    /// itself, and open the site with it.
    ///
    /// The text is compiled on a new thread. If the returned future is dropped, publishing
    /// continues. Any executor can poll the future. If several calls run at the same time, any of
    /// their versions may be live in the end, so await each call before you start the next.
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
    /// assert!(body.is_some_and(|body| body.ends_with(b"/drafts/\n")), "the previous version stays");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if the text does not go live. The previous version then stays live. If the
    /// gate refuses the text, the text is pending until it is accepted. The error then has the kind
    /// [`RejectionKind::Gated`](super::RejectionKind::Gated), and [`Rejection::pending`] is the
    /// pending version. If the site's robots.txt is read from a file or fetched, every text is
    /// rejected ([`RejectionKind::NotInline`](super::RejectionKind::NotInline)), because the next
    /// reload would replace the text with the content of the source.
    ///
    /// The text is published even if an override of the policy refers to a rule that the text does
    /// not contain. An admin page should therefore show [`Snapshot::settings_without_effect`] after
    /// publishing. These settings are also logged.
    pub fn publish<T: AsRef<[u8]>>(&self, text: T) -> impl Future<Output = Result<Reload, Rejection>> + Send + use<T> {
        let (reloading, completion) = Reloading::new(&self.site.origin);
        let text: Arc<[u8]> = text.as_ref().into();
        Site::reload_on_thread(self.site.clone(), completion, move |site| site.offer_text(&text));
        async { reloading.await.into_result() }
    }

    /// Publishes like [`LiveRobots::publish`], but blocks until the text is compiled (some
    /// milliseconds) and the listeners have run. Use this function in code without an async
    /// runtime. If several calls run at the same time, their versions are published one after the
    /// other, in any order.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`LiveRobots::publish`].
    pub fn publish_blocking(&self, text: impl AsRef<[u8]>) -> Result<Reload, Rejection> {
        self.site.offer_text(text.as_ref()).into_result()
    }

    /// Replaces the whole policy, including exemptions, overrides and rate limits. To replace only
    /// the mode, use [`LiveRobots::set_mode`]; to change other settings, use
    /// [`LiveRobots::update_policy`]. The rules do not change. A change of the mode is recorded in
    /// the history, because operators read the history when crawlers are suddenly refused.
    ///
    /// The mode is replaced, too, even if [`LiveBuilder::mode`](crate::source::LiveBuilder::mode)
    /// set it. If the new mode is milder, a warning is logged.
    ///
    /// The policy is not saved in the state directory. After a restart, the site has the policy of
    /// its [`LiveBuilder`](crate::source::LiveBuilder).
    pub fn set_policy(&self, mut policy: Policy) {
        let mode = policy.mode;
        self.update_policy(|current| std::mem::swap(current, &mut policy));
        let before = policy.mode;
        if mode < before {
            #[cfg(feature = "tracing")]
            tracing::warn!(
                target: "tower_robots::reload",
                cause = Cause::Policy.as_str(),
                "{}: LiveRobots::set_policy has replaced the mode \"{before}\" with the milder mode \"{mode}\": to keep the \
                 mode, add PolicyBuilder::mode, or use LiveRobots::update_policy",
                self.site.origin
            );
        }
    }

    /// Replaces the mode of the policy, for example to enforce the rules after observing their
    /// effect. Exemptions and overrides do not change.
    ///
    /// ```
    /// use tower_robots::{LiveRobots, Mode, Policy};
    ///
    /// let policy = Policy::builder().exempt_networks(["10.0.0.0/8"])?;
    /// let live = LiveRobots::text("User-agent: GPTBot\nDisallow: /drafts/\n")
    ///     .policy(policy)
    ///     .open()?;
    /// live.set_mode(Mode::Refuse);
    /// assert_eq!(live.snapshot().policy.mode, Mode::Refuse);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_mode(&self, mode: Mode) {
        self.update_policy(|policy| policy.mode = mode);
    }

    /// Changes the policy in place. To change settings that are not fields of [`Policy`], convert
    /// the policy into a [`PolicyBuilder`](crate::policy::PolicyBuilder).
    ///
    /// While `update` runs, every other call that changes the policy of this site waits. If
    /// `update` itself calls such a function, the call never returns.
    ///
    /// ```
    /// use tower_robots::policy::{Override, PolicyBuilder, RateMode};
    /// use tower_robots::{LiveRobots, Mode};
    ///
    /// let live = LiveRobots::text("User-agent: *\nDisallow: /drafts/\nCrawl-delay: 2\n")
    ///     .mode(Mode::Refuse)
    ///     .open()?;
    /// let spared = Override::agent("CCBot", Mode::Observe)?;
    /// live.update_policy(|policy| policy.overrides.push(spared));
    /// live.update_policy(|policy| {
    ///     *policy = PolicyBuilder::from(policy.clone()).rate(RateMode::Refuse).build();
    /// });
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

    /// Replaces the registry. If `registry` is not the same `Arc` as before, the live version is
    /// compiled again. Later versions are always compiled with the new registry.
    pub fn set_registry(&self, registry: Arc<Registry>) {
        let mut publisher = self.site.publisher.lock();
        let is_changed = publisher.set_registry(registry, self.site.clock.now());
        self.site.store(&publisher, is_changed);
    }

    /// Replaces the options of the check. If the new options differ from the old ones, the live
    /// version is checked again.
    pub fn set_check(&self, options: check::Options) {
        let mut publisher = self.site.publisher.lock();
        let is_changed = publisher.set_check(options, self.site.clock.now());
        self.site.store(&publisher, is_changed);
    }

    /// Replaces the gate. The new gate examines later versions. If the next read of the source, for
    /// example by [`LiveRobots::reload`], finds the pending version again, the new gate examines
    /// this version, unless it was rolled back.
    pub fn set_gate(&self, gate: Gate) {
        self.site.publisher.lock().set_gate(gate);
    }

    /// Publishes the pending version ([`Status::pending`]) if it has this hash, even if the source
    /// has changed in the meantime. Blocks until the version is compiled and written to the state
    /// directory.
    ///
    /// # Errors
    ///
    /// Returns an error if no version is pending, or if the pending version has another hash. In
    /// these cases, nothing changes.
    pub fn accept(&self, hash: &VersionHashPrefix) -> Result<Reload, NoSuchVersion> {
        self.accept_by(hash, &Attribution::default())
    }

    /// Accepts like [`LiveRobots::accept`], and records in the history who accepted the version and
    /// why. `Attribution` is in the module `internals`, which is not stable.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`LiveRobots::accept`].
    pub fn accept_by(&self, hash: &VersionHashPrefix, by: &Attribution) -> Result<Reload, NoSuchVersion> {
        let reload = self.site.publish(Cause::Accept, by, |publisher, now| publisher.accept(hash, now));
        self.site.notices.deliver();
        reload
    }

    /// Publishes the version that was accepted before the live one. The version that was live
    /// becomes pending, like a version that the gate refused. The rolled-back version goes live
    /// again only if an operator accepts it, or if the source changes to other content and then
    /// back.
    ///
    /// Blocks until the version is compiled and written to the state directory. The source is not
    /// read. If the source already contains the version that the rollback publishes, the
    /// rolled-back version is pending only until the source is read next ([`LiveRobots::reload`]).
    ///
    /// # Errors
    ///
    /// Returns an error if no earlier accepted version is known.
    pub fn rollback(&self) -> Result<Reload, NoSuchVersion> {
        self.rollback_by(&Attribution::default())
    }

    /// Rolls back like [`LiveRobots::rollback`], and records in the history who rolled back and
    /// why.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`LiveRobots::rollback`].
    pub fn rollback_by(&self, by: &Attribution) -> Result<Reload, NoSuchVersion> {
        let reload = self.site.publish(Cause::Rollback, by, Publisher::roll_back);
        self.site.notices.deliver();
        reload
    }

    /// Returns the hash of the version that [`LiveRobots::rollback`] would publish, and a sentence
    /// that describes the effects of the rollback on crawlers. The sentence is `None` if no version
    /// is live, or if the two versions are too large to be compared. Changes nothing.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`LiveRobots::rollback`].
    pub fn rollback_effect(&self) -> Result<(VersionHash, Option<String>), NoSuchVersion> {
        let publisher = self.site.publisher.lock();
        let before = publisher.versions.before().ok_or(NoSuchVersion::Before)?;
        let (hash, robots) = (before.hash(), RobotsTxt::from(before.version.bytes().clone()));
        let live = publisher.content.as_ref().map(|content| content.robots().clone());
        let registry = publisher.registry().clone();
        drop(publisher);
        Ok((hash, effect(live, Some(robots), &registry).map(|diff| format!("{diff:#}"))))
    }

    /// Switches enforcement of this site on or off, immediately and without waiting for a reload.
    /// Then saves the change in the state directory, so that it survives a restart.
    ///
    /// # Errors
    ///
    /// Returns an error if the change could not be written to the state directory. Enforcement is
    /// switched nevertheless, and the write is retried. If the process ends before a write
    /// succeeds, the change is lost.
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

    /// Returns the status of the site. Does not wait for a reload or for the disk.
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
            kept_fields: count(&counts.kept_fields),
            state_problems: state.as_ref().map(SiteState::problems).unwrap_or_default(),
            watch_problem: source.watch_problem(),
            fetch: source.fetch_status(),
        }
    }

    /// Copies [`Status::since`] from the handle `before` if both sites have the same live version,
    /// or if neither site has a live version. Use this function for a handle that replaces `before`
    /// because settings have changed.
    pub fn count_age_from(&self, before: &Self) {
        let before = before.status();
        let mut record = self.site.record.lock();
        if self.site.live() == before.live {
            record.since = before.since;
        }
    }

    /// Returns the history: reloads, and changes of the kill switch and of the mode. A reload that
    /// repeats the outcome of the previous reload is included only if the application requested it.
    /// The history contains at most [`LiveRobots::MAX_HISTORY`](super::LiveRobots::MAX_HISTORY)
    /// entries, the newest last. With a state directory, the history includes entries of earlier
    /// processes.
    pub fn history(&self) -> Vec<HistoryEntry> {
        self.site.record.lock().history.iter().cloned().collect()
    }

    /// Returns the saved state of this site: versions, history and kill switch. Another site can
    /// start from this state under a new name. Waits while a version is being compiled.
    pub fn remembered(&self) -> Remembered {
        self.site.remembered()
    }

    pub(crate) fn identity(&self) -> SiteIdentity {
        SiteIdentity(Arc::downgrade(&self.site))
    }

    pub(crate) fn is(&self, identity: &SiteIdentity) -> bool {
        std::ptr::eq(Arc::as_ptr(&self.site), identity.0.as_ptr())
    }

    pub(crate) fn of(site: Arc<Site>) -> Self {
        Self { site }
    }
}

robots_core::debug_as!(|it| LiveRobots { source: it.site.source, live: it.site.live() });

/// The status of a site: the live version, the last reload, and the site's problems.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Status {
    /// The live version; `None` if there is none.
    pub live: Option<VersionHash>,
    /// The check report of the live version; [`Report::summary`] summarises its errors and warnings
    /// in one line.
    pub report: Option<Arc<Report>>,
    /// The last reload, regardless of its cause.
    pub last_reload: Reload,
    /// The last reload that read the source; its outcome shows what the source contains. A reload
    /// for an operator's decision (accept or roll back) does not read the source. After a rollback,
    /// the source may contain neither the live nor the pending version.
    pub last_read: Reload,
    /// When the live version went live or, if no version is live, when the last live version was
    /// removed. If an earlier process already served the live version, `since` is the time when the
    /// site was opened, unless [`LiveRobots::count_age_from`] has changed it. With a state
    /// directory, [`LiveRobots::history`] contains the reloads of earlier processes.
    pub since: SystemTime,
    /// The pending version, which an operator can accept, and the reasons why it is not live;
    /// `None` if no version is pending.
    pub pending: Option<Pending>,
    /// The version that [`LiveRobots::rollback`](super::LiveRobots::rollback) would publish; `None`
    /// if there is none.
    pub before: Option<VersionHash>,
    /// Whether the rules are enforced. `Off` if any kill switch is set to `Off`: the site's own,
    /// the state directory's or another shared one.
    pub enforcement: Enforcement,
    /// The position of the site's own kill switch, regardless of any shared kill switch.
    pub switch: Enforcement,
    /// End of the grace period, during which new restrictions are observed but not enforced; `None`
    /// if no grace period is running.
    pub grace_end: Option<SystemTime>,
    /// Number of rules that were in their grace period when the live version went live
    /// ([`Snapshot::grace_rules`]).
    pub grace_rules: usize,
    /// Number of requests that passed because judging them caused a panic, in this crate or in a
    /// callback of the application that runs before the decision.
    pub faults: u64,
    /// Number of panics in callbacks that run after the decision: observers, and the application's
    /// own function for refusals. Such a panic does not change the decision.
    pub callback_faults: u64,
    /// Number of crawler requests whose target lacked a prefix, because a nested axum router had
    /// removed it. Only requests of crawlers with a group in the robots.txt are counted. A layer
    /// from `RobotsLayer::new` in such a router sees `/drafts/` if the client requested
    /// `/blog/drafts/`, so rules for `/blog/drafts/` do not match. Use `RobotsLayer::for_axum08` in
    /// nested routers. Always 0 without the feature `axum08`, because only this feature detects
    /// such requests.
    pub stripped_targets: u64,
    /// Number of requests that were judged only by a `RobotsLayer::for_axum08` in a nested axum
    /// router. Only requests of crawlers with a group in the robots.txt are counted. A layer in a
    /// nested router does not receive requests for `/robots.txt`. If no outer layer answers them,
    /// crawlers get 404, which means "nothing is disallowed", while the app enforces rules that it
    /// does not publish. A request is not counted if an outer layer for another site judged it and
    /// a group of the other site's file applies to the crawler. Put the layer on the outermost
    /// router (`docs/src/howto/library.md`).
    pub nested_only: u64,
    /// Number of requests that claimed to be from a crawler, and whose claim was not checked
    /// although the policy depends on this check: the policy tags or refuses impostors, or an
    /// override or exemption requires a verified identity. If the layer has no `Verifier`, a
    /// request is checked only if
    /// [`RobotsLayer::identity_from`](crate::layer::RobotsLayer::identity_from) returns an identity
    /// for the request. Impostors among the unchecked requests are not detected. The first such
    /// request is logged as a warning.
    pub unchecked_claims: u64,
    /// Number of requests without a client address, although the policy needs one. The policy needs
    /// the address if networks are exempt, if a crawl delay applies, or if the sender has to be
    /// checked. The address is missing if the layer has no
    /// [`RobotsLayer::address_from`](crate::layer::RobotsLayer::address_from), if that function
    /// returned `None`, or if a proxy that is listed in
    /// [`RobotsLayer::forwarded_for`](crate::layer::RobotsLayer::forwarded_for) did not forward the
    /// client's address. Requests through a proxy that is not listed in `forwarded_for` are also
    /// counted if the proxy has a private, link-local or loopback address and forwards the client's
    /// address. The first counted request is logged as a warning that lists the rules that are not
    /// enforced.
    pub without_address: u64,
    /// Number of requests of crawlers that were judged before the first request for `/robots.txt`;
    /// 0 after `/robots.txt` has been requested. A warning is logged at the hundredth such request
    /// of a crawler. The warning means that requests for `/robots.txt` do not reach the layer, or
    /// that another server answers them
    /// ([`RobotsLayer::robots_txt_served_elsewhere`](crate::layer::RobotsLayer::robots_txt_served_elsewhere)).
    pub unserved: u64,
    /// Number of requests for `/robots.txt` that the layer answered although the application has a
    /// route for them. The first such request is logged as a warning. Always 0 without the feature
    /// `axum08`, because only this feature can find out whether the application has such a route.
    pub shadowed_routes: u64,
    /// Number of response header fields that the layer did not add, because the application's
    /// responses already had them ([`Signals`](crate::layer::Signals)).
    pub kept_fields: u64,
    /// All problems with saving the site's state, the most urgent first.
    pub state_problems: Vec<Problem>,
    /// Why the file is polled for changes, or is not watched at all (without the feature `watch`);
    /// `None` if the file system reports changes, or if the source is not a file.
    pub watch_problem: Option<String>,
    /// The status of the fetches of the robots.txt; `None` if the robots.txt does not come from a
    /// server.
    pub fetch: Option<FetchStatus>,
}

keyword_enum! {
    /// The condition of a site, in one word.
    Condition, "the condition of a site", {
        /// The live version is what the source contained when it was last read, or a version that
        /// an operator has accepted or rolled back to since then. In the second case, the source
        /// may contain something else ([`Status::last_read`]).
        Live = "live",
        /// The source has no usable content; the last good version is live.
        LastGood = "last-good",
        /// A version is pending; an accepted version is live.
        Gated = "gated",
        /// No version is live, so nothing is enforced.
        None = "none",
    }
}

impl Status {
    /// Returns the condition of the site, in one word.
    pub const fn condition(&self) -> Condition {
        match (&self.live, &self.pending, &self.last_reload.outcome) {
            (None, _, _) => Condition::None,
            (Some(_), _, ReloadOutcome::Kept { .. }) => Condition::LastGood,
            (Some(_), Some(_), _) => Condition::Gated,
            (Some(_), None, _) => Condition::Live,
        }
    }

    /// Returns the description of the problem with this kind, if
    /// [`state_problems`](Self::state_problems) contains one.
    pub fn state_problem(&self, kind: ProblemKind) -> Option<&str> {
        self.state_problems.iter().find(|problem| problem.kind == kind).map(|problem| problem.text.as_str())
    }
}
