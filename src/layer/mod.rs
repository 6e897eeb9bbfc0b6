//! A Tower layer that serves a site's robots.txt and holds crawlers to it: for applications on axum, tonic, hyper or any other Tower
//! stack.
//!
//! The answer to a request, in this order:
//!
//! 1. A request for a host that belongs to none of the sites passes untouched, and so does one without a host, unless a site has
//!    the pattern `*`: where the application serves its pages under any host, one site needs it. The first is an event.
//! 2. `/robots.txt` (any query) is answered from the live snapshot: `GET` and `HEAD` with validators, other methods with
//!    405. It is never refused. While nothing is known of the file it goes to the inner service or gets 503, as
//!    [`WhenMissing`](crate::live::WhenMissing) says.
//! 3. Every line of the `User-Agent` field is recognised, and the [`Policy`](crate::policy::Policy) decides.
//! 4. A refused request is answered with 403, quoting rule and line; a tagged one goes on with a [`Record`] in its
//!    extensions and a `Robots-Verdict` field; anything else goes on as it came. Search engines that people use are
//!    tagged where others are refused, unless an override says otherwise.
//!
//! A refused call of gRPC ([`OriginalRequest::is_grpc_call`](crate::parts::OriginalRequest::is_grpc_call)) is answered with a status of gRPC, `PERMISSION_DENIED`, in fields alone: its clients read
//! neither 403 nor a page. gRPC-Web is answered as every other request, because its clients do read 403.
//!
//! Under the modes [`Mode::Off`](crate::policy::Mode::Off) and [`Mode::Observe`](crate::policy::Mode::Observe) all of this only
//! records: every request but `/robots.txt` is answered as without the layer, unless an override says otherwise.
//!
//! If the policy refuses and limits ([`PolicyBuilder::rate`](crate::policy::PolicyBuilder::rate)), an allowed request that comes sooner
//! than the `Crawl-delay` of its crawler's groups is answered with 429 and `Retry-After`. Each verified crawler has a bucket of its own,
//! and so has each network of other clients, by the address that [`RobotsLayer::address_from`] finds. See the chapter `rate`.
//!
//! A client's own `Robots-Verdict` field, spelled with hyphen or underscore, never reaches the inner service.
//!
//! Requests are judged by the agent they *claim* to come from. With the feature `verify` a `Verifier` says what is to be made
//! of that claim (`RobotsLayer::verifier`), and so does a function of the application ([`RobotsLayer::identity_from`]); without
//! either a false claim is not detected. The path is the one [`http::Uri`] holds, so a fragment is gone already.
//!
//! Put it outside caches, and outside every layer that rewrites paths or methods, because the request as the client sent it
//! counts; if the layer can only be inside, give [`RobotsLayer::target_from`] the target as it was. The layer is ready when the inner
//! service is: within one stack a limit inside delays `/robots.txt` too, unless it sheds load.
//!
//! # In axum
//!
//! `RobotsLayer::for_axum08`, with the feature `axum08`, is the layer for an app on axum 0.8. A nested router strips its
//! prefix from the target; this form judges the whole one at any depth, and a request that meets several such layers for
//! one site is judged once. [`RobotsLayer::new`] in a nested router sees `/drafts/x` where the client sent
//! `/blog/drafts/x`, and lets a crawler pass.
//!
//! Put it on the outermost router with `Router::layer`, after all routes, `merge`, `nest` and the fallback: what is added later is not
//! beneath it, and a fallback that is not leaves `/robots.txt` unanswered. A `route_layer` never sees `/robots.txt`, because no route
//! matches it. A `ServiceBuilder` within an axum app takes `RobotsLayer::for_axum08` as well. The chapter `axum` has all cases, and its
//! place among other layers.
//!
//! Networks are exempt by the client's address. `for_axum08` finds it if the app is served with
//! `into_make_service_with_connect_info::<SocketAddr>()`; any other form needs [`RobotsLayer::address_from`].
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
//! A handler learns which crawler sends a request from `axum08::CrawlerRequest`, in any other framework from the [`Record`] in the
//! extensions, where [`RobotsLayer::with_crawler_extension`] is set.
//!
//! # In any Tower stack
//!
//! Code of your own calls [`RobotsLayer::respond`], which does all that the service does, or [`RobotsLayer::decide`] for a request as a
//! proxy describes it, whose [`Judgement`](crate::parts::Judgement) makes the answer.
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

// The parts that an application builds, and those that its requests and responses go through.
#[cfg(feature = "axum08")]
pub mod axum08;
pub(crate) mod grpc;
#[expect(clippy::module_inception, reason = "as in every Tower middleware: the layer, its service, its future")]
pub(crate) mod layer;
pub(crate) mod service;
#[cfg(feature = "verify")]
pub(crate) mod verify;

// A request, and its path from top to bottom: begin with `enforce`.
mod enforce;
mod enforcer;
pub(crate) mod original;

// The steps of the path.
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

// A request that meets several layers.
mod nesting;

pub use self::event::Event;
pub use self::layer::RobotsLayer;
pub use self::record::{Limit, Record};
#[cfg(feature = "verify")]
pub use self::sender_check::SenderCheck;

#[cfg(test)]
mod tests;
