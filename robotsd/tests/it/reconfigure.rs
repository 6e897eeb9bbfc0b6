//! A config that changes while it is served: what is new is served, what is gone is not, and no connection is refused meanwhile.

use std::cell::RefCell;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Output;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::process::{Answer, FIREFOX, GPTBOT, Kept, Running, StopAtEnd, folder, robotsd, run, wait_for};

const REFUSES: &str = "User-agent: GPTBot\nDisallow: /private/\n";

fn site(name: &str, more: &str) -> String {
    format!("[[site]]\nname = \"{name}\"\nhosts = [\"{name}.test\"]\nroot = \".\"\n{more}\n")
}

const LISTENER: &str = "[[listener]]\naddress = \"127.0.0.1:0\"\n";

/// Begins a config; tables follow.
fn head(more: &str) -> String {
    format!("mode = \"refuse\"\nworkers = 2\n{more}[admin]\nsocket = \"admin.sock\"\n{LISTENER}")
}

/// Puts a config in place of another, as tools do.
fn write(folder: &Path, config: &str) {
    fs::write(folder.join("next"), config).unwrap();
    fs::rename(folder.join("next"), folder.join("robotsd.toml")).unwrap();
}

fn asked(address: SocketAddr, host: &str, path: &str, agent: &str) -> Answer {
    let mut kept = Kept::open(address, host);
    let (status, body) = kept.get(path, agent);
    Answer::parse(format!("HTTP/1.1 {status} X\r\n\r\n{body}").as_bytes())
}

fn reload(folder: &Path) -> Output {
    run(robotsd().args(["reload", "--config"]).arg(folder.join("robotsd.toml")))
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Every address that was listened on, in their order.
fn addresses(running: &Running) -> Vec<SocketAddr> {
    let address = |line: &serde_json::Value| line["message"].as_str()?.rsplit('/').next()?.parse().ok();
    running.all("listening").iter().filter_map(address).collect()
}

#[test]
fn sites_and_listeners_come_and_go_and_no_request_fails() {
    let folder = folder(&[("page.html", "hello"), ("robots.txt", REFUSES)]);
    write(folder.path(), &(head("") + &site("a", "")));
    let running = Running::start(folder.path());
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
            write(folder.path(), &(head("") + &site("a", "") + &site("b", "robots.text = \"# b\"")));
            wait_for("the new site", || (other("/robots.txt").1 == "# b").then_some(()));
            // Changed.
            write(folder.path(), &(head("") + &site("a", "") + &site("b", "robots.text = \"# other\"")));
            wait_for("the other source", || (other("/robots.txt").1 == "# other").then_some(()));
            // Removed.
            write(folder.path(), &(head("") + &site("a", "")));
            wait_for("no such site", || (other("/robots.txt").0 == 421).then_some(()));
            // A listener is added, gets other settings, and goes.
            let before = addresses(running).len();
            write(folder.path(), &(head("") + LISTENER + &site("a", "")));
            let added = wait_for("another listener", || addresses(running).get(before).copied());
            assert_eq!(asked(added, "a.test", "/page.html", FIREFOX).body, "hello");
            let trusting = format!("{LISTENER}trusted_proxies = [\"127.0.0.0/8\"]\n");
            write(folder.path(), &(head("") + &trusting + &site("a", "")));
            let same = wait_for("other settings", || addresses(running).get(before + 1).copied());
            assert_eq!(same, added, "in round {round}");
            assert_eq!(asked(added, "a.test", "/page.html", FIREFOX).body, "hello");
            write(folder.path(), &(head("") + &site("a", "")));
            wait_for("nobody listens there", || std::net::TcpStream::connect(added).is_err().then_some(()));
            let next = asks.load(Ordering::Relaxed) + 100;
            wait_for("requests meanwhile", || {
                let is_over = asks.load(Ordering::Relaxed) > next || askers.iter().any(|asker| asker.is_finished());
                is_over.then_some(())
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
    write(folder.path(), &config(false));
    let running = Running::start(folder.path());
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
            write(folder.path(), &config(round % 2 == 1));
            wait_for("the listener again", || (addresses(running).len() > round).then_some(()));
        }
        drop(stopping);
        askers.into_iter().for_each(|asker| asker.join().unwrap());
    });
    assert!(addresses(&running).iter().all(|address| *address == running.address));
}

