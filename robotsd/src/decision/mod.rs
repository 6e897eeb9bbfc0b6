//! The decision endpoint: other proxies ask here whether a client's request goes on.
//!
//! | target | answer |
//! |---|---|
//! | `/-/auth/{preset}` and anything below | 200 with an empty body, and `Robots-Verdict` where the request is tagged; or the refusal |
//! | `/-/refusal/{preset}` | the refusal once more, for a proxy that cannot relay the answer to its question |
//! | `/robots.txt` | the file of the site that `Host` names |
//! | `/-/health` | 200, for the health checks of proxies |
//!
//! HAProxy may ask on the same listener in messages of SPOP, which are the questions of its preset by other means ([`spoe`]).
//!
//! The preset says which fields name the original request ([`preset_fields`]); they are never guessed. A question that names
//! none is passed or refused as the config says, counted and logged ([`question_error`]); a path is never made up. The verdicts
//! are the layer's, so a refusal is the same here and there.

mod crawler_counts;
mod original_request;
mod outcome_counts;
mod preset;
mod preset_fields;
mod question_error;
mod request_outcome;
mod response;
mod spoe;

pub(crate) mod fuzzing;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HOST, HeaderValue, USER_AGENT};
use http::uri::PathAndQuery;
use http::{Method, Request, Response};
use http_body_util::Full;
use tower::Service;
use tower_robots::layer::{Original, Outcome, ROBOTS_VERDICT, RobotsLayer};
use tower_robots::rules::RequestPath;
use tower_robots::source::HostMap;

pub(crate) use self::crawler_counts::CrawlerCombinations;
pub(crate) use self::outcome_counts::{CountedRequest, MayWait, OutcomeCounts, OutcomeTotals, SiteTotals};
pub(crate) use self::question_error::QuestionErrors;
pub(crate) use self::request_outcome::RequestOutcome;
pub(crate) use self::spoe::MESSAGES;

use self::preset::Preset;
use self::question_error::QuestionError;
use self::response::DecisionFuture;
use crate::config::OnError;
use crate::edge::{AccessFields, Callers, EdgeLimits, Peer, RequestBody, ResponseCounts};

/// Answers on one listener of one worker. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Decisions(Arc<DecisionState>);

#[derive(Debug)]
struct DecisionState {
    sites: SiteTable,
    errors: Arc<QuestionErrors>,
    counts: Arc<ResponseCounts>,
}

/// A response, and where it is counted: with its site where one was found.
struct Answered {
    response: Response<Bytes>,
    counted: Option<(Arc<OutcomeCounts>, CountedRequest)>,
}

/// Whether a question is the first about its request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum QuestionKind {
    Decision,
    /// The request was decided about already: it is counted and logged.
    Refusal,
}

/// What decides for every host on one worker; all its listeners follow when it is replaced.
pub(crate) type SiteTable = Arc<ArcSwap<HostMap<DecisionSite>>>;

/// What decides for a site.
#[derive(Clone, Debug)]
pub(crate) struct DecisionSite {
    /// For the log of requests.
    pub(crate) name: Arc<str>,
    /// Those of the worker.
    pub(crate) counts: Arc<OutcomeCounts>,
    /// Writes to the log, and counts what is disallowed.
    pub(crate) layer: RobotsLayer,
    /// Logs and counts nothing: for the second question about a request that is already in the log.
    pub(crate) quiet: RobotsLayer,
}

/// The limits of a listener for decisions, from those of one for clients.
///
/// A target may be as long as a head, and fields are as many as proxies let through: what we would not serve a client is
/// judged here all the same, because passing it would be a way round the rules, and refusing it would refuse people what
/// their proxy serves.
pub(crate) fn limits(clients: EdgeLimits) -> EdgeLimits {
    let fields = clients.fields.max(500);
    EdgeLimits { callers: Callers::AskingProxies, target_bytes: clients.head_bytes, fields, ..clients }
}

const AUTH: &str = "/-/auth/";
const REFUSAL: &str = "/-/refusal/";

impl Decisions {
    /// `counts` are those of the listener on this worker.
    pub(crate) fn new(sites: SiteTable, errors: Arc<QuestionErrors>, counts: Arc<ResponseCounts>) -> Self {
        Self(Arc::new(DecisionState { sites, errors, counts }))
    }
}

impl Service<Request<RequestBody>> for Decisions {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = DecisionFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<RequestBody>) -> DecisionFuture {
        let Answered { mut response, counted } = self.0.answer(&mut request);
        match counted {
            Some((site, counted)) => site.answered(&counted, response.status()),
            None => self.0.counts.siteless(request.method().into(), response.status()),
        }
        if request.method() != Method::HEAD && response.body().is_empty() {
            // A refusal of a HEAD says how long its body would be; this question may be a GET about one.
            response.headers_mut().remove(CONTENT_LENGTH);
        }
        DecisionFuture::new(response, request.into_body())
    }
}

