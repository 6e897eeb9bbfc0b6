//! Tests the gate, which a version must pass before it goes live, and its state across restarts.

use tower_robots::live::VersionHash;

use crate::harness::*;

const OPEN: &str = "User-agent: *\nDisallow: /drafts/\n";
const SHUT: &str = "User-agent: *\nDisallow: /\n";

fn config(more: &str) -> Config {
    let config = Config::refusing().keys("state_dir = \"state\"").files_of("shop").tables(more);
    config.file("page.html", "hello")
}

fn gated(running: &Running) -> String {
    message(&running.event("gated")).to_owned()
}

#[test]
fn a_held_first_version_is_not_enforced_and_robots_txt_gets_status_503() {
    let (_folder, running) = config("").robots(SHUT).start();
    assert_has(gated(&running), &["everyone is blocked"]);
    let answer = running.get("/robots.txt", GPTBOT);
    assert_eq!((answer.status, answer.field("retry-after").is_some()), (503, true));
    assert_eq!(running.get("/page.html", GPTBOT).status, 200);
}

/// Returns the response to the readiness probe of a roll-out.
fn rollout(running: &Running) -> (u16, String) {
    let answer = running.ask_admin("GET /readyz?require=sites");
    (answer.status, answer.body)
}

/// A replica without a live version responds to requests for /robots.txt with 503, which crawlers
/// treat as "disallow everything". Therefore, old replicas must stay in rotation.
#[test]
fn a_replica_with_a_held_first_version_is_not_ready_and_shows_the_accept_command() {
    let (folder, running) = config("").admin().robots(SHUT).start();
    let said = gated(&running);
    let file = folder.at("robots.txt").display().to_string();
    let parts = [
        "site \"shop\" has no robots.txt: nothing is enforced",
        "everyone is blocked",
        "`robotsd accept shop ",
        "accept = [\"",
        &format!("correct {file}"),
    ];
    assert_has(&said, &parts);
    assert_eq!(rollout(&running), (503, format!("{said}\n")));
    let ready = running.ask_admin("GET /readyz");
    assert_eq!((ready.status, ready.body), (200, format!("ready\n{said}\n")));
    // The status must report the same and exit with status 1, because an operator has to decide.
    let problems = || running.json(&["status"])["sites"][0]["problems"].take();
    assert_eq!(problems(), json!([said]));
    assert_has(unfolded(&running.command(&["status"]).ends_with(1).out), &[&unfolded(&said)]);
    assert_eq!(running.get("/robots.txt", GPTBOT).status, 503);

    let command = said.split('`').nth(1).unwrap().strip_prefix("robotsd ").unwrap();
    running.command(&command.split(' ').collect::<Vec<_>>()).succeeded();
    assert_eq!(rollout(&running), (200, "ready\n".to_owned()));
    assert_eq!(running.get("/robots.txt", GPTBOT).body, SHUT);
    assert_eq!(problems(), json!([]));
}

/// The config key in the message must also make the version live on other replicas, which have no
/// stored state.
#[test]
fn the_accept_key_from_the_message_makes_the_version_live_on_other_replicas() {
    let base = config("").admin().robots(SHUT);
    let (folder, running) = base.start();
    let said = gated(&running);
    let (_, key) = said.split_once("put ").unwrap();
    let (key, _) = key.split_once(" in [gate]").unwrap();
    let accepting = base.tables(format!("[gate]\n{key}"));
    folder.configure(&accepting);
    wait_until("the site to be ready", || rollout(&running).0 == 200);
    drop(running);
    let (_next, running) = accepting.start();
    assert_eq!(rollout(&running), (200, "ready\n".to_owned()));
    assert_eq!(running.get("/robots.txt", GPTBOT).body, SHUT);
}

/// The bad file of a site that is added later must not take all replicas out of rotation.
#[test]
fn a_running_replica_stays_ready_if_an_added_site_has_a_held_first_version() {
    let (folder, running) = config("").admin().robots(OPEN).file("new.txt", SHUT).start();
    assert_eq!(rollout(&running), (200, "ready\n".to_owned()));
    let new = "hosts = [\"new.test\"]\nroot = \".\"\nrobots.path = \"new.txt\"";
    folder.configure(config("hosts = [\"site.test\"]").site("new", new).admin());
    let said = gated(&running);
    wait_until("the new site", || rollout(&running).1.contains("new"));
    assert_eq!(rollout(&running), (200, format!("ready\n{said}\n")));
    drop(running);
    // A replica that starts with this file is not ready. The other replicas must continue.
    let running = folder.start();
    assert_eq!(rollout(&running), (503, format!("{said}\n")));
}

