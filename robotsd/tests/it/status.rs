//! Tests the status of connections, requests, upstreams and many sites.

use crate::harness::*;

const ROBOTS: &str = "User-agent: GPTBot\nUser-agent: CCBot\nUser-agent: Googlebot\nDisallow: /private/\n";

fn text(folder: &Folder) -> String {
    folder.with_config(&["status"]).out
}

fn traffic(folder: &Folder) -> Value {
    folder.with_config(&["status", "--json"]).json()["traffic"].take()
}

fn count(list: &Value, kind: &str) -> u64 {
    let of_kind = list.as_array().unwrap().iter().find(|entry| entry["kind"] == kind);
    of_kind.map_or(0, |entry| entry["count"].as_u64().unwrap())
}

fn config(upstreams: &[String], more: &str) -> Config {
    let keys = format!("upstreams = {upstreams:?}\nrobots.path = \"robots.txt\"");
    Config::refusing()
        .keys("workers = 2")
        .admin_socket()
        .tables("[[listener]]\naddress = \"127.0.0.1:0\"\nkind = \"decision\"")
        .site("shop", format!("{keys}\n[site.upstream]\nmax_fails = 1\neject = \"10m\"\neject_max = \"10m\""))
        .tables("[site.modes]\n\"agent:CCBot\" = \"tag\"")
        .tables(format!("\"agent:Googlebot\" = \"observe\"\n{more}"))
        .robots(ROBOTS)
}

/// A store is configured, but no site limits crawlers. The status must report this in the same
/// words as `config check`.
#[test]
fn a_store_is_reported_as_unused_if_no_site_limits_the_rate_of_crawlers() {
    let unasked = "no site limits the rate of crawlers, so the store is never used";
    for (rate, is_unasked) in [("", true), ("[site.rate]\nmode = \"observe\"", false)] {
        let config = Config::new().keys("rate.store = \"redis://127.0.0.1:1\"").admin_socket();
        let folder = config.site("shop", "root = \".\"\nrobots.text = \"# open\"").tables(rate).folder();
        let check = folder.with_config(&["config", "check"]).said();
        let _running = folder.start();
        let status = text(&folder);
        assert_has(&status, &["redis://127.0.0.1:1 is OUT"]);
        assert_eq!((status.contains(unasked), check.contains(unasked)), (is_unasked, is_unasked), "{status}\n{check}");
    }
}

#[test]
fn the_help_on_pages_for_gates_is_printed_once() {
    let modes = "[site.modes]\n\"pattern:/none\" = \"observe\"";
    let site =
        |host: &str| format!("hosts = [\"{host}\"]\nroot = \".\"\nrobots.text = \"User-agent: *\\nDisallow: /x\"");
    let config = Config::refusing().admin_socket().site("one", site("one.test")).tables(modes);
    let folder = config.site("other", site("other.test")).tables(modes).folder();
    let _running = folder.start();
    let status = unfolded(&folder.with_config(&["status", "--problems"]).ends_with(1).out);
    assert_eq!(status.matches("gate: watches no pages").count(), 2, "{status}");
    assert_eq!(status.matches("write urls = \"urls.txt\" in [gate]").count(), 1, "{status}");
}

#[test]
fn a_setting_without_effect_is_reported() {
    const OVERRIDE: &str = "the override for pattern \"/private\" has no effect, because no Disallow line of the robots.txt has this pattern";
    const RATE: &str =
        "the rate mode \"refuse\" does not limit any request, because no group of the robots.txt has a Crawl-delay";
    let delayed = format!("{ROBOTS}Crawl-delay: 1\n");
    for (tables, robots, idle, is_idle) in [
        ("[site.modes]\n\"pattern:/private\" = \"observe\"", ROBOTS, OVERRIDE, true),
        ("[site.modes]\n\"pattern:/private/\" = \"observe\"", ROBOTS, OVERRIDE, false),
        ("[site.rate]\nmode = \"refuse\"", ROBOTS, RATE, true),
        ("[site.rate]\nmode = \"refuse\"", &delayed, RATE, false),
    ] {
        let folder = Config::refusing().admin_socket().files_of("shop").tables(tables).robots(robots).folder();
        let check = folder.with_config(&["config", "check"]).said();
        let _running = folder.start();
        let status = folder.with_config(&["status", "--problems"]).ends_with(i32::from(is_idle));
        let status = unfolded(&status.out);
        assert_eq!((status.contains(idle), check.contains(idle)), (is_idle, is_idle), "{status}\n{check}");
    }
}

