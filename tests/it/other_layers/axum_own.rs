//! Tests every layer of axum 0.8.

use std::convert::Infallible;

use axum::Extension;
use axum::error_handling::HandleErrorLayer;
use axum::extract::connect_info::MockConnectInfo;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{
    Next, ResponseAxumBodyLayer, from_extractor, from_extractor_with_state, from_fn, from_fn_with_state, map_request,
    map_request_with_state, map_response, map_response_with_state,
};
use axum::response::Response;

use super::in_both_orders;

async fn pass(request: Request, next: Next) -> Response {
    next.run(request).await
}

async fn pass_with_state(State(_): State<u8>, request: Request, next: Next) -> Response {
    next.run(request).await
}

async fn same_request(request: Request) -> Request {
    request
}

async fn same_request_with_state(State(_): State<u8>, request: Request) -> Request {
    request
}

async fn same_response<B>(response: Response<B>) -> Response<B> {
    response
}

async fn same_response_with_state<B>(State(_): State<u8>, response: Response<B>) -> Response<B> {
    response
}

async fn handle(error: Infallible) -> StatusCode {
    match error {}
}

in_both_orders! {
    default_body_limit: DefaultBodyLimit::max(1_000);
    extension: Extension("shared");
    extractor: from_extractor::<HeaderMap>();
    extractor_with_state: from_extractor_with_state::<HeaderMap, _>(1_u8);
    function: from_fn(pass);
    function_with_state: from_fn_with_state(1, pass_with_state);
    handle_error: HandleErrorLayer::new(handle);
    mapped_request: map_request(same_request);
    mapped_request_with_state: map_request_with_state(1, same_request_with_state);
    mapped_response: map_response(same_response);
    mapped_response_with_state: map_response_with_state(1, same_response_with_state);
    mock_connect_info: MockConnectInfo(1_u8);
    response_body: ResponseAxumBodyLayer;
}

#[tokio::test]
async fn the_layer_can_be_added_to_routes_method_routers_and_fallbacks() {
    use axum::Router;
    use axum::routing::get;
    let page = || get(async || "a draft");
    for app in [
        Router::new().route("/drafts/{page}", page().layer(super::robots())),
        Router::new().route("/drafts/{page}", page().route_layer(super::robots())),
        Router::new().route("/drafts/{page}", page()).route_layer(super::robots()),
        Router::new().route("/drafts/{page}", page()).route_layer((super::robots(), from_fn(pass))),
        Router::new().fallback(async || "a draft").layer(super::robots()),
        Router::new().fallback_service(super::app()).layer(super::robots()).layer(from_fn(pass)),
        Router::new().route_service("/drafts/{page}", tower::Layer::layer(&super::robots(), super::app())),
    ] {
        assert_eq!(super::fetch(&app, super::FIREFOX, "/drafts/x").await, (StatusCode::OK, "a draft".into()));
        assert_eq!(super::fetch(&app, "GPTBot/1.2", "/drafts/x").await.0, StatusCode::FORBIDDEN);
    }
}