#[test]
fn a_host_moved_to_a_new_site_keeps_its_file_until_the_new_one_is_accepted() {
    let (folder, running) = config("hosts = [\"a.test\", \"b.test\"]").robots(OPEN).file("b.txt", SHUT).start();
    let new = "hosts = [\"b.test\"]\nroot = \".\"\nrobots.path = \"b.txt\"";
    folder.configure(config("hosts = [\"a.test\"]").site("b", new));
    running.wait_for_message(
        "config",
        "site \"b\" is new. It has hosts of the site \"shop\", and continues with the versions of that site",
    );
    running.wait_for_event("gated", |line| line["site"] == "b");
    for host in ["a.test", "b.test"] {
        running.request("GET", "/robots.txt", &[("Host", host)]).comes_with(200, OPEN);
    }
}

#[test]
fn a_site_renamed_between_restarts_keeps_its_live_version_and_off_switch() {
    let named = |name: &str| {
        let config = Config::refusing().keys("state_dir = \"state\"").site(name, "root = \".\"\nhosts = [\"a.test\"]");
        config.admin().file("drafts/x.html", "hello")
    };
    let (folder, running) = named("shop").robots(OPEN).start();
    let draft = [("Host", "a.test"), ("User-Agent", GPTBOT)];
    assert_eq!(running.request("GET", "/drafts/x.html", &draft).status, 403);
    running.command(&["enforce", "off", "--site", "shop"]).succeeded();
    folder.write("robots.txt", SHUT);
    gated(&running);
    let kept = folder.at("state/sites/shop/state.json");
    let is_kept = || fs::read_to_string(&kept).is_ok_and(|kept| kept.contains("objections"));
    wait_until("what waits, and the hosts, to be written", || is_kept() && folder.at("state/hosts.json").exists());
    drop(running);
    folder.configure(named("store"));
    let checked = folder.configured(["config", "check"]).error;
    assert_has(&checked, &["enforcement is switched off: to switch it on, run `robotsd enforce on --site store`"]);
    assert_lacks(&checked, &["no site has this name"]);
    let running = folder.start();
    let want = "site \"store\" is new. It has hosts of the site \"shop\", and continues with the versions of that site; enforcement is off, because it was switched off for these hosts before";
    running.wait_for_message("config", want);
    running.request("GET", "/robots.txt", &[("Host", "a.test")]).comes_with(200, OPEN);
    assert_eq!(running.request("GET", "/drafts/x.html", &draft).status, 200);
}

#[test]
fn a_restart_holds_a_version_that_blocks_everyone_until_the_config_accepts_it() {
    let (folder, running) = config("").robots(OPEN).start();
    // The live version is saved after it is published, so the test waits for the file before the
    // kill.
    let state = folder.at("state/sites/shop/state.json");
    wait_until("the version to be remembered", || state.exists());
    drop(running);
    folder.write("robots.txt", SHUT);
    let running = folder.start();
    let message = gated(&running);
    assert_has(&message, &["everyone is blocked", "version "]);
    running.get("/robots.txt", FIREFOX).comes_with(200, OPEN);
    drop(running);
    // The config accepts the version by the part of its hash that the message contains.
    let hash = message.split("version ").nth(1).unwrap();
    let hash: String = hash.chars().take_while(char::is_ascii_hexdigit).collect();
    folder.configure(config(&format!("[gate]\naccept = [\"{hash}\"]")));
    let running = folder.start();
    assert_eq!(running.get("/robots.txt", FIREFOX).body, SHUT);
}

/// If a file loses its rules, for example because it has lost its line breaks, the previous rules
/// must stay in force.
#[test]
fn a_version_without_rules_is_held_unless_it_allows_everything_explicitly() {
    let good = "User-agent: *\nDisallow: /private/\nAllow: /private/open\n\nUser-agent: GPTBot\nDisallow: /\n";
    let (folder, running) = config("").robots(good).start();
    let joined = good.replace('\n', "\\n");
    for lost in [&*joined, "User-agent: *\nDisallow: {{ private_path }}\n"] {
        folder.replace("robots.txt", lost);
        running.wait_for_message("gated", &VersionHash::of(lost.as_bytes()).short());
        assert_eq!(running.get("/page.html", GPTBOT).status, 403, "{lost}");
        assert_eq!(running.get("/robots.txt", GPTBOT).body, good);
    }
    let said = running.all("gated").iter().map(|line| message(line).to_owned()).collect::<Vec<_>>();
    assert_has(&said[0], &["the file no longer contains any rule (before: 2): line 1 contains several directives"]);
    let parts =
        ["the file no longer contains any rule (before: 2)", "write \"User-agent: *\" with an empty \"Disallow:\""];
    assert_has(&said[1], &parts);
    let open = "User-agent: *\nDisallow:\n";
    folder.replace("robots.txt", open);
    wait_until("the open version", || running.get("/robots.txt", FIREFOX).body == open);
    assert_eq!(running.get("/page.html", GPTBOT).status, 200);
}

