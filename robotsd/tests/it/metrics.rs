//! Tests the metrics of a running robotsd. Real parsers must be able to read both formats, and the
//! counts must be right.

use super::admin::ask;
use super::programs::{debian, openmetrics_parser};
use crate::harness::*;

const ROBOTS: &str =
    "User-agent: GPTBot\nUser-agent: Googlebot\nDisallow: /private/\n\nUser-agent: *\nDisallow: /all/\n";

const OPENMETRICS: &str = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";

/// A string that a client has invented. No part of this string may become a label.
const MADE_UP: &str = "made-up-by-a-client";

/// Starts a proxy with an upstream, both kinds of listeners, and a site whose name must be escaped.
fn start(origin: &Origin) -> (Folder, Running) {
    let site = format!("hosts = [\"site.test\"]\nupstreams = [\"http://{origin}\"]\nrobots.path = \"robots.txt\"");
    Config::refusing()
        .listener("name = \"web\"\n[[listener]]\nname = \"ask\"\naddress = \"127.0.0.1:0\"\nkind = \"decision\"")
        .site("a \"site\"", site)
        .admin()
        .robots(ROBOTS)
        .start()
}

fn scrape(admin: SocketAddr, accept: &str) -> Answer {
    let answer = ask(admin, "GET /metrics", &format!("Host: {admin}\r\nAccept: {accept}\r\n"));
    assert_eq!(answer.status, 200, "{answer:?}");
    answer
}

fn series(text: &str) -> BTreeMap<String, f64> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let parse = |line: &str| {
        let (name, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("no sample: {line}"));
        (name.to_owned(), value.parse().unwrap_or_else(|_| panic!("no value: {line}")))
    };
    lines.map(parse).collect()
}

/// Sends requests with different values of everything that a client can choose.
fn play(running: &Running) {
    for _ in 0..3 {
        assert_eq!(running.get("/private/x", GPTBOT).status, 403);
    }
    assert_eq!(running.get("/private/x", GOOGLEBOT).status, 200, "tagged");
    assert_eq!(running.get("/", GPTBOT).status, 200);
    assert_eq!(running.get("/all/x", FIREFOX).status, 200);
    assert_eq!(running.get("/.well-known/x", GPTBOT).status, 200, "exempt");
    assert_eq!(running.get("/all/x", &format!("{MADE_UP}bot/1.0 (+https://example.com/bot)")).status, 403);
    assert_eq!(running.get("/robots.txt", GPTBOT).status, 200);
    assert_eq!(running.get("/robots.txt", FIREFOX).status, 200);
    assert_eq!(running.request("POST", "/", &[("User-Agent", FIREFOX), ("Content-Length", "0")]).status, 200);
    assert_eq!(running.request("GET", "/", &[("Host", &format!("{MADE_UP}.test"))]).status, 421);
    assert_eq!(running.request("GET", "/", &[("Host", "no host at all")]).status, 400);
    // Registered methods are forwarded, and invented methods may be rejected. Neither kind of
    // method may become a label.
    running.request("PROPFIND", "/", &[("User-Agent", FIREFOX)]);
    running.request(&MADE_UP.to_ascii_uppercase(), "/", &[("User-Agent", FIREFOX)]);
    let listening = running.all("listening");
    let ask = listening[1]["message"].as_str().unwrap().rsplit('/').next().unwrap().parse().unwrap();
    let head = format!(
        "GET /-/auth/nginx HTTP/1.1\r\nHost: site.test\r\nX-Original-URI: /private/y\r\nX-Original-Method: GET\r\n\
         User-Agent: {GPTBOT}\r\nConnection: close\r\n\r\n"
    );
    assert_eq!(exchange(ask, head).status, 403);
}

