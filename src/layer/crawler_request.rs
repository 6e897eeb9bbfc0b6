//! A crawler's request, allowed or not, for handlers and observers, and the application's own functions: those that
//! find target, address and agent, and those that run after the decision.

use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use http::header::{COOKIE, REFERER};
use http::{Extensions, HeaderName, HeaderValue, Response, StatusCode, Uri};

use super::grpc;
use super::original::Original;
use super::record::{Record, cut, text, token_name};
use crate::agent::{Agent, Class, Identity};
use crate::live::{Content, LiveRobots, VersionHash};
use crate::policy::{Action, Decision, HumanEvidence, Policy, Reason};

use crate::rules::Access;

/// A crawler's request and its decision: which agent sends it, the verdict, and the action taken.
///
/// In the extensions of the request where [`RobotsLayer::with_crawler_extension`] is set, whether the request is allowed
/// or not; and the record of the [`Event`] of [`RobotsLayer::observe_crawlers`].
///
/// A crawler is an agent that is registered or declares itself one, and any other that a group of the robots.txt applies
/// to. Requests of other agents have no such extension, nor has any while nothing is known of the robots.txt or its
/// enforcement is off.
///
/// The agent is the one the request *claims* to come from; what became of that claim is its
/// [`identity`](Self::identity), where the layer has a `Verifier` or
/// [`RobotsLayer::identity_from`](super::RobotsLayer::identity_from).
///
/// [`RobotsLayer::with_crawler_extension`]: super::RobotsLayer::with_crawler_extension
/// [`RobotsLayer::observe_crawlers`]: super::RobotsLayer::observe_crawlers
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CrawlerRequest {
    /// The agent, with its class, category and product tokens.
    pub agent: Agent,
    /// The name of an agent that is known by its product token alone.
    token: Option<String>,
    /// What became of the claim that the request makes about its sender; `None` where claims are not checked.
    pub identity: Option<Identity>,
    /// The action taken.
    pub action: Action,
    /// The reason for it.
    pub reason: Reason,
    /// The verdict of the rules; `None` where they were not evaluated: no group applies, or the request is exempt, as one for
    /// `/robots.txt` is.
    pub access: Option<Access>,
    /// The path pattern of the rule that decided, as written, if one did: what no rule matches is allowed.
    pub rule: Option<String>,
    /// The line of the rule that decided, if one did.
    pub line: Option<usize>,
    /// The version of the robots.txt.
    pub hash: VersionHash,
}

impl CrawlerRequest {
    /// `None` where no agent of the request is a crawler.
    pub(super) fn new(
        content: &Content,
        policy: &Policy,
        agents: &[Agent],
        identity: Option<Identity>,
        decision: &Decision<'_>,
    ) -> Option<Self> {
        let verdict = decision.verdict;
        let judged = agents.get(decision.agent).filter(|_| verdict.is_some());
        // Where a request is exempt there may be a group for its agent, though no verdict says so.
        let is_exempt = decision.reason == Reason::Exempt;
        let has_group = |agent: &&Agent| is_exempt && policy.has_group(content.rules(), agent);
        let agent = judged
            .or_else(|| agents.iter().find(|agent| is_crawler(agent)))
            .or_else(|| agents.iter().find(has_group))?;
        let rule = verdict.and_then(|verdict| verdict.rule());
        Some(Self {
            agent: agent.clone(),
            token: if agent.crawler().is_some() { None } else { token_name(agent) },
            identity,
            action: decision.action,
            reason: decision.reason,
            access: verdict.map(|verdict| verdict.access()),
            rule: rule.map(|rule| text(rule.pattern())),
            line: rule.map(|rule| rule.line()),
            hash: content.hash(),
        })
    }

    /// The agent's name: that of a crawler, or else its class. Partly from the client: escape it.
    pub fn name(&self) -> &str {
        self.claimed_name().unwrap_or(self.agent.class().as_str())
    }

    fn claimed_name(&self) -> Option<&str> {
        self.agent.crawler().map(cut).or(self.token.as_deref())
    }
}

/// Like a [`Record`]: what a log wants to hold.
#[cfg(feature = "serde")]
impl serde::Serialize for CrawlerRequest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct as _;
        let mut fields = serializer.serialize_struct("CrawlerRequest", 9)?;
        fields.serialize_field("agent", &self.claimed_name())?;
        fields.serialize_field("class", &self.agent.class())?;
        fields.serialize_field("category", &self.agent.category())?;
        fields.serialize_field("identity", &self.identity)?;
        fields.serialize_field("action", &self.action)?;
        fields.serialize_field("reason", &self.reason)?;
        fields.serialize_field("access", &self.access)?;
        fields.serialize_field("rule", &self.rule)?;
        fields.serialize_field("line", &self.line)?;
        fields.end()
    }
}

