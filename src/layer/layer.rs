//! The layer with its builder methods, and the type [`Judgement`].

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
use super::signals::Signals;
use crate::agent::{Identity, IntoNetwork};
use crate::live::AgentLookups;
use crate::rules::ValueError;
use crate::source::IntoSites;

/// A Tower layer that serves `/robots.txt` and enforces it for crawlers. The layer creates
/// [`Robots`] services. Cloning the layer is cheap.
#[derive(Clone)]
#[must_use]
pub struct RobotsLayer {
    pub(super) enforcer: Arc<Enforcer>,
}

impl RobotsLayer {
    /// Creates a layer for one site ([`LiveRobots`](crate::live::LiveRobots)), or for several sites
    /// ([`Sites`](crate::source::Sites)). The host of the request selects a site.
    ///
    /// The layer judges the target of the request that it receives, even if a router has changed
    /// this target. In a nested axum router, the target lacks the prefix of the router, so the
    /// rules do not match and disallowed crawlers pass. Use `RobotsLayer::for_axum08` in nested
    /// routers (feature `axum08`). With this feature,
    /// [`Status::stripped_targets`](crate::live::Status::stripped_targets) counts the requests
    /// whose target lacks the prefix.
    ///
    /// If a request passes through two layers from `new` for the same site, both layers judge the
    /// request and notify their observers, but only one layer counts it for crawl delays.
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
            signals: None,
            agent_lookups: None,
            nested_target: None,
            robots_txt: RobotsTxtPlace::Here,
            notes: Arc::default(),
        };
        Self { enforcer: Arc::new(enforcer) }
    }

    /// Sets a function that finds the target that the client sent. Set this function if an outer
    /// service rewrites targets. If no function is set or the function returns `None`, the target
    /// is [`Request::uri`](http::Request::uri). If the function panics, the request passes, and
    /// [`Status::faults`](crate::live::Status::faults) counts the panic. A second call replaces the
    /// function.
    ///
    /// An app on axum 0.8 does not need this function, because `RobotsLayer::for_axum08` uses the
    /// target that the outermost router received. In this example, a trusted proxy sends the
    /// original target in a field. An outer service of the application stores the value of this
    /// field in an extension:
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

    /// Sets a function that returns the address of the peer: the client or, behind a proxy, the
    /// proxy. If the peer is a proxy, [`forwarded_for`](Self::forwarded_for) finds the client's
    /// address. The layer needs this address for the exempt networks of the policy, for crawl
    /// delays and for a `Verifier`. There is no default, because only the server knows the peer of
    /// a connection. `RobotsLayer::for_axum08` uses axum's `ConnectInfo<SocketAddr>`. A second call
    /// replaces the function.
    ///
    /// A client whose address is unknown never counts as part of an exempt network, and its claim
    /// to be a crawler cannot be checked by address. All clients with unknown addresses that claim
    /// to be the same crawler share one rate limit bucket. The layer logs a warning (target
    /// `tower_robots::layer`) when the policy first needs a client's address that is unknown.
    /// [`Status::without_address`](crate::live::Status::without_address) counts every request whose
    /// client address is unknown although the policy needs it.
    ///
    /// The function is called only if a group of the robots.txt applies to the agent of the
    /// request, or if a `Verifier` checks the sender. If the function panics, the request passes,
    /// and [`Status::faults`](crate::live::Status::faults) counts the panic. With hyper, tonic and
    /// similar servers, the code that accepts a connection puts the peer's address into the
    /// extensions of each request.
    pub fn address_from(self, address: impl Fn(&Extensions) -> Option<IpAddr> + Send + Sync + 'static) -> Self {
        self.with(|enforcer| enforcer.address_from = Some(Arc::new(address)))
    }

    /// Trusts the proxies in these networks to forward the client's address. If
    /// [`address_from`](Self::address_from) returns an address in one of these networks, the
    /// client's address is the rightmost address in `X-Forwarded-For` that is not in one of these
    /// networks. If there is no `X-Forwarded-For`, `Forwarded` (RFC 7239) is used instead.
    ///
    /// - All entries to the left of the client's address are ignored, because clients can forge
    ///   them. An invalid entry and all entries to its left are ignored, too. If the peer is not a
    ///   trusted proxy, both fields are ignored.
    /// - If all valid entries are addresses of trusted proxies, the leftmost of these addresses
    ///   counts as the client's.
    /// - If a trusted proxy sends no address, the client's address is unknown.
    /// - By default, no proxy is trusted. A second call adds proxies.
    ///
    /// The address of a proxy that is not listed counts as the client's. If this address is
    /// private, link-local or loopback, and the proxy forwards the client's address, the layer logs
    /// a warning when the policy first needs the client's address
    /// ([`Status::without_address`](crate::live::Status::without_address)). If the proxy forwards
    /// no address, the layer logs a warning when the proxy's address first exempts a request.
    ///
    /// List every proxy between the clients and the application, and nothing else. The layer trusts
    /// the fields `X-Forwarded-For` and `Forwarded` of every peer in these networks, so each of
    /// these peers can make its client appear to be in an exempt network. If a proxy sets only
    /// `Forwarded`, it must also remove any `X-Forwarded-For` that a client sends.
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
    /// The argument is a list of [`Network`](crate::policy::Network)s, addresses or strings.
    /// Iterators are not accepted, because `Result` implements `IntoIterator`: an `Err` would
    /// silently become an empty list of proxies.
    ///
    /// ```compile_fail,E0277
    /// # use tower_robots::{layer::RobotsLayer, live::LiveRobots, policy::Network};
    /// # let live = LiveRobots::text("# nothing restricted\n").open().unwrap();
    /// let layer = RobotsLayer::new(live).forwarded_for("10.0.0.0/33".parse::<Network>());
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if a string is not a valid network, or if a network contains all addresses:
    /// every client could then claim any address.
    pub fn forwarded_for<N: IntoNetwork>(self, trusted: impl AsRef<[N]>) -> Result<Self, ValueError> {
        let before = self.enforcer.trusted_proxies.iter().copied().map(Ok);
        let added = trusted.as_ref().iter().map(|network| match network.network()? {
            all if all.length() == 0 => Err(ValueError::new(
                all.to_string(),
                "contains all addresses, so every client could claim any address: write the addresses of your proxies",
            )),
            network => Ok(network),
        });
        let proxies = before.chain(added).collect::<Result<_, _>>()?;
        Ok(self.with(|enforcer| enforcer.trusted_proxies = proxies))
    }

    /// Sets a function that finds the client's `User-Agent`, for requests from a proxy that sends
    /// its own `User-Agent` and forwards the client's in another field. The function must return
    /// all lines of this forwarded field. If the function returns `None` or an empty list, the
    /// request's own `User-Agent` is used. If the function panics, the request passes, and
    /// [`Status::faults`](crate::live::Status::faults) counts the panic. A second call replaces the
    /// function.
    ///
    /// A client could send the forwarded field itself. Therefore, store the field's lines in the
    /// extensions only if the request comes from a proxy that always sets or removes the field.
    pub fn agent_from(
        self,
        agent: impl for<'e> Fn(&'e Extensions) -> Option<&'e [HeaderValue]> + Send + Sync + 'static,
    ) -> Self {
        self.with(|enforcer| enforcer.agent_from = Some(Arc::new(agent)))
    }

    /// Sets a function that returns the identity of the request's sender. Use this function if a
    /// service in front of the layer, for example a CDN, has already checked the sender. If the
    /// function returns `None`, the layer's `Verifier`, if any, checks the sender. If the function
    /// panics, the request passes, and [`Status::faults`](crate::live::Status::faults) counts the
    /// panic. A second call replaces the function.
    pub fn identity_from(self, identity: impl Fn(&Extensions) -> Option<Identity> + Send + Sync + 'static) -> Self {
        self.with(|enforcer| enforcer.identity_from = Some(Arc::new(identity)))
    }

    /// Sets a function that reports whether a request is exempt, for example because it belongs to
    /// a logged-in session. Exempt requests pass and are not counted for crawl delays. Requests for
    /// `/robots.txt` are answered as usual. An outer layer should authenticate the request and
    /// store the result in the extensions; this function should only read that result. The function
    /// must not trust cookies or fields by themselves, because a client can send any value. If the
    /// function panics, the request passes, and [`Status::faults`](crate::live::Status::faults)
    /// counts the panic. By default, only the policy exempts requests. A second call replaces the
    /// function.
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

    /// Lets the caller count rate-limited requests in a store that several processes share.
    /// [`decide`](Self::decide) then returns a [`Judgement`] that contains the key of the bucket in
    /// the store. [`respond`](Self::respond) cannot wait for a store, so it always counts requests
    /// in this process.
    #[doc(hidden)]
    pub fn counted_in_store(self) -> Self {
        self.with(|enforcer| enforcer.counting = Counting::InStore)
    }

    /// Restricts the layer to creating refusals. Use such a layer if a proxy cannot forward a
    /// refusal: after another layer for the same sites has refused a request, the proxy fetches the
    /// refusal with a second request. A layer that only creates refusals does not count requests.
    /// If a crawl delay applies and the rules allow the second request, the response is 429,
    /// because the first request was probably refused for arriving too soon.
    #[doc(hidden)]
    pub fn refusals_only(self) -> Self {
        self.with(|enforcer| enforcer.counting = Counting::Before)
    }

    /// Declares that another server, such as a CDN, answers requests for `/robots.txt`. The layer
    /// then omits the warning that it would log after judging 100 requests of crawlers, none of
    /// them for `/robots.txt` ([`Status::unserved`](crate::live::Status::unserved)).
    pub fn robots_txt_served_elsewhere(self) -> Self {
        self.with(|enforcer| enforcer.robots_txt = RobotsTxtPlace::Elsewhere)
    }

    /// Returns a service that treats every request as a request for `/robots.txt`, regardless of
    /// its path. Use this service in a route for `/robots.txt` if requests for this path do not
    /// reach the layer, for example because the layer was added with `Router::route_layer` or to a
    /// single route. The service answers with 404 if the request's host belongs to no site, or if
    /// the site has [`WhenMissing::Relay`](crate::live::WhenMissing::Relay) and no robots.txt is
    /// known yet.
    ///
    /// In an app on axum 0.8, merge `RobotsLayer::robots_txt_route` instead.
    pub fn robots_txt_service(&self) -> RobotsTxtService {
        self.enforcer.notes.has_route.store(true, Ordering::Relaxed);
        RobotsTxtService { enforcer: Arc::clone(&self.enforcer) }
    }

    /// Adds a callback for these requests:
    ///
    /// - requests that robots.txt disallows, even if they are only tagged or observed;
    /// - requests that come before the crawl delay has passed
    ///   ([`Reason::Limited`](crate::policy::Reason::Limited) or
    ///   [`Reason::LimitObserved`](crate::policy::Reason::LimitObserved));
    /// - requests of impostors, if the policy tags or refuses these requests, or would do so in the
    ///   mode `refuse`.
    ///
    /// [`Record::would`](super::Record::would) is the action that the policy would take in the mode
    /// `refuse`. The callback runs before the request is forwarded and must not block. If the
    /// callback panics, the decision is unchanged, the other observers are still called, and
    /// [`Status::callback_faults`](crate::live::Status::callback_faults) counts the panic. A second
    /// call adds another callback.
    pub fn on_disallowed(self, observer: impl Fn(&Event<'_>) + Send + Sync + 'static) -> Self {
        self.with(|enforcer| enforcer.observers.add(Interest::Reported, Arc::new(observer)))
    }

    /// Adds a callback for every request of a crawler, allowed or not, including requests for
    /// `/robots.txt`. The documentation of [`Record`](super::Record) explains which agents count as
    /// crawlers for this callback. The callback runs before the request is forwarded and must not
    /// block. If the callback panics, the decision is unchanged, the other observers are still
    /// called, and [`Status::callback_faults`](crate::live::Status::callback_faults) counts the
    /// panic. A second call adds another callback.
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

    /// Counts hits and misses of the cache that maps `User-Agent` lines to agents. By default, they
    /// are not counted. If several threads serve requests, give each thread a layer with its own
    /// counters. The type of the counters, [`AgentLookups`], is in the module `internals` and is
    /// therefore not stable. A second call replaces the counters of the first call.
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

    /// Adds a [`Record`](super::Record) to the [`Answer`] for every request of a crawler, even if
    /// the request is allowed.
    pub fn with_crawler_records(self) -> Self {
        self.with(|enforcer| enforcer.crawler_records = enforcer.crawler_records.max(CrawlerRecords::InAnswer))
    }

    /// Adds a [`Record`](super::Record) to the extensions of every request of a crawler, even if
    /// the request is allowed, so that handlers can read which agent sent the request. The record
    /// is also added to the extensions of the layer's own responses. `RobotsLayer::for_axum08` also
    /// adds these records.
    pub fn with_crawler_extension(self) -> Self {
        self.with(|enforcer| enforcer.crawler_records = CrawlerRecords::InExtensions)
    }

    /// Sets a function that creates the response to a refused request. The default response is 403
    /// with plain text or problem details (RFC 9457). The function may return a `Response<Bytes>`,
    /// axum's `Html` (feature `axum08`), or a pair of a status code and one of these values, such
    /// as `(StatusCode, Html(page))`.
    ///
    /// If the function returns a response with the status code 200, which is the default of
    /// `Response::new(page)`, the layer changes the status code to 403, because crawlers would
    /// treat a refusal with 200 as the page. Any other status code, and every status code of a
    /// pair, is kept. The function is not called for a request that comes before the crawl delay
    /// has passed. Such a request always gets 429 ([`Event::limited`]). A second call replaces the
    /// function.
    ///
    /// The function is also called for gRPC calls ([`OriginalRequest::is_grpc_call`]), and the
    /// layer does not convert its response to a gRPC response. A gRPC client does not understand an
    /// HTML page; use [`Event::refusal`] or [`Event::refusal_with_status`] to create a gRPC
    /// response.
    ///
    /// The layer completes the response of the function: it sets `Cache-Control` to `no-store`,
    /// adds `User-Agent` to `Vary`, removes the body if the method is `HEAD`, and puts the
    /// [`Record`] into the extensions. If the function panics, the default refusal is sent, and
    /// [`Status::callback_faults`](crate::live::Status::callback_faults) counts the panic.
    ///
    /// [`Record`]: super::Record
    pub fn refuse_with<R: IntoRefusal>(self, refuse: impl Fn(&Event<'_>) -> R + Send + Sync + 'static) -> Self {
        let refuse = move |event: &Event<'_>| refuse(event).into_refusal(event.default_status());
        self.with(|enforcer| enforcer.refuse_with = Some(Arc::new(refuse)))
    }

    /// Sets the fields that the layer adds to responses: usage preferences, links to licences, and
    /// fields that the operator defines for certain paths. By default, the layer adds no fields.
    ///
    /// ```
    /// # use tower_robots::LiveRobots;
    /// use tower_robots::RobotsLayer;
    /// use tower_robots::layer::{FieldRule, Signals, UsageField};
    ///
    /// # fn layer(live: LiveRobots) -> Result<RobotsLayer, Box<dyn std::error::Error>> {
    /// let drafts = FieldRule::new("/drafts/", "X-Robots-Tag", "noindex")?;
    /// let signals = Signals::default().usage(UsageField::Unanimous).license_links().field(drafts);
    /// let layer = RobotsLayer::new(live).signals(signals);
    /// # Ok(layer)
    /// # }
    /// ```
    pub fn signals(self, signals: Signals) -> Self {
        #[cfg(feature = "tracing")]
        signals.trace_problems(&self.enforcer.sites);
        self.with(|enforcer| enforcer.signals = signals.shared())
    }

    /// Returns the response if the layer answers the request itself. Otherwise prepares the request
    /// to be forwarded and returns `None`. Use this function in code without Tower services: it
    /// does what the [`Robots`] service does, except that it cannot add the fields of
    /// [`signals`](Self::signals) to the application's responses. Notifies the observers.
    ///
    /// If the layer adds fields ([`signals`](Self::signals)), call [`decide`](Self::decide) and
    /// [`Judgement::respond`]. Take [`Answer::response_fields`] from the answer before you call
    /// [`Answer::respond`], and add them to the response with
    /// [`ResponseFields::add_to`](crate::parts::ResponseFields::add_to). If you do not take the
    /// fields from the answer, the layer logs a warning for the first response that lacks them.
    ///
    /// This example uses `respond` in an axum app with `middleware::from_fn_with_state`:
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
    ///
    /// The compiler warns if the response is discarded, because the inner service would then serve
    /// a page that the layer has refused:
    ///
    /// ```compile_fail
    /// #![deny(unused_must_use)]
    /// # fn forward(layer: &tower_robots::RobotsLayer, mut request: http::Request<()>) {
    /// layer.respond(&mut request);
    /// # }
    /// ```
    #[must_use = "send this response instead of calling the inner service: the layer has answered the request"]
    pub fn respond<B>(&self, request: &mut Request<B>) -> Option<Response<Bytes>> {
        self.enforcer.answer(OriginalRequest::of(request)).respond(request)
    }

    /// Decides how to handle a request, without changing the request. [`Judgement::respond`]
    /// creates the answer. The observers are notified.
    ///
    /// In this example, a proxy asks a service whether to refuse a request. The service only
    /// decides, and the proxy responds to the client:
    ///
    /// ```
    /// use http::{Method, Request, StatusCode};
    /// use tower_robots::layer::RobotsLayer;
    /// use tower_robots::parts::{OriginalRequest, Outcome};
    /// # use tower_robots::policy::Mode;
    /// # use tower_robots::live::LiveRobots;
    /// # let live = LiveRobots::text("User-agent: GPTBot\nDisallow: /drafts/\n").mode(Mode::Refuse).open()?;
    /// let layer = RobotsLayer::new(live);
    /// // The proxy's request. The method and target of the client's request are set separately.
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

    /// Converts the layer so that its service has the same response body type as the inner service.
    /// For example, `tower::util::option_layer` accepts only a layer of this kind. The body type
    /// must implement `From<Bytes>`, as axum's body does.
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
    /// [`forwarded_for`](Self::forwarded_for). To log the address in an observer, move a clone of
    /// the layer into the observer.
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

/// Creates [`Robots`] services with the same response body type as the inner service.
/// [`RobotsLayer::same_body`] returns this layer.
#[derive(Clone, Debug)]
pub struct SameBodyLayer(RobotsLayer);

impl<S> Layer<S> for SameBodyLayer {
    type Service = Robots<S, SameBody>;

    fn layer(&self, inner: S) -> Self::Service {
        Robots { enforcer: self.0.enforcer.clone(), inner, kind: PhantomData }
    }
}

robots_core::debug_as!(|it| RobotsLayer { sites: it.enforcer.sites });

/// The judgement of a request, from [`RobotsLayer::decide`]. [`respond`](Self::respond) creates the
/// answer.
#[must_use]
pub struct Judgement<'r> {
    enforcer: &'r Enforcer,
    request: &'r OriginalRequest<'r>,
    judged: Judged,
}

impl Judgement<'_> {
    /// Returns the rate limit bucket of the request; `None` if the request has no rate limit, or if
    /// the layer itself counts requests. If the request has a bucket, [`respond`](Self::respond)
    /// notifies the observers. Otherwise, the observers were notified before this judgement was
    /// returned.
    #[doc(hidden)]
    pub const fn rate_limited(&self) -> Option<&RateLimitedRequest> {
        match &self.judged {
            Ok(_) => None,
            Err(rate_limited) => Some(&rate_limited.request),
        }
    }

    /// Returns the answer to the request. If `wait` is `None`, requests with a crawl delay are
    /// counted in this process. If several processes count requests in a shared store, `wait` is
    /// the waiting time that the store returned; zero means that the request passes. A request that
    /// the store allows also takes a token from the local bucket, so that this bucket is up to date
    /// if the process later has to count without the store.
    pub fn respond(self, wait: Option<Duration>) -> Answer {
        self.enforcer.answer_judged(self.judged, *self.request, wait)
    }
}

robots_core::debug_as!(|it| Judgement::<'_> { rate_limited: it.rate_limited() });
