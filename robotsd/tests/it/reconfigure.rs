//! Changes the config of a running proxy. New sites must be served, removed sites must not be
//! served, and no connection may be refused meanwhile.

use std::cell::RefCell;

use crate::harness::*;

const REFUSES: &str = "User-agent: GPTBot\nDisallow: /private/\n";

/// Creates a config with the site `a`. Tests add other sites of the folder.
fn config() -> Config {
    let config = Config::refusing().keys("workers = 2").robots(REFUSES).file("page.html", "hello").admin_socket();
    with_site(config, "a", "")
}

fn with_site(config: Config, name: &str, more: &str) -> Config {
    config.site(name, format!("hosts = [\"{name}.test\"]\nroot = \".\"\n{more}"))
}

fn asked(address: SocketAddr, host: &str, path: &str, agent: &str) -> Answer {
    let mut kept = Kept::open(address, host);
    let (status, body) = kept.get(path, agent);
    Answer::parse(format!("HTTP/1.1 {status} X\r\n\r\n{body}").as_bytes())
}

fn reload(folder: &Folder) -> Ended {
    folder.configured(["reload", "--config"])
}

/// Returns every address on which the process has listened, in order.
fn addresses(running: &Running) -> Vec<SocketAddr> {
    let address = |line: &Value| line["message"].as_str()?.rsplit('/').next()?.parse().ok();
    running.all("listening").iter().filter_map(address).collect()
}

#[test]
fn sites_and_listeners_are_added_and_removed_without_failed_requests() {
    let (folder, running) = config().start();
    let address = running.address;
    // All requests of this client use one connection.
    let kept = || -> Client<'_> {
        let mut kept = Kept::open(address, "a.test");
        Box::new(move || {
            assert_eq!(kept.get("/page.html", FIREFOX), (200, "hello".to_owned()));
            assert_eq!(kept.get("/private/x", GPTBOT).0, 403);
            thread::sleep(Duration::from_millis(1));
        })
    };
    let fresh: Client<'_> = Box::new(|| assert_eq!(asked(address, "a.test", "/page.html", FIREFOX).body, "hello"));
    while_asking((0..4).map(|_| kept()).chain([fresh]), |asking| {
        let other = RefCell::new(Kept::open(address, "b.test"));
        let other = |path| other.borrow_mut().get(path, FIREFOX);
        assert_eq!(other("/page.html").0, 421);
        // The port is reserved, so that no other test listens there once the listener is removed.
        let listener = config().tables(format!("[[listener]]\naddress = \"{}\"", free()));
        for round in 0..if is_long() { 3 } else { 1 } {
            // A site is added. Open connections must be able to use it.
            folder.configure(with_site(config(), "b", "robots.text = \"# b\""));
            wait_until("the new site", || other("/robots.txt").1 == "# b");
            folder.configure(with_site(config(), "b", "robots.text = \"# other\""));
            wait_until("the other source", || other("/robots.txt").1 == "# other");
            folder.configure(config());
            wait_until("no such site", || other("/robots.txt").0 == 421);
            // A listener is added, then changed, and then removed.
            let before = addresses(&running).len();
            folder.configure(&listener);
            let added = wait_for("another listener", || addresses(&running).get(before).copied());
            assert_eq!(asked(added, "a.test", "/page.html", FIREFOX).body, "hello");
            folder.configure(listener.clone().tables("trusted_proxies = [\"127.0.0.0/8\"]"));
            let same = wait_for("other settings", || addresses(&running).get(before + 1).copied());
            assert_eq!(same, added, "in round {round}");
            assert_eq!(asked(added, "a.test", "/page.html", FIREFOX).body, "hello");
            folder.configure(config());
            wait_until("nobody listens there", || TcpStream::connect(added).is_err());
            asking.wait_for_more(100);
        }
    });
    // The robots.txt of this site must not have been opened again.
    assert_eq!(running.count("published", |line| line["site"] == "a"), 1);
}

