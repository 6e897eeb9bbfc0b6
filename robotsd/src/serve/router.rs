//! From a request to its site.

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
use http_body_util::{Either, Full};
use pin_project_lite::pin_project;
use tower::{Layer, Service};
use tower_robots::layer::{self, Robots};
use tower_robots::source::HostMap;

use super::backend::{Body, SiteBackend};
use super::site_name::SiteName;
use super::sites::Sites;
use crate::edge::{AccessFields, RequestBody};

/// Hands each request to the site of its host. Cheap to clone; all clones serve the same sites, also once they are
/// replaced.
#[derive(Clone, Debug)]
pub(super) struct Router {
    sites: Arc<ArcSwap<RouteTable>>,
}

#[derive(Debug)]
struct RouteTable {
    hosts: HostMap<(SiteName, Robots<SiteBackend>)>,
    /// By site, for the map that takes this one's place.
    backends: HashMap<SiteName, SiteBackend>,
}

pin_project! {
    #[project = RouterFutureProjection]
    pub(super) enum RouterFuture {
        Site { #[pin] future: layer::ResponseFuture<<SiteBackend as Service<Request<RequestBody>>>::Future> },
        Nowhere,
    }
}

impl Router {
    /// The front of one of several workers: it shares with the others only what is never written.
    pub(super) fn new(sites: &Sites, workers: NonZeroUsize) -> Self {
        Self { sites: Arc::new(ArcSwap::from_pointee(RouteTable::new(sites, workers, None))) }
    }

    /// Serves other sites from the next request on; requests in progress finish with those they began with.
    /// Servers that are behind both keep their connections.
    pub(super) fn replace(&self, sites: &Sites, workers: NonZeroUsize) {
        let before = self.sites.load();
        self.sites.store(Arc::new(RouteTable::new(sites, workers, Some(&before))));
    }
}

impl RouteTable {
    fn new(sites: &Sites, workers: NonZeroUsize, before: Option<&Self>) -> Self {
        let mut map = Self { hosts: HostMap::new(), backends: HashMap::new() };
        for site in sites.iter() {
            let before = before.and_then(|before| before.backends.get(&site.name));
            let Some(backend) = site.backend(workers, before) else { continue };
            let service = site.layer().layer(backend.clone());
            let every = [String::from("*")];
            let hosts = if site.hosts.is_empty() { &every[..] } else { &site.hosts };
            for host in hosts {
                // The config was refused if a host was malformed or belonged to two sites.
                let _ = map.hosts.insert(host, (site.name.clone(), service.clone()));
            }
            map.backends.insert(site.name.clone(), backend);
        }
        map
    }
}

impl Service<Request<RequestBody>> for Router {
    type Response = Response<Either<layer::ResponseBody<Body>, Full<Bytes>>>;
    type Error = Infallible;
    type Future = RouterFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        // Backends are always ready; they answer that they are busy.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<RequestBody>) -> RouterFuture {
        let sites = self.sites.load();
        let site = match request.headers().get(HOST) {
            Some(host) => sites.hosts.get(host),
            None => sites.hosts.any(),
        };
        match site {
            Some((name, site)) => {
                if let Some(notes) = request.extensions().get::<AccessFields>() {
                    notes.add("site", &**name);
                }
                RouterFuture::Site { future: site.clone().call(request) }
            }
            None => RouterFuture::Nowhere,
        }
    }
}

impl Future for RouterFuture {
    type Output = Result<Response<Either<layer::ResponseBody<Body>, Full<Bytes>>>, Infallible>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project() {
            RouterFutureProjection::Site { future } => {
                Poll::Ready(ready!(future.poll(context)).map(|response| response.map(Either::Left)))
            }
            RouterFutureProjection::Nowhere => Poll::Ready(Ok(nowhere().map(Either::Right))),
        }
    }
}

/// RFC 9110, section 15.5.20: whoever sent this meant another server.
fn nowhere() -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from("421 Misdirected Request: there is no site for this host\n"));
    *response.status_mut() = StatusCode::MISDIRECTED_REQUEST;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
