//! The steps of judging a request, in order: find the site, load the snapshot, recognise the
//! agents, evaluate the rules, decide, and create the answer.
//!
//! The snapshot is loaded only once per request. Judging a request that passes usually allocates no
//! memory. Cookies are read and the path is evaluated only if a group of the robots.txt applies to
//! the agent, or if the sender is an impostor that the policy tags or refuses. The path is also
//! evaluated if the layer adds fields to responses. Usually, no group applies to browsers, so the
//! time to judge most requests does not depend on the length of the path.

use std::cell::OnceCell;
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use robots_core::internals::AddressClass;

use super::answer::{Answer, Outcome};
use super::enforcer::{Counting, CrawlerRecords, Enforcer, RobotsTxtPlace};
use super::event::{Event, call_callback, human_evidence};
use super::forwarded::ForwardedWay;
use super::nesting::{self, OuterDecision};
use super::original::{AnsweredBy, OriginalRequest};
use super::rate_limit::{RateLimitedRequest, is_part_of_page};
use super::record::{Record, may_be_of_crawler};
use super::signals::ResponseFields;
use super::{refusal, robots_txt};
use crate::agent::{Agent, Identity, UndecidedReason};
#[cfg(feature = "verify")]
use crate::live::AgentLookups;
use crate::live::{Content, Enforcement, LiveRobots, Snapshot};
use crate::policy::{Action, Decision, RateMode, Reason, RequestFacts};
use crate::rate::{Quota, RateKey, RateSender};
use crate::rules::{ProductToken, RequestPath};
use crate::source::SitesGuard;

/// `Ok` contains the answer to a request. `Err` contains a request that the caller must count in
/// the store of rate limits before answering it.
pub(super) type Judged = Result<Answer, Box<RateLimited>>;

/// A request that a store must count, with the data that is needed to answer the request after the
/// store has replied.
pub(super) struct RateLimited {
    pub(super) request: RateLimitedRequest,
    live: LiveRobots,
    snapshot: Arc<Snapshot>,
    agents: Vec<Agent>,
    identity: Option<Identity>,
    fields: Option<Box<ResponseFields>>,
}

struct JudgedRequest<'j> {
    layer: &'j Enforcer,
    live: &'j LiveRobots,
    snapshot: &'j Arc<Snapshot>,
    content: &'j Content,
    request: &'j OriginalRequest<'j>,
    agents: &'j [Agent],
    /// The result of checking who sent the request; `None` if senders are not checked.
    identity: Option<Identity>,
    address: OnceCell<Option<IpAddr>>,
    outside: Option<&'j OuterDecision>,
}

impl Enforcer {
    /// Judges a request, counts it in this process, and returns the answer.
    pub(super) fn answer(&self, request: OriginalRequest<'_>) -> Answer {
        self.answer_judged(self.judge(request), request, None)
    }

    /// Returns the answer to a judged request. `wait` is the time that the client must wait
    /// according to the store: zero if the request passes, `None` if no store has counted the
    /// request.
    pub(super) fn answer_judged(&self, judged: Judged, request: OriginalRequest<'_>, wait: Option<Duration>) -> Answer {
        match judged {
            Ok(answer) => answer,
            Err(mut rate_limited) => {
                let fields = rate_limited.fields.take();
                catch_panic(&rate_limited.live, || self.answer_rate_limited(&rate_limited, request, wait))
                    .unwrap_or_else(Answer::pass)
                    .with_fields(fields)
            }
        }
    }

    fn answer_rate_limited(
        &self,
        rate_limited: &RateLimited,
        request: OriginalRequest<'_>,
        wait: Option<Duration>,
    ) -> Answer {
        let RateLimited { live, snapshot, agents, identity, .. } = rate_limited;
        let Some(content) = snapshot.content.as_deref() else { return Answer::pass() };
        let judged = JudgedRequest {
            layer: self,
            live,
            snapshot,
            content,
            request: &self.with_target(request),
            agents,
            identity: *identity,
            address: OnceCell::new(),
            outside: None,
        };
        let decision = judged.decide();
        let take = || judged.bucket(&decision).and_then(|(key, quota, _)| snapshot.take(&key, quota).err());
        let wait = match wait {
            None => take(),
            Some(Duration::ZERO) => {
                // The store's reply decides, so the request passes even if the local bucket is
                // empty. The local bucket still loses a token, so that it is up to date if the
                // store becomes unreachable and this process must count alone.
                take();
                None
            }
            Some(wait) => Some(wait),
        };
        judged.complete(wait.map_or(decision, |wait| decision.too_soon(wait)))
    }

