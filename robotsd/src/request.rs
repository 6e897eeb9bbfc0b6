//! Decides about requests to sites. The client sends the request to robotsd, or another proxy
//! describes the client's request in a decision request.
//!
//! Several processes can share a store that counts the requests of rate-limited crawlers. If the
//! store does not respond, the process counts the request itself. If a rate limit is only observed
//! and not enforced, requests do not wait for the store.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use tower_robots::layer::RobotsLayer;
use tower_robots::parts::{Answer, OriginalRequest, Outcome, RateLimitedRequest, VerifyLayer};
use tower_robots::policy::{RateLimit, RateMode};

use crate::counting::{CountedRequest, OutcomeCounts, SendingServices};
use crate::shared_rate::{SharedBucket, SharedKey, SharedRate, SharedVerdict};

/// Decides about the requests to one site. Each worker has its own `SiteJudge` for a site.
#[derive(Clone, Debug)]
pub(crate) struct SiteJudge {
    /// Name of the site in the access log.
    pub(crate) name: Arc<str>,
    pub(crate) counts: Arc<OutcomeCounts>,
    pub(crate) layer: RobotsLayer,
    pub(crate) evidence: VerifyLayer,
    /// The store that counts requests of crawlers; `None` if this process counts them itself.
    pub(crate) store: Option<PaceStore>,
    /// The services that refer visitors; `None` if the board is disabled.
    pub(crate) services: Option<Arc<SendingServices>>,
}

/// The server that responds to requests for `/robots.txt`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RobotsTxtFrom {
    Site,
    /// Another proxy, which only asks whether the request is allowed.
    AskingProxy,
}

impl SiteJudge {
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
            // The future is boxed, so that the many requests that do not wait for the store need no
            // memory for it.
            (Some(store), Some(rate_limited)) => Box::pin(store.ask(rate_limited)).await,
            _ => None,
        };
        let answer = judgement.respond(wait);
        // Referred visitors and fetched pages are counted only if the response is content of the
        // site.
        if let (Some(services), Outcome::Pass | Outcome::Tag) = (&self.services, &answer.outcome) {
            counted.set_service(services.of_request(request, answer.record.as_deref()));
            if let Some(record) = answer.record.as_deref().filter(|_| is_for_page(request)) {
                counted.set_reader(record);
            }
        }
        self.counts.count_decision(counted, &answer);
        answer
    }
}

fn is_for_page(request: &OriginalRequest<'_>) -> bool {
    *request.method == Method::GET && !RateLimit::is_for_asset(request.target())
}

#[derive(Clone, Debug)]
pub(crate) struct PaceStore {
    pub(crate) store: SharedRate,
    pub(crate) site: Arc<str>,
    /// Whether each host has its own robots.txt.
    pub(crate) has_directory: bool,
}

impl PaceStore {
    /// Asks the store how long the request would have to wait. Returns zero if the request is
    /// allowed, and `None` if the store does not respond.
    async fn ask(&self, rate_limited: &RateLimitedRequest) -> Option<Duration> {
        // The key contains the name of the robots.txt file without its folder, because the folder
        // may differ between machines.
        let file = Path::new(&rate_limited.origin).file_name().filter(|_| self.has_directory).unwrap_or_default();
        let key = SharedKey::new(&[self.site.as_bytes(), file.as_encoded_bytes(), rate_limited.key.as_bytes()]);
        let bucket = SharedBucket::new(rate_limited.interval, rate_limited.burst.get());
        let verdict = match rate_limited.mode {
            RateMode::Refuse => self.store.spend(key, bucket).await,
            _ => self.store.note(key, bucket),
        };
        match verdict {
            SharedVerdict::Allow => Some(Duration::ZERO),
            SharedVerdict::Deny { wait } => Some(wait.max(Duration::from_micros(1))),
            SharedVerdict::Unknown => None,
        }
    }
}
