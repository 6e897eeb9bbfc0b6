//! The layer, its builder methods, and the judgement of a request before it is answered.

use std::marker::PhantomData;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use http::{Extensions, HeaderValue, Request, Response, Uri};
use tower_layer::Layer;

use super::answer::Answer;
use super::enforce::Judged;
use super::enforcer::{Counting, CrawlerRecords, Enforcer, RobotsTxtPlace};
use super::event::{Event, Interest, Observers};
use super::original::OriginalRequest;
use super::rate_limit::RateLimitedRequest;
use super::refusal::IntoRefusal;
use super::service::{Robots, RobotsTxtService, SameBody};
use crate::agent::{Identity, IntoNetwork};
use crate::live::AgentLookups;
use crate::rules::ValueError;
use crate::source::IntoSites;

/// Serves `/robots.txt` and enforces it for crawlers. Creates [`Robots`] services. Cheap to clone.
#[derive(Clone)]
#[must_use]
pub struct RobotsLayer {
    pub(super) enforcer: Arc<Enforcer>,
}

impl RobotsLayer {
    /// Creates a layer for one site ([`LiveRobots`](crate::live::LiveRobots)) or for several sites,
    /// chosen by host ([`Sites`](crate::source::Sites)).
    ///
    /// The layer judges the target of the request as it receives it. In a nested axum router the
    /// target lacks its prefix, so a disallowed crawler passes. Use `RobotsLayer::for_axum08` there
    /// (feature `axum08`). With that feature,
    /// [`Status::stripped_targets`](crate::live::Status::stripped_targets) counts such requests.
    pub fn new(sites: impl IntoSites) -> Self {
        let enforcer = Enforcer {
            sites: sites.into_sites(),
            target_from: None,
            address_from: None,
            trusted_proxies: Arc::default(),
            agent_from: None,
            identity_from: None,
            exempt_if: None,
            counting: Counting::Here,
            #[cfg(feature = "verify")]
            sender_check: None,
            observers: Observers::default(),
            crawler_records: CrawlerRecords::Omit,
            refuse_with: None,
            agent_lookups: None,
            nested_target: None,
            robots_txt: RobotsTxtPlace::Here,
            notes: Arc::default(),
        };
        Self { enforcer: Arc::new(enforcer) }
    }

