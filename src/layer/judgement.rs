//! What was judged of a request, for a service that has a word to say before it is answered.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::answer::Answer;
use super::enforce::{Enforcer, Judged};
use super::original::OriginalRequest;
use super::pace::PacedRequest;

/// What the layer has judged of a request: its answer, or the bucket that it takes from first.
///
/// For a service that counts requests in a store which several processes share:
///
/// ```
/// use std::time::Duration;
/// use tower_robots::layer::{OriginalRequest, Outcome, RobotsLayer};
/// use tower_robots::live::LiveRobots;
/// use tower_robots::policy::{Mode, Policy, RateMode};
///
/// let live = LiveRobots::inline("User-agent: GPTBot\nCrawl-delay: 10\n")
///     .policy(Policy::builder().mode(Mode::Refuse).rate(RateMode::Refuse).build())
///     .open()?;
/// let request = http::Request::get("/").header("user-agent", "GPTBot/1.2").body(())?;
/// let request = OriginalRequest::of(&request);
/// let judgement = RobotsLayer::new(live).counted_in_store().judge(&request);
/// let paced = judgement.paced().ok_or("limited")?;
/// assert_eq!(paced.key, "gptbot claimed");
/// assert_eq!((paced.interval.as_secs(), paced.burst.get()), (10, 5));
/// // What a store might say: too soon by seven seconds.
/// let answer = judgement.answer(&request, Some(Duration::from_secs(7)));
/// assert!(matches!(answer.outcome, Outcome::Respond(refusal) if refusal.status() == 429));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub struct Judgement {
    pub(super) enforcer: Arc<Enforcer>,
    pub(super) judged: Judged,
}

impl Judgement {
    /// The bucket that the request takes from; `None` where it is not limited. Of one that has a bucket observers are
    /// notified once it is answered; of any other they have been.
    pub const fn paced(&self) -> Option<&PacedRequest> {
        match &self.judged {
            Judged::Answer(_) => None,
            Judged::Paced(paced) => Some(&paced.request),
        }
    }

    /// The answer to the request, the same that was judged. `wait`: how long it has to wait, as the store says; zero where it
    /// passes. With `None` it is counted here. What passes elsewhere is counted here too, so that the bucket of this process is no
    /// fuller than the other when it has to count alone.
    pub fn answer(self, request: &OriginalRequest<'_>, wait: Option<Duration>) -> Answer {
        self.enforcer.answer_judged(self.judged, *request, wait)
    }
}

impl fmt::Debug for Judgement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.judged {
            Judged::Answer(answer) => answer.fmt(f),
            Judged::Paced(paced) => paced.request.fmt(f),
        }
    }
}