#[test]
fn metrics_have_no_labels_that_a_client_chooses() {
    let origin = Origin::start();
    let (_folder, running) = start(&origin);
    play(&running);
    let text = scrape(running.admin(), "text/plain").body;
    assert!(!text.to_ascii_lowercase().contains(MADE_UP), "{text}");
    let found = series(&text);
    let site = r#"site="a \"site\"""#;
    for (name, want) in [
        (format!("robotsd_decisions_total{{{site},outcome=\"refused\"}}"), 5),
        (format!("robotsd_decisions_total{{{site},outcome=\"tagged\"}}"), 1),
        (format!("robotsd_decisions_total{{{site},outcome=\"allowed\"}}"), 1),
        (format!("robotsd_decisions_total{{{site},outcome=\"exempt\"}}"), 1),
        (format!("robotsd_decisions_total{{{site},outcome=\"observed\"}}"), 0),
        (format!("robotsd_decisions_total{{{site},outcome=\"failed\"}}"), 0),
        (crawler(site, "GPTBot", "refused"), 4),
        (crawler(site, "GPTBot", "allowed"), 1),
        (crawler(site, "GPTBot", "exempt"), 1),
        (crawler(site, "Googlebot", "tagged"), 1),
        (crawler(site, "declared", "refused"), 1),
        (format!("robotsd_robots_txt_requests_total{{{site},crawler=\"GPTBot\",code=\"200\"}}"), 1),
        (format!("robotsd_robots_txt_requests_total{{{site},crawler=\"none\",code=\"200\"}}"), 1),
        (format!("robotsd_http_requests_total{{listener=\"web\",{site},code=\"403\",method=\"GET\"}}"), 4),
        (format!("robotsd_http_requests_total{{listener=\"ask\",{site},code=\"403\",method=\"GET\"}}"), 1),
        (format!("robotsd_http_requests_total{{listener=\"web\",{site},code=\"200\",method=\"POST\"}}"), 1),
        ("robotsd_http_requests_total{listener=\"web\",site=\"\",code=\"421\",method=\"GET\"}".to_owned(), 1),
        ("robotsd_http_requests_total{listener=\"web\",site=\"\",code=\"400\",method=\"GET\"}".to_owned(), 1),
        (format!("robotsd_upstream_healthy{{{site},address=\"{origin}\"}}"), 1),
        (format!("robotsd_site_enforced{{{site}}}"), 1),
        (format!("robotsd_site_pending{{{site}}}"), 0),
        (format!("robotsd_site_state{{{site},robotsd_site_state=\"live\"}}"), 1),
        (format!("robotsd_site_state{{{site},robotsd_site_state=\"gated\"}}"), 0),
        (format!("robotsd_reloads_total{{{site},cause=\"start\",outcome=\"published\"}}"), 1),
        ("robotsd_config_last_reload_successful".to_owned(), 1),
        ("robotsd_log_lines_dropped_total{log=\"events\"}".to_owned(), 0),
        ("robotsd_metrics_series_dropped".to_owned(), 0),
    ] {
        assert_eq!(found.get(&name), Some(&f64::from(want)), "{name}\n{text}");
    }
    let sum = |family: &str| -> f64 {
        found.iter().filter(|(name, _)| name.starts_with(family)).map(|(_, value)| value).sum()
    };
    assert_eq!(sum("robotsd_http_requests_total{listener=\"web\""), 15.0, "{text}");
    assert!(sum("robotsd_upstream_requests_total") >= 5.0, "{text}");
    // For each worker and site, the first request is timed, and then every 64th request.
    for family in ["robotsd_decision_duration_seconds", "robotsd_http_request_duration_seconds"] {
        let count = found[&format!("{family}_count{{{site}}}")];
        assert!(count >= 1.0 && found[&format!("{family}_bucket{{{site},le=\"+Inf\"}}")] == count, "{text}");
    }
    for family in
        ["process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds", "process_start_time_seconds"]
    {
        assert!(found.contains_key(family), "{family}\n{text}");
    }
}

