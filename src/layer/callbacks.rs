//! The application's own functions: those that find target, address and agent, and those that run after the decision.
//!
//! A panic in one of the former passes the request. A panic in one of the latter leaves the decision as it is.

use std::fmt;
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Extensions, HeaderValue, Response, Uri};

use super::crawler_request::CrawlerRequest;
use super::event::Event;
use crate::agent::Identity;
use crate::live::LiveRobots;
#[cfg(feature = "tracing")]
use crate::policy::Reason;
#[cfg(feature = "tracing")]
use crate::rules::Access;

pub(super) type TargetFrom = Arc<dyn for<'e> Fn(&'e Extensions) -> Option<&'e Uri> + Send + Sync>;
pub(super) type AddressFrom = Arc<dyn Fn(&Extensions) -> Option<IpAddr> + Send + Sync>;
pub(super) type AgentFrom = Arc<dyn for<'e> Fn(&'e Extensions) -> Option<&'e [HeaderValue]> + Send + Sync>;
pub(super) type TooSoonFrom = Arc<dyn Fn(&Extensions) -> Option<Duration> + Send + Sync>;
pub(super) type IdentityFrom = Arc<dyn Fn(&Extensions) -> Option<Identity> + Send + Sync>;
#[cfg(feature = "verify")]
pub(super) type ListenerFrom = Arc<dyn Fn(&Extensions) -> Option<Arc<str>> + Send + Sync>;
pub(super) type Observer = Arc<dyn Fn(&Event<'_>) + Send + Sync>;
pub(super) type CrawlerObserver = Arc<dyn Fn(&Event<'_, CrawlerRequest>) + Send + Sync>;
pub(super) type RefuseWith = Arc<dyn Fn(&Event<'_>) -> Response<Bytes> + Send + Sync>;

/// The observers of a layer. A panic in one does not keep the event from the others. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Observers {
    disallowed: Arc<Vec<Observer>>,
    crawlers: Arc<Vec<CrawlerObserver>>,
    /// A layer outside has written the trace event of the decision.
    #[cfg(feature = "tracing")]
    is_traced: bool,
}

impl Observers {
    /// Adds an observer of the requests that robots.txt disallows.
    pub(super) fn add(&mut self, observer: Observer) {
        Arc::make_mut(&mut self.disallowed).push(observer);
    }

    /// Adds an observer of all requests of crawlers.
    pub(super) fn add_for_crawlers(&mut self, observer: CrawlerObserver) {
        Arc::make_mut(&mut self.crawlers).push(observer);
    }

    pub(super) fn follow_crawlers(&self) -> bool {
        !self.crawlers.is_empty()
    }

    pub(super) fn notify(&self, live: &LiveRobots, event: &Event<'_>) {
        #[cfg(feature = "tracing")]
        if !self.is_traced {
            guarded(live, || trace(event));
        }
        for observer in &*self.disallowed {
            guarded(live, || observer(event));
        }
    }

    pub(super) fn notify_of_crawler(&self, live: &LiveRobots, event: &Event<'_, CrawlerRequest>) {
        for observer in &*self.crawlers {
            guarded(live, || observer(event));
        }
    }
}

/// What a layer inside of another one needs to know of their observers.
#[cfg(feature = "axum08")]
impl Observers {
    /// Whether each of these is one of `others`.
    pub(super) fn are_among(&self, others: &Self) -> bool {
        Arc::ptr_eq(&self.disallowed, &others.disallowed) && Arc::ptr_eq(&self.crawlers, &others.crawlers) || {
            let Self { disallowed, crawlers, .. } = self.without(others);
            disallowed.is_empty() && crawlers.is_empty()
        }
    }

    /// Those of these that are none of `others`.
    pub(super) fn without(&self, others: &Self) -> Self {
        let disallowed = self.disallowed.iter().filter(|own| !others.disallowed.iter().any(|it| Arc::ptr_eq(own, it)));
        let crawlers = self.crawlers.iter().filter(|own| !others.crawlers.iter().any(|it| Arc::ptr_eq(own, it)));
        Self {
            disallowed: Arc::new(disallowed.cloned().collect()),
            crawlers: Arc::new(crawlers.cloned().collect()),
            #[cfg(feature = "tracing")]
            is_traced: true,
        }
    }

    /// Those of both.
    pub(super) fn with(&self, others: &Self) -> Self {
        let mut all = self.clone();
        let Self { disallowed, crawlers, .. } = others.without(self);
        disallowed.iter().cloned().for_each(|observer| all.add(observer));
        crawlers.iter().cloned().for_each(|observer| all.add_for_crawlers(observer));
        all
    }
}

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observers").finish_non_exhaustive()
    }
}

/// Writes a trace event. The query is left out: it may hold secrets.
#[cfg(feature = "tracing")]
fn trace(event: &Event<'_>) {
    let record = event.record();
    let path = event.target().split(|octet| *octet == b'?').next().unwrap_or_default();
    let message = match (record.reason(), record.access()) {
        (Reason::Limited | Reason::LimitObserved, _) => "the request comes sooner than the delay of its group",
        (_, Access::Disallow) => "robots.txt disallows the request",
        // A refusal for the sender may be of a request that robots.txt allows.
        (_, Access::Allow) => "an impostor sends the request",
    };
    tracing::info!(
        target: "tower_robots::layer",
        agent = record.agent(),
        identity = record.identity().map(|identity| identity.to_string()),
        host = event.host(),
        path = %path.escape_ascii(),
        decision = record.action().as_str(),
        reason = record.reason().as_str(),
        rule = record.rule(),
        line = record.line(),
        "{message}"
    );
}

/// The result of a function that runs after the decision; `None`, counted, where it panics. The panic hook has
/// reported it.
pub(super) fn guarded<T>(live: &LiveRobots, function: impl FnOnce() -> T) -> Option<T> {
    let called = catch_unwind(AssertUnwindSafe(function)).ok();
    if called.is_none() {
        live.count_callback_fault();
    }
    called
}
