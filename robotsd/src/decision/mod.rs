//! The decision endpoint: other proxies ask here whether a client's request goes on.
//!
//! | target | answer |
//! |---|---|
//! | `/-/auth/{preset}` and anything below | 200 with an empty body, and `Robots-Verdict` where the request is tagged; or the refusal |
//! | `/-/refusal/{preset}` | the refusal once more, for a proxy that cannot relay the answer to its question |
//! | `/-/site/{site}/auth/{preset}`, `/-/site/{site}/refusal/{preset}` | the same by the site that the proxy has chosen, whatever the host |
//! | `/robots.txt` | the file of the site that `Host` names |
//! | `/-/health` | 200, for the health checks of proxies |
//! | `/envoy.service.auth.v3.Authorization/Check`, in gRPC | as the first, in a message ([`ext_authz`]) |
//!
//! HAProxy may ask on the same listener in messages of SPOP, which are the questions of its preset by other means ([`spoe`]).
//!
//! The preset says which fields name the original request ([`original_request`]); they are never guessed. A question that names
//! none is passed or refused as the config says, counted and logged ([`question_error`]); a path is never made up. What is there and
//! written oddly is judged as strictly as it can be read ([`original_request`]), by every site it may be for ([`site_table`]). The
//! verdicts are the layer's, so a refusal is the same here and there.

mod crawler_counts;
mod ext_authz;
mod original_request;
mod outcome_counts;
mod preset;
mod question_error;
mod response;
mod site_table;
mod spoe;

pub(crate) mod fuzzing;

use std::borrow::Cow;
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll};

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HOST, HeaderValue, USER_AGENT};
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{Method, Request, Response, StatusCode};
use percent_encoding::percent_decode_str;
use tower::Service;
use tower_robots::layer::{Answer, CrawlerRequest, Original, Outcome, ROBOTS_VERDICT};
use tower_robots::policy::Reason;
use tower_robots::rules::{Access, RequestPath};

pub(crate) use self::crawler_counts::{CrawlerCombinations, RequestOutcome};
pub(crate) use self::outcome_counts::{CountedRequest, MayWait, OutcomeCounts, OutcomeTotals, SiteTotals};
pub(crate) use self::question_error::QuestionErrors;
pub(crate) use self::site_table::{DecisionSite, DecisionSites};
pub(crate) use self::spoe::MESSAGES;

use self::ext_authz::{CallError, CheckQuestion, CheckResponse, IncomingMessage, ServiceRequest};
use self::original_request::OriginalRequest;
use self::preset::Preset;
use self::question_error::QuestionError;
use self::response::{DecisionBody, DecisionFuture};
use crate::config::OnError;
use crate::edge::{AccessFields, Callers, EdgeLimits, Peer, RequestBody, ResponseCounts, X_REQUEST_ID};

/// Answers on one listener of one worker. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Decisions(Arc<DecisionState>);

#[derive(Debug)]
struct DecisionState {
    sites: SiteTable,
    errors: Arc<QuestionErrors>,
    counts: Arc<ResponseCounts>,
}

/// A request that is counted, and where.
type Counted = (Arc<OutcomeCounts>, CountedRequest);

/// A response, and where it is counted: with its site where one was found.
struct Answered {
    response: Response<Bytes>,
    counted: Option<Counted>,
}

/// What was decided about a request, before it is put as its proxy reads it.
struct Decided {
    outcome: Outcome,
    /// Who sends it, where that is a crawler, and its site.
    crawler: Option<(CrawlerRequest, Arc<str>)>,
    counted: Option<Counted>,
}

/// Where a question goes.
#[derive(Clone, PartialEq, Eq, Debug)]
struct QuestionTarget<'t> {
    /// The name of the site, where the question has one.
    site: Option<Cow<'t, str>>,
    kind: QuestionKind,
    /// The preset and what is below.
    preset: &'t str,
}

/// Whether a question is the first about its request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum QuestionKind {
    Decision,
    /// The request was decided about already: it is counted and logged.
    Refusal,
}

/// What decides on one worker; all its listeners follow when it is replaced.
pub(crate) type SiteTable = Arc<ArcSwap<DecisionSites>>;

/// The limits of a listener for decisions, from those of one for clients.
///
/// A target may be as long as a head, and fields are as many as proxies let through: what we would not serve a client is
/// judged here all the same, because passing it would be a way round the rules, and refusing it would refuse people what
/// their proxy serves.
pub(crate) fn limits(clients: EdgeLimits) -> EdgeLimits {
    let fields = clients.fields.max(500);
    EdgeLimits { callers: Callers::AskingProxies, target_bytes: clients.head_bytes, fields, ..clients }
}

