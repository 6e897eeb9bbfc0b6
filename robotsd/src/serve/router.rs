//! From a request to its site.
//!
//! **The router of a worker is one pointer** that is loaded once a request. Replacing the sites stores another, on
//! connections that are open too; what a request began with, it ends with.

use std::collections::HashMap;
use std::convert::Infallible;
use std::future::Future;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HOST, HeaderValue};
use http::{Request, Response, StatusCode};
use http_body::Body;
use http_body_util::{Either, Full};
use pin_project_lite::pin_project;
use tower::{Layer, Service};
use tower_robots::layer::{self, Robots, Verify};
use tower_robots::source::HostMap;

use super::shared_pace::{self, PaceQuestion, SharedPace};
use crate::decision::{CountedRequest, MayWait, OutcomeCounts};
use crate::edge::{AccessFields, ReadyCall, RequestBody, ResponseCounts};
use crate::sites::{SiteBackend, SiteName, Sites};

/// Hands each request to the site of its host. Cheap to clone; all clones serve the same sites, also once they are
/// replaced.
#[derive(Clone, Debug)]
pub(super) struct Router<B = SiteBackend> {
    sites: Arc<ArcSwap<RouteTable<B>>>,
    /// Those of the listener whose requests it routes.
    counts: Arc<ResponseCounts>,
}

/// The counters of one worker, by site.
pub(super) type WorkerOutcomes = HashMap<SiteName, Arc<OutcomeCounts>>;

#[derive(Debug)]
struct RouteTable<B> {
    hosts: HostMap<SiteRoute<B>>,
    /// By site, for the map that takes this one's place.
    backends: HashMap<SiteName, B>,
}

/// A site, as one worker serves it.
#[derive(Clone, Debug)]
struct SiteRoute<B> {
    name: SiteName,
    service: Verify<SharedPace<Robots<B>>>,
    counts: Arc<OutcomeCounts>,
    may_wait: MayWait,
}

pin_project! {
    #[project = RouterFutureProjection]
    pub(super) enum RouterFuture<S>
    where
        S: Service<Request<RequestBody>>,
    {
        Site { #[pin] future: ReadyCall<S, Request<RequestBody>>, counts: Arc<OutcomeCounts>, counted: CountedRequest },
        Nowhere,
    }
}

impl Router {
    /// The router of one of several workers: it shares with the others only values that are never written.
    pub(super) fn new(sites: &Sites, workers: NonZeroUsize, outcomes: &WorkerOutcomes) -> Self {
        let table = RouteTable::new(sites, workers, outcomes, None);
        Self { sites: Arc::new(ArcSwap::from_pointee(table)), counts: Arc::default() }
    }

    /// The same for a listener, whose counters on this worker these are.
    pub(super) fn of_listener(&self, counts: Arc<ResponseCounts>) -> Self {
        Self { sites: Arc::clone(&self.sites), counts }
    }

    /// Serves other sites from the next request on; requests in progress finish with those they began with.
    /// Servers that are behind both keep their connections.
    pub(super) fn replace(&self, sites: &Sites, workers: NonZeroUsize, outcomes: &WorkerOutcomes) {
        let before = self.sites.load();
        self.sites.store(Arc::new(RouteTable::new(sites, workers, outcomes, Some(&before))));
    }
}

impl RouteTable<SiteBackend> {
    fn new(sites: &Sites, workers: NonZeroUsize, outcomes: &WorkerOutcomes, before: Option<&Self>) -> Self {
        let mut map = Self { hosts: HostMap::new(), backends: HashMap::new() };
        for site in sites.iter() {
            let before = before.and_then(|before| before.backends.get(&site.name));
            let Some(backend) = site.backend(workers, before) else { continue };
            let counts = outcomes.get(&site.name).cloned().unwrap_or_default();
            let (layer, verify) = site.waiting_layer(&counts);
            let question = sites.rate_store.as_ref().map(|store| PaceQuestion::new(store, site));
            let may_wait = if question.is_some() { MayWait::Yes } else { site.may_wait() };
            let waiting = (may_wait == MayWait::Yes).then(|| Arc::clone(&counts));
            let inner = shared_pace::followed(layer.clone()).layer(backend.clone());
            let paced = SharedPace { inner, question, waiting };
            let service = verify.layer(paced);
            let route = SiteRoute { name: site.name.clone(), service, counts, may_wait };
            for host in site.host_patterns() {
                // The config was refused if a host was malformed or belonged to two sites.
                let _ = map.hosts.insert(host, route.clone());
            }
            map.backends.insert(site.name.clone(), backend);
        }
        map
    }
}

impl<S, B> Service<Request<RequestBody>> for Router<S>
where
    S: Service<Request<RequestBody>, Response = Response<B>, Error = Infallible> + Clone,
    B: Body<Data = Bytes>,
{
    type Response = Response<Either<layer::ResponseBody<B>, Full<Bytes>>>;
    type Error = Infallible;
    type Future = RouterFuture<Verify<SharedPace<Robots<S>>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        // Which service has to be ready depends on the host of the request.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<RequestBody>) -> Self::Future {
        let sites = self.sites.load();
        let site = match request.headers().get(HOST) {
            Some(host) => sites.hosts.get(host),
            None => sites.hosts.any(),
        };
        match site {
            Some(SiteRoute { name, service, counts, may_wait }) => {
                let path = request.uri().path().as_bytes();
                let mut counted = counts.request(path, request.method().into(), self.counts.listener());
                if let Some(fields) = request.extensions().get::<AccessFields>() {
                    fields.add("site", &**name);
                }
                // The layer decides in here, or once it need not wait for evidence any more: services behind it are always ready,
                // and answer in the future.
                let future = ReadyCall::new(service.clone(), request);
                counts.decided(&mut counted, *may_wait);
                RouterFuture::Site { future, counts: Arc::clone(counts), counted }
            }
            None => {
                self.counts.siteless(request.method().into(), StatusCode::MISDIRECTED_REQUEST);
                RouterFuture::Nowhere
            }
        }
    }
}

