//! Decides about a site's request: collects evidence about its sender, asks the layer for its
//! judgement and, for a rate-limited request, the shared rate store; then answers and counts.
//! Handles both requests for a backend and questions of other proxies.
//!
//! If the store does not answer, the process counts by itself. A request that is only observed
//! waits for nothing.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use tower_robots::layer::RobotsLayer;
use tower_robots::parts::{Answer, OriginalRequest, RateLimitedRequest, VerifyLayer};
use tower_robots::policy::{RateLimit, RateMode};

use crate::counting::{CountedRequest, OutcomeCounts, SendingServices};
use crate::shared_rate::{SharedBucket, SharedKey, SharedRate, SharedVerdict};

/// Decides about the requests of a site on one worker.
#[derive(Clone, Debug)]
pub(crate) struct SiteJudge {
    /// Name of the site in the access log.
    pub(crate) name: Arc<str>,
    /// Counters of this worker.
    pub(crate) counts: Arc<OutcomeCounts>,
    /// Judges requests, writes to the log, and identifies the crawler that sends a request.
    pub(crate) layer: RobotsLayer,
    pub(crate) evidence: VerifyLayer,
    /// `None` if this process counts for itself.
    pub(crate) store: Option<PaceStore>,
    /// Services that refer visitors; `None` if the board is disabled.
    pub(crate) services: Option<Arc<SendingServices>>,
}

/// Where a response to `/robots.txt` comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RobotsTxtFrom {
    Site,
    /// Another server, which only asks whether the request is allowed.
    AskingProxy,
}

impl SiteJudge {
    /// Answers a request whose counting has begun.
    pub(crate) async fn answer(
        &self,
        request: &OriginalRequest<'_>,
        robots_txt: RobotsTxtFrom,
        counted: &mut CountedRequest,
    ) -> Answer {
        self.evidence.evidence(request).await;
        let original = match robots_txt {
            RobotsTxtFrom::Site => *request,
            RobotsTxtFrom::AskingProxy => request.answered_elsewhere(),
        };
        let judgement = self.layer.decide(&original);
        let wait = match (&self.store, judgement.rate_limited()) {
            // Boxed: nearly no request waits, and otherwise all would need the memory of those that
            // do.
            (Some(store), Some(rate_limited)) => Box::pin(store.ask(rate_limited)).await,
            _ => None,
        };
        let answer = judgement.respond(wait);
        if let Some(services) = &self.services {
            counted.sent_by(services.of_request(request, answer.record.as_deref()));
            if let Some(record) = answer.record.as_deref().filter(|_| is_for_page(request)) {
                counted.read_by(record);
            }
        }
        self.counts.decided(counted, &answer);
        answer
    }
}

/// Reports whether a request is for a page rather than for one of its assets.
fn is_for_page(request: &OriginalRequest<'_>) -> bool {
    *request.method == Method::GET && !RateLimit::is_for_asset(request.target())
}

/// The shared store, and the prefix that separates the buckets of this site from others in it.
#[derive(Clone, Debug)]
pub(crate) struct PaceStore {
    pub(crate) store: SharedRate,
    pub(crate) site: Arc<str>,
    /// Whether each host has its own robots.txt.
    pub(crate) has_directory: bool,
}

impl PaceStore {
    /// Asks the store how long a request has to wait; zero if it passes, `None` if the store does
    /// not answer.
    async fn ask(&self, rate_limited: &RateLimitedRequest) -> Option<Duration> {
        // The folder may differ between processes, but the file is named after its host in all of
        // them.
        let file = Path::new(&rate_limited.origin).file_name().filter(|_| self.has_directory).unwrap_or_default();
        let key = SharedKey::new(&[self.site.as_bytes(), file.as_encoded_bytes(), rate_limited.key.as_bytes()]);
        let bucket = SharedBucket::new(rate_limited.interval, rate_limited.burst.get());
        let said = match rate_limited.mode {
            RateMode::Refuse => self.store.spend(key, bucket).await,
            _ => self.store.note(key, bucket),
        };
        match said {
            SharedVerdict::Allow => Some(Duration::ZERO),
            SharedVerdict::Deny { wait } => Some(wait.max(Duration::from_micros(1))),
            SharedVerdict::Unknown => None,
        }
    }
}