impl<'t> QuestionTarget<'t> {
    /// None where a target is not for questions.
    fn of(target: &'t str) -> Option<Self> {
        let endpoint = target.strip_prefix("/-/")?;
        let (site, endpoint) = match endpoint.strip_prefix("site/").and_then(|named| named.split_once('/')) {
            Some((site, endpoint)) => (Some(percent_decode_str(site).decode_utf8_lossy()), endpoint),
            None => (None, endpoint),
        };
        let kinds = [("auth/", QuestionKind::Decision), ("refusal/", QuestionKind::Refusal)];
        kinds
            .into_iter()
            .find_map(|(name, kind)| Some(Self { site: site.clone(), kind, preset: endpoint.strip_prefix(name)? }))
    }
}

impl Decisions {
    /// `counts` are those of the listener on this worker.
    pub(crate) fn new(sites: SiteTable, errors: Arc<QuestionErrors>, counts: Arc<ResponseCounts>) -> Self {
        Self(Arc::new(DecisionState { sites, errors, counts }))
    }
}

impl Service<Request<RequestBody>> for Decisions {
    type Response = Response<DecisionBody>;
    type Error = Infallible;
    type Future = DecisionFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<RequestBody>) -> DecisionFuture {
        if let Some(asked) = ServiceRequest::of(&request) {
            return self.call_of_service(asked, request);
        }
        let Answered { mut response, counted } = self.0.answer(&mut request);
        self.0.answered(counted.as_ref(), request.method(), response.status());
        if request.method() != Method::HEAD && response.body().is_empty() {
            // A refusal of a HEAD says how long its body would be; this question may be a GET about one.
            response.headers_mut().remove(CONTENT_LENGTH);
        }
        DecisionFuture::new(response, request.into_body())
    }
}

impl Decisions {
    /// Answers what is sent to the service of gRPC: a question once its message has come.
    fn call_of_service(&self, asked: ServiceRequest, request: Request<RequestBody>) -> DecisionFuture {
        let (head, body) = request.into_parts();
        let state = Arc::clone(&self.0);
        match asked {
            ServiceRequest::Check => {
                let message = IncomingMessage::new(&head.headers, body);
                DecisionFuture::asked(message, move |message| {
                    let answer = message.and_then(CheckQuestion::read).map(|question| state.check(head, &question));
                    answer.map(|answer| ext_authz::framed(&answer)).map_err(|error| state.fail(error))
                })
            }
            ServiceRequest::Unknown => DecisionFuture::failed(state.fail(CallError::UnknownMethod)),
            ServiceRequest::NoCall => {
                state.counts.siteless((&head.method).into(), StatusCode::UNSUPPORTED_MEDIA_TYPE);
                DecisionFuture::new(response::no_call(), body)
            }
        }
    }
}

impl DecisionState {
    /// Decides about the request that a message asks about. The field of the question that is not about the request is its id, which
    /// a trusted proxy may have chosen.
    fn check(&self, mut head: Parts, question: &CheckQuestion) -> CheckResponse {
        let id = head.headers.remove(X_REQUEST_ID);
        let Some(fields) = question.fields() else {
            self.counts.siteless((&head.method).into(), StatusCode::OK);
            return ext_authz::denied(response::forbidden("the request has more fields than can be judged"), None);
        };
        head.headers = fields;
        if let Some(id) = id {
            head.headers.insert(X_REQUEST_ID, id);
        }
        let mut request = Request::from_parts(head, ());
        set_client(&mut request, question.address());
        let decided = question.original().and_then(|asked| {
            let site = question.site();
            self.decide_about(Preset::EnvoyGrpc, &request, &asked, site.as_deref(), QuestionKind::Decision)
        });
        let decided = match decided {
            Ok(decided) => decided,
            Err(error) => {
                self.counts.siteless(request.method().into(), StatusCode::OK);
                let given_up = self.give_up(error);
                let is_passed = given_up.status().is_success();
                return if is_passed { ext_authz::allowed(None, None) } else { ext_authz::denied(given_up, None) };
            }
        };
        // What is counted is the response to the proxy.
        self.answered(decided.counted.as_ref(), request.method(), StatusCode::OK);
        let metadata = decided.crawler.map(|(crawler, site)| ext_authz::metadata(&site, &crawler));
        match decided.outcome {
            Outcome::Tag(record) => ext_authz::allowed(Some(record.to_field()), metadata),
            Outcome::Respond(refusal) => ext_authz::denied(*refusal, metadata),
            _ => ext_authz::allowed(None, metadata),
        }
    }

