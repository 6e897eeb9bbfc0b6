//! The layer, and how it is built.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::{Extensions, HeaderValue, Response, Uri};
use tower_layer::Layer;

use super::answer::Answer;
use super::enforce::{Enforcer, RobotsTxtRequests};
use super::event::Event;
use super::original::Original;
use super::service::Robots;
use crate::source::Sites;

/// Serves `/robots.txt` and holds crawlers to it; makes [`Robots`]. Cheap to clone.
#[derive(Clone)]
pub struct RobotsLayer {
    pub(super) enforcer: Arc<Enforcer>,
}

impl RobotsLayer {
    /// A layer for one site ([`LiveRobots`](crate::live::LiveRobots)) or for several by host ([`Sites`]).
    #[must_use]
    pub fn new(sites: impl Into<Sites>) -> Self {
        let enforcer = Enforcer {
            sites: sites.into(),
            target_from: None,
            address_from: None,
            agent_from: None,
            observers: Vec::new(),
            refuse_with: None,
        };
        Self { enforcer: Arc::new(enforcer) }
    }

    /// Finds the target as the client sent it, where an outer service has rewritten the request's own. If the function
    /// returns `None`, and by default, the target is [`Request::uri`](http::Request::uri). The function belongs to judging:
    /// if it panics, the request passes, and [`Status::faults`](crate::live::Status::faults) counts it.
    ///
    /// An axum router that is nested strips the prefix and keeps the whole in an extension:
    ///
    /// ```
    /// # use axum::extract::OriginalUri;
    /// # use tower_robots::{layer::RobotsLayer, live::LiveRobots};
    /// # let live = LiveRobots::inline("# nothing restricted\n").open()?;
    /// let layer = RobotsLayer::new(live).target_from(|extensions| extensions.get::<OriginalUri>().map(|uri| &uri.0));
    /// # Ok::<(), tower_robots::live::Rejection>(())
    /// ```
    #[must_use]
    pub fn target_from(
        self,
        target: impl for<'e> Fn(&'e Extensions) -> Option<&'e Uri> + Send + Sync + 'static,
    ) -> Self {
        self.with(|enforcer| enforcer.target_from = Some(Arc::new(target)))
    }

    /// Finds the client's address, for the exempt networks of the policy. Only the server knows which of its proxies to
    /// trust, so there is no default: without this function no network is exempt. It is called for requests that a group
    /// applies to, and belongs to judging: if it panics, the request passes, and [`Status::faults`](crate::live::Status::faults) counts it.
    #[must_use]
    pub fn address_from(self, address: impl Fn(&Extensions) -> Option<IpAddr> + Send + Sync + 'static) -> Self {
        self.with(|enforcer| enforcer.address_from = Some(Arc::new(address)))
    }

    /// Finds the client's `User-Agent`, where a proxy in front sends a name of its own in that field and keeps the client's
    /// in another: every line of the other field. If the function returns `None` or no line at all, and by default, the
    /// request's `User-Agent` counts. The function belongs to judging: if it panics, the request passes, and
    /// [`Status::faults`](crate::live::Status::faults) counts it.
    ///
    /// Any client can send such a field, so put it in the extensions only for requests from a proxy that sets or removes
    /// it.
    #[must_use]
    pub fn agent_from(
        self,
        agent: impl for<'e> Fn(&'e Extensions) -> Option<&'e [HeaderValue]> + Send + Sync + 'static,
    ) -> Self {
        self.with(|enforcer| enforcer.agent_from = Some(Arc::new(agent)))
    }

    /// Calls back for every request that robots.txt disallows, whether it is refused, tagged or only observed. The
    /// callback runs before the request goes on and must not block. If it panics, the decision stands, the other observers
    /// are called, and [`Status::callback_faults`](crate::live::Status::callback_faults) counts it.
    #[must_use]
    pub fn observe(self, observer: impl Fn(&Event<'_>) + Send + Sync + 'static) -> Self {
        self.with(|enforcer| enforcer.observers.push(Arc::new(observer)))
    }

    /// Makes the response to a refused request, in place of the default: 403 with text or problem details (RFC 9457).
    ///
    /// Whatever the function returns, `Cache-Control` becomes `no-store`, `Vary` names `User-Agent`, a response to `HEAD`
    /// loses its body, and the [`Record`] is put in the response's extensions. If the function panics, the request is
    /// refused with the default, and [`Status::callback_faults`](crate::live::Status::callback_faults) counts it.
    ///
    /// [`Record`]: super::Record
    #[must_use]
    pub fn refuse_with(self, refuse: impl Fn(&Event<'_>) -> Response<Bytes> + Send + Sync + 'static) -> Self {
        self.with(|enforcer| enforcer.refuse_with = Some(Arc::new(refuse)))
    }

    /// The answer to a request, for code that calls no Tower service: everything the service does, as a function.
    ///
    /// Observers are notified. In an axum app with `middleware::from_fn_with_state`:
    ///
    /// ```
    /// use axum::body::Body;
    /// use axum::extract::{Request, State};
    /// use axum::middleware::Next;
    /// use axum::response::Response;
    /// use tower_robots::layer::{Original, RobotsLayer};
    ///
    /// async fn robots(State(layer): State<RobotsLayer>, mut request: Request, next: Next) -> Response {
    ///     match layer.answer(&Original::of(&request)).carry_out(&mut request) {
    ///         Some(response) => response.map(Body::from),
    ///         None => next.run(request).await,
    ///     }
    /// }
    /// ```
    #[must_use]
    pub fn answer(&self, request: &Original<'_>) -> Answer {
        self.enforcer.answer(*request, RobotsTxtRequests::Serve)
    }

    /// The decision of the policy about a request; `/robots.txt` passes like anything else that is exempt.
    ///
    /// Observers are notified. For a service that decides about requests which other servers answer:
    ///
    /// ```
    /// use http::{Method, Request, StatusCode};
    /// use tower_robots::layer::{Answer, Original, RobotsLayer};
    /// # use tower_robots::policy::{Mode, Policy};
    /// # use tower_robots::live::LiveRobots;
    /// # let live = LiveRobots::inline("User-agent: GPTBot\nDisallow: /drafts/\n")
    /// #     .policy(Policy::builder().mode(Mode::Refuse).build())
    /// #     .open()?;
    /// let layer = RobotsLayer::new(live);
    /// // A question as some proxy might put it.
    /// let question = Request::get("/auth").header("user-agent", "GPTBot/1.2").body(())?;
    /// let original = Original::of(&question).with_method(&Method::HEAD).with_target(b"/%64rafts/\xFF").with_host(None);
    /// match layer.decide(&original) {
    ///     Answer::Respond(refusal) => assert_eq!(refusal.status(), StatusCode::FORBIDDEN),
    ///     other => panic!("{other:?}"),
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn decide(&self, request: &Original<'_>) -> Answer {
        self.enforcer.answer(*request, RobotsTxtRequests::Judge)
    }

    fn with(mut self, change: impl FnOnce(&mut Enforcer)) -> Self {
        change(Arc::make_mut(&mut self.enforcer));
        self
    }
}

impl<S> Layer<S> for RobotsLayer {
    type Service = Robots<S>;

    fn layer(&self, inner: S) -> Robots<S> {
        Robots { enforcer: self.enforcer.clone(), inner }
    }
}

impl fmt::Debug for RobotsLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RobotsLayer").field("sites", &self.enforcer.sites).finish_non_exhaustive()
    }
}
