//! How a crawler interprets every response (RFC 9309, sections 2.3.1 and 2.4). The caller provides
//! the time.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use http::StatusCode;
use robots_core::rules::{AgentRules, RequestPath, RobotsTxt};

use super::freshness::{self, Freshness, later};
use super::outcome::{FetchOutcome, Validators};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// How long a response is used if `Cache-Control` does not say (RFC 9309, section 2.4).
const LIFETIME: Duration = DAY;

/// Duration of failure that ends the complete disallow (section 2.3.1.4).
const GIVE_UP: Duration = DAY.saturating_mul(30);

/// First and maximum pause before a failed fetch is retried.
const RETRY_FIRST: Duration = Duration::from_secs(60);
const RETRY_MOST: Duration = Duration::from_secs(3600);

/// The cached robots.txt of one site, and what it allows a crawler to do.
///
/// It has no clock and fetches nothing: fetch the file when [`CrawlerCache::is_due`], record the
/// outcome with [`CrawlerCache::record`], and ask [`CrawlerCache::allows`] about each URL.
///
/// | response | reading |
/// |---|---|
/// | 2xx | the body's rules |
/// | 304 | the copy's rules |
/// | more than five redirects, or an invalid redirect | everything is allowed, as after 404 |
/// | a redirect that nobody followed | as 5xx |
/// | 4xx, 401 and 403 included | everything is allowed |
/// | 429, 5xx | everything is disallowed, and the file is fetched again |
/// | no address, no connection, or an incomplete response | as 5xx |
/// | the same for over 30 days | the last copy's rules; without a copy, everything is allowed |
///
/// A response is used for 24 hours, or for as long as `Cache-Control: max-age` says; `no-cache` and
/// `no-store` require a fetch before the next use. A failure changes nothing while the previous
/// response is fresh. A copy is kept while new fetches fail, unless it came with `no-store`; a 4xx
/// or a chain of redirects removes it.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use http::{HeaderMap, StatusCode};
/// use tower_robots::source::fetch::{CrawlerCache, FetchOutcome};
///
/// let now = SystemTime::now();
/// let mut cache = CrawlerCache::default();
/// assert!(cache.is_due(now));
/// let file = *b"User-agent: *\nDisallow: /x\n";
/// cache.record(FetchOutcome::of(StatusCode::OK, &HeaderMap::new(), file, now), now);
/// assert!(cache.allows("OurBot/2.0", "https://example.com/products", now));
/// assert!(!cache.allows("OurBot/2.0", "https://example.com/x", now));
/// assert_eq!(cache.next_fetch(), Some(now + Duration::from_secs(24 * 3600)));
/// ```
#[derive(Clone, Debug, Default)]
pub struct CrawlerCache {
    known: CachedAnswer,
    fresh_until: Option<SystemTime>,
    failing: Option<Failing>,
    /// The rules of the copy for the first agent that asked.
    rules: OnceLock<Arc<(Box<[u8]>, AgentRules)>>,
    /// Whether the last copy, if any, is used while fetching fails, as RFC 9309 permits (section
    /// 2.4). Default: `false`, so everything is disallowed for 30 days (section 2.3.1.4).
    pub goes_by_last_copy: bool,
}

/// Result of the last response that was not a failure.
#[derive(Clone, Debug, Default)]
enum CachedAnswer {
    #[default]
    Nothing,
    Nowhere,
    Copy {
        bytes: Arc<[u8]>,
        validators: Validators,
        is_storable: bool,
    },
}

#[derive(Clone, Copy, Debug)]
struct Failing {
    since: SystemTime,
    failures: u32,
    retry: SystemTime,
}

/// What a crawler may fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CrawlerReading<'a> {
    /// Unknown, because nothing was fetched yet: fetch first.
    Unknown,
    /// The paths that these bytes allow, parsed as a robots.txt.
    Rules(&'a Arc<[u8]>),
    /// All paths.
    AllowAll,
    /// No path, until a fetch succeeds or has failed for 30 days.
    DisallowAll,
}

impl CrawlerCache {
    /// Records the outcome of a fetch.
    pub fn record(&mut self, answer: FetchOutcome, now: SystemTime) {
        match answer {
            FetchOutcome::Found { bytes, freshness, validators, .. } => {
                let is_storable = freshness.is_storable();
                self.learn(CachedAnswer::Copy { bytes, validators, is_storable }, freshness, now);
            }
            FetchOutcome::NotModified(freshness) if matches!(self.known, CachedAnswer::Copy { .. }) => {
                let copy = std::mem::take(&mut self.known);
                self.learn(copy, freshness, now);
            }
            FetchOutcome::Redirected => self.learn(CachedAnswer::Nowhere, Freshness::default(), now),
            FetchOutcome::Status { status, freshness, .. } if is_client_error(status) => {
                self.learn(CachedAnswer::Nowhere, freshness, now);
            }
            FetchOutcome::Status { retry_after, .. } => self.fail(retry_after, now),
            // Without a copy the request was unconditional, so a 304 does not answer it.
            FetchOutcome::NotModified(_) | FetchOutcome::Failed(_) => self.fail(None, now),
        }
    }

