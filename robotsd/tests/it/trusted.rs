//! Tests robotsd behind other proxies: trusted peers, and their effect on upstreams, rules and the
//! log.

use crate::harness::*;

const ROBOTS: &str = "User-agent: GPTBot\nDisallow: /drafts/\n";

fn proxy(origin: &Origin, listener: &str) -> (Folder, Running) {
    let config = Config::refusing().listener(listener).upstream("shop", origin).robots(ROBOTS);
    let exempt = "[exempt]\ncidrs = [\"192.0.2.0/24\"]";
    config.tables(exempt).log_requests().tables("address = \"keep\"").start()
}

/// Returns the values of a field that the upstream has received.
fn seen(answer: &Answer, name: &str) -> Vec<String> {
    let fields = answer.body.lines().filter_map(|line| line.split_once(": "));
    fields.filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned()).collect()
}

const TRUSTING: &str = "trusted_proxies = [\"127.0.0.0/8\", \"10.0.0.0/8\", \"2001:db8:1::/48\"]";

#[test]
fn client_scheme_and_host_come_from_a_trusted_proxy() {
    let origin = Origin::start();
    let (_folder, running) = proxy(&origin, TRUSTING);
    let answer = running.request(
        "GET",
        "/",
        &[
            ("X-Forwarded-For", "192.0.2.99, 2001:db8:2::7"),
            ("X-Forwarded-For", "2001:db8:1::8, 10.1.1.1"),
            ("X-Forwarded-Proto", "https"),
            ("X-Forwarded-Host", "shop.test:8443"),
            ("X-Request-Id", "from-the-edge.1"),
            ("Forwarded", "for=6.6.6.6;proto=http"),
            ("X-Forwarded-Port", "1"),
            ("X-Real-IP", "6.6.6.6"),
            ("CF-Connecting-IP", "192.0.2.99"),
            ("True-Client-IP", "192.0.2.99"),
            ("True_Client_IP", "6.6.6.6"),
            ("Proxy", "http://6.6.6.6/"),
        ],
    );
    assert_eq!(answer.field("x-request-id"), Some("from-the-edge.1"));
    for (name, lines) in [
        ("x-forwarded-for", &["2001:db8:2::7, 2001:db8:1::8, 10.1.1.1, 127.0.0.1"][..]),
        ("x-forwarded-proto", &["https"]),
        ("x-forwarded-host", &["shop.test:8443"]),
        ("host", &["site.test"]),
        ("x-request-id", &["from-the-edge.1"]),
        ("forwarded", &[]),
        ("x-forwarded-port", &[]),
        ("x-real-ip", &[]),
        ("cf-connecting-ip", &["192.0.2.99"]),
        ("true-client-ip", &["192.0.2.99"]),
        ("true_client_ip", &[]),
        ("proxy", &[]),
    ] {
        assert_eq!(seen(&answer, name), lines, "{name}: {}", answer.body);
    }
    let answer = running.request("GET", "/", &[("Forwarded", "for=\"[2001:db8:2::7]:80\";proto=https;host=a.test")]);
    assert_eq!(seen(&answer, "x-forwarded-for"), ["2001:db8:2::7, 127.0.0.1"]);
    assert_eq!(seen(&answer, "x-forwarded-proto"), ["https"]);
    assert_eq!(seen(&answer, "x-forwarded-host"), ["a.test"]);
}

