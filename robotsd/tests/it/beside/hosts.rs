//! Sends requests through real servers, with hosts and URLs that a client can choose. No such host
//! or URL may bypass a rule, or prevent a browser from getting its page. Also tests several sites
//! behind one server.

use super::super::decision_hosts;
use super::scene::ROBOTS;
use super::server::{SERVERS, Stage};
use super::site::OWN_ROBOTS_TXT;
use super::with_each;
use crate::harness::*;

/// Returns the interval of the generated hosts that are tried: 32 means every 32nd host.
fn every() -> usize {
    if is_long() { 32 } else { 251 }
}

#[test]
fn no_host_or_url_bypasses_a_rule_through_real_servers() {
    let named = r"h.test:? h.test:# h.test:80?x h.test:80@x h.test:@ h.test:80\ h.test:,x h.test:99999 [h.test]"
        .split_whitespace();
    let hosts: Vec<_> = decision_hosts::hosts().into_iter().step_by(every()).chain(named.map(str::to_owned)).collect();
    let heads: Vec<_> = hosts
        .iter()
        .map(|host| format!("GET /drafts/x HTTP/1.1\r\nHost: {host}\r\n"))
        .chain(hosts.iter().zip(["http", "ftp", "HTTPS", "x"].iter().cycle()).map(|(host, scheme)| {
            let host = host.replace(['/', ' '], "");
            format!("GET {scheme}://{host}/drafts/x HTTP/1.1\r\nHost: h.test\r\n")
        }))
        .chain(["GET drafts/x HTTP/1.1\r\nHost: h.test\r\n".to_owned(), "GET /drafts/x HTTP/1.0\r\n".to_owned()])
        .chain(["/x#", "/robots.txt#", "/.well-known/#/.."].map(|start| {
            // nginx and Varnish forward the `#`, and the site may remove the dot segments.
            format!("GET {start}/../drafts/x HTTP/1.1\r\nHost: h.test\r\n")
        }))
        .collect();
    let faults = with_each(|server, program| {
        let named = |text: String| text.replace("hosts       = []", "hosts = [\"h.test\"]");
        let stage = Stage::set(server, program, "", &named);
        let faults = heads.iter().filter_map(|head| fault(&stage, head));
        faults.map(|fault| format!("{}: {fault}\n", server.name)).collect::<String>()
    });
    println!("{} requests through {} servers, by a crawler and by a browser", heads.len(), SERVERS.len());
    assert_eq!(faults.concat(), "");
}

/// Rules of a second site.
const TWO: &str = "User-agent: GPTBot\nDisallow: /two/\n";

/// With each shipped file, the host selects the site. For an unknown host, the strictest site
/// judges the requests, and the server's own robots.txt is served.
#[test]
fn the_host_selects_the_site() {
    with_each(|server, program| {
        if server.name == "ingress-nginx" {
            return;
        }
        let two = format!("\n[[site]]\nname = \"two\"\nhosts = [\"two.test\"]\nrobots.text = {TWO:?}\n");
        // With trusted_proxies, Caddy keeps the client's X-Forwarded-Host.
        let trusting = "trusted_proxies 127.0.0.0/8\nheader_up X-Forwarded-Host";
        let named = |text: String| {
            let text = text.replace("hosts       = []", "hosts = [\"site.test\"]");
            text.replace("header_up X-Forwarded-Host", trusting)
        };
        let stage = Stage::set(server, program, &two, &named);
        let get = |host: &str, target: &str, agent: &str| {
            let fields = format!("Host: {host}\r\nUser-Agent: {agent}\r\nX-Forwarded-Host: two.test\r\n");
            stage.send(format!("GET {target} HTTP/1.1\r\n{fields}Connection: close\r\n\r\n").as_bytes())
        };
        // At first, a server may not know yet that robotsd is available.
        let comes_to = |host: &str, target: &str, is_right: &dyn Fn(&Answer) -> bool| {
            wait_for(&format!("{}: the answer for {host}{target}", server.name), || {
                Some(get(host, target, GPTBOT)).filter(is_right)
            })
        };
        for (host, target, rule) in [
            ("site.test", "/drafts/x", "Disallow: /drafts/ "),
            ("two.test", "/two/x", "Disallow: /two/ "),
            ("TWO.test:8080", "/two/x", "Disallow: /two/ "),
        ] {
            comes_to(host, target, &|answer| answer.status == 403 && answer.body.contains(rule));
            assert_eq!(get(host, target, FIREFOX).status, 200, "{}: {host}{target}", server.name);
        }
        for (host, own) in [("site.test", ROBOTS), ("two.test", TWO), ("two.test:80", TWO)] {
            comes_to(host, "/robots.txt", &|answer| answer.status == 200 && answer.body.contains(own));
        }
        for host in ["other.test", "www.two.test", "192.0.2.1:8080"] {
            let file = get(host, "/robots.txt", GPTBOT);
            assert_eq!((file.status, &*file.body), (200, OWN_ROBOTS_TXT), "{}: {host}", server.name);
        }
        for target in ["/drafts/x", "/two/x"] {
            assert_eq!(get("other.test", target, GPTBOT).status, 403, "{}: {target}", server.name);
            assert_eq!(get("other.test", target, FIREFOX).status, 200, "{}: {target}", server.name);
        }
        for (host, target) in [("site.test", "/two/x"), ("two.test", "/drafts/x")] {
            let page = get(host, target, GPTBOT);
            let is_sites = page.status == 200 && page.field("served-by") == Some("site");
            assert!(is_sites && !page.body.contains("obots-"), "{}: {host}{target}: {page:?}", server.name);
            assert!(page.body.starts_with(&format!("GET {target} ")), "{}: {page:?}", server.name);
        }
    });
}