#[test]
fn requests_are_counted_by_outcome_and_connections_by_state() {
    let origin = Origin::start();
    let upstreams = [format!("http://{origin}")];
    let (folder, running) = config(&upstreams, "").start();
    let now = traffic(&folder);
    assert_eq!((&now["open_connections"], &now["sites"][0]["requests"]["total"]), (&0.into(), &0.into()));

    const CCBOT: &str = "CCBot/2.0 (https://commoncrawl.org/faq/)";
    for (times, path, agent) in [
        (7, "/page", FIREFOX),
        (4, "/private/x", GPTBOT),
        (3, "/private/x", CCBOT),
        (2, "/private/x", GOOGLEBOT),
        (1, "/robots.txt", GPTBOT),
        (1, "/%72obots.txt", GPTBOT),
    ] {
        for _ in 0..times {
            running.get(path, agent);
        }
    }
    running.send(b"GET / HTTP/1.1\r\n\r\n");
    running.send(b"no HTTP\r\n\r\n");
    // Every worker has handled some requests. A request ends shortly after its response.
    let counted = || {
        let now = traffic(&folder);
        let of = |name: &str| now["sites"][0]["requests"][name].as_u64().unwrap();
        let is = ["total", "robots_txt", "allowed", "refused", "tagged", "observed", "passed"].map(of);
        let [good, refused] = ["2xx", "4xx"].map(|kind| count(&now["responses"], kind));
        let is_counted = is == [18, 2, 7, 4, 3, 2, 0] && good == 14 && refused >= 5;
        let errors = count(&now["connection_errors"], "protocol");
        let accepted = now["accepted_connections"].as_u64().unwrap();
        (is_counted && errors >= 1 && accepted >= 20).then(|| now.clone())
    };
    let now = wait_for("the requests", counted);
    assert_eq!(now["sites"][0]["name"], "shop");
    assert_eq!(count(&now["responses"], "5xx"), 0, "{now}");

    // These connections stay open until the status is read.
    let mut kept: Vec<Kept> = (0..5).map(|_| Kept::open(running.address, "shop.test")).collect();
    kept.iter_mut().for_each(|kept| drop(kept.get("/robots.txt", FIREFOX)));
    wait_until("the connections", || traffic(&folder)["open_connections"] == 5);
    drop(kept);
    wait_until("the connections closed", || traffic(&folder)["open_connections"] == 0);

    // Decision requests of other proxies must count as requests of the site. A new config must not
    // reset the counts.
    let decisions =
        running.all("listening")[1]["message"].as_str().unwrap().trim_start_matches("http://").parse().unwrap();
    Kept::open(decisions, "shop.test").get("/-/auth/envoy/private/x", GPTBOT);
    folder.configure(config(&upstreams, "[limits]\ndrain = \"1s\""));
    running.event("config-changed");
    running.get("/private/x", GPTBOT);
    let refused = || traffic(&folder)["sites"][0]["requests"]["refused"].as_u64();
    wait_until("the sum", || refused() == Some(6));
    wait_until("the end of its connection", || traffic(&folder)["open_connections"] == 0);
    let text = text(&folder);
    let parts =
        ["connections: 0 open, at most ", "responses: since the start: ", "6 refused, 3 tagged, 2 observed", ": up, "];
    assert_has(unfolded(&text), &parts);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn an_unavailable_upstream_is_shown_with_time_and_cause() {
    let origin = Origin::start();
    let gone = free();
    let upstreams = [format!("http://{gone}"), format!("http://{origin}")];
    let (folder, running) = config(&upstreams, "").start();
    let servers = || traffic(&folder)["sites"][0]["upstreams"].clone();
    let before = servers();
    let found = (&before[0]["state"], &before[0]["since"], &before[1]["state"]);
    assert_eq!(found, (&"up".into(), &Value::Null, &"up".into()));
    wait_until("the ejection", || {
        assert_eq!(running.get("/page", FIREFOX).status, 200);
        running.has_event("upstream", |line| line["reason"] == "ejected")
    });
    let now = servers();
    let said = (&now[0]["server"], &now[0]["state"], &now[0]["check"]);
    assert_eq!(said, (&gone.to_string().into(), &"out".into(), &"connect".into()));
    assert!(now[0]["since"].as_str().unwrap().starts_with("20"), "{now}");
    assert!(now[0]["why"].as_str().unwrap().to_ascii_lowercase().contains("refused"), "{now}");
    assert!(now[0]["again_seconds"].as_u64().unwrap() > 0, "{now}");
    assert_eq!((&now[1]["state"], &now[1]["why"]), (&"up".into(), &Value::Null));
    let text = text(&folder);
    assert_has(unfolded(&text), &[&format!("{gone}: OUT since 20"), "connect: "]);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn requests_without_an_upstream_response_are_counted_by_kind_of_failure() {
    let gone = free();
    let (folder, running) = config(&[format!("http://{gone}")], "").start();
    for _ in 0..3 {
        assert_eq!(running.get("/page", FIREFOX).status, 502);
    }
    let now = traffic(&folder);
    assert_eq!(count(&now["sites"][0]["failures"], "connect"), 3, "{now}");
    assert_eq!(count(&now["responses"], "5xx"), 3, "{now}");
    // The upstream is marked as down, but must still get every request, because there is no other.
    let upstream = &now["sites"][0]["upstreams"][0];
    assert_eq!((&upstream["state"], &upstream["again_seconds"]), (&"out".into(), &0.into()));
    assert_has(unfolded(&text(&folder)), &["requests to its upstreams: 3 connect", ", tried with the next request"]);
}

#[test]
fn an_upstream_that_accepts_connections_but_never_responds_is_a_problem_until_it_does() {
    let origin = Origin::showing(0, "");
    let keys = format!("upstreams = [\"http://{origin}\"]\nrobots.path = \"robots.txt\"");
    let config = Config::refusing().keys("workers = 2").admin_socket().site("shop", keys).robots(ROBOTS);
    let (folder, running) = config.tables("[limits]\nresponse = \"200ms\"").start();
    for count in 1..=4 {
        assert_eq!(running.get("/page", FIREFOX).status, 504);
        let problems = folder.with_config(&["status", "--problems"]).ends_with(i32::from(count >= 3)).out;
        let why = format!("the last error: response-timeout: {origin}: the server did not respond in time");
        let said = format!("the upstreams answered none of the last {count} requests; {why}");
        assert_eq!(unfolded(&problems).contains(&said), count >= 3, "{problems}");
    }
    let site = folder.with_config(&["status", "--json"]).json()["sites"][0].take();
    assert_eq!(site["problems"].as_array().unwrap().len(), 1, "{site}");
    origin.show(200, "hello");
    // On a busy machine, this request may also exceed its timeout.
    wait_until("an answer", || running.get("/page", FIREFOX).status == 200);
    folder.with_config(&["status", "--problems"]).succeeded();
}

/// Creates forty sites. One has a pending version, one has an unreadable file, and one is off.
fn forty() -> (Folder, Running) {
    let mut config = Config::refusing().keys("workers = 1\nstate_dir = \"state\"").admin_socket();
    for number in 1..=40 {
        let keys = format!("hosts = [\"s{number}.test\"]\nroot = \".\"\nrobots.path = \"{number}.txt\"");
        config = config.site(&format!("s{number}"), keys).file(&format!("{number}.txt"), ROBOTS);
    }
    let (folder, running) = config.start();
    folder.replace("7.txt", "User-agent: *\nDisallow: /\n");
    folder.replace("19.txt", "<html>");
    folder.with_config(&["enforce", "off", "--site", "s33"]).succeeded();
    running.wait_for_event("gated", |line| line["site"] == "s7");
    running.wait_for_event("rejected", |line| line["site"] == "s19");
    (folder, running)
}

#[test]
fn sites_that_need_attention_come_first_and_other_sites_take_one_line() {
    let (folder, _running) = forty();
    let shown = folder.with_config(&["status"]).ends_with(1).out;
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines[1], "3 of 40 sites need attention");
    assert!(lines.len() < 100, "{shown}");
    let of_sites: Vec<&str> = lines.iter().copied().filter(|line| line.starts_with("site ")).collect();
    let names: Vec<&str> = of_sites.iter().map(|line| line.split(' ').nth(1).unwrap()).collect();
    assert_eq!((of_sites.len(), &names[..5]), (40, &["s7", "s19", "s33", "s1", "s2"][..]));
    let wants = ["site s7 (s7.test): gated", "robotsd accept s7 ", "site s19 (s19.test): last-good", "an HTML page"];
    assert_has(&shown, &wants);
    assert_has(&shown, &["robotsd enforce on --site s33 --config robotsd.toml", "site s1 (s1.test): live, refuse, "]);

    let problems = folder.with_config(&["status", "--problems"]).ends_with(1).out;
    assert_has(&problems, &["3 of 40 sites need attention", "site s7 ", "site s19 ", "site s33 "]);
    assert_eq!(problems.matches("\nsite ").count(), 3, "{problems}");
    let report = folder.with_config(&["status", "--json"]).ends_with(1).json();
    assert_eq!((report["sites"].as_array().unwrap().len(), &report["state_writable"]), (40, &true.into()));

    // If a command names a single site or host, the output must describe this site in full, and the
    // exit status must be that of the site.
    for (wanted, code) in [("s1", 0), ("s1.test", 0), ("s7", 1), ("s7.test", 1), ("s19", 1), ("s33", 1)] {
        let shown = folder.with_config(&["status", "--site", wanted]).ends_with(code).out;
        assert_has(
            &shown,
            &[&format!("site {} (", wanted.trim_end_matches(".test")), "findings:", "mode:       refuse"],
        );
        assert_eq!(shown.matches("\nsite ").count(), 1, "{shown}");
    }
    let unknown = folder.with_config(&["status", "--site", "s41.test"]).failed(2);
    assert_has(&unknown, &["there is no site \"s41.test\""]);
    // A program that restarts robotsd, or takes it out of rotation, checks only the process.
    let ready = folder.with_config(&["status", "--ready"]);
    assert_eq!((ready.code, &*ready.out), (Some(0), ""));
}

/// No version is pending, but every edit of the source is ignored.
#[test]
fn an_unusable_source_is_reported_with_its_time_and_exit_status_1() {
    let config = Config::new().admin_socket().site("a", "hosts = [\"localhost\", \"a.test\"]\nroot = \".\"");
    let (folder, running) = config.robots(ROBOTS).start();
    let status = |code| folder.with_config(&["status", "--site", "localhost"]).ends_with(code).out;
    assert_lacks(status(0), &["not taken:"]);
    folder.remove("robots.txt");
    running.wait_for_event("rejected", |line| line["site"] == "a");
    let since =
        folder.with_config(&["status", "--json"]).json()["sites"][0]["not_taken_since"].as_str().unwrap().to_owned();
    let reload = || folder.with_config(&["reload"]).ends_with(1);
    reload();
    folder.replace("robots.txt", "<html>");
    running.wait_for_message("rejected", "an HTML page");
    reload();
    assert_has(status(1), &["): last-good\n", "not taken:  ", &format!("\n              since {since}\n")]);
    assert_has(unfolded(&status(1)), &["goes live automatically"]);
    folder.replace("robots.txt", ROBOTS);
    running.event("unchanged");
    wait_until("the source to be used", || folder.with_config(&["status", "--site", "localhost"]).code == Some(0));
    assert_lacks(status(0), &["not taken:"]);
    let unknown = folder.with_config(&["status", "--site", "localhots"]).failed(2);
    assert_has(&unknown, &["there is no site \"localhots\""]);
}

#[test]
fn each_healthy_site_takes_one_line_of_the_status() {
    let site = "root = \".\"\nrobots.text = \"# open\"";
    let config = Config::new().admin_socket().site("a", format!("hosts = [\"a.test\"]\n{site}")).site("b", site);
    let (folder, _running) = config.start();
    let shown = folder.with_config(&["status"]).succeeded();
    assert_has(
        &shown,
        &["\n0 of 2 sites need attention\n", "\nsite a (a.test): live, observe, ", "\nsite b (every host): live"],
    );
    let problems = folder.with_config(&["status", "--problems"]).succeeded();
    assert_lacks(&problems, &["\nsite "]);
}

#[test]
fn the_status_of_an_ended_override_contains_what_to_do() {
    let site = "root = \".\"\n[site.modes]\n\"agent:GPTBot\" = { mode = \"tag\", until = 2020-01-01 }";
    let (folder, _running) = Config::refusing().site("a", site).admin_socket().robots(ROBOTS).start();
    let problems = folder.with_config(&["status", "--problems"]).ends_with(1).out;
    let ended = ": this override has expired and no longer has any effect; remove this entry, or write a later day";
    assert_has(unfolded(&problems), &["next: agent ", ended]);
}

/// An unwritable directory must be detected even if there is nothing to write, and even for root,
/// who needs no permissions.
#[test]
fn an_unwritable_state_directory_is_reported_before_a_write_is_needed() {
    let config = Config::new().keys("state_dir = \"state\"").admin().files_of("shop").robots(ROBOTS);
    let (folder, running) = config.start();
    let metric = || {
        let text = running.ask_admin("GET /metrics").body;
        text.lines().find_map(|line| line.strip_prefix("robotsd_state_writable ")).map(str::to_owned)
    };
    assert_eq!((running.command(&["status"]).code, metric().as_deref()), (Some(0), Some("1")));
    fs::rename(folder.at("state"), folder.at("aside")).unwrap();
    folder.write("state", "no folder");
    wait_until("the metric", || metric().as_deref() == Some("0"));
    let ended = running.command(&["status"]).ends_with(1);
    assert_has(&ended.out, &["problem:"]);
    assert_eq!(running.json(&["status"])["state_writable"], false);
    assert_eq!(running.command(&["status", "--ready"]).code, Some(0));
    folder.remove("state");
    fs::rename(folder.at("aside"), folder.at("state")).unwrap();
    wait_until("the metric again", || metric().as_deref() == Some("1"));
    running.command(&["status"]).succeeded();
}