    /// Judges a request by the rules of the site that its host belongs to. If its host belongs to
    /// no site, the request passes.
    pub(super) fn judge(&self, request: OriginalRequest<'_>) -> Judged {
        let sites = self.sites.load();
        let Some(live) = self.site_of(&sites, &request) else { return Ok(Answer::pass()) };
        catch_panic(live, || self.judge_for(live, request)).unwrap_or_else(|| Ok(Answer::pass()))
    }

    /// Returns the site of the request's host. If no site has this host, logs a warning.
    fn site_of<'s>(&self, sites: &'s SitesGuard<'_>, request: &OriginalRequest<'_>) -> Option<&'s LiveRobots> {
        let live = sites.find(|| request.site_key());
        #[cfg(feature = "tracing")]
        if live.is_none() {
            self.notes.trace_unknown_host(request);
        }
        live
    }

    fn judge_for(&self, live: &LiveRobots, request: OriginalRequest<'_>) -> Judged {
        let snapshot = &live.load();
        let request = &self.with_target(request);
        let content = enforced_content(snapshot);
        let is_answered_here = request.answered_by == AnsweredBy::Layer;
        if is_answered_here && RequestPath::is_robots_txt_target(request.target()) {
            let answer = self.robots_txt(live, snapshot, content, request);
            let is_answered = matches!(answer.outcome, Outcome::Respond(_));
            if is_answered && nesting::has_route(request.extensions) && !self.notes.has_route.load(Ordering::Relaxed) {
                live.site.counts.count_shadowed_route();
            }
            return Ok(answer);
        }
        let Some(content) = content else { return Ok(Answer::pass()) };
        let outside = self.stored_outer_decision(live, request);
        let is_done = outside.is_some_and(|mark| self.was_handled_by(mark, request));
        if is_done && self.signals.is_none() {
            return Ok(Answer::pass());
        }
        self.with_agents(content, request, self.agent_lookups.as_deref(), |agents| {
            let fields = self
                .signals
                .as_ref()
                .and_then(|signals| signals.response_fields(live, (content, &snapshot.policy), request, agents));
            if is_done {
                return Ok(Answer::pass().with_fields(fields));
            }
            let sender = self.sender(live, request, agents);
            let agents = sender.agents(agents);
            // If no agent is a crawler and no group applies, the request needs neither decision nor
            // record. Most requests from browsers end here.
            if snapshot.policy.passes_over(content.rules(), agents) {
                return Ok(Answer::pass().with_fields(fields));
            }
            let (identity, address) = (sender.identity, OnceCell::new());
            if is_answered_here && self.robots_txt == RobotsTxtPlace::Here && outside.is_none() {
                live.site.counts.count_unserved();
            }
            let judged =
                JudgedRequest { layer: self, live, snapshot, content, request, agents, identity, address, outside };
            match judged.judge() {
                Ok(answer) => Ok(answer.with_fields(fields)),
                Err(mut rate_limited) => {
                    rate_limited.fields = fields;
                    Err(rate_limited)
                }
            }
        })
    }

    /// Answers a request with the robots.txt, regardless of the request's path.
    pub(super) fn answer_robots_txt(&self, request: OriginalRequest<'_>) -> Answer {
        let sites = self.sites.load();
        let Some(live) = self.site_of(&sites, &request) else { return Answer::pass() };
        let answer = || {
            let snapshot = live.load();
            self.robots_txt(live, &snapshot, enforced_content(&snapshot), &request)
        };
        catch_panic(live, answer).unwrap_or_else(Answer::pass)
    }

    /// Answers a request for `/robots.txt`. Every agent may always fetch this file.
    fn robots_txt(
        &self,
        live: &LiveRobots,
        snapshot: &Snapshot,
        content: Option<&Content>,
        request: &OriginalRequest<'_>,
    ) -> Answer {
        live.site.counts.note_robots_txt_request();
        let Some(response) = robots_txt::serve(snapshot, request) else { return Answer::pass() };
        let record = match content {
            // If creating the record panics, the client must still get the file.
            Some(content) if self.records_crawlers() => {
                call_callback(live, || self.record_of_reader(live, snapshot, content, request)).unwrap_or_default()
            }
            _ => None,
        };
        if let (Some(record), Some(content)) = (&record, content) {
            let mut event = Event::new(record, *request, content.rules().document());
            // The robots.txt is never sent as a gRPC response, so `grpc_status` stays `None`.
            event.status = Some(response.status());
            self.observers.notify(live, &event);
        }
        self.with_record(Outcome::Respond(response.into()), record)
    }

    fn record_of_reader(
        &self,
        live: &LiveRobots,
        snapshot: &Snapshot,
        content: &Content,
        request: &OriginalRequest<'_>,
    ) -> Option<Box<Record>> {
        self.with_agents(content, request, self.agent_lookups.as_deref(), |agents| {
            let sender = self.sender(live, request, agents);
            let exempt = Decision::unjudged(Reason::Exempt);
            Record::new(content, &snapshot.policy, sender.agents(agents), sender.identity, &exempt)
        })
    }

    fn with_record(&self, outcome: Outcome, record: Option<Box<Record>>) -> Answer {
        Answer {
            outcome,
            record,
            in_extensions: self.crawler_records == CrawlerRecords::InExtensions,
            ..Answer::pass()
        }
    }

    /// Reports whether a pending DNS lookup of the sender's address may change the result of the
    /// sender check. Returns `false` if an outer layer has already judged the request without
    /// waiting. Counts the cache lookups of the request's agents in `lookups`, which is `None` if
    /// these lookups have already been counted.
    #[cfg(feature = "verify")]
    pub(super) fn is_evidence_awaited(&self, request: OriginalRequest<'_>, lookups: Option<&AgentLookups>) -> bool {
        let Some(check) = &self.sender_check else { return false };
        let sites = self.sites.load();
        let Some(live) = sites.find(|| request.site_key()) else { return false };
        let snapshot = live.load();
        let Some(content) = enforced_content(&snapshot) else { return false };
        // A panic in one of the application's functions is not counted here. The same function
        // panics again when the layer judges the request, and that panic is counted.
        let awaited = AssertUnwindSafe(|| {
            // The target is set here, too, because a signature may cover it.
            let request = self.with_target(request);
            let is_awaited = self.with_agents(content, &request, lookups, |agents| {
                check.is_awaited(&request, agents, || self.address(&request))
            });
            // If an outer layer has already judged the request, waiting would only delay it.
            let is_late = is_awaited && self.outer_decision(live, &request).is_some_and(|mark| mark.is_sender_checked);
            if is_late {
                live.site.counts.count_late_wait();
            }
            is_awaited && !is_late
        });
        catch_unwind(awaited).unwrap_or_default()
    }
}

