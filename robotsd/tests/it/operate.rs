//! What an operator decides: the kill switch, versions accepted and rolled back by hand, and what every command says.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::Value;

use crate::harness::{
    Ended, FIREFOX, Folder, GPTBOT, Kept, Running, StopAtEnd, folder, message, robotsd, run, wait_until,
};

const OPEN: &str = "User-agent: GPTBot\nDisallow: /page\n\nUser-agent: *\nDisallow: /drafts/\n";
const SHUT: &str = "User-agent: *\nDisallow: /\n";

/// Two sites of one folder, asked over an address that only the log knows.
const CONFIG: &str = "mode = \"refuse\"\nstate_dir = \"state\"\n[[listener]]\naddress = \"127.0.0.1:0\"\n[admin]\naddress = \"127.0.0.1:0\"\n\
    [[site]]\nname = \"shop\"\nhosts = [\"shop.test\"]\nroot = \".\"\n\
    [[site]]\nname = \"the blog\"\nhosts = [\"blog.test\"]\nroot = \".\"\nrobots.path = \"blog.txt\"\n";

/// A running robotsd, and the commands for it.
struct Operated {
    running: Running,
}

impl Operated {
    fn start(folder: &Folder) -> Self {
        Self { running: folder.start() }
    }

    /// Ends it as its operator does. What is live is written behind it, which a process that is killed may not get to.
    fn end(mut self) {
        self.running.end();
    }

    fn command(&self, arguments: &[&str]) -> Ended {
        run(robotsd().args(arguments).arg("--admin").arg(self.running.admin().to_string()))
    }

    /// The output of a command that succeeds.
    fn out(&self, arguments: &[&str]) -> String {
        self.command(arguments).succeeded()
    }

    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.out(&[arguments, &["--json"]].concat())).unwrap()
    }

    fn site(&self, number: usize) -> Value {
        self.json(&["status"])["sites"][number].clone()
    }

    fn robots(&self) -> String {
        self.running.request("GET", "/robots.txt", &[("Host", "shop.test"), ("User-Agent", FIREFOX)]).body
    }

    fn page(&self, host: &str) -> u16 {
        self.running.request("GET", "/page.html", &[("Host", host), ("User-Agent", GPTBOT)]).status
    }
}

fn site() -> Folder {
    folder(&[("robotsd.toml", CONFIG), ("robots.txt", OPEN), ("blog.txt", OPEN), ("page.html", "hello")])
}

