//! The decision endpoint. Other proxies ask this endpoint whether to forward a client's request.
//!
//! A *decision request* (in the code: `question`) is a proxy's request to this endpoint. The
//! *original request* is the client's request that a decision request is about.
//! | target | answer |
//! |---|---|
//! | `/-/auth/{preset}` and anything below | 200 with an empty body (and `Robots-Verdict` if the request is tagged), or the refusal |
//! | `/-/refusal/{preset}` | the refusal again, for a proxy that cannot relay the answer to its decision request |
//! | `/-/site/{site}/auth/{preset}`, `/-/site/{site}/refusal/{preset}` | the same, for the site that the proxy names, whatever the host |
//! | `/robots.txt` | the file of the site that `Host` names |
//! | `/-/health` | 200, for the health checks of proxies |
//! | `/envoy.service.auth.v3.Authorization/Check`, in gRPC | as in the first row, in a gRPC message ([`ext_authz`]) |
//!
//! A decision listener also accepts SPOP messages of HAProxy. SPOP messages are converted to
//! decision requests with HAProxy's preset ([`spoe`]).
//!
//! The preset determines which fields contain the original request ([`asked_request`]); no other
//! field is used. If a required field is missing, the original request is allowed or refused as
//! configured, and the error is counted and logged ([`question_error`]). If a decision request is
//! malformed, it may be unclear which request and which site it is about. Then all possible
//! requests and sites are evaluated, and the strictest decision counts ([`asked_request`],
//! [`site_table`]). Decisions are made by the library's robots layer, so the response to a refused
//! request is the same as if robotsd were the proxy.

mod asked_request;
mod ext_authz;
mod preset;
mod question_error;
mod response;
mod site_table;
mod spoe;
#[cfg(any(test, fuzzing))]
pub(crate) mod test_any_input;

use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HOST, HeaderName, HeaderValue, USER_AGENT};
use http::uri::PathAndQuery;
use http::{Method, Request, Response, StatusCode};
use percent_encoding::percent_decode_str;
use tower_robots::layer::{Record, RobotsLayer};
use tower_robots::parts::{Answer, OriginalRequest, Outcome};
use tower_robots::policy::{Action, Reason};
use tower_robots::rules::RequestPath;

pub(crate) use self::question_error::QuestionErrors;
pub(crate) use self::site_table::{DecisionSite, DecisionSites};
pub(crate) use self::spoe::MESSAGES;

use self::asked_request::AskedRequest;
use self::ext_authz::{CallError, CheckQuestion, CheckResponse, ServiceRequest};
use self::preset::Preset;
use self::question_error::QuestionError;
use self::response::DecisionBody;
use crate::config::OnError;
use crate::counting::{CountedRequest, OutcomeCounts};
use crate::edge::{Callers, EdgeLimits, ResponseCounts, X_REQUEST_ID};
use crate::http_common::{ClientRequest, EdgeService, Peer, RequestBody};
use crate::request::RobotsTxtFrom;

/// Answers decision requests on one listener of one worker. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Decisions(Arc<DecisionState>);

#[derive(Debug)]
struct DecisionState {
    sites: SiteTable,
    errors: Arc<QuestionErrors>,
    counts: Arc<ResponseCounts>,
}

type Counted = (Arc<OutcomeCounts>, CountedRequest);

/// A response to a decision request. If no site made the decision, `counted` is `None`, and only
/// the listener's counters include the response.
struct Answered {
    response: Response<Bytes>,
    counted: Option<Counted>,
}

struct RequestDecision {
    outcome: Outcome,
    record: Option<Box<Record>>,
    /// Header fields that the proxy may add to the response to the client.
    fields: Vec<(HeaderName, HeaderValue)>,
    site: Option<Arc<str>>,
    counted: Option<Counted>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct QuestionTarget<'t> {
    site: Option<Cow<'t, str>>,
    kind: QuestionKind,
    /// The preset, with the text that follows it in the target.
    preset: &'t str,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum QuestionKind {
    Decision,
    /// The response to a request that robotsd has already refused. The proxy sends this second
    /// request if it cannot relay the response to its decision request. The original request has
    /// already been counted and logged.
    Refusal,
}

