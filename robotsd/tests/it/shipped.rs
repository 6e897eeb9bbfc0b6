//! The files in `config/` that an operator begins with.

use crate::harness::*;

const ROBOTS: &str = "User-agent: GPTBot\nDisallow: /drafts/\n";

/// The config for production, with the paths and ports of a test.
fn production(folder: &std::path::Path, upstream: &str) -> String {
    let text = std::fs::read_to_string(project("config/production.toml")).unwrap();
    let mut adapted = text.clone();
    let here = |name: &str| folder.join(name).display().to_string();
    for (shipped, here) in [
        ("/var/lib/robotsd", here("state")),
        ("/etc/robotsd/robots.txt", here("robots.txt")),
        ("/run/robotsd/admin.sock", here("admin.sock")),
        ("127.0.0.1:8080", "127.0.0.1:0".to_owned()),
        ("http://127.0.0.1:3000", upstream.to_owned()),
        ("\"example.com\"", "\"site.test\"".to_owned()),
    ] {
        assert!(adapted.contains(shipped), "{shipped}");
        adapted = adapted.replace(shipped, &here);
    }
    adapted
}

#[test]
fn the_config_for_production_passes_its_check_and_observes() {
    let origin = Origin::start();
    let folder = folder(&[("robots.txt", ROBOTS)]);
    let path = folder.at("robotsd.toml");
    std::fs::write(&path, production(folder.path(), &format!("http://{origin}"))).unwrap();
    let checked = run(robotsd().args(["config", "check"]).arg(&path));
    assert_eq!(checked.error, "", "it has no warning and no note");
    assert_eq!(checked.code, Some(0));
    let mut running = folder.start();
    assert_eq!(running.get("/robots.txt", GPTBOT).body, ROBOTS);
    assert_eq!(running.get("/drafts/x", GPTBOT).status, 200);
    running.wait_for_event("observed", |line| line["path"] == "/drafts/x");
    assert_eq!(running.get("/drafts/x", FIREFOX).status, 200);
    // The command finds the socket by the config, and by the environment that names it.
    for command in [
        robotsd().args(["status", "--config"]).arg(&path),
        robotsd().arg("status").env("ROBOTSD_CONFIG", &path),
        robotsd().args(["status", "--admin", "admin.sock"]).current_dir(folder.path()),
    ] {
        let out = run(command).succeeded();
        assert!(out.contains("mode:       observe"));
    }
    running.end();
    assert!(folder.at("state").is_dir());
}

#[test]
fn every_line_of_the_config_for_production_is_explained() {
    let text = std::fs::read_to_string(project("config/production.toml")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    for (number, line) in lines.iter().enumerate() {
        let is_key = line.contains(" = ") && !line.starts_with('#');
        // Two keys of one comment stand below each other.
        let above = lines[..number].iter().rev().find(|line| !line.contains(" = ") || line.starts_with('#'));
        assert!(!is_key || above.is_some_and(|line| line.starts_with('#')), "{line}");
    }
}