/// Text folded to lines, as one line again.
fn unfolded(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Types a line of a status into a shell.
fn type_in(line: &str) -> Ended {
    let program = Path::new(env!("CARGO_BIN_EXE_robotsd")).parent().unwrap();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths([program.to_owned()].into_iter().chain(std::env::split_paths(&path))).unwrap();
    run(Command::new("sh").arg("-c").arg(line).env("PATH", path))
}

fn suggested(status: &str, command: &str) -> String {
    let line = status.lines().map(str::trim).find(|line| line.starts_with(command));
    line.unwrap_or_else(|| panic!("no {command:?} in {status}")).to_owned()
}

#[cfg(unix)]
#[test]
fn the_kill_switch_works_under_load_and_outlives_a_kill() {
    let folder = site();
    let mut operated = Operated::start(&folder);
    let address = operated.running.address;
    let (stop, is_off) = (AtomicBool::new(false), AtomicBool::new(false));
    let (refused, passed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let stopping = StopAtEnd(&stop);
        let mut askers = Vec::new();
        for _ in 0..4 {
            askers.push(scope.spawn(|| {
                let mut kept = Kept::open(address, "shop.test");
                while !stop.load(Ordering::Relaxed) {
                    let off = is_off.load(Ordering::SeqCst);
                    let (status, body) = kept.get("/page.html", GPTBOT);
                    match status {
                        403 => assert!(!off, "refused after the command had ended"),
                        200 => assert_eq!(body, "hello"),
                        _ => panic!("{status}: {body}"),
                    }
                    if status == 403 { &refused } else { &passed }.fetch_add(1, Ordering::Relaxed);
                }
            }));
        }
        wait_until("load", || refused.load(Ordering::Relaxed) > 400);
        assert_eq!(passed.load(Ordering::Relaxed), 0, "something passed before");
        let said = operated.out(&["enforce", "off"]);
        is_off.store(true, Ordering::SeqCst);
        assert_eq!(said, "enforcement of every site is switched off\n");
        let before = passed.load(Ordering::Relaxed);
        wait_until("requests on the same connections", || passed.load(Ordering::Relaxed) > before + 400);
        drop(stopping);
        askers.into_iter().for_each(|asker| asker.join().unwrap());
    });

    // It is seen wherever an operator would look.
    let line = operated.running.event("enforcement");
    assert_eq!(line["message"], "enforcement of every site is switched off");
    let status = operated.out(&["status"]);
    assert!(status.contains("\nENFORCEMENT IS OFF FOR EVERY SITE: "), "{status}");
    suggested(&status, "robotsd enforce on --admin");
    assert_eq!(operated.json(&["status"])["enforcement"], "off");
    assert_eq!(operated.site(1)["enforcement"], "off");
    let ready = super::admin::local(operated.running.admin(), "GET /readyz");
    assert_eq!((ready.status, &*ready.body), (200, "ready\nenforcement is OFF for every site\n"));
    assert_eq!(operated.robots(), OPEN, "robots.txt is served as before");

    operated.running.signal("KILL");
    operated.running.wait_for_end();
    let operated = Operated::start(&folder);
    let line = operated.running.event("enforcement");
    assert_eq!(line["message"], "OFF for every site: `robotsd enforce on` turns it on");
    assert_eq!((operated.page("shop.test"), operated.page("blog.test")), (200, 200));
    let history = operated.json(&["history", "the blog"]);
    let switched = history["entries"].as_array().unwrap().iter().filter(|entry| entry["cause"] == "switch");
    assert_eq!(switched.map(|entry| &entry["outcome"]).collect::<Vec<_>>(), ["switched-off"]);
    operated.out(&["enforce", "on"]);
    assert_eq!((operated.page("shop.test"), operated.page("blog.test")), (403, 403));
    let ready = super::admin::local(operated.running.admin(), "GET /readyz");
    assert_eq!(ready.body, "ready\n");
}

#[test]
fn a_switch_is_of_one_site_or_of_all_and_says_what_the_other_does() {
    let folder = site();
    let operated = Operated::start(&folder);
    let said = operated.out(&["enforce", "off", "--site", "the blog"]);
    assert_eq!(said, "enforcement of site \"the blog\" is switched off\n");
    assert_eq!((operated.page("shop.test"), operated.page("blog.test")), (403, 200));
    let ready = super::admin::local(operated.running.admin(), "GET /readyz");
    assert_eq!(ready.body, "ready\nenforcement is OFF for site \"the blog\"\n");
    let status = operated.out(&["status"]);
    assert!(status.contains("  enforced:   OFF, by the switch of this site: every request passes\n"), "{status}");
    assert!(!status.contains("EVERY SITE"), "{status}");
    operated.out(&["enforce", "off"]);
    let said = unfolded(&operated.out(&["enforce", "on", "--site", "the blog"]));
    assert!(said.ends_with("that of every site is off still, so nothing is enforced: `robotsd enforce on`"), "{said}");
    assert_eq!(operated.page("blog.test"), 200);
    operated.out(&["enforce", "off", "--site", "the blog"]);
    let said = unfolded(&operated.out(&["enforce", "on"]));
    assert!(said.ends_with("; off still by a switch of their own: \"the blog\""), "{said}");
    assert_eq!((operated.page("shop.test"), operated.page("blog.test")), (403, 200));
    // What the status suggests, typed as it is.
    type_in(&suggested(&operated.out(&["status"]), "robotsd enforce on --site 'the blog'")).succeeded();
    assert_eq!(operated.page("blog.test"), 403);
    let said = operated.out(&["enforce", "on"]);
    assert_eq!(said, "the switch of every site was on already\n");
}

