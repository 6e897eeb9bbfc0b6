//! The service the layer makes.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use tower_service::Service;

use super::body::ResponseBody;
use super::enforce::{Enforcer, RobotsTxtRequests};
use super::future::ResponseFuture;
use super::original::Original;

/// Serves `/robots.txt` and holds crawlers to it, in front of `S`. Made by [`RobotsLayer`](super::RobotsLayer).
#[derive(Clone)]
pub struct Robots<S> {
    pub(super) enforcer: Arc<Enforcer>,
    pub(super) inner: S,
}

impl<S> Robots<S> {
    /// The inner service.
    pub const fn get_ref(&self) -> &S {
        &self.inner
    }

    /// The inner service, to be changed.
    pub const fn get_mut(&mut self) -> &mut S {
        &mut self.inner
    }

    /// The inner service alone.
    pub fn into_inner(self) -> S {
        self.inner
    }
}

impl<S, A, B> Service<Request<A>> for Robots<S>
where
    S: Service<Request<A>, Response = Response<B>>,
    B: Body<Data: From<Bytes>>,
{
    type Response = Response<ResponseBody<B>>;
    type Error = S::Error;
    type Future = ResponseFuture<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<A>) -> Self::Future {
        match self.enforcer.answer(Original::of(&request), RobotsTxtRequests::Serve).carry_out(&mut request) {
            None => ResponseFuture::pass(self.inner.call(request)),
            Some(response) => ResponseFuture::ready(response),
        }
    }
}

impl<S: fmt::Debug> fmt::Debug for Robots<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Robots").field("inner", &self.inner).finish_non_exhaustive()
    }
}
