//! For apps on axum 0.8: the form of the layer, and the crawler of a request in handlers.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::ops::Deref;
use std::sync::Arc;

use axum::Router;
use axum::extract::connect_info::MockConnectInfo;
use axum::extract::{ConnectInfo, FromRequestParts, OptionalFromRequestParts};
use axum::response::Html;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::request::Parts;
use http::{Extensions, Response, StatusCode};

use super::enforcer::CrawlerRecords;
use super::layer::RobotsLayer;
use super::nesting::original_uri;
use super::record::{Record, is_crawler};
use super::refusal::{IntoRefusal, sealed};
use crate::source::IntoSites;

impl RobotsLayer {
    /// A layer for an app on axum 0.8. It judges the target that the outermost router got
    /// ([`OriginalUri`](axum::extract::OriginalUri)), so it is right in a nested router at any depth, in which
    /// [`RobotsLayer::new`] sees targets without their prefix.
    ///
    /// ```
    /// use axum::{Router, routing::get};
    /// # use tower_robots::{layer::RobotsLayer, live::LiveRobots};
    /// # let live = LiveRobots::text("User-agent: GPTBot\nDisallow: /blog/drafts/\n").open()?;
    /// let robots = RobotsLayer::for_axum08(live);
    /// let blog = Router::new().route("/drafts/{page}", get(async || "a draft")).layer(robots.clone());
    /// let app: Router = Router::new().nest("/blog", blog).layer(robots);
    /// # Ok::<(), tower_robots::live::Rejection>(())
    /// ```
    ///
    /// - `/robots.txt` is answered by a layer of the outermost router, `Router::layer` and not `route_layer`, which is only
    ///   called where a route matches. A layer in a nested router judges, and does not see `/robots.txt`; the first request that it judges
    ///   while none outside has is a warning ([`Status::nested_only`](crate::live::Status::nested_only)).
    /// - The fallback that the app has in the end has to be beneath the layer too: a `Router::fallback` that comes later, or a router that
    ///   is merged, takes the place of one that is, and `/robots.txt` is 404. So put it on last, after `merge`, `nest` and fallbacks; if it
    ///   has to be elsewhere, merge [`RobotsLayer::robots_txt_route`].
    /// - The client's address is that of the connection, `ConnectInfo<SocketAddr>`, if the app is served with
    ///   `into_make_service_with_connect_info::<SocketAddr>()`. Behind a proxy, [`RobotsLayer::forwarded_for`] finds the client's.
    ///   [`RobotsLayer::address_from`] replaces this.
    /// - Several layers for the same [`LiveRobots`](crate::live::LiveRobots) are best clones of one: the outermost judges, and observers
    ///   are notified once of a decision. An inner layer judges again if it has observers of its own; if the method, the target or the
    ///   `User-Agent` has changed on the way; or if the request is exempt or passes by signs of a person.
    /// - A layer that rewrites the target in front of the outermost router changes what is judged. Then put the layer
    ///   in front of that, or give it [`RobotsLayer::target_from`], which comes first.
    /// - Other major versions of axum have an `OriginalUri` of their own, which is not read.
    pub fn for_axum08(sites: impl IntoSites) -> Self {
        Self::new(sites).with(|enforcer| {
            enforcer.nested_target = Some(original_uri);
            enforcer.address_from = Some(Arc::new(connected_address));
            enforcer.crawler_records = CrawlerRecords::InExtensions;
        })
    }

    /// A router with one route, `/robots.txt`, which [`RobotsLayer::robots_txt_service`] answers: to merge into the outermost router of an
    /// app whose layer does not get these requests.
    ///
    /// ```
    /// use axum::{Router, routing::get};
    /// # use tower_robots::{layer::RobotsLayer, live::LiveRobots};
    /// # let live = LiveRobots::text("User-agent: GPTBot\nDisallow: /drafts/\n").open()?;
    /// let robots = RobotsLayer::for_axum08(live);
    /// let drafts = Router::new().route("/drafts/{page}", get(async || "a draft")).route_layer(robots.clone());
    /// let app: Router = Router::new().merge(drafts).merge(robots.robots_txt_route());
    /// # Ok::<(), tower_robots::live::Rejection>(())
    /// ```
    pub fn robots_txt_route<S: Clone + Send + Sync + 'static>(&self) -> Router<S> {
        Router::new().route_service("/robots.txt", self.robots_txt_service())
    }
}

/// The address of the connection, as axum keeps it, or as a test says it.
fn connected_address(extensions: &Extensions) -> Option<IpAddr> {
    let connected = extensions.get::<ConnectInfo<SocketAddr>>().map(|ConnectInfo(address)| address.ip());
    connected.or_else(|| extensions.get::<MockConnectInfo<SocketAddr>>().map(|MockConnectInfo(address)| address.ip()))
}

impl<T> sealed::Sealed for Html<T> {}

impl<T: Into<Bytes>> IntoRefusal for Html<T> {
    fn into_refusal(self, default: StatusCode) -> Response<Bytes> {
        let mut response = Response::new(self.0.into());
        *response.status_mut() = default;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
        response
    }
}

/// The crawler that a request claims to come from, for handlers beneath [`RobotsLayer::for_axum08`]: an agent that is registered or
/// declares itself one. The result of checking the claim is its `identity`, if claims are checked.
///
/// `Option<CrawlerRequest>` is `None` for everybody else, and for everybody while nothing is known of the robots.txt, while the kill switch
/// has turned enforcement off, for a host of no site, which any client can name, or where the layer is missing or is a
/// [`RobotsLayer::new`] without [`RobotsLayer::with_crawler_extension`]: it leaves nothing in a person's request, so that cannot be told.
/// `CrawlerRequest` alone is for a page that only crawlers get: everybody else is answered with 404.
///
/// ```
/// use tower_robots::layer::axum08::CrawlerRequest;
///
/// async fn page(crawler: Option<CrawlerRequest>) -> String {
///     match crawler {
///         Some(crawler) => format!("a summary for {}\n", crawler.name().escape_debug()),
///         None => "the whole page\n".to_owned(),
///     }
/// }
/// # let _: axum::Router = axum::Router::new().route("/", axum::routing::get(page));
/// ```
///
/// A page that differs by agent wants `Vary: User-Agent`, or a cache serves one agent's page to another.
#[derive(Clone, Debug)]
pub struct CrawlerRequest(pub Record);

impl CrawlerRequest {
    fn of(parts: &Parts) -> Option<Self> {
        let record = parts.extensions.get::<Record>().filter(|record| is_crawler(&record.agent));
        record.cloned().map(Self)
    }
}

impl Deref for CrawlerRequest {
    type Target = Record;

    fn deref(&self) -> &Record {
        &self.0
    }
}

impl<S: Sync> FromRequestParts<S> for CrawlerRequest {
    type Rejection = StatusCode;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, StatusCode> {
        Self::of(parts).ok_or(StatusCode::NOT_FOUND)
    }
}

impl<S: Sync> OptionalFromRequestParts<S> for CrawlerRequest {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Option<Self>, Infallible> {
        Ok(Self::of(parts))
    }
}
