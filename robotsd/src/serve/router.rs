//! Routes each request to the site of its host.
//!
//! **The router of a worker is one pointer**, which is loaded once per request. To replace the
//! sites, a new pointer is stored. Open connections use the new sites from their next request on; a
//! request in progress continues with the old sites.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::Arc;

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::header::{HOST, LINK};
use http::{Request, Response, StatusCode};
use http_body_util::{Either, Full};
use tower_robots::layer::Record;
use tower_robots::parts::{OriginalRequest, Outcome};
use tower_robots::source::HostMap;

use crate::counting::OutcomeCounts;
use crate::edge::ResponseCounts;
use crate::http_common::{ClientRequest, EdgeService, RequestBody, plain_answer};
use crate::refusal::AnsweringCase;
use crate::request::{RobotsTxtFrom, SiteJudge};
use crate::sites::{PermitBody, RefusalServers, SiteBackend, SiteName, Sites};

/// Passes each request to the site of its host. Clones are cheap, and share their sites.
#[derive(Clone, Debug)]
pub(super) struct Router<B = SiteBackend> {
    sites: Arc<ArcSwap<RouteTable<B>>>,
    /// Response counters of the listener on this worker.
    counts: Arc<ResponseCounts>,
}

pub(super) type WorkerOutcomes = HashMap<SiteName, Arc<OutcomeCounts>>;

#[derive(Debug)]
struct RouteTable<B> {
    hosts: HostMap<Arc<SiteRoute<B>>>,
    /// Routes by site. When the table is replaced, the new table keeps using the connections of
    /// unchanged backends.
    routes: HashMap<SiteName, Arc<SiteRoute<B>>>,
}

/// A site on one worker: the layer that decides about requests, the backend for allowed requests,
/// and the servers that answer refused requests.
#[derive(Debug)]
struct SiteRoute<B> {
    judge: SiteJudge,
    backend: B,
    refusals: RefusalServers<B>,
}

/// The body of a response from a site's backend, or from a server that answers refused requests.
type BackendBody<B> = Either<B, PermitBody>;

impl Router {
    /// Creates the router of one worker. Each worker has its own copy of the values that are
    /// written for each request.
    pub(super) fn new(sites: &Sites, workers: NonZeroUsize, outcomes: &WorkerOutcomes) -> Self {
        let table = RouteTable::new(sites, workers, outcomes, None);
        Self { sites: Arc::new(ArcSwap::from_pointee(table)), counts: Arc::default() }
    }

    pub(super) fn with_listener_counts(&self, counts: Arc<ResponseCounts>) -> Self {
        Self { sites: Arc::clone(&self.sites), counts }
    }

    /// Replaces the sites for all later requests. Requests in progress continue with the previous
    /// sites. An upstream that has not changed keeps its connections.
    pub(super) fn replace(&self, sites: &Sites, workers: NonZeroUsize, outcomes: &WorkerOutcomes) {
        let before = self.sites.load();
        self.sites.store(Arc::new(RouteTable::new(sites, workers, outcomes, Some(&before))));
    }
}

impl RouteTable<SiteBackend> {
    fn new(sites: &Sites, workers: NonZeroUsize, outcomes: &WorkerOutcomes, before: Option<&Self>) -> Self {
        let mut map = Self { hosts: HostMap::new(), routes: HashMap::new() };
        for site in sites.iter() {
            let before = before.and_then(|before| before.routes.get(&site.name));
            let Some(backend) = site.backend(workers, before.map(|before| &before.backend)) else { continue };
            let refusals = site.refusal_servers(workers, before.map(|before| &before.refusals));
            let counts = outcomes.get(&site.name).cloned().unwrap_or_default();
            let judge = site.judge(&counts, sites.rate_store.as_ref(), site.wait());
            let route = Arc::new(SiteRoute { judge, backend, refusals });
            for host in site.host_patterns() {
                // The result is ignored: a config with an invalid host, or with one host in two
                // sites, was already rejected.
                let _ = map.hosts.insert(host, Arc::clone(&route));
            }
            map.routes.insert(site.name.clone(), route);
        }
        map
    }
}

impl<B: EdgeService> EdgeService for Router<B> {
    type Body = Either<BackendBody<B::Body>, Full<Bytes>>;

    async fn answer(self, mut request: Box<Request<RequestBody>>) -> Response<Self::Body> {
        let Some(site) = self.site_of(&request) else {
            self.counts.count_siteless(request.method().into(), StatusCode::MISDIRECTED_REQUEST);
            return misdirected_response().map(Either::Right);
        };
        let judge = &site.judge;
        let path = request.uri().path().as_bytes();
        let mut counted = judge.counts.request(path, request.method().into(), self.counts.listener);
        if let Some(fields) = ClientRequest::access_of(request.extensions()) {
            fields.add("site", &*judge.name);
        }
        let mut answer = judge.answer(&OriginalRequest::of(&request), RobotsTxtFrom::Site, &mut counted).await;
        // The record of the decision is kept if robotsd responds, because a server that answers
        // refused requests needs this record. If robotsd does not respond, the record is dropped,
        // because no outer layer reads it.
        let is_answered = matches!(answer.outcome, Outcome::Respond(_));
        let record = if is_answered { answer.record.take() } else { None };
        let fields = answer.response_fields.take();
        let mut response = match answer.respond(&mut request) {
            Some(response) => match response.extensions().get::<AnsweringCase>().copied() {
                None => response.map(|body| Either::Right(Full::new(body))),
                Some(case) => Box::pin(site.refusal_response(case, request, record, response)).await,
            },
            None => site.backend.clone().answer(request).await.map(|body| Either::Left(Either::Left(body))),
        };
        if let Some(fields) = fields {
            fields.add_to(response.status(), response.headers_mut());
        }
        judge.counts.count_response(&counted, response.status());
        response
    }
}