    /// Returns what the crawler may fetch now.
    pub fn permission(&self, now: SystemTime) -> CrawlerReading<'_> {
        let Some(failing) = self.failing.filter(|_| self.fresh_until.is_none_or(|until| now >= until)) else {
            return match &self.known {
                CachedAnswer::Nothing => CrawlerReading::Unknown,
                CachedAnswer::Nowhere => CrawlerReading::AllowAll,
                CachedAnswer::Copy { bytes, .. } => CrawlerReading::Rules(bytes),
            };
        };
        let has_given_up = now.duration_since(failing.since).is_ok_and(|time| time > GIVE_UP);
        match &self.known {
            CachedAnswer::Copy { bytes, is_storable: true, .. } if has_given_up || self.goes_by_last_copy => {
                CrawlerReading::Rules(bytes)
            }
            _ if has_given_up => CrawlerReading::AllowAll,
            _ => CrawlerReading::DisallowAll,
        }
    }

    /// Reports whether a crawler may fetch a path, or a whole URL of this site, now. It may always fetch
    /// the site's `/robots.txt` (RFC 9309, section 2.2.2), and before the first record nothing else.
    ///
    /// The agent and the URL are read as by [`RobotsTxt::for_agent`] and [`AgentRules::allows`]. The
    /// rules are compiled once for the first agent that asks; for another, each time.
    pub fn allows(&self, agent: impl AsRef<[u8]>, url: impl AsRef<[u8]>, now: SystemTime) -> bool {
        let (agent, url) = (agent.as_ref(), url.as_ref());
        match self.permission(now) {
            CrawlerReading::AllowAll => true,
            CrawlerReading::Unknown | CrawlerReading::DisallowAll => RequestPath::is_robots_txt_target(url),
            CrawlerReading::Rules(bytes) => {
                let compile = || RobotsTxt::from(Arc::clone(bytes)).for_agent(agent);
                let (first, rules) = &**self.rules.get_or_init(|| Arc::new((agent.into(), compile())));
                if **first == *agent { rules.allows(url) } else { compile().allows(url) }
            }
        }
    }

    /// Returns when to fetch again; `None` if nothing was fetched yet.
    pub fn next_fetch(&self) -> Option<SystemTime> {
        self.failing.map_or(self.fresh_until, |failing| Some(failing.retry))
    }

    /// Reports whether it is time to fetch.
    pub fn is_due(&self, now: SystemTime) -> bool {
        self.next_fetch().is_none_or(|next| next <= now)
    }

    /// Returns since when fetching fails; `None` if it does not.
    pub fn failing_since(&self) -> Option<SystemTime> {
        self.failing.map(|failing| failing.since)
    }

    /// Returns the validators for the next request; `None` if there is no copy or it has none.
    pub const fn validators(&self) -> Option<&Validators> {
        match &self.known {
            CachedAnswer::Copy { validators, .. } if !validators.is_empty() => Some(validators),
            _ => None,
        }
    }

    fn learn(&mut self, known: CachedAnswer, freshness: Freshness, now: SystemTime) {
        self.known = known;
        self.rules = OnceLock::new();
        self.failing = None;
        self.fresh_until = Some(later(now, freshness.private().unwrap_or(LIFETIME)));
    }

    fn fail(&mut self, retry_after: Option<Duration>, now: SystemTime) {
        let before = self.failing;
        let failures = before.map_or(0, |failing| failing.failures).saturating_add(1);
        let pause = freshness::after(failures, RETRY_FIRST, RETRY_MOST);
        let asked_for = retry_after.unwrap_or_default().min(DAY);
        let since = before.map_or(now, |failing| failing.since);
        self.failing = Some(Failing { since, failures, retry: later(now, pause.max(asked_for)) });
    }
}

/// Reports whether a status is a client error. 429 does not count: it only asks the client to retry
/// later.
fn is_client_error(status: StatusCode) -> bool {
    status.is_client_error() && status != StatusCode::TOO_MANY_REQUESTS
}

#[cfg(test)]
mod tests;
