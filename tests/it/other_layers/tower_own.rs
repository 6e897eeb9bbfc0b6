//! The layers of Tower 0.5. Their errors are handled above them, as axum demands.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::error_handling::HandleErrorLayer;
use axum::http::{Request, StatusCode};
use axum::response::Response;
use tower::buffer::BufferLayer;
use tower::filter::{AsyncFilterLayer, FilterLayer};
use tower::limit::{ConcurrencyLimitLayer, GlobalConcurrencyLimitLayer, RateLimitLayer};
use tower::load_shed::LoadShedLayer;
use tower::retry::{Policy, RetryLayer};
use tower::spawn_ready::SpawnReadyLayer;
use tower::timeout::TimeoutLayer;
use tower::util::{
    AndThenLayer, MapErrLayer, MapFutureLayer, MapRequestLayer, MapResponseLayer, MapResultLayer, ThenLayer,
    option_layer,
};
use tower::{BoxError, ServiceBuilder};

use super::in_both_orders;

const LONG: Duration = Duration::from_secs(600);

async fn handle(error: BoxError) -> (StatusCode, String) {
    (StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
}

fn same_request(request: Request<Body>) -> Request<Body> {
    request
}

/// Tries nothing again.
#[derive(Clone)]
struct Once;

impl<Q, S, E> Policy<Q, S, E> for Once {
    type Future = std::future::Ready<()>;

    fn retry(&mut self, _: &mut Q, _: &mut Result<S, E>) -> Option<Self::Future> {
        None
    }

    fn clone_request(&mut self, _: &Q) -> Option<Q> {
        None
    }
}

in_both_orders! {
    buffer: BufferLayer::new(8), under HandleErrorLayer::new(handle);
    concurrency_limit: ConcurrencyLimitLayer::new(8);
    filter: FilterLayer::new(|request: Request<Body>| Ok::<_, BoxError>(request)), under HandleErrorLayer::new(handle);
    filter_async: AsyncFilterLayer::new(async |request: Request<Body>| Ok::<_, BoxError>(request)), under HandleErrorLayer::new(handle);
    global_concurrency_limit: GlobalConcurrencyLimitLayer::new(8);
    load_shed: LoadShedLayer::new(), under HandleErrorLayer::new(handle);
    rate_limit: ServiceBuilder::new().buffer(8).layer(RateLimitLayer::new(8, LONG)), under HandleErrorLayer::new(handle);
    spawn_ready: ServiceBuilder::new().buffer(8).layer(SpawnReadyLayer::new()), under HandleErrorLayer::new(handle);
    timeout: TimeoutLayer::new(LONG), under HandleErrorLayer::new(handle);
    and_then: AndThenLayer::new(async |response| Ok::<_, Infallible>(response));
    boxed: tower::util::BoxCloneSyncServiceLayer::new(MapRequestLayer::new(same_request));
    map_error: MapErrLayer::new(|error: Infallible| error);
    map_future: MapFutureLayer::new(|future| future);
    map_request: MapRequestLayer::new(same_request);
    map_response: MapResponseLayer::new(|response: Response<_>| response);
    map_result: MapResultLayer::new(|result: Result<_, Infallible>| result);
    optional: option_layer(Some(MapRequestLayer::new(same_request)));
    retry: RetryLayer::new(Once);
    then: ThenLayer::new(async |result: Result<_, Infallible>| result);
}
