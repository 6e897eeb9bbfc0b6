//! A config that changes while it is served: what is new is served, what is gone is not, and no connection is refused meanwhile.

use std::cell::RefCell;
use std::fs;
use std::net::SocketAddr;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::harness::{
    ADMIN_SOCKET, Answer, Ended, FIREFOX, Folder, GPTBOT, Kept, Running, StopAtEnd, folder, message, robotsd, run,
    wait_for, wait_until,
};

const REFUSES: &str = "User-agent: GPTBot\nDisallow: /private/\n";

fn site(name: &str, more: &str) -> String {
    format!("[[site]]\nname = \"{name}\"\nhosts = [\"{name}.test\"]\nroot = \".\"\n{more}\n")
}

const LISTENER: &str = "[[listener]]\naddress = \"127.0.0.1:0\"\n";

/// Begins a config; tables follow.
fn head(more: &str) -> String {
    format!("mode = \"refuse\"\nworkers = 2\n{more}{ADMIN_SOCKET}{LISTENER}")
}

fn asked(address: SocketAddr, host: &str, path: &str, agent: &str) -> Answer {
    let mut kept = Kept::open(address, host);
    let (status, body) = kept.get(path, agent);
    Answer::parse(format!("HTTP/1.1 {status} X\r\n\r\n{body}").as_bytes())
}

fn reload(folder: &Folder) -> Ended {
    folder.configured(["reload", "--config"])
}

/// Every address that was listened on, in their order.
fn addresses(running: &Running) -> Vec<SocketAddr> {
    let address = |line: &serde_json::Value| line["message"].as_str()?.rsplit('/').next()?.parse().ok();
    running.all("listening").iter().filter_map(address).collect()
}

#[test]
fn sites_and_listeners_come_and_go_and_no_request_fails() {
    let folder = folder(&[("page.html", "hello"), ("robots.txt", REFUSES)]);
    folder.replace("robotsd.toml", head("") + &site("a", ""));
    let running = folder.start();
    let (stop, asks) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let (stop, asks, running) = (&stop, &asks, &running);
        let stopping = StopAtEnd(stop);
        let mut askers = Vec::new();
        for _ in 0..4 {
            askers.push(scope.spawn(move || {
                // One connection for all of it.
                let mut kept = Kept::open(running.address, "a.test");
                while !stop.load(Ordering::Relaxed) {
                    assert_eq!(kept.get("/page.html", FIREFOX), (200, "hello".to_owned()));
                    assert_eq!(kept.get("/private/x", GPTBOT).0, 403);
                    asks.fetch_add(2, Ordering::Relaxed);
                }
            }));
        }
        let fresh = scope.spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                assert_eq!(asked(running.address, "a.test", "/page.html", FIREFOX).body, "hello");
                asks.fetch_add(1, Ordering::Relaxed);
            }
        });
        let other = RefCell::new(Kept::open(running.address, "b.test"));
        let other = |path| other.borrow_mut().get(path, FIREFOX);
        assert_eq!(other("/page.html").0, 421);
        for round in 0..3 {
            // A site is added; connections that are open have it too.
            folder.replace("robotsd.toml", head("") + &site("a", "") + &site("b", "robots.text = \"# b\""));
            wait_until("the new site", || other("/robots.txt").1 == "# b");
            // Changed.
            folder.replace("robotsd.toml", head("") + &site("a", "") + &site("b", "robots.text = \"# other\""));
            wait_until("the other source", || other("/robots.txt").1 == "# other");
            // Removed.
            folder.replace("robotsd.toml", head("") + &site("a", ""));
            wait_until("no such site", || other("/robots.txt").0 == 421);
            // A listener is added, gets other settings, and goes.
            let before = addresses(running).len();
            folder.replace("robotsd.toml", head("") + LISTENER + &site("a", ""));
            let added = wait_for("another listener", || addresses(running).get(before).copied());
            assert_eq!(asked(added, "a.test", "/page.html", FIREFOX).body, "hello");
            let trusting = format!("{LISTENER}trusted_proxies = [\"127.0.0.0/8\"]\n");
            folder.replace("robotsd.toml", head("") + &trusting + &site("a", ""));
            let same = wait_for("other settings", || addresses(running).get(before + 1).copied());
            assert_eq!(same, added, "in round {round}");
            assert_eq!(asked(added, "a.test", "/page.html", FIREFOX).body, "hello");
            folder.replace("robotsd.toml", head("") + &site("a", ""));
            wait_until("nobody listens there", || std::net::TcpStream::connect(added).is_err());
            let next = asks.load(Ordering::Relaxed) + 100;
            wait_until("requests meanwhile", || {
                asks.load(Ordering::Relaxed) > next || askers.iter().any(|asker| asker.is_finished())
            });
        }
        drop(stopping);
        askers.into_iter().for_each(|asker| asker.join().unwrap());
        fresh.join().unwrap();
    });
    // Its robots.txt was never opened anew.
    assert_eq!(running.count("published", |line| line["site"] == "a"), 1);
}

