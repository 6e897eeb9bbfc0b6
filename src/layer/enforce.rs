//! The hot path: site, snapshot, agent, verdict, decision; one load of the snapshot and no allocation for a request
//! that passes.

use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bytes::Bytes;
use http::header::{COOKIE, REFERER, USER_AGENT};
use http::{Extensions, HeaderName, HeaderValue, Response, Uri};

use super::answer::Answer;
use super::event::Event;
use super::original::Original;
use super::record::Record;
use super::refusal;
use super::robots_txt;
use crate::agent::Agent;
use crate::live::{Content, Enforcement, LiveRobots, Snapshot};
use crate::policy::{Action, Decision, Evidence, Facts, Reason};
use crate::rules::RequestPath;
use crate::source::Sites;

pub(super) type TargetFrom = Arc<dyn for<'e> Fn(&'e Extensions) -> Option<&'e Uri> + Send + Sync>;
pub(super) type AddressFrom = Arc<dyn Fn(&Extensions) -> Option<IpAddr> + Send + Sync>;
pub(super) type AgentFrom = Arc<dyn for<'e> Fn(&'e Extensions) -> Option<&'e [HeaderValue]> + Send + Sync>;
pub(super) type Observer = Arc<dyn Fn(&Event<'_>) + Send + Sync>;
pub(super) type RefuseWith = Arc<dyn Fn(&Event<'_>) -> Response<Bytes> + Send + Sync>;

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

impl Enforcer {
    /// Everything the layer does about a request.
    pub(super) fn answer(&self, request: Original<'_>) -> Answer {
        self.with_path(request, |live, snapshot, request, path| {
            if path.is_robots_txt() {
                return robots_txt::serve(snapshot, request)
                    .map_or(Answer::Pass, |response| Answer::Respond(response.into()));
            }
            self.judge(live, snapshot, request, path)
        })
    }

    /// Only what the rules and the policy say.
    pub(super) fn decide(&self, request: Original<'_>) -> Answer {
        self.with_path(request, |live, snapshot, request, path| self.judge(live, snapshot, request, path))
    }

    fn with_path(
        &self,
        request: Original<'_>,
        read: impl FnOnce(&LiveRobots, &Snapshot, &Original<'_>, &RequestPath<'_>) -> Answer,
    ) -> Answer {
        let host = || Some((request.host_octets()?, request.scheme()));
        let answer = self.sites.with(host, |live| {
            // A fault of ours passes the request: whatever it costs to be judged, it costs no visitor a page. So does one of
            // a callback that says what is judged (target, address, agent); one that runs once it is decided, an observer
            // or a refusal of the application's own, changes nothing about the decision.
            let judged = catch_unwind(AssertUnwindSafe(|| {
                let request = match &self.target_from {
                    Some(target) => request.looked_up(&**target),
                    None => request,
                };
                live.with(|snapshot| read(live, snapshot, &request, &snapshot.policy().path(request.target())))
            }));
            judged.unwrap_or_else(|_| {
                live.count_fault();
                Answer::Pass
            })
        });
        answer.unwrap_or(Answer::Pass)
    }

    fn judge(&self, live: &LiveRobots, snapshot: &Snapshot, request: &Original<'_>, path: &RequestPath<'_>) -> Answer {
        let Some(content) = snapshot.content() else { return Answer::Pass };
        if snapshot.enforcement() == Enforcement::Off {
            return Answer::Pass;
        }
        let address = self.address_from.as_ref().and_then(|address| address(request.extensions()));
        let facts = Facts::new(request.method().as_str(), path).with_address(address);
        let kept = self.agent_from.as_ref().and_then(|agent| agent(request.extensions()));
        match kept.filter(|lines| !lines.is_empty()) {
            None => {
                let lines = request.headers().get_all(USER_AGENT).into_iter();
                self.judge_agents(live, snapshot, content, lines, request, &facts)
            }
            Some(lines) => self.judge_agents(live, snapshot, content, lines.iter(), request, &facts),
        }
    }

    fn judge_agents<'a>(
        &self,
        live: &LiveRobots,
        snapshot: &Snapshot,
        content: &Content,
        mut lines: impl Iterator<Item = &'a HeaderValue>,
        request: &Original<'_>,
        facts: &Facts<'_>,
    ) -> Answer {
        let first = lines.next().map_or(&b""[..], |line| line.as_bytes());
        match lines.next() {
            None => content.with_agent(first, |agent| {
                self.carry_out(live, snapshot, content, std::slice::from_ref(agent), request, facts)
            }),
            Some(second) => {
                let more = std::iter::once(second).chain(lines).map(|line| line.as_bytes());
                let agents: Vec<_> = std::iter::once(first).chain(more).map(|line| content.identify(line)).collect();
                self.carry_out(live, snapshot, content, &agents, request, facts)
            }
        }
    }

    fn carry_out(
        &self,
        live: &LiveRobots,
        snapshot: &Snapshot,
        content: &Content,
        agents: &[Agent],
        request: &Original<'_>,
        facts: &Facts<'_>,
    ) -> Answer {
        let decision = snapshot.decide(agents, facts);
        if !is_disallowed(&decision) {
            return Answer::Pass;
        }
        let decision = snapshot.policy().weigh(decision, &evidence(request));
        if !is_disallowed(&decision) {
            return Answer::Pass;
        }
        let Some(record) = Record::new(content, agents, &decision) else { return Answer::Pass };
        match decision.action() {
            Action::Pass => {
                self.tell(live, &record, request, None);
                Answer::Pass
            }
            Action::Tag => {
                self.tell(live, &record, request, None);
                Answer::Tag(record.into())
            }
            Action::Refuse => {
                let event = Event::new(&record, *request, None);
                let custom = self.refuse_with.as_deref().and_then(|custom| guarded(live, || custom(&event)));
                let mut response = custom.unwrap_or_else(|| event.refusal());
                refusal::complete(&mut response, event.method());
                self.tell(live, &record, request, Some(response.status()));
                response.extensions_mut().insert(record);
                Answer::Respond(response.into())
            }
        }
    }

    /// Reports what was decided. An observer's panic ends neither the decision nor what the other observers hear.
    fn tell(&self, live: &LiveRobots, record: &Record, request: &Original<'_>, status: Option<http::StatusCode>) {
        #[cfg(feature = "tracing")]
        guarded(live, || {
            tracing::info!(
                agent = record.agent(),
                decision = record.action().as_str(),
                reason = record.reason().as_str(),
                line = record.line(),
                "robots.txt disallows the request"
            );
        });
        let event = Event::new(record, *request, status);
        for observer in &self.observers {
            guarded(live, || observer(&event));
        }
    }
}

/// What a callback gives that runs once it is decided; `None`, counted, where it panics. The panic hook has reported it.
fn guarded<T>(live: &LiveRobots, callback: impl FnOnce() -> T) -> Option<T> {
    let called = catch_unwind(AssertUnwindSafe(callback)).ok();
    if called.is_none() {
        live.count_callback_fault();
    }
    called
}

/// Whether there is anything to record or to do.
fn is_disallowed(decision: &Decision<'_>) -> bool {
    decision.action() != Action::Pass
        || matches!(decision.reason(), Reason::Observed | Reason::Grace | Reason::SuspectHuman)
}

/// Fetch Metadata Request Headers, section 2.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
const SEC_FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// What the request says about who sends it, besides its `User-Agent`.
fn evidence<'a>(request: &Original<'a>) -> Evidence<'a> {
    let field = |name: &HeaderName| request.headers().get(name).map_or(&b""[..], |value| value.as_bytes());
    let cookies = request.headers().get_all(COOKIE).into_iter();
    cookies
        .fold(Evidence::new(), |evidence, value| evidence.cookies(value.as_bytes()))
        .fetch_metadata(field(&SEC_FETCH_SITE), field(&SEC_FETCH_MODE), field(&SEC_FETCH_DEST))
        .referer(field(&REFERER), request.host().unwrap_or_default().as_bytes())
}
