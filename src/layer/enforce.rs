//! The hot path, from top to bottom: site, snapshot, agent, verdict, decision, answer.
//!
//! A request loads its snapshot once. One that passes allocates nothing, and one that obeys no group costs nothing that
//! depends on its path: path, address and cookies are looked at once a group applies.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::net::{IpAddr, SocketAddr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
#[cfg(feature = "tracing")]
use std::sync::Once;
use std::sync::atomic::Ordering;
use std::time::Duration;

use http::{Extensions, HeaderValue, Uri};

use super::answer::{Answer, Outcome};
use super::event::{
    AddressFrom, AgentFrom, Event, ExemptIf, IdentityFrom, Observers, RefuseWith, Sender, TargetFrom, guarded,
    human_evidence,
};
use super::forwarded::ForwardedWay;
use super::nesting::{self, Mark};
use super::original::OriginalRequest;
use super::pace::{self, OwnedBucket, PacedRequest};
use super::record::{Record, may_be_of_crawler};
#[cfg(feature = "verify")]
use super::sender_check::SenderCheck;
use super::{refusal, robots_txt};
#[cfg(feature = "verify")]
use crate::agent::UndecidedReason;
use crate::agent::{Agent, Identity};
use crate::live::{AgentLookups, Content, Enforcement, LiveRobots, Snapshot};
use crate::policy::{Action, Decision, Network, Reason, RequestFacts};
use crate::rate::RateSender;
use crate::rules::RequestPath;
use crate::source::Sites;
#[cfg(feature = "verify")]
use crate::source::evidence::Verifier;

/// The sites and the callbacks of a layer, which it shares with its services.
#[derive(Clone)]
pub(super) struct Enforcer {
    pub(super) sites: Sites,
    pub(super) target_from: Option<TargetFrom>,
    pub(super) address_from: Option<AddressFrom>,
    pub(super) trusted_proxies: Arc<[Network]>,
    pub(super) agent_from: Option<AgentFrom>,
    pub(super) identity_from: Option<IdentityFrom>,
    pub(super) exempt_if: Option<ExemptIf>,
    pub(super) counting: Counting,
    #[cfg(feature = "verify")]
    pub(super) sender_check: Option<SenderCheck>,
    pub(super) observers: Observers,
    pub(super) crawler_records: CrawlerRecords,
    pub(super) refuse_with: Option<RefuseWith>,
    pub(super) agent_lookups: Option<Arc<AgentLookups>>,
    /// Done once a request for a host of no site has been reported.
    #[cfg(feature = "tracing")]
    pub(super) no_site: Arc<Once>,
    /// Finds the target that the outermost of nested routers got; `None` where routers do not nest.
    pub(super) nested_target: Option<fn(&Extensions) -> Option<&Uri>>,
}

/// Whether a request for `/robots.txt` is answered with the file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RobotsTxtRequests {
    Serve,
    Judge,
}

/// The place at which a request that has a pace is counted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Counting {
    Here,
    /// In a store of the caller of the judgement.
    InStore,
    /// It was counted and refused a moment ago.
    Before,
}

/// Whether a crawler's request that passes as any other has a [`Record`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CrawlerRecords {
    /// Only for observers.
    Omit,
    InAnswer,
    /// And the extensions of the request hold it.
    InExtensions,
}

/// The decision about a request, for longer than its snapshot is borrowed.
struct Decided {
    action: Action,
    reason: Reason,
    record: Option<Box<Record>>,
}

/// The judgement of a request.
pub(super) enum Judged {
    Answer(Answer),
    Paced(Box<Paced>),
}

/// A request that takes from a bucket before it is answered.
pub(super) struct Paced {
    live: LiveRobots,
    snapshot: Arc<Snapshot>,
    pub(super) request: PacedRequest,
    bucket: OwnedBucket,
    /// The decisions if it does not come too soon, and if it does.
    in_time: Decided,
    too_soon: Decided,
}