/// Table of the sites for which a worker answers decision requests. All listeners of the worker
/// share the table. A change replaces the whole table.
pub(crate) type SiteTable = Arc<ArcSwap<DecisionSites>>;

/// Returns the limits of a decision listener. The limits are higher than those of a listener for
/// clients, because robotsd must decide about every request that the proxy accepts. If all requests
/// above the limits were allowed, crawlers could evade the rules. If all such requests were
/// refused, visitors would be blocked.
pub(crate) fn limits(clients: EdgeLimits) -> EdgeLimits {
    let fields = clients.fields.max(500);
    EdgeLimits { callers: Callers::AskingProxies, target_bytes: clients.head_bytes, fields, ..clients }
}

impl<'t> QuestionTarget<'t> {
    /// Parses a target. Returns `None` if the target does not belong to a decision request.
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

    /// Reports whether dot segments in the target lead to a path outside the preset. A client can
    /// send such a target, for example `/-/auth/caddy/../../../robots.txt`, through a proxy that
    /// resolves dot segments only to select a backend, and forwards the target unchanged. A proxy
    /// never builds such a target itself.
    ///
    /// Proxies interpret escapes and repeated slashes differently. So the check assumes the worst
    /// case for each segment: as few levels down and as many levels up as possible.
    fn leaves_preset(&self) -> bool {
        let path = self.preset.split('?').next().unwrap_or_default();
        let mut depth = 0_usize;
        for segment in path.split('/') {
            let decoded: Cow<'_, [u8]> = percent_decode_str(segment).into();
            let up = decoded.split(|byte| matches!(byte, b'/' | b'\\')).filter(|part| part == b"..").count();
            if up == 0 {
                depth += usize::from(!matches!(&*decoded, b"" | b"."));
                continue;
            }
            // The preset itself is level 1, so any lower level is outside the preset.
            if depth <= up {
                return true;
            }
            depth -= up;
        }
        false
    }
}

/// Returns whether a decision request with this target asks for a decision or for a refusal.
/// Returns `None` if the target does not belong to a decision request. The access log uses this
/// function, because the target of a decision request is not the path of the original request.
pub(crate) fn question_kind(target: &[u8]) -> Option<QuestionKind> {
    let target = std::str::from_utf8(target).ok().and_then(QuestionTarget::of)?;
    Preset::named(target.preset).map(|_| target.kind)
}

impl Decisions {
    /// Creates the endpoint for decision requests. `counts` are this worker's counters for the
    /// listener.
    pub(crate) fn new(sites: SiteTable, errors: Arc<QuestionErrors>, counts: Arc<ResponseCounts>) -> Self {
        Self(Arc::new(DecisionState { sites, errors, counts }))
    }

    async fn answer_question(self, mut question: Request<()>, body: RequestBody) -> Response<DecisionBody> {
        let Answered { mut response, counted } = self.0.answer(&mut question).await;
        self.0.count_response(counted.as_ref(), question.method(), response.status());
        if question.method() != Method::HEAD && response.body().is_empty() {
            // If the original request is a HEAD request, its refusal declares the length that the
            // body would have. The response to a GET decision request must not declare this length.
            response.headers_mut().remove(CONTENT_LENGTH);
        }
        response::read_to_end(body).await;
        response.map(DecisionBody::content)
    }

    async fn answer_call(
        self,
        called: ServiceRequest,
        question: Request<()>,
        body: RequestBody,
    ) -> Response<DecisionBody> {
        let failed = |error| response::status(self.0.fail(error));
        match called {
            ServiceRequest::Check => {
                let message = ext_authz::read_message(question.headers(), body).await;
                match message.and_then(CheckQuestion::read) {
                    Ok(asked) => response::called(ext_authz::framed(&self.0.check(question, &asked).await)),
                    Err(error) => failed(error),
                }
            }
            ServiceRequest::Unknown => failed(CallError::UnknownMethod),
            ServiceRequest::NoCall => {
                self.0.counts.count_siteless(question.method().into(), StatusCode::UNSUPPORTED_MEDIA_TYPE);
                response::read_to_end(body).await;
                response::no_call().map(DecisionBody::content)
            }
        }
    }
}

impl EdgeService for Decisions {
    type Body = DecisionBody;

