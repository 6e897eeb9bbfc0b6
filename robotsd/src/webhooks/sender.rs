//! Sends the requests of hooks, and records the last version that each hook has announced.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::timeout;
use tower_robots::live::VersionHash;

use super::attempt::{AttemptOutcome, RetryPlan, attempt};
use super::lane::Lane;
use super::settings::{HookSettings, Notice};
use super::turns::{TurnReport, Turns, turn_id};
use crate::date::rfc3339;
use crate::files;
use crate::report::PublishHookReport;

/// Delay before a failed notification is sent again, if its event still lasts.
const FAILURE_PAUSE: Duration = Duration::from_secs(3600);

/// Maximum time that shutdown waits for requests in progress.
const FINISH_TIMEOUT: Duration = Duration::from_secs(2);

pub(crate) struct PublishHooks {
    pub(crate) replica: String,
    /// Hooks by site name. The hooks of `[[notify]]` have an empty site name.
    settings: Mutex<HashMap<String, SiteHooks>>,
    jobs: Mutex<HashMap<JobKey, Job>>,
    lane: Lane,
    urgent: Lane,
    /// Listening addresses of this process's admin interface. Hooks must not send requests to them.
    admin: Mutex<Vec<SocketAddr>>,
    record: Option<DeliveryRecord>,
    retry: RetryPlan,
    /// Whether the process is ending. When the process is ending, failed requests are not retried.
    pub(super) is_ending: AtomicBool,
    /// Notified when a job has nothing more to send.
    rested: Notify,
    on_event: Box<dyn Fn(&HookEvent<'_>) + Send + Sync>,
    /// Decides which of several processes sends a notification; `None` if this process sends all of
    /// its notifications itself.
    pub(super) turns: Option<Arc<dyn Turns>>,
}

/// Key of a job: the subject of the notices, and the fingerprint of the hook.
pub(super) type JobKey = (String, String);

#[derive(Clone, Debug, Default)]
pub(crate) struct SiteHooks {
    pub(crate) hosts: Vec<String>,
    pub(crate) hooks: Vec<Arc<HookSettings>>,
}

/// The requests of one hook about one subject, such as a robots.txt.
pub(super) struct Job {
    waiting: Option<(Arc<HookSettings>, Notice)>,
    is_running: bool,
    /// Notified when a newer notice waits, when the reported event is over, or when the process
    /// ends.
    woken: Arc<Notify>,
    /// The last announcement that this job had to send, even if it could not send it.
    asked: Option<String>,
    /// ID of the notification, which is the same in all coordinating processes.
    pub(super) turn_id: Option<String>,
    pub(super) status: HookStatus,
}

pub(super) struct Delivery {
    pub(super) key: JobKey,
    pub(super) hook: Arc<HookSettings>,
    pub(super) notice: Notice,
    pub(super) woken: Arc<Notify>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct HookStatus {
    pub(crate) report: PublishHookReport,
    /// Time when the hook began to send its last notice.
    since: Option<SystemTime>,
    /// Number of successful requests, and number of notices that were given up, both since the
    /// start.
    pub(crate) counts: (u64, u64),
}

#[derive(Debug)]
pub(crate) struct HookEvent<'a> {
    pub(crate) notice: &'a Notice,
    pub(crate) kind: HookEventKind,
    /// Status of the response, if the request was successful.
    pub(crate) status: Option<u16>,
    /// Message for operators. The message never contains the path of the URL, because the path may
    /// contain a secret.
    pub(crate) message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HookEventKind {
    Delivered,
    /// The notice will be sent again: soon if the request failed, or after a restart if the
    /// delivery could not be recorded.
    Repeated,
    GivenUp,
}

impl PublishHooks {
    pub(crate) fn new(
        replica: String,
        folder: Option<PathBuf>,
        retry: RetryPlan,
        turns: Option<Arc<dyn Turns>>,
        on_event: impl Fn(&HookEvent<'_>) + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            replica,
            settings: Mutex::default(),
            jobs: Mutex::default(),
            lane: Lane::of_files(),
            urgent: Lane::urgent(),
            admin: Mutex::default(),
            record: folder.map(DeliveryRecord),
            retry,
            is_ending: AtomicBool::new(false),
            rested: Notify::new(),
            on_event: Box::new(on_event),
            turns,
        })
    }