/// Whether a request may be a crawler's. Most are not, and are known by this.
pub(super) fn may_be_of_crawler(agents: &[Agent], decision: &Decision<'_>) -> bool {
    // Of what no group is for, the agents alone decide.
    decision.reason != Reason::NoGroup || agents.iter().any(is_crawler)
}

/// Whether an agent is a crawler, regardless of the robots.txt.
pub(super) const fn is_crawler(agent: &Agent) -> bool {
    matches!(agent.class(), Class::Registered | Class::Declared)
}

/// Fetch Metadata Request Headers, section 2.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
const SEC_FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// The evidence in the fields of a disallowed request.
pub(super) fn of<'a>(request: &Original<'a>) -> HumanEvidence<'a> {
    let field = |name: &HeaderName| request.headers.get(name).map_or(&b""[..], |value| value.as_bytes());
    let cookies = request.headers.get_all(COOKIE).into_iter();
    let evidence = cookies.fold(HumanEvidence::new(), |evidence, value| evidence.cookies(value.as_bytes()));
    let site = field(&SEC_FETCH_SITE);
    if site.is_empty() {
        // Most crawlers: the other fields only count beside this one.
        return evidence;
    }
    evidence
        .fetch_metadata(site, field(&SEC_FETCH_MODE), field(&SEC_FETCH_DEST))
        .referer(field(&REFERER), request.host().unwrap_or_default().as_bytes())
}

/// A request that robots.txt disallows, for [`RobotsLayer::observe`](super::RobotsLayer::observe) and
/// [`RobotsLayer::refuse_with`](super::RobotsLayer::refuse_with); or, with a
/// [`CrawlerRequest`] as its record, any request of a crawler, for
/// [`RobotsLayer::observe_crawlers`](super::RobotsLayer::observe_crawlers).
///
/// The record is owned, because it stays in the extensions; the request is borrowed.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Event<'a, R = Record> {
    /// The agent, the rule that decided, and the action taken.
    pub record: &'a R,
    /// The request as it was judged.
    pub request: Original<'a>,
    /// The status of the layer's own response: a refusal, or the robots.txt. The refusal of a call of gRPC has 200.
    pub status: Option<StatusCode>,
    /// The status of gRPC in the refusal of a call, such as 7 for `PERMISSION_DENIED`.
    pub grpc_status: Option<u16>,
}

impl<'a, R> Event<'a, R> {
    pub(super) const fn new(record: &'a R, request: Original<'a>) -> Self {
        Self { record, request, status: None, grpc_status: None }
    }

    pub(super) fn set_response<B>(&mut self, response: &Response<B>) {
        self.status = Some(response.status());
        self.grpc_status = grpc::said_status(response.headers());
    }
}

// The application's own functions. A panic in one that finds target, address or agent passes the request. A panic in
// one that runs after the decision leaves the decision as it is.
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

/// Writes a trace event. The query is left out: it may hold secrets.
#[cfg(feature = "tracing")]
fn trace(event: &Event<'_>) {
    let record = event.record;
    let path = event.request.target().split(|octet| *octet == b'?').next().unwrap_or_default();
    let message = match (record.reason, record.access) {
        (Reason::Limited | Reason::LimitObserved, _) => "the request comes sooner than the delay of its group",
        (_, Access::Disallow) => "robots.txt disallows the request",
        // A refusal for the sender may be of a request that robots.txt allows.
        (_, Access::Allow) => "an impostor sends the request",
    };
    tracing::info!(
        target: "tower_robots::layer",
        agent = record.agent(),
        identity = record.identity.map(|identity| identity.to_string()),
        host = event.request.host(),
        path = %path.escape_ascii(),
        decision = record.action.as_str(),
        reason = record.reason.as_str(),
        would = record.would.as_str(),
        rule = record.rule.as_deref(),
        line = record.line,
        "{message}"
    );
}

/// The result of a function that runs after the decision; `None`, counted, where it panics. The panic hook has
/// reported it.
pub(super) fn guarded<T>(live: &LiveRobots, function: impl FnOnce() -> T) -> Option<T> {
    let called = catch_unwind(AssertUnwindSafe(function)).ok();
    if called.is_none() {
        live.site.counts.callback_faults.fetch_add(1, Ordering::Relaxed);
    }
    called
}
