//! Determines what a crawler may fetch, from the response to its request for robots.txt (RFC 9309,
//! sections 2.3.1 and 2.4). The caller provides the current time.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use http::StatusCode;
use robots_core::rules::{AgentRules, Authority, RequestPath, RobotsTxt, ValueError};

use super::freshness::{self, Freshness, later};
use super::outcome::{FetchOutcome, Validators};
use super::url::has_scheme;
use crate::source::hosts::{OTHER_SCRIPT, Origin};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// Maximum time that a response may be used (RFC 9309, section 2.4).
const LIFETIME: Duration = DAY;

/// How long a stale response may be used if the crawler does not fetch the file again. When this
/// period ends, everything is disallowed.
const MAX_STALE: Duration = Duration::from_secs(3600);

/// How long everything is disallowed if all fetches fail (section 2.3.1.4).
const MAX_DISALLOW_TIME: Duration = DAY.saturating_mul(30);

/// Pause before the first retry of a failed fetch.
const RETRY_FIRST: Duration = Duration::from_secs(60);
/// Maximum pause before a retry.
const RETRY_MOST: Duration = Duration::from_secs(3600);

/// The cached robots.txt of one site, and what it allows a crawler to do. A site is a scheme, a
/// host and a port (RFC 9309, section 2.3), so `http` and `https` URLs of a host need different
/// caches.
///
/// The cache has no clock and does not fetch. The crawler fetches the file when
/// [`CrawlerCache::is_due`] returns true, records the outcome with [`CrawlerCache::record`], and
/// calls [`CrawlerCache::allows`] for each URL.
///
/// | response | reading |
/// |---|---|
/// | 2xx | the body's rules |
/// | 304 | the copy's rules |
/// | more than five redirects, or an invalid redirect | everything is allowed, as after 404 |
/// | a redirect that was not followed | as 5xx |
/// | 4xx, 401 and 403 included | everything is allowed |
/// | 429, 5xx | everything is disallowed, and the file is fetched again |
/// | unknown host, no connection, or an incomplete response | as 5xx |
/// | only 429, 5xx or failures for over 30 days | the last copy's rules; without one, everything is allowed |
///
/// A response is used for 24 hours, or for the time in `Cache-Control: max-age` if that is shorter.
/// With `no-cache` or `no-store`, the file must be fetched again before each use. While the
/// previous response is fresh, a failed fetch has no effect. The 30 days begin again if a due fetch
/// is not attempted for more than a day. The last copy is kept while fetches fail, unless its
/// response had `no-store`. After a 4xx status other than 429, more than five redirects, or an
/// invalid redirect, the copy is removed.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use http::{HeaderMap, StatusCode};
/// use tower_robots::source::fetch::{CrawlerCache, FetchOutcome};
///
/// let now = SystemTime::now();
/// let mut cache = CrawlerCache::new("https://example.com")?;
/// assert!(cache.is_due(now));
/// let file = "User-agent: *\nDisallow: /x\n";
/// cache.record(FetchOutcome::of(StatusCode::OK, &HeaderMap::new(), file, now), now);
/// assert!(cache.allows("OurBot/2.0", "https://example.com/products", now));
/// assert!(!cache.allows("OurBot/2.0", "https://example.com/x", now));
/// assert!(!cache.allows("OurBot/2.0", "https://other.example/products", now));
/// assert_eq!(cache.next_fetch(), Some(now + Duration::from_secs(24 * 3600)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct CrawlerCache {
    site: Origin,
    known: CachedAnswer,
    fresh_until: Option<SystemTime>,
    failing: Option<Failing>,
    /// The rules of the copy, compiled for the first agent that was passed to `allows`.
    rules: OnceLock<Arc<(Box<[u8]>, AgentRules)>>,
    /// Whether the rules of the last copy apply while fetches fail, which RFC 9309 permits (section
    /// 2.4). By default, the value is `false`: everything is disallowed during the first 30 days of
    /// failures (section 2.3.1.4).
    pub goes_by_last_copy: bool,
}

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

/// A series of failed fetches. A success or a long pause ends the series.
#[derive(Clone, Copy, Debug)]
struct Failing {
    since: SystemTime,
    failures: u32,
    retry: SystemTime,
}

impl Failing {
    /// Reports whether the series has ended, because no fetch was attempted for a day after
    /// `retry`. Without attempts, it is unknown whether the server still fails.
    fn has_ended(&self, now: SystemTime) -> bool {
        now.duration_since(self.retry).is_ok_and(|time| time > DAY)
    }
}

