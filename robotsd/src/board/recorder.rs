//! Counts the requests of crawlers. Each worker has one recorder per site, and the control thread
//! takes the counts about once per second.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::SystemTime;

use arc_swap::ArcSwap;
use foldhash::fast::RandomState;
use http::{HeaderName, Method, StatusCode};
use parking_lot::Mutex;
use tower_robots::agent::{Agent, Identity};
use tower_robots::layer::{Event, Record};
use tower_robots::live::{Content, LiveRobots, VersionHash};
use tower_robots::policy::Policy;
use tower_robots::rules::{Access, RequestPath};

use super::judgement::{Disallowed, MAX_VERSIONS, UsableVersion, VERSION_LIFETIME};
use super::requested_paths::RequestedPaths;
use super::row::{Case, ClaimResult, Done, LineHits, ReadSpan, Row, RowKey, Second, hour_of, seconds};
use crate::counting::{RequestOutcome, SendingServices};
use crate::http_common::ClientRequest;

/// Maximum number of rows per site and worker until the control thread takes the counts.
const MAX_ROWS: usize = 4096;

/// Maximum number of unregistered crawlers that are counted by name: in the counts of each worker,
/// and in each hour of a site on the board. Without a limit, clients could fill the board with
/// invented names.
pub(super) const MAX_UNREGISTERED: usize = 64;

/// Name of the row for all unregistered crawlers beyond [`MAX_UNREGISTERED`].
pub(super) const OTHER_CRAWLERS: &str = "other crawlers";

/// Maximum length of a stored name or host, in bytes. Longer names and hosts are truncated.
pub(super) const MAX_NAME_LENGTH: usize = 128;

/// Header field with the scheme of the client's request. A proxy adds it to its decision request.
const SCHEME: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// The live version of a site's robots.txt, and each earlier version for [`VERSION_LIFETIME`] seconds after
/// its replacement. Crawlers may rely on any of these versions.
#[derive(Debug, Default)]
pub(crate) struct KnownVersions {
    policy: Option<Arc<Policy>>,
    /// The versions, the oldest first and the live version last.
    versions: Vec<KnownVersion>,
}

/// A version that a crawler may rely on until `until`.
#[derive(Clone, Debug)]
struct KnownVersion {
    content: Arc<Content>,
    /// Name of the version on the board. The name is stored, because formatting it for every
    /// request would take time.
    name: Arc<str>,
    until: Second,
}

/// The recorders of one site, one per worker. A reload of the config keeps the recorders.
#[derive(Debug, Default)]
pub(crate) struct SiteRecorders {
    versions: Arc<ArcSwap<KnownVersions>>,
    recorders: Mutex<Vec<Arc<Recorder>>>,
    /// Set if crawlers were not recognised for some time, for example because enforcement was off.
    /// The control thread clears this flag.
    pub(crate) has_missed: AtomicBool,
    /// Set if the hosts of the site have changed. Before the change, another site may have served
    /// another version of robots.txt on the new hosts. The control thread clears this flag.
    pub(crate) has_new_hosts: AtomicBool,
    /// Services that refer visitors to the site.
    pub(crate) services: Arc<SendingServices>,
}

#[derive(Debug)]
pub(crate) struct Recorder {
    versions: Arc<ArcSwap<KnownVersions>>,
    counted: Mutex<Counted>,
}

/// A worker's counts since the control thread last took counts from this worker.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    pub(super) rows: HashMap<RowKey, Row, RandomState>,
    pub(super) unknown: usize,
    /// Allowed paths that verified search engines requested.
    pub(super) requested: RequestedPaths,
    /// Number of requests that were not counted, because [`MAX_ROWS`] was reached.
    pub(super) lost: u64,
    pub(super) scratch: RowScratch,
}

/// Buffers for the row key and the request data. The buffers are reused, so a request for an
/// existing row allocates no memory.
#[derive(Debug, Default)]
pub(crate) struct RowScratch {
    key: RowKey,
    read: ReadSpan,
    pub(crate) case: Case,
    pub(crate) hits: LineHits,
}

impl SiteRecorders {
    pub(crate) fn recorder(&self) -> Arc<Recorder> {
        let recorder = Arc::new(Recorder { versions: Arc::clone(&self.versions), counted: Mutex::default() });
        self.recorders.lock().push(Arc::clone(&recorder));
        recorder
    }

    pub(crate) fn take(&self) -> Vec<Counted> {
        let mut recorders = self.recorders.lock();
        let mut taken = Vec::new();
        recorders.retain(|recorder| {
            // `is_used` must be computed before the counts are taken. If it were computed later,
            // the worker could count a last request and drop the recorder in between, and this
            // request would be lost.
            let is_used = Arc::strong_count(recorder) > 1;
            taken.push(recorder.take());
            is_used
        });
        taken.retain(|counted| counted.lost > 0 || !counted.rows.is_empty());
        taken
    }