#[test]
fn a_listener_with_other_settings_refuses_no_connection() {
    let folder = folder(&[("page.html", "hello"), ("robots.txt", REFUSES)]);
    let config = |trusted: bool| {
        let trusted = if trusted { "trusted_proxies = [\"127.0.0.0/8\"]\n" } else { "" };
        format!("workers = 2\n{LISTENER}{trusted}{}", site("a", ""))
    };
    folder.replace("robotsd.toml", config(false));
    let running = folder.start();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (stop, running) = (&stop, &running);
        let stopping = StopAtEnd(stop);
        let asker = || {
            while !stop.load(Ordering::Relaxed) {
                let answer = running.get("/robots.txt", FIREFOX);
                // The site is another's; it is the answer that counts.
                assert_eq!(answer.status, 421);
            }
        };
        let askers: Vec<_> = (0..3).map(|_| scope.spawn(asker)).collect();
        for round in 1..=6 {
            folder.replace("robotsd.toml", config(round % 2 == 1));
            wait_until("the listener again", || addresses(running).len() > round);
        }
        drop(stopping);
        askers.into_iter().for_each(|asker| asker.join().unwrap());
    });
    assert!(addresses(&running).iter().all(|address| *address == running.address));
}

#[test]
fn a_bad_config_changes_nothing_and_says_where_it_is_bad() {
    let folder = folder(&[("page.html", "hello"), ("robots.txt", REFUSES)]);
    folder.replace("robotsd.toml", head("") + &site("a", ""));
    let running = folder.start();
    let path = folder.at("robotsd.toml");
    let bad = [
        (
            head("") + &site("a", "") + &site("b", "hosts_ = 1"),
            ":16:1: [[site]] has no key \"hosts_\"; did you mean \"hosts\"?",
        ),
        (head("") + &site("a", "") + &site("b", "robots.path = \"\""), ":16:15: the path of the robots.txt is empty"),
        (
            head("") + &site("a", "") + &site("b", "robots.path = \"nope\"\nrobots.on_missing = \"fail\""),
            "site \"b\": ",
        ),
        (head("") + &site("a", "") + &site("b", "robots.expectations = \"nope.toml\""), "site \"b\": "),
        (head("") + &site("a", "") + "[agents]\nregistry_extra = \"nope.toml\"\n", "nope.toml: "),
        (head("") + "[[listener]]\naddress = \"192.0.2.1:1\"\n" + &site("a", ""), "192.0.2.1:1: cannot listen here: "),
        (String::new(), ":1:1: there is no [[listener]]"),
    ];
    for (config, want) in bad {
        folder.replace("robotsd.toml", config);
        let fits = |line: &serde_json::Value| line["message"].as_str().is_some_and(|message| message.contains(want));
        let event = running.wait_for_event("config-rejected", fits);
        let message = message(&event);
        assert!(message.ends_with("; the config before stays in force"), "{message}");
        if want.starts_with(':') {
            assert!(message.starts_with(&format!("{}{want}", path.display())), "{message}");
        }
        assert_eq!(asked(running.address, "a.test", "/private/x", GPTBOT).status, 403);
        assert_eq!(asked(running.address, "b.test", "/page.html", FIREFOX).status, 421);
    }
    // The command gets the same answer. Commands find the admin interface even in a broken config.
    folder.replace("robotsd.toml", head("") + "no_such_key = 1\n" + &site("a", ""));
    let output = reload(&folder);
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(output.out.starts_with("config: kept: ") && output.out.contains("no_such_key"), "{output:?}");
    folder.replace("robotsd.toml", head("") + &site("a", "") + &site("b", ""));
    let output = reload(&folder);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert_eq!(asked(running.address, "b.test", "/page.html", FIREFOX).body, "hello");
    let output = reload(&folder);
    assert!(output.out.contains("nothing is different"), "{output:?}");
}