#[test]
fn without_a_state_directory_a_switch_holds_until_the_end_and_says_so() {
    let config = CONFIG.replace("state_dir = \"state\"\n", "");
    let folder = folder(&[("robotsd.toml", &config), ("robots.txt", OPEN), ("blog.txt", OPEN), ("page.html", "hello")]);
    let operated = Operated::start(&folder);
    let said = operated.out(&["enforce", "off"]);
    assert!(said.ends_with("\nit holds until robotsd ends: its config has no state_dir\n"), "{said}");
    assert_eq!((operated.page("shop.test"), operated.page("blog.test")), (200, 200));
    assert_eq!(operated.json(&["status"])["next"][0]["command"], serde_json::json!(["robotsd", "enforce", "on"]));
    // A site that comes later is no exception.
    let more = "[[site]]\nname = \"news\"\nhosts = [\"news.test\"]\nroot = \".\"\n";
    let config = format!("{config}{more}");
    // The watcher may be quicker than the command, which then finds nothing new.
    let configure = |config: &str, change: &str| {
        let is_said = |line: &Value| message(line).contains(change);
        let before = operated.running.count("config", is_said);
        folder.write("robotsd.toml", config);
        operated.out(&["reload"]);
        wait_until(change, || operated.running.count("config", is_said) > before);
    };
    configure(&config, "site \"news\" is new");
    assert_eq!(operated.page("news.test"), 200);
    let said = operated.out(&["enforce", "on", "--site", "shop"]);
    assert!(unfolded(&said).contains("that of every site is off still"), "{said}");
    let report = operated.json(&["enforce", "on"]);
    assert_eq!((&report["kept"], &report["running"]), (&false.into(), &true.into()));
    assert_eq!(["shop.test", "blog.test", "news.test"].map(|host| operated.page(host)), [403; 3]);
    // A source that takes the place of another is switched as that was, off and on.
    for (switch, status, max_age) in [("off", 200, 60), ("on", 403, 120)] {
        operated.out(&["enforce", switch, "--site", "news"]);
        configure(&format!("{config}robots.max_age = \"{max_age}s\"\n"), "site \"news\": robots.max_age: ");
        assert_eq!((operated.page("news.test"), operated.page("shop.test")), (status, 403));
    }
    // So is a folder that takes the place of a file.
    operated.out(&["enforce", "off", "--site", "news"]);
    folder.write("each/news.test.txt", OPEN);
    configure(
        &format!("{config}[site.robots]\nsource = \"directory\"\npath = \"each\"\n"),
        "site \"news\": robots.source: not set → directory",
    );
    assert!(operated.out(&["status"]).contains("site news/news.test"), "{}", operated.out(&["status"]));
    assert_eq!((operated.page("news.test"), operated.page("shop.test")), (200, 403));
}

#[test]
fn a_switch_that_cannot_be_written_down_is_turned_and_says_so() {
    let config = CONFIG.replace("\"state\"", "\"page.html\"");
    let folder = folder(&[("robotsd.toml", &config), ("robots.txt", OPEN), ("blog.txt", OPEN), ("page.html", "hello")]);
    let operated = Operated::start(&folder);
    for arguments in [&["enforce", "off"][..], &["enforce", "off", "--site", "shop"]] {
        let output = operated.command(arguments);
        assert_eq!(output.code, Some(1), "{output:?}");
        let said = unfolded(&output.out);
        assert!(said.contains("it holds until robotsd ends: ") && said.contains("page.html"), "{said}");
        assert_eq!(operated.page("shop.test"), 200);
    }
    let site = operated.site(0);
    assert!(site["troubles"][0].as_str().unwrap().contains("page.html"), "{site}");
    let next = site["next"].to_string();
    assert!(next.contains("put the state directory right"), "{next}");
}

