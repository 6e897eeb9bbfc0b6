//! The hot path, from top to bottom: site, snapshot, agent, verdict, decision, answer.
//!
//! A request loads its snapshot once. One that passes allocates nothing, and one that obeys no group costs nothing that
//! depends on its path: path, address and cookies are looked at once a group applies.

use std::panic::{AssertUnwindSafe, catch_unwind};

use http::HeaderValue;
use http::header::USER_AGENT;

use super::answer::Answer;
use super::callbacks::{AddressFrom, AgentFrom, Observer, RefuseWith, TargetFrom, guarded, notify};
use super::event::Event;
use super::evidence;
use super::original::Original;
use super::record::Record;
use super::refusal;
use super::robots_txt;
use crate::live::{Enforcement, LiveRobots};
use crate::policy::{Action, Facts};
use crate::source::Sites;

/// The sites and the callbacks of a layer, which it shares with its services.
#[derive(Clone)]
pub(super) struct Enforcer {
    pub(super) sites: Sites,
    pub(super) target_from: Option<TargetFrom>,
    pub(super) address_from: Option<AddressFrom>,
    pub(super) agent_from: Option<AgentFrom>,
    pub(super) observers: Vec<Observer>,
    pub(super) refuse_with: Option<RefuseWith>,
}

/// Whether a request for `/robots.txt` is answered with the file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RobotsTxtRequests {
    Serve,
    Judge,
}

impl Enforcer {
    /// The site of a request, and its answer. Without a site a request passes.
    pub(super) fn answer(&self, request: Original<'_>, robots_txt: RobotsTxtRequests) -> Answer {
        let sites = self.sites.load();
        let Some(live) = sites.find(|| Some((request.host_octets()?, request.scheme()))) else { return Answer::Pass };
        // A panic in judging passes the request: a fault of ours must not cost a visitor a page.
        let judged = catch_unwind(AssertUnwindSafe(|| self.judge(live, request, robots_txt)));
        judged.unwrap_or_else(|_| {
            live.count_fault();
            Answer::Pass
        })
    }

    fn judge(&self, live: &LiveRobots, request: Original<'_>, robots_txt: RobotsTxtRequests) -> Answer {
        let snapshot = live.load();
        let request = match &self.target_from {
            Some(target) => request.looked_up(&**target),
            None => request,
        };
        if robots_txt == RobotsTxtRequests::Serve && robots_txt::is_target(request.target()) {
            return robots_txt::serve(&snapshot, &request)
                .map_or(Answer::Pass, |response| Answer::Respond(response.into()));
        }
        let Some(content) = snapshot.content() else { return Answer::Pass };
        if snapshot.enforcement() == Enforcement::Off {
            return Answer::Pass;
        }

        // The agents: of the lines a trusted proxy kept, else of the request's own. Nearly every request has one.
        let kept = self.agent_from.as_ref().and_then(|agent| agent(request.extensions())).unwrap_or_default();
        let (mut of_proxy, mut own);
        // Called twice a request: a chain of both iterators costs more than a call through a pointer.
        let lines: &mut dyn Iterator<Item = &HeaderValue> = if kept.is_empty() {
            own = request.headers().get_all(USER_AGENT).into_iter();
            &mut own
        } else {
            of_proxy = kept.iter();
            &mut of_proxy
        };
        let mut lines = lines.map(HeaderValue::as_bytes);
        let first = lines.next().unwrap_or_default();
        let (cached, several);
        let agents = match lines.next() {
            None => {
                cached = content.cached_agent(first);
                std::slice::from_ref(cached.agent())
            }
            Some(second) => {
                let all = [first, second].into_iter().chain(lines);
                several = all.map(|line| content.identify(line)).collect::<Vec<_>>();
                &several[..]
            }
        };

        // The verdict of the rules, and the decision of the policy about it.
        let address = || self.address_from.as_ref().and_then(|address| address(request.extensions()));
        let facts = Facts::of_target(request.method().as_str(), request.target()).with_address(&address);
        let decision = snapshot.decide(agents, facts);
        if !decision.is_reported() {
            return Answer::Pass;
        }
        let decision = snapshot.policy().weigh(decision, &evidence::of(&request));
        if !decision.is_reported() {
            return Answer::Pass;
        }

        // The answer to a request that robots.txt disallows.
        let Some(record) = Record::new(content, agents, &decision) else { return Answer::Pass };
        let mut event = Event::new(&record, request);
        match decision.action() {
            Action::Pass => {
                notify(&self.observers, live, &event);
                Answer::Pass
            }
            Action::Tag => {
                notify(&self.observers, live, &event);
                Answer::Tag(record.into())
            }
            Action::Refuse => {
                let custom = self.refuse_with.as_deref().and_then(|custom| guarded(live, || custom(&event)));
                let mut response = custom.unwrap_or_else(|| event.refusal());
                refusal::complete(&mut response, request.method());
                event.set_status(response.status());
                notify(&self.observers, live, &event);
                response.extensions_mut().insert(record);
                Answer::Respond(response.into())
            }
        }
    }
}