fn crawler(site: &str, crawler: &str, outcome: &str) -> String {
    let identity = if crawler == "declared" { "unclaimed" } else { "claimed" };
    let labels = format!("{site},crawler=\"{crawler}\",outcome=\"{outcome}\",identity=\"{identity}\"");
    format!("robotsd_crawler_requests_total{{{labels}}}")
}

#[test]
fn every_metric_family_and_label_is_in_the_handbook() {
    const PAGE: &str = include_str!("../../../docs/src/reference/metrics.md");
    let origin = Origin::start();
    let (_folder, running) = start(&origin);
    play(&running);
    let text = scrape(running.admin(), "text/plain").body;
    let families = text.lines().filter_map(|line| line.strip_prefix("# TYPE robotsd_")?.split(' ').next());
    let missing: Vec<_> = families.filter(|family| !PAGE.contains(&format!("`{family}`"))).collect();
    assert_eq!(missing, Vec::<&str>::new());
    for series in text.lines().filter_map(|line| line.strip_prefix("robotsd_")) {
        let Some((name, labels)) = series.split_once('{') else { continue };
        let ends = ["_bucket", "_sum", "_count"];
        let family = ends.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
        let is_row = |row: &&str| row.starts_with("| ") && row.contains(&format!("`{family}`"));
        let row = PAGE.lines().find(is_row).unwrap_or_else(|| panic!("no row of {family}"));
        // In `site="a",outcome="b"} 1`, each part except the last ends with the name of a label.
        let parts: Vec<_> = labels.split("=\"").collect();
        for label in parts[..parts.len() - 1].iter().filter_map(|part| part.rsplit(',').next()) {
            assert!(label == "le" || row.contains(&format!("`{label}`")), "{family}: {label}: {row}");
        }
    }
}

#[test]
fn user_agent_lookups_are_counted_as_cache_hits_or_misses() {
    let site = "root = \".\"\nrobots.text = \"User-agent: GPTBot\\nDisallow: /private/\"";
    let config = Config::new().keys("workers = 2").site("shop", site).admin();
    lookups_are_counted_once(&config);
    // If requests may wait for evidence, two layers look up the agent. It must be counted once.
    lookups_are_counted_once(&config.tables("[identity]\nresolvers = [\"127.0.0.1:9\"]\nwait = \"50ms\""));
}

fn lookups_are_counted_once(config: &Config) {
    let (_folder, running) = config.start();
    let lookups = || {
        let found = series(&scrape(running.admin(), "text/plain").body);
        ["hit", "miss"].map(|result| found[&format!("robotsd_agent_cache_lookups_total{{result=\"{result}\"}}")])
    };
    assert_eq!(lookups(), [0.0, 0.0]);
    for _ in 0..5 {
        running.get("/private/x", GPTBOT);
    }
    running.get("/", FIREFOX);
    // Both workers use the cache of the same version.
    assert_eq!(lookups(), [4.0, 2.0]);
    let long = "x".repeat(600);
    running.get("/", &long);
    running.get("/", &long);
    assert_eq!(lookups(), [4.0, 4.0], "long ones are not kept");
}