/// What the robots.txt allows the crawler to fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CrawlerReading<'a> {
    /// The crawler must first fetch robots.txt, because its rules are still unknown.
    Unknown,
    /// The crawler may fetch the paths that the rules in robots.txt allow. Contains the bytes of
    /// robots.txt.
    Rules(&'a Arc<[u8]>),
    /// The crawler may fetch all paths.
    AllowAll,
    /// The crawler must not fetch any path, because fetches of robots.txt fail. This restriction
    /// ends when a fetch succeeds, or after 30 days in which every attempt has failed.
    DisallowAll,
}

impl CrawlerCache {
    /// Creates an empty cache for the site of a URL, such as `https://example.com`. The path of the
    /// URL is ignored.
    ///
    /// # Errors
    ///
    /// Returns an error if `site` is not an absolute URL.
    pub fn new(site: impl AsRef<str>) -> Result<Self, ValueError> {
        let site = site.as_ref();
        let origin = Origin::of(site).ok_or_else(|| {
            let fault = if site.is_ascii() || cfg!(feature = "idn") {
                "is not the URL of a site: write one such as \"https://example.com\""
            } else {
                OTHER_SCRIPT
            };
            ValueError::new(site, fault)
        })?;
        let (known, fresh_until, failing, rules) = Default::default();
        Ok(Self { site: origin, known, fresh_until, failing, rules, goes_by_last_copy: false })
    }

