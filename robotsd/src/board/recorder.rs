//! What one worker counts of one site until the control thread takes it, about once a second.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use arc_swap::ArcSwap;
use http::{HeaderName, Method, StatusCode};
use tower_robots::agent::{Agent, Identity};
use tower_robots::layer::{CrawlerRequest, Event};
use tower_robots::live::{Content, LiveRobots, VersionHash};
use tower_robots::policy::{Facts, Policy};
use tower_robots::rules::{Access, PathForm, PathForms, RequestPath};

use super::moment::{DAY, HOUR, Second, hour_of, seconds};
use super::row::{Case, Done, LineHits, ReadSpan, Row, RowKey, Standing};
use crate::decision::RequestOutcome;

/// Rows that a worker holds of a site until they are taken.
const MOST_ROWS: usize = 4096;

/// Names of crawlers that no registry knows which are counted one by one, by a worker and by the board of a site in an hour: they
/// come from clients.
pub(super) const MOST_UNKNOWN: usize = 64;

/// Versions of a site that requests are judged by.
const MOST_VERSIONS: usize = 5;

/// The name of the rest of them.
pub(super) const UNKNOWN: &str = "other crawlers";

/// Octets of a name or host that are kept.
const LONGEST_NAME: usize = 128;

/// Written by the edge for every request, and by proxies that ask for decisions.
const SCHEME: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// The versions of a site that a crawler may go by: the live one, and those before it for a day.
#[derive(Debug, Default)]
pub(crate) struct KnownVersions {
    policy: Option<Arc<Policy>>,
    /// The live one last, each with the moment until which a crawler may go by it.
    contents: Vec<(Arc<Content>, Second)>,
}

/// The recorders of a site, on all workers and under all configs. Cheap to clone; clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct SiteRecorders(Arc<RecorderParts>);

#[derive(Debug, Default)]
struct RecorderParts {
    versions: Arc<ArcSwap<KnownVersions>>,
    recorders: Mutex<Vec<Arc<Recorder>>>,
    /// Whether crawlers were not recognised for a moment since that was last read.
    has_missed: AtomicBool,
    /// Whether the site got hosts since that was last asked.
    has_new_hosts: AtomicBool,
}

/// Counts the crawlers of one site on one worker.
#[derive(Debug)]
pub(crate) struct Recorder {
    versions: Arc<ArcSwap<KnownVersions>>,
    counted: Mutex<Counted>,
}

/// What was counted since it was last taken.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    pub(super) rows: HashMap<RowKey, Row>,
    pub(super) unknown: usize,
    /// Requests that found no room.
    pub(super) lost: u64,
}

impl SiteRecorders {
    /// A recorder of one worker's own.
    pub(crate) fn recorder(&self) -> Arc<Recorder> {
        let recorder = Arc::new(Recorder::new(Arc::clone(&self.0.versions)));
        self.recorders().push(Arc::clone(&recorder));
        recorder
    }

    /// Takes what was counted.
    pub(crate) fn take(&self) -> Vec<Counted> {
        let mut recorders = self.recorders();
        let mut taken = Vec::new();
        recorders.retain(|recorder| {
            // Asked before it is emptied: what a worker counts last is not lost.
            let is_used = Arc::strong_count(recorder) > 1;
            taken.push(recorder.take());
            is_used
        });
        taken.retain(|counted| counted.lost > 0 || !counted.rows.is_empty());
        taken
    }

    /// Notes that crawlers are not recognised from now on, for however short a time.
    pub(crate) fn miss(&self) {
        self.0.has_missed.store(true, Ordering::Release);
    }

    /// Whether crawlers were not recognised for a moment since this was last read.
    pub(crate) fn take_missed(&self) -> bool {
        self.0.has_missed.swap(false, Ordering::AcqRel)
    }

    /// Notes that the site answers for other hosts from now on: another may have shown crawlers another version there.
    pub(crate) fn has_new_hosts(&self) {
        self.0.has_new_hosts.store(true, Ordering::Release);
    }

    /// Whether the site got hosts since this was last asked.
    pub(crate) fn take_new_hosts(&self) -> bool {
        self.0.has_new_hosts.swap(false, Ordering::AcqRel)
    }

