//! Tests every layer of tower-http 0.7, in the order of its modules.
#![expect(clippy::result_large_err, reason = "tower-http wants the response as the error of the function")]

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, Request, Response, StatusCode, header};
use tower_http::add_extension::AddExtensionLayer;
use tower_http::auth::{AddAuthorizationLayer, AsyncRequireAuthorizationLayer};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::cors::CorsLayer;
use tower_http::csrf::CsrfLayer;
use tower_http::decompression::{DecompressionLayer, RequestDecompressionLayer};
use tower_http::follow_redirect::FollowRedirectLayer;
use tower_http::limit::RequestBodyLimitLayer;
use tower_http::map_request_body::MapRequestBodyLayer;
use tower_http::map_response_body::MapResponseBodyLayer;
use tower_http::metrics::InFlightRequestsLayer;
use tower_http::normalize_path::NormalizePathLayer;
use tower_http::on_early_drop::{EarlyDropsAsFailures, OnEarlyDropLayer};
use tower_http::propagate_header::PropagateHeaderLayer;
use tower_http::request_id::{MakeRequestUuid, PropagateRequestIdLayer, SetRequestIdLayer};
use tower_http::sensitive_headers::{
    SetSensitiveHeadersLayer, SetSensitiveRequestHeadersLayer, SetSensitiveResponseHeadersLayer,
};
use tower_http::set_header::request::SetMultipleRequestHeadersLayer;
use tower_http::set_header::response::SetMultipleResponseHeadersLayer;
use tower_http::set_header::{SetRequestHeaderLayer, SetResponseHeaderLayer};
use tower_http::set_status::SetStatusLayer;
use tower_http::timeout::{
    RequestBodyDeadlineLayer, RequestBodyTimeoutLayer, ResponseBodyDeadlineLayer, ResponseBodyTimeoutLayer,
    TimeoutLayer,
};
use tower_http::trace::{DefaultOnFailure, TraceLayer};
use tower_http::validate_request::ValidateRequestHeaderLayer;

use super::in_both_orders;

const LONG: Duration = Duration::from_secs(600);
const NAME: HeaderName = HeaderName::from_static("x-field");
const VALUE: HeaderValue = HeaderValue::from_static("value");

in_both_orders! {
    add_extension: AddExtensionLayer::new("shared");
    add_authorization: AddAuthorizationLayer::bearer("token");
    async_require_authorization: AsyncRequireAuthorizationLayer::new(|request: Request<Body>| async move {
        if request.headers().contains_key(header::AUTHORIZATION) { Ok(request) } else { Err(Response::default()) }
    });
    catch_panic: CatchPanicLayer::new();
    compression: CompressionLayer::new();
    cors: CorsLayer::permissive();
    csrf: CsrfLayer::new();
    decompression: DecompressionLayer::new();
    decompression_of_requests: RequestDecompressionLayer::new();
    follow_redirect: FollowRedirectLayer::new();
    limit: RequestBodyLimitLayer::new(1_000);
    map_request_body: MapRequestBodyLayer::new(Body::new);
    map_response_body: MapResponseBodyLayer::new(Body::new);
    metrics: InFlightRequestsLayer::pair().0;
    normalize_path: NormalizePathLayer::trim_trailing_slash();
    on_early_drop: OnEarlyDropLayer::new(EarlyDropsAsFailures::new(DefaultOnFailure::default()));
    propagate_header: PropagateHeaderLayer::new(NAME);
    request_id: SetRequestIdLayer::x_request_id(MakeRequestUuid);
    request_id_of_responses: PropagateRequestIdLayer::x_request_id();
    sensitive_headers: SetSensitiveHeadersLayer::new([NAME]);
    sensitive_headers_of_requests: SetSensitiveRequestHeadersLayer::new([NAME]);
    sensitive_headers_of_responses: SetSensitiveResponseHeadersLayer::new([NAME]);
    set_header: SetRequestHeaderLayer::overriding(NAME, VALUE);
    set_header_of_responses: SetResponseHeaderLayer::overriding(NAME, VALUE);
    set_headers: SetMultipleRequestHeadersLayer::overriding(vec![(NAME, VALUE).into()]);
    set_headers_of_responses: SetMultipleResponseHeadersLayer::overriding(vec![(NAME, VALUE).into()]);
    timeout: TimeoutLayer::with_status_code(StatusCode::GATEWAY_TIMEOUT, LONG);
    timeout_of_request_bodies: RequestBodyTimeoutLayer::new(LONG);
    timeout_of_response_bodies: ResponseBodyTimeoutLayer::new(LONG);
    deadline_of_request_bodies: RequestBodyDeadlineLayer::new(LONG);
    deadline_of_response_bodies: ResponseBodyDeadlineLayer::new(LONG);
    trace: TraceLayer::new_for_http();
    trace_of_grpc: TraceLayer::new_for_grpc();
    validate_accept: ValidateRequestHeaderLayer::accept("text/plain");
    validate_a_header: ValidateRequestHeaderLayer::has_header_value("host", "example.com").unwrap();
    validate_by_a_function: ValidateRequestHeaderLayer::custom(|request: &mut Request<Body>| {
        if request.headers().contains_key(header::AUTHORIZATION) { Ok(()) } else { Err(Response::default()) }
    });
}

/// A layer that changes every status changes the status of a refusal only if the refusal comes from
/// an inner layer.
#[tokio::test]
async fn set_status_changes_a_refusal_only_if_the_robots_layer_is_inside() {
    let teapot = || SetStatusLayer::new(StatusCode::IM_A_TEAPOT);
    for (app, refused) in [
        (
            super::app().layer(tower::ServiceBuilder::new().layer(super::robots()).layer(teapot())),
            StatusCode::FORBIDDEN,
        ),
        (
            super::app().layer(tower::ServiceBuilder::new().layer(teapot()).layer(super::robots())),
            StatusCode::IM_A_TEAPOT,
        ),
    ] {
        assert_eq!(super::fetch(&app, super::FIREFOX, "/drafts/x").await, (StatusCode::IM_A_TEAPOT, "a draft".into()));
        let (status, refusal) = super::fetch(&app, "GPTBot/1.2", "/drafts/x").await;
        assert_eq!(status, refused);
        assert!(refusal.starts_with(b"403 Forbidden\n\n"), "{refusal:?}");
    }
}