#[test]
fn a_staging_file_is_held_shown_accepted_and_rolled_back_by_hand() {
    let folder = site();
    Operated::start(&folder).end();
    folder.replace("robots.txt", SHUT);
    let operated = Operated::start(&folder);
    assert_eq!(operated.robots(), OPEN);
    let status = operated.out(&["status"]);
    assert!(status.contains("\nsite shop (shop.test): gated\n"), "{status}");
    assert!(unfolded(&status).contains("everyone is shut out"), "{status}");
    assert!(unfolded(&status).contains("if it is meant as it is:"), "{status}");

    let accept = suggested(&status, "robotsd accept shop ");
    let typed = type_in(&accept);
    assert!(typed.code == Some(0), "{typed:?}");
    assert_eq!(operated.robots(), SHUT, "not live once the command has ended");
    let said = unfolded(&typed.out);
    assert!(said.contains("is live; it waited because: ") && said.contains("everyone is shut out"), "{said}");
    let line = operated.running.wait_for_event("accept", |line| line["site"] == "shop");
    assert!(line["robots_hash"].is_string() && message(&line).contains("is live"), "{line}");
    assert_eq!(operated.site(0)["state"], "live");
    assert_eq!(
        operated.running.request("GET", "/page.html", &[("Host", "shop.test"), ("User-Agent", GPTBOT)]).status,
        403
    );

    let said = operated.out(&["rollback", "shop"]);
    assert!(unfolded(&said).contains("is live again; "), "{said}");
    assert_eq!(suggested(&said, "robotsd accept"), accept, "the way back is the same command");
    assert_eq!(operated.robots(), OPEN);
    operated.running.wait_for_event("rollback", |line| line["site"] == "shop");
    // The file is there still, written once more, asked for, and read at a start: it stays away.
    folder.replace("robots.txt", SHUT);
    let output = operated.command(&["reload", "--site", "shop"]);
    assert_eq!((output.code, operated.robots()), (Some(1), OPEN.to_owned()));
    operated.end();
    let operated = Operated::start(&folder);
    assert_eq!(operated.robots(), OPEN);
    let status = operated.out(&["status"]);
    let said = unfolded(&status);
    assert!(said.contains("it was rolled back gate: watches no pages:"), "{status}");
    assert!(said.contains("next: to bring it live again:"), "{status}");
    let causes = operated.json(&["history", "shop"]);
    let of = |cause: &str| causes["entries"].as_array().unwrap().iter().filter(|entry| entry["cause"] == cause).count();
    assert_eq!((of("accept"), of("rollback")), (1, 1), "{causes}");
    // No command was given for the other site.
    assert_eq!(operated.site(1)["state"], "live");
}

#[test]
fn a_rollback_says_what_becomes_of_another_version_that_waits() {
    let folder = site();
    let operated = Operated::start(&folder);
    let more = format!("{OPEN}Disallow: /more/\n");
    folder.replace("robots.txt", &more);
    operated.out(&["reload", "--site", "shop"]);
    assert_eq!(operated.robots(), more);
    folder.replace("robots.txt", SHUT);
    assert_eq!(operated.command(&["reload", "--site", "shop"]).code, Some(1));
    let waiting = operated.site(0)["pending"]["hash"].as_str().unwrap().to_owned();
    let said = unfolded(&operated.out(&["rollback", "shop"]));
    let want = format!(
        "; {}, which waited, is compared again when its source is read next",
        &waiting["sha256:".len()..][..16]
    );
    assert!(said.contains(&want), "{said}");
    // As it says.
    assert_eq!(operated.robots(), OPEN);
    assert_eq!(operated.command(&["reload", "--site", "shop"]).code, Some(1));
    assert_eq!(operated.site(0)["pending"]["hash"], waiting);
}

