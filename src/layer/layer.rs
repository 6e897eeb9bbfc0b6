//! The layer, how it is built, and its judgement of a request before that is answered.

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

/// Serves `/robots.txt` and holds crawlers to it; makes [`Robots`]. Cheap to clone.
#[derive(Clone)]
#[must_use]
pub struct RobotsLayer {
    pub(super) enforcer: Arc<Enforcer>,
}

impl RobotsLayer {
    /// A layer for one site ([`LiveRobots`](crate::live::LiveRobots)) or for several by host
    /// ([`Sites`](crate::source::Sites)).
    ///
    /// The target is that of the request as the layer gets it. In a nested axum router that is one without its prefix: a
    /// disallowed crawler passes. `RobotsLayer::for_axum08`, with the feature `axum08`, is right there; with that feature
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

    /// Finds the target as the client sent it, where an outer service has rewritten the request's own. If the function
    /// returns `None`, and by default, the target is [`Request::uri`](http::Request::uri). The function belongs to judging:
    /// if it panics, the request passes, and [`Status::faults`](crate::live::Status::faults) counts it. A second call replaces the first.
    ///
    /// An app on axum 0.8 needs no function: `RobotsLayer::for_axum08` reads the target that the outermost router got. For
    /// a proxy in front that keeps it in a field, and a service of yours that reads the field where it may:
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

    /// Finds the client's address, for the exempt networks of the policy, for delays and for a `Verifier`. Behind a proxy it finds the
    /// proxy's, and [`forwarded_for`](Self::forwarded_for) the client's. Only the server knows addresses, so there is no default;
    /// `RobotsLayer::for_axum08` reads the `ConnectInfo<SocketAddr>` of axum. A second call replaces the function of the first.
    ///
    /// Without an address no network is exempt, all clients that claim to be one crawler share its delay, and no address verifies or
    /// refutes a claim. The first request for which the policy needs an address and none is found is logged as a warning
    /// (`tower_robots::layer`), and [`Status::without_address`](crate::live::Status::without_address) counts them.
    ///
    /// It is called for requests that a group applies to, and belongs to judging: if it panics, the request passes, and
    /// [`Status::faults`](crate::live::Status::faults) counts it. In hyper, tonic and the like the code that accepts a connection puts the
    /// address into the extensions of its requests.
    pub fn address_from(self, address: impl Fn(&Extensions) -> Option<IpAddr> + Send + Sync + 'static) -> Self {
        self.with(|enforcer| enforcer.address_from = Some(Arc::new(address)))
    }

    /// Believes these proxies about who the client is. If the address that [`address_from`](Self::address_from) finds is one of theirs, the
    /// client is read from `X-Forwarded-For`, or from `Forwarded` (RFC 7239) where there is no `X-Forwarded-For`: from the right, the first
    /// address that is in none of these networks. Entries left of it can be written by anyone and do not count; nor does an entry that
    /// is no address, nor the field of a client that comes without a proxy. If all of them are proxies, the one furthest left is the
    /// client. If a proxy names no client, the client is unknown, as without [`address_from`](Self::address_from). Default: no proxy is
    /// trusted. A second call adds to the first.
    ///
    /// Name every proxy on the way, and nothing else: the fields of every peer in these networks are believed, so whoever is in one of them
    /// can name a client of an exempt network. A proxy that writes only `Forwarded`
    /// has to remove an `X-Forwarded-For` that a client sends.
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
    /// A list of [`Network`](crate::policy::Network)s, addresses, or their texts, and not an iterator: a `Result` is an iterator too, of
    /// nothing where it is an error, and would trust no proxy without a word.
    ///
    /// ```compile_fail,E0277
    /// # use tower_robots::{layer::RobotsLayer, live::LiveRobots, policy::Network};
    /// # let live = LiveRobots::text("# nothing restricted\n").open().unwrap();
    /// let layer = RobotsLayer::new(live).forwarded_for("10.0.0.0/33".parse::<Network>());
    /// ```
    ///
    /// # Errors
    ///
    /// If a text is not a valid network.
    pub fn forwarded_for<N: IntoNetwork>(self, trusted: impl AsRef<[N]>) -> Result<Self, ValueError> {
        let before = self.enforcer.trusted_proxies.iter().copied().map(Ok);
        let proxies = before.chain(trusted.as_ref().iter().map(N::network)).collect::<Result<_, _>>()?;
        Ok(self.with(|enforcer| enforcer.trusted_proxies = proxies))
    }

