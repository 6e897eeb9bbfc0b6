//! A Tower layer that serves a site's robots.txt and enforces it for crawlers, for applications
//! that use axum, tonic, hyper or any other Tower stack.
//!
//! A request is handled in these steps:
//!
//! 1. The layer finds the site. If the layer serves a single
//!    [`LiveRobots`](crate::live::LiveRobots), every request belongs to this site, with or without
//!    a host. If there are several sites, the request's host selects one of them. If the request
//!    has no host or its host belongs to no site, the site with the pattern `*` is used. If no site
//!    has the pattern `*`, the request passes unchanged, and the host is logged.
//! 2. Requests for `/robots.txt`, with any query, are answered with the live version of the
//!    robots.txt. Responses to `GET` and `HEAD` contain validators such as `ETag`. Requests with a
//!    method other than `GET` and `HEAD` get 405. The policy never refuses a request for
//!    `/robots.txt`. While no robots.txt is known, the inner service answers or the client gets
//!    503, depending on [`WhenMissing`](crate::live::WhenMissing).
//! 3. The layer recognises the agents in every line of the `User-Agent` field, and the
//!    [`Policy`](crate::policy::Policy) decides what happens to the request.
//! 4. The response to a refused request is 403 with the rule and its line number. A tagged request
//!    is forwarded with a [`Record`] in its extensions and a `Robots-Verdict` field. Any other
//!    request is forwarded unchanged. By default, requests of search engines with a public index
//!    are only tagged, even if the policy refuses other crawlers. To refuse search engines, too,
//!    add an override to the policy.
//!
//! A refused gRPC call
//! ([`OriginalRequest::is_grpc_call`](crate::parts::OriginalRequest::is_grpc_call)) is answered
//! with the gRPC status `PERMISSION_DENIED` and no body, because gRPC clients do not read the body
//! of an HTTP error response. A gRPC-Web call is answered like any other request, because its
//! client converts 403 to `PERMISSION_DENIED`. By default, groups for `*` do not apply to gRPC
//! calls, because these are `POST` requests
//! ([`PolicyBuilder::wildcard_methods`](crate::policy::PolicyBuilder::wildcard_methods)).
//!
//! In the modes [`Mode::Off`](crate::policy::Mode::Off) and
//! [`Mode::Observe`](crate::policy::Mode::Observe), the layer changes only the response to
//! `/robots.txt`, unless an override sets another mode.
//!
//! A policy can also enforce crawl delays
//! ([`PolicyBuilder::rate`](crate::policy::PolicyBuilder::rate)). With such a policy, an allowed
//! request that comes before the crawl delay has passed gets 429 with `Retry-After`. Each verified
//! crawler has its own rate limit bucket. Unverified clients that claim the same crawler's name
//! share one bucket per network. [`RobotsLayer::address_from`] finds the client's address, which
//! determines the network. See `docs/src/explanation/rate.md`.
//!
//! If a client itself sends a `Robots-Verdict` or `Robots_Verdict` field, the layer removes the
//! field.
//!
//! A request is judged by the agent that its `User-Agent` *claims*. This claim can be checked by a
//! `Verifier` (feature `verify`, `RobotsLayer::verifier`) or by a function of the application
//! ([`RobotsLayer::identity_from`]). If you set neither of them, false claims are not detected.
//!
//! Put the layer outside caches, and outside every layer that rewrites paths or methods, because
//! the robots layer must judge the request as the client sent it. If the robots layer must be
//! inside a layer that rewrites paths, set [`RobotsLayer::target_from`] to find the original
//! target. A concurrency limit inside the robots layer also delays requests for `/robots.txt`,
//! because the robots layer is ready only when the inner service is ready. A limit that rejects
//! requests instead of queueing them does not delay `/robots.txt`.
//!
//! # In axum
//!
//! Use `RobotsLayer::for_axum08` (feature `axum08`) for an app on axum 0.8. The layer from this
//! function judges the whole target, even in a nested router, which strips its prefix from the
//! target. If a request passes through several layers for the same site, it is judged only once. A
//! layer from [`RobotsLayer::new`] in a nested router sees `/drafts/x` if the client sent
//! `/blog/drafts/x`, so the rules do not match and disallowed crawlers pass.
//!
//! Add the layer to the outermost router with `Router::layer`, after all routes, `merge`, `nest`
//! and the fallback. The layer does not wrap routes that are added later. If the layer does not
//! wrap the fallback, it does not answer `/robots.txt`. A `route_layer` does not receive requests
//! for `/robots.txt`, because no route matches them. `RobotsLayer::for_axum08` also works in a
//! `ServiceBuilder` within an axum app. `docs/src/howto/library.md` describes all cases, and how to
//! order the layers.
//!
//! To exempt networks, the layer must know the client's address. `for_axum08` finds the address if
//! the app is served with `into_make_service_with_connect_info::<SocketAddr>()`. A layer from
//! [`RobotsLayer::new`] finds the address only if you set [`RobotsLayer::address_from`].
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
//! To find out which crawler sent a request, a handler uses the extractor `axum08::CrawlerRequest`.
//! In frameworks other than axum, enable [`RobotsLayer::with_crawler_extension`], and read the
//! [`Record`] from the request's extensions.
//!
//! # In any Tower stack
//!
//! If you do not use Tower services, call [`RobotsLayer::respond`]. `respond` does the work of the
//! service, but cannot add the fields of [`Signals`] to responses. If a proxy asks your service
//! whether to forward a request, call [`RobotsLayer::decide`], which returns a
//! [`Judgement`](crate::parts::Judgement).
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

// Modules with the types that an application creates, and with the service that handles its
// requests.
#[cfg(feature = "axum08")]
pub mod axum08;
pub(crate) mod grpc;
#[expect(clippy::module_inception, reason = "as in every Tower middleware: the layer, its service, its future")]
pub(crate) mod layer;
pub(crate) mod service;
#[cfg(feature = "verify")]
pub(crate) mod verify;

// Modules that judge a request; `enforce` contains the steps in order.
mod enforce;
mod enforcer;
pub(crate) mod original;

// Modules that collect the inputs of the judgement, and the module that responds to `/robots.txt`.
pub(crate) mod forwarded;
mod robots_txt;
#[cfg(feature = "verify")]
mod sender_check;

// Modules for the outcome of the judgement and its record.
pub(crate) mod answer;
pub(crate) mod event;
pub(crate) mod fields;
pub(crate) mod plain_ascii;
pub(crate) mod rate_limit;
pub(crate) mod record;
pub(crate) mod refusal;
pub(crate) mod signals;

// The module for requests that pass through several robots layers.
mod nesting;

pub use self::event::Event;
pub use self::layer::RobotsLayer;
pub use self::record::{Limit, Record};
#[cfg(feature = "verify")]
pub use self::sender_check::SenderCheck;
pub use self::signals::{FieldRule, Signals, UsageField};

#[cfg(test)]
mod tests;