#[test]
fn exempt_networks_and_the_log_use_the_client_address_from_a_trusted_proxy() {
    let origin = Origin::start();
    let (_folder, running) = proxy(&origin, TRUSTING);
    for (number, (fields, status, address)) in [
        (&[("X-Forwarded-For", "192.0.2.7")][..], 200, "192.0.2.7"),
        (&[("X-Forwarded-For", "10.0.0.1, 192.0.2.7, 10.0.0.2")], 200, "192.0.2.7"),
        (&[("Forwarded", "for=192.0.2.7")], 200, "192.0.2.7"),
        (&[("X-Forwarded-For", "198.51.100.1")], 403, "198.51.100.1"),
        // The address on the left was sent by the client. The address on the right is the client's
        // real address.
        (&[("X-Forwarded-For", "192.0.2.7, 198.51.100.2")], 403, "198.51.100.2"),
        (&[("X-Forwarded-For", "192.0.2.7"), ("X-Forwarded-For", "198.51.100.3, 10.0.0.1")], 403, "198.51.100.3"),
        (&[("X-Forwarded-For", "198.51.100.4"), ("Forwarded", "for=192.0.2.7")], 403, "198.51.100.4"),
        (&[("X-Forwarded-For", "198.51.100.5"), ("X_Forwarded_For", "192.0.2.7")], 403, "198.51.100.5"),
        (&[("X-Forwarded-For", "198.51.100.6"), ("X-Real-IP", "192.0.2.7")], 403, "198.51.100.6"),
        (&[("X-Forwarded-For", "198.51.100.7"), ("Connection", "X-Forwarded-For")], 403, "198.51.100.7"),
        (&[("Forwarded", "for=\"192.0.2.7, for=198.51.100.8")], 403, "198.51.100.8"),
        (&[("Forwarded", "for=192.0.2.7;host=\", for=198.51.100.9;host=\"a\"")], 403, "198.51.100.9"),
        // A field that cannot be parsed is ignored.
        (&[("X-Forwarded-For", "192.0.2.7, unknown")], 403, "127.0.0.1"),
        (&[("X-Forwarded-For", "192.0.2.7; x")], 403, "127.0.0.1"),
        (&[("X_Forwarded_For", "192.0.2.7")], 403, "127.0.0.1"),
    ]
    .into_iter()
    .enumerate()
    {
        let id = format!("number-{number}");
        let given = [("User-Agent", GPTBOT), ("X-Request-Id", &id)];
        let answer = running.request("GET", "/drafts/x", &[&given[..], fields].concat());
        assert_eq!(answer.status, status, "{fields:?}");
        for name in if status == 403 { &["refused", "request"][..] } else { &["request"] } {
            let event = running.wait_for_event(name, |line| line["request_id"] == id.as_str());
            assert_eq!(event["address"], address, "{fields:?}");
        }
    }
}

#[test]
fn forwarded_fields_of_untrusted_clients_are_ignored() {
    let origin = Origin::start();
    let (_folder, running) =
        proxy(&origin, "trusted_proxies = [\"10.0.0.0/8\"]\nagent_header = \"X-Original-User-Agent\"");
    let forged = [
        ("User-Agent", GPTBOT),
        ("X-Forwarded-For", "192.0.2.7"),
        ("Forwarded", "for=192.0.2.7;proto=https;host=evil.test"),
        ("X-Forwarded-Proto", "https"),
        ("X-Forwarded-Host", "evil.test"),
        ("X-Request-Id", "forged"),
        ("X-Original-User-Agent", FIREFOX),
        ("X_Original_User_Agent", FIREFOX),
        ("CF-Connecting-IP", "192.0.2.7"),
        ("True-Client-IP", "192.0.2.7"),
        ("Proxy", "http://evil.test/"),
        ("X_Forwarded_Proto", "https"),
    ];
    let answer = running.request("GET", "/drafts/x", &forged);
    assert_eq!(answer.status, 403);
    let event = running.event("refused");
    assert_eq!(event["address"], "127.0.0.1");
    assert_ne!(event["request_id"], "forged");
    let answer = running.request("GET", "/", &forged);
    for (name, lines) in [
        ("x-forwarded-for", &["127.0.0.1"][..]),
        ("x-forwarded-proto", &["http"]),
        ("x-forwarded-host", &["site.test"]),
    ] {
        assert_eq!(seen(&answer, name), lines, "{name}");
    }
    for gone in ["forged", "evil", "192.0.2.7", "Firefox"] {
        assert!(!answer.body.contains(gone), "{}", answer.body);
    }
}

#[test]
fn the_user_agent_comes_from_the_field_of_a_trusted_proxy() {
    let origin = Origin::start();
    let listener = format!("{TRUSTING}\nagent_header = \"X-Original-User-Agent\"");
    let (_folder, running) = proxy(&origin, &listener);
    for (fields, status) in [
        (&[("User-Agent", "Amazon CloudFront"), ("X-Original-User-Agent", GPTBOT)][..], 403),
        (&[("User-Agent", GPTBOT), ("X-Original-User-Agent", FIREFOX)], 200),
        // Without that field, only the `User-Agent` decides.
        (&[("User-Agent", GPTBOT)], 403),
        (&[("User-Agent", GPTBOT), ("X_Original_User_Agent", FIREFOX)], 403),
        (&[("X-Original-User-Agent", FIREFOX), ("X-Original-User-Agent", GPTBOT)], 403),
    ] {
        assert_eq!(running.request("GET", "/drafts/x", fields).status, status, "{fields:?}");
    }
    running.wait_for_event("request", |line| line["status"] == 200 && line["user_agent"] == FIREFOX);
    let answer = running.request("GET", "/", &[("User-Agent", "CDN"), ("X-Original-User-Agent", FIREFOX)]);
    assert_eq!(seen(&answer, "x-original-user-agent"), [FIREFOX]);
    assert_eq!(seen(&answer, "user-agent"), ["CDN"]);
}