    /// Finds the client's `User-Agent`, where a proxy in front sends a name of its own in that field and keeps the client's
    /// in another: every line of the other field. If the function returns `None` or no line at all, and by default, the
    /// request's `User-Agent` counts. The function belongs to judging: if it panics, the request passes, and
    /// [`Status::faults`](crate::live::Status::faults) counts it. A second call replaces the first.
    ///
    /// Any client can send such a field, so put it in the extensions only for requests from a proxy that sets or removes
    /// it.
    pub fn agent_from(
        self,
        agent: impl for<'e> Fn(&'e Extensions) -> Option<&'e [HeaderValue]> + Send + Sync + 'static,
    ) -> Self {
        self.with(|enforcer| enforcer.agent_from = Some(Arc::new(agent)))
    }

    /// Finds the result of checking the claim that a request makes about its sender, where something in front of the layer has
    /// checked it, such as a content delivery network. If the function returns `None`, the layer's `Verifier` checks it, if it
    /// has one. The function belongs to judging: if it panics, the request passes, and
    /// [`Status::faults`](crate::live::Status::faults) counts it. A second call replaces the first.
    pub fn identity_from(self, identity: impl Fn(&Extensions) -> Option<Identity> + Send + Sync + 'static) -> Self {
        self.with(|enforcer| enforcer.identity_from = Some(Arc::new(identity)))
    }

    /// Exempts requests that the application knows to be someone's, such as those of a session that is open: they pass, and nothing of them
    /// is counted. `/robots.txt` is answered as ever. The extensions say it, where a layer outside has put the result of a check: that
    /// there is a cookie or a field proves nothing. The function belongs to judging: if it panics, the request passes, and
    /// [`Status::faults`](crate::live::Status::faults) counts it. Default: none is exempt but by the policy.
    /// A second call replaces the first.
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

    /// Leaves it to a store which several processes share to count requests: the [`Judgement`] of [`decide`](Self::decide) says what to
    /// count. [`respond`](Self::respond), which has no verdict of the store, counts here.
    pub fn counted_in_store(self) -> Self {
        self.with(|enforcer| enforcer.counting = Counting::InStore)
    }

    /// Answers requests that another layer of the same sites has refused a moment ago: for a proxy in front that could not relay the
    /// refusal, and requests it. Nothing is counted. A request that is not refused for another reason came too soon, and is answered
    /// with 429.
    pub fn refusals_only(self) -> Self {
        self.with(|enforcer| enforcer.counting = Counting::Before)
    }

    /// Silences the warning that nobody asks this layer for `/robots.txt`: another server, such as a CDN, answers that request. Default:
    /// the layer answers it, and warns after 100 requests of crawlers that were judged before one for `/robots.txt` came
    /// ([`Status::unserved`](crate::live::Status::unserved)).
    pub fn robots_txt_served_elsewhere(self) -> Self {
        self.with(|enforcer| enforcer.robots_txt = RobotsTxtPlace::Elsewhere)
    }

    /// A service that answers every request, whatever its path, as the layer answers one for `/robots.txt`: for a route, if the layer is
    /// in a place that requests for `/robots.txt` do not reach, such as `Router::route_layer` or one route of many. It answers 404 if the
    /// host has no site, and while no robots.txt is known that the application should answer
    /// ([`WhenMissing::Relay`](crate::live::WhenMissing::Relay)).
    ///
    /// In an app on axum 0.8, `RobotsLayer::robots_txt_route` is a route to merge.
    pub fn robots_txt_service(&self) -> RobotsTxtService {
        self.enforcer.notes.has_route.store(true, Ordering::Relaxed);
        RobotsTxtService { enforcer: Arc::clone(&self.enforcer) }
    }

    /// Calls back for every request that robots.txt disallows, whether it is refused, tagged or only observed, for one that comes
    /// too soon ([`Reason::Limited`](crate::policy::Reason::Limited)), and for that of an impostor which the policy tags or refuses, or
    /// would if the mode let it. [`Record::would`](super::Record::would) says what the mode `refuse` would do. The callback runs before
    /// the request goes on and must not block. If it panics, the decision stands, the other observers are called, and
    /// [`Status::callback_faults`](crate::live::Status::callback_faults) counts it. A second call adds to the first.
    pub fn on_disallowed(self, observer: impl Fn(&Event<'_>) + Send + Sync + 'static) -> Self {
        self.with(|enforcer| enforcer.observers.add(Interest::Reported, Arc::new(observer)))
    }

    /// Calls back for every request of a crawler, allowed or not, those for `/robots.txt` too. [`Record`](super::Record) says
    /// which agents those are. The callback runs before the request goes on and must not block. If it panics, the decision
    /// stands, the other observers are called, and
    /// [`Status::callback_faults`](crate::live::Status::callback_faults) counts it. A second call adds to the first.
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

    /// Counts how often the agents of a `User-Agent` line were known. Give the layer of each thread counts of its own: see
    /// [`AgentLookups`]. Nothing is counted by default. A second call replaces the first.
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

    /// Has [`Answer::record`] say who sends a request for every one of a crawler, allowed or not.
    pub fn with_crawler_records(self) -> Self {
        self.with(|enforcer| enforcer.crawler_records = enforcer.crawler_records.max(CrawlerRecords::InAnswer))
    }

    /// Puts a [`Record`](super::Record) into the extensions of every crawler's request, allowed or not, so that handlers know
    /// which agent sends it; and into those of a response that the layer makes itself. `RobotsLayer::for_axum08` does.
    pub fn with_crawler_extension(self) -> Self {
        self.with(|enforcer| enforcer.crawler_records = CrawlerRecords::InExtensions)
    }

    /// Makes the response to a refused request, instead of the default: 403 with text or problem details (RFC 9457). The function returns
    /// a `Response<Bytes>`, with the feature `axum08` also axum's `Html`, or one of them behind a status: `(StatusCode, Html(page))`. A
    /// response with 200, the status of `Response::new(page)`, gets 403, because a crawler would take it for the page; any other status
    /// stays, and so does the one of a pair. A request that exceeds its crawl delay is answered with 429 all the same
    /// ([`Event::limited`]). A second call replaces the function of the first.
    ///
    /// The function is also called for a call of gRPC, which [`OriginalRequest::is_grpc_call`] recognises; its response is sent as it is.
    /// Such a client cannot read a page: [`Event::refusal`] and [`Event::refusal_with_status`] make what it reads.
    ///
    /// For every response of the function, `Cache-Control` becomes `no-store`, `Vary` names `User-Agent`, a response to
    /// `HEAD` loses its body, and the [`Record`] is put in the response's extensions. If the function panics, the request
    /// is refused with the default, and [`Status::callback_faults`](crate::live::Status::callback_faults) counts it.
    ///
    /// [`Record`]: super::Record
    pub fn refuse_with<R: IntoRefusal>(self, refuse: impl Fn(&Event<'_>) -> R + Send + Sync + 'static) -> Self {
        let refuse = move |event: &Event<'_>| refuse(event).into_refusal(event.default_status());
        self.with(|enforcer| enforcer.refuse_with = Some(Arc::new(refuse)))
    }

    /// The response to a request that goes no further; `None` for one that goes on, which is prepared for that. This is everything that the
    /// service does, as a function, for code that calls no Tower service. Observers are notified.
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

    /// Decides about a request, once, and changes nothing of it. [`Judgement::respond`] makes the answer, at once or after a
    /// [store](Self::counted_in_store) has counted the request. Observers are notified.
    ///
    /// For a service that decides about requests which other servers answer:
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

    /// The layer for a place that needs responses of the inner service's type, such as `tower::util::option_layer`: it keeps the type of
    /// the response body, which has to be made from [`Bytes`], as axum's is.
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

    /// The address of a request's client, as [`address_from`](Self::address_from) and [`forwarded_for`](Self::forwarded_for) find it: for the
    /// log of an observer, which takes a clone of the layer with it.
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

/// Makes [`Robots`] whose responses have the body of the inner service. Made by [`RobotsLayer::same_body`].
#[derive(Clone, Debug)]
pub struct SameBodyLayer(RobotsLayer);

impl<S> Layer<S> for SameBodyLayer {
    type Service = Robots<S, SameBody>;

    fn layer(&self, inner: S) -> Self::Service {
        Robots { enforcer: self.0.enforcer.clone(), inner, kind: PhantomData }
    }
}

robots_core::debug_as!(|it| RobotsLayer { sites: it.enforcer.sites });

/// The judgement of a request: its answer, or the bucket that it takes from first.
///
/// For a service that counts requests in a store which several processes share:
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
    /// The bucket that the request takes from; `None` where it is not limited. Of one that has a bucket observers are
    /// notified once it is answered; of any other they have been.
    pub const fn rate_limited(&self) -> Option<&RateLimitedRequest> {
        match &self.judged {
            Ok(_) => None,
            Err(rate_limited) => Some(&rate_limited.request),
        }
    }

    /// The answer to the request. `wait` is how long it has to wait according to the store, zero if it passes; with `None` it is counted
    /// here, if it has a [bucket](Self::paced). A request that passes elsewhere is counted here too, so that the bucket of this process
    /// is not fuller than the other when it has to count alone.
    pub fn respond(self, wait: Option<Duration>) -> Answer {
        self.enforcer.answer_judged(self.judged, *self.request, wait)
    }
}

robots_core::debug_as!(|it| Judgement::<'_> { rate_limited: it.rate_limited() });
