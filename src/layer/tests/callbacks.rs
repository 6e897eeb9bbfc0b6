//! Tests of observers, of callbacks that panic, of the kill switch and of the grace period.

use super::*;

#[tokio::test]
async fn observers_are_notified_of_exactly_the_disallowed_requests_unless_the_mode_is_off() {
    for (mode, want) in
        [(Mode::Off, None), (Mode::Observe, Some(None)), (Mode::Tag, Some(None)), (Mode::Refuse, Some(Some(403)))]
    {
        let (notified, sink) = noting(Vec::new());
        let layer = RobotsLayer::new(live(mode)).on_disallowed(move |event| {
            let status = event.status.map(|status| status.as_u16());
            sink.lock().push((status, String::from_utf8_lossy(event.request.target()).into_owned(), event.record.line));
        });
        ask(layer.clone(), get("/drafts/x?y", GPTBOT)).await;
        ask(layer.clone(), get("/", GPTBOT)).await;
        ask(layer, get("/drafts/x", FIREFOX)).await;
        let want: Vec<_> = want.into_iter().map(|status| (status, "/drafts/x?y".to_owned(), Some(2))).collect();
        assert_eq!(*notified.lock(), want, "{mode}");
    }
}

#[tokio::test]
async fn a_panic_in_a_callback_that_reads_the_request_passes_it_and_is_counted_as_a_fault() {
    let live = live(Mode::Refuse);
    let layer = || RobotsLayer::new(live.clone());
    let panicking = [
        layer().target_from(|_| panic!("no target")),
        layer().address_from(|_| panic!("no address")),
        layer().agent_from(|_| panic!("no agent")),
    ];
    assert_eq!(live.status().faults, 0);
    for (count, layer) in (1..).zip(panicking) {
        assert_eq!(text(ask(layer, get("/drafts/x", GPTBOT)).await).await, "app");
        assert_eq!(live.status().faults, count);
    }
    assert_eq!(live.status().callback_faults, 0);
    assert_eq!(ask(layer(), get("/robots.txt", GPTBOT)).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn the_client_address_is_read_only_if_a_group_applies() {
    let (lookups, count) = noting(0);
    let layer = RobotsLayer::new(live(Mode::Refuse)).address_from(move |_| {
        *count.lock() += 1;
        None
    });
    for (target, agent, want) in
        [("/drafts/x", FIREFOX, 0), ("/robots.txt", GPTBOT, 0), ("/open/x", GPTBOT, 1), ("/drafts/x", GPTBOT, 2)]
    {
        ask(layer.clone(), get(target, agent)).await;
        assert_eq!(*lookups.lock(), want, "{target} {agent}");
    }
}

#[tokio::test]
async fn a_panic_of_an_observer_changes_no_decision_and_is_counted() {
    for (mode, status, tagged) in [
        (Mode::Refuse, StatusCode::FORBIDDEN, false),
        (Mode::Tag, StatusCode::OK, true),
        (Mode::Observe, StatusCode::OK, false),
    ] {
        let live = live(mode);
        let (notified, sink) = noting(0);
        let layer = RobotsLayer::new(live.clone())
            .on_disallowed(|event| panic!("{} is too much", event.record.name()))
            .on_disallowed(move |_| *sink.lock() += 1);
        for asked in 1..=3 {
            let response = ask(layer.clone(), get("/drafts/x", GPTBOT)).await;
            assert_eq!((response.status(), field(&response, "saw-robots-verdict").is_some()), (status, tagged));
            assert_eq!((live.status().callback_faults, live.status().faults), (asked, 0), "{mode:?}");
            assert_eq!(*notified.lock(), asked, "the other observer is notified all the same");
        }
        assert_eq!(ask(layer, get("/", GPTBOT)).await.status(), StatusCode::OK);
    }
}

#[tokio::test]
async fn with_enforcement_off_every_request_passes_and_robots_txt_is_still_served() {
    let live = live(Mode::Refuse);
    let (notified, sink) = noting(0);
    let layer = RobotsLayer::new(live.clone()).on_disallowed(move |_| *sink.lock() += 1);
    let cases = [(Enforcement::Off, StatusCode::OK, 0), (Enforcement::On, StatusCode::FORBIDDEN, 1)];
    for (enforcement, status, events) in cases {
        live.set_enforcement(enforcement).expect("there is nothing to write");
        assert_eq!(ask(layer.clone(), get("/drafts/x", GPTBOT)).await.status(), status);
        assert_eq!(*notified.lock(), events);
        assert_eq!(text(ask(layer.clone(), get("/robots.txt", GPTBOT)).await).await, FILE);
    }
}

#[tokio::test]
async fn a_disallowed_request_in_the_grace_period_passes_with_the_reason_grace() {
    let policy = Policy::builder().mode(Mode::Refuse).build();
    let live = LiveRobots::text(FILE).policy(policy).grace(Duration::from_secs(3600)).open().expect("a robots.txt");
    let (notified, sink) = noting(Vec::new());
    let layer =
        RobotsLayer::new(live).on_disallowed(move |event| sink.lock().push((event.record.action, event.record.reason)));
    assert_eq!(ask(layer, get("/drafts/x", GPTBOT)).await.status(), StatusCode::OK);
    assert_eq!(*notified.lock(), [(Action::Pass, Reason::Grace)]);
}

#[tokio::test]
async fn a_request_that_the_application_exempts_passes_and_is_not_counted() {
    use crate::policy::RateMode;
    let file = "User-agent: GPTBot\nDisallow: /drafts/\nCrawl-delay: 9\n";
    let policy = Policy::builder().mode(Mode::Refuse).rate(RateMode::Refuse);
    let (notified, sink) = noting(Vec::new());
    let layer = RobotsLayer::new(live_by(file, policy))
        .exempt_if(|extensions| extensions.get::<&str>() == Some(&"session"))
        .on_disallowed(move |event| sink.lock().push(event.record.reason));
    let of = |target: &str, session: &'static str| {
        let mut request = get(target, GPTBOT);
        request.extensions_mut().insert(session);
        request
    };
    for _ in 0..9 {
        assert_eq!(text(ask(layer.clone(), of("/page", "session")).await).await, "app");
    }
    assert_eq!(text(ask(layer.clone(), of("/drafts/x", "session")).await).await, "app");
    assert_eq!(*notified.lock(), []);
    let mut forged = of("/drafts/x", "session");
    forged.headers_mut().insert(Record::FIELD, "allow".parse().expect("a field"));
    assert_eq!(text(ask(layer.clone(), forged).await).await, "app", "the field of a client goes");
    assert!(text(ask(layer.clone(), of("/robots.txt", "session")).await).await.starts_with("User-agent"));
    for none in [of("/drafts/x", "none"), get("/drafts/x", GPTBOT)] {
        assert_eq!(ask(layer.clone(), none).await.status(), StatusCode::FORBIDDEN);
    }
    let layer = layer.exempt_if(|_| panic!("no session"));
    assert_eq!(text(ask(layer, get("/drafts/x", GPTBOT)).await).await, "app", "as every fault of judging");
}

#[test]
fn observers_get_the_client_address_that_the_layer_uses() {
    let layer = RobotsLayer::new(live(Mode::Refuse)).address_from(|extensions| extensions.get().copied());
    let layer = layer.forwarded_for(["10.0.0.0/8"]).expect("a network");
    let finder = layer.clone();
    let (notified, sink) = noting(Vec::new());
    let layer = layer.on_disallowed(move |event| sink.lock().push(finder.client_address(&event.request)));
    for peer in [[10, 0, 0, 1], [192, 0, 2, 1]] {
        let mut request = get("/drafts/x", GPTBOT);
        request.extensions_mut().insert(std::net::IpAddr::from(peer));
        request.headers_mut().insert("x-forwarded-for", "198.51.100.1, 203.0.113.9".parse().expect("a field"));
        let _ = layer.decide(&OriginalRequest::of(&request)).respond(None);
    }
    let want = ["203.0.113.9", "192.0.2.1"].map(|address| Some(address.parse().expect("an address")));
    assert_eq!(*notified.lock(), want);
}
