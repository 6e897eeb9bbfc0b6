//! The side of the proxy that faces a site's servers: HTTP/1.1 over a small pool of connections to each, or HTTP/2 over a few.
//!
//! [`Origins`] are the servers behind a site, as the whole process knows them; an [`Upstream`] is one worker's way to
//! them, with connections of its own. It takes a request the edge has cleaned, sends it with the target's octets as
//! they came, and answers with what a server says or with a [`UpstreamFailure`](failure::UpstreamFailure); it never
//! fails itself. It chooses no site and judges nothing.
//!
//! Begin with [`forward`], which has one request on its way to a server and back. [`balancer`] finds it a connection: a
//! server by turn, of those that are [in service](server), within [`connection_limit`] and [fair shares](shares).
//! [`mod@http1_connection`] is a connection of HTTP/1.1, on which most exchanges are made by [`mod@http1_fast`] and all
//! others by hyper; idle ones wait there in a pool. [`mod@http2`] has those of HTTP/2. [`response_body`] is what the
//! edge reads.
//!
//! A request is sent a second time only where that cannot do harm: its method is idempotent, it has no body, it was
//! sent on a connection that had been idle, and not an octet has come back. A request that never left is sent again
//! whatever it is, and so is one that a server of HTTP/2 says it has not looked at. The second time it goes to another server,
//! if there is one.

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
pub(crate) mod test_octets;
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
use crate::exchange::{EdgeService, RequestBody};

/// One worker's way to the servers of a site.
#[derive(Clone, Debug)]
pub(crate) struct Upstream(Arc<UpstreamState>);

impl Upstream {
    /// The way of one of so many workers. Nothing is connected yet.
    pub(crate) fn new(origins: &Origins, workers: NonZeroUsize) -> Self {
        Self(Arc::new(UpstreamState::new(Arc::clone(&origins.0), workers)))
    }

    /// Whether it leads to these servers.
    pub(crate) fn leads_to(&self, origins: &Origins) -> bool {
        Arc::ptr_eq(&self.0.shared, &origins.0)
    }

    /// Forwards a request. The answer is always a response; a [`UpstreamFailure`](failure::UpstreamFailure) is in its extensions where it is our own.
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
        // Boxed: through the futures around it it would be moved again and again.
        Box::pin(async move { self.forward(request).await })
    }
}