    /// Sets a function that finds the target as the client sent it, for requests that an outer
    /// service has rewritten. If the function returns `None`, and by default, the target is
    /// [`Request::uri`](http::Request::uri). If the function panics, the request passes, and
    /// [`Status::faults`](crate::live::Status::faults) counts the panic. A second call replaces the
    /// function.
    ///
    /// An app on axum 0.8 needs no such function: `RobotsLayer::for_axum08` reads the target that
    /// the outermost router received. The example is for a proxy that keeps the original target in
    /// a field, and a service of yours that reads this field if the peer is trusted:
    ///
    /// ```
    /// # use http::Uri;
    /// # use tower_robots::{layer::RobotsLayer, live::LiveRobots};
    /// # let live = LiveRobots::text("# nothing restricted\n").open()?;
    /// #[derive(Clone)]
    /// struct SentTarget(Uri);
    ///
    /// let layer = RobotsLayer::new(live).target_from(|extensions| extensions.get::<SentTarget>().map(|uri| &uri.0));
    /// # Ok::<(), tower_robots::live::Rejection>(())
    /// ```
    pub fn target_from(
        self,
        target: impl for<'e> Fn(&'e Extensions) -> Option<&'e Uri> + Send + Sync + 'static,
    ) -> Self {
        self.with(|enforcer| enforcer.target_from = Some(Arc::new(target)))
    }

    /// Sets a function that finds the client's address. It is needed for exempt networks of the
    /// policy, for crawl delays and for a `Verifier`. Behind a proxy, the function returns the
    /// proxy's address; [`forwarded_for`](Self::forwarded_for) then finds the client's. There is no
    /// default, because only the server knows addresses; `RobotsLayer::for_axum08` reads axum's
    /// `ConnectInfo<SocketAddr>`. A second call replaces the function.
    ///
    /// Without an address, no network is exempt, all clients that claim to be the same crawler
    /// share its crawl delay, and no address verifies or refutes a claim. When the policy first
    /// needs an address and finds none, the layer logs a warning (`tower_robots::layer`).
    /// [`Status::without_address`](crate::live::Status::without_address) counts all such requests.
    ///
    /// The function is called for requests that a group applies to. If it panics, the request
    /// passes, and [`Status::faults`](crate::live::Status::faults) counts the panic. With hyper,
    /// tonic and similar servers, the code that accepts a connection puts its address into the
    /// extensions of each request.
    pub fn address_from(self, address: impl Fn(&Extensions) -> Option<IpAddr> + Send + Sync + 'static) -> Self {
        self.with(|enforcer| enforcer.address_from = Some(Arc::new(address)))
    }

    /// Trusts these proxies to name the client. If [`address_from`](Self::address_from) finds an
    /// address in one of these networks, the client is read from `X-Forwarded-For`, or from
    /// `Forwarded` (RFC 7239) if there is no `X-Forwarded-For`. The client is the first address,
    /// read from the right, that is in none of these networks.
    ///
    /// - Anyone can write the entries to its left, so they are ignored. Reading also stops at an
    ///   invalid entry. The fields are ignored if the peer is not a trusted proxy.
    /// - If all entries that were read are trusted proxies, the leftmost one is the client.
    /// - If a proxy names no client, the client is unknown, as without
    ///   [`address_from`](Self::address_from).
    /// - By default no proxy is trusted. A second call adds to the first.
    ///
    /// Name every proxy on the way, and nothing else. The layer believes the fields of every peer
    /// in these networks, so any of these peers can claim to be a client in an exempt network. A
    /// proxy that writes only `Forwarded` must remove an `X-Forwarded-For` sent by a client.
    ///
    /// ```
    /// use std::net::SocketAddr;
    /// use axum::extract::ConnectInfo;
    /// # use tower_robots::{layer::RobotsLayer, live::LiveRobots};
    /// # let live = LiveRobots::text("# nothing restricted\n").open()?;
    /// // With `into_make_service_with_connect_info::<SocketAddr>()`.
    /// let layer = RobotsLayer::new(live)
    ///     .address_from(|extensions| Some(extensions.get::<ConnectInfo<SocketAddr>>()?.ip()))
    ///     .forwarded_for(["127.0.0.0/8", "10.0.0.0/8"])?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Takes a list of [`Network`](crate::policy::Network)s, addresses or strings, and not an
    /// iterator. A `Result` is an iterator too: an `Err` would yield nothing, and no proxy would be
    /// trusted, without any error.
    ///
    /// ```compile_fail,E0277
    /// # use tower_robots::{layer::RobotsLayer, live::LiveRobots, policy::Network};
    /// # let live = LiveRobots::text("# nothing restricted\n").open().unwrap();
    /// let layer = RobotsLayer::new(live).forwarded_for("10.0.0.0/33".parse::<Network>());
    /// ```
    ///
    /// # Errors
    ///
    /// If a string is not a valid network.
    pub fn forwarded_for<N: IntoNetwork>(self, trusted: impl AsRef<[N]>) -> Result<Self, ValueError> {
        let before = self.enforcer.trusted_proxies.iter().copied().map(Ok);
        let proxies = before.chain(trusted.as_ref().iter().map(N::network)).collect::<Result<_, _>>()?;
        Ok(self.with(|enforcer| enforcer.trusted_proxies = proxies))
    }

    /// Sets a function that finds the client's `User-Agent`, for a proxy that sends its own name in
    /// that field and keeps the client's in another. The function returns every line of the other
    /// field. If it returns `None` or no line, and by default, the request's own `User-Agent` is
    /// used. If the function panics, the request passes, and
    /// [`Status::faults`](crate::live::Status::faults) counts the panic. A second call replaces the
    /// function.
    ///
    /// Any client can send such a field. Put it in the extensions only for requests from a proxy
    /// that sets or removes it.
    pub fn agent_from(
        self,
        agent: impl for<'e> Fn(&'e Extensions) -> Option<&'e [HeaderValue]> + Send + Sync + 'static,
    ) -> Self {
        self.with(|enforcer| enforcer.agent_from = Some(Arc::new(agent)))
    }

    /// Sets a function that returns the result of checking who sent the request, if something in
    /// front of the layer has checked that, such as a CDN. If the function returns `None`, the
    /// layer's `Verifier`, if any, checks the claim. If the function panics, the request passes,
    /// and [`Status::faults`](crate::live::Status::faults) counts the panic. A second call replaces
    /// the function.
    pub fn identity_from(self, identity: impl Fn(&Extensions) -> Option<Identity> + Send + Sync + 'static) -> Self {
        self.with(|enforcer| enforcer.identity_from = Some(Arc::new(identity)))
    }

    /// Exempts requests that the application has authenticated, such as those of a logged-in
    /// session: they pass and are not counted. `/robots.txt` is answered as usual. The function
    /// should read a result that an outer layer has put into the extensions; the mere presence of a
    /// cookie or field proves nothing. If the function panics, the request passes, and
    /// [`Status::faults`](crate::live::Status::faults) counts the panic. By default only the policy
    /// exempts requests. A second call replaces the function.
    ///
    /// ```
    /// # use tower_robots::{layer::RobotsLayer, live::LiveRobots};
    /// # let live = LiveRobots::text("# nothing restricted\n").open()?;
    /// #[derive(Clone)]
    /// struct Session;
    ///
    /// let layer = RobotsLayer::new(live).exempt_if(|extensions| extensions.get::<Session>().is_some());
    /// # Ok::<(), tower_robots::live::Rejection>(())
    /// ```
    pub fn exempt_if(self, is_exempt: impl Fn(&Extensions) -> bool + Send + Sync + 'static) -> Self {
        self.with(|enforcer| enforcer.exempt_if = Some(Arc::new(is_exempt)))
    }

    /// Lets a store that several processes share count the requests. The [`Judgement`] that
    /// [`decide`](Self::decide) returns names the bucket to count in. [`respond`](Self::respond)
    /// cannot wait for a store, so it counts in this process.
    pub fn counted_in_store(self) -> Self {
        self.with(|enforcer| enforcer.counting = Counting::InStore)
    }

    /// Re-creates the response to a request that another layer of the same sites has just refused,
    /// for proxies that cannot relay the original refusal and fetch it separately. Nothing is
    /// counted. If the request is not refused for another reason, it is answered with 429, because
    /// it must have exceeded its crawl delay.
    pub fn refusals_only(self) -> Self {
        self.with(|enforcer| enforcer.counting = Counting::Before)
    }

    /// Silences the warning that this layer gets no requests for `/robots.txt`, because another
    /// server, such as a CDN, answers them. By default, the layer warns once it has judged 100
    /// crawler requests without seeing a request for `/robots.txt`
    /// ([`Status::unserved`](crate::live::Status::unserved)).
    pub fn robots_txt_served_elsewhere(self) -> Self {
        self.with(|enforcer| enforcer.robots_txt = RobotsTxtPlace::Elsewhere)
    }

    /// Returns a service that answers every request, whatever its path, as the layer answers
    /// `/robots.txt`. Mount it on a route if requests for `/robots.txt` do not reach the layer, for
    /// example because it is added with `Router::route_layer` or to a single route. The service
    /// answers 404 if no site has the host, or if no robots.txt is known yet and the application
    /// should answer ([`WhenMissing::Relay`](crate::live::WhenMissing::Relay)).
    ///
    /// In an app on axum 0.8, merge `RobotsLayer::robots_txt_route` instead.
    pub fn robots_txt_service(&self) -> RobotsTxtService {
        self.enforcer.notes.has_route.store(true, Ordering::Relaxed);
        RobotsTxtService { enforcer: Arc::clone(&self.enforcer) }
    }

    /// Adds a callback for these requests:
    ///
    /// - requests that robots.txt disallows, whether they are refused, tagged or only observed;
    /// - requests that exceed their crawl delay
    ///   ([`Reason::Limited`](crate::policy::Reason::Limited));
    /// - requests of impostors that the policy tags or refuses, or would if the mode allowed it.
    ///
    /// [`Record::would`](super::Record::would) is the outcome under the mode `refuse`. The callback
    /// runs before the request is forwarded and must not block. If it panics, the decision is
    /// unchanged, the other observers are still called, and
    /// [`Status::callback_faults`](crate::live::Status::callback_faults) counts the panic. A second
    /// call adds another callback.
    pub fn on_disallowed(self, observer: impl Fn(&Event<'_>) + Send + Sync + 'static) -> Self {
        self.with(|enforcer| enforcer.observers.add(Interest::Reported, Arc::new(observer)))
    }

    /// Adds a callback for every request of a crawler, allowed or not, including requests for
    /// `/robots.txt`. [`Record`](super::Record) defines which agents count as crawlers. The
    /// callback runs before the request is forwarded and must not block. If it panics, the decision
    /// is unchanged, the other observers are still called, and
    /// [`Status::callback_faults`](crate::live::Status::callback_faults) counts the panic. A second
    /// call adds another callback.
    ///
    /// ```
    /// # use std::sync::atomic::{AtomicU64, Ordering};
    /// # use tower_robots::{layer::RobotsLayer, live::LiveRobots};
    /// # let live = LiveRobots::text("# nothing restricted\n").open()?;
    /// static REQUESTS_OF_SEARCH_ENGINES: AtomicU64 = AtomicU64::new(0);
    ///
    /// let layer = RobotsLayer::new(live).on_crawler(|event| {
    ///     if event.record.agent.category() == Some(tower_robots::agent::Category::Search) {
    ///         REQUESTS_OF_SEARCH_ENGINES.fetch_add(1, Ordering::Relaxed);
    ///     }
    /// });
    /// # Ok::<(), tower_robots::live::Rejection>(())
    /// ```
    pub fn on_crawler(self, observer: impl Fn(&Event<'_>) + Send + Sync + 'static) -> Self {
        self.with(|enforcer| enforcer.observers.add(Interest::Crawlers, Arc::new(observer)))
    }

    /// Counts how often the agents of a `User-Agent` line were found in the cache. Give the layer
    /// of each thread its own counters; see [`AgentLookups`]. By default nothing is counted. A
    /// second call replaces the counters.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tower_robots::{internals::AgentLookups, layer::RobotsLayer, live::LiveRobots, parts::OriginalRequest};
    /// # let live = LiveRobots::text("# nothing restricted\n").open()?;
    /// let lookups = Arc::new(AgentLookups::default());
    /// let layer = RobotsLayer::new(live).count_agent_lookups(Arc::clone(&lookups));
    /// let request = http::Request::get("/").header("user-agent", "GPTBot/1.2").body(())?;
    /// for _ in 0..3 {
    ///     let _ = layer.decide(&OriginalRequest::of(&request)).respond(None);
    /// }
    /// assert_eq!((lookups.hits(), lookups.misses()), (2, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn count_agent_lookups(self, counts: Arc<AgentLookups>) -> Self {
        self.with(|enforcer| enforcer.agent_lookups = Some(counts))
    }

    /// Makes [`Answer::record`] available for every request of a crawler, allowed or not.
    pub fn with_crawler_records(self) -> Self {
        self.with(|enforcer| enforcer.crawler_records = enforcer.crawler_records.max(CrawlerRecords::InAnswer))
    }

    /// Puts a [`Record`](super::Record) into the extensions of every crawler's request, allowed or
    /// not, so that handlers know which agent sent it. Responses of the layer itself get the record
    /// too. `RobotsLayer::for_axum08` enables this.
    pub fn with_crawler_extension(self) -> Self {
        self.with(|enforcer| enforcer.crawler_records = CrawlerRecords::InExtensions)
    }

    /// Sets a function that makes the response to a refused request. The default response is 403
    /// with text or problem details (RFC 9457). The function returns a `Response<Bytes>`, axum's
    /// `Html` (feature `axum08`), or a pair of a status and one of these:
    /// `(StatusCode, Html(page))`.
    ///
    /// A response with status 200, which `Response::new(page)` has, is sent with 403, because a
    /// crawler would otherwise take it for the page. Any other status is kept, and so is the status
    /// of a pair. A request that exceeds its crawl delay is still answered with 429
    /// ([`Event::limited`]). A second call replaces the function.
    ///
    /// The function is also called for gRPC calls ([`OriginalRequest::is_grpc_call`]), and its
    /// response is sent unchanged. A gRPC client cannot read a page; [`Event::refusal`] and
    /// [`Event::refusal_with_status`] make a response that it can read.
    ///
    /// The layer completes every response of the function: it sets `Cache-Control` to `no-store`,
    /// adds `User-Agent` to `Vary`, removes the body if the method is `HEAD`, and puts the
    /// [`Record`] into the extensions. If the function panics, the default refusal is sent, and
    /// [`Status::callback_faults`](crate::live::Status::callback_faults) counts the panic.
    ///
    /// [`Record`]: super::Record
    pub fn refuse_with<R: IntoRefusal>(self, refuse: impl Fn(&Event<'_>) -> R + Send + Sync + 'static) -> Self {
        let refuse = move |event: &Event<'_>| refuse(event).into_refusal(event.default_status());
        self.with(|enforcer| enforcer.refuse_with = Some(Arc::new(refuse)))
    }

    /// Returns the response if the layer answers the request itself. Otherwise prepares the request
    /// to be forwarded and returns `None`. This function does everything that the service does, for
    /// code that calls no Tower service. Observers are notified.
    ///
    /// In an axum app with `middleware::from_fn_with_state`:
    ///
    /// ```
    /// use axum::body::Body;
    /// use axum::extract::{Request, State};
    /// use axum::middleware::Next;
    /// use axum::response::Response;
    /// use tower_robots::layer::RobotsLayer;
    ///
    /// async fn robots(State(layer): State<RobotsLayer>, mut request: Request, next: Next) -> Response {
    ///     match layer.respond(&mut request) {
    ///         Some(response) => response.map(Body::from),
    ///         None => next.run(request).await,
    ///     }
    /// }
    /// ```
    pub fn respond<B>(&self, request: &mut Request<B>) -> Option<Response<Bytes>> {
        self.enforcer.answer(OriginalRequest::of(request)).respond(request)
    }

    /// Decides about a request once, without changing it. [`Judgement::respond`] makes the answer,
    /// either immediately or after a [store](Self::counted_in_store) has counted the request.
    /// Observers are notified.
    ///
    /// For a service that decides about requests that other servers answer:
    ///
    /// ```
    /// use http::{Method, Request, StatusCode};
    /// use tower_robots::layer::RobotsLayer;
    /// use tower_robots::parts::{OriginalRequest, Outcome};
    /// # use tower_robots::policy::Mode;
    /// # use tower_robots::live::LiveRobots;
    /// # let live = LiveRobots::text("User-agent: GPTBot\nDisallow: /drafts/\n").mode(Mode::Refuse).open()?;
    /// let layer = RobotsLayer::new(live);
    /// // A question as some proxy might put it.
    /// let question = Request::get("/auth").header("user-agent", "GPTBot/1.2").body(())?;
    /// let original = OriginalRequest::of(&question).with_method(&Method::HEAD).with_target(b"/%64rafts/\xFF").with_host(None);
    /// match layer.decide(&original.answered_elsewhere()).respond(None).outcome {
    ///     Outcome::Respond(refusal) => assert_eq!(refusal.status(), StatusCode::FORBIDDEN),
    ///     other => panic!("{other:?}"),
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn decide<'r>(&'r self, request: &'r OriginalRequest<'r>) -> Judgement<'r> {
        Judgement { enforcer: &self.enforcer, request, judged: self.enforcer.judge(*request) }
    }

    /// Converts the layer for places that need the inner service's response type, such as
    /// `tower::util::option_layer`. The response body keeps its type, which must implement
    /// `From<Bytes>`, as axum's body does.
    ///
    /// ```
    /// use axum::{Router, routing::get};
    /// use tower::util::option_layer;
    /// use tower_robots::layer::RobotsLayer;
    /// # use tower_robots::live::LiveRobots;
    /// # let live = LiveRobots::text("# nothing restricted\n").open()?;
    /// # let is_production = false;
    /// let robots = is_production.then(|| RobotsLayer::for_axum08(live).same_body());
    /// let app: Router = Router::new().route("/", get(async || "hello")).layer(option_layer(robots));
    /// # Ok::<(), tower_robots::live::Rejection>(())
    /// ```
    pub fn same_body(self) -> SameBodyLayer {
        SameBodyLayer(self)
    }

    /// Returns the client's address as found by [`address_from`](Self::address_from) and
    /// [`forwarded_for`](Self::forwarded_for), for observers that log it. Such an observer captures
    /// a clone of the layer.
    pub fn client_address(&self, request: &OriginalRequest<'_>) -> Option<IpAddr> {
        self.enforcer.address(request)
    }

    pub(super) fn with(mut self, change: impl FnOnce(&mut Enforcer)) -> Self {
        change(Arc::make_mut(&mut self.enforcer));
        self
    }
}

