//! A config file that cannot be used, while the one before is served: what the status says about it, and for how long.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::harness::{admin_answer, folder, message, replace_file, robotsd, run};

const ADMIN: &str = "[admin]\naddress = \"127.0.0.1:0\"\nsocket = \"admin.sock\"\n";
const LISTENER: &str = "[[listener]]\naddress = \"127.0.0.1:0\"\n";
const SITE: &str = "[[site]]\nname = \"a\"\nroot = \".\"\n";

fn status(folder: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output = run(robotsd().arg("status").args(arguments).arg("--config").arg(folder.join("robotsd.toml")));
    (output.code, output.out)
}

fn config_of(folder: &Path) -> Value {
    serde_json::from_str::<Value>(&status(folder, &["--json"]).1).unwrap()["config"].clone()
}

#[test]
fn a_rejected_config_is_in_the_status_and_the_probe_until_one_is_accepted() {
    let good = format!("mode = \"refuse\"\n{ADMIN}{LISTENER}{SITE}");
    let folder = folder(&[("robotsd.toml", &good), ("robots.txt", "User-agent: GPTBot\nDisallow: /private/\n")]);
    let path = folder.at("robotsd.toml");
    let running = folder.start();
    let admin = running.admin();
    let probe = |target: &str| {
        let answer = admin_answer(admin, &format!("GET {target}"));
        (answer.status, answer.body)
    };
    assert_eq!(status(folder.path(), &[]).0, Some(0));
    let accepted = config_of(folder.path());
    assert_eq!((&accepted["state"], &accepted["rejected"]), (&"accepted".into(), &Value::Null));
    assert_eq!(probe("/readyz?require=config"), (200, "ready\n".to_owned()));
    let reject = |text: &str, why: &str| {
        replace_file(&path, text);
        running.wait_for_message("config-rejected", why);
    };

    // It cannot be read so far that settings could be compared.
    reject(&format!("no_such_key = 1\n{good}"), "no_such_key");
    let (code, text) = status(folder.path(), &[]);
    assert_eq!(code, Some(1), "{text}");
    for said in [
        "CONFIG REJECTED since 20",
        "no_such_key",
        "robotsd.toml:1:1",
        "the config accepted 20",
        "robotsd config check ",
    ] {
        assert!(text.split_whitespace().collect::<Vec<_>>().join(" ").contains(said), "{said}: {text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80 || !line.contains(' ')), "{text}");
    let first = config_of(folder.path());
    assert_eq!((&first["state"], &first["accepted"]), (&"rejected".into(), &accepted["accepted"]));
    assert_eq!(first["rejected"]["held_back"], Value::Null);
    let (code, body) = probe("/readyz");
    assert!(code == 200 && body.contains("the config is rejected since 20") && body.contains("no_such_key"), "{body}");
    assert_eq!(probe("/readyz?require=config").0, 503);
    assert_eq!(probe("/readyz?require=sites").0, 200);
    assert_eq!(probe("/readyz?require=sites,config").0, 503);
    assert_eq!(probe("/readyz?require=sites&require=config").0, 503);
    assert_eq!(probe("/readyz?require=config,luck").0, 400);

    // Another one that cannot be used: what is held back can be said, and it is rejected since the first.
    let elsewhere = "[[listener]]\naddress = \"192.0.2.1:1\"\n";
    reject(&format!("mode = \"tag\"\nworkers = 7\n{ADMIN}{LISTENER}{elsewhere}{SITE}"), "192.0.2.1:1");
    let second = config_of(folder.path());
    assert_eq!(second["rejected"]["since"], first["rejected"]["since"]);
    let held_back = second["rejected"]["held_back"].as_array().unwrap();
    let mode = held_back.iter().find(|setting| setting["setting"] == "mode").unwrap();
    assert_eq!((&mode["running"], &mode["file"], &mode["site"]), (&"refuse".into(), &"tag".into(), &Value::Null));
    let (code, text) = status(folder.path(), &[]);
    assert!(code == Some(1) && text.contains("mode is refuse, in the file tag"), "{text}");

    // The file as it was is what is served.
    replace_file(&path, &good);
    crate::harness::wait_until("the config before", || probe("/readyz?require=config").0 == 200);
    assert_eq!(status(folder.path(), &[]).0, Some(0));
    assert_eq!(config_of(folder.path()), accepted);
    running
        .wait_for_event("config", |line| message(line).ends_with("the file is accepted again: it says what is served"));

    // So is another one that is accepted; a file that is gone is rejected, too.
    fs::remove_file(&path).unwrap();
    running.signal("HUP");
    running.wait_for_message("config-rejected", "cannot be read");
    replace_file(&path, good.replace("refuse", "tag"));
    running.wait_for_event("config-changed", |line| line["after"] == "tag");
    crate::harness::wait_until("the other config", || probe("/readyz?require=config").0 == 200);
    assert_ne!(config_of(folder.path())["accepted"], Value::Null);
}

#[test]
fn the_running_robotsd_is_reached_while_its_config_has_faults() {
    let good = format!("mode = \"refuse\"\n{ADMIN}{LISTENER}{SITE}");
    let folder = folder(&[("robotsd.toml", &good), ("robots.txt", "User-agent: GPTBot\nDisallow: /private/\n")]);
    let path = folder.at("robotsd.toml");
    let running = folder.start();
    let command = |arguments: &[&str]| {
        let output = run(robotsd().args(arguments).arg("--config").arg(&path));
        (output.code, output.said().split_whitespace().collect::<Vec<_>>().join(" "))
    };
    let page = || running.get("/private/x", crate::harness::GPTBOT).status;
    for (faulty, why) in [
        // A syntax error above the table, and a typo in it.
        (format!("mode = refuse\n{ADMIN}{LISTENER}{SITE}"), "text is written in quotes"),
        (good.replace("address = \"127.0.0.1:0\"\nsocket", "hots = []\nsocket"), "[admin] has no key \"hots\""),
    ] {
        replace_file(&path, &faulty);
        running.wait_for_message("config-rejected", why);
        assert_eq!((command(&["enforce", "off"]).0, page()), (Some(0), 404), "{why}");
        assert_eq!((command(&["enforce", "on"]).0, page()), (Some(0), 403), "{why}");
        let (code, status) = command(&["status"]);
        assert!(code == Some(1) && status.contains("CONFIG REJECTED"), "{status}");
        assert_eq!(command(&["history", "a"]).0, Some(0));
        let (code, accept) = command(&["accept", "a"]);
        assert!(code == Some(2) && accept.contains("no version waits"), "{accept}");
        let (code, reload) = command(&["reload"]);
        assert!(code == Some(1) && reload.contains("config: kept:"), "{reload}");
    }
    // Where the place itself cannot be read, the message says how to name it.
    replace_file(&path, good.replace("[admin]", "[admin"));
    let (code, said) = command(&["enforce", "off"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("robotsd.toml:2:") && said.ends_with("name that with --admin PLACE"), "{said}");
    let socket = folder.at("admin.sock");
    assert!(run(robotsd().args(["enforce", "off", "--admin"]).arg(&socket)).code == Some(0));
    assert_eq!(page(), 404);
}
