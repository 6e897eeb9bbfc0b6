//! Tests `[site.rate]`, which limits crawlers that exceed their crawl delay, at the proxy and at
//! the decision endpoint.

use crate::harness::*;

const ROBOTS: &str = "User-agent: GPTBot\nCrawl-delay: 30\nDisallow: /drafts/\n";

fn start(listener: &str, site: &str) -> (Folder, Running) {
    let site = format!("root = \"root\"\nrobots.path = \"robots.txt\"\n{site}");
    let config = Config::refusing().listener(listener).admin_socket().site("shop", site).robots(ROBOTS);
    config.file("root/a.html", "a").file("root/a.css", "a").start()
}

/// Sends this many requests, and returns the statuses.
fn statuses(count: usize, ask: impl Fn() -> Answer) -> Vec<u16> {
    (0..count).map(|_| ask().status).collect()
}

#[test]
fn the_proxy_returns_429_to_a_crawler_that_exceeds_its_crawl_delay() {
    let (folder, running) = start("", "[site.rate]\nmode = \"refuse\"\nburst = 2\n");
    let ask = || running.get("/a.html", GPTBOT);
    assert_eq!(statuses(4, ask), [200, 200, 429, 429]);
    let answer = ask();
    let retry_after: u64 = answer.field("retry-after").unwrap().parse().unwrap();
    assert!((1..=33).contains(&retry_after), "{retry_after}");
    assert_eq!(answer.field("ratelimit-policy"), Some("\"crawl\";q=1;w=30"));
    assert!(answer.field("ratelimit").unwrap().starts_with("\"crawl\";r=0;t="), "{answer:?}");
    assert_eq!(answer.field("cache-control"), Some("no-store"));
    assert_has(&answer.body, &["Crawl-delay: 30        (line 2)"]);
    // All other clients and requests must pass.
    for (path, agent) in [("/a.html", FIREFOX), ("/robots.txt", GPTBOT), ("/a.css", GPTBOT)] {
        assert_eq!(running.get(path, agent).status, 200, "{path} {agent}");
    }
    assert_eq!(running.get("/drafts/x", GPTBOT).status, 403);
    let line = running.wait_for_event("limited", |line| line["status"] == 429);
    assert_eq!((&line["decision"], &line["reason"], &line["line"]), (&"allow".into(), &"limited".into(), &2.into()));
    assert_eq!((&line["group"], &line["path"]), (&"GPTBot".into(), &"/a.html".into()));
    // A reload of the file must not allow a new burst. Without the delay, the crawler passes.
    folder.replace("robots.txt", format!("# moved\n{ROBOTS}"));
    running.wait_for_event("published", |line| line["reason"] != "start");
    assert_eq!(ask().status, 429);
    folder.replace("robots.txt", "User-agent: GPTBot\nDisallow: /drafts/\n");
    wait_until("a file without the delay", || ask().status == 200);
    assert_has(folder.with_config(&["status"]).out, &[" limited"]);
}

#[test]
fn an_observed_request_over_the_limit_is_logged_and_passes() {
    let site = "[site.rate]\nmode = \"refuse\"\nburst = 1\n[site.modes]\n\"agent:GPTBot\" = { rate = \"observe\" }\n";
    let (_folder, running) = start("", site);
    assert_eq!(statuses(3, || running.get("/a.html", GPTBOT)), [200; 3]);
    running.wait_for_event("limit-observed", |line| line["reason"] == "limit-observed" && line["line"] == 2);
    assert_eq!(running.count("limited", |_| true), 0);
}

#[test]
fn traefik_gets_the_429_directly_and_nginx_fetches_it_from_the_refusal_endpoint() {
    let (_folder, running) = start("kind = \"decision\"", "[site.rate]\nmode = \"refuse\"\nburst = 2\n");
    let ask = |path: &str, address: &str| {
        let original = [("X-Original-URI", "/a.html"), ("X-Original-Method", "GET"), ("User-Agent", GPTBOT)];
        running.request("GET", path, &[&original[..], &[("X-Real-IP", address)]].concat())
    };
    let nginx = || ask("/-/auth/nginx", "192.0.2.1");
    assert_eq!(statuses(3, nginx), [200, 200, 403]);
    let refusal = ask("/-/refusal/nginx", "192.0.2.1");
    assert_eq!(refusal.status, 429);
    assert!(refusal.field("retry-after").is_some() && refusal.body.contains("Crawl-delay: 30"), "{refusal:?}");
    // Another address has a bucket of its own.
    assert_eq!(ask("/-/auth/nginx", "192.0.2.2").status, 200);
    let traefik = || {
        let original =
            [("X-Forwarded-Uri", "/a.html"), ("X-Forwarded-Method", "GET"), ("X-Forwarded-Host", "a.example")];
        running.request(
            "GET",
            "/-/auth/traefik",
            &[&original[..], &[("User-Agent", GPTBOT), ("X-Forwarded-For", "192.0.2.3")]].concat(),
        )
    };
    assert_eq!(statuses(3, traefik), [200, 200, 429]);
}

#[test]
fn the_access_log_contains_the_line_number_of_the_exceeded_crawl_delay() {
    let (_folder, running) = start("", "[site.rate]\nmode = \"refuse\"\nburst = 1\n[log]\naccess = \"json\"\n");
    assert_eq!(statuses(2, || running.get("/a.html", GPTBOT)), [200, 429]);
    let line = running.wait_for_event("request", |line| line["status"] == 429);
    assert_eq!((&line["line"], &line["group"]), (&2.into(), &"GPTBot".into()));
}

#[test]
fn a_new_config_gives_no_client_a_new_burst() {
    let (folder, running) = start("", "[site.rate]\nmode = \"refuse\"\nburst = 50\n");
    let passed = || statuses(60, || running.get("/a.html", GPTBOT)).into_iter().filter(|status| *status == 200).count();
    assert!(passed() >= 50);
    let mut config = folder.read("robotsd.toml");
    // A site whose source or `max_age` has changed is opened again; a site whose policy has changed
    // is not.
    let changes = [
        ("robots.path = \"robots.txt\"", "robots.path = \"robots.txt\"\nrobots.max_age = \"2h\""),
        ("robots.path = \"robots.txt\"", "robots.path = \"./robots.txt\""),
        ("mode = \"refuse\"\n[[listener]]", "mode = \"refuse\"\nexempt.cookies = [\"x\"]\n[[listener]]"),
        ("burst = 50", "burst = 40"),
    ];
    for (number, (from, to)) in changes.into_iter().enumerate() {
        assert_has(&config, &[from]);
        config = config.replacen(from, to, 1);
        folder.configure(&config);
        wait_until("the config", || running.count("config", |_| true) > number);
        // Only one request in 30 s may pass, however slow the machine is.
        assert!(passed() < 20, "{to}");
    }
}
