//! Tests the layers of Tower 0.5. Each error is handled outside the layer that returns it, as axum
//! requires.

use std::convert::Infallible;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::error_handling::HandleErrorLayer;
use axum::http::{Request, StatusCode};
use axum::response::Response;
use axum::routing::get;
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
use tower::{BoxError, ServiceBuilder, ServiceExt as _};

use super::in_both_orders;

const LONG: Duration = Duration::from_secs(600);

async fn handle(error: BoxError) -> (StatusCode, String) {
    (StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
}

fn same_request(request: Request<Body>) -> Request<Body> {
    request
}

/// The layer is ready when its inner service is. A crawler does not wait for robots.txt if the
/// limit is a separate layer in axum, or if an inner layer sheds load. Everything runs in this
/// process, so paused time advances only when all tasks wait.
#[tokio::test(start_paused = true)]
async fn a_concurrency_limit_delays_robots_txt_only_in_one_stack_without_load_shedding() {
    let limit = || GlobalConcurrencyLimitLayer::new(1);
    let shed = || ServiceBuilder::new().layer(HandleErrorLayer::new(handle)).layer(super::robots()).load_shed();
    let apart = |app: Router| app.layer(limit()).layer(super::robots());
    let shedding = |app: Router| app.layer(shed().layer(limit()));
    let one_stack = |app: Router| app.layer(ServiceBuilder::new().layer(super::robots()).layer(limit()));
    for (wrap, is_held_up) in [(&apart as &dyn Fn(Router) -> Router, false), (&shedding, false), (&one_stack, true)] {
        let (started, mut busy) = tokio::sync::mpsc::channel(1);
        let slow = async move || {
            let _ = started.send(()).await;
            std::future::pending::<()>().await;
        };
        let app = wrap(Router::new().route("/slow", get(slow)));
        let page = tokio::spawn(app.clone().oneshot(super::request(super::FIREFOX, "/slow")));
        busy.recv().await.unwrap();
        let file = super::fetch(&app, "GPTBot/1.2", "/robots.txt");
        let file = tokio::time::timeout(Duration::from_millis(500), file).await;
        assert_eq!(file.is_err(), is_held_up, "{file:?}");
        page.abort();
    }
}

/// A policy that never retries.
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
