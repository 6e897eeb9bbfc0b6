//! One connection, from its first octet to its end: the fast path while its requests allow it, then hyper or HTTP/2; or SPOP.

pub(crate) mod client_socket;
pub(crate) mod parser_policy;
pub(crate) mod settings;

pub(crate) mod driver;
mod protocol_detection;
pub(crate) mod watched_socket;

use std::convert::Infallible;
use std::error::Error;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use tokio::sync::watch;
use tower::Service;

use self::settings::ConnectionSettings;
use crate::edge::connection_error::ConnectionFailure;
use crate::edge::http1_fast::{self, DateClock, FastPathEnd};
use crate::edge::request::request_body::RequestBody;
use crate::edge::request::service::RequestService;
use crate::edge::spop::{self, SpopMessages};
use crate::socket::Socket;

/// Serves a connection until it ends, or until it has drained after `stop`.
pub(crate) async fn serve<S, B>(
    socket: Socket,
    service: RequestService<S>,
    settings: Arc<ConnectionSettings>,
    clock: Arc<DateClock>,
    stop: watch::Receiver<bool>,
    messages: Option<SpopMessages>,
) -> Result<(), ConnectionFailure>
where
    S: Service<Request<RequestBody>, Response = Response<B>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    match http1_fast::serve(socket, service, &settings, Arc::clone(&clock), &stop).await {
        FastPathEnd::Ended(ended) => ended,
        // Boxed, because most connections end without it.
        FastPathEnd::Handover(handover) => match messages.filter(|_| spop::begins(&handover)) {
            Some(messages) => Box::pin(spop::serve(handover, settings, clock, stop, messages)).await,
            None => Box::pin(driver::serve(handover, settings, clock, stop)).await,
        },
    }
}
