//! Decides about a request of a site, once: the evidence about its sender, the judgement of the layer, the word of a store of rates
//! where the request has a pace, the answer, and the counts. Requests that go on to a backend and questions of other proxies come
//! here.

mod shared_pace;

use std::sync::Arc;

use tower_robots::layer::{Answer, OriginalRequest, RobotsLayer, VerifyLayer};

pub(crate) use self::shared_pace::PaceStore;
use crate::counting::{CountedRequest, OutcomeCounts};

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
}

/// Who answers a request for `/robots.txt`.
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
        let judgement = match robots_txt {
            RobotsTxtFrom::Site => self.layer.judge(request),
            RobotsTxtFrom::AskingProxy => self.layer.decide(request),
        };
        let wait = match (&self.store, judgement.paced()) {
            // Boxed: nearly no request waits, and all would be as large as those that do.
            (Some(store), Some(paced)) => Box::pin(store.ask(paced)).await,
            _ => None,
        };
        let answer = judgement.answer(request, wait);
        self.counts.decided(counted, &answer);
        answer
    }
}
