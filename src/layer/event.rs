//! The event that observers receive for a request, and the types of the application's callbacks. A
//! callback either finds the target, address, agent or sender of a request before the decision, or
//! runs after the decision.

use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use http::header::{COOKIE, REFERER};
use http::{Extensions, HeaderName, HeaderValue, Response, StatusCode, Uri};

use super::grpc;
use super::original::OriginalRequest;
use super::record::Record;
use crate::agent::{Agent, Identity};
use crate::live::LiveRobots;
use crate::policy::HumanEvidence;
#[cfg(feature = "tracing")]
use crate::policy::Reason;
#[cfg(feature = "tracing")]
use crate::rules::Access;
use crate::rules::RobotsTxt;

/// Names of the fields that "Fetch Metadata Request Headers", section 2, defines.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
const SEC_FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

pub(super) fn human_evidence<'a>(request: &OriginalRequest<'a>) -> HumanEvidence<'a> {
    let field = |name: &HeaderName| request.headers.get(name).map_or(&b""[..], |value| value.as_bytes());
    let cookies = request.headers.get_all(COOKIE).into_iter();
    let evidence = cookies.fold(HumanEvidence::default(), |evidence, value| evidence.cookies(value.as_bytes()));
    let site = field(&SEC_FETCH_SITE);
    if site.is_empty() {
        // Browsers send `Sec-Fetch-Site`; most crawlers do not. So without `Sec-Fetch-Site`,
        // neither `Referer` nor another `Sec-Fetch-*` field is evidence that a person sent the
        // request.
        return evidence;
    }
    evidence
        .fetch_metadata(site, field(&SEC_FETCH_MODE), field(&SEC_FETCH_DEST))
        .referer(field(&REFERER), request.host().unwrap_or_default().as_bytes())
}

/// A request and its record, for [`RobotsLayer::on_disallowed`](super::RobotsLayer::on_disallowed),
/// [`RobotsLayer::on_crawler`](super::RobotsLayer::on_crawler) and
/// [`RobotsLayer::refuse_with`](super::RobotsLayer::refuse_with).
///
/// [`Record`] contains no references, because it is also stored in extensions, which accept only
/// `'static` values.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Event<'a> {
    /// The agent, the deciding rule, and the action taken.
    pub record: &'a Record,
    /// The request, with the target that was judged.
    pub request: OriginalRequest<'a>,
    /// The robots.txt whose rules apply to the request.
    pub robots: &'a RobotsTxt,
    /// The HTTP status code of the layer's own response, which is a refusal or the robots.txt;
    /// `None` if the request is forwarded. The refusal of a gRPC call has status 200.
    pub status: Option<StatusCode>,
    /// The gRPC status of a refused call, such as 7 for `PERMISSION_DENIED`.
    pub grpc_status: Option<u16>,
}

impl<'a> Event<'a> {
    pub(super) const fn new(record: &'a Record, request: OriginalRequest<'a>, robots: &'a RobotsTxt) -> Self {
        Self { record, request, robots, status: None, grpc_status: None }
    }

    pub(super) fn set_response<B>(&mut self, response: &Response<B>) {
        if response.extensions().get::<Provisional>().is_some() {
            return;
        }
        self.status = Some(response.status());
        // The HTTP status of a gRPC response is 200 even if the call fails (gRPC over HTTP/2,
        // "Responses").
        self.grpc_status =
            (response.status() == StatusCode::OK).then(|| grpc::grpc_status(response.headers())).flatten();
    }
}

/// Response extension that marks a refusal which another server may replace with its own response.
/// The [`Event`] of such a request contains no status, because the final status is not known yet.
#[derive(Clone, Copy, Debug)]
pub struct Provisional;