    /// Counts a response, with its site where one was found.
    fn answered(&self, counted: Option<&Counted>, method: &Method, status: StatusCode) {
        match counted {
            Some((site, counted)) => site.answered(counted, status),
            None => self.counts.siteless(method.into(), status),
        }
    }

    /// Counts a call that gets no answer, and logs it where its caller is to be mended.
    fn fail(&self, error: CallError) -> CallError {
        self.counts.siteless((&Method::POST).into(), StatusCode::OK);
        if error.is_fault() {
            self.errors.report_failed_call();
        }
        error
    }

    fn answer<B>(&self, request: &mut Request<B>) -> Answered {
        // A reference to the octets: the request is changed on the way.
        let target = request.uri().path_and_query().cloned();
        let target = target.as_ref().map_or("/", PathAndQuery::as_str);
        if let Some(asked) = QuestionTarget::of(target) {
            let decided = self.decide(&asked, request);
            return match asked.kind {
                QuestionKind::Decision => decided.unwrap_or_else(|error| self.give_up(error).into()),
                // The proxy has got a 403 already; where there is no reason any more, it stays one.
                QuestionKind::Refusal => {
                    let refusal = decided.ok().filter(|answered| !answered.response.status().is_success());
                    refusal.unwrap_or_else(|| response::forbidden("the request was refused").into())
                }
            };
        }
        if RequestPath::is_robots_txt_target(target.as_bytes()) {
            let host = request.headers().get(HOST).map(HeaderValue::as_bytes);
            let sites = self.sites.load();
            let Some(site) = sites.of_host(host) else { return response::elsewhere().into() };
            let mut counted = site.counts.request(target.as_bytes(), request.method().into(), self.counts.listener());
            let outcome = site.layer.answer(&Original::of(request)).outcome;
            site.counts.decided(&mut counted, MayWait::No);
            let response = match outcome {
                Outcome::Respond(response) => *response,
                // The proxy's own site may have one to show; that of another site would be worse than none.
                _ => response::elsewhere(),
            };
            return Answered { response, counted: Some((Arc::clone(&site.counts), counted)) };
        }
        if target == "/-/health" { response::pass().into() } else { response::not_found().into() }
    }

    /// Decides about the request that a question is about.
    fn decide<B>(&self, asked: &QuestionTarget<'_>, question: &mut Request<B>) -> Result<Answered, QuestionError> {
        let (preset, at) = Preset::named(asked.preset).ok_or(QuestionError::UNKNOWN_PRESET)?;
        set_client(question, preset.address(question.headers()));
        let question = &*question;
        let original = preset.read(question.method(), &asked.preset[at..], question.headers())?;
        let decided = self.decide_about(preset, question, &original, asked.site.as_deref(), asked.kind)?;
        let response = match decided.outcome {
            Outcome::Tag(record) => {
                let mut response = response::pass();
                response.headers_mut().insert(ROBOTS_VERDICT, record.to_field());
                response.extensions_mut().insert(*record);
                response
            }
            Outcome::Respond(refusal) => *refusal,
            // Outcome::Pass, and what a later version of the library may add: only a refusal stops a request.
            _ => response::pass(),
        };
        let response = match asked.kind {
            QuestionKind::Decision => response::understood_by(preset, response),
            QuestionKind::Refusal => response,
        };
        Ok(Answered { response, counted: decided.counted })
    }

    /// Decides about a request whose fields and extensions are those of `question`. Every preset comes here.
    fn decide_about<B>(
        &self,
        preset: Preset,
        question: &Request<B>,
        asked: &OriginalRequest<'_>,
        site: Option<&str>,
        kind: QuestionKind,
    ) -> Result<Decided, QuestionError> {
        let has_agent = question.headers().contains_key(USER_AGENT);
        if !has_agent {
            self.errors.no_agent(preset);
        }
        let sites = self.sites.load();
        let possible = match site {
            Some(name) => std::slice::from_ref(sites.named(name).ok_or(QuestionError::UNKNOWN_SITE)?),
            None => sites.of_request(asked, self.errors.settings.unknown_host),
        };
        if let Some(odd) = asked.odd.filter(|_| kind == QuestionKind::Decision) {
            self.errors.report_odd(odd);
        }
        let original = Original::of(question).with_method(&asked.method).with_host(asked.host);
        let Some((site, target)) = strictest(possible, original, asked) else { return Ok(Outcome::Pass.into()) };
        if let Some(fields) = question.extensions().get::<AccessFields>() {
            fields.add("site", &*site.name);
        }
        let (layer, mut counted) = match kind {
            QuestionKind::Decision => {
                (&site.layer, Some(site.counts.request(target, question.method().into(), self.counts.listener())))
            }
            QuestionKind::Refusal => (&site.quiet, None),
        };
        let answer = layer.decide(&original.with_target(target));
        if let Some(counted) = &mut counted {
            site.counts.decided(counted, MayWait::No);
            if !has_agent {
                site.counts.without_agent();
            }
        }
        Ok(Decided {
            counted: counted.map(|counted| (Arc::clone(&site.counts), counted)),
            ..Decided::new(preset, answer, &site.name)
        })
    }

