//! An application that responds immediately, so that a bench measures only the code around it.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::hint::black_box;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{Empty, Full};
use tower::Service;

#[derive(Clone)]
pub(crate) struct InstantApp;

impl Service<Request<Empty<Bytes>>> for InstantApp {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Full<Bytes>>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Empty<Bytes>>) -> Self::Future {
        black_box(&request);
        ready(Ok(Response::new(Full::default())))
    }
}
