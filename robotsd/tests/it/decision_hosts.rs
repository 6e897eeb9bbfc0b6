//! Sends decision requests of every preset with hosts and URLs that clients may send. No such host
//! or URL may bypass a rule, or prevent a browser from getting its page.

use crate::harness::*;

/// Every delimiter of RFC 3986, and other characters that parsers of URLs and hosts may treat as
/// delimiters.
const DELIMITERS: &str = ":/?#[]@!$&'()*+,;=\\%\"<>^`{|}~_. \u{e9}";

/// Returns values of `Host`: hosts with and without port, user information and brackets, with every
/// delimiter at every kind of position.
pub(super) fn hosts() -> Vec<String> {
    let mut hosts = vec![String::new(), "h.test".to_owned(), "H.TEST.".to_owned()];
    for base in
        ["h.test", "h.test:80", "u@h.test", "h.test:80@x", "[h.test]", "[::1]:80", "h.test:80x", "other.test", "x"]
    {
        let ends = base.char_indices().filter(|(_, char)| !char.is_alphanumeric()).flat_map(|(at, _)| [at, at + 1]);
        let mut places: Vec<_> = [0, 1, base.len()].into_iter().chain(ends).collect();
        places.sort_unstable();
        places.dedup();
        for delimiter in DELIMITERS.chars() {
            for at in &places {
                let (before, behind) = base.split_at(*at);
                hosts.push(format!("{before}{delimiter}{behind}"));
            }
            hosts.push(format!("{base}{delimiter}x"));
            hosts.push(format!("{base}:{delimiter}{delimiter}"));
        }
    }
    // A field value cannot begin or end with a space.
    hosts.retain(|host| host.trim() == host);
    hosts.sort();
    hosts.dedup();
    hosts
}

/// Reports whether a host is well-formed and different from `h.test`. The proxy may have another
/// site for such a host.
pub(super) fn is_anothers(host: &str) -> bool {
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => (name, port),
        _ => (host, ""),
    };
    let is_port = port.bytes().all(|byte| byte.is_ascii_digit()) && (port.is_empty() || port.parse::<u16>().is_ok());
    let is_address = name == "[::1]";
    let name = name.strip_suffix('.').unwrap_or(name);
    let is_label = |label: &str| {
        !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    is_port && (is_address || name.split('.').all(is_label)) && !name.eq_ignore_ascii_case("h.test")
}

/// Returns targets of requests for a disallowed page, as absolute URLs.
fn targets() -> Vec<String> {
    // A host with a slash would change the path.
    let hosts: Vec<_> = hosts().into_iter().filter(|host| !host.contains('/')).collect();
    let schemes = ["http", "HTTPS", "ftp", "gopher", "", "x+y"];
    hosts.iter().zip(schemes.iter().cycle()).map(|(host, scheme)| format!("{scheme}://{host}/private/x")).collect()
}

fn start(on_error: &str, hosts: &str) -> (Folder, Running) {
    let shop = format!("hosts = {hosts}\nrobots.text = \"User-agent: GPTBot\\nDisallow: /private/\"");
    let config = Config::deciding().listener(format!("on_error = \"{on_error}\"")).site("the shop", shop);
    config.site("open", "hosts = [\"open.test\"]\nrobots.text = \"# nothing\"").start()
}

/// Returns the decision request of a preset about a client's request, for this endpoint.
fn question(endpoint: &str, preset: &str, target: &str, host: &str, agent: &str) -> Vec<u8> {
    let below = if preset == "envoy" { target } else { "" };
    let fields = match preset {
        "envoy" => format!("Host: {host}\r\n"),
        "ingress-nginx" => {
            format!("X-Original-URL: http://{host}{target}\r\nX-Original-Method: GET\r\nHost: robotsd.internal\r\n")
        }
        "caddy" | "traefik" => format!(
            "X-Forwarded-Uri: {target}\r\nX-Forwarded-Method: GET\r\nX-Forwarded-Host: {host}\r\nHost: robotsd\r\n"
        ),
        _ => format!("X-Original-URI: {target}\r\nX-Original-Method: GET\r\nHost: {host}\r\n"),
    };
    format!("GET {endpoint}{preset}{below} HTTP/1.1\r\n{fields}User-Agent: {agent}\r\n\r\n").into_bytes()
}