impl<B: EdgeService> SiteRoute<B> {
    /// Returns the response of the server that is configured for the refusal case, or `refusal` if
    /// there is no such response.
    async fn refusal_response(
        &self,
        AnsweringCase(case): AnsweringCase,
        request: Box<Request<RequestBody>>,
        record: Option<Box<Record>>,
        refusal: Response<Bytes>,
    ) -> Response<Either<BackendBody<B::Body>, Full<Bytes>>> {
        let answered = match self.refusals.get(case).cloned().flatten() {
            Some(server) => server.answer(request, record.as_deref()).await,
            None => None,
        };
        match answered {
            Some(mut response) => {
                // `Link` fields of the refusal, such as a link to a licence, are also added to the
                // server's response.
                for link in refusal.headers().get_all(LINK) {
                    response.headers_mut().append(LINK, link.clone());
                }
                response.map(|body| Either::Left(Either::Right(body)))
            }
            None => refusal.map(|body| Either::Right(Full::new(body))),
        }
    }
}

impl<B> Router<B> {
    fn site_of(&self, request: &Request<RequestBody>) -> Option<Arc<SiteRoute<B>>> {
        let sites = self.sites.load();
        let host = request.headers().get(HOST);
        host.map_or_else(|| sites.hosts.any(), |host| sites.hosts.get(host)).cloned()
    }
}

/// Returns the response to a request for an unknown host (RFC 9110, section 15.5.20).
fn misdirected_response() -> Response<Full<Bytes>> {
    let text = "421 Misdirected Request: this server has no site for this host\n";
    plain_answer(StatusCode::MISDIRECTED_REQUEST, text).map(Full::new)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::future::{Pending, pending};
    use std::task::{Context, Poll, Waker};
    use std::time::Duration;

    use http_body_util::Empty;
    use tower::Service;
    use tower_robots::layer::RobotsLayer;
    use tower_robots::live::LiveRobots;
    use tower_robots::parts::VerifyLayer;
    use tower_robots::policy::{Mode, Policy, RateMode};

    use super::*;
    use crate::counting::{RequestOutcome, SiteTotals};
    use crate::request::PaceStore;
    use crate::shared_rate::{SharedRate, StoreSettings, StoreUrl};

    /// A backend that never answers.
    #[derive(Clone, Debug)]
    struct Silent;

    impl Service<Request<RequestBody>> for Silent {
        type Response = Response<Empty<Bytes>>;
        type Error = Infallible;
        type Future = Pending<Result<Response<Empty<Bytes>>, Infallible>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, _: Request<RequestBody>) -> Self::Future {
            pending()
        }
    }

    #[tokio::test]
    async fn a_request_is_counted_once_and_before_the_upstream_responds() {
        let policy = Policy::builder().mode(Mode::Refuse).rate(RateMode::Refuse).build();
        let live = LiveRobots::text("User-agent: GPTBot\nCrawl-delay: 1\n").policy(policy).open().unwrap();
        // No store listens at this address, so this process counts alone and does not wait.
        let store = StoreSettings::new(StoreUrl::new("redis://127.0.0.1:1").unwrap());
        let store = SharedRate::start(store, |_| {}).unwrap();
        let store = || PaceStore { store: store.clone(), site: SiteName::from("site"), has_directory: false };
        for (agent, store, want) in [
            ("Mozilla/5.0 (X11; Linux) Gecko/1 Firefox/2", None, RequestOutcome::Untouched),
            ("Mozilla/5.0 (X11; Linux) Gecko/1 Firefox/2", Some(store()), RequestOutcome::Untouched),
            ("GPTBot/1.2", None, RequestOutcome::Allowed),
            ("GPTBot/1.2", Some(store()), RequestOutcome::Allowed),
        ] {
            let counts = Arc::<OutcomeCounts>::default();
            let layer = RobotsLayer::new(live.clone()).with_crawler_records();
            let layer = layer.count_agent_lookups(Arc::clone(counts.agent_lookups()));
            let layer = if store.is_some() { layer.counted_in_store() } else { layer };
            let evidence = VerifyLayer::new(&layer, Duration::ZERO);
            let judge = SiteJudge {
                name: SiteName::from("site"),
                counts: Arc::clone(&counts),
                layer,
                evidence,
                store,
                services: None,
            };
            let mut table = RouteTable { hosts: HostMap::new(), routes: HashMap::new() };
            let route = SiteRoute { judge, backend: Silent, refusals: Arc::default() };
            table.hosts.insert("*", Arc::new(route)).unwrap();
            let router = Router { sites: Arc::new(ArcSwap::from_pointee(table)), counts: Arc::default() };
            let request = Request::get("/").header("user-agent", agent).body(RequestBody::empty()).unwrap();
            let mut response = Box::pin(router.answer(request.into()));
            assert!(response.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            // When a client disconnects, the future is dropped.
            drop(response);
            let mut totals = SiteTotals::default();
            counts.add_to(&mut totals);
            let mut decisions = [0; RequestOutcome::ALL.len()];
            decisions[want as usize] = 1;
            assert_eq!(totals.decisions, decisions, "{agent}");
            assert!(!totals.decision_durations.is_empty(), "{agent}");
            let lookups = counts.agent_lookups();
            assert_eq!(lookups.hits() + lookups.misses(), 1, "{agent}");
        }
    }
}
