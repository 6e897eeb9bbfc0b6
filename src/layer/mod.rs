//! A Tower layer that serves a site's robots.txt and enforces it for crawlers, in applications on
//! axum, tonic, hyper or any other Tower stack.
//!
//! How a request is handled, in this order:
//!
//! 1. If the host belongs to none of the sites, the request passes unchanged, and so does a request
//!    without a host. The first such request is logged. A site with the pattern `*` matches any
//!    host; an application that serves its pages under any host needs one.
//! 2. `/robots.txt` (any query) is answered from the live snapshot: `GET` and `HEAD` with
//!    validators, other methods with 405. It is never refused. While the robots.txt is unknown, the
//!    inner service answers or the client gets 503, depending on
//!    [`WhenMissing`](crate::live::WhenMissing).
//! 3. Every line of the `User-Agent` field is recognised, and the [`Policy`](crate::policy::Policy)
//!    decides.
//! 4. A refused request is answered with 403, quoting rule and line. A tagged request is forwarded
//!    with a [`Record`] in its extensions and a `Robots-Verdict` field. Any other request is
//!    forwarded unchanged. Search engines that people use are tagged when other crawlers are
//!    refused, unless an override says otherwise.
//!
//! A refused gRPC call
//! ([`OriginalRequest::is_grpc_call`](crate::parts::OriginalRequest::is_grpc_call)) is answered
//! with the gRPC status `PERMISSION_DENIED`, in fields only: its clients read neither 403 nor a
//! page. gRPC-Web calls are answered like any other request, because their clients do read 403.
//!
//! Under the modes [`Mode::Off`](crate::policy::Mode::Off) and
//! [`Mode::Observe`](crate::policy::Mode::Observe) the layer only records. Except for
//! `/robots.txt`, responses are the same as without the layer, unless an override says otherwise.
//!
//! If the policy refuses and enforces crawl delays
//! ([`PolicyBuilder::rate`](crate::policy::PolicyBuilder::rate)), an allowed request that exceeds
//! the `Crawl-delay` of its crawler's groups is answered with 429 and `Retry-After`. Each verified
//! crawler has a bucket of its own. Other clients share a bucket per network, based on the address
//! that [`RobotsLayer::address_from`] finds. See the chapter `rate`.
//!
//! A client's own `Robots-Verdict` field, spelled with hyphen or underscore, never reaches the
//! inner service.
//!
//! Requests are judged by the agent they *claim* to come from. With the feature `verify`, a
//! `Verifier` can check that claim (`RobotsLayer::verifier`), and so can a function of the
//! application ([`RobotsLayer::identity_from`]). Without either, a false claim is not detected. The
//! path is the one in [`http::Uri`], so a fragment is already removed.
//!
//! Put the layer outside caches, and outside every layer that rewrites paths or methods, because it
//! must judge the request as the client sent it. If it can only be inside, set
//! [`RobotsLayer::target_from`] to find the original target. The layer is ready when the inner
//! service is. A concurrency limit inside it therefore delays `/robots.txt` too, unless the limit
//! sheds load.
//!
//! # In axum
//!
//! Use `RobotsLayer::for_axum08` (feature `axum08`) for an app on axum 0.8. A nested router strips
//! its prefix from the target. This variant judges the whole target at any depth, and judges a
//! request only once even if it meets several such layers for one site. [`RobotsLayer::new`] in a
//! nested router sees `/drafts/x` when the client sent `/blog/drafts/x`, and lets a crawler pass.
//!
//! Put it on the outermost router with `Router::layer`, after all routes, `merge`, `nest` and the
//! fallback. The layer does not wrap what is added later, and if it does not wrap the fallback, it
//! does not answer `/robots.txt`. A `route_layer` never sees `/robots.txt`, because no route
//! matches it. `RobotsLayer::for_axum08` also works in a `ServiceBuilder` within an axum app. The
//! chapter `axum` covers all cases, and the layer's place among other layers.
//!
//! Networks are exempt by the client's address. `for_axum08` finds it if the app is served with
//! `into_make_service_with_connect_info::<SocketAddr>()`. [`RobotsLayer::new`] needs
//! [`RobotsLayer::address_from`].
//!
//! ```
//! # #[cfg(feature = "axum08")] {
//! use axum::Router;
//! use axum::routing::get;
//! use tower_robots::layer::RobotsLayer;
//! # use tower_robots::live::LiveRobots;
//! # use tower_robots::policy::{Mode, Policy};
//! # let live = LiveRobots::text("User-agent: GPTBot\nDisallow: /blog/drafts/\n")
//! #     .mode(Mode::Refuse)
//! #     .open()?;
//!
//! let blog = Router::new().route("/drafts/{page}", get(async || "a draft"));
//! let app: Router = Router::new().nest("/blog", blog).layer(RobotsLayer::for_axum08(live));
//! # }
//! # Ok::<(), tower_robots::live::Rejection>(())
//! ```
//!
//! A handler learns which crawler sent a request from `axum08::CrawlerRequest`. In other frameworks
//! it reads the [`Record`] in the extensions, which [`RobotsLayer::with_crawler_extension`]
//! enables.
//!
//! # In any Tower stack
//!
//! Your own code can call [`RobotsLayer::respond`], which does all that the service does. For a
//! request that a proxy describes, call [`RobotsLayer::decide`]; its
//! [`Judgement`](crate::parts::Judgement) makes the answer.
//!
//! ```
//! use bytes::Bytes;
//! use http::{Request, Response, StatusCode};
//! use http_body_util::Full;
//! use tower::{ServiceBuilder, ServiceExt, service_fn};
//! use tower_robots::layer::RobotsLayer;
//! use tower_robots::policy::{Mode, Policy};
//! use tower_robots::live::LiveRobots;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let live = LiveRobots::text("User-agent: GPTBot\nDisallow: /drafts/\n")
//!     .mode(Mode::Refuse)
//!     .open()?;
//! let service = ServiceBuilder::new()
//!     .layer(RobotsLayer::new(live))
//!     .service(service_fn(async |_: Request<Full<Bytes>>| Ok::<_, std::io::Error>(Response::new(Full::<Bytes>::default()))));
//!
//! let request = Request::get("/drafts/x").header("user-agent", "GPTBot/1.2").body(Full::default())?;
//! assert_eq!(service.oneshot(request).await?.status(), StatusCode::FORBIDDEN);
//! # Ok(())
//! # }
//! ```

// The parts that an application creates, and the service that requests and responses pass through.
#[cfg(feature = "axum08")]
pub mod axum08;
pub(crate) mod grpc;
#[expect(clippy::module_inception, reason = "as in every Tower middleware: the layer, its service, its future")]
pub(crate) mod layer;
pub(crate) mod service;
#[cfg(feature = "verify")]
pub(crate) mod verify;

// A request, and how it is judged: start with `enforce`.
mod enforce;
mod enforcer;
pub(crate) mod original;

// The steps of judging a request.
pub(crate) mod forwarded;
mod robots_txt;
#[cfg(feature = "verify")]
mod sender_check;

// The outcome of a request, and its record.
pub(crate) mod answer;
mod event;
pub(crate) mod rate_limit;
pub(crate) mod record;
pub(crate) mod refusal;

// Requests that meet several layers.
mod nesting;

pub use self::event::Event;
pub use self::layer::RobotsLayer;
pub use self::record::{Limit, Record};
#[cfg(feature = "verify")]
pub use self::sender_check::SenderCheck;

#[cfg(test)]
mod tests;
