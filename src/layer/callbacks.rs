//! The application's own functions: those that find target, address and agent, and those that run after the decision.
//!
//! A panic in one of the former passes the request. A panic in one of the latter leaves the decision as it is.

use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bytes::Bytes;
use http::{Extensions, HeaderValue, Response, Uri};

use super::event::Event;
use crate::live::LiveRobots;

pub(super) type TargetFrom = Arc<dyn for<'e> Fn(&'e Extensions) -> Option<&'e Uri> + Send + Sync>;
pub(super) type AddressFrom = Arc<dyn Fn(&Extensions) -> Option<IpAddr> + Send + Sync>;
pub(super) type AgentFrom = Arc<dyn for<'e> Fn(&'e Extensions) -> Option<&'e [HeaderValue]> + Send + Sync>;
pub(super) type Observer = Arc<dyn Fn(&Event<'_>) + Send + Sync>;
pub(super) type RefuseWith = Arc<dyn Fn(&Event<'_>) -> Response<Bytes> + Send + Sync>;

/// Notifies the observers; a panic in one does not keep the event from the others.
pub(super) fn notify(observers: &[Observer], live: &LiveRobots, event: &Event<'_>) {
    #[cfg(feature = "tracing")]
    guarded(live, || {
        let record = event.record();
        tracing::info!(
            agent = record.agent(),
            decision = record.action().as_str(),
            reason = record.reason().as_str(),
            line = record.line(),
            "robots.txt disallows the request"
        );
    });
    for observer in observers {
        guarded(live, || observer(event));
    }
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