    /// Records the live version of a robots.txt. The previous version is kept as long as crawlers
    /// may rely on it.
    pub(crate) fn update_versions(&self, robots: &LiveRobots, now: Second) {
        let (live, policy) = robots.with(|snapshot| (snapshot.content.clone(), Arc::clone(&snapshot.policy)));
        let Some(live) = live else { return };
        let known = self.versions.load();
        let is_known = known.versions.last().is_some_and(|last| Arc::ptr_eq(&last.content, &live))
            && known.policy.as_ref().is_some_and(|known| Arc::ptr_eq(known, &policy))
            && known.versions.first().is_none_or(|first| now <= first.until);
        if is_known {
            return;
        }
        // A crawler may have fetched the previous version immediately before this change.
        let until = now + VERSION_LIFETIME;
        let mut versions: Vec<_> = known.versions.iter().filter(|version| now <= version.until).cloned().collect();
        if let Some(last) = versions.last_mut() {
            last.until = until;
        }
        versions.retain(|version| version.content.hash() != live.hash());
        versions.push(KnownVersion { name: written(live.hash()).into(), content: live, until: Second::MAX });
        let surplus = versions.len().saturating_sub(MAX_VERSIONS);
        versions.drain(..surplus);
        self.versions.store(Arc::new(KnownVersions { policy: Some(policy), versions }));
    }
}

impl Recorder {
    pub(crate) fn observe(&self, event: &Event<'_>) {
        self.observe_at(event, seconds(SystemTime::now()));
    }

    fn observe_at(&self, event: &Event<'_>, now: Second) {
        let record = event.record;
        let (agent, name, identity) = (&record.agent, record.name(), claim_result(record.identity));
        // The module `counting` counts pages when the response is known.
        let seen = CrawlerRequest { agent, name, identity, at: now, got_page: false };
        let origin = |out: &mut String| write_origin(scheme_of(event), event.request.host().unwrap_or_default(), out);
        let target = event.request.target();
        if RequestPath::is_robots_txt_target(target) {
            if let Some(is_served) = served(event) {
                let versions = self.versions.load();
                self.counted.lock().read(&seen, |ReadSpan { origin: from, version, .. }| {
                    origin(from);
                    match is_served {
                        true => versions.write_name(record.hash, version.get_or_insert_default()),
                        false => *version = None,
                    }
                });
            }
            return;
        }
        let done = done(record);
        if record.access != Some(Access::Disallow) {
            let mut counted = self.counted.lock();
            if identity == ClaimResult::Verified && agent.registered().is_some_and(|crawler| crawler.is_index_engine) {
                counted.requested.count(target);
            }
            counted.allow(&seen, done);
            return;
        }
        let versions = self.versions.load();
        let method = event.request.method.as_str();
        let request = Disallowed { agent, method, target, by: record.hash, form: record.form };
        self.counted.lock().disallow(&seen, done, |RowScratch { case, hits, .. }| {
            case.judge_by(versions.usable_versions(), versions.policy.as_deref(), &request);
            origin(&mut case.origin);
            versions.write_name(record.hash, &mut hits.version);
            cut(record.rule.as_deref().unwrap_or_default()).clone_into(&mut hits.pattern);
            hits.line = record.line.unwrap_or(0);
        });
    }

    pub(super) fn take(&self) -> Counted {
        std::mem::take(&mut *self.counted.lock())
    }
}

/// A request that was received live or read from a log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CrawlerRequest<'r> {
    pub(crate) agent: &'r Agent,
    /// Name in the `User-Agent`. Used only if the crawler is not registered.
    pub(crate) name: &'r str,
    pub(crate) identity: ClaimResult,
    pub(crate) at: Second,
    /// Whether the response is known to be a page.
    pub(crate) got_page: bool,
}

impl Counted {
    pub(crate) fn is_full(&self) -> bool {
        self.rows.len() >= MAX_ROWS
    }

    /// Counts a fetch of robots.txt. `fill` sets the origin and the served version (`None` if
    /// another server responded).
    pub(crate) fn read(&mut self, request: &CrawlerRequest<'_>, fill: impl FnOnce(&mut ReadSpan)) {
        let read = &mut self.scratch.read;
        read.origin.clear();
        fill(read);
        (read.first, read.last, read.count) = (request.at, request.at, 1);
        self.count(request, |row, scratch| row.read(&scratch.read));
    }

    pub(crate) fn allow(&mut self, request: &CrawlerRequest<'_>, done: Done) {
        self.count(request, |row, _| {
            row.allowed += 1;
            row.pages += u64::from(request.got_page);
            row.done.merge(done);
        });
    }

    /// Counts a disallowed request. `fill` sets the origin, the versions that disallow or allow the
    /// request, and the matching line.
    pub(crate) fn disallow(&mut self, request: &CrawlerRequest<'_>, done: Done, fill: impl FnOnce(&mut RowScratch)) {
        self.scratch.case.origin.clear();
        fill(&mut self.scratch);
        let RowScratch { case, hits, .. } = &mut self.scratch;
        (case.first, case.last, case.count, hits.hits) = (request.at, request.at, 1, 1);
        self.count(request, |row, RowScratch { case, hits, .. }| {
            row.disallowed += 1;
            row.pages += u64::from(request.got_page);
            row.done.merge(done);
            row.disallow(case);
            row.add_hits(hits);
        });
    }

