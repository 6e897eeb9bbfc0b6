//! The hot path, from top to bottom: site, snapshot, agent, verdict, decision, answer.
//!
//! A request loads its snapshot once. One that passes allocates nothing, and one that obeys no group costs nothing that
//! depends on its path: path, address and cookies are looked at once a group applies.

#[cfg(feature = "axum08")]
use std::borrow::Cow;
use std::cell::OnceCell;
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use http::header::USER_AGENT;
use http::{Extensions, HeaderValue, Response};

use super::answer::{Answer, Outcome};
#[cfg(feature = "axum08")]
use super::axum08::{self, Judged};
use super::crawler_request::{
    AddressFrom, AgentFrom, CrawlerRequest, Event, IdentityFrom, Observers, RefuseWith, TargetFrom, TooSoonFrom,
    guarded, may_be_of_crawler,
};
use super::original::Original;
use super::record::{self, PacedRequest, Record};
#[cfg(feature = "verify")]
use super::sender::CheckedSender;
use super::sender::Sender;
#[cfg(feature = "verify")]
use super::sender_check::SenderCheck;
use super::{crawler_request, refusal, robots_txt};
use crate::agent::Agent;
#[cfg(feature = "verify")]
use crate::agent::Identity;
use crate::live::{AgentLookups, Content, Enforcement, LiveRobots, Snapshot};
use crate::policy::{Action, Decision, Facts, Reason};
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
    pub(super) agent_from: Option<AgentFrom>,
    pub(super) identity_from: Option<IdentityFrom>,
    pub(super) too_soon_from: Option<TooSoonFrom>,
    pub(super) counting: Counting,
    #[cfg(feature = "verify")]
    pub(super) sender_check: Option<SenderCheck>,
    pub(super) observers: Observers,
    pub(super) crawler_extension: CrawlerExtension,
    pub(super) refuse_with: Option<RefuseWith>,
    pub(super) agent_lookups: Option<Arc<AgentLookups>>,
    #[cfg(feature = "axum08")]
    pub(super) framework: Framework,
}

/// Whether a request for `/robots.txt` is answered with the file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RobotsTxtRequests {
    Serve,
    Judge,
}

/// Whether a request that has a pace is counted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Counting {
    Take,
    /// It was counted and refused a moment ago.
    Look,
}

/// Whether the extensions of a crawler's request hold its [`CrawlerRequest`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CrawlerExtension {
    Omit,
    Insert,
}

/// Which framework's extensions the layer reads and writes.
#[cfg(feature = "axum08")]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Framework {
    Any,
    Axum08,
}

impl Enforcer {
    /// The site of a request, and its answer. Without a site a request passes.
    pub(super) fn answer(&self, request: Original<'_>, robots_txt: RobotsTxtRequests) -> Answer {
        let sites = self.sites.load();
        let Some(live) = sites.find(|| Some((request.host_octets()?, request.scheme()))) else {
            return Outcome::Pass.into();
        };
        // A panic in judging passes the request: a fault of ours must not cost a visitor a page.
        let judged = catch_unwind(AssertUnwindSafe(|| self.judge(live, request, robots_txt)));
        judged.unwrap_or_else(|_| {
            live.site.counts.faults.fetch_add(1, Ordering::Relaxed);
            Outcome::Pass.into()
        })
    }