/// Returns the robots.txt whose rules apply; `None` if no robots.txt is known or enforcement is
/// off.
fn enforced_content(snapshot: &Snapshot) -> Option<&Content> {
    if snapshot.enforcement() == Enforcement::On { snapshot.content.as_deref() } else { None }
}

/// Calls `judge`. If `judge` panics, counts the panic and returns `None`. The caller must then let
/// the request pass, because a bug in this crate must not block visitors.
fn catch_panic<T>(live: &LiveRobots, judge: impl FnOnce() -> T) -> Option<T> {
    let judged = catch_unwind(AssertUnwindSafe(judge)).ok();
    if judged.is_none() {
        live.site.counts.faults.fetch_add(1, Ordering::Relaxed);
    }
    judged
}

impl<'j> JudgedRequest<'j> {
    /// Decides what happens to the request, and counts the request if it has a rate limit.
    fn judge(&self) -> Judged {
        let layer = self.layer;
        let decision = if layer.exempt_if.as_ref().is_some_and(|is_exempt| is_exempt(self.request.extensions)) {
            Decision::unjudged(Reason::Exempt)
        } else {
            self.count_unchecked_claim();
            self.decide()
        };
        let bucket = self.bucket(&decision);
        let key = bucket.as_ref().map(|(key, ..)| key);
        match self.address.get() {
            // The decision did not depend on the address.
            None => {}
            Some(None) => self.count_missing_address(key),
            Some(Some(address)) => self.count_unlisted_proxy(*address, decision.reason, key),
        }
        let Some((key, quota, mode)) = bucket else {
            return Ok(if self.is_recorded(&decision) { self.complete(decision) } else { self.pass(&decision) });
        };
        let wait = match layer.counting {
            Counting::Here => self.snapshot.take(&key, quota).err(),
            Counting::InStore => {
                return Err(Box::new(RateLimited {
                    request: RateLimitedRequest::new(&self.live.site.origin, &key, quota, mode),
                    live: self.live.clone(),
                    snapshot: Arc::clone(self.snapshot),
                    agents: self.agents.to_vec(),
                    identity: self.identity,
                    fields: None,
                }));
            }
            // Another layer has just refused the request, probably because the request came before
            // the crawl delay had passed. This layer refuses the request again, even if the delay
            // has passed by now, and takes no token from the bucket.
            Counting::Before => Some(self.snapshot.look(&key, quota).err().unwrap_or(Duration::from_nanos(1))),
        };
        Ok(self.complete(wait.map_or(decision, |wait| decision.too_soon(wait))))
    }