/// Sends decision requests, on a few connections at a time. Returns the statuses of the responses.
fn ask(address: SocketAddr, questions: &[Vec<u8>]) -> Vec<u16> {
    let on_one = |questions: &[Vec<u8>]| {
        let mut kept = Kept::open(address, "");
        let mut statuses = Vec::with_capacity(questions.len());
        for some in questions.chunks(32) {
            kept.send(some.concat());
            statuses.extend(some.iter().map(|_| kept.receive().status));
        }
        statuses
    };
    thread::scope(|scope| {
        let parts = questions.chunks(questions.len().div_ceil(4)).map(|part| scope.spawn(move || on_one(part)));
        parts.collect::<Vec<_>>().into_iter().flat_map(|part| part.join().unwrap()).collect()
    })
}

const PRESETS: [&str; 7] = ["nginx", "haproxy", "varnish", "ingress-nginx", "caddy", "traefik", "envoy"];

#[test]
fn no_host_from_a_client_bypasses_a_rule() {
    let hosts = hosts();
    assert!(hosts.len() >= 2000, "{}", hosts.len());
    let (mut held, mut passed) = (0, 0);
    let named = "[\"h.test\"]";
    let cases = [("pass", named), ("refuse", named), ("pass", "[]"), ("refuse", "[]")].into_iter().enumerate();
    for (way, (on_error, pattern)) in cases {
        let (_folder, running) = start(on_error, pattern);
        let endpoints = PRESETS.iter().flat_map(|preset| [("/-/auth/", preset), ("/-/site/the%20shop/auth/", preset)]);
        for (number, (endpoint, preset)) in endpoints.enumerate() {
            // Together, the endpoints try all hosts with the first config, and all hosts once more
            // with the other three configs. A long run tries all hosts at every five endpoints with
            // each config.
            let (first, step) = match way {
                _ if is_long() => ((number + way) % 5, 5),
                0 => (number, 14),
                _ => (number + 14 * (way - 1), 42),
            };
            // For ingress-nginx, hosts with a slash are left out: nginx rejects them, and in the
            // URL that ingress-nginx sends, the text after the slash would be the target.
            let is_sent = |host: &&String| *preset != "ingress-nginx" || !host.contains('/');
            let hosts: Vec<_> = hosts.iter().skip(first).step_by(step).filter(is_sent).collect();
            let questions = |agent| {
                hosts.iter().map(|host| question(endpoint, preset, "/private/x", host, agent)).collect::<Vec<_>>()
            };
            // At the endpoint for all sites, another host may pass: with `hosts`, the proxy may
            // have its own site for it, and the site `open` allows the page.
            let may_pass = |host: &str| {
                let is_named = endpoint != "/-/auth/";
                !is_named && is_anothers(host) && (pattern != "[]" || host == "open.test")
            };
            for (host, status) in hosts.iter().zip(ask(running.address, &questions(GPTBOT))) {
                let want = if may_pass(host) { 200 } else { 403 };
                assert_eq!(status, want, "{endpoint}{preset} {pattern} {on_error}: {host}");
                *if status == 200 { &mut passed } else { &mut held } += 1;
            }
            for (host, status) in hosts.iter().zip(ask(running.address, &questions(FIREFOX))) {
                assert_eq!(status, 200, "a browser at {endpoint}{preset} {pattern} {on_error}: {host}");
            }
        }
    }
    println!("{} hosts: {held} questions refused, {passed} passed for hosts that are another's", hosts.len());
}