#[test]
fn another_policy_is_live_on_open_connections_and_the_upstreams_connections_stay() {
    let origin = crate::harness::Origin::start();
    let folder = folder(&[("robots.txt", REFUSES)]);
    let config = |mode: &str, path: &str| {
        format!(
            "mode = \"{mode}\"\nworkers = 1\n{LISTENER}[[site]]\nname = \"a\"\nupstreams = [\"http://{origin}\"]\n\
             robots.path = \"{path}\"\n[limits]\nupstream_idle_time = \"60s\"\n"
        )
    };
    folder.replace("robotsd.toml", config("observe", "robots.txt"));
    let running = folder.start();
    let kept = RefCell::new(Kept::open(running.address, "a.test"));
    let private = || kept.borrow_mut().get("/private/x", GPTBOT).0;
    assert_eq!(private(), 200);
    for _ in 0..3 {
        folder.replace("robotsd.toml", config("refuse", "robots.txt"));
        wait_until("the policy", || private() == 403);
        folder.replace("robotsd.toml", config("observe", "robots.txt"));
        wait_until("the policy before", || private() == 200);
    }
    let changed = running.event("config");
    assert!(message(&changed).ends_with(": mode: observe → refuse"), "{changed}");
    let changed = running.event("config-changed");
    let values = ["setting", "before", "after", "applies", "message"].map(|field| changed[field].as_str().unwrap());
    assert_eq!(values, ["mode", "observe", "refuse", "now", "mode: observe → refuse"]);
    // One version, made once, and one connection to the upstream.
    assert_eq!(running.count("published", |_| true), 1);
    assert_eq!(origin.connections(), 1);
}

#[test]
fn a_source_that_cannot_be_used_leaves_the_one_before_until_it_can() {
    let folder = folder(&[("page.html", "hello"), ("robots.txt", REFUSES)]);
    folder.replace("robotsd.toml", head("") + &site("a", ""));
    let running = folder.start();
    let serves = |text: &str| {
        let answer = asked(running.address, "a.test", "/robots.txt", FIREFOX);
        (answer.body == text).then_some(())
    };
    serves(REFUSES).unwrap();
    // Another file, which is not there yet.
    folder.replace("robotsd.toml", head("") + &site("a", "robots.path = \"other.txt\""));
    let kept = running.wait_for_message("config", "its source before");
    assert!(message(&kept).contains("other.txt: there is no such file"), "{kept}");
    serves(REFUSES).unwrap();
    // What is edited of the one before still goes live.
    folder.write("next", format!("# edited\n{REFUSES}"));
    fs::rename(folder.at("next"), folder.at("robots.txt")).unwrap();
    wait_for("the edited one", || serves(&format!("# edited\n{REFUSES}")));
    // Once it is there it is taken, without being asked for.
    folder.write("next", format!("# other\n{REFUSES}"));
    fs::rename(folder.at("next"), folder.at("other.txt")).unwrap();
    wait_for("the other one", || serves(&format!("# other\n{REFUSES}")));
}

#[test]
fn the_registry_and_what_is_expected_are_followed() {
    let folder = folder(&[
        ("robots.txt", "User-agent: newbot\nDisallow: /private/\n"),
        ("crawlers.toml", "# none yet\n"),
        ("expected.toml", "[[allow]]\nagents = [\"Googlebot\"]\npaths = [\"/\"]\n"),
    ]);
    let config = format!(
        "{}{}[agents]\nregistry_extra = \"crawlers.toml\"\n",
        head(""),
        site("a", "robots.expectations = \"expected.toml\"")
    );
    folder.replace("robotsd.toml", config);
    let running = folder.start();
    let replace = |name: &str, text: &str| {
        folder.write("next", text);
        fs::rename(folder.at("next"), folder.at(name)).unwrap();
    };
    replace("crawlers.toml", "[[crawler]\n");
    running.event("registry-rejected");
    replace("crawlers.toml", "# some\n");
    running.event("registry");
    replace("expected.toml", "[[\n");
    running.wait_for_event("gate", |line| message(line).ends_with("the demands before stay"));
    replace("expected.toml", "[[allow]]\nagents = [\"Googlebot\"]\npaths = [\"/shop/\"]\n");
    running.wait_for_event("gate", |line| message(line).ends_with("is in force"));
    replace("robots.txt", "User-agent: Googlebot\nDisallow: /shop/\n");
    running.event("gated");
}