    fn count_unchecked_claim(&self) {
        if self.identity.is_none() && self.snapshot.policy.heeds_claims(self.agents) {
            self.live.site.counts.count_unchecked_claim();
        }
    }

    /// Counts the request if the policy needs the client's address, but the address is unknown.
    fn count_missing_address(&self, bucket: Option<&RateKey<'_>>) {
        let policy = &self.snapshot.policy;
        let is_undecided = || self.identity == Some(Identity::Undecided(UndecidedReason::Address));
        if policy.exempts_networks()
            || bucket.is_some_and(|key| key.sender == RateSender::Claimed(None))
            || is_undecided() && policy.heeds_claims(self.agents)
        {
            let rules = || policy.rules_by_address().join(", and ");
            self.live.site.counts.count_without_address(rules, || self.layer.missing_address_advice(self.request));
        }
    }

    /// Counts the request if `address`, which the policy used as the client's, is probably the
    /// address of an unlisted proxy: it is not public, and a forwarded field names another client.
    /// Without such a field, `address` may be the client's, so it matters only if it exempts the
    /// request.
    fn count_unlisted_proxy(&self, address: IpAddr, reason: Reason, bucket: Option<&RateKey<'_>>) {
        use AddressClass::{LinkLocal, Loopback, Private};
        let (policy, counts) = (&self.snapshot.policy, &self.live.site.counts);
        let is_needed = policy.exempts_networks()
            || bucket.is_some_and(|key| matches!(key.sender, RateSender::Claimed(_)))
            || policy.heeds_claims(self.agents);
        if !is_needed || !matches!(AddressClass::of(address), Private | Loopback | LinkLocal) {
            return;
        }
        match ForwardedWay::leftmost(self.request.headers) {
            Some(client) if client != address.to_canonical() => counts.count_unlisted_proxy(),
            None if reason == Reason::Exempt && policy.exempts_address(address) => {
                counts.count_exempt_neighbour(address)
            }
            _ => {}
        }
    }