    fn judge(&self, live: &LiveRobots, request: Original<'_>, robots_txt: RobotsTxtRequests) -> Answer {
        let snapshot = live.load();
        let request = self.with_target(request);
        let is_enforced = snapshot.enforcement() == Enforcement::On;
        if robots_txt == RobotsTxtRequests::Serve && RequestPath::is_robots_txt_target(request.target()) {
            let Some(mut response) = robots_txt::serve(&snapshot, &request) else { return Outcome::Pass.into() };
            if let Some(content) = snapshot.content().filter(|_| is_enforced && self.follows_crawlers()) {
                let decision = Decision::unjudged(Reason::Exempt);
                // A fault here must not cost anyone the file.
                let mut crawler = None;
                guarded(live, || {
                    self.with_agents(content, &request, self.agent_lookups.as_deref(), |agents| {
                        let sender = self.sender(live, &request, agents);
                        let agents = sender.agents(agents);
                        crawler = CrawlerRequest::new(content, snapshot.policy(), agents, sender.identity, &decision);
                        Self::follow(live, request, &self.observers, crawler.as_ref(), Some(&response));
                    });
                });
                if let Some(crawler) = crawler.filter(|_| self.crawler_extension == CrawlerExtension::Insert) {
                    response.extensions_mut().insert(crawler);
                }
            }
            return Outcome::Respond(response.into()).into();
        }
        let Some(content) = snapshot.content().filter(|_| is_enforced) else { return Outcome::Pass.into() };
        #[cfg(feature = "axum08")]
        if self.was_judged(live, &request) {
            return Outcome::Pass.into();
        }
        self.with_agents(content, &request, self.agent_lookups.as_deref(), |agents| {
            self.judge_by(live, &snapshot, content, request, agents)
        })
    }

    /// The verdict of the rules, the decision of the policy about it, and the answer.
    fn judge_by(
        &self,
        live: &LiveRobots,
        snapshot: &Snapshot,
        content: &Content,
        request: Original<'_>,
        agents: &[Agent],
    ) -> Answer {
        let sender = self.sender(live, &request, agents);
        let (agents, identity) = (sender.agents(agents), sender.identity);
        if identity.is_none() && snapshot.policy().heeds_claims(agents) {
            live.site.count_unchecked_claim();
        }
        // The policy may ask twice: what it would do under another mode is a decision of its own.
        let known = OnceCell::new();
        let address = || *known.get_or_init(|| self.address(&request));
        let facts = Facts::of_target(request.method.as_str(), request.target()).with_address(&address);
        let facts = facts.with_identity(identity.unwrap_or_default());
        let mut decision = snapshot.decide(agents, facts);
        if decision.pace.is_some()
            && !self.was_counted(live, &request)
            && !snapshot.policy().spares(|| crawler_request::of(&request))
            && let Some(taken) = record::taken(&decision, snapshot, &request, agents, identity, address)
        {
            let elsewhere = self.too_soon_from.as_ref().and_then(|too_soon| too_soon(request.extensions));
            decision = match (elsewhere, self.counting) {
                (Some(wait), _) if !wait.is_zero() => decision.too_soon(wait),
                (None, Counting::Look) => record::looked_at(decision, snapshot, &taken),
                (None, Counting::Take) => record::kept(decision, snapshot, &taken),
                (Some(_), Counting::Look) => decision,
                (Some(_), Counting::Take) => {
                    // It passes whatever comes of it here: else the bucket would be full where the other stops counting.
                    let _ = snapshot.take(&taken.0, taken.1);
                    decision
                }
            };
        }
        let mut outcome = Outcome::Pass;
        if decision.is_reported() {
            decision = snapshot.policy().weigh(decision, &crawler_request::of(&request));
        }
        let observers = &self.observers;
        #[cfg(feature = "axum08")]
        let observers = &*self.unnotified(observers, live, &request, &decision);
        if decision.is_reported()
            && let Some(record) = Record::new(content, agents, identity, &decision)
        {
            let record = if decision.reason == Reason::Limited {
                record.with_turn(|| snapshot.refused_for_its_pace())
            } else {
                record
            };
            outcome = self.outcome(live, request, observers, record);
        }

        let mut extensions = Extensions::new();
        if self.follows_crawlers() && may_be_of_crawler(agents, &decision) {
            let response = outcome.response();
            let mut crawler = None;
            guarded(live, || {
                crawler = CrawlerRequest::new(content, snapshot.policy(), agents, identity, &decision);
                Self::follow(live, request, observers, crawler.as_ref(), response);
            });
            if let Some(crawler) = crawler.filter(|_| self.crawler_extension == CrawlerExtension::Insert) {
                match &mut outcome {
                    Outcome::Respond(response) => response.extensions_mut().insert(crawler),
                    _ => extensions.insert(crawler),
                };
            }
        }
        #[cfg(feature = "axum08")]
        match self.framework {
            Framework::Any => count_if_stripped(live, &request, &decision),
            Framework::Axum08 if outcome.response().is_none() => {
                if let Some(mark) = self.mark(live, &request, agents, &decision) {
                    extensions.insert(mark);
                }
            }
            Framework::Axum08 => {}
        }
        Answer::new(outcome, extensions)
    }