impl<S, B> Future for RouterFuture<S>
where
    S: Service<Request<RequestBody>, Response = Response<B>, Error = Infallible>,
{
    type Output = Result<Response<Either<B, Full<Bytes>>>, Infallible>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project() {
            RouterFutureProjection::Site { future, counts, counted } => {
                counts.resume(counted);
                let polled = future.poll(context);
                let may_wait = if polled.is_ready() { MayWait::No } else { MayWait::Yes };
                counts.decided(counted, may_wait);
                let Ok(response) = ready!(polled);
                counts.answered(counted, response.status());
                Poll::Ready(Ok(response.map(Either::Left)))
            }
            RouterFutureProjection::Nowhere => Poll::Ready(Ok(nowhere().map(Either::Right))),
        }
    }
}

/// RFC 9110, section 15.5.20: the request was meant for another server.
fn nowhere() -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from("421 Misdirected Request: there is no site for this host\n"));
    *response.status_mut() = StatusCode::MISDIRECTED_REQUEST;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use std::future::{Pending, Ready, pending, ready};
    use std::task::Waker;

    use http_body_util::Empty;
    use std::time::Duration;
    use tower::ServiceExt;

    use tower_robots::layer::{RobotsLayer, VerifyLayer};
    use tower_robots::live::LiveRobots;
    use tower_robots::policy::{Mode, Policy, RateMode};

    use super::*;
    use crate::decision::{RequestOutcome, SiteTotals};
    use crate::shared_rate::{SharedRate, StoreSettings, StoreUrl};

    /// A backend that has to be ready before each call, and no clone of which is ready.
    #[derive(Debug)]
    struct Strict {
        is_ready: bool,
        polls_until_ready: usize,
    }

    impl Clone for Strict {
        fn clone(&self) -> Self {
            Self { is_ready: false, ..*self }
        }
    }

    impl Service<Request<RequestBody>> for Strict {
        type Response = Response<Empty<Bytes>>;
        type Error = Infallible;
        type Future = Ready<Result<Response<Empty<Bytes>>, Infallible>>;

        fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            if self.polls_until_ready > 0 {
                self.polls_until_ready -= 1;
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            self.is_ready = true;
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, _: Request<RequestBody>) -> Self::Future {
            assert!(std::mem::take(&mut self.is_ready), "called without being ready");
            ready(Ok(Response::new(Empty::new())))
        }
    }

    #[tokio::test]
    async fn a_backend_is_ready_before_it_is_called() {
        for polls_until_ready in [0, 1, 3] {
            let layer = RobotsLayer::new(LiveRobots::inline("User-agent: *\nDisallow: /private/\n").open().unwrap());
            let verify = VerifyLayer::new(&layer, Duration::ZERO);
            let service = SharedPace {
                inner: layer.layer(Strict { is_ready: false, polls_until_ready }),
                question: None,
                waiting: None,
            };
            let mut router = routed(verify.layer(service), Arc::default(), MayWait::No);
            for _ in 0..2 {
                let request = Request::new(RequestBody::empty());
                let response = router.ready().await.unwrap().call(request).await.unwrap();
                assert_eq!(response.status(), StatusCode::OK);
            }
        }
    }

    /// A router whose only site is this.
    fn routed<B>(service: Verify<SharedPace<Robots<B>>>, counts: Arc<OutcomeCounts>, may_wait: MayWait) -> Router<B> {
        let mut map = RouteTable { hosts: HostMap::new(), backends: HashMap::new() };
        map.hosts.insert("*", SiteRoute { name: SiteName::from("site"), service, counts, may_wait }).unwrap();
        Router { sites: Arc::new(ArcSwap::from_pointee(map)), counts: Arc::default() }
    }

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
    async fn a_decision_is_counted_when_it_is_made_and_not_when_the_upstream_answers() {
        let policy = Policy::builder().mode(Mode::Refuse).rate(RateMode::Refuse).build();
        let live = LiveRobots::inline("User-agent: GPTBot\nCrawl-delay: 1\n").policy(policy).open().unwrap();
        // It is never there: each request is counted here, without being waited for.
        let store = StoreSettings::new(StoreUrl::new("redis://127.0.0.1:1").unwrap());
        let store = SharedRate::start(store, |_| {}).unwrap();
        let question = || {
            let (store, layer) = (store.clone(), RobotsLayer::new(live.clone()));
            Arc::new(PaceQuestion { store, site: SiteName::from("site"), has_directory: false, layer })
        };
        for (agent, question, want) in [
            ("Mozilla/5.0 (X11; Linux) Gecko/1 Firefox/2", None, RequestOutcome::Untouched),
            ("Mozilla/5.0 (X11; Linux) Gecko/1 Firefox/2", Some(question()), RequestOutcome::Untouched),
            ("GPTBot/1.2", None, RequestOutcome::Allowed),
            ("GPTBot/1.2", Some(question()), RequestOutcome::Allowed),
        ] {
            let counts = Arc::<OutcomeCounts>::default();
            let crawlers = Arc::clone(&counts);
            let layer = RobotsLayer::new(live.clone()).observe_crawlers(move |event| crawlers.crawler(event));
            let may_wait = if question.is_some() { MayWait::Yes } else { MayWait::No };
            let waiting = question.is_some().then(|| Arc::clone(&counts));
            let verify = VerifyLayer::new(&layer, Duration::ZERO);
            let paced = SharedPace { inner: shared_pace::followed(layer).layer(Silent), question, waiting };
            let mut router = routed(verify.layer(paced), Arc::clone(&counts), may_wait);
            let request = Request::get("/").header("user-agent", agent).body(RequestBody::empty()).unwrap();
            let mut response = Box::pin(router.ready().await.unwrap().call(request));
            assert!(response.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            // The client goes away.
            drop(response);
            let mut totals = SiteTotals::default();
            totals.add(&counts);
            let mut decisions = [0; RequestOutcome::ALL.len()];
            decisions[want as usize] = 1;
            assert_eq!(totals.decisions, decisions, "{agent} {may_wait:?}");
            assert!(!totals.decision_durations.is_empty(), "{agent} {may_wait:?}");
        }
    }
}
