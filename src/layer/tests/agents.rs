//! Tests which agents are recognised in a request.

use super::*;

#[tokio::test]
async fn a_request_with_two_user_agent_lines_is_refused_if_one_is_disallowed() {
    for agents in [[FIREFOX, GPTBOT], [GPTBOT, FIREFOX]] {
        let request = with(get("/drafts/x", agents[0]), "user-agent", agents[1]);
        assert_eq!(ask(RobotsLayer::new(live(Mode::Refuse)), request).await.status(), StatusCode::FORBIDDEN);
    }
}

#[tokio::test]
async fn a_request_with_two_names_in_one_line_is_refused_if_one_is_disallowed() {
    let file = "User-agent: CCBot\nUser-agent: Googlebot\nAllow: /\n\nUser-agent: GPTBot\nDisallow: /drafts/\n";
    let policy = Policy::builder().mode(Mode::Refuse).exempt_agents(["CCBot"]).expect("a name");
    let layer = RobotsLayer::new(live_by(file, policy));
    for first in ["CCBot/2.0", "Googlebot/2.1", "Twitterbot/1.0"] {
        for line in
            [format!("Mozilla/5.0 (compatible; {first}; GPTBot/1.0)"), format!("GPTBot/1.0 (compatible; {first})")]
        {
            let response = ask(layer.clone(), get("/drafts/x", &line)).await;
            assert_eq!(response.status(), StatusCode::FORBIDDEN, "{line}");
            assert_eq!(response.extensions().get::<Record>().expect("a record").name(), "GPTBot", "{line}");
            assert_eq!(ask(layer.clone(), get("/", &line)).await.status(), StatusCode::OK, "{line}");
        }
        assert_eq!(ask(layer.clone(), get("/drafts/x", first)).await.status(), StatusCode::OK, "{first}");
    }
    // If there are two `User-Agent` lines, the agents in both are judged.
    let request = with(get("/drafts/x", FIREFOX), "user-agent", "CCBot/2.0 GPTBot/1.0");
    assert_eq!(ask(layer, request).await.status(), StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn an_invalid_byte_in_the_user_agent_does_not_prevent_a_refusal() {
    for agent in [&b"GPTBot/1.2 \xff"[..], b"\xe9 GPTBot/1.2", b"GPTBot/1.2\t"] {
        let mut request = get("/drafts/x", "x");
        request.headers_mut().insert("user-agent", http::HeaderValue::from_bytes(agent).expect("a value"));
        let response = ask(RobotsLayer::new(live(Mode::Refuse)), request).await;
        assert_eq!(response.status(), StatusCode::FORBIDDEN, "{agent:?}");
    }
}

#[tokio::test]
async fn a_user_agent_from_the_extensions_replaces_the_user_agent_field() {
    let layer = RobotsLayer::new(live(Mode::Refuse))
        .agent_from(|extensions| extensions.get::<Vec<http::HeaderValue>>().map(Vec::as_slice));
    for (kept, agent, status) in [
        (None, GPTBOT, StatusCode::FORBIDDEN),
        (Some(&[][..]), GPTBOT, StatusCode::FORBIDDEN),
        (Some(&[GPTBOT][..]), FIREFOX, StatusCode::FORBIDDEN),
        (Some(&[FIREFOX][..]), GPTBOT, StatusCode::OK),
        (Some(&[FIREFOX, GPTBOT][..]), FIREFOX, StatusCode::FORBIDDEN),
    ] {
        let mut request = get("/drafts/x", agent);
        if let Some(kept) = kept {
            let lines = kept.iter().map(|line| line.parse().expect("a value")).collect::<Vec<http::HeaderValue>>();
            request.extensions_mut().insert(lines);
        }
        assert_eq!(ask(layer.clone(), request).await.status(), status, "{kept:?} {agent}");
    }
}

#[tokio::test]
async fn signs_of_a_person_who_sends_a_crawlers_name_are_recorded() {
    let policy = Policy::builder()
        .mode(Mode::Refuse)
        .session_cookies(["sid"])
        .expect("a name")
        .exempt_cookies(["staff"])
        .expect("a name")
        .exempt_networks(["10.0.0.0/8"])
        .expect("a network");
    let layer = RobotsLayer::new(live_by(FILE, policy));
    let layer = layer.address_from(|extensions| extensions.get::<std::net::IpAddr>().copied());
    let mut request = get("/drafts/x", GPTBOT);
    request.headers_mut().append("cookie", "a=1; sid=2".parse().expect("a value"));
    for (name, value) in [
        ("sec-fetch-site", "same-origin"),
        ("sec-fetch-mode", "navigate"),
        ("sec-fetch-dest", "document"),
        ("host", "a.test"),
        ("referer", "https://a.test/"),
    ] {
        add(&mut request, name, value);
    }
    let response = ask(layer.clone(), request).await;
    assert_eq!(response.status(), StatusCode::FORBIDDEN);
    let signs: Vec<_> = response.extensions().get::<Record>().expect("a record").signs.names().collect();
    assert_eq!(signs, ["session-cookie", "fetch-metadata", "own-referer"]);
    let request = with(get("/drafts/x", GPTBOT), "cookie", "staff=1");
    assert_eq!(ask(layer.clone(), request).await.status(), StatusCode::OK);
    for (address, status) in [([10, 0, 0, 1], StatusCode::OK), ([11, 0, 0, 1], StatusCode::FORBIDDEN)] {
        let mut request = get("/drafts/x", GPTBOT);
        request.extensions_mut().insert(std::net::IpAddr::from(address));
        assert_eq!(ask(layer.clone(), request).await.status(), status);
    }
}

#[tokio::test]
async fn the_client_address_comes_from_the_fields_of_trusted_proxies() {
    let policy = Policy::builder().mode(Mode::Refuse).exempt_networks(["192.0.2.0/24"]).expect("a network").build();
    let live = LiveRobots::text(FILE).policy(policy).open().expect("open");
    let layer = RobotsLayer::new(live)
        .address_from(|extensions| extensions.get::<std::net::IpAddr>().copied())
        .forwarded_for(["10.0.0.0/8", "2001:db8::/32"])
        .expect("networks");
    for (peer, lines, is_exempt) in [
        ("10.0.0.1", &[("x-forwarded-for", "192.0.2.1")][..], true),
        ("10.0.0.1", &[("x-forwarded-for", "192.0.2.1, 10.0.0.7"), ("x-forwarded-for", "2001:db8::1")], true),
        ("2001:db8::1", &[("forwarded", "for=192.0.2.1;proto=https, for=10.0.0.2")], true),
        // A client can forge the left address.
        ("10.0.0.1", &[("x-forwarded-for", "192.0.2.1, 198.51.100.1")], false),
        ("198.51.100.1", &[("x-forwarded-for", "192.0.2.1")], false),
        ("10.0.0.1", &[("x-forwarded-for", "192.0.2.1, unknown")], false),
        ("10.0.0.1", &[("x-forwarded-for", "198.51.100.1"), ("forwarded", "for=192.0.2.1")], false),
        ("10.0.0.1", &[], false),
        ("192.0.2.1", &[("x-forwarded-for", "198.51.100.1")], true),
    ] {
        let mut request = get("/drafts/x", GPTBOT);
        for (name, line) in lines {
            request.headers_mut().append(*name, line.parse().expect("a value"));
        }
        request.extensions_mut().insert::<std::net::IpAddr>(peer.parse().expect("an address"));
        let status = if is_exempt { StatusCode::OK } else { StatusCode::FORBIDDEN };
        assert_eq!(ask(layer.clone(), request).await.status(), status, "{peer} {lines:?}");
    }
}

#[tokio::test]
async fn a_new_registry_applies_to_the_next_request() {
    const HOUSE_BOT: &str = "HouseBot/1.0 (+https://house.test/bot)";
    let live = live_by("User-agent: *\nDisallow: /\n", Policy::builder().mode(Mode::Refuse));
    let layer = RobotsLayer::new(live.clone());
    assert_eq!(ask(layer.clone(), get("/x", HOUSE_BOT)).await.status(), StatusCode::FORBIDDEN);
    let extra = crate::agent::Crawler::new("HouseBot", crate::agent::Category::Infrastructure);
    let registry = crate::agent::Registry::builtin().extended_with([extra]).expect("a registry");
    live.set_registry(Arc::new(registry));
    assert_eq!(ask(layer.clone(), get("/x", HOUSE_BOT)).await.status(), StatusCode::OK);
    assert_eq!(ask(layer, get("/x", GPTBOT)).await.status(), StatusCode::FORBIDDEN);
}