#[test]
fn a_bad_config_changes_nothing_and_says_where_it_is_bad() {
    let folder = folder(&[("page.html", "hello"), ("robots.txt", REFUSES)]);
    write(folder.path(), &(head("") + &site("a", "")));
    let running = Running::start(folder.path());
    let path = folder.path().join("robotsd.toml");
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
        write(folder.path(), &config);
        let fits = |line: &serde_json::Value| line["message"].as_str().is_some_and(|message| message.contains(want));
        let event = running.wait_for_event("config-rejected", fits);
        let message = event["message"].as_str().unwrap();
        assert!(message.ends_with("; the config before stays in force"), "{message}");
        if want.starts_with(':') {
            assert!(message.starts_with(&format!("{}{want}", path.display())), "{message}");
        }
        assert_eq!(asked(running.address, "a.test", "/private/x", GPTBOT).status, 403);
        assert_eq!(asked(running.address, "b.test", "/page.html", FIREFOX).status, 421);
    }
    // The command gets the same answer. Commands find the admin interface even in a broken config.
    write(folder.path(), &(head("") + "no_such_key = 1\n" + &site("a", "")));
    let output = reload(folder.path());
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(said(&output).starts_with("config: kept: ") && said(&output).contains("no_such_key"), "{output:?}");
    write(folder.path(), &(head("") + &site("a", "") + &site("b", "")));
    let output = reload(folder.path());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(asked(running.address, "b.test", "/page.html", FIREFOX).body, "hello");
    let output = reload(folder.path());
    assert!(said(&output).contains("nothing is different"), "{output:?}");
}

#[test]
fn another_policy_is_live_on_open_connections_and_the_upstreams_connections_stay() {
    let origin = super::origin::Origin::start();
    let folder = folder(&[("robots.txt", REFUSES)]);
    let config = |mode: &str, path: &str| {
        format!(
            "mode = \"{mode}\"\nworkers = 1\n{LISTENER}[[site]]\nname = \"a\"\nupstreams = [\"http://{}\"]\n\
             robots.path = \"{path}\"\n[limits]\nupstream_idle_time = \"60s\"\n",
            origin.address
        )
    };
    write(folder.path(), &config("observe", "robots.txt"));
    let running = Running::start(folder.path());
    let kept = RefCell::new(Kept::open(running.address, "a.test"));
    let private = || kept.borrow_mut().get("/private/x", GPTBOT).0;
    assert_eq!(private(), 200);
    for _ in 0..3 {
        write(folder.path(), &config("refuse", "robots.txt"));
        wait_for("the policy", || (private() == 403).then_some(()));
        write(folder.path(), &config("observe", "robots.txt"));
        wait_for("the policy before", || (private() == 200).then_some(()));
    }
    let changed = running.wait_for_event("config", |_| true);
    assert!(changed["message"].as_str().unwrap().ends_with(": mode: observe → refuse"), "{changed}");
    let changed = running.wait_for_event("config-changed", |_| true);
    let values = ["setting", "before", "after", "applies", "message"].map(|field| changed[field].as_str().unwrap());
    assert_eq!(values, ["mode", "observe", "refuse", "now", "mode: observe → refuse"]);
    // One version, made once, and one connection to the upstream.
    assert_eq!(running.count("published", |_| true), 1);
    assert_eq!(origin.connections(), 1);
}

#[test]
fn a_source_that_cannot_be_used_leaves_the_one_before_until_it_can() {
    let folder = folder(&[("page.html", "hello"), ("robots.txt", REFUSES)]);
    write(folder.path(), &(head("") + &site("a", "")));
    let running = Running::start(folder.path());
    let serves = |text: &str| {
        let answer = asked(running.address, "a.test", "/robots.txt", FIREFOX);
        (answer.body == text).then_some(())
    };
    serves(REFUSES).unwrap();
    // Another file, which is not there yet.
    write(folder.path(), &(head("") + &site("a", "robots.path = \"other.txt\"")));
    let kept = running.wait_for_event("config", |line| line["message"].as_str().unwrap().contains("its source before"));
    assert!(kept["message"].as_str().unwrap().contains("other.txt: there is no such file"), "{kept}");
    serves(REFUSES).unwrap();
    // What is edited of the one before still goes live.
    fs::write(folder.path().join("next"), format!("# edited\n{REFUSES}")).unwrap();
    fs::rename(folder.path().join("next"), folder.path().join("robots.txt")).unwrap();
    wait_for("the edited one", || serves(&format!("# edited\n{REFUSES}")));
    // Once it is there it is taken, without being asked for.
    fs::write(folder.path().join("next"), format!("# other\n{REFUSES}")).unwrap();
    fs::rename(folder.path().join("next"), folder.path().join("other.txt")).unwrap();
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
    write(folder.path(), &config);
    let running = Running::start(folder.path());
    let replace = |name: &str, text: &str| {
        fs::write(folder.path().join("next"), text).unwrap();
        fs::rename(folder.path().join("next"), folder.path().join(name)).unwrap();
    };
    replace("crawlers.toml", "[[crawler]\n");
    running.wait_for_event("registry-rejected", |_| true);
    replace("crawlers.toml", "# some\n");
    running.wait_for_event("registry", |_| true);
    replace("expected.toml", "[[\n");
    running.wait_for_event("gate", |line| line["message"].as_str().unwrap().ends_with("the demands before stay"));
    replace("expected.toml", "[[allow]]\nagents = [\"Googlebot\"]\npaths = [\"/shop/\"]\n");
    running.wait_for_event("gate", |line| line["message"].as_str().unwrap().ends_with("is in force"));
    replace("robots.txt", "User-agent: Googlebot\nDisallow: /shop/\n");
    running.wait_for_event("gated", |_| true);
}

