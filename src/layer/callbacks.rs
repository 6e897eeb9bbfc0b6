//! The application's own functions: those that find target, address and agent, and those that run after the decision.
//!
//! A panic in one of the former passes the request. A panic in one of the latter leaves the decision as it is.

use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bytes::Bytes;
use http::{Extensions, HeaderValue, Response, Uri};

use super::crawler_request::CrawlerRequest;
use super::event::Event;
use crate::live::LiveRobots;

pub(super) type TargetFrom = Arc<dyn for<'e> Fn(&'e Extensions) -> Option<&'e Uri> + Send + Sync>;
pub(super) type AddressFrom = Arc<dyn Fn(&Extensions) -> Option<IpAddr> + Send + Sync>;
pub(super) type AgentFrom = Arc<dyn for<'e> Fn(&'e Extensions) -> Option<&'e [HeaderValue]> + Send + Sync>;
pub(super) type Observer = Arc<dyn Fn(&Event<'_>) + Send + Sync>;
pub(super) type CrawlerObserver = Arc<dyn Fn(&Event<'_, CrawlerRequest>) + Send + Sync>;
pub(super) type RefuseWith = Arc<dyn Fn(&Event<'_>) -> Response<Bytes> + Send + Sync>;

/// Notifies the observers; a panic in one does not keep the event from the others.
pub(super) fn notify(observers: &[Observer], live: &LiveRobots, event: &Event<'_>) {
    #[cfg(feature = "tracing")]
    guarded(live, || trace(event));
    for observer in observers {
        guarded(live, || observer(event));
    }
}

/// Notifies the observers of all requests of crawlers.
pub(super) fn notify_of_crawler(observers: &[CrawlerObserver], live: &LiveRobots, event: &Event<'_, CrawlerRequest>) {
    for observer in observers {
        guarded(live, || observer(event));
    }
}

/// The query is left out: it may hold secrets.
#[cfg(feature = "tracing")]
fn trace(event: &Event<'_>) {
    let record = event.record();
    let path = event.target().split(|octet| *octet == b'?').next().unwrap_or_default();
    tracing::info!(
        agent = record.agent(),
        host = event.host(),
        path = %path.escape_ascii(),
        decision = record.action().as_str(),
        reason = record.reason().as_str(),
        rule = record.rule(),
        line = record.line(),
        "robots.txt disallows the request"
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