#[test]
fn no_url_from_a_client_bypasses_a_rule() {
    let targets = targets();
    assert!(targets.len() >= 2000, "{}", targets.len());
    for (on_error, pattern) in [("pass", "[\"h.test\"]"), ("refuse", "[]")] {
        let (_folder, running) = start(on_error, pattern);
        // Envoy appends the target to the path of its request, and ingress-nginx sends it in a URL.
        // Both send only paths.
        let presets = PRESETS.iter().filter(|preset| !["envoy", "ingress-nginx"].contains(preset));
        for (number, preset) in presets.enumerate() {
            // Together, the presets try all targets.
            let (first, step) = if is_long() { (0, 1) } else { (number, 5) };
            let targets: Vec<_> = targets.iter().skip(first).step_by(step).collect();
            for (agent, want) in [(GPTBOT, 403), (FIREFOX, 200)] {
                let questions: Vec<_> =
                    targets.iter().map(|target| question("/-/auth/", preset, target, "h.test", agent)).collect();
                for (target, status) in targets.iter().zip(ask(running.address, &questions)) {
                    assert_eq!(status, want, "{preset} {pattern} {on_error} {agent}: {target}");
                }
            }
        }
    }
}

#[test]
fn no_target_with_a_number_sign_bypasses_a_rule() {
    let (_folder, running) = start("pass", "[\"h.test\"]");
    // In the target of Envoy's decision request, the http crate drops the `#` and everything after
    // it.
    for preset in PRESETS.iter().filter(|preset| **preset != "envoy") {
        let status = |target: &str, agent: &str| {
            ask(running.address, &[question("/-/auth/", preset, target, "h.test", agent)])[0]
        };
        for target in "/x#/../private/x /#/../private/x /private/#/../x /robots.txt#/../private/x \
            /.well-known/#/../../private/x /x#;a/..;/private/x /x#/..%2Fprivate/x /x#//h/../../../private/x"
            .split_whitespace()
        {
            assert_eq!(status(target, GPTBOT), 403, "{preset} {target}");
            assert_eq!(status(target, FIREFOX), 200, "{preset} {target}");
        }
        assert_eq!(status("/x#/private/x", GPTBOT), 200, "{preset}");
    }
}

#[test]
fn an_unknown_host_passes_or_is_judged_by_the_strictest_site() {
    for (key, want) in [("", 200), ("unknown_host = \"pass\"", 200), ("unknown_host = \"strictest\"", 403)] {
        let site = |config: Config, (name, keys, robots): (&str, &str, &str)| {
            config.site(name, format!("hosts = [\"{name}.test\"]\n{keys}\nrobots.text = \"{robots}\""))
        };
        let sites = [
            ("open", "", "# nothing"),
            ("a", "enforcement.mode = \"observe\"", "User-agent: GPTBot\\nDisallow: /private/"),
            ("b", "", "User-agent: GPTBot\\nDisallow: /private/b"),
        ];
        let (_folder, running) = sites.into_iter().fold(Config::deciding().listener(key), site).start();
        let status =
            |host: &str, target: &str| ask(running.address, &[question("/-/auth/", "caddy", target, host, GPTBOT)])[0];
        assert_eq!(status("unknown.test", "/private/b"), want, "{key}");
        assert_eq!(status("open.test", "/private/b"), 200);
        // A value that is not a valid host may belong to any site, so the strictest site decides.
        // If no site refuses, the log names a site that disallows the request but only observes.
        assert_eq!((status("b.test:,x", "/private/b"), status("b.test:,x", "/private/a")), (403, 200), "{key}");
        running.wait_for_event("refused", |line| line["site"] == "b" && line["path"] == "/private/b");
        running.wait_for_event("observed", |line| line["site"] == "a" && line["path"] == "/private/a");
        // The two values name different sites.
        assert_eq!(status("open.test", "http://b.test/private/b"), 403, "{key}");
        assert_eq!(status("b.test", "http://open.test/private/b"), 403, "{key}");
        assert_eq!(status("open.test", "http://open.test:80/private/b"), 200, "{key}");
    }
}
