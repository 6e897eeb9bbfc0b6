//! Connects to a site's servers and forwards requests to them.
//!
//! [`Origins`] is the process-wide state of the servers behind a site. An [`Upstream`] is one
//! worker's client for these servers, with its own connections. The client sends requests that the
//! edge has checked, without changing their targets, and always returns a response: the server's
//! response, or an error response for an [`UpstreamFailure`](failure::UpstreamFailure). Other
//! modules select the site and decide whether a request is allowed.
//!
//! Where to begin:
//! - [`forward`] sends a request and returns its response.
//! - [`balancer`] finds a connection for the request. Servers that are [in service](server) take
//!   turns, within [`connection_limit`] and [fair shares](shares).
//! - [`mod@http1_connection`] is an HTTP/1.1 connection, and the pool of idle connections.
//!   [`mod@http1_fast`] handles most exchanges, and hyper handles the other exchanges.
//! - [`mod@http2`] contains the HTTP/2 connections.
//! - [`response_body`] is the response body that the edge reads.
//!
//! A request that gets no response is sent a second time, to another server if there is one, in
//! three cases:
//! - The request was never sent, or an HTTP/2 server reports that it did not process the request.
//! - The method is idempotent, the request has no body, no byte of a response has arrived, and the
//!   connection had served other requests before. The server may have closed the idle connection.
//! - The method is GET or HEAD, and an invalid response ended the connection with all its requests.

mod endpoint;
mod failure;
mod failure_kind;

mod connection_limit;
mod origins;
mod resolver;
mod server;
mod server_search;
mod shares;
mod usage;

mod balancer;
mod forward;

mod http1_connection;
mod http1_fast;
mod http2;
mod outgoing_request;
mod read_ahead;
mod response_body;
mod tls;
mod tracked_io;

#[cfg(any(test, fuzzing))]
pub(crate) mod test_any_input;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::num::NonZeroUsize;
use std::sync::Arc;

use http::{Request, Response};
use tower_robots::parts::OriginalRequest;

pub(crate) use self::endpoint::{Endpoint, HttpVersions, UpstreamLimits};
pub(crate) use self::failure::{UpstreamEvent, UpstreamEventKind};
pub(crate) use self::failure_kind::FailureKind;
pub(crate) use self::origins::{Origins, OriginsSettings, SharedResources};
pub(crate) use self::response_body::ResponseBody;
pub(crate) use self::server::{HealthPolicy, ServerStatus};
pub(crate) use self::tls::{TlsSettings, check_server_name, secured};

use self::balancer::UpstreamState;
use crate::http_common::{EdgeService, RequestBody};

#[derive(Clone, Debug)]
pub(crate) struct Upstream(Arc<UpstreamState>);

impl Upstream {
    /// Creates the client for one of `workers` workers, without connecting.
    pub(crate) fn new(origins: &Origins, workers: NonZeroUsize) -> Self {
        Self(Arc::new(UpstreamState::new(Arc::clone(&origins.0), workers)))
    }

    pub(crate) fn uses_origins(&self, origins: &Origins) -> bool {
        Arc::ptr_eq(&self.0.shared, &origins.0)
    }

    /// Forwards a request and returns the response. If robotsd itself has generated the response,
    /// its extensions contain an [`UpstreamFailure`](failure::UpstreamFailure).
    async fn forward(&self, request: Box<Request<RequestBody>>) -> Response<ResponseBody> {
        let is_grpc_call = OriginalRequest::of(&request).is_grpc_call();
        match self.0.forward(request).await {
            Ok(response) => {
                self.0.answered.add_one();
                response
            }
            Err(failure) => {
                self.0.shared.reporter.failed(&failure, self.0.shared.answered_requests());
                if is_grpc_call { failure.into_grpc_response() } else { failure.into_response() }
            }
        }
    }
}

impl EdgeService for Upstream {
    type Body = ResponseBody;

    fn answer(self, request: Box<Request<RequestBody>>) -> impl Future<Output = Response<ResponseBody>> + Send {
        // The future is boxed, because otherwise each enclosing future would move it.
        Box::pin(async move { self.forward(request).await })
    }
}