#[test]
fn a_file_that_ends_within_a_field_is_rejected_and_a_truncated_version_is_held() {
    let good = "User-agent: *\nDisallow: /private/\n\nUser-agent: GPTBot\nDisallow: /\n";
    let head = "User-agent: *\nDisallow: /new/\n";
    for gate in ["", "[gate]\nenabled = false"] {
        let (folder, running) = config(gate).robots(good).start();
        for (number, end) in ["Disal", "Disallow", "User-agent:", "Sitem"].into_iter().enumerate() {
            folder.replace("robots.txt", format!("{head}{end}"));
            wait_until(end, || running.events("rejected") > number);
            let said = message(&running.all("rejected")[number]).to_owned();
            assert_has(said, &["line 3", "end the file with a line break"]);
            assert_eq!(running.get("/page.html", GPTBOT).status, 403, "{end}");
            folder.replace("robots.txt", good);
            wait_until("the good file", || running.events("unchanged") > number);
        }
        // The writer completes the file.
        let whole = format!("{head}User-agent: GPTBot\nDisallow: /");
        folder.replace("robots.txt", &whole);
        wait_until("the whole file", || running.get("/robots.txt", FIREFOX).body == whole);
    }
    let (folder, running) = config("").robots(good).start();
    let cut = &good[..good.rfind(" /").unwrap()];
    folder.replace("robots.txt", cut);
    assert_has(gated(&running), &["the file contains only the beginning of the previous version, up to line 5"]);
    assert_eq!(running.get("/page.html", GPTBOT).status, 403);
    // Without a version to compare it with, this file goes live, and allows GPTBot everything.
    let (_folder, running) = config("").robots(cut).start();
    assert_eq!(running.get("/page.html", GPTBOT).status, 200);
}

#[test]
fn a_version_that_violates_must_allow_or_an_expectation_is_held() {
    let gate = "[site.robots]\nexpectations = \"expected.toml\"\n\
                [gate]\nmust_allow = [{ agents = [\"Googlebot\"], paths = [\"/shop/\"] }]\n";
    let expected = "[[allow]]\nagents = [\"bingbot\"]\npaths = [\"/blog/\"]\n";
    let (folder, running) = config(gate).robots(OPEN).file("expected.toml", expected).start();
    for (refused, why) in [("/shop/", "Googlebot"), ("/blog/", "bingbot")] {
        folder.replace("robots.txt", format!("{OPEN}Disallow: {refused}\n"));
        running.wait_for_message("gated", why);
        assert_eq!(running.get("/robots.txt", FIREFOX).body, OPEN);
        folder.write("robots.txt", OPEN);
        running.event("unchanged");
    }
}

#[test]
fn new_rules_are_only_observed_during_their_grace_period() {
    let (folder, running) = config("").keys("grace = \"1h\"").robots(OPEN).start();
    let longer = format!("{OPEN}Disallow: /page\n");
    folder.write("robots.txt", &longer);
    wait_until("the new version", || running.get("/robots.txt", FIREFOX).body == longer);
    assert_eq!(running.get("/page.html", GPTBOT).status, 200);
    let first = running.wait_for_event("observed", |line| line["reason"] == "grace");
    let said = format!("2 rules are enforced from {} at the latest", first["grace_end"].as_str().unwrap());
    assert_eq!(message(&first), said);
    // The message about the new rules must not be logged again, whichever worker handles the next
    // request.
    for _ in 0..8 {
        assert_eq!(running.get("/page.html", GPTBOT).status, 200);
    }
    wait_until("their lines", || running.count("observed", |line| line["reason"] == "grace") == 9);
    assert_eq!(running.count("observed", |line| line.get("message").is_some()), 1);
    // In the mode `observe`, the log must contain the future action, and when it begins.
    folder.configure(folder.read("robotsd.toml").replace("mode = \"refuse\"", "mode = \"observe\""));
    running.event("config");
    assert_eq!(running.get("/page.html", GPTBOT).status, 200);
    let in_grace = |line: &Value| line["reason"] == "observed" && line["grace_end"].is_string();
    running.wait_for_event("observed", |line| in_grace(line) && line["would"] == "refuse");
}

/// The test uses `refuse_findings`, like the shipped config.
#[test]
fn a_file_with_an_error_is_held_even_if_it_is_the_first_version() {
    let (bad, good) = ("User-agent: *\nDisallow: drafts/\n", "User-agent: *\nDisallow: /drafts/\n");
    let (folder, running) = config("[gate]\nrefuse_findings = \"error\"").admin_socket().robots(bad).start();
    let parts = ["has no robots.txt: nothing is enforced, because version", "\"drafts/\" begins with"];
    assert_has(gated(&running), &parts);
    assert_eq!(running.get("/robots.txt", FIREFOX).status, 503);
    let status = |code| {
        wait_for("a status", || Some(folder.with_config(&["status"])).filter(|ended| ended.code == Some(code))).out
    };
    assert_has(status(1), &["nothing is enforced", "robotsd accept shop "]);
    assert_has(folder.configured(["config", "check"]).failed(1), &["\"drafts/\" begins with"]);
    folder.write("robots.txt", good);
    wait_until("the corrected file", || running.get("/robots.txt", FIREFOX).body == good);
    status(0);
    folder.write("robots.txt", bad);
    running.wait_for_event("gated", |line| line["reason"] != "start");
    assert_eq!(running.get("/robots.txt", FIREFOX).body, good);
    status(1);
}