#[test]
fn the_status_says_what_is_only_observed_and_what_came_of_every_reload() {
    let more = "enforcement = { mode = \"observe\", grace = \"1h\" }\n\
        override = [{ agent = \"GPTBot\", mode = \"refuse\", until = 2099-01-31 },\n\
        { pattern = \"/drafts/\", mode = \"observe\", until = 2020-01-31 }]\n";
    let folder = folder(&[
        ("robotsd.toml", &format!("{CONFIG}{more}")),
        ("robots.txt", OPEN),
        ("blog.txt", OPEN),
        ("page.html", "hello"),
    ]);
    let operated = Operated::start(&folder);
    let status = operated.out(&["status"]);
    for line in [
        "  mode:       observe: disallowed requests pass, and are logged\n",
        "  override:   agent \"gptbot\": refuse until 2099-02-01T00:00:00Z\n",
        "  override:   pattern \"/drafts/\": observe, but that ended 2020-02-01T00:00:00Z\n",
        "  grace:      newly disallowed requests are only observed, until\n",
    ] {
        assert!(status.contains(line), "{line:?} is not in {status}");
    }
    assert!(status.contains(" %) checked with the words of their operator"), "{status}");
    for line in status.lines().filter(|line| line.chars().count() > 80) {
        let words = line.split_whitespace().filter(|word| !word.ends_with(':')).count();
        assert!(words == 1 || line.trim().starts_with("robotsd "), "not folded: {line:?}");
    }
    let blog = operated.site(1);
    assert_eq!(blog["overrides"][1]["ended"], true);
    // A source that is gone, and is back.
    fs::remove_file(folder.at("robots.txt")).unwrap();
    assert_eq!(operated.command(&["reload"]).code, Some(1));
    let shop = operated.site(0);
    assert_eq!(shop["state"], "last-good");
    let next = shop["next"][0]["what"].as_str().unwrap();
    assert!(next.contains("robots.txt: there is no such file") && next.ends_with("taken by itself"), "{next}");
    folder.replace("robots.txt", OPEN);
    operated.out(&["reload"]);
    let shop = operated.site(0);
    assert_eq!((&shop["state"], &shop["next"]), (&"live".into(), &Value::Array(Vec::new())));
    let count = |cause: &str, outcome: &str| {
        let counts = shop["reloads"].as_array().unwrap().clone();
        counts
            .into_iter()
            .find(|count| count["cause"] == cause && count["outcome"] == outcome)
            .map(|it| it["count"].clone())
    };
    assert_eq!(count("start", "published"), Some(1.into()), "{shop}");
    assert_eq!(count("request", "kept"), Some(1.into()), "{shop}");
    assert_eq!(count("accept", "published"), None, "{shop}");
    let history = operated.out(&["history", "shop"]);
    assert!(history.contains("  published (start)  ") && history.contains("kept (request)\n"), "{history}");
}