#[test]
fn upstream_connections_are_counted_as_active_idle_or_tunnel() {
    let upstream = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = upstream.local_addr().unwrap();
    let site = format!("upstreams = [\"http://{address}\"]\nrobots.text = \"# nothing restricted\"");
    let limits = "[limits]\nupstream_idle_time = \"5m\"\nresponse = \"5m\"";
    let (_folder, running) = Config::new().site("shop", site).admin().tables(limits).start();
    let found = || {
        let found = series(&scrape(running.admin(), "text/plain").body);
        ["active", "idle", "tunnel"].map(|state| {
            let labels = format!("site=\"shop\",address=\"{address}\",state=\"{state}\"");
            found[&format!("robotsd_upstream_connections{{{labels}}}")]
        })
    };
    let are = |active: u32, idle: u32, tunnel: u32| {
        let want = [active, idle, tunnel].map(f64::from);
        wait_until(&format!("{want:?}"), || found() == want);
    };
    are(0, 0, 0);
    let ask = |fields: &str| sent(running.address, format!("GET / HTTP/1.1\r\nHost: site.test\r\n{fields}\r\n"));
    let read_head = |upstream: &mut TcpStream| {
        upstream.set_read_timeout(Some(PATIENCE)).unwrap();
        assert!(head(&mut BufReader::with_capacity(1, upstream)).ends_with(b"\r\n\r\n"));
    };
    let _first = ask("");
    let (mut kept, _) = upstream.accept().unwrap();
    read_head(&mut kept);
    are(1, 0, 0);
    kept.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").unwrap();
    are(0, 1, 0);
    let second = ask("Connection: upgrade\r\nUpgrade: websocket\r\n");
    // The request may arrive on the kept connection or on a new one.
    upstream.set_nonblocking(true).unwrap();
    let mut tunnel = wait_for("the request for a tunnel", || {
        if let Ok((new, _)) = upstream.accept() {
            new.set_nonblocking(false).unwrap();
            return Some(new);
        }
        kept.set_nonblocking(true).unwrap();
        let has_come = kept.peek(&mut [0]).is_ok_and(|bytes| bytes > 0);
        kept.set_nonblocking(false).unwrap();
        has_come.then(|| kept.try_clone().unwrap())
    });
    read_head(&mut tunnel);
    tunnel.write_all(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n").unwrap();
    let is_kept = tunnel.local_addr().unwrap() == kept.local_addr().unwrap()
        && tunnel.peer_addr().unwrap() == kept.peer_addr().unwrap();
    are(0, u32::from(!is_kept), 1);
    drop((second, tunnel, kept, upstream));
    // A worker drops an idle connection that the upstream has closed when it tries to use this
    // connection.
    wait_until("no connection", || {
        assert_eq!(Answer::parse(&rest(ask("Connection: close\r\n"))).status, 502);
        found() == [0.0; 3]
    });
}

#[test]
fn strict_parsers_accept_both_metrics_formats() {
    let origin = Origin::start();
    let (_folder, running) = start(&origin);
    play(&running);
    let admin = running.admin();
    let text = scrape(admin, "text/plain");
    assert_eq!(text.field("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    assert_eq!(text.field("vary"), Some("Accept, Accept-Encoding"));
    let open = scrape(admin, OPENMETRICS);
    let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=underscores";
    assert_eq!(open.field("content-type"), Some(content_type));
    assert_eq!(admin_answer(admin, "HEAD /metrics").status, 200);
    assert_eq!(admin_answer(admin, "POST /metrics").status, 405);
    if let Some(mut promtool) = debian("promtool", "prometheus") {
        read_by(promtool.args(["check", "metrics"]), &text.body);
    }
    if let Some(mut parser) = openmetrics_parser() {
        read_by(&mut parser, &open.body);
    }
}

#[test]
fn a_scrape_is_compressed_if_its_client_requests_it() {
    let origin = Origin::start();
    let (_folder, running) = start(&origin);
    let admin = running.admin();
    let answer = rest(sent(admin, format!("GET /metrics HTTP/1.1\r\nHost: {admin}\r\nAccept-Encoding: gzip\r\n\r\n")));
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap() + 4;
    assert_eq!(Answer::parse(&answer[..end]).field("content-encoding"), Some("gzip"));
    let mut text = String::new();
    flate2::read::GzDecoder::new(&answer[end..]).read_to_string(&mut text).unwrap();
    assert!(text.starts_with("# HELP ") && text.ends_with('\n'), "{text}");
}

/// Checks that a program can parse the text without an error or warning.
fn read_by(program: &mut Command, text: &str) {
    let output = run_with(program, text.as_bytes());
    assert!(output.code == Some(0) && output.said().is_empty(), "{program:?}: {}\n{text}", output.said());
}
