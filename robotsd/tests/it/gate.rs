//! A gate before what goes live, and what is remembered of it over restarts.

use std::fs;

use super::process::{FIREFOX, GPTBOT, Running, folder, wait_for};

const OPEN: &str = "User-agent: *\nDisallow: /drafts/\n";
const SHUT: &str = "User-agent: *\nDisallow: /\n";

fn config(more: &str) -> String {
    format!(
        "mode = \"refuse\"\nstate_dir = \"state\"\n[[listener]]\naddress = \"127.0.0.1:0\"\n\
         [[site]]\nname = \"shop\"\nroot = \".\"\n{more}"
    )
}

fn gated(running: &Running) -> String {
    running.wait_for_event("gated", |_| true)["message"].as_str().unwrap().to_owned()
}

#[test]
fn a_first_version_that_shuts_everyone_out_is_not_invented_into_a_disallow() {
    let folder = folder(&[("robotsd.toml", &config("")), ("robots.txt", SHUT), ("page.html", "hello")]);
    let running = Running::start(folder.path());
    assert!(gated(&running).contains("everyone is shut out"), "{}", gated(&running));
    let answer = running.get("/robots.txt", GPTBOT);
    assert_eq!((answer.status, answer.field("retry-after").is_some()), (503, true));
    assert_eq!(running.get("/page.html", GPTBOT).status, 200);
}

#[test]
fn a_staging_file_shipped_by_restart_does_not_go_live() {
    let folder = folder(&[("robotsd.toml", &config("")), ("robots.txt", OPEN)]);
    let running = Running::start(folder.path());
    // What is live is written behind it, and the end of the process here waits for nothing.
    let state = folder.path().join("state/sites/shop/state.json");
    wait_for("the version to be remembered", || state.exists().then_some(()));
    drop(running);
    fs::write(folder.path().join("robots.txt"), SHUT).unwrap();
    let running = Running::start(folder.path());
    let message = gated(&running);
    assert!(message.contains("everyone is shut out") && message.contains("sha256:"), "{message}");
    let answer = running.get("/robots.txt", FIREFOX);
    assert_eq!((answer.status, &*answer.body), (200, OPEN));
    drop(running);
    // Accepted in the config, by its whole hash.
    let hash = message.split("sha256:").nth(1).unwrap();
    let hash: String = hash.chars().take_while(char::is_ascii_hexdigit).collect();
    let accept = format!("[gate]\naccept = [\"sha256:{hash}\"]\n");
    fs::write(folder.path().join("robotsd.toml"), config(&accept)).unwrap();
    let running = Running::start(folder.path());
    assert_eq!(running.get("/robots.txt", FIREFOX).body, SHUT);
}

#[test]
fn what_must_be_allowed_and_what_is_expected_is_asked_of_every_version() {
    let gate = "[site.robots]\nexpectations = \"expected.toml\"\n\
                [gate]\nmust_allow = [{ agents = [\"Googlebot\"], paths = [\"/shop/\"] }]\n";
    let expected = "[[allow]]\nagents = [\"bingbot\"]\npaths = [\"/blog/\"]\n";
    let folder = folder(&[("robotsd.toml", &config(gate)), ("robots.txt", OPEN), ("expected.toml", expected)]);
    let running = Running::start(folder.path());
    let path = folder.path().join("robots.txt");
    for (refused, why) in [("/shop/", "Googlebot"), ("/blog/", "bingbot")] {
        fs::write(&path, format!("{OPEN}Disallow: {refused}\n")).unwrap();
        running.wait_for_event("gated", |line| line["message"].as_str().unwrap().contains(why));
        assert_eq!(running.get("/robots.txt", FIREFOX).body, OPEN);
        fs::write(&path, OPEN).unwrap();
        let back = || running.has_event("unchanged", |_| true).then_some(());
        wait_for("the good version is seen again", back);
    }
}

#[test]
fn new_rules_only_observe_while_they_are_new() {
    let grace = "[site.enforcement]\ngrace = \"1h\"\n";
    let folder = folder(&[("robotsd.toml", &config(grace)), ("robots.txt", OPEN), ("page.html", "hello")]);
    let running = Running::start(folder.path());
    let longer = format!("{OPEN}Disallow: /page\n");
    fs::write(folder.path().join("robots.txt"), &longer).unwrap();
    wait_for("the new version", || (running.get("/robots.txt", FIREFOX).body == longer).then_some(()));
    assert_eq!(running.get("/page.html", GPTBOT).status, 200);
    running.wait_for_event("observed", |line| line["reason"] == "grace");
}
