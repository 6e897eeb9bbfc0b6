//! The operator's own servers that answer refused requests: a page with terms, or a tarpit.
//!
//! A tarpit is slow on purpose. So each server has its own limit of concurrent requests (its
//! places), and a request never waits for a place. If all places are taken, or if the server fails,
//! the client gets the refusal from robotsd. The site's own upstreams never see the request.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::header::{
    AGE, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, EXPIRES, HeaderName, HeaderValue, IF_MATCH,
    IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, RANGE, TRANSFER_ENCODING, VARY,
};
use http::{HeaderMap, Request, Response};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower_robots::layer::Record;

use super::backend::{BackendSource, SiteBackend};
use crate::http_common::{ClientRequest, EdgeService, RequestBody};
use crate::refusal::is_cache_control;

/// A server that answers refused requests of a site, and its free places. All workers share it.
#[derive(Clone, Debug)]
pub(super) struct RefusalServer {
    pub(super) source: BackendSource,
    pub(super) places: Arc<Semaphore>,
}

/// One worker's client for a server that answers refused requests.
#[derive(Clone, Debug)]
pub(crate) struct RefusalBackend<B = SiteBackend> {
    pub(super) backend: B,
    pub(super) places: Arc<Semaphore>,
}

/// The clients of one worker for the servers of a site, by the index of the refusal case. `None` if
/// the case has no server.
pub(crate) type RefusalBackends<B = SiteBackend> = Arc<[Option<RefusalBackend<B>>]>;

/// Fields that override `Cache-Control: no-store` in some caches, which could then send the
/// response to people. The fields whose names [`is_cache_control`] recognises have the same effect.
const CACHING: [HeaderName; 5] = [
    AGE,
    EXPIRES,
    HeaderName::from_static("edge-control"),
    HeaderName::from_static("surrogate-control"),
    HeaderName::from_static("x-accel-expires"),
];

/// The fields that describe the body of a request, which is not forwarded.
const OF_BODY: [HeaderName; 4] = [CONTENT_LENGTH, CONTENT_TYPE, EXPECT, TRANSFER_ENCODING];

/// The fields that ask for a part of the requested page, or ask whether a copy of it is still valid.
/// The server has another page, so its answer to them would be about the wrong page.
const OF_PAGE: [HeaderName; 6] = [IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, RANGE];

/// The verdict field with an underscore, which some servers do not distinguish from the hyphen.
const VERDICT_WITH_UNDERSCORE: HeaderName = HeaderName::from_static("robots_verdict");

impl<B: EdgeService> RefusalBackend<B> {
    /// Returns the response of the server. Returns `None` if all places are taken or the server
    /// fails.
    ///
    /// The request gets the verdict as a field, so that the server knows crawler and rule. Its body
    /// is not forwarded.
    pub(crate) async fn answer(
        self,
        request: Box<Request<RequestBody>>,
        record: Option<&Record>,
    ) -> Option<Response<HeldBody<B::Body>>> {
        let place = Arc::clone(&self.places).try_acquire_owned().ok()?;
        // The client's body is kept until the response begins, as with any other refusal.
        let (mut head, _unread) = request.into_parts();
        OF_BODY.iter().chain(&OF_PAGE).for_each(|name| drop(head.headers.remove(name)));
        head.headers.remove(VERDICT_WITH_UNDERSCORE);
        match record {
            Some(record) => drop(head.headers.insert(Record::FIELD, record.to_field())),
            None => drop(head.headers.remove(Record::FIELD)),
        }
        if let Some(client) = head.extensions.get_mut::<ClientRequest>() {
            client.wants_websocket = false;
        }
        let request = Request::from_parts(head, RequestBody::empty());
        let mut response = self.backend.answer(Box::new(request)).await;
        // A response with 5xx is also created if the server cannot be reached.
        if response.status().is_server_error() {
            return None;
        }
        keep_out_of_caches(response.headers_mut());
        Some(response.map(|body| HeldBody { body, _place: place }))
    }
}

fn keep_out_of_caches(fields: &mut HeaderMap) {
    let overriding: Vec<_> = fields.keys().filter(|name| is_cache_control(name)).cloned().collect();
    CACHING.iter().chain(&overriding).for_each(|name| drop(fields.remove(name)));
    fields.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    fields.append(VARY, HeaderValue::from_static("User-Agent"));
}

pin_project! {
    /// A response body that occupies a place at its server until it is dropped.
    #[derive(Debug)]
    pub(crate) struct HeldBody<B> {
        #[pin]
        body: B,
        _place: OwnedSemaphorePermit,
    }
}

impl<B: Body> Body for HeldBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        self.project().body.poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
