//! A call of a service on the clone of it that became ready.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use pin_project_lite::pin_project;
use tower::util::Oneshot;
use tower::{Service, ServiceExt};

pin_project! {
    /// The response of a service, which is called as soon as it is ready.
    #[project = ReadyCallProjection]
    pub(crate) enum ReadyCall<S, R>
    where
        S: Service<R>,
    {
        Called { #[pin] response: S::Future },
        Awaited { #[pin] response: Pin<Box<Oneshot<S, R>>> },
    }
}

impl<S: Service<R>, R> ReadyCall<S, R> {
    pub(crate) fn new(mut service: S, request: R) -> Self {
        // Services are nearly always ready, and then the request need not be kept beside them.
        match service.poll_ready(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(())) => Self::Called { response: service.call(request) },
            // The clone that becomes ready is the one that is called.
            _ => Self::Awaited { response: Box::pin(service.oneshot(request)) },
        }
    }
}

impl<S: Service<R>, R> Future for ReadyCall<S, R> {
    type Output = Result<S::Response, S::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project() {
            ReadyCallProjection::Called { response } => response.poll(cx),
            ReadyCallProjection::Awaited { response } => response.poll(cx),
        }
    }
}