    fn count(&mut self, request: &CrawlerRequest<'_>, count: impl FnOnce(&mut Row, &RowScratch)) {
        if self.is_full() {
            self.lost += 1;
            return;
        }
        let crawler = match request.agent.registered() {
            Some(crawler) => cut(&crawler.name),
            None => self.unregistered_name(request.name),
        };
        let key = &mut self.scratch.key;
        crawler.clone_into(&mut key.crawler);
        (key.begin, key.identity) = (hour_of(request.at), request.identity);
        let row = match self.rows.get_mut(&self.scratch.key) {
            Some(row) => row,
            None => self.rows.entry(self.scratch.key.clone()).or_insert_with(|| row_of(request.agent)),
        };
        count(row, &self.scratch);
    }

    /// Returns the row name of an unregistered crawler: its own name, or [`OTHER_CRAWLERS`] if the
    /// limit of names is reached.
    fn unregistered_name<'n>(&mut self, name: &'n str) -> &'n str {
        let name = cut(name);
        let is_known = self.rows.keys().any(|key| key.crawler == name);
        if is_known {
            return name;
        }
        self.unknown += 1;
        if self.unknown <= MAX_UNREGISTERED { name } else { OTHER_CRAWLERS }
    }
}

impl KnownVersions {
    /// Returns the versions that a crawler may rely on; none if the policy is not known yet.
    fn usable_versions(&self) -> impl Iterator<Item = UsableVersion<'_>> + Clone {
        let versions = self.versions.iter().filter(|_| self.policy.is_some());
        versions.map(|KnownVersion { content, name, .. }| UsableVersion {
            hash: content.hash(),
            name,
            rules: content.rules(),
        })
    }

    fn write_name(&self, hash: VersionHash, out: &mut String) {
        match self.versions.iter().find(|version| version.content.hash() == hash) {
            Some(version) => version.name.as_ref().clone_into(out),
            None => *out = written(hash),
        }
    }
}

/// Returns `true` if robotsd serves its own robots.txt, `false` if another server responds, and
/// `None` if the response is not a robots.txt.
fn served(event: &Event<'_>) -> Option<bool> {
    if event.request.method != Method::GET {
        return None;
    }
    match event.status {
        Some(StatusCode::OK | StatusCode::NOT_MODIFIED) => Some(true),
        None => Some(false),
        Some(_) => None,
    }
}

/// Converts the result of identity verification for a row key. If identities are not verified,
/// every crawler is `Claimed`.
pub(crate) const fn claim_result(identity: Option<Identity>) -> ClaimResult {
    match identity {
        Some(Identity::Verified(_)) => ClaimResult::Verified,
        Some(Identity::Refuted(_)) => ClaimResult::Impostor,
        _ => ClaimResult::Claimed,
    }
}

fn done(record: &Record) -> Done {
    let one = Done::default();
    match RequestOutcome::of(record.action, record.reason) {
        RequestOutcome::Limited => Done { limited: 1, ..one },
        RequestOutcome::Refused => Done { refused: 1, ..one },
        RequestOutcome::Tagged => Done { tagged: 1, ..one },
        _ if record.access != Some(Access::Disallow) => one,
        RequestOutcome::Observed => Done { observed: 1, ..one },
        _ => Done { passed: 1, ..one },
    }
}

pub(super) fn row_of(agent: &Agent) -> Row {
    let operator = agent.registered().map(|crawler| cut(&crawler.operator).to_owned()).unwrap_or_default();
    let category = agent.category().map(|category| category.as_str().to_owned()).unwrap_or_default();
    let chain = agent.tokens().iter().take(8).map(|token| cut(&token.to_string()).to_owned()).collect();
    Row { operator, category, chain, ..Row::default() }
}

fn scheme_of<'e>(event: &Event<'e>) -> &'e str {
    let forwarded = ClientRequest::of(event.request.extensions).and_then(|client| client.forwarded.as_ref());
    let asked = || event.request.headers.get(SCHEME)?.to_str().ok();
    forwarded.map(|forwarded| forwarded.scheme).or_else(asked).unwrap_or_default()
}

/// Writes the scheme and host that a robots.txt applies to (RFC 9309, section 2.3). An unknown
/// scheme is written as `unknown`.
pub(crate) fn write_origin(scheme: &str, host: &str, out: &mut String) {
    let scheme = Some(scheme).filter(|scheme| matches!(*scheme, "http" | "https")).unwrap_or("unknown");
    let host = cut(host);
    let port = if scheme == "https" { ":443" } else { ":80" };
    let host = host.strip_suffix(port).unwrap_or(host).trim_end_matches('.');
    out.push_str(scheme);
    out.push_str("://");
    let begin = out.len();
    out.push_str(host);
    if let Some(host) = out.get_mut(begin..) {
        host.make_ascii_lowercase();
    }
}

/// Formats the name of a version in the form that the board shows and `robotsd accept` accepts.
pub(crate) fn written(hash: VersionHash) -> String {
    format!("sha256:{}", hash.short())
}

pub(crate) fn cut(text: &str) -> &str {
    let end = (0..=MAX_NAME_LENGTH.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or(0)]
}
