//! The operator's own servers that answer refused requests: a page with terms, or a tarpit.
//!
//! A tarpit is slow on purpose, so each server has its own limit of concurrent requests (its
//! places). A request never waits for a place: if all places are taken, or if the server fails, the
//! client gets the refusal from robotsd. The site's own upstreams never see a refused request.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, HeaderName, HeaderValue, IF_MATCH, IF_MODIFIED_SINCE,
    IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, RANGE, TRANSFER_ENCODING,
};
use http::{HeaderMap, Request, Response};
use http_body::Body;
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use tokio::sync::Semaphore;
use tower::BoxError;
use tower_robots::internals::{is_of_caches, mark, plain_name, vary_by_agent};
use tower_robots::layer::Record;

use super::backend::SiteBackend;
use crate::http_common::{ClientRequest, EdgeService, RequestBody};

/// A server that answers refused requests of a site. `S` is one worker's client for the server, or
/// the source that creates such clients. All workers share the places.
#[derive(Clone, Debug)]
pub(crate) struct RefusalServer<S = SiteBackend> {
    pub(super) server: S,
    pub(super) places: Arc<Semaphore>,
}

/// A response body that takes one of its server's places until the body is dropped.
pub(crate) type PermitBody = UnsyncBoxBody<Bytes, BoxError>;

/// One worker's clients for the refusal servers of a site, indexed by refusal case. An entry is
/// `None` if the case has no server.
pub(crate) type RefusalServers<B = SiteBackend> = Arc<[Option<RefusalServer<B>>]>;

/// Header fields that describe the request body, which is not forwarded.
const BODY_FIELDS: [HeaderName; 4] = [CONTENT_LENGTH, CONTENT_TYPE, EXPECT, TRANSFER_ENCODING];

/// Conditional and range header fields. Such fields refer to the requested page, but the refusal
/// server returns a different page.
const CONDITIONAL_FIELDS: [HeaderName; 6] =
    [IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, RANGE];

impl<B: EdgeService> RefusalServer<B> {
    /// Forwards a refused request to the server. Returns `None` if all places are taken or the
    /// server fails.
    ///
    /// A header field of the forwarded request contains the verdict. The request body is not
    /// forwarded.
    pub(crate) async fn answer(
        self,
        request: Box<Request<RequestBody>>,
        record: Option<&Record>,
    ) -> Option<Response<PermitBody>> {
        let place = Arc::clone(&self.places).try_acquire_owned().ok()?;
        // As with any other refusal, the client's request body is kept until the response begins.
        let (mut head, _unread) = request.into_parts();
        BODY_FIELDS.iter().chain(&CONDITIONAL_FIELDS).for_each(|name| drop(head.headers.remove(name)));
        mark(&mut head.headers, record);
        if let Some(client) = head.extensions.get_mut::<ClientRequest>() {
            client.wants_websocket = false;
        }
        let request = Request::from_parts(head, RequestBody::empty());
        let mut response = self.server.answer(Box::new(request)).await;
        // If the server cannot be reached, the response has a 5xx status, too.
        if response.status().is_server_error() {
            return None;
        }
        keep_out_of_caches(response.headers_mut());
        let hold = move |error: <B::Body as Body>::Error| -> BoxError {
            let _ = &place;
            error.into()
        };
        Some(response.map(|body| body.map_err(hold).boxed_unsync()))
    }
}

fn keep_out_of_caches(fields: &mut HeaderMap) {
    let overriding: Vec<_> = fields.keys().filter(|name| is_of_caches(&plain_name(name))).cloned().collect();
    overriding.iter().for_each(|name| drop(fields.remove(name)));
    fields.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    vary_by_agent(fields);
}