#[test]
fn a_listener_refuses_no_connection_while_its_settings_change() {
    let trusting = config().listener("trusted_proxies = [\"127.0.0.0/8\"]");
    let (folder, running) = config().start();
    // No site has this host. The client only checks that there is a response.
    let client = || -> Client<'_> { Box::new(|| assert_eq!(running.get("/robots.txt", FIREFOX).status, 421)) };
    while_asking((0..3).map(|_| client()), |_| {
        for round in 1..=4 {
            folder.configure(if round % 2 == 1 { trusting.clone() } else { config() });
            wait_until("the listener again", || addresses(&running).len() > round);
        }
    });
    assert!(addresses(&running).iter().all(|address| *address == running.address));
}

#[test]
fn an_invalid_config_changes_nothing_and_is_reported_with_its_position() {
    let (folder, running) = config().start();
    let path = folder.at("robotsd.toml");
    let b = |keys: &str| with_site(config(), "b", keys).to_string();
    let bad = [
        (b("hosts_ = 1"), ":16:1: [[site]] has no key \"hosts_\"; did you mean \"hosts\"?"),
        (b("robots.path = \"\""), ":16:15: the path is empty: write the path of the robots.txt"),
        (b("robots.path = \"nope\"\nrobots.on_missing = \"fail\""), "site \"b\": "),
        (b("robots.expectations = \"nope.toml\""), "site \"b\": "),
        (config().tables("[agents]\nregistry_extra = \"nope.toml\"").to_string(), "nope.toml: "),
        (config().tables("[[listener]]\naddress = \"192.0.2.1:1\"").to_string(), "192.0.2.1:1: cannot listen here: "),
        (String::new(), ":1:1: there is no [[listener]]"),
    ];
    for (config, want) in bad {
        folder.configure(config);
        let event = running.wait_for_message("config-rejected", want);
        let message = message(&event);
        assert!(message.ends_with("; the previous config stays in use"), "{message}");
        if want.starts_with(':') {
            assert!(message.starts_with(&format!("{}{want}", path.display())), "{message}");
        }
        assert_eq!(asked(running.address, "a.test", "/private/x", GPTBOT).status, 403);
        assert_eq!(asked(running.address, "b.test", "/page.html", FIREFOX).status, 421);
    }
    // The command must report the same as the log. Commands must find the admin interface even if
    // the config is broken.
    folder.configure(config().listener("no_such_key = 1"));
    let out = reload(&folder).ends_with(1).out;
    assert!(out.starts_with("config: kept: ") && out.contains("no_such_key"), "{out}");
    folder.configure(b(""));
    reload(&folder).succeeded();
    assert_eq!(asked(running.address, "b.test", "/page.html", FIREFOX).body, "hello");
    assert_has(reload(&folder).out, &["the config has not changed"]);
}

#[test]
fn a_new_policy_applies_to_open_connections_and_keeps_upstream_connections_open() {
    let origin = Origin::start();
    let config = |mode: &str| {
        let config = Config::new().keys(format!("mode = \"{mode}\"\nworkers = 1")).upstream("a", &origin);
        config.tables("[limits]\nupstream_idle_time = \"10m\"").robots(REFUSES)
    };
    let (folder, running) = config("observe").start();
    let kept = RefCell::new(Kept::open(running.address, "a.test"));
    let private = || kept.borrow_mut().get("/private/x", GPTBOT).0;
    assert_eq!(private(), 200);
    for _ in 0..3 {
        folder.configure(config("refuse"));
        wait_until("the policy", || private() == 403);
        folder.configure(config("observe"));
        wait_until("the policy before", || private() == 200);
    }
    let changed = running.event("config");
    assert!(message(&changed).ends_with(": mode: observe → refuse"), "{changed}");
    let changed = running.event("config-changed");
    let values = ["setting", "before", "after", "applies", "message"].map(|field| changed[field].as_str().unwrap());
    assert_eq!(values, ["mode", "observe", "refuse", "now", "mode: observe → refuse"]);
    // There must be only one version, compiled once, and one connection to the upstream.
    assert_eq!(running.count("published", |_| true), 1);
    assert_eq!(origin.connections(), 1);
}