    /// Replaces the hooks of every site. The requests of removed hooks are not retried.
    pub(crate) fn set(&self, settings: impl IntoIterator<Item = (String, SiteHooks)>) {
        *self.settings.lock() = settings.into_iter().filter(|(_, site)| !site.hooks.is_empty()).collect();
        self.jobs.lock().values().for_each(|job| job.woken.notify_one());
        [&self.lane, &self.urgent].iter().for_each(|lane| lane.tidy());
    }

    /// Sets the listening addresses of this process's admin interface.
    pub(crate) fn set_admin_addresses(&self, admin: Vec<SocketAddr>) {
        *self.admin.lock() = admin;
    }

    pub(crate) fn hosts(&self, site: &str) -> Vec<String> {
        self.settings.lock().get(site).map(|site| site.hosts.clone()).unwrap_or_default()
    }

    /// Starts one request for each hook of the site, and does not wait for the requests.
    pub(crate) fn published(self: &Arc<Self>, notice: &Notice) {
        for hook in self.hooks(&notice.site) {
            self.send(hook, notice);
        }
    }

    /// Starts one request for each hook of the site. Skips each hook that announced the same
    /// version last, even if this was before a restart. Blocks while it reads the state directory.
    pub(crate) fn serves(self: &Arc<Self>, notice: &Notice) {
        self.hooks(&notice.site).into_iter().for_each(|hook| self.send_once(hook, notice));
    }

    /// Sends the notices that `[[notify]]` selects and that have not been sent yet. A notice is
    /// sent again if its event ends and then occurs again, or if the `mark` of the notice changes.
    /// If an event ends before its notice was sent, the notice is dropped.
    pub(crate) fn notify(self: &Arc<Self>, notices: &[Notice]) {
        for hook in self.hooks("") {
            let wanted = notices.iter().filter(|notice| notice.event.is_some_and(|event| hook.on.contains(&event)));
            wanted.for_each(|notice| self.send_once(Arc::clone(&hook), notice));
        }
        let current: HashSet<String> = notices.iter().map(Notice::subject).collect();
        let mut over = Vec::new();
        self.jobs.lock().retain(|key, job| {
            let is_over = key.0.contains('\n') && !current.contains(&key.0);
            if is_over && job.asked.take().is_some() {
                over.push(key.clone());
                self.report_turn(job.turn_id.take(), TurnReport::Over);
                job.woken.notify_one();
            }
            !is_over || job.is_running
        });
        over.iter().for_each(|key| self.record.iter().for_each(|record| record.forget(key)));
    }

    fn send_once(self: &Arc<Self>, hook: Arc<HookSettings>, notice: &Notice) {
        let (key, announcement) = ((notice.subject(), hook.fingerprint()), hook.announcement(notice));
        let (asked, is_due_again) = match self.jobs.lock().get(&key) {
            Some(job) => (job.asked.clone(), notice.event.is_some() && job.status.is_retry_due()),
            None => (None, false),
        };
        let asked = asked.or_else(|| self.record.as_ref().and_then(|record| record.read(&key)));
        let is_sent = asked.map_or(!notice.is_news, |asked| asked == announcement);
        if is_sent && !is_due_again {
            let turn_id = turn_id(&key.1, notice);
            let job = || Job { turn_id: Some(turn_id), ..Job::new(&hook) };
            self.jobs.lock().entry(key).or_insert_with(job).asked = Some(announcement);
        } else {
            self.send(hook, notice);
        }
    }

    /// Returns the state of each `[[notify]]` hook. The state of a hook is the state of its latest
    /// failed notice or, if no notice has failed, of its latest notice.
    pub(crate) fn notify_status(&self) -> Vec<HookStatus> {
        let hooks = self.hooks("");
        let jobs = self.jobs.lock();
        let status = |hook: &Arc<HookSettings>| {
            let own = hook.fingerprint();
            let of_hook = jobs.iter().filter(|(key, _)| key.1 == own).map(|(_, job)| &job.status);
            let last = of_hook.max_by_key(|job| (job.report.state == "failed", job.since));
            last.cloned().unwrap_or_else(|| Job::new(hook).status)
        };
        hooks.iter().map(status).collect()
    }