#[test]
fn what_cannot_change_is_said_and_limits_hold_for_new_connections() {
    let folder = folder(&[("page.html", "hello"), ("robots.txt", REFUSES)]);
    write(folder.path(), &(head("") + &site("a", "")));
    let running = Running::start(folder.path());
    let mut before = Kept::open(running.address, "a.test");
    assert_eq!(before.get("/page.html", FIREFOX).0, 200);
    let long = "/x".repeat(500);
    assert_eq!(before.get(&long, FIREFOX).0, 404);
    let other = head("").replace("workers = 2", "workers = 3\nstate_dir = \"state\"");
    write(folder.path(), &(other + &site("a", "") + "[limits]\ntarget_size = \"512B\"\nconnections = 20\n"));
    let event = running.wait_for_event("config", |_| true);
    let message = event["message"].as_str().unwrap();
    assert!(message.contains("other limits for new connections"), "{message}");
    assert!(message.ends_with("from the next start on: workers, state_dir"), "{message}");
    assert_eq!(asked(running.address, "a.test", &long, FIREFOX).status, 414);
    assert_eq!(before.get(&long, FIREFOX).0, 404, "a connection has the limits it began with");
}

#[test]
fn the_status_names_what_waits_for_the_next_start_until_it_is_as_it_was() {
    let folder = folder(&[("robots.txt", REFUSES)]);
    let text = head("") + &site("a", "");
    write(folder.path(), &text);
    let running = Running::start(folder.path());
    let status = |more: &[&str]| {
        said(&run(robotsd().arg("status").args(more).arg("--config").arg(folder.path().join("robotsd.toml"))))
    };
    let next_start =
        || serde_json::from_str::<serde_json::Value>(&status(&["--json"])).unwrap()["config"]["next_start"].clone();
    assert_eq!(next_start(), serde_json::json!([]));
    write(folder.path(), &text.replace("workers = 2", "workers = 3\nstate_dir = \"state\""));
    running.wait_for_event("config-changed", |line| line["setting"] == "state_dir");
    // Another config that changes none of it.
    write(folder.path(), &(text.replace("workers = 2", "workers = 3") + "[limits]\nconnections = 20\n"));
    running.wait_for_event("config-changed", |line| line["setting"] == "limits.connections");
    wait_for("the status", || {
        let want = serde_json::json!([{"site": null, "setting": "workers", "running": "2", "file": "3"}]);
        (next_start() == want).then_some(())
    });
    let shown = status(&[]);
    assert!(shown.contains("  next start: these settings have effect once robotsd is started again:\n"), "{shown}");
    assert!(shown.contains("              workers is 2, in the file 3\n"), "{shown}");
    write(folder.path(), &text);
    wait_for("nothing that waits", || (next_start() == serde_json::json!([])).then_some(()));
}

#[cfg(unix)]
#[test]
fn commands_find_the_admin_interface_while_its_place_changes() {
    let folder = folder(&[("robots.txt", REFUSES)]);
    let text = head("") + &site("a", "");
    write(folder.path(), &text);
    let mut running = Running::start(folder.path());
    let answers =
        |socket: &str| run(robotsd().args(["status", "--admin"]).arg(folder.path().join(socket))).status.success();
    write(folder.path(), &text.replace("admin.sock", "other.sock"));
    running.wait_for_event("config", |line| line["message"].as_str().unwrap().contains("the admin interface listens"));
    let change = running.wait_for_event("config-changed", |line| line["setting"] == "admin.socket");
    assert_eq!(change["applies"], "now");
    assert!(answers("admin.sock") && answers("other.sock"));
    assert!(said(&reload(folder.path())).contains("a: unchanged: "));
    // One that cannot be opened cuts nothing off.
    write(folder.path(), &text.replace("admin.sock", "no/such/admin.sock"));
    running.wait_for_event("admin-listening", |line| line["level"] == "warn");
    assert!(answers("admin.sock") && answers("other.sock"));
    running.signal("TERM");
    assert!(running.wait_for_end().success());
    assert!(!folder.path().join("admin.sock").exists() && !folder.path().join("other.sock").exists());
}

#[test]
fn a_reload_says_how_long_is_only_observed_and_another_grace_is_no_start() {
    let folder = folder(&[("robots.txt", "User-agent: *\nDisallow: /a\n")]);
    let config = |grace: &str| head("") + &site("a", &format!("enforcement.grace = \"{grace}\""));
    write(folder.path(), &config("1h"));
    let running = Running::start(folder.path());
    running.wait_for_event("published", |line| line["reason"] == "start");
    super::process::replace_file(&folder.path().join("robots.txt"), REFUSES);
    let output = said(&reload(folder.path()));
    assert!(output.contains("; newly disallowed requests are only observed, until 20"), "{output}");
    write(folder.path(), &config("2h"));
    running.wait_for_event("published", |line| line["reason"] == "config");
    assert_eq!(running.count("published", |line| line["reason"] == "start"), 1);
}