impl Enforcer {
    /// The answer to a request that is counted here.
    pub(super) fn answer(&self, request: OriginalRequest<'_>, robots_txt: RobotsTxtRequests) -> Answer {
        self.answer_judged(self.judge(request, robots_txt), request, None)
    }

    /// The answer to a request that was judged, and has to wait so long as a store says; `None` where no store says that.
    pub(super) fn answer_judged(&self, judged: Judged, request: OriginalRequest<'_>, wait: Option<Duration>) -> Answer {
        let paced = match judged {
            Judged::Answer(answer) => return answer,
            Judged::Paced(paced) => *paced,
        };
        let live = paced.live.clone();
        passed_if_it_panics(&live, std::convert::identity, || self.answer_paced(paced, request, wait))
    }

    fn answer_paced(&self, paced: Paced, request: OriginalRequest<'_>, wait: Option<Duration>) -> Answer {
        let Paced { live, snapshot, bucket, in_time, mut too_soon, .. } = paced;
        let request = self.with_target(request);
        let wait = match wait {
            None => bucket.take(&snapshot),
            Some(wait) => {
                // It passes whatever the result here: else the bucket would be full where the other stops counting.
                if wait.is_zero() {
                    bucket.take(&snapshot);
                }
                wait
            }
        };
        if wait.is_zero() {
            return self.complete(&live, &snapshot, request, in_time, None);
        }
        if let Some(limit) = too_soon.record.as_mut().and_then(|record| record.limit.as_mut()) {
            limit.wait = wait;
        }
        self.complete(&live, &snapshot, request, too_soon, None)
    }

    /// The site of a request, and its outcome. Without a site a request passes.
    pub(super) fn judge(&self, request: OriginalRequest<'_>, robots_txt: RobotsTxtRequests) -> Judged {
        let sites = self.sites.load();
        let Some(live) = sites.find(|| Some((request.host_octets()?, request.scheme()))) else {
            #[cfg(feature = "tracing")]
            self.no_site.call_once(|| {
                tracing::warn!(
                    target: "tower_robots::layer",
                    host = request.host(),
                    "no site has the host of a request, so it passes unjudged: give a site the pattern \"*\", or the \
                     name if it is one of yours"
                );
            });
            return Judged::Answer(Answer::pass());
        };
        passed_if_it_panics(live, Judged::Answer, || self.judge_for(live, request, robots_txt))
    }

    /// Judges, has what has a pace counted, and answers.
    fn judge_for(&self, live: &LiveRobots, request: OriginalRequest<'_>, robots_txt: RobotsTxtRequests) -> Judged {
        let snapshot = live.load();
        let request = self.with_target(request);
        let content = snapshot.content.as_ref().filter(|_| snapshot.enforcement() == Enforcement::On).map(Arc::as_ref);
        if robots_txt == RobotsTxtRequests::Serve && RequestPath::is_robots_txt_target(request.target()) {
            return Judged::Answer(self.robots_txt(live, &snapshot, content, request));
        }
        let Some(content) = content else { return Judged::Answer(Answer::pass()) };
        let outside = self.mark_of(live, &request);
        if outside.is_some_and(|mark| self.is_done_by(mark, &request)) {
            return Judged::Answer(Answer::pass());
        }
        self.with_agents(content, &request, self.agent_lookups.as_deref(), |agents| {
            let sender = self.sender(live, &request, agents);
            // Of a browser this is all: no record, no claim, no mark.
            if snapshot.policy.passes_over(content.rules(), sender.agents(agents)) {
                return Judged::Answer(Answer::pass());
            }
            self.judge_agents(live, &snapshot, content, request, agents, &sender, outside)
        })
    }