    /// What becomes of a request that robots.txt disallows.
    fn outcome(&self, live: &LiveRobots, request: Original<'_>, observers: &Observers, record: Record) -> Outcome {
        let mut event = Event::new(&record, request);
        match record.action {
            Action::Pass => {
                observers.notify(live, &event);
                Outcome::Pass
            }
            Action::Tag => {
                observers.notify(live, &event);
                Outcome::Tag(record.into())
            }
            Action::Refuse => {
                // Of all 4xx only 429 is about a rate: any other says that the page is not for the crawler.
                let custom = self.refuse_with.as_deref().filter(|_| record.reason != Reason::Limited);
                let custom = custom.and_then(|custom| guarded(live, || custom(&event)));
                let mut response = custom.unwrap_or_else(|| event.refusal());
                refusal::complete(&mut response, request.method);
                event.set_response(&response);
                observers.notify(live, &event);
                response.extensions_mut().insert(record);
                Outcome::Respond(response.into())
            }
        }
    }

    /// Notifies the observers of a crawler's request, if it is one.
    fn follow(
        live: &LiveRobots,
        request: Original<'_>,
        observers: &Observers,
        crawler: Option<&CrawlerRequest>,
        response: Option<&Response<Bytes>>,
    ) {
        let Some(crawler) = crawler else { return };
        let mut event = Event::new(crawler, request);
        if let Some(response) = response {
            event.set_response(response);
        }
        observers.notify_of_crawler(live, &event);
    }

    /// Whether a layer outside has counted the request already.
    #[cfg_attr(not(feature = "axum08"), expect(clippy::unused_self, reason = "for a mark"))]
    fn was_counted(
        &self,
        #[cfg_attr(not(feature = "axum08"), expect(unused_variables, reason = "for a mark"))] live: &LiveRobots,
        #[cfg_attr(not(feature = "axum08"), expect(unused_variables, reason = "for a mark"))] request: &Original<'_>,
    ) -> bool {
        #[cfg(feature = "axum08")]
        return self.mark_of(live, request).is_some();
        #[cfg(not(feature = "axum08"))]
        false
    }

    /// Who sends a request of these agents.
    fn sender(
        &self,
        #[cfg_attr(not(feature = "verify"), expect(unused_variables, reason = "for a check of the sender"))]
        live: &LiveRobots,
        request: &Original<'_>,
        #[cfg_attr(not(feature = "verify"), expect(unused_variables, reason = "for a check of the sender"))]
        agents: &[Agent],
    ) -> Sender {
        if let Some(identity) = self.identity_from.as_ref().and_then(|identity| identity(request.extensions)) {
            return Sender::checked(identity);
        }
        #[cfg(feature = "verify")]
        if let Some(check) = &self.sender_check {
            let checked = request.extensions.get::<CheckedSender>();
            return checked.map_or_else(
                || check.sender(&live.site.origin, request, agents, || self.address(request)),
                |checked| checked.0.clone(),
            );
        }
        Sender::default()
    }

    /// Checks who sends a request that claims something, where the layer checks that.
    #[cfg(feature = "verify")]
    pub(super) fn check_sender(&self, request: Original<'_>) -> Option<CheckedSender> {
        let check = self.sender_check.as_ref()?;
        self.ahead(request, None, |live, _, request, agents| {
            if self.identity_from.as_ref().is_some_and(|identity| identity(request.extensions).is_some()) {
                return None;
            }
            let sender = check.sender(&live.site.origin, request, agents, || self.address(request));
            (sender.identity != Some(Identity::Unclaimed)).then_some(CheckedSender(sender))
        })
    }