#[test]
fn what_cannot_be_done_is_said_with_what_could_be() {
    let folder = site();
    let operated = Operated::start(&folder);
    let live = operated.site(0)["hash"].as_str().unwrap().to_owned();
    let wrong = "0123456789ab";
    let unknown = "robotsd: robotsd answered 404: there is no site \"b\"; there is \"shop\", \"the blog\"\n";
    let nothing = format!(
        "robotsd: robotsd answered 409: site \"shop\": no version {wrong} waits to be accepted: none does; \
         version {} is live\n",
        &live["sha256:".len()..][..16]
    );
    for (arguments, want) in [
        (vec!["accept", "b", wrong], unknown),
        (vec!["rollback", "b"], unknown),
        (vec!["history", "b"], unknown),
        (vec!["enforce", "off", "--site", "b"], unknown),
        (vec!["reload", "--site", "b"], unknown),
        (vec!["accept", "shop", wrong], &nothing),
        (
            vec!["accept", "shop", "0123456789a"],
            "robotsd: \"0123456789a\" is not the hash of a version: write the 16 hex digits that the message about it has, or at least 12 of them\n",
        ),
        (
            vec!["accept", "shop", "\u{1b}[2J"],
            "robotsd: \"\\u{1b}[2J\" is not the hash of a version: write the 16 hex digits that the message about it has, or at least 12 of them\n",
        ),
        (
            vec!["rollback", "shop"],
            "robotsd: robotsd answered 409: site \"shop\": there is no version to go back to: none is remembered from \
             before the one that was accepted last\n",
        ),
        (
            vec!["history", "\u{1b}[2J\n&site=shop"],
            "robotsd: robotsd answered 404: there is no site \"\\u{1b}[2J\\n&site=shop\"; there is \"shop\", \"the blog\"\n",
        ),
        (vec!["history", ""], "robotsd: robotsd answered 400: site=NAME is needed\n"),
        (
            vec!["history", "shop.test"],
            "robotsd: robotsd answered 404: there is no site \"shop.test\"; it is a host of the site \"shop\"\n",
        ),
    ] {
        let output = operated.command(&arguments);
        assert_eq!((output.code, &*output.error), (Some(2), want), "{arguments:?}");
        assert!(output.out.is_empty(), "{arguments:?}");
    }
    // Another version waits than the one that is meant.
    folder.replace("robots.txt", SHUT);
    operated.running.event("gated");
    let waiting = operated.site(0)["pending"]["hash"].as_str().unwrap().to_owned();
    let output = operated.command(&["accept", "shop", wrong]);
    let want = format!("no version {wrong} waits to be accepted: {} does\n", &waiting["sha256:".len()..][..16]);
    assert!(output.error.ends_with(&want), "{output:?}");
    assert_eq!(operated.robots(), OPEN);
    for event in ["accept", "rollback", "enforcement"] {
        assert!(!operated.running.has_event(event, |_| true), "{event}: something was changed");
    }
    for (request, status) in [
        ("POST /enforce", 400),
        ("POST /enforce?to=of", 400),
        ("POST /enforce?to=off&sites=shop", 400),
        ("POST /enforce?to=off&site=", 400),
        ("POST /accept?site=shop", 400),
        ("POST /accept?site=shop&hash=zz", 400),
        ("GET /enforce?to=off", 405),
        ("GET /accept", 405),
        ("POST /history?site=shop", 405),
    ] {
        assert_eq!(super::admin::local(operated.running.admin(), request).status, status, "{request}");
    }
    // From a web page, or without saying that something is to change.
    let host = format!("Host: {}\r\n", operated.running.admin());
    for fields in [host.clone(), format!("{host}Robotsd-Admin: 1\r\nOrigin: http://evil.test\r\n")] {
        assert_eq!(super::admin::ask(operated.running.admin(), "POST /enforce?to=off", &fields).status, 403);
    }
    assert_eq!(operated.page("shop.test"), 403, "it was switched off");
}

#[test]
fn a_state_directory_is_for_one_robotsd_at_a_time() {
    let folder = site();
    let operated = Operated::start(&folder);
    let path = folder.at("robotsd.toml");
    let state = folder.at("state");
    let in_use = format!(
        "{}: process {} has the state directory open: stop it, or give each process a state directory of its own",
        state.display(),
        operated.running.id()
    );
    let second = run(robotsd().args(["serve", "--config"]).arg(&path));
    assert!(second.code != Some(0), "{second:?}");
    assert!(second.error.contains(&in_use), "{second:?}");
    // A config that names another address for the one that runs: what is decided is not written behind its back.
    let free = crate::harness::free();
    let elsewhere = folder.at("elsewhere.toml");
    fs::write(
        &elsewhere,
        CONFIG.replace("[admin]\naddress = \"127.0.0.1:0\"", &format!("[admin]\naddress = \"{free}\"")),
    )
    .unwrap();
    for arguments in [&["enforce", "off"][..], &["rollback", "shop"]] {
        let error = run(robotsd().args(arguments).arg("--config").arg(&elsewhere)).failed(2);
        let said = error;
        assert!(said.contains(&format!("{free}: no process listens there")) && said.contains(&in_use), "{said}");
        let way_out = format!("end it first (`kill {}`), and switch before the next start", operated.running.id());
        assert_eq!(
            said.contains(&way_out) && said.contains("--admin PLACE; else"),
            arguments[0] == "enforce",
            "{said}"
        );
    }
    // What only reads needs no lock.
    run(robotsd().args(["config", "check"]).arg(&path)).succeeded();
    assert_eq!((operated.page("shop.test"), operated.json(&["status"])["enforcement"].clone()), (403, "on".into()));
    drop(operated);
    // Killed: no lock is left.
    let operated = Operated::start(&folder);
    assert_eq!(operated.out(&["enforce", "off"]), "enforcement of every site is switched off\n");
}