    fn answer(self, request: Box<Request<RequestBody>>) -> impl Future<Output = Response<DecisionBody>> + Send {
        let called = ServiceRequest::of(&request);
        let (head, body) = request.into_parts();
        let question = Request::from_parts(head, ());
        // The futures are boxed, because they are large: without the box, each enclosing future
        // would move them.
        let answering: Pin<Box<dyn Future<Output = Response<DecisionBody>> + Send>> = match called {
            None => Box::pin(self.answer_question(question, body)),
            Some(called) => Box::pin(self.answer_call(called, question, body)),
        };
        answering
    }
}

impl DecisionState {
    /// Decides about the client's request in a gRPC message. The header fields of the gRPC request
    /// itself are ignored, except the request ID, which a trusted proxy may have set.
    async fn check(&self, mut request: Request<()>, question: &CheckQuestion) -> CheckResponse {
        let id = request.headers_mut().remove(X_REQUEST_ID);
        let Some(fields) = question.fields() else {
            self.counts.count_siteless(request.method().into(), StatusCode::OK);
            return ext_authz::denied(response::forbidden("the request has too many header fields"), None);
        };
        *request.headers_mut() = fields;
        if let Some(id) = id {
            request.headers_mut().insert(X_REQUEST_ID, id);
        }
        set_client(&mut request, question.address);
        let decided = async {
            let (asked, site) = (question.original()?, question.site());
            self.decide_about(Preset::EnvoyGrpc, &request, &asked, site.as_deref(), QuestionKind::Decision).await
        };
        let RequestDecision { outcome, record, fields, site, counted } = match decided.await {
            Ok(decided) => decided,
            Err(error) => {
                self.counts.count_siteless(request.method().into(), StatusCode::OK);
                let given_up = self.respond_to_error(error);
                let is_passed = given_up.status().is_success();
                return if is_passed { ext_authz::allowed(None, &[], None) } else { ext_authz::denied(given_up, None) };
            }
        };
        // The status of the response to the proxy is counted, not the status of the response to the
        // client.
        self.count_response(counted.as_ref(), request.method(), StatusCode::OK);
        let metadata = site.zip(record.as_deref()).map(|(site, record)| ext_authz::metadata(&site, record));
        match outcome {
            Outcome::Tag => ext_authz::allowed(record.map(|record| record.to_field()), &fields, metadata),
            Outcome::Respond(refusal) => ext_authz::denied(*refusal, metadata),
            // Only `Outcome::Respond` refuses a request. This arm handles `Outcome::Pass`, and
            // variants that later versions of the library may add.
            _ => ext_authz::allowed(None, &fields, metadata),
        }
    }

    /// Counts a response in the counters of the site that made the decision, or in the counters of
    /// the listener if no site made it.
    fn count_response(&self, counted: Option<&Counted>, method: &Method, status: StatusCode) {
        match counted {
            Some((site, counted)) => site.count_response(counted, status),
            None => self.counts.count_siteless(method.into(), status),
        }
    }

    fn fail(&self, error: CallError) -> CallError {
        self.counts.count_siteless((&Method::POST).into(), StatusCode::OK);
        if error.is_fault() {
            self.errors.report_failed_call();
        }
        error
    }

    async fn answer(&self, request: &mut Request<()>) -> Answered {
        // The target is cloned, because the request is changed below. The clone is cheap, because
        // it shares the bytes of the target.
        let target = request.uri().path_and_query().cloned();
        let target = target.as_ref().map_or("/", PathAndQuery::as_str);
        if let Some(asked) = QuestionTarget::of(target) {
            if asked.leaves_preset() {
                return response::outside_preset().into();
            }
            let decided = self.decide(&asked, request).await;
            return match asked.kind {
                QuestionKind::Decision => decided.unwrap_or_else(|error| self.respond_to_error(error).into()),
                // The proxy has already refused the request. If the rules have changed in the
                // meantime and now allow the request, the response is still a 403.
                QuestionKind::Refusal => {
                    let refusal = decided.ok().filter(|answered| !answered.response.status().is_success());
                    refusal.unwrap_or_else(|| response::forbidden("the request was refused").into())
                }
            };
        }
        if RequestPath::is_robots_txt_target(target.as_bytes()) {
            let host = request.headers().get(HOST).map(HeaderValue::as_bytes);
            let sites = self.sites.load_full();
            let Some(DecisionSite { judge, .. }) = sites.of_host(host) else {
                return response::robots_txt_not_found().into();
            };
            if let Some(fields) = ClientRequest::access_of(request.extensions()) {
                fields.add("site", &*judge.name);
            }
            let mut counted = judge.counts.request(target.as_bytes(), request.method().into(), self.counts.listener);
            let answer = judge.answer(&OriginalRequest::of(request), RobotsTxtFrom::Site, &mut counted).await;
            let response = match answer.outcome {
                Outcome::Respond(response) => *response,
                // A 404 is better than the robots.txt of the wrong site, because the proxy may have
                // its own robots.txt for this host.
                _ => response::robots_txt_not_found(),
            };
            return Answered { response, counted: Some((Arc::clone(&judge.counts), counted)) };
        }
        if target == "/-/health" { response::pass().into() } else { response::not_found().into() }
    }