    /// As [`Self::judge_for`], for agents that a group may be for.
    #[expect(clippy::too_many_arguments, reason = "what is known of a request by then")]
    fn judge_agents(
        &self,
        live: &LiveRobots,
        snapshot: &Arc<Snapshot>,
        content: &Content,
        request: OriginalRequest<'_>,
        agents: &[Agent],
        sender: &Sender,
        outside: Option<&Mark>,
    ) -> Judged {
        let agents = sender.agents(agents);
        // The policy may ask twice: the action under another mode is a decision of its own.
        let known = OnceCell::new();
        let address = || *known.get_or_init(|| self.address(&request));
        let decision = self.decide(live, snapshot, &request, agents, sender.identity, &address);
        let decided = |decision: &_| self.decided(snapshot, content, &request, agents, sender, decision);
        // A request that a layer outside has judged was counted there too.
        let has_pace = decision.pace.is_some() && outside.is_none();
        let is_paced = has_pace && !snapshot.policy.spares(|| human_evidence(&request));
        let bucket = || pace::bucket(&decision, snapshot, &request, agents, sender.identity, address);
        let Some(bucket) = is_paced.then(bucket).flatten() else {
            return Judged::Answer(if self.is_recorded(agents, &decision) {
                self.complete(live, snapshot, request, decided(&decision), outside)
            } else {
                self.pass(live, &request, &decision, outside)
            });
        };
        let (key, quota) = (&bucket.0, bucket.1);
        if key.sender == RateSender::Claimed(None) {
            live.site.count_shared_bucket();
        }
        let wait = match (self.counting, decision.pace) {
            (Counting::InStore, Some(pace)) => {
                return Judged::Paced(Box::new(Paced {
                    live: live.clone(),
                    request: PacedRequest::new(&live.site.origin, key, quota, pace.mode),
                    bucket: OwnedBucket::of(&bucket),
                    in_time: decided(&decision),
                    too_soon: decided(&decision.too_soon(Duration::from_nanos(1))),
                    snapshot: Arc::clone(snapshot),
                }));
            }
            (Counting::Here | Counting::InStore, _) => snapshot.take(key, quota).err(),
            // It was refused a moment ago, maybe because it came too soon: it does so still, though its time may have come
            // since. Nothing is taken.
            (Counting::Before, _) => Some(snapshot.look(key, quota).err().unwrap_or(Duration::from_nanos(1))),
        };
        let decision = wait.map_or(decision, |wait| decision.too_soon(wait));
        Judged::Answer(self.complete(live, snapshot, request, decided(&decision), outside))
    }

    /// `/robots.txt`, which every agent may always read.
    fn robots_txt(
        &self,
        live: &LiveRobots,
        snapshot: &Snapshot,
        content: Option<&Content>,
        request: OriginalRequest<'_>,
    ) -> Answer {
        let Some(response) = robots_txt::serve(snapshot, &request) else { return Answer::pass() };
        let mut record = None;
        if let Some(content) = content.filter(|_| self.records_crawlers()) {
            // A fault here must not cost anyone the file.
            guarded(live, || {
                self.with_agents(content, &request, self.agent_lookups.as_deref(), |agents| {
                    let sender = self.sender(live, &request, agents);
                    let exempt = Decision::unjudged(Reason::Exempt);
                    record = self.decided(snapshot, content, &request, sender.agents(agents), &sender, &exempt).record;
                });
            });
        }
        if let Some(record) = &record {
            let mut event = Event::new(record, request);
            // No call of gRPC, so that is all.
            event.status = Some(response.status());
            self.observers.notify(live, &event);
        }
        self.with_record(Outcome::Respond(response.into()), record)
    }

