//! The service that the layer creates, its future, and its response body.

use std::convert::Infallible;
use std::future::{Future, Ready, ready};
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Context, Poll};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tower_service::Service;

use super::enforcer::Enforcer;
use super::original::OriginalRequest;
use super::signals::ResponseFields;

/// A service that serves `/robots.txt` and enforces it for crawlers, in front of the inner service
/// `S`. [`RobotsLayer`](super::RobotsLayer) creates it.
///
/// The response body is a [`ResponseBody`] around the inner service's body. With
/// [`RobotsLayer::same_body`](super::RobotsLayer::same_body), the service has the inner service's
/// body type instead.
pub struct Robots<S, K = AnyBody> {
    pub(super) enforcer: Arc<Enforcer>,
    pub(super) inner: S,
    pub(super) kind: PhantomData<fn() -> K>,
}

/// Determines the type of the service's response bodies, and how they are created.
pub trait BodyKind<B> {
    /// The body type of all responses of the service.
    type Body;

    /// Converts the body of an inner service's response.
    fn inner(body: B) -> Self::Body;

    /// Creates the body of the layer's own response.
    fn own(bytes: Bytes) -> Self::Body;
}

/// The service responds with the inner service's own body type.
#[derive(Debug)]
pub struct SameBody;

/// The service responds with a [`ResponseBody`], which contains either the inner service's body or
/// bytes from the layer.
#[derive(Debug)]
pub struct AnyBody;

impl<B: From<Bytes>> BodyKind<B> for SameBody {
    type Body = B;

    fn inner(body: B) -> B {
        body
    }

    fn own(bytes: Bytes) -> B {
        bytes.into()
    }
}

impl<B: Body<Data: From<Bytes>>> BodyKind<B> for AnyBody {
    type Body = ResponseBody<B>;

    fn inner(body: B) -> ResponseBody<B> {
        ResponseBody::inner(body)
    }

    fn own(bytes: Bytes) -> ResponseBody<B> {
        ResponseBody::full(bytes)
    }
}

impl<S: Clone, K> Clone for Robots<S, K> {
    fn clone(&self) -> Self {
        Self { enforcer: self.enforcer.clone(), inner: self.inner.clone(), kind: PhantomData }
    }
}

impl<S, A, B, K> Service<Request<A>> for Robots<S, K>
where
    S: Service<Request<A>, Response = Response<B>>,
    K: BodyKind<B>,
{
    type Response = Response<K::Body>;
    type Error = S::Error;
    type Future = ResponseFuture<S::Future, K>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<A>) -> Self::Future {
        let mut answer = self.enforcer.answer(OriginalRequest::of(&request));
        let fields = answer.response_fields.take();
        match answer.respond(&mut request) {
            None => ResponseFuture::pass(self.inner.call(request), fields),
            Some(response) => ResponseFuture::ready(response),
        }
    }
}

robots_core::debug_as!(|it| [S: std::fmt::Debug, K] Robots::<S, K> { inner: it.inner });

/// A service that treats every request as a request for `/robots.txt`, regardless of its path.
/// [`RobotsLayer::robots_txt_service`](super::RobotsLayer::robots_txt_service) creates it.
#[derive(Clone)]
pub struct RobotsTxtService {
    pub(super) enforcer: Arc<Enforcer>,
}

impl<B> Service<Request<B>> for RobotsTxtService {
    type Response = Response<ResponseBody<String>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let answer = self.enforcer.answer_robots_txt(OriginalRequest::of(&request));
        let response = answer.respond(&mut request).unwrap_or_else(|| {
            let mut missing = Response::new(Bytes::new());
            *missing.status_mut() = StatusCode::NOT_FOUND;
            missing
        });
        ready(Ok(response.map(ResponseBody::full)))
    }
}

robots_core::debug_as!(|it| RobotsTxtService { sites: it.enforcer.sites });

pin_project! {
    /// The future of [`Robots`](crate::parts::Robots).
    #[derive(Debug)]
    pub struct ResponseFuture<F, K = AnyBody> {
        #[pin]
        state: State<F>,
        kind: PhantomData<fn() -> K>,
    }
}

pin_project! {
    #[project = StateProjection]
    #[derive(Debug)]
    enum State<F> {
        Pass { #[pin] future: F, fields: Option<Box<ResponseFields>> },
        Ready { response: Option<Response<Bytes>> },
    }
}

impl<F, K> ResponseFuture<F, K> {
    pub(super) const fn pass(future: F, fields: Option<Box<ResponseFields>>) -> Self {
        Self { state: State::Pass { future, fields }, kind: PhantomData }
    }

    pub(super) const fn ready(response: Response<Bytes>) -> Self {
        Self { state: State::Ready { response: Some(response) }, kind: PhantomData }
    }
}

impl<F, B, E, K> Future for ResponseFuture<F, K>
where
    F: Future<Output = Result<Response<B>, E>>,
    K: BodyKind<B>,
{
    type Output = Result<Response<K::Body>, E>;

    /// # Panics
    ///
    /// Panics if the future is polled again after it has completed.
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().state.project() {
            StateProjection::Pass { future, fields } => {
                let mut response = task::ready!(future.poll(context))?;
                if let Some(fields) = fields.take() {
                    fields.add_to(response.status(), response.headers_mut());
                }
                Poll::Ready(Ok(response.map(K::inner)))
            }
            StateProjection::Ready { response } => match response.take() {
                Some(response) => Poll::Ready(Ok(response.map(K::own))),
                None => panic!("the future was polled after it had completed"),
            },
        }
    }
}

pin_project! {
    /// The response body of [`Robots`](crate::parts::Robots): the inner service's body, or bytes
    /// from the layer.
    #[derive(Debug)]
    pub struct ResponseBody<B> {
        #[pin]
        source: Source<B>,
    }
}

pin_project! {
    #[project = SourceProjection]
    #[derive(Debug)]
    enum Source<B> {
        Inner { #[pin] body: B },
        Full { bytes: Option<Bytes> },
    }
}

impl<B> ResponseBody<B> {
    pub(super) const fn inner(body: B) -> Self {
        Self { source: Source::Inner { body } }
    }

    pub(super) fn full(bytes: Bytes) -> Self {
        Self { source: Source::Full { bytes: (!bytes.is_empty()).then_some(bytes) } }
    }
}

/// Returns an empty body. Layers that create responses themselves, such as tower-http's `CorsLayer`
/// and `TimeoutLayer`, need this function.
impl<B> Default for ResponseBody<B> {
    fn default() -> Self {
        Self { source: Source::Full { bytes: None } }
    }
}

impl<B> Body for ResponseBody<B>
where
    B: Body<Data: From<Bytes>>,
{
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        match self.project().source.project() {
            SourceProjection::Inner { body } => body.poll_frame(context),
            SourceProjection::Full { bytes } => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes.into())))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            Source::Inner { body } => body.is_end_stream(),
            Source::Full { bytes } => bytes.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            Source::Inner { body } => body.size_hint(),
            Source::Full { bytes } => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
        }
    }
}