#[test]
fn without_a_server_decisions_wait_in_the_state_directory() {
    let folder = site();
    Operated::start(&folder).end();
    folder.replace("robots.txt", SHUT);
    let operated = Operated::start(&folder);
    let hash = operated.site(0)["pending"]["hash"].as_str().unwrap().to_owned();
    operated.end();
    // A port that no server listens on.
    let free = crate::harness::free();
    let path = folder.at("robotsd.toml");
    let with = |config: &str| fs::write(&path, config).unwrap();
    let elsewhere = CONFIG.replace("[admin]\naddress = \"127.0.0.1:0\"", &format!("[admin]\naddress = \"{free}\""));
    with(&elsewhere);
    let command = |arguments: &[&str]| run(robotsd().args(arguments).arg("--config").arg(&path));
    let done = |arguments: &[&str]| {
        let output = command(arguments);
        assert!(output.code == Some(0), "{arguments:?}: {output:?}");
        let said = unfolded(&output.out);
        assert!(said.contains(&format!("{free}: no process listens there")), "{said}");
        assert!(said.contains("this holds from the next start"), "{said}");
        said
    };
    let failed = |arguments: &[&str]| {
        let output = command(arguments);
        assert_eq!(output.code, Some(2), "{arguments:?}: {output:?}");
        output.error
    };
    assert!(done(&["accept", "shop", &hash]).starts_with("site \"shop\": version "));
    done(&["enforce", "off", "--site", "the blog"]);
    assert!(
        failed(&["enforce", "off", "--site", "b"])
            .ends_with("; there is no site \"b\"; there is \"shop\", \"the blog\"\n")
    );
    assert!(failed(&["accept", "shop", "0123456789ab"]).contains("none does"));
    assert!(failed(&["rollback", "b"]).contains("there is no site \"b\""));
    with(CONFIG);
    let operated = Operated::start(&folder);
    assert_eq!((operated.robots(), operated.page("blog.test")), (SHUT.to_owned(), 200));
    operated.end();

    with(&elsewhere);
    done(&["rollback", "shop"]);
    // The switch works while the rest of the config does not.
    with(&elsewhere.replace("mode = \"refuse\"", "mode = \"refuze\""));
    done(&["enforce", "on", "--site", "the blog"]);
    done(&["enforce", "off"]);
    assert!(failed(&["rollback", "shop"]).contains("refuze"));
    with(CONFIG);
    let operated = Operated::start(&folder);
    assert_eq!(
        (operated.robots(), operated.page("shop.test"), operated.site(1)["switch"].clone()),
        (OPEN.to_owned(), 200, "on".into())
    );
    operated.end();

    with(&elsewhere.replace("state_dir = \"state\"\n", ""));
    for arguments in [&["enforce", "off"][..], &["rollback", "shop"]] {
        assert!(
            failed(arguments).ends_with("there is no state_dir, so it cannot be written down for the next start\n")
        );
    }
    with(&elsewhere);
    let report: Value = command(&["enforce", "on", "--json"]).json();
    assert_eq!((&report["kept"], &report["running"]), (&true.into(), &false.into()));
    let output = run(robotsd().args(["enforce", "off", "--admin", &free.to_string()]));
    assert!(
        output.error.ends_with("with --config FILE it is written to the state directory, for the next start\n"),
        "{output:?}"
    );
    let output = run(robotsd().args(["history", "shop", "--admin", &free.to_string()]));
    assert!(output.error.contains("no process listens there: robotsd does not run"), "{output:?}");
}

