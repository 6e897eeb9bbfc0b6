//! Tests a config file that cannot be used while the previous config is served. The status must
//! report the rejected file, and since when it has been rejected.

use crate::harness::*;

const ADMIN: &str = "[admin]\naddress = \"127.0.0.1:0\"\nsocket = \"admin.sock\"\n";
const LISTENER: &str = "[[listener]]\naddress = \"127.0.0.1:0\"\n";
const SITE: &str = "[[site]]\nname = \"a\"\nroot = \".\"\n";
const ROBOTS: &str = "User-agent: GPTBot\nDisallow: /private/\n";

fn status(folder: &Folder) -> Ended {
    folder.with_config(&["status"])
}

fn config_of(folder: &Folder) -> Value {
    folder.with_config(&["status", "--json"]).json()["config"].take()
}

#[test]
fn the_status_and_the_readiness_probe_report_a_rejected_config_until_one_is_accepted() {
    let good = format!("mode = \"refuse\"\n{ADMIN}{LISTENER}{SITE}");
    let (folder, running) = serving(&[("robotsd.toml", &good), ("robots.txt", ROBOTS)]);
    let admin = running.admin();
    let probe = |target: &str| {
        let answer = admin_answer(admin, &format!("GET {target}"));
        (answer.status, answer.body)
    };
    status(&folder).succeeded();
    let accepted = config_of(&folder);
    assert_part(&accepted, &json!({ "state": "accepted", "rejected": null }));
    assert_eq!(probe("/readyz?require=config"), (200, "ready\n".to_owned()));
    let reject = |text: &str, why: &str| {
        folder.configure(text);
        running.wait_for_message("config-rejected", why);
    };

    // The file cannot be parsed, so its settings cannot be compared.
    reject(&format!("no_such_key = 1\n{good}"), "no_such_key");
    let text = status(&folder).ends_with(1).out;
    let parts = ["CONFIG REJECTED since 20", "no_such_key", "robotsd.toml:1:1"];
    assert_has(unfolded(&text), &[&parts[..], &["the config that was accepted 20", "robotsd config check "]].concat());
    assert!(text.lines().all(|line| line.chars().count() <= 80 || !line.contains(' ')), "{text}");
    let first = config_of(&folder);
    assert_part(&first, &json!({ "state": "rejected", "accepted": accepted["accepted"] }));
    assert_eq!(first["rejected"]["held_back"], Value::Null);
    let (code, body) = probe("/readyz");
    assert_eq!(code, 200);
    assert_has(body, &["the config has been rejected since 20", "no_such_key"]);
    for (require, code) in [
        ("require=config", 503),
        ("require=sites", 200),
        ("require=sites,config", 503),
        ("require=sites&require=config", 503),
        ("require=config,luck", 400),
    ] {
        assert_eq!(probe(&format!("/readyz?{require}")).0, code, "{require}");
    }

    // This config is unusable for another reason. The status must report the settings that would
    // change, and the time of the first rejection.
    let elsewhere = "[[listener]]\naddress = \"192.0.2.1:1\"\n";
    reject(&format!("mode = \"tag\"\nworkers = 7\n{ADMIN}{LISTENER}{elsewhere}{SITE}"), "192.0.2.1:1");
    let second = config_of(&folder)["rejected"].take();
    assert_eq!(second["since"], first["rejected"]["since"]);
    let mode = row(&second["held_back"], "setting", "mode");
    assert_part(mode, &json!({ "running": "refuse", "file": "tag", "site": null }));
    assert_has(status(&folder).ends_with(1).out, &["mode is refuse, in the file tag"]);

    // The restored file is the served config.
    folder.configure(&good);
    wait_until("the config before", || probe("/readyz?require=config").0 == 200);
    status(&folder).succeeded();
    assert_eq!(config_of(&folder), accepted);
    running.wait_for_event("config", |line| {
        message(line).ends_with("the config is valid again, and does not differ from the config in use")
    });

    // Another config that is accepted also ends the rejection. A missing file is rejected, too.
    folder.remove("robotsd.toml");
    running.signal("HUP");
    running.wait_for_message("config-rejected", "cannot be read");
    folder.configure(good.replace("refuse", "tag"));
    running.wait_for_event("config-changed", |line| line["after"] == "tag");
    wait_until("the other config", || probe("/readyz?require=config").0 == 200);
    assert_ne!(config_of(&folder)["accepted"], Value::Null);
}

#[test]
fn the_running_robotsd_can_be_reached_while_its_config_has_errors() {
    let good = format!("mode = \"refuse\"\n{ADMIN}{LISTENER}{SITE}");
    let (folder, running) = serving(&[("robotsd.toml", &good), ("robots.txt", ROBOTS)]);
    let ends = |arguments: &[&str], code: i32| unfolded(&folder.with_config(arguments).ends_with(code).said());
    let page = || running.get("/private/x", GPTBOT).status;
    for (faulty, why) in [
        // One config has a syntax error above the table `[admin]`, and one has a typo in the table.
        (format!("mode = refuse\n{ADMIN}{LISTENER}{SITE}"), "string values must be quoted"),
        (good.replace("address = \"127.0.0.1:0\"\nsocket", "hots = []\nsocket"), "[admin] has no key \"hots\""),
    ] {
        folder.configure(&faulty);
        running.wait_for_message("config-rejected", why);
        for (switch, status) in [("off", 404), ("on", 403)] {
            ends(&["enforce", switch], 0);
            assert_eq!(page(), status, "{why}");
        }
        assert_has(ends(&["status"], 1), &["CONFIG REJECTED"]);
        ends(&["history", "a"], 0);
        assert_has(ends(&["accept", "a"], 0), &["no version is pending"]);
        assert_has(ends(&["reload"], 1), &["config: kept:"]);
    }
    // The command must work even if the address cannot be read, or if the file does not exist.
    folder.configure(good.replace("[admin]", "[admin"));
    ends(&["enforce", "off"], 0);
    assert_eq!(page(), 404);
    folder.remove("robotsd.toml");
    ends(&["enforce", "on"], 0);
    assert_eq!(page(), 403);
}

#[test]
fn a_rejected_config_is_tried_again_when_its_problem_is_solved() {
    let good = format!("mode = \"refuse\"\n{ADMIN}{LISTENER}{SITE}");
    let (folder, running) = serving(&[("robotsd.toml", &good), ("robots.txt", ROBOTS)]);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let config = format!("mode = \"refuse\"\n{ADMIN}{LISTENER}[[listener]]\naddress = \"{address}\"\n{SITE}");
    folder.configure(&config);
    running.wait_for_message("config-rejected", &address.to_string());
    let first = config_of(&folder)["rejected"].take();
    // The config is read again when the file is written. The status shows this time in seconds.
    wait_until("another try", || {
        folder.configure(&config);
        thread::sleep(Duration::from_secs(1));
        config_of(&folder)["rejected"]["tried"] != first["tried"]
    });
    assert_eq!(running.events("config-rejected"), 1);
    // From here on, nobody requests a reload.
    drop(taken);
    running.wait_for_message("listening", &address.to_string());
    status(&folder).succeeded();
}