    /// Follows the versions of a robots.txt, so that requests are judged by the one that a crawler last read.
    pub(crate) fn follow(&self, robots: &LiveRobots, now: Second) {
        let (live, policy) = robots.with(|snapshot| (snapshot.content().cloned(), Arc::clone(snapshot.policy())));
        let Some(live) = live else { return };
        let known = self.0.versions.load();
        let is_known = known.contents.last().is_some_and(|(last, _)| Arc::ptr_eq(last, &live))
            && known.policy.as_ref().is_some_and(|known| Arc::ptr_eq(known, &policy))
            && known.contents.first().is_none_or(|(_, until)| now <= *until);
        if is_known {
            return;
        }
        // It may be read until it is replaced, and gone by for a day after.
        let until = now + DAY + HOUR;
        let mut contents: Vec<_> = known.contents.iter().filter(|(_, until)| now <= *until).cloned().collect();
        if let Some((_, end)) = contents.last_mut() {
            *end = until;
        }
        contents.retain(|(content, _)| content.hash() != live.hash());
        contents.push((live, Second::MAX));
        let surplus = contents.len().saturating_sub(MOST_VERSIONS);
        contents.drain(..surplus);
        self.0.versions.store(Arc::new(KnownVersions { policy: Some(policy), contents }));
    }

    fn recorders(&self) -> MutexGuard<'_, Vec<Arc<Recorder>>> {
        self.0.recorders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Recorder {
    fn new(versions: Arc<ArcSwap<KnownVersions>>) -> Self {
        Self { versions, counted: Mutex::default() }
    }

    /// Counts a request of a crawler.
    pub(crate) fn observe(&self, event: &Event<'_, CrawlerRequest>) {
        self.observe_at(event, seconds(SystemTime::now()));
    }

    fn observe_at(&self, event: &Event<'_, CrawlerRequest>, now: Second) {
        let record = event.record();
        if is_robots_txt(event.target()) {
            if let Some(version) = read_version(event) {
                let (origin, count) = (origin(event), 1);
                self.count(record, now, |row| row.read(ReadSpan { origin, version, first: now, last: now, count }));
            }
            return;
        }
        let done = done(record);
        if record.access() != Some(Access::Disallow) {
            self.count(record, now, |row| {
                row.allowed += 1;
                row.done.merge(done);
            });
            return;
        }
        let (disallowed_by, allowed_by) = self.versions.load().judge(event);
        let case = Case { origin: origin(event), disallowed_by, allowed_by, first: now, last: now, count: 1 };
        let (line, pattern) = (record.line().unwrap_or(0), cut(record.rule().unwrap_or_default()).to_owned());
        let hits = LineHits { version: written(record.hash()), line, pattern, hits: 1 };
        self.count(record, now, |row| {
            row.disallowed += 1;
            row.done.merge(done);
            row.disallow(case);
            row.hit(hits);
        });
    }

    fn count(&self, record: &CrawlerRequest, now: Second, count: impl FnOnce(&mut Row)) {
        let mut counted = self.counted();
        if counted.rows.len() >= MOST_ROWS {
            counted.lost += 1;
            return;
        }
        let crawler = match record.agent().registered() {
            Some(crawler) => Cow::Borrowed(crawler.name()),
            None => counted.unknown_name(record.name()),
        };
        let key = RowKey { begin: hour_of(now), crawler: crawler.into_owned(), identity: standing(record) };
        let row = counted.rows.entry(key).or_insert_with(|| row_of(record.agent()));
        count(row);
    }

    /// Takes what was counted.
    pub(super) fn take(&self) -> Counted {
        std::mem::take(&mut *self.counted())
    }

    fn counted(&self) -> MutexGuard<'_, Counted> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counted {
    /// The name of a crawler that no registry knows, while there is room for it.
    fn unknown_name<'n>(&mut self, name: &'n str) -> Cow<'n, str> {
        let name = cut(name);
        let is_known = self.rows.keys().any(|key| key.crawler == name);
        if is_known {
            return Cow::Borrowed(name);
        }
        self.unknown += 1;
        Cow::Borrowed(if self.unknown <= MOST_UNKNOWN { name } else { UNKNOWN })
    }
}

