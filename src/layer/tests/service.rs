//! Tests of the Tower service.

use super::*;

#[tokio::test]
async fn errors_from_call_and_poll_ready_of_the_inner_service_pass_through() {
    struct Busy;
    impl Service<Request<Body>> for Busy {
        type Response = Response<Body>;
        type Error = &'static str;
        type Future = std::future::Ready<Result<Response<Body>, &'static str>>;

        fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Self::Error>> {
            std::task::Poll::Ready(Err("not ready"))
        }

        fn call(&mut self, _: Request<Body>) -> Self::Future {
            std::future::ready(Err("called"))
        }
    }
    let mut robots = RobotsLayer::new(live(Mode::Refuse)).layer(Busy);
    assert_eq!(robots.ready().await.err(), Some("not ready"));
    assert_eq!(robots.call(get("/", FIREFOX)).await.err(), Some("called"));
    assert!(robots.call(get("/drafts/", GPTBOT)).await.is_ok());
}

#[tokio::test]
async fn a_response_body_has_an_exact_size_hint() {
    use http_body::Body as _;
    let layer = RobotsLayer::new(live(Mode::Refuse));
    for (target, agent) in [("/robots.txt", FIREFOX), ("/drafts/", GPTBOT), ("/", FIREFOX)] {
        let body = ask(layer.clone(), get(target, agent)).await.into_body();
        let said = body.size_hint().exact();
        let length = BodyExt::collect(body).await.expect("a body").to_bytes().len();
        assert_eq!(said, Some(length as u64), "{target}");
    }
}

#[tokio::test]
async fn a_new_policy_applies_at_once_and_the_layer_is_send_and_sync() {
    fn assert_send<T: Send + Sync + Clone + 'static>(_: &T) {}
    let live = live(Mode::Refuse);
    let layer = RobotsLayer::new(live.clone());
    assert_send(&layer);
    assert_send(&layer.layer(service_fn(app)));
    live.set_policy(Policy::builder().mode(Mode::Off).build());
    assert_eq!(ask(layer, get("/drafts/x", GPTBOT)).await.status(), StatusCode::OK);
}