/// What `config check` says about the config of a folder, and its exit status.
fn checked(folder: &Folder) -> (Option<i32>, String) {
    let output = folder.configured(["config", "check"]);
    (output.code, output.error + &output.out)
}

#[test]
fn the_check_says_which_version_has_a_finding() {
    let folder = site();
    folder.replace("robots.txt", "User-agent: *\nDisalow: /drafts/\n");
    Operated::start(&folder).end();
    folder.replace("robots.txt", SHUT);
    let (code, said) = checked(&folder);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("the version of ") && said.contains("robots.txt that stays live:2:1: warning"), "{said}");
}

#[test]
fn a_kill_switch_that_cannot_be_read_is_found_by_the_check_and_named_by_the_log_and_the_status() {
    let folder = site();
    let state = folder.at("state");
    assert!(checked(&folder).1.contains("can be served; "));
    assert!(!state.exists(), "a check writes nothing");
    fs::create_dir_all(state.join("sites/shop")).unwrap();
    fs::write(state.join("sites/shop/enforcement"), "no").unwrap();
    // Where root runs this no mode keeps it out; a folder in place of the file does.
    fs::create_dir(state.join("enforcement")).unwrap();
    let (of_all, of_site) = (state.join("enforcement"), state.join("sites/shop/enforcement"));
    let (code, said) = checked(&folder);
    assert_eq!(code, Some(1), "{said}");
    for want in [
        format!(
            "{}: this is not a regular file; taken for \"off\", so nothing would be enforced for any site",
            of_all.display()
        ),
        format!(
            "site \"shop\": {}: this is neither \"on\" nor \"off\"; taken for \"off\", so nothing",
            of_site.display()
        ),
        "state_dir = \"state\"".to_owned(),
        "can be served, but not enforced: a kill switch cannot be read; listeners: ".to_owned(),
    ] {
        assert!(said.contains(&want), "{want}: {said}");
    }
    let operated = Operated::start(&folder);
    operated.running.wait_for_event("enforcement", |line| {
        let message = message(line);
        message.starts_with("OFF for every site, although it was not switched off: ")
            && message.contains(&of_all.display().to_string())
    });
    assert_eq!(operated.page("shop.test"), 200);
    let status = || {
        let output = operated.command(&["status"]);
        (unfolded(&output.out), output.code)
    };
    let (said, code) = status();
    assert!(said.contains("ENFORCEMENT IS OFF FOR EVERY SITE") && said.contains("not a regular file"), "{said}");
    assert!(said.contains("neither \"on\" nor \"off\""), "{said}");
    assert_eq!(code, Some(1), "no probe takes it for a success: {said}");
    // A switch that an operator turns off stays off.
    fs::remove_dir(&of_all).unwrap();
    operated.out(&["enforce", "on"]);
    operated.out(&["enforce", "on", "--site", "shop"]);
    operated.out(&["enforce", "off"]);
    operated.out(&["enforce", "off", "--site", "shop"]);
    assert_eq!(status().1, Some(0));
}

#[test]
fn the_check_finds_switches_that_are_off_and_a_version_that_waits_beside_the_one_that_is_live() {
    let folder = site();
    let operated = Operated::start(&folder);
    operated.out(&["enforce", "off"]);
    operated.out(&["enforce", "off", "--site", "the blog"]);
    let live = operated.site(0)["hash"].as_str().unwrap()[7..23].to_owned();
    operated.end();
    let (code, said) = checked(&folder);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("state: enforcement is switched off for every site: `robotsd enforce on` turns it on"),
        "{said}"
    );
    assert!(
        said.contains("`robotsd enforce on --site 'the blog'` turns it on") && said.contains(", warnings: 2"),
        "{said}"
    );
    // As the next start would do it: one version waits, and the other stays live.
    folder.replace("robots.txt", SHUT);
    let (code, said) = checked(&folder);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("waits to be accepted: everyone is shut out"), "{said}");
    assert!(said.contains(&format!("version {live} stays live")) && !said.contains("nothing is live"), "{said}");
}