#[test]
fn an_unusable_source_leaves_the_previous_source_in_use_until_it_is_usable() {
    let (folder, running) = config().start();
    let serves = |text: &str| {
        let answer = asked(running.address, "a.test", "/robots.txt", FIREFOX);
        (answer.body == text).then_some(())
    };
    serves(REFUSES).unwrap();
    // The config names another file, which does not exist yet.
    folder.configure(config().tables("robots.path = \"other.txt\""));
    let kept = running.wait_for_message("config", "the site keeps its previous source");
    assert_has(message(&kept), &["other.txt: the file does not exist"]);
    serves(REFUSES).unwrap();
    // An edit of the previous file must still go live.
    folder.replace("robots.txt", format!("# edited\n{REFUSES}"));
    wait_for("the edited one", || serves(&format!("# edited\n{REFUSES}")));
    // Once the new file exists, it must be used without a command.
    folder.replace("other.txt", format!("# other\n{REFUSES}"));
    wait_for("the other one", || serves(&format!("# other\n{REFUSES}")));
}

#[test]
fn edited_registry_and_expectations_files_are_reloaded_and_their_errors_are_reported() {
    let expected = |path: &str| format!("[[allow]]\nagents = [\"Googlebot\"]\npaths = [\"{path}\"]\n");
    let config =
        config().tables("robots.expectations = \"expected.toml\"\n[agents]\nregistry_extra = \"crawlers.toml\"");
    let config = config.robots("User-agent: newbot\nDisallow: /private/\n").file("crawlers.toml", "# none yet\n");
    let (folder, running) = config.file("expected.toml", expected("/")).start();
    // Each of these errors is a problem until it is fixed, because a restart would fail.
    let problems = |code: i32, part: &str| {
        wait_until(part, || {
            let ended = folder.with_config(&["status", "--problems"]);
            ended.code == Some(code) && unfolded(&ended.out).contains(part)
        });
    };
    let well = "0 of 1 sites need attention";
    folder.replace("crawlers.toml", "[[crawler]\n");
    running.event("registry-rejected");
    problems(1, "crawlers.toml:1:");
    // A new config with the same registry must not make robotsd read the registry again.
    folder.configure(format!("grace = \"1h\"\n{}", folder.read("robotsd.toml")));
    running.event("config");
    problems(1, "crawlers.toml:1:");
    folder.replace("crawlers.toml", "# some\n");
    running.event("registry");
    problems(0, well);
    folder.replace("expected.toml", "[[\n");
    running.wait_for_event("gate", |line| message(line).ends_with("the gate still uses the previous expectations"));
    problems(1, "; the gate still uses the previous expectations");
    folder.replace("expected.toml", expected("/shop/"));
    running.wait_for_event("gate", |line| message(line).contains("the gate uses the new content of"));
    problems(0, well);
    folder.replace("robots.txt", "User-agent: Googlebot\nDisallow: /shop/\n");
    running.event("gated");
}

#[test]
fn settings_that_need_a_restart_are_reported_and_new_limits_apply_to_new_connections() {
    let (folder, running) = config().start();
    let mut before = Kept::open(running.address, "a.test");
    assert_eq!(before.get("/page.html", FIREFOX).0, 200);
    let long = "/x".repeat(500);
    assert_eq!(before.get(&long, FIREFOX).0, 404);
    let other = config().tables("[limits]\ntarget_size = \"512B\"\nconnections = 20").to_string();
    folder.configure(other.replace("workers = 2", "workers = 3\nstate_dir = \"state\""));
    let event = running.event("config");
    let message = message(&event);
    assert_has(message, &["the limits for new connections have changed"]);
    assert!(
        message.ends_with(
            "; changes in these tables take effect only after `robotsd upgrade` or a restart: state_dir, workers"
        ),
        "{message}"
    );
    assert_eq!(asked(running.address, "a.test", &long, FIREFOX).status, 414);
    assert_eq!(before.get(&long, FIREFOX).0, 404, "a connection has the limits it began with");
}