/// Changes a shipped file as the handbook describes it for a server behind a CDN: the page, the text
/// to replace, and the new text. The new text is on the page.
const BEHIND_A_CDN: &[(&str, &str, &str, &str)] = &[
    ("nginx", "nginx", "    include nginx/robotsd-http.conf;\n", "real_ip_header CF-Connecting-IP;"),
    ("HAProxy", "haproxy", "txn.f:src()", "txn.sf:req_hdr(\"CF-Connecting-IP\")"),
    ("HAProxy, SPOE", "haproxy", "src", "req.hdr_ip(CF-Connecting-IP)"),
    (
        "Caddy 2.6",
        "caddy",
        "header_up X-Forwarded-Host",
        "header_up X-Forwarded-For {http.request.header.CF-Connecting-IP}",
    ),
    (
        "Caddy 2.11",
        "caddy",
        "header_up X-Forwarded-Host",
        "header_up X-Forwarded-For {http.request.header.CF-Connecting-IP}",
    ),
    ("Varnish", "varnish", "client.ip", "bereq.http.CF-Connecting-IP"),
];

#[test]
fn behind_a_cdn_robotsd_gets_the_address_of_the_client() {
    with_each(|server, program| {
        let Some((_, page, shipped, adapted)) = BEHIND_A_CDN.iter().find(|row| row.0 == server.name) else { return };
        let page = fs::read_to_string(project(&format!("docs/src/howto/{page}.md"))).unwrap();
        assert_has(&page, &[adapted]);
        let adapt = |text: String| match server.name {
            "nginx" => {
                let lines = format!("set_real_ip_from 127.0.0.0/8;\n{adapted}\n{shipped}");
                assert_has(&page, &["\nset_real_ip_from "]);
                text.replace(shipped, &lines)
            }
            "HAProxy, SPOE" => {
                let text = text.replace("address=src ", &format!("address={adapted} "));
                text.replace("%[src]", &format!("%[{adapted}]"))
            }
            name if name.starts_with("Caddy") => text.replace(shipped, &format!("{adapted}\n{shipped}")),
            _ => text.replace(shipped, adapted),
        };
        let stage = Stage::set(server, program, "", &adapt);
        let get = |fields: &[(&str, &[u8])]| {
            let fields = [&[("User-Agent", GPTBOT.as_bytes())], fields].concat();
            stage.ask_from([127, 0, 0, 2], b"/drafts/x", &fields).status
        };
        // At first, a server may not know yet that robotsd is available. The address of the CDN is
        // exempt, but the address of this client behind the CDN is not.
        wait_for("a refusal", || (get(&[("CF-Connecting-IP", b"192.0.2.9")]) == 403).then_some(()));
        for field in ["X-Forwarded-For", "X-Real-IP"] {
            let claimed = [("CF-Connecting-IP", &b"192.0.2.9"[..]), (field, b"127.0.0.2")];
            assert_eq!(get(&claimed), 403, "{}", server.name);
        }
        assert_eq!(get(&[("CF-Connecting-IP", b"127.0.0.2")]), 200, "{}", server.name);
    });
}

/// Returns what is wrong with the responses to a request, if anything. At first, a server may not
/// know yet that robotsd is available, and may let requests pass, so the request is repeated. A
/// real error does not go away.
fn fault(stage: &Stage, head: &str) -> Option<String> {
    let is_wrong = |agent: &str, wrong: &dyn Fn(&Answer) -> bool| {
        let request = format!("{head}User-Agent: {agent}\r\nConnection: close\r\n\r\n");
        (0..10).all(|before| {
            thread::sleep(Duration::from_millis(100 * before));
            stage.offer(request.as_bytes()).is_some_and(|answer| wrong(&answer))
        })
    };
    if is_wrong(GPTBOT, &serves_the_page) {
        return Some(format!("a crawler gets the page: {head:?}"));
    }
    // A server's own refusal usually has status 400. Without TLS, Envoy responds with 403.
    let is_own = |answer: &Answer| head.contains("HTTPS://") && answer.field("vary").is_none();
    is_wrong(FIREFOX, &|answer| answer.status == 403 && !is_own(answer))
        .then(|| format!("a browser is refused: {head:?}"))
}

/// Reports whether the site received a request for the page. The site's response contains the
/// received request. A request for `/` with a query does not count.
fn serves_the_page(answer: &Answer) -> bool {
    let target = answer.body.split(' ').nth(1).unwrap_or_default();
    answer.field("served-by") == Some("site") && target.split('?').next().is_some_and(|path| path.contains("drafts"))
}
