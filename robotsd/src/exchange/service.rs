//! What stands behind the edge.

use std::convert::Infallible;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use tower::{BoxError, Service, ServiceExt};

use super::request_body::RequestBody;

/// What answers every request behind the edge. A request is boxed: futures that hold one are moved into each other.
pub(crate) trait EdgeService: Clone + Send + 'static {
    type Body: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static;

    fn answer(self, request: Box<Request<RequestBody>>) -> impl Future<Output = Response<Self::Body>> + Send;
}

/// Any service of Tower that answers every request.
impl<S, B> EdgeService for S
where
    S: Service<Request<RequestBody>, Response = Response<B>, Error = Infallible, Future: Send> + Clone + Send + 'static,
    B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    type Body = B;

    async fn answer(self, request: Box<Request<RequestBody>>) -> Response<B> {
        let Ok(response) = self.oneshot(*request).await;
        response
    }
}