impl DecisionState {
    fn answer<B>(&self, request: &mut Request<B>) -> Answered {
        let target = request.uri().path_and_query().map_or("/", PathAndQuery::as_str);
        if let Some(name) = target.strip_prefix(AUTH) {
            let decided = match Preset::named(name) {
                Some((preset, at)) => {
                    let decided = self.decide(preset, AUTH.len() + at, request, QuestionKind::Decision);
                    decided.map(|Answered { response, counted }| Answered {
                        response: response::understood_by(preset, response),
                        counted,
                    })
                }
                None => Err(QuestionError::unknown_preset()),
            };
            return decided.unwrap_or_else(|error| self.give_up(error).into());
        }
        if let Some(name) = target.strip_prefix(REFUSAL) {
            let decided = match Preset::named(name) {
                Some((preset, at)) => self.decide(preset, REFUSAL.len() + at, request, QuestionKind::Refusal).ok(),
                None => None,
            };
            // The proxy has got a 403 already; where there is no reason any more, it stays one.
            let refusal = decided.filter(|answered| !answered.response.status().is_success());
            return refusal.unwrap_or_else(|| response::forbidden("the request was refused").into());
        }
        if RequestPath::new(target.as_bytes()).is_robots_txt() {
            let host = request.headers().get(HOST).map(HeaderValue::as_bytes);
            let sites = self.sites.load();
            let Some(site) = site(&sites, host) else { return response::elsewhere().into() };
            let mut counted = site.counts.request(target.as_bytes(), request.method().into(), self.counts.listener());
            let outcome = site.layer.answer(&Original::of(request)).into_outcome();
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

    /// Decides about the request that a question is about; `below` is where the target goes on after the preset.
    fn decide<B>(
        &self,
        preset: Preset,
        below: usize,
        question: &mut Request<B>,
        kind: QuestionKind,
    ) -> Result<Answered, QuestionError> {
        // The peer is the proxy, not the client. A client whose address is not known is not exempt.
        let asking = question.extensions_mut().remove::<Peer>();
        if let Some(address) = preset.address(question.headers()) {
            let listener = asking.and_then(|peer| peer.listener);
            question.extensions_mut().insert(Peer::at(SocketAddr::new(address, 0), listener));
        }
        let question = &*question;
        let target = question.uri().path_and_query().map_or("/", PathAndQuery::as_str);
        let asked = preset.read(question.method(), &target[below..], question.headers())?;
        if !question.headers().contains_key(USER_AGENT) {
            self.errors.no_agent(preset);
        }
        let sites = self.sites.load();
        let Some(site) = site(&sites, asked.host) else { return Ok(response::pass().into()) };
        if let Some(fields) = question.extensions().get::<AccessFields>() {
            fields.add("site", &*site.name);
        }
        let original =
            Original::of(question).with_method(&asked.method).with_target(asked.target).with_host(asked.host);
        let (layer, mut counted) = match kind {
            QuestionKind::Decision => {
                (&site.layer, Some(site.counts.request(asked.target, question.method().into(), self.counts.listener())))
            }
            QuestionKind::Refusal => (&site.quiet, None),
        };
        let outcome = layer.decide(&original).into_outcome();
        if let Some(counted) = &mut counted {
            site.counts.decided(counted, MayWait::No);
            if !question.headers().contains_key(USER_AGENT) {
                site.counts.without_agent();
            }
        }
        let response = match outcome {
            Outcome::Tag(record) => {
                let mut response = response::pass();
                response.headers_mut().insert(ROBOTS_VERDICT, record.to_field());
                response.extensions_mut().insert(*record);
                response
            }
            Outcome::Respond(response) => response::refusal(*response),
            // Outcome::Pass, and what a later version of the library may add: only a refusal stops a request.
            _ => response::pass(),
        };
        Ok(Answered { response, counted: counted.map(|counted| (Arc::clone(&site.counts), counted)) })
    }

    fn give_up(&self, error: QuestionError) -> Response<Bytes> {
        self.errors.report(error);
        match self.errors.on_error() {
            OnError::Pass => response::pass(),
            OnError::Refuse => response::forbidden("the proxy does not say which request it asks about"),
        }
    }
}

impl From<Response<Bytes>> for Answered {
    fn from(response: Response<Bytes>) -> Self {
        Self { response, counted: None }
    }
}

fn site<'s>(sites: &'s HostMap<DecisionSite>, host: Option<&[u8]>) -> Option<&'s DecisionSite> {
    match host {
        Some(host) => sites.get(host),
        None => sites.any(),
    }
}