#[test]
fn what_cannot_change_is_said_and_limits_hold_for_new_connections() {
    let folder = folder(&[("page.html", "hello"), ("robots.txt", REFUSES)]);
    folder.replace("robotsd.toml", head("") + &site("a", ""));
    let running = folder.start();
    let mut before = Kept::open(running.address, "a.test");
    assert_eq!(before.get("/page.html", FIREFOX).0, 200);
    let long = "/x".repeat(500);
    assert_eq!(before.get(&long, FIREFOX).0, 404);
    let other = head("").replace("workers = 2", "workers = 3\nstate_dir = \"state\"");
    folder.replace("robotsd.toml", &(other + &site("a", "") + "[limits]\ntarget_size = \"512B\"\nconnections = 20\n"));
    let event = running.event("config");
    let message = message(&event);
    assert!(message.contains("other limits for new connections"), "{message}");
    assert!(message.ends_with("from the next start on: workers, state_dir"), "{message}");
    assert_eq!(asked(running.address, "a.test", &long, FIREFOX).status, 414);
    assert_eq!(before.get(&long, FIREFOX).0, 404, "a connection has the limits it began with");
}

#[test]
fn the_status_names_what_waits_for_the_next_start_until_it_is_as_it_was() {
    let folder = folder(&[("robots.txt", REFUSES)]);
    let text = head("") + &site("a", "");
    folder.replace("robotsd.toml", &text);
    let running = folder.start();
    let status =
        |more: &[&str]| run(robotsd().arg("status").args(more).arg("--config").arg(folder.at("robotsd.toml"))).out;
    let next_start =
        || serde_json::from_str::<serde_json::Value>(&status(&["--json"])).unwrap()["config"]["next_start"].clone();
    assert_eq!(next_start(), serde_json::json!([]));
    folder.replace("robotsd.toml", text.replace("workers = 2", "workers = 3\nstate_dir = \"state\""));
    running.wait_for_event("config-changed", |line| line["setting"] == "state_dir");
    // Another config that changes none of it.
    folder.replace("robotsd.toml", &(text.replace("workers = 2", "workers = 3") + "[limits]\nconnections = 20\n"));
    running.wait_for_event("config-changed", |line| line["setting"] == "limits.connections");
    wait_until("the status", || {
        let want = serde_json::json!([{"site": null, "setting": "workers", "running": "2", "file": "3"}]);
        next_start() == want
    });
    let shown = status(&[]);
    assert!(shown.contains("  next start: these settings have effect once robotsd is started again:\n"), "{shown}");
    assert!(shown.contains("              workers is 2, in the file 3\n"), "{shown}");
    folder.replace("robotsd.toml", &text);
    wait_until("nothing that waits", || next_start() == serde_json::json!([]));
}

#[cfg(unix)]
#[test]
fn commands_find_the_admin_interface_while_its_place_changes() {
    let folder = folder(&[("robots.txt", REFUSES)]);
    let text = head("") + &site("a", "");
    folder.replace("robotsd.toml", &text);
    let mut running = folder.start();
    let answers = |socket: &str| run(robotsd().args(["status", "--admin"]).arg(folder.at(socket))).code == Some(0);
    folder.replace("robotsd.toml", text.replace("admin.sock", "other.sock"));
    running.wait_for_message("config", "the admin interface listens");
    let change = running.wait_for_event("config-changed", |line| line["setting"] == "admin.socket");
    assert_eq!(change["applies"], "now");
    assert!(answers("admin.sock") && answers("other.sock"));
    assert!(reload(&folder).out.contains("a: unchanged: "));
    // One that cannot be opened cuts nothing off.
    folder.replace("robotsd.toml", text.replace("admin.sock", "no/such/admin.sock"));
    running.wait_for_event("admin-listening", |line| line["level"] == "warn");
    assert!(answers("admin.sock") && answers("other.sock"));
    running.end();
    assert!(!folder.at("admin.sock").exists() && !folder.at("other.sock").exists());
}

#[test]
fn a_reload_says_how_long_is_only_observed_and_another_grace_is_no_start() {
    let folder = folder(&[("robots.txt", "User-agent: *\nDisallow: /a\n")]);
    let config = |grace: &str| head("") + &site("a", &format!("enforcement.grace = \"{grace}\""));
    folder.replace("robotsd.toml", config("1h"));
    let running = folder.start();
    running.wait_for_event("published", |line| line["reason"] == "start");
    folder.replace("robots.txt", REFUSES);
    let output = reload(&folder).out;
    assert!(output.contains("; newly disallowed requests are only observed, until 20"), "{output}");
    folder.replace("robotsd.toml", config("2h"));
    running.wait_for_event("published", |line| line["reason"] == "config");
    assert_eq!(running.count("published", |line| line["reason"] == "start"), 1);
}