    /// Returns the state of each hook of a robots.txt, in the order of the config. For
    /// `[[notify]]`, both names are empty, and the counts include all events.
    pub(crate) fn status(&self, site: &str, name: &str) -> Vec<HookStatus> {
        let hooks = self.hooks(site);
        let jobs = self.jobs.lock();
        let status = |hook: &Arc<HookSettings>| match jobs.get(&(name.to_owned(), hook.fingerprint())) {
            Some(job) => job.status.clone(),
            None => Job::new(hook).status,
        };
        hooks.iter().map(status).collect()
    }

    /// Waits briefly for requests in progress. Requests that wait for another attempt are not sent
    /// before the next start.
    pub(crate) async fn finish(&self) {
        self.is_ending.store(true, Ordering::Release);
        self.jobs.lock().values().for_each(|job| job.woken.notify_one());
        let _ = timeout(FINISH_TIMEOUT, async {
            loop {
                let rested = self.rested.notified();
                if !self.jobs.lock().values().any(|job| job.is_running) {
                    return;
                }
                rested.await;
            }
        })
        .await;
    }

    fn hooks(&self, site: &str) -> Vec<Arc<HookSettings>> {
        self.settings.lock().get(site).map(|site| site.hooks.clone()).unwrap_or_default()
    }

    fn send(self: &Arc<Self>, hook: Arc<HookSettings>, notice: &Notice) {
        let key = (notice.subject(), hook.fingerprint());
        if notice.event.is_none() {
            self.forget_other(&key, &hook.announcement(notice));
        }
        let is_nameless = hook.needs_host() && notice.hosts.is_empty();
        let is_idle = {
            let mut jobs = self.jobs.lock();
            let job = jobs.entry(key.clone()).or_insert_with(|| Job::new(&hook));
            job.asked = Some(hook.announcement(notice));
            if is_nameless {
                // The robots.txt is for a pattern of hosts, so there is no single URL whose cached
                // copy could be dropped.
                job.status.begin(&hook, notice);
                let why = "no request is sent: the body contains a placeholder for the host, but this robots.txt is \
                    for a pattern of hosts";
                job.status.rest("idle", Some(why.to_owned()));
                return;
            }
            job.waiting = Some((Arc::clone(&hook), notice.clone()));
            job.woken.notify_one();
            !std::mem::replace(&mut job.is_running, true)
        };
        if !is_idle {
            return;
        }
        match self.lane(notice).runtime() {
            Ok(runtime) => drop(runtime.spawn(run(Arc::clone(self), key))),
            Err(error) => {
                let why = format!("no thread can be started: {error}");
                self.update(&key, |job| {
                    (job.is_running, job.waiting) = (false, None);
                    job.status.gave_up(&why);
                });
                self.report(&hook, notice, HookEventKind::GivenUp, None, &format!("{why}: {}", notice.lost()));
            }
        }
    }

    /// Removes the record of another version. Otherwise, if the requests about this version failed,
    /// the other version would not be announced when it goes live again after a restart.
    fn forget_other(&self, key: &JobKey, announcement: &str) {
        let Some(record) = &self.record else { return };
        if record.read(key).is_some_and(|recorded| recorded != announcement) {
            record.forget(key);
        }
    }

    const fn lane(&self, notice: &Notice) -> &Lane {
        if notice.is_urgent() { &self.urgent } else { &self.lane }
    }

    pub(super) fn update(&self, key: &JobKey, change: impl FnOnce(&mut Job)) {
        if let Some(job) = self.jobs.lock().get_mut(key) {
            change(job);
        }
    }

    fn turn_id(&self, key: &JobKey) -> Option<String> {
        self.jobs.lock().get(key).and_then(|job| job.turn_id.clone())
    }