    fn decide(&self) -> Decision<'j> {
        // The address is cached, because the policy may need it twice: for the current mode, and
        // for the mode `refuse`.
        let address = || self.address();
        let mut facts = RequestFacts::of_target(self.request.method.as_str(), self.request.target());
        facts.address = Some(&address);
        facts.identity = self.identity.unwrap_or_default();
        self.snapshot.decide(self.agents, facts)
    }

    fn address(&self) -> Option<IpAddr> {
        *self.address.get_or_init(|| self.layer.address(self.request))
    }

    /// Returns the key of the request's rate limit bucket, with the quota and the rate mode; `None`
    /// if the request has no rate limit.
    ///
    /// The module [`rate`](crate::rate) explains how the bucket is chosen.
    fn bucket(&self, decision: &Decision<'_>) -> Option<(RateKey<'j>, Quota, RateMode)> {
        let rate_limit = decision.rate_limit?;
        let policy = &self.snapshot.policy;
        // If an outer layer has judged the request, that layer has also counted it.
        let is_counted = self.layer.outer_decision(self.live, self.request).is_some();
        if is_counted || policy.spares(|| human_evidence(self.request)) || is_part_of_page(self.request) {
            return None;
        }
        let sender = RateSender::of(self.identity.unwrap_or_default(), || self.address());
        let is_named = |token: &ProductToken| rate_limit.is_known && self.snapshot.names(token);
        let key = RateKey::of(self.agents.get(rate_limit.agent)?, sender, is_named)?;
        Some((key, Quota::new(rate_limit.interval, policy.rate_burst()), rate_limit.mode))
    }

    #[inline]
    fn pass(&self, decision: &Decision<'_>) -> Answer {
        // If no group applies to the agent, no [`OuterDecision`] is added, because judging the
        // request again in an inner layer takes less time than adding an extension.
        if decision.reason == Reason::NoGroup {
            return Answer::pass();
        }
        self.count_nested(decision.reason);
        if self.layer.nested_target.is_none() {
            return Answer::pass();
        }
        Answer::pass().with(self.decision_to_store(decision))
    }

    /// Creates the answer for a decision. Before that, the policy may soften the decision if the
    /// request seems to be sent by a person.
    fn complete(&self, decision: Decision<'_>) -> Answer {
        let decision = if decision.reason.is_reported() {
            self.snapshot.policy.weigh(decision, &human_evidence(self.request))
        } else {
            decision
        };
        let mut record = self.record(&decision);
        let outcome = match &mut record {
            None => Outcome::Pass,
            Some(record) => {
                record.set_earlier_refusals(|| self.snapshot.count_rate_limit_refusal());
                self.carry_out(record, self.matching_outer_decision(&decision))
            }
        };
        self.count_nested(decision.reason);
        let mark = match outcome {
            Outcome::Respond(_) => None,
            Outcome::Pass | Outcome::Tag => self.decision_to_store(&decision),
        };
        self.layer.with_record(outcome, record).with(mark)
    }

    fn record(&self, decision: &Decision<'_>) -> Option<Box<Record>> {
        if !self.is_recorded(decision) {
            return None;
        }
        let mut record = Record::new(self.content, &self.snapshot.policy, self.agents, self.identity, decision)?;
        if decision.reason == Reason::Grace {
            record.grace_rules = self.snapshot.first_in_grace();
        }
        Some(record)
    }

    fn is_recorded(&self, decision: &Decision<'_>) -> bool {
        decision.reason.is_reported() || self.layer.records_crawlers() && may_be_of_crawler(self.agents, decision)
    }

    /// Notifies the observers, and creates the response if the request is refused. If `same` is
    /// `Some`, an outer layer made the same decision, and the observers that the outer layer has
    /// notified are skipped.
    fn carry_out(&self, record: &Record, same: Option<&OuterDecision>) -> Outcome {
        let mut event = Event::new(record, *self.request, self.content.rules().document());
        let outcome = match record.action {
            Action::Pass => Outcome::Pass,
            Action::Tag => Outcome::Tag,
            Action::Refuse => {
                let response = self.refusal(&event);
                event.set_response(&response);
                Outcome::Respond(response.into())
            }
        };
        let observers = &self.layer.observers;
        match same {
            Some(mark) => observers.without(&mark.notified).notify(self.live, &event),
            None => observers.notify(self.live, &event),
        }
        outcome
    }

    fn refusal(&self, event: &Event<'_>) -> Response<Bytes> {
        let custom = match &self.layer.refuse_with {
            // The application's own refusal is not used for rate limits, because its status may
            // differ from 429. Crawlers slow down only after a 429; after another 4xx status, they
            // treat the page as unavailable.
            Some(custom) if event.record.reason != Reason::Limited => call_callback(self.live, || custom(event)),
            _ => None,
        };
        let response = match custom {
            Some(mut custom) => {
                refusal::complete(&mut custom);
                custom
            }
            None => event.refusal(),
        };
        refusal::without_body_if_head(response, self.request.method)
    }
}