    async fn decide(&self, asked: &QuestionTarget<'_>, question: &mut Request<()>) -> Result<Answered, QuestionError> {
        let (preset, at) = Preset::named(asked.preset).ok_or(QuestionError::UNKNOWN_PRESET)?;
        set_client(question, preset.address(question.headers()));
        let question = &*question;
        let original = preset.read(question.method(), &asked.preset[at..], question.headers())?;
        let RequestDecision { outcome, record, fields, counted, .. } =
            self.decide_about(preset, question, &original, asked.site.as_deref(), asked.kind).await?;
        let mut response = match outcome {
            Outcome::Tag => {
                let mut response = response::pass();
                if let Some(record) = &record {
                    response.headers_mut().insert(Record::FIELD, record.to_field());
                }
                response
            }
            Outcome::Respond(refusal) => *refusal,
            // Only `Outcome::Respond` refuses a request: see the comment in `check`.
            _ => response::pass(),
        };
        for (name, value) in fields {
            response.headers_mut().append(name, value);
        }
        if let Some(record) = record.filter(|record| record.action != Action::Pass) {
            response.extensions_mut().insert(*record);
        }
        let response = match asked.kind {
            QuestionKind::Decision => response::adapt_status(preset, response),
            QuestionKind::Refusal => response,
        };
        Ok(Answered { response, counted })
    }

    /// Decides about an original request. Works for all formats of decision requests. `question`
    /// contains the header fields and extensions of the original request.
    async fn decide_about(
        &self,
        preset: Preset,
        question: &Request<()>,
        asked: &AskedRequest<'_>,
        site: Option<&str>,
        kind: QuestionKind,
    ) -> Result<RequestDecision, QuestionError> {
        let has_agent = question.headers().contains_key(USER_AGENT);
        if !has_agent {
            self.errors.report_missing_agent(preset);
        }
        let sites = self.sites.load_full();
        let possible = match site {
            Some(name) => std::slice::from_ref(sites.named(name).ok_or(QuestionError::UNKNOWN_SITE)?),
            None => sites.of_request(asked, self.errors.settings.unknown_host),
        };
        if let Some(odd) = asked.odd.filter(|_| kind == QuestionKind::Decision) {
            self.errors.report_odd(odd);
        }
        let original = OriginalRequest::of(question).with_method(&asked.method).with_host(asked.host);
        let Some((DecisionSite { judge, quiet }, target)) = strictest(possible, original, asked) else {
            let (fields, outcome) = (Vec::new(), Outcome::Pass);
            return Ok(RequestDecision { outcome, record: None, fields, site: None, counted: None });
        };
        if let Some(fields) = ClientRequest::access_of(question.extensions()) {
            fields.add("site", &*judge.name);
            // For a `Refusal`, the original request has already been logged.
            if kind == QuestionKind::Decision {
                fields.set_asked_about(asked.for_log(question));
            }
        }
        let original = original.with_target(target);
        let (answer, counted) = match kind {
            QuestionKind::Decision => {
                let mut counted = judge.counts.request(target, question.method().into(), self.counts.listener);
                let answer = judge.answer(&original, RobotsTxtFrom::AskingProxy, &mut counted).await;
                if !has_agent {
                    judge.counts.without_agent();
                }
                (answer, Some((Arc::clone(&judge.counts), counted)))
            }
            QuestionKind::Refusal => (decided(quiet, &original), None),
        };
        let Answer { mut outcome, record, response_fields, .. } = answer;
        let fields = response_fields.map(|fields| fields.for_proxy()).unwrap_or_default();
        if let Outcome::Respond(response) = &mut outcome {
            response::set_refusal_status(response);
        }
        Ok(RequestDecision { outcome, record, fields, site: Some(Arc::clone(&judge.name)), counted })
    }