impl<S> Layer<S> for RobotsLayer {
    type Service = Robots<S>;

    fn layer(&self, inner: S) -> Robots<S> {
        Robots { enforcer: self.enforcer.clone(), inner, kind: PhantomData }
    }
}

/// Creates [`Robots`] services whose responses have the inner service's body type. Made by
/// [`RobotsLayer::same_body`].
#[derive(Clone, Debug)]
pub struct SameBodyLayer(RobotsLayer);

impl<S> Layer<S> for SameBodyLayer {
    type Service = Robots<S, SameBody>;

    fn layer(&self, inner: S) -> Self::Service {
        Robots { enforcer: self.0.enforcer.clone(), inner, kind: PhantomData }
    }
}

robots_core::debug_as!(|it| RobotsLayer { sites: it.enforcer.sites });

/// The judgement of a request: its answer, or the bucket that must be counted first.
///
/// For a service that counts requests in a store that several processes share:
///
/// ```
/// use std::time::Duration;
/// use tower_robots::layer::RobotsLayer;
/// use tower_robots::parts::{OriginalRequest, Outcome};
/// use tower_robots::live::LiveRobots;
/// use tower_robots::policy::{Mode, Policy, RateMode};
///
/// let live = LiveRobots::text("User-agent: GPTBot\nCrawl-delay: 10\n")
///     .policy(Policy::builder().mode(Mode::Refuse).rate(RateMode::Refuse).build())
///     .open()?;
/// let request = http::Request::get("/").header("user-agent", "GPTBot/1.2").body(())?;
/// let request = OriginalRequest::of(&request);
/// let layer = RobotsLayer::new(live).counted_in_store();
/// let judgement = layer.decide(&request);
/// let rate_limited = judgement.rate_limited().ok_or("limited")?;
/// assert_eq!(rate_limited.key, "gptbot claimed");
/// assert_eq!((rate_limited.interval.as_secs(), rate_limited.burst.get()), (10, 5));
/// // What a store might say: too soon by seven seconds.
/// let answer = judgement.respond(Some(Duration::from_secs(7)));
/// assert!(matches!(answer.outcome, Outcome::Respond(refusal) if refusal.status() == 429));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub struct Judgement<'r> {
    enforcer: &'r Enforcer,
    request: &'r OriginalRequest<'r>,
    judged: Judged,
}

impl Judgement<'_> {
    /// Returns the bucket that the request takes from; `None` if it is not limited. If there is a
    /// bucket, observers are notified when the request is answered; otherwise they have been
    /// notified already.
    pub const fn rate_limited(&self) -> Option<&RateLimitedRequest> {
        match &self.judged {
            Ok(_) => None,
            Err(rate_limited) => Some(&rate_limited.request),
        }
    }

    /// Returns the answer to the request. `wait` is the time to wait according to the store, or
    /// zero if the request passes. With `None`, a request with a [bucket](Self::rate_limited) is
    /// counted in this process. A request that the store lets pass is counted here too, so that
    /// this process's bucket does not hold more tokens than the store's if this process has to
    /// count alone.
    pub fn respond(self, wait: Option<Duration>) -> Answer {
        self.enforcer.answer_judged(self.judged, *self.request, wait)
    }
}

robots_core::debug_as!(|it| Judgement::<'_> { rate_limited: it.rate_limited() });