// The callbacks of the application. If a callback that finds the target, address or agent panics,
// the request passes. If a callback that runs after the decision panics, the decision is unchanged.
pub(super) type TargetFrom = Arc<dyn for<'e> Fn(&'e Extensions) -> Option<&'e Uri> + Send + Sync>;
pub(super) type AddressFrom = Arc<dyn Fn(&Extensions) -> Option<IpAddr> + Send + Sync>;
pub(super) type AgentFrom = Arc<dyn for<'e> Fn(&'e Extensions) -> Option<&'e [HeaderValue]> + Send + Sync>;
pub(super) type ExemptIf = Arc<dyn Fn(&Extensions) -> bool + Send + Sync>;
pub(super) type IdentityFrom = Arc<dyn Fn(&Extensions) -> Option<Identity> + Send + Sync>;
#[cfg(feature = "verify")]
pub(super) type ListenerFrom = Arc<dyn Fn(&Extensions) -> Option<Arc<str>> + Send + Sync>;
pub(super) type Observer = Arc<dyn Fn(&Event<'_>) + Send + Sync>;
/// Creates the response to a refused request, with its final status.
pub(super) type RefuseWith = Arc<dyn Fn(&Event<'_>) -> Response<Bytes> + Send + Sync>;

#[derive(Clone, Debug, Default)]
pub(super) struct Sender {
    /// The identity of the sender; `None` if senders are not checked.
    pub(super) identity: Option<Identity>,
    /// The crawler that signed the request. This field is set only if the `User-Agent` does not
    /// name a crawler. If the field is set, the rules for the signer apply.
    pub(super) signer: Option<Agent>,
}

impl Sender {
    pub(super) const fn checked(identity: Identity) -> Self {
        Self { identity: Some(identity), signer: None }
    }

    pub(super) fn agents<'a>(&'a self, claimed: &'a [Agent]) -> &'a [Agent] {
        self.signer.as_ref().map_or(claimed, std::slice::from_ref)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Interest {
    /// The observer receives disallowed requests, requests that come before the crawl delay has
    /// passed, and requests of impostors.
    Reported,
    /// The observer receives all requests that have a record.
    Crawlers,
}

/// The observers of a layer. If an observer panics, the other observers still receive the event.
/// Cloning the list is cheap.
#[derive(Clone, Default)]
pub(super) struct Observers {
    list: Arc<Vec<(Interest, Observer)>>,
    /// Whether an outer layer has already logged the decision that these observers receive.
    #[cfg(feature = "tracing")]
    is_traced: bool,
}

impl Observers {
    pub(super) fn add(&mut self, interest: Interest, observer: Observer) {
        Arc::make_mut(&mut self.list).push((interest, observer));
    }

    pub(super) fn observe_crawlers(&self) -> bool {
        self.list.iter().any(|(interest, _)| *interest == Interest::Crawlers)
    }

    pub(super) fn notify(&self, live: &LiveRobots, event: &Event<'_>) {
        let is_reported = event.record.reason.is_reported();
        #[cfg(feature = "tracing")]
        if is_reported && !self.is_traced {
            call_callback(live, || trace(event));
        }
        for (interest, observer) in &*self.list {
            if is_reported || *interest == Interest::Crawlers {
                call_callback(live, || observer(event));
            }
        }
    }

    pub(super) fn are_subset_of(&self, others: &Self) -> bool {
        Arc::ptr_eq(&self.list, &others.list) || self.without(others).list.is_empty()
    }

    pub(super) fn without(&self, others: &Self) -> Self {
        let is_other = |own: &Observer| others.list.iter().any(|(_, it)| Arc::ptr_eq(own, it));
        Self {
            list: Arc::new(self.list.iter().filter(|(_, own)| !is_other(own)).cloned().collect()),
            #[cfg(feature = "tracing")]
            is_traced: true,
        }
    }

    pub(super) fn with(&self, others: &Self) -> Self {
        let mut all = self.clone();
        Arc::make_mut(&mut all.list).extend(others.without(self).list.iter().cloned());
        all
    }
}

/// Logs the event with `tracing`. The path is logged without the query, because the query may
/// contain secrets.
#[cfg(feature = "tracing")]
fn trace(event: &Event<'_>) {
    let record = event.record;
    let path = event.request.target().split(|byte| *byte == b'?').next().unwrap_or_default();
    let message = match (record.reason, record.access) {
        (Reason::Limited | Reason::LimitObserved, _) => {
            "the request comes sooner than the crawl delay of its group allows"
        }
        (_, Some(Access::Disallow)) => "robots.txt disallows the request",
        // The request was tagged or refused because of its sender, even if the rules allow the
        // request.
        _ => "an impostor sent the request",
    };
    let limit = record.limit.as_deref();
    tracing::info!(
        target: "tower_robots::layer",
        agent = record.name(),
        identity = record.identity.map(|identity| identity.to_string()),
        host = event.request.host(),
        path = %path.escape_ascii(),
        // `decision` and `would` have equal values, unless the mode `Refuse` would cause a
        // different action.
        decision = if record.reason == Reason::Limited { "limit" } else { record.action.as_str() },
        reason = record.reason.as_str(),
        would = record.would.as_str(),
        // If the request is rate-limited, `line` is the line number of the crawl delay, and `rule`
        // is omitted, because the matching rule allows the request.
        rule = record.rule.as_deref().filter(|_| limit.is_none()),
        line = limit.map_or(record.line, |limit| Some(limit.line)),
        delay = limit.map(|limit| limit.interval.as_secs_f64()),
        // The waiting time in seconds, rounded up to a multiple of 0.001.
        wait = limit.map(|limit| (limit.wait.as_secs_f64() * 1e3).ceil() / 1e3),
        "{message}"
    );
}

/// Calls a callback that runs after the decision. If the callback panics, counts the panic and
/// returns `None`; the panic hook has already reported the panic.
pub(super) fn call_callback<T>(live: &LiveRobots, function: impl FnOnce() -> T) -> Option<T> {
    let called = catch_unwind(AssertUnwindSafe(function)).ok();
    if called.is_none() {
        live.site.counts.callback_faults.fetch_add(1, Ordering::Relaxed);
    }
    called
}