    /// What a request that has a pace takes from; nothing is taken.
    pub(super) fn paced(&self, request: Original<'_>) -> Option<PacedRequest> {
        self.ahead(request, None, |live, snapshot, request, agents| {
            let policy = snapshot.policy();
            if policy.limits_no_agent()
                || RequestPath::is_robots_txt_target(request.target())
                || policy.spares(|| crawler_request::of(request))
            {
                return None;
            }
            // Before the decision: a signature may name the crawler, and an impostor is not exempt for its name.
            let sender = self.sender(live, request, agents);
            let (agents, identity) = (sender.agents(agents), sender.identity);
            let address = || self.address(request);
            let facts = Facts::of_target(request.method.as_str(), request.target()).with_address(&address);
            let decision = snapshot.decide(agents, facts.with_identity(identity.unwrap_or_default()));
            let (key, quota) = record::taken(&decision, snapshot, request, agents, identity, address)?;
            Some(PacedRequest::new(&live.site.origin, &key, quota, decision.pace?.mode))
        })
    }

    /// Reads a request that the layer has not judged yet: its site, the snapshot, and its agents. `None` where it will not judge
    /// it.
    fn ahead<T>(
        &self,
        request: Original<'_>,
        lookups: Option<&AgentLookups>,
        read: impl FnOnce(&LiveRobots, &Snapshot, &Original<'_>, &[Agent]) -> Option<T>,
    ) -> Option<T> {
        let sites = self.sites.load();
        let live = sites.find(|| Some((request.host_octets()?, request.scheme())))?;
        let snapshot = live.load();
        if snapshot.enforcement() != Enforcement::On {
            return None;
        }
        let content = snapshot.content()?;
        // The layer counts a fault of the same functions when it judges.
        let ahead = AssertUnwindSafe(|| {
            // As it is judged: a signature may be over the target.
            let request = self.with_target(request);
            self.with_agents(content, &request, lookups, |agents| read(live, &snapshot, &request, agents))
        });
        catch_unwind(ahead).unwrap_or_default()
    }

    fn address(&self, request: &Original<'_>) -> Option<IpAddr> {
        self.address_from.as_ref().and_then(|address| address(request.extensions))
    }

    #[cfg(feature = "verify")]
    pub(super) fn verifier(&self) -> Option<&Verifier> {
        self.sender_check.as_ref().map(|check| &check.verifier)
    }

    /// Whether evidence about the sender of a request is on its way. Lookups of its agents are counted there.
    #[cfg(feature = "verify")]
    pub(super) fn is_evidence_awaited(&self, request: Original<'_>, lookups: Option<&AgentLookups>) -> bool {
        let Some(check) = &self.sender_check else { return false };
        let awaited = self.ahead(request, lookups, |_, _, request, agents| {
            Some(check.is_awaited(request, agents, || self.address(request)))
        });
        awaited.unwrap_or(false)
    }

    fn follows_crawlers(&self) -> bool {
        self.crawler_extension == CrawlerExtension::Insert || self.observers.follow_crawlers()
    }

    /// The request with the target its client sent, as far as the layer can find it.
    fn with_target<'r>(&self, request: Original<'r>) -> Original<'r> {
        let request = match &self.target_from {
            Some(target) => request.looked_up(&**target),
            None => request,
        };
        #[cfg(feature = "axum08")]
        if self.framework == Framework::Axum08 {
            return request.looked_up(axum08::original_uri);
        }
        request
    }

    /// Calls `judge` with the request's agents: of the lines a trusted proxy kept, else of its own. Nearly every request
    /// has one line, and its agents are borrowed from the cache.
    fn with_agents<T>(
        &self,
        content: &Content,
        request: &Original<'_>,
        lookups: Option<&AgentLookups>,
        judge: impl FnOnce(&[Agent]) -> T,
    ) -> T {
        let kept = self.kept_lines(request);
        let (mut of_proxy, mut own);
        // Called twice a request: a chain of both iterators costs more than a call through a pointer.
        let lines: &mut dyn Iterator<Item = &HeaderValue> = if kept.is_empty() {
            own = request.headers.get_all(USER_AGENT).into_iter();
            &mut own
        } else {
            of_proxy = kept.iter();
            &mut of_proxy
        };
        let mut lines = lines.map(HeaderValue::as_bytes);
        let first = lines.next().unwrap_or_default();
        match lines.next() {
            None => judge(content.cached_agents(first, lookups).agents()),
            Some(second) => {
                let all = [first, second].into_iter().chain(lines);
                let agents = |line| content.cached_agents(line, lookups).agents().to_vec();
                judge(&all.flat_map(agents).collect::<Vec<_>>())
            }
        }
    }

    /// The lines of `User-Agent` that a trusted proxy kept; none where the request's own count.
    fn kept_lines<'r>(&self, request: &Original<'r>) -> &'r [HeaderValue] {
        self.agent_from.as_ref().and_then(|agent| agent(request.extensions)).unwrap_or_default()
    }
}