#[test]
fn the_status_names_settings_that_need_a_restart() {
    let (folder, running) = config().start();
    let text = config().to_string();
    let next_start = || folder.with_config(&["status", "--json"]).json()["config"]["next_start"].take();
    assert_eq!(next_start(), json!([]));
    folder.configure(text.replace("workers = 2", "workers = 3\nstate_dir = \"state\""));
    running.wait_for_event("config-changed", |line| line["setting"] == "state_dir");
    // The new config no longer sets `state_dir`, but still changes `workers`.
    folder.configure(text.replace("workers = 2", "workers = 3") + "[limits]\nconnections = 20\n");
    running.wait_for_event("config-changed", |line| line["setting"] == "limits.connections");
    let want = json!([{"site": null, "setting": "workers", "running": "2", "file": "3"}]);
    wait_until("the status", || next_start() == want);
    let parts = [
        "  next start: these settings take effect after a restart of robotsd:\n",
        "              workers is 2, in the file 3\n",
        "              robotsd upgrade --config ",
    ];
    assert_has(folder.with_config(&["status"]).out, &parts);
    let waits = || {
        reload(&folder)
            .out
            .lines()
            .next()
            .unwrap()
            .ends_with("; changes in these tables take effect only after `robotsd upgrade` or a restart: workers")
    };
    assert!(waits() && waits(), "each reload says it, whatever was read last");
    folder.configure(&text);
    wait_until("nothing that waits", || next_start() == json!([]));
    assert!(!waits());
}

#[test]
fn commands_find_the_admin_interface_even_if_the_config_has_a_new_address() {
    let (folder, mut running) = config().start();
    let text = config().to_string();
    let socket = "socket = \"admin.sock\"";
    for (setting, other, key) in [
        (socket, "socket = \"other.sock\"", "admin"),
        (socket, "socket = \"no/such/admin.sock\"", "admin"),
        (socket, "enabled = false", "admin"),
        ("workers = 2", "workers = 2\nstate_dir = \"other\"", "state_dir"),
    ] {
        folder.configure(text.replace(setting, other));
        let said = reload(&folder).out;
        assert_has(
            &said,
            &[&format!("; changes in these tables take effect only after `robotsd upgrade` or a restart: {key}")],
        );
        folder.with_config(&["enforce", "off"]).succeeded();
        folder.with_config(&["enforce", "on"]).succeeded();
        assert!(folder.at("admin.sock").exists() && !folder.at("other.sock").exists());
    }
    let change = running.wait_for_event("config-changed", |line| line["setting"] == "admin.socket");
    assert_eq!(change["applies"], "next-start");
    running.end();
    assert!(!folder.at("admin.sock").exists());
}

#[test]
fn a_reload_reports_the_end_of_the_grace_period_and_a_new_period_does_not_reopen_the_site() {
    let config = |grace: &str| config().keys(format!("grace = \"{grace}\""));
    let (folder, running) = config("1h").robots("User-agent: *\nDisallow: /a\n").start();
    running.wait_for_event("published", |line| line["reason"] == "start");
    folder.replace("robots.txt", REFUSES);
    let output = reload(&folder).out;
    assert_has(&output, &["; 1 rule is enforced from 20", "Z at the latest\n"]);
    folder.configure(config("2h"));
    running.wait_for_event("published", |line| line["reason"] == "config");
    assert_eq!(running.count("published", |line| line["reason"] == "start"), 1);
}
