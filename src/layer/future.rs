//! The future of a response, ours or the inner service's.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::Response;
use http_body::Body;
use pin_project_lite::pin_project;

use super::body::ResponseBody;

pin_project! {
    /// The future of [`Robots`](super::Robots).
    #[derive(Debug)]
    pub struct ResponseFuture<F> {
        #[pin]
        state: State<F>,
    }
}

pin_project! {
    #[project = StateProjection]
    #[derive(Debug)]
    enum State<F> {
        Pass { #[pin] future: F },
        Ready { response: Option<Response<Bytes>> },
    }
}

impl<F> ResponseFuture<F> {
    pub(super) const fn pass(future: F) -> Self {
        Self { state: State::Pass { future } }
    }

    pub(super) const fn ready(response: Response<Bytes>) -> Self {
        Self { state: State::Ready { response: Some(response) } }
    }
}

impl<F, B, E> Future for ResponseFuture<F>
where
    F: Future<Output = Result<Response<B>, E>>,
    B: Body<Data: From<Bytes>>,
{
    type Output = Result<Response<ResponseBody<B>>, E>;

    /// # Panics
    ///
    /// If it is polled again after it was done.
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().state.project() {
            StateProjection::Pass { future } => {
                let response = ready!(future.poll(context))?;
                Poll::Ready(Ok(response.map(ResponseBody::inner)))
            }
            StateProjection::Ready { response } => match response.take() {
                Some(response) => Poll::Ready(Ok(response.map(ResponseBody::full))),
                None => panic!("the future was polled after it was done"),
            },
        }
    }
}
