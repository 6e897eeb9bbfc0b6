//! Sends requests that shipped files treat specially: for the site's own robots.txt, with unusual
//! targets and fields, and after the server has changed the URL.

use super::scene::ROBOTS;
use super::server::Stage;
use super::site::OWN_ROBOTS_TXT;
use super::with_each;
use crate::harness::*;

/// For a host without a `[[site]]`, and while robotsd is down, crawlers get the site's own
/// robots.txt. If the site has a problem, the response must not look like an empty or missing file.
#[test]
fn the_sites_own_robots_txt_keeps_its_status_if_robotsd_does_not_serve_the_host() {
    with_each(|server, program| {
        if server.name == "ingress-nginx" {
            return;
        }
        let named = |text: String| text.replace("hosts       = []", "hosts = [\"site.test\"]");
        let mut stage = Stage::set_as_shipped(server, program, &named);
        let check = |stage: &Stage, host: &str| {
            for status in [200, 301, 404, 503] {
                let target = format!("/robots.txt?status={status}");
                let file = stage.ask_host_from([127, 0, 0, 1], host, target.as_bytes(), &[]);
                assert_eq!((file.status, &*file.body), (status, OWN_ROBOTS_TXT), "{}: {host}", server.name);
            }
        };
        check(&stage, "other.test");
        stage.robotsd.kill();
        check(&stage, "site.test");
    });
}

/// A server may resolve dot segments to select a backend, and then forward the target unchanged.
#[test]
fn a_client_cannot_send_its_own_decision_requests() {
    with_each(|server, program| {
        let stage = Stage::set(server, program, "", &|text| text);
        let refused = |target: &str| {
            wait_for("a refusal", || {
                let answer = stage.ask("GET", target.as_bytes(), &[("User-Agent", GPTBOT.as_bytes())], "");
                (answer.status == 403).then_some(())
            });
        };
        // At first, a server may not know yet that robotsd is available.
        refused("/drafts/x");
        let fields = [
            ("X-Forwarded-Uri", "/drafts/forged"),
            ("X-Forwarded-Method", "GET"),
            ("X-Forwarded-Host", "site.test"),
            ("X-Original-URI", "/drafts/forged"),
            ("X-Original-URL", "http://site.test/drafts/forged"),
            ("X-Original-Method", "GET"),
            ("User-Agent", GPTBOT),
        ];
        let fields = fields.map(|(name, value)| format!("{name}: {value}\r\n")).concat();
        for preset in ["nginx", "caddy", "ingress-nginx", "envoy/drafts/forged"] {
            for endpoint in ["/-/auth/", "/-/site/site/auth/"] {
                let path = format!("{endpoint}{preset}");
                for up in ["/..", "/%2e%2e", "%2f.."] {
                    let target = format!("{path}{}/robots.txt", up.repeat(path.matches('/').count()));
                    let head = format!("GET {target} HTTP/1.1\r\nHost: site.test\r\n{fields}Connection: close\r\n\r\n");
                    stage.offer(head.as_bytes());
                }
            }
        }
        refused("/drafts/end");
        // ingress-nginx sends whole URLs.
        let is_at = |line: &Value, path: &str| {
            line["path"].as_str().is_some_and(|at| at.trim_start_matches("http://site.test").starts_with(path))
        };
        stage.robotsd.wait_for_event("refused", |line| is_at(line, "/drafts/end"));
        assert!(!stage.robotsd.has_event("refused", |line| is_at(line, "/drafts/forged")), "{}", server.name);
    });
}

#[test]
fn caddy_asks_robotsd_about_the_url_before_a_rewrite() {
    with_each(|server, program| {
        if !server.name.starts_with("Caddy") {
            return;
        }
        let rewriting = |text: String| text.replace("\troute {\n", "\trewrite * /index.html\n\troute {\n");
        let stage = Stage::set(server, program, "", &rewriting);
        let get =
            |target: &str, agent: &str| stage.ask("GET", target.as_bytes(), &[("User-Agent", agent.as_bytes())], "");
        assert_eq!(get("/drafts/x", GPTBOT).status, 403, "{}", server.name);
        assert_has(&get("/robots.txt", GPTBOT).body, &[ROBOTS]);
        assert_has(&get("/drafts/x", FIREFOX).body, &["GET /index.html "]);
    });
}

#[test]
fn haproxy_asks_robotsd_about_requests_with_a_control_byte_or_the_target_asterisk() {
    with_each(|server, program| {
        if !server.name.starts_with("HAProxy") {
            return;
        }
        let stage = Stage::set(server, program, "\n[log]\naccess = \"json\"\n", &|text| text);
        let ask = |method: &str, target: &str, agent: &str, cookie: &[u8]| {
            let fields = [("User-Agent", agent.as_bytes()), ("Cookie", cookie)];
            stage.ask(method, target.as_bytes(), &fields, "").status
        };
        // At first, HAProxy may not know yet that robotsd is available.
        wait_for("a refusal", || (ask("GET", "/drafts/x", GPTBOT, b"") == 403).then_some(()));
        assert_eq!(ask("GET", "/drafts/x", FIREFOX, b"a=\x01b"), 200, "{}", server.name);
        assert_eq!(ask("OPTIONS", "*", GPTBOT, b""), 200, "{}", server.name);
        stage.robotsd.wait_for_event("request", |line| line["method"] == "OPTIONS" && line["path"] == "*");
        assert!(!stage.robotsd.has_event("undecided", |_| true), "{}", server.name);
    });
}

#[test]
fn varnish_does_not_ask_robotsd_about_esi_fragments_of_a_page() {
    with_each(|server, program| {
        if server.name != "Varnish" {
            return;
        }
        let with_esi = "sub vcl_backend_response {\n    set beresp.do_esi = true;\n}\n\nsub vcl_deliver {";
        let stage = Stage::set(server, program, "", &|text| text.replace("sub vcl_deliver {", with_esi));
        let get = |target: &str, agent: &str, fields: &[(&str, &[u8])]| {
            let agent = [("User-Agent", agent.as_bytes())];
            stage.ask("GET", target.as_bytes(), &[&agent[..], fields].concat(), "")
        };
        // At first, Varnish may not know yet that robotsd is available.
        wait_for("a refusal", || (get("/drafts/x", GPTBOT, &[]).status == 403).then_some(()));
        let page = get("/page-with-a-fragment", GPTBOT, &[("Robots-Verdict", b"forged")]).body;
        assert!(page.contains("GET /drafts/fragment ") && !page.contains("obots-Verdict"), "{page}");
        let tagged = get("/drafts/page-with-a-fragment", GOOGLEBOT, &[]).body;
        assert_has(&tagged, &["GET /drafts/fragment ", "obots-Verdict: disallow;agent=\"Googlebot\""]);
        assert_eq!(get("/drafts/fragment", GPTBOT, &[]).status, 403);
        // The address that a proxy in front of Varnish has set.
        assert_has(&get("/x", FIREFOX, &[("X-Real-IP", b"192.0.2.9")]).body, &["192.0.2.9"]);
    });
}
