//! The variant of the layer for apps on axum 0.8, and the extractor that tells handlers which
//! crawler sent a request.

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
    /// Creates a layer for an app on axum 0.8. The layer judges the target that the outermost
    /// router received ([`OriginalUri`](axum::extract::OriginalUri)), so it also works in nested
    /// routers at any depth. A layer from [`RobotsLayer::new`] in a nested router would see the
    /// target without the router's prefix.
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
    /// - The layer answers `/robots.txt` if it is added to the outermost router with
    ///   `Router::layer`. `Router::route_layer` is not enough, because such a layer runs only if a
    ///   route matches. A layer in a nested router judges requests, but does not receive requests
    ///   for `/robots.txt`. Such a layer logs a warning for the first request that no outer layer
    ///   has judged ([`Status::nested_only`](crate::live::Status::nested_only)).
    /// - The layer must also wrap the app's final fallback; otherwise requests for `/robots.txt`
    ///   get 404. The layer does not wrap a fallback that is set later, with `Router::fallback` or
    ///   by merging a router that has a fallback. So add the layer last, after `merge`, `nest` and
    ///   fallbacks. If you must add the layer earlier, merge the router that
    ///   [`RobotsLayer::robots_txt_route`] returns.
    /// - The client's address is the peer address of the connection, `ConnectInfo<SocketAddr>`, if
    ///   the app is served with `into_make_service_with_connect_info::<SocketAddr>()`. Behind a
    ///   proxy, [`RobotsLayer::forwarded_for`] finds the client's address. A function that you set
    ///   with [`RobotsLayer::address_from`] replaces `ConnectInfo`.
    /// - If several layers serve the same [`LiveRobots`](crate::live::LiveRobots), use clones of
    ///   one layer. The outermost layer then judges each request, and observers are notified only
    ///   once per request. An inner layer judges the request again in three cases: the inner layer
    ///   has observers that the outermost layer does not have; the method, target or `User-Agent`
    ///   has changed between the layers; or the request is exempt, or seems to be sent by a person.
    /// - If another layer rewrites the target before the robots layer, the rewritten target is
    ///   judged. To judge the original target, put the robots layer outside that other layer, or
    ///   set [`RobotsLayer::target_from`].
    /// - The layer for axum 0.8 does not recognise the `OriginalUri` type of another axum version.
    pub fn for_axum08(sites: impl IntoSites) -> Self {
        Self::new(sites).with(|enforcer| {
            enforcer.nested_target = Some(original_uri);
            enforcer.address_from = Some(Arc::new(connected_address));
            enforcer.crawler_records = CrawlerRecords::InExtensions;
        })
    }

    /// Returns a router with one route, `/robots.txt`, served by
    /// [`RobotsLayer::robots_txt_service`]. If the layer of an app does not receive requests for
    /// `/robots.txt`, merge this router into the app's outermost router.
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

/// The crawler that a request claims to be from. Handlers that a [`RobotsLayer::for_axum08`] wraps
/// can use this type as an extractor. An agent is a crawler if it is in the registry or declares
/// itself a crawler. If the layer has a `Verifier`, [`Record::identity`] shows whether the request
/// is really from this crawler.
///
/// `Option<CrawlerRequest>` is `None` for clients that are not crawlers. It is also `None` for
/// crawlers in these cases:
///
/// - no robots.txt is known;
/// - the kill switch has turned enforcement off;
/// - the `Host` belongs to no site (a client can send any `Host`);
/// - the layer is missing, or was created with [`RobotsLayer::new`] but without
///   [`RobotsLayer::with_crawler_extension`]. The extractor cannot detect a missing layer, because
///   a person's request contains no [`Record`] even if the layer is present.
///
/// Use `CrawlerRequest` without `Option` for pages that are only for crawlers. Clients that are not
/// crawlers then get 404.
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
/// If the content of a page depends on the agent, send `Vary: User-Agent` with the page, so that no
/// cache sends one agent's page to another agent.
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