    /// The verdict of the rules, and the decision of the policy about it.
    fn decide<'s>(
        &self,
        live: &LiveRobots,
        snapshot: &'s Snapshot,
        request: &OriginalRequest<'_>,
        agents: &[Agent],
        identity: Option<Identity>,
        address: &dyn Fn() -> Option<IpAddr>,
    ) -> Decision<'s> {
        if self.exempt_if.as_ref().is_some_and(|is_exempt| is_exempt(request.extensions)) {
            return Decision::unjudged(Reason::Exempt);
        }
        if identity.is_none() && snapshot.policy.heeds_claims(agents) {
            live.site.count_unchecked_claim();
        }
        #[cfg(feature = "verify")]
        if self.sender_check.is_some()
            && identity == Some(Identity::Undecided(UndecidedReason::Address))
            && address().is_none()
            && snapshot.policy.heeds_claims(agents)
        {
            live.site.count_claim_without_address();
        }
        let mut facts = RequestFacts::of_target(request.method.as_str(), request.target());
        facts.address = Some(address);
        facts.identity = identity.unwrap_or_default();
        snapshot.decide(agents, facts)
    }

    /// The decision with the signs of a person weighed, and its record where somebody wants it.
    fn decided(
        &self,
        snapshot: &Snapshot,
        content: &Content,
        request: &OriginalRequest<'_>,
        agents: &[Agent],
        sender: &Sender,
        decision: &Decision<'_>,
    ) -> Decided {
        let policy = &snapshot.policy;
        let weighed = decision.reason.is_reported().then(|| policy.weigh(*decision, &human_evidence(request)));
        let decision = weighed.as_ref().unwrap_or(decision);
        let record = || {
            let mut record = Record::new(content, policy, agents, sender.identity, decision)?;
            if decision.reason == Reason::Grace {
                record.grace_rules = snapshot.first_in_grace();
            }
            Some(record)
        };
        let record = self.is_recorded(agents, decision).then(record).flatten();
        Decided { action: decision.action, reason: decision.reason, record }
    }

    /// The answer to a request of which no record is wanted, as of nearly every one.
    #[inline]
    fn pass(
        &self,
        live: &LiveRobots,
        request: &OriginalRequest<'_>,
        decision: &Decision<'_>,
        outside: Option<&Mark>,
    ) -> Answer {
        // To judge one again that no group is for costs less than a mark.
        if decision.reason == Reason::NoGroup {
            return Answer::pass();
        }
        self.count_nested(live, request, decision.reason);
        if self.nested_target.is_none() {
            return Answer::pass();
        }
        Answer::pass().with(self.mark(live, request, (decision.action, decision.reason), outside))
    }

    /// The answer to a request that was decided about: notifies the observers, and makes the response of one that is refused.
    fn complete(
        &self,
        live: &LiveRobots,
        snapshot: &Snapshot,
        request: OriginalRequest<'_>,
        mut decided: Decided,
        outside: Option<&Mark>,
    ) -> Answer {
        let same = outside.filter(|mark| mark.is_of(decided.action, decided.reason));
        let mut outcome = Outcome::Pass;
        if let Some(record) = &mut decided.record {
            record.set_turn(|| snapshot.refused_for_its_pace());
            let observers = match same {
                // They have been notified of this decision.
                Some(mark) => Cow::Owned(self.observers.without(&mark.notified)),
                None => Cow::Borrowed(&self.observers),
            };
            let mut event = Event::new(record, request);
            outcome = match record.action {
                Action::Pass => Outcome::Pass,
                Action::Tag => Outcome::Tag,
                Action::Refuse => {
                    // Of all 4xx only 429 is about a rate: any other says that the page is not for the crawler.
                    let custom = self.refuse_with.as_deref().filter(|_| record.reason != Reason::Limited);
                    let custom = custom.and_then(|custom| guarded(live, || custom(&event)));
                    let response = match custom {
                        Some(mut custom) => {
                            refusal::complete(&mut custom);
                            custom
                        }
                        None => event.refusal(),
                    };
                    let response = refusal::as_asked(response, request.method);
                    event.set_response(&response);
                    Outcome::Respond(response.into())
                }
            };
            observers.notify(live, &event);
        }
        self.count_nested(live, &request, decided.reason);
        let mark = match outcome {
            Outcome::Respond(_) => None,
            Outcome::Pass | Outcome::Tag => self.mark(live, &request, (decided.action, decided.reason), outside),
        };
        self.with_record(outcome, decided.record).with(mark)
    }

    fn with_record(&self, outcome: Outcome, record: Option<Box<Record>>) -> Answer {
        Answer {
            outcome,
            record,
            in_extensions: self.crawler_records == CrawlerRecords::InExtensions,
            ..Answer::pass()
        }
    }

    /// The sender of a request of these agents.
    fn sender(
        &self,
        #[cfg_attr(not(feature = "verify"), expect(unused_variables, reason = "for a check of the sender"))]
        live: &LiveRobots,
        request: &OriginalRequest<'_>,
        #[cfg_attr(not(feature = "verify"), expect(unused_variables, reason = "for a check of the sender"))]
        agents: &[Agent],
    ) -> Sender {
        if let Some(identity) = self.identity_from.as_ref().and_then(|identity| identity(request.extensions)) {
            return Sender::checked(identity);
        }
        #[cfg(feature = "verify")]
        if let Some(check) = &self.sender_check {
            return check.sender(&live.site.origin, request, agents, || self.address(request));
        }
        Sender::default()
    }

    pub(super) fn address(&self, request: &OriginalRequest<'_>) -> Option<IpAddr> {
        let peer = self.address_from.as_ref()?(request.extensions)?;
        let trusts = |address| self.trusted_proxies.iter().any(|network| network.contains(address));
        if !trusts(peer) {
            return Some(peer);
        }
        let way = ForwardedWay::read(request.headers, SocketAddr::new(peer, 0), trusts);
        // A proxy that names no client leaves it unknown.
        (way.hops.len() > 1).then(|| way.client().ip())
    }

    #[cfg(feature = "verify")]
    pub(super) fn verifier(&self) -> Option<&Verifier> {
        self.sender_check.as_ref().map(|check| &check.verifier)
    }

    /// Whether evidence about the sender of a request is on its way. Lookups of its agents are counted there.
    #[cfg(feature = "verify")]
    pub(super) fn is_evidence_awaited(&self, request: OriginalRequest<'_>, lookups: Option<&AgentLookups>) -> bool {
        let Some(check) = &self.sender_check else { return false };
        let sites = self.sites.load();
        let Some(live) = sites.find(|| Some((request.host_octets()?, request.scheme()))) else { return false };
        let snapshot = live.load();
        let content = snapshot.content.as_ref().filter(|_| snapshot.enforcement() == Enforcement::On);
        let Some(content) = content else { return false };
        // The layer counts a fault of the same functions when it judges.
        let awaited = AssertUnwindSafe(|| {
            // As it is judged: a signature may be over the target.
            let request = self.with_target(request);
            self.with_agents(content, &request, lookups, |agents| {
                check.is_awaited(&request, agents, || self.address(&request))
            })
        });
        catch_unwind(awaited).unwrap_or_default()
    }

    /// Whether somebody wants a record of a decision.
    fn is_recorded(&self, agents: &[Agent], decision: &Decision<'_>) -> bool {
        decision.reason.is_reported() || self.records_crawlers() && may_be_of_crawler(agents, decision)
    }

    fn records_crawlers(&self) -> bool {
        self.crawler_records > CrawlerRecords::Omit || self.observers.follow_crawlers()
    }

    /// The request with the target its client sent, as far as the layer can find it.
    fn with_target<'r>(&self, request: OriginalRequest<'r>) -> OriginalRequest<'r> {
        let request = self.target_from.as_ref().map_or(request, |target| request.looked_up(&**target));
        self.nested_target.map_or(request, |target| request.looked_up(target))
    }

    /// Calls `judge` with the request's agents: of the lines a trusted proxy kept, else of its own. Nearly every request
    /// has one line, and its agents are borrowed from the cache.
    #[inline]
    fn with_agents<T>(
        &self,
        content: &Content,
        request: &OriginalRequest<'_>,
        lookups: Option<&AgentLookups>,
        judge: impl FnOnce(&[Agent]) -> T,
    ) -> T {
        let kept = self.kept_lines(request);
        if let Some(line) = nesting::only_line(request, kept) {
            return judge(&content.cached_agents(line.map(HeaderValue::as_bytes).unwrap_or_default(), lookups));
        }
        let own = request.headers.get_all(&nesting::AGENT_FIELD).iter();
        let own = own.take(if kept.is_empty() { usize::MAX } else { 0 });
        let agents = |line: &HeaderValue| content.cached_agents(line.as_bytes(), lookups).to_vec();
        judge(&kept.iter().chain(own).flat_map(agents).collect::<Vec<_>>())
    }

    /// The lines of `User-Agent` that a trusted proxy kept; none where the request's own count.
    fn kept_lines<'r>(&self, request: &OriginalRequest<'r>) -> &'r [HeaderValue] {
        self.agent_from.as_ref().and_then(|agent| agent(request.extensions)).unwrap_or_default()
    }
}