impl KnownVersions {
    /// The versions that disallow a disallowed request, the one in force first, and those that allow it. A version counts as
    /// disallowing only where the path as the client sent it is disallowed: what only another reading of the path meets is
    /// nothing a crawler has to expect.
    fn judge(&self, event: &Event<'_, CrawlerRequest>) -> (Vec<String>, Vec<String>) {
        let agents = std::slice::from_ref(event.record().agent());
        let (mut disallowed_by, mut allowed_by) = (Vec::new(), Vec::new());
        let Some(policy) = &self.policy else { return (disallowed_by, allowed_by) };
        let live = event.record().hash();
        let is_live = |content: &&Arc<Content>| content.hash() == live;
        let contents = || self.contents.iter().map(|(content, _)| content);
        for content in contents().filter(is_live).chain(contents().filter(|content| !is_live(content))) {
            let facts = Facts::of_target(event.method().as_str(), event.target());
            match policy.decide(content.rules(), agents, facts).verdict() {
                Some(verdict) if verdict.access() == Access::Disallow => {
                    if matches!(verdict.form(), PathForm::Verbatim | PathForm::Standard) {
                        disallowed_by.push(written(content.hash()));
                    }
                }
                _ => allowed_by.push(written(content.hash())),
            }
        }
        (disallowed_by, allowed_by)
    }
}

/// One octet decides for nearly every target.
fn is_robots_txt(target: &[u8]) -> bool {
    let may_be = !target.starts_with(b"/") || matches!(target, [_, b'r' | b'%', ..]);
    may_be && RequestPath::with_forms(target, PathForms::NONE).is_robots_txt()
}

/// The version that a request for robots.txt got, if it got one; `Some(None)` where another server answers.
fn read_version(event: &Event<'_, CrawlerRequest>) -> Option<Option<String>> {
    if event.method() != Method::GET {
        return None;
    }
    match event.status() {
        Some(StatusCode::OK | StatusCode::NOT_MODIFIED) => Some(Some(written(event.record().hash()))),
        None => Some(None),
        Some(_) => None,
    }
}

fn standing(record: &CrawlerRequest) -> Standing {
    standing_of(record.identity())
}

fn standing_of(identity: Option<Identity>) -> Standing {
    match identity {
        Some(Identity::Verified(_)) => Standing::Verified,
        Some(Identity::Refuted(_)) => Standing::Impostor,
        _ => Standing::Claimed,
    }
}

fn done(record: &CrawlerRequest) -> Done {
    let one = Done::default();
    match RequestOutcome::of(record.action(), record.reason()) {
        RequestOutcome::Limited => Done { limited: 1, ..one },
        RequestOutcome::Refused => Done { refused: 1, ..one },
        RequestOutcome::Tagged => Done { tagged: 1, ..one },
        _ if record.access() != Some(Access::Disallow) => one,
        RequestOutcome::Observed => Done { observed: 1, ..one },
        _ => Done { passed: 1, ..one },
    }
}

fn row_of(agent: &Agent) -> Row {
    let operator = agent.registered().map(|crawler| cut(crawler.operator()).to_owned()).unwrap_or_default();
    let category = agent.category().map(|category| category.as_str().to_owned()).unwrap_or_default();
    let chain = agent.tokens().iter().take(8).map(|token| cut(&token.to_string()).to_owned()).collect();
    Row { operator, category, chain, ..Row::default() }
}

/// The scheme and host that robots.txt is for (RFC 9309, section 2.3).
fn origin(event: &Event<'_, CrawlerRequest>) -> String {
    let scheme = event.headers().get(SCHEME).and_then(|scheme| scheme.to_str().ok());
    let scheme = scheme.filter(|scheme| matches!(*scheme, "http" | "https")).unwrap_or("unknown");
    let host = cut(event.host().unwrap_or_default()).to_ascii_lowercase();
    let port = if scheme == "https" { ":443" } else { ":80" };
    let host = host.strip_suffix(port).unwrap_or(&host).trim_end_matches('.');
    format!("{scheme}://{host}")
}

/// As versions are named on the board, and to `robotsd accept`.
pub(super) fn written(hash: VersionHash) -> String {
    format!("sha256:{}", hash.short())
}

pub(super) fn cut(text: &str) -> &str {
    let end = (0..=LONGEST_NAME.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or(0)]
}