    /// Records a delivered notice, unless its event has ended or another version has gone live
    /// since the request was sent. In these cases, a record would suppress a later notice.
    pub(super) fn record(&self, Delivery { key, hook, notice, .. }: &Delivery) -> io::Result<()> {
        let (Some(record), announcement) = (&self.record, hook.announcement(notice)) else { return Ok(()) };
        record.write(key, &announcement)?;
        let is_past = |job: &Job| match &job.asked {
            None => true,
            Some(asked) => notice.event.is_none() && *asked != announcement,
        };
        // This check must come after writing, because `notify` and `send` remove the record only
        // once.
        if self.jobs.lock().get(key).is_none_or(is_past) {
            record.forget(key);
        }
        Ok(())
    }

    /// Reports whether a notice need not be sent any more, because a newer notice waits, the event
    /// is over, or the hook was removed from the config.
    pub(super) fn is_superseded(&self, Delivery { key, hook, notice, .. }: &Delivery) -> bool {
        let is_own = |other: &Arc<HookSettings>| other.fingerprint() == key.1;
        let is_gone = !self.settings.lock().get(&notice.site).is_some_and(|site| site.hooks.iter().any(is_own));
        if is_gone {
            self.update(key, |job| {
                // The last announcement is cleared, so that the notice is sent if the config
                // contains the hook again.
                (job.waiting, job.asked) = (None, None);
                job.status = Job::new(hook).status;
            });
        }
        let is_over = |job: &Job| job.waiting.is_some() || job.asked.is_none();
        is_gone || self.jobs.lock().get(key).is_none_or(is_over)
    }

    fn report(&self, hook: &HookSettings, notice: &Notice, kind: HookEventKind, status: Option<u16>, what: &str) {
        if notice.event.is_some() {
            // The job of an event is removed together with its counts, so an additional job keeps
            // the totals.
            let mut jobs = self.jobs.lock();
            let all = jobs.entry((String::new(), hook.fingerprint())).or_insert_with(|| Job::new(hook));
            all.status.counts.0 += u64::from(status.is_some());
            all.status.counts.1 += u64::from(kind == HookEventKind::GivenUp);
        }
        let message = format!("{}: {}: {what}", hook.target, notice.label());
        (self.on_event)(&HookEvent { notice, kind, status, message });
    }
}

async fn run(shared: Arc<PublishHooks>, key: JobKey) {
    let random_state = RandomState::new();
    loop {
        let next = {
            let mut jobs = shared.jobs.lock();
            let Some(job) = jobs.get_mut(&key) else { return };
            match job.waiting.take() {
                Some((hook, notice)) => {
                    job.status.begin(&hook, &notice);
                    Delivery { key: key.clone(), hook, notice, woken: Arc::clone(&job.woken) }
                }
                None => {
                    job.is_running = false;
                    shared.rested.notify_waiters();
                    return;
                }
            }
        };
        deliver(&shared, &next, &random_state).await;
    }
}

/// Tries to deliver a notice until it is delivered, refused or superseded, or until there are no
/// attempts left.
async fn deliver(shared: &PublishHooks, of: &Delivery, random_state: &RandomState) {
    let Delivery { key, hook, notice, .. } = of;
    if !shared.must_send(of).await {
        return;
    }
    let lane = shared.lane(notice);
    for number in 1.. {
        let Some(permits) = lane.permits(hook).await else { return };
        // During the wait for permits, a newer version may have gone live, or the hook may have
        // been removed.
        if shared.is_superseded(of) {
            return;
        }
        shared.update(key, |job| job.status.report.attempts = number);
        let outcome = match lane.pause_reason(hook) {
            Some(why) => AttemptOutcome::Failed(why),
            None => {
                let admin = shared.admin.lock().clone();
                let outcome = attempt(hook, notice, admin, &permits).await;
                lane.note(hook, !matches!(outcome, AttemptOutcome::Unanswered(_)));
                outcome
            }
        };
        drop(permits);
        let (why, pause) = match outcome {
            AttemptOutcome::Delivered(status) => {
                let unrecorded = shared.record(of).err().map(|error| error.to_string());
                shared.report_turn(shared.turn_id(key), TurnReport::Sent);
                shared.update(key, |job| {
                    job.status.rest("delivered", unrecorded.clone());
                    job.status.counts.0 += 1;
                });
                let mut what = format!("the receiver answered with status {status}", status = status.as_u16());
                if number > 1 {
                    what += &format!(" at attempt {number}");
                }
                let mut kind = HookEventKind::Delivered;
                if let Some(why) = unrecorded {
                    what += &format!("; robotsd cannot record this, so a restart sends the request again: {why}");
                    kind = HookEventKind::Repeated;
                }
                shared.report(hook, notice, kind, Some(status.as_u16()), &what);
                return;
            }
            AttemptOutcome::Failed(why) | AttemptOutcome::Unanswered(why) => {
                let roll = random_state.hash_one((number, SystemTime::now())) as u32;
                (why, shared.retry.pause(number, roll))
            }
            AttemptOutcome::Refused(why) => (why, None),
        };
        let Some(again) = pause else {
            shared.report_turn(shared.turn_id(key), TurnReport::Over);
            shared.update(key, |job| job.status.gave_up(&why));
            let attempts = if number == 1 { "attempt" } else { "attempts" };
            let what = format!("{why}; robotsd gave up after {number} {attempts}: {}", notice.lost());
            shared.report(hook, notice, HookEventKind::GivenUp, None, &what);
            return;
        };
        shared.update(key, |job| job.status.report.problem = Some(why.clone()));
        let what = format!("{why}; the next attempt is in {} s", again.as_secs());
        shared.report(hook, notice, HookEventKind::Repeated, None, &what);
        if !shared.wait_unless_superseded(of, again).await {
            return;
        }
    }
}

impl Job {
    fn new(hook: &HookSettings) -> Self {
        let mut status = HookStatus::default();
        (status.report.target, status.report.state) = (hook.target.to_string(), "idle".to_owned());
        Self { waiting: None, is_running: false, woken: Arc::default(), asked: None, turn_id: None, status }
    }
}

impl HookStatus {
    fn begin(&mut self, hook: &HookSettings, notice: &Notice) {
        let now = SystemTime::now();
        self.since = Some(now);
        self.report = PublishHookReport {
            target: hook.target.to_string(),
            state: "sending".to_owned(),
            version: Some(notice.event.map_or_else(|| notice.version.clone(), |_| notice.label())),
            since: Some(rfc3339(now)),
            ..PublishHookReport::default()
        };
    }