/// A panic in judging passes the request: a fault of ours must not cost a visitor a page.
fn passed_if_it_panics<T>(live: &LiveRobots, passed: impl FnOnce(Answer) -> T, judge: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(judge)).unwrap_or_else(|_| {
        live.site.counts.faults.fetch_add(1, Ordering::Relaxed);
        passed(Answer::pass())
    })
}

/// One request meets several layers where routers are nested.
impl Enforcer {
    /// Counts a request that is judged by a target from which a router has cut a part, or in a nested router alone.
    fn count_nested(&self, live: &LiveRobots, request: &OriginalRequest<'_>, reason: Reason) {
        match self.nested_target {
            _ if reason == Reason::NoGroup => {}
            None if nesting::is_stripped(request) => live.site.count_stripped_target(),
            Some(_) if nesting::is_unmarked(request, self.kept_lines(request)) => live.site.count_nested_only(),
            _ => {}
        }
    }

    /// Whether a layer outside has judged the request for this site already, and done all that this one would do.
    fn is_done_by(&self, mark: &Mark, request: &OriginalRequest<'_>) -> bool {
        let lacks_extension =
            self.crawler_records == CrawlerRecords::InExtensions && request.extensions.get::<Record>().is_none();
        let lacks_check = self.checks_senders() && !mark.is_sender_checked;
        !lacks_extension && !lacks_check && mark.is_final() && self.observers.are_among(&mark.notified)
    }

    const fn checks_senders(&self) -> bool {
        #[cfg(feature = "verify")]
        if self.sender_check.is_some() {
            return true;
        }
        self.identity_from.is_some()
    }

    /// The mark that a layer outside has made for this site and for what is to be judged here.
    fn mark_of<'r>(&self, live: &LiveRobots, request: &OriginalRequest<'r>) -> Option<&'r Mark> {
        self.nested_target?;
        let mark = request.extensions.get::<Mark>()?;
        mark.covers(live, request, self.kept_lines(request)).then_some(mark)
    }

    /// The mark of a request that may meet a layer inside, from the one that a layer outside has made.
    fn mark(
        &self,
        live: &LiveRobots,
        request: &OriginalRequest<'_>,
        decision: (Action, Reason),
        outside: Option<&Mark>,
    ) -> Option<Mark> {
        self.nested_target?;
        let same = outside.filter(|mark| mark.is_of(decision.0, decision.1));
        let notified = same.map_or_else(|| self.observers.clone(), |same| same.notified.with(&self.observers));
        let is_checked = self.checks_senders() || outside.is_some_and(|mark| mark.is_sender_checked);
        Mark::new(live, request, self.kept_lines(request), decision, is_checked, notified)
    }
}