    /// Records the outcome of a fetch of this site's robots.txt.
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
            // If there is no copy, the request had no validators, so a 304 response is an error.
            FetchOutcome::NotModified(_) | FetchOutcome::Failed(_) => self.fail(None, now),
        }
    }

    /// Returns what the crawler may fetch now.
    pub fn permission(&self, now: SystemTime) -> CrawlerReading<'_> {
        let Some(failing) = self.failing.filter(|_| self.fresh_until.is_none_or(|until| has_passed(until, now))) else {
            return match &self.known {
                CachedAnswer::Nothing => CrawlerReading::Unknown,
                CachedAnswer::Nowhere => CrawlerReading::AllowAll,
                CachedAnswer::Copy { bytes, .. } => CrawlerReading::Rules(bytes),
            };
        };
        let has_failed_long = now.duration_since(failing.since).is_ok_and(|time| time > MAX_DISALLOW_TIME);
        let has_given_up = has_failed_long && !failing.has_ended(now);
        match &self.known {
            CachedAnswer::Copy { bytes, is_storable: true, .. } if has_given_up || self.goes_by_last_copy => {
                CrawlerReading::Rules(bytes)
            }
            _ if has_given_up => CrawlerReading::AllowAll,
            _ => CrawlerReading::DisallowAll,
        }
    }

    /// Reports whether the crawler may fetch a path or URL of this site now. A crawler may always
    /// fetch the site's `/robots.txt` (RFC 9309, section 2.2.2), but no other path before the first
    /// outcome is recorded. Returns `false` for a URL of another site, because this robots.txt does
    /// not apply to it. Like browsers, reads `//host/path`, `/\host/path` and `https:host/path` as
    /// URLs of `host`. If a path begins with `//`, pass the whole URL.
    ///
    /// `agent` has the same meaning as in [`RobotsTxt::for_agent`], and `url` as in
    /// [`AgentRules::allows`]. If [`is_due`](Self::is_due) has returned `true` for more than an
    /// hour without a new outcome, only `/robots.txt` may be fetched, because the copy is older
    /// than RFC 9309 permits (section 2.4).
    ///
    /// The rules for the agent of the first call are compiled only once. For any other agent, the
    /// rules are compiled at each call, so a crawler with two agents should use a separate cache
    /// for each agent.
    pub fn allows(&self, agent: impl AsRef<[u8]>, url: impl AsRef<[u8]>, now: SystemTime) -> bool {
        let url = self.path_or_url(url.as_ref());
        let (agent, url) = (agent.as_ref(), &*url);
        let is_path = url.starts_with(b"/") || Authority::of_url(url).is_none();
        if !is_path && !self.site.covers(&String::from_utf8_lossy(url)) {
            return false;
        }
        if self.is_forgotten(now) {
            return RequestPath::is_robots_txt_url(url);
        }
        match self.permission(now) {
            CrawlerReading::AllowAll => true,
            CrawlerReading::Unknown | CrawlerReading::DisallowAll => RequestPath::is_robots_txt_url(url),
            CrawlerReading::Rules(bytes) => {
                let compile = || RobotsTxt::from(Arc::clone(bytes)).for_agent(agent);
                let (first, rules) = &**self.rules.get_or_init(|| Arc::new((agent.into(), compile())));
                if **first == *agent { rules.allows(url) } else { compile().allows(url) }
            }
        }
    }

    /// If browsers would find a host in the link, returns the link as a URL with `://`, even if its
    /// slashes are missing or wrong. Otherwise, the link is a path, which is returned without
    /// leading white space.
    fn path_or_url<'l>(&self, link: &'l [u8]) -> Cow<'l, [u8]> {
        // Browsers read `\` as `/`, and remove white space at the start, tabs and line breaks.
        let is_slash = |byte: &u8| matches!(byte, b'/' | b'\\' | b'\t' | b'\r' | b'\n');
        let link = link.trim_ascii_start();
        let (scheme, rest) = match (link, memchr::memchr(b':', link)) {
            ([first, second, ..], _) if is_slash(first) && is_slash(second) => (self.site.scheme.as_bytes(), link),
            (_, Some(colon)) if has_scheme(&String::from_utf8_lossy(link)) => (&link[..colon], &link[colon + 1..]),
            _ => return Cow::Borrowed(link),
        };
        let host = rest.iter().position(|byte| !is_slash(byte)).unwrap_or(rest.len());
        Cow::Owned([scheme, b"://", &rest[host..]].concat())
    }

    fn is_forgotten(&self, now: SystemTime) -> bool {
        let stale_since = self.fresh_until.filter(|_| self.failing.is_none());
        stale_since.is_some_and(|since| {
            was_set_back(since, now) || now.duration_since(since).is_ok_and(|time| time > MAX_STALE)
        })
    }

    /// Returns when the file should be fetched again; `None` if nothing was fetched yet.
    pub fn next_fetch(&self) -> Option<SystemTime> {
        self.failing.map_or(self.fresh_until, |failing| Some(failing.retry))
    }

    /// Reports whether the file should be fetched now.
    pub fn is_due(&self, now: SystemTime) -> bool {
        self.next_fetch().is_none_or(|next| has_passed(next, now))
    }

    /// Returns when the fetches began to fail; `None` if the last fetch succeeded. If a due fetch
    /// was not attempted for more than a day, the next failure begins a new series.
    pub fn failing_since(&self) -> Option<SystemTime> {
        self.failing.map(|failing| failing.since)
    }

    /// Returns the validators for the next request; `None` if there is no copy, or if its response
    /// had no validators.
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
        // A longer `max-age` has no effect, because it is usually a default for all files of a server.
        self.fresh_until = Some(later(now, freshness.private().unwrap_or(LIFETIME).min(LIFETIME)));
    }

    fn fail(&mut self, retry_after: Option<Duration>, now: SystemTime) {
        let before = self.failing.filter(|failing| !failing.has_ended(now));
        let failures = before.map_or(0, |failing| failing.failures).saturating_add(1);
        let pause = freshness::backoff_pause(failures, RETRY_FIRST, RETRY_MOST);
        let asked_for = retry_after.unwrap_or_default().min(DAY);
        let since = before.map_or(now, |failing| failing.since.min(now));
        self.failing = Some(Failing { since, failures, retry: later(now, pause.max(asked_for)) });
    }
}

/// Reports whether the end of a lifetime or pause has come. Also returns `true` if the clock was
/// set back since the end was computed, because the elapsed time is unknown.
fn has_passed(time: SystemTime, now: SystemTime) -> bool {
    time <= now || was_set_back(time, now)
}

/// Reports whether `end` is so far in the future that the clock must have been set back: lifetimes
/// and pauses last at most a day. One more hour is tolerated, because clocks are often adjusted.
fn was_set_back(end: SystemTime, now: SystemTime) -> bool {
    end.duration_since(now).is_ok_and(|rest| rest > DAY + MAX_STALE)
}

/// Reports whether `status` is a client error other than 429, which asks clients to retry later.
fn is_client_error(status: StatusCode) -> bool {
    status.is_client_error() && status != StatusCode::TOO_MANY_REQUESTS
}

#[cfg(test)]
mod tests;