/// One request meets several layers where routers are nested.
#[cfg(feature = "axum08")]
impl Enforcer {
    /// Whether a layer outside has judged the request for this site already, and done all that this one would do.
    fn was_judged(&self, live: &LiveRobots, request: &Original<'_>) -> bool {
        let Some(mark) = self.mark_of(live, request) else { return false };
        let lacks_extension =
            self.crawler_extension == CrawlerExtension::Insert && request.extensions.get::<CrawlerRequest>().is_none();
        let lacks_check = self.checks_senders() && !mark.is_sender_checked();
        !lacks_extension && !lacks_check && mark.is_final() && self.observers.are_among(mark.notified())
    }

    const fn checks_senders(&self) -> bool {
        #[cfg(feature = "verify")]
        if self.sender_check.is_some() {
            return true;
        }
        self.identity_from.is_some()
    }

    /// The mark that a layer outside has made for this site and for what is to be judged here.
    fn mark_of<'r>(&self, live: &LiveRobots, request: &Original<'r>) -> Option<&'r Judged> {
        let is_axum = self.framework == Framework::Axum08;
        let mark = is_axum.then(|| request.extensions.get::<Judged>())??;
        mark.covers(live, request, self.kept_lines(request)).then_some(mark)
    }

    /// Those of the layer's observers that no layer outside has notified of this decision.
    fn unnotified<'o>(
        &self,
        observers: &'o Observers,
        live: &LiveRobots,
        request: &Original<'_>,
        decision: &Decision<'_>,
    ) -> Cow<'o, Observers> {
        match self.mark_of(live, request).filter(|mark| mark.is_of(decision)) {
            Some(mark) => Cow::Owned(observers.without(mark.notified())),
            None => Cow::Borrowed(observers),
        }
    }

    /// The mark of a request that goes on. To judge one again that no group is for costs less than a mark.
    fn mark(
        &self,
        live: &LiveRobots,
        request: &Original<'_>,
        agents: &[Agent],
        decision: &Decision<'_>,
    ) -> Option<Judged> {
        let is_followed = || self.follows_crawlers() && may_be_of_crawler(agents, decision);
        let is_marked = decision.reason != Reason::NoGroup || is_followed();
        if !is_marked {
            return None;
        }
        let outside = self.mark_of(live, request).filter(|mark| mark.is_of(decision)).map(Judged::notified);
        let notified = outside.map_or_else(|| self.observers.clone(), |outside| outside.with(&self.observers));
        let is_sender_checked =
            self.checks_senders() || self.mark_of(live, request).is_some_and(Judged::is_sender_checked);
        Judged::new(live, request, self.kept_lines(request), decision, is_sender_checked, notified)
    }
}

/// Counts a request that was judged by a target without its prefix.
#[cfg(feature = "axum08")]
fn count_if_stripped(live: &LiveRobots, request: &Original<'_>, decision: &Decision<'_>) {
    if decision.reason != Reason::NoGroup && axum08::is_stripped(request) {
        live.site.count_stripped_target();
    }
}
