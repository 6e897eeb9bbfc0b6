//! The hot path: site, snapshot, agent, verdict, decision; one load of the snapshot and no allocation for a request
//! that passes.

use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::Bytes;
use http::header::{COOKIE, HOST, USER_AGENT};
use http::{Extensions, HeaderMap, HeaderValue, Method, Response, Uri};

use super::event::Event;
use super::layer::Settings;
use super::record::Record;
use super::refusal::Refusal;
use super::robots_txt;
use crate::agent::Agent;
use crate::policy::{Action, Decision, Evidence, Facts, Reason};
use crate::rules::RequestPath;
use crate::source::{Content, Enforcement, LiveRobots, Scheme, Snapshot};

/// What becomes of a request. The rare cases are boxed to keep the common one small.
pub(super) enum Answer {
    Pass,
    Tag(Box<Record>),
    Respond(Box<Response<Bytes>>),
}

/// The parts of a request that are looked at.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) method: &'a Method,
    uri: &'a Uri,
    pub(super) target: &'a Uri,
    pub(super) headers: &'a HeaderMap,
    pub(super) extensions: &'a Extensions,
}

impl<'a> Asked<'a> {
    /// The host the request is for.
    pub(super) fn host(&self) -> Option<&'a str> {
        host(self.uri, self.headers).and_then(|host| std::str::from_utf8(host).ok())
    }
}

impl Settings {
    pub(super) fn answer(&self, method: &Method, uri: &Uri, headers: &HeaderMap, extensions: &Extensions) -> Answer {
        let host = || host(uri, headers).map(|host| (host, uri.scheme_str().and_then(Scheme::from_name)));
        let answer = self.sites.with(host, |live| self.answer_for(live, method, uri, headers, extensions));
        answer.unwrap_or(Answer::Pass)
    }

    fn answer_for(
        &self,
        live: &LiveRobots,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
        extensions: &Extensions,
    ) -> Answer {
        let target = self.target_from.as_ref().and_then(|target| target(extensions)).unwrap_or(uri);
        let asked = Asked { method, uri, target, headers, extensions };
        // A fault of ours, or of a callback, passes the request: whatever it costs to be judged, it costs no visitor a page.
        let judged = catch_unwind(AssertUnwindSafe(|| live.with(|snapshot| self.answer_from(snapshot, &asked))));
        judged.unwrap_or_else(|_| {
            live.count_fault();
            Answer::Pass
        })
    }

    fn answer_from(&self, snapshot: &Snapshot, asked: &Asked<'_>) -> Answer {
        let target = asked.target.path_and_query().map_or("/", |target| target.as_str());
        let path = RequestPath::new(target.as_bytes());
        if path.is_robots_txt() {
            return robots_txt::serve(snapshot, asked)
                .map_or(Answer::Pass, |response| Answer::Respond(response.into()));
        }
        let Some(content) = snapshot.content() else { return Answer::Pass };
        if snapshot.enforcement() == Enforcement::Off {
            return Answer::Pass;
        }
        let address = self.address_from.as_ref().and_then(|address| address(asked.extensions));
        let facts = Facts::new(asked.method.as_str(), &path).with_address(address);
        let kept = self.agent_from.as_ref().and_then(|agent| agent(asked.extensions));
        match kept.filter(|lines| !lines.is_empty()) {
            None => self.judge(snapshot, content, asked.headers.get_all(USER_AGENT).into_iter(), asked, &facts),
            Some(lines) => self.judge(snapshot, content, lines.iter(), asked, &facts),
        }
    }

    fn judge<'a>(
        &self,
        snapshot: &Snapshot,
        content: &Content,
        mut lines: impl Iterator<Item = &'a HeaderValue>,
        asked: &Asked<'_>,
        facts: &Facts<'_>,
    ) -> Answer {
        let first = lines.next().map_or(&b""[..], |line| line.as_bytes());
        match lines.next() {
            None => content.with_agent(first, |agent| {
                self.carry_out(snapshot, content, std::slice::from_ref(agent), asked, facts)
            }),
            Some(second) => {
                let more = std::iter::once(second).chain(lines).map(|line| line.as_bytes());
                let agents: Vec<_> = std::iter::once(first).chain(more).map(|line| content.identify(line)).collect();
                self.carry_out(snapshot, content, &agents, asked, facts)
            }
        }
    }

    fn carry_out(
        &self,
        snapshot: &Snapshot,
        content: &Content,
        agents: &[Agent],
        asked: &Asked<'_>,
        facts: &Facts<'_>,
    ) -> Answer {
        let decision = snapshot.decide(agents, facts);
        if !is_disallowed(&decision) {
            return Answer::Pass;
        }
        let decision = snapshot.policy().weigh(decision, &evidence(asked));
        if !is_disallowed(&decision) {
            return Answer::Pass;
        }
        let Some(record) = Record::new(content, agents, &decision) else { return Answer::Pass };
        match decision.action() {
            Action::Pass => {
                self.tell(&record, asked, None);
                Answer::Pass
            }
            Action::Tag => {
                self.tell(&record, asked, None);
                Answer::Tag(record.into())
            }
            Action::Refuse => {
                let refusal = Refusal::new(&record, asked);
                let response = refusal.respond(self.refuse_with.as_deref());
                self.tell(&record, asked, Some(response.status()));
                Answer::Respond(response.into())
            }
        }
    }

    fn tell(&self, record: &Record, asked: &Asked<'_>, status: Option<http::StatusCode>) {
        #[cfg(feature = "tracing")]
        tracing::info!(
            agent = record.agent(),
            decision = record.action().as_str(),
            reason = record.reason().as_str(),
            line = record.line(),
            "robots.txt disallows the request"
        );
        let event = Event::new(record, asked, status);
        self.observers.iter().for_each(|observer| observer(&event));
    }
}

/// Whether there is anything to record or to do.
fn is_disallowed(decision: &Decision<'_>) -> bool {
    decision.action() != Action::Pass
        || matches!(decision.reason(), Reason::Observed | Reason::Grace | Reason::SuspectHuman)
}

/// What the request says about who sends it, besides its `User-Agent`.
fn evidence<'a>(asked: &Asked<'a>) -> Evidence<'a> {
    let field = |name: &str| asked.headers.get(name).map_or(&b""[..], |value| value.as_bytes());
    let cookies = asked.headers.get_all(COOKIE).into_iter();
    cookies
        .fold(Evidence::new(), |evidence, value| evidence.cookies(value.as_bytes()))
        .fetch_metadata(field("sec-fetch-site"), field("sec-fetch-mode"), field("sec-fetch-dest"))
        .referer(field("referer"), asked.host().unwrap_or_default().as_bytes())
}

/// An absolute target and HTTP/2's `:authority` say which host is meant; else the `Host` field does (RFC 9112, 3.2.2).
fn host<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> Option<&'a [u8]> {
    match uri.authority() {
        // Who asks is no part of where: `http://user@host/`.
        Some(authority) => authority.as_str().rsplit('@').next().map(str::as_bytes),
        None => headers.get(HOST).map(|host| host.as_bytes()),
    }
}
