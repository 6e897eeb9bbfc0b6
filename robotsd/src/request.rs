//! Decides about a request of a site, once: the evidence about its sender, the judgement of the layer, the word of a store of rates
//! where the request has a pace, the answer, and the counts. Requests that go on to a backend and questions of other proxies come
//! here.
//!
//! If the store says nothing, the process counts by itself. A request that is only observed waits for nothing.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use tower_robots::layer::RobotsLayer;
use tower_robots::parts::{Answer, OriginalRequest, PacedRequest, VerifyLayer};
use tower_robots::policy::{Pace, RateMode};

use crate::counting::{CountedRequest, OutcomeCounts, SendingServices};
use crate::shared_rate::{SharedBucket, SharedKey, SharedRate, SharedVerdict};

/// Decides about the requests of a site on one worker.
#[derive(Clone, Debug)]
pub(crate) struct SiteJudge {
    /// For the log of requests.
    pub(crate) name: Arc<str>,
    /// Those of the worker.
    pub(crate) counts: Arc<OutcomeCounts>,
    /// Writes to the log and says who sends the request of a crawler.
    pub(crate) layer: RobotsLayer,
    pub(crate) evidence: VerifyLayer,
    /// None where this process counts for itself.
    pub(crate) store: Option<PaceStore>,
    /// Those that send visitors; none without a board.
    pub(crate) services: Option<Arc<SendingServices>>,
}

/// The party that answers a request for `/robots.txt`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RobotsTxtFrom {
    Site,
    /// Another server, which only asks whether the request goes on.
    AskingProxy,
}

impl SiteJudge {
    /// The answer to a request that has begun to be counted.
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
        let wait = match (&self.store, judgement.paced()) {
            // Boxed: nearly no request waits, and all would be as large as those that do.
            (Some(store), Some(paced)) => Box::pin(store.ask(paced)).await,
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

/// Whether a request is for a page, and no part of one.
fn is_for_page(request: &OriginalRequest<'_>) -> bool {
    *request.method == Method::GET && !Pace::is_for_asset(request.target())
}

/// The store, and what tells the buckets of a site from those of others in it.
#[derive(Clone, Debug)]
pub(crate) struct PaceStore {
    pub(crate) store: SharedRate,
    pub(crate) site: Arc<str>,
    /// Whether each host has a robots.txt of its own.
    pub(crate) has_directory: bool,
}

impl PaceStore {
    /// How long a request has to wait; zero where it passes, and none where the store does not say.
    async fn ask(&self, paced: &PacedRequest) -> Option<Duration> {
        // The folder may be another one at each process; the file is named for its host at all of them.
        let file = Path::new(&paced.origin).file_name().filter(|_| self.has_directory).unwrap_or_default();
        let key = SharedKey::new(&[self.site.as_bytes(), file.as_encoded_bytes(), paced.key.as_bytes()]);
        let bucket = SharedBucket::new(paced.interval, paced.burst.get());
        let said = match paced.mode {
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