impl Enforcer {
    /// Returns the decision that an outer layer has stored; always `None` if this layer does not
    /// support nested routers.
    fn stored_outer_decision<'r>(&self, live: &LiveRobots, request: &OriginalRequest<'r>) -> Option<&'r OuterDecision> {
        self.nested_target.and_then(|_| self.outer_decision(live, request))
    }

    /// Returns the decision that an outer layer has stored in the request's extensions; `None` if
    /// no decision is stored, or if the stored decision is for another site, method, target or
    /// `User-Agent`.
    fn outer_decision<'r>(&self, live: &LiveRobots, request: &OriginalRequest<'r>) -> Option<&'r OuterDecision> {
        let mark = request.extensions.get::<OuterDecision>()?;
        mark.covers(live, request, self.forwarded_agent_lines(request)).then_some(mark)
    }

    /// Reports whether this layer only has to add response fields, because the outer layer that
    /// stored `mark` has already done everything else.
    fn was_handled_by(&self, mark: &OuterDecision, request: &OriginalRequest<'_>) -> bool {
        let lacks_extension =
            self.crawler_records == CrawlerRecords::InExtensions && request.extensions.get::<Record>().is_none();
        let lacks_check = self.checks_senders() && !mark.is_sender_checked;
        !lacks_extension && !lacks_check && mark.is_final() && self.observers.are_subset_of(&mark.notified)
    }
}

impl JudgedRequest<'_> {
    /// Counts a request that shows that the layer may be in the wrong place: a router has stripped
    /// the target's prefix, or only a layer in a nested router has judged the request.
    fn count_nested(&self, reason: Reason) {
        match self.layer.nested_target {
            _ if reason == Reason::NoGroup => {}
            None if nesting::is_stripped(self.request) => self.live.site.counts.count_stripped_target(),
            Some(_) if nesting::lacks_outer_decision(self.request, self.layer.forwarded_agent_lines(self.request)) => {
                self.live.site.counts.count_nested_only();
            }
            _ => {}
        }
    }

    /// Returns the outer layer's decision if its action and reason are those of `decision`.
    fn matching_outer_decision(&self, decision: &Decision<'_>) -> Option<&OuterDecision> {
        self.outside.filter(|mark| mark.is_of(decision.action, decision.reason))
    }

    /// Returns the decision that this layer stores for inner layers. If an outer layer made the
    /// same decision, the stored decision also lists the observers that the outer layer has
    /// notified. A layer that does not support nested routers stores only decisions about requests
    /// with a crawl delay, so that no inner layer counts them again.
    fn decision_to_store(&self, decision: &Decision<'_>) -> Option<OuterDecision> {
        let layer = self.layer;
        if layer.nested_target.is_none() && decision.rate_limit.is_none() {
            return None;
        }
        let notified = match self.matching_outer_decision(decision) {
            Some(mark) => mark.notified.with(&layer.observers),
            None => layer.observers.clone(),
        };
        let is_checked = layer.checks_senders() || self.outside.is_some_and(|mark| mark.is_sender_checked);
        let decided = (decision.action, decision.reason);
        OuterDecision::new(
            self.live,
            self.request,
            layer.forwarded_agent_lines(self.request),
            decided,
            is_checked,
            notified,
        )
    }
}
