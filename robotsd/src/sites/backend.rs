//! What stands behind a site: upstreams, or a folder of static files.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::{Request, Response};
use http_body_util::Either;
use pin_project_lite::pin_project;
use tower::Service;
use tower_http::services::fs::ServeFileSystemResponseBody;

use super::static_files::ServeFiles;
use crate::edge::RequestBody;
use crate::upstream::{ResponseBody, Upstream};

/// A response body of either kind.
pub(super) type Body = Either<ResponseBody, ServeFileSystemResponseBody>;

#[derive(Clone, Debug)]
pub(crate) enum SiteBackend {
    Upstream(Upstream),
    Files(ServeFiles),
}

type UpstreamFuture = <Upstream as Service<Request<RequestBody>>>::Future;
type FilesFuture = <ServeFiles as Service<Request<RequestBody>>>::Future;

pin_project! {
    /// The answer of a [`SiteBackend`].
    #[project = SiteBackendFutureProjection]
    pub(crate) enum SiteBackendFuture {
        Upstream { #[pin] future: UpstreamFuture },
        // Boxed: what waits for an upstream should not be as large as what reads a file.
        Files { #[pin] future: Pin<Box<FilesFuture>> },
    }
}

impl Service<Request<RequestBody>> for SiteBackend {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = SiteBackendFuture;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        match self {
            Self::Upstream(upstream) => upstream.poll_ready(context),
            Self::Files(files) => <ServeFiles as Service<Request<RequestBody>>>::poll_ready(files, context),
        }
    }

    fn call(&mut self, request: Request<RequestBody>) -> SiteBackendFuture {
        match self {
            Self::Upstream(upstream) => SiteBackendFuture::Upstream { future: upstream.call(request) },
            Self::Files(files) => SiteBackendFuture::Files { future: Box::pin(files.call(request)) },
        }
    }
}

impl Future for SiteBackendFuture {
    type Output = Result<Response<Body>, Infallible>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(match self.project() {
            SiteBackendFutureProjection::Upstream { future } => {
                ready!(future.poll(context)).map(|response| response.map(Either::Left))
            }
            SiteBackendFutureProjection::Files { future } => {
                ready!(future.poll(context)).map(|response| response.map(Either::Right))
            }
        })
    }
}