    fn respond_to_error(&self, error: QuestionError) -> Response<Bytes> {
        self.errors.report(error);
        match self.errors.settings.on_error {
            OnError::Pass => response::pass(),
            OnError::Refuse => {
                response::forbidden("the decision request of the proxy does not describe the request of the client")
            }
        }
    }
}

impl From<Response<Bytes>> for Answered {
    fn from(response: Response<Bytes>) -> Self {
        Self { response, counted: None }
    }
}

/// Replaces the address of the proxy with the address of the client. Without the address of the
/// client, no exemption by address applies.
fn set_client(question: &mut Request<()>, address: Option<IpAddr>) {
    let known = question.extensions_mut().get_or_insert_default::<ClientRequest>();
    let listener = known.peer.and_then(|asking| asking.listener);
    known.peer = address.map(|address| Peer::at(SocketAddr::new(address, 0), listener));
}

/// Returns the site and the target that determine the decision. If there are several sites or
/// targets, decides for every pair, and returns the pair with the strictest decision.
fn strictest<'s, 'a>(
    sites: &'s [DecisionSite],
    original: OriginalRequest<'_>,
    asked: &AskedRequest<'a>,
) -> Option<(&'s DecisionSite, &'a [u8])> {
    if let ([site], []) = (sites, &*asked.further_targets) {
        return Some((site, asked.target));
    }
    let targets = || std::iter::once(asked.target).chain(asked.further_targets.iter().copied());
    let possible = sites.iter().flat_map(|site| targets().map(move |target| (site, target)));
    let mut strictest = None;
    for (site, target) in possible {
        let strictness = Strictness::of(&decided(&site.quiet, &original.with_target(target)));
        if strictest.as_ref().is_none_or(|(known, _)| *known < strictness) {
            strictest = Some((strictness, (site, target)));
        }
        if strictness == Strictness::Refused {
            break;
        }
    }
    strictest.map(|(_, decided)| decided)
}

/// Strictness of a decision, in ascending order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Strictness {
    Passed,
    /// The request is forwarded, but a rule disallows it, or the request came before the crawl
    /// delay had passed.
    Reported,
    Tagged,
    Refused,
}

impl Strictness {
    fn of(answer: &Answer) -> Self {
        let is_reported = |record: &Record| record.is_disallowed() || record.reason == Reason::Limited;
        match answer.outcome {
            Outcome::Respond(_) => Self::Refused,
            Outcome::Tag => Self::Tagged,
            _ if answer.record.as_deref().is_some_and(is_reported) => Self::Reported,
            _ => Self::Passed,
        }
    }
}

/// Returns the decision of the layer `quiet`, which does not count or log requests.
fn decided(quiet: &RobotsLayer, request: &OriginalRequest<'_>) -> Answer {
    quiet.decide(&request.answered_elsewhere()).respond(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_request_may_contain_its_site_in_the_path() {
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

    #[test]
    fn dot_segments_that_lead_out_of_the_preset_are_detected() {
        let leaves = |below: &str| {
            ["/-/auth/caddy", "/-/site/a/refusal/envoy"]
                .map(|endpoint| QuestionTarget::of(&format!("{endpoint}{below}")).unwrap().leaves_preset())
        };
        for below in [
            "/../../../robots.txt",
            "/..",
            "/%2e%2E/../../robots.txt",
            "/..%2f..%2F../robots.txt",
            "/..\\..",
            "/a//../../x",
            "/a/./../../x",
            "/a%2fb/../../x",
            "/a/..%2f..",
            "%2f..%2f../robots.txt",
        ] {
            assert_eq!(leaves(below), [true, true], "{below}");
        }
        for below in
            ["", "/", "?/../..", "/?../..", "/a/../drafts/x", "/a/b/..%2f../x", "/a/..%2fdrafts/x", "/a../..b/..."]
        {
            assert_eq!(leaves(below), [false, false], "{below}");
        }
    }
}