    pub(super) fn rest(&mut self, state: &str, problem: Option<String>) {
        (self.report.state, self.report.problem) = (state.to_owned(), problem);
    }

    /// Reports whether the hook has failed to send a notice that it began to send at least
    /// [`FAILURE_PAUSE`] ago. If so, the notice is sent again if its event still lasts.
    fn is_retry_due(&self) -> bool {
        let is_past = |since: SystemTime| since.elapsed().is_ok_and(|age| age >= FAILURE_PAUSE);
        self.report.state == "failed" && self.since.is_some_and(is_past)
    }

    fn gave_up(&mut self, why: &str) {
        self.rest("failed", Some(why.to_owned()));
        self.counts.1 += 1;
    }
}

tower_robots::internals::debug_as!(|it| PublishHooks { sites: it.settings.lock().len() });

const MAX_RECORD_BYTES: u64 = 200;

/// A folder with one file per pair of hook and subject ([`JobKey`]). The file contains the pair's
/// last announcement, so that it is not repeated after a restart.
#[derive(Clone, Debug)]
struct DeliveryRecord(PathBuf);

impl DeliveryRecord {
    fn read(&self, key: &JobKey) -> Option<String> {
        let (bytes, _) = files::read_at_most(&self.path(key), MAX_RECORD_BYTES).ok()?;
        Some(String::from_utf8(bytes).ok()?.trim_end().to_owned())
    }

    /// Writes a record. If the process ends during the write, the previous record remains.
    fn write(&self, key: &JobKey, version: &str) -> io::Result<()> {
        files::replace(&self.path(key), format!("{version}\n").as_bytes())
    }

    /// Removes the record, so that the same version may be sent again.
    fn forget(&self, key: &JobKey) {
        let _ = fs::remove_file(self.path(key));
    }

    fn path(&self, (name, hook): &JobKey) -> PathBuf {
        self.0.join(format!("{}.txt", VersionHash::of(format!("{name}\n{hook}").as_bytes()).short()))
    }
}