    fn give_up(&self, error: QuestionError) -> Response<Bytes> {
        self.errors.report(error);
        match self.errors.settings.on_error {
            OnError::Pass => response::pass(),
            OnError::Refuse => response::forbidden("the proxy does not say which request it asks about"),
        }
    }
}

impl Decided {
    fn new(preset: Preset, answer: Answer, site: &Arc<str>) -> Self {
        // No other preset has a place for it.
        let crawler = answer.extensions.get::<CrawlerRequest>().filter(|_| preset == Preset::EnvoyGrpc).cloned();
        let mut outcome = answer.outcome;
        let crawler = match &mut outcome {
            Outcome::Respond(response) => {
                response::as_refusal(response);
                response.extensions_mut().remove()
            }
            _ => crawler,
        };
        Self { crawler: crawler.map(|crawler| (crawler, Arc::clone(site))), ..outcome.into() }
    }
}

impl From<Outcome> for Decided {
    fn from(outcome: Outcome) -> Self {
        Self { outcome, crawler: None, counted: None }
    }
}

impl From<Response<Bytes>> for Answered {
    fn from(response: Response<Bytes>) -> Self {
        Self { response, counted: None }
    }
}

/// The peer of a question is the proxy, not the client. A client whose address is not known is not exempt.
fn set_client<B>(question: &mut Request<B>, address: Option<IpAddr>) {
    let asking = question.extensions_mut().remove::<Peer>();
    if let Some(address) = address {
        let listener = asking.and_then(|peer| peer.listener);
        question.extensions_mut().insert(Peer::at(SocketAddr::new(address, 0), listener));
    }
}

/// The site and the target by which a request is decided: of several the one whose decision is the strictest, where all are possible.
fn strictest<'s, 'a>(
    sites: &'s [DecisionSite],
    original: Original<'_>,
    asked: &OriginalRequest<'a>,
) -> Option<(&'s DecisionSite, &'a [u8])> {
    if let ([site], []) = (sites, &*asked.further_targets) {
        return Some((site, asked.target));
    }
    let targets = || std::iter::once(asked.target).chain(asked.further_targets.iter().copied());
    let possible = sites.iter().flat_map(|site| targets().map(move |target| (site, target)));
    let mut strictest = None;
    for (site, target) in possible {
        let strictness = Strictness::of(site.quiet.decide(&original.with_target(target)));
        if strictest.as_ref().is_none_or(|(known, _)| *known < strictness) {
            strictest = Some((strictness, (site, target)));
        }
        if strictness == Strictness::Refused {
            break;
        }
    }
    strictest.map(|(_, decided)| decided)
}

/// How strict an answer is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Strictness {
    Passed,
    /// It passes, and would not under another mode.
    Reported,
    Tagged,
    Refused,
}

impl Strictness {
    fn of(answer: Answer) -> Self {
        let is_reported =
            |crawler: &CrawlerRequest| crawler.access == Some(Access::Disallow) || crawler.reason == Reason::Limited;
        let reported = answer.extensions.get::<CrawlerRequest>().is_some_and(is_reported);
        match answer.outcome {
            Outcome::Respond(_) => Self::Refused,
            Outcome::Tag(_) => Self::Tagged,
            _ if reported => Self::Reported,
            _ => Self::Passed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_may_name_its_site() {
        let of = |target| {
            QuestionTarget::of(target).map(|asked| (asked.site.map(Cow::into_owned), asked.kind, asked.preset))
        };
        let (auth, refusal) = (QuestionKind::Decision, QuestionKind::Refusal);
        assert_eq!(of("/-/auth/nginx"), Some((None, auth, "nginx")));
        assert_eq!(of("/-/site/shop/auth/envoy/-/site/x?y"), Some((Some("shop".to_owned()), auth, "envoy/-/site/x?y")));
        assert_eq!(of("/-/site/a%20b%2Fc/refusal/nginx"), Some((Some("a b/c".to_owned()), refusal, "nginx")));
        assert_eq!(of("/-/site//auth/nginx"), Some((Some(String::new()), auth, "nginx")));
        for target in ["/-/site/shop", "/-/site/shop/health", "/-/health", "/auth/nginx", "/-/site/auth/nginx"] {
            assert_eq!(of(target), None, "{target}");
        }
    }
}
