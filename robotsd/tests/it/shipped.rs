//! Tests the files in `config/`, from which operators make their own config.

use super::programs::debian;
use super::prometheus::Prometheus;
use crate::harness::*;

const ROBOTS: &str = "User-agent: GPTBot\nDisallow: /drafts/\n";

/// Returns the production config, adapted to the paths and ports of a test.
fn production(folder: &Path, upstream: &str) -> String {
    let text = fs::read_to_string(project("config/production.toml")).unwrap();
    let mut adapted = text.clone();
    let here = |name: &str| folder.join(name).display().to_string();
    for (shipped, here) in [
        ("/var/lib/robotsd", here("state")),
        ("/etc/robotsd/robots.txt", here("robots.txt")),
        ("/run/robotsd/admin.sock", here("admin.sock")),
        ("127.0.0.1:8080", "127.0.0.1:0".to_owned()),
        ("127.0.0.1:9145", "127.0.0.1:0".to_owned()),
        ("http://127.0.0.1:3000", upstream.to_owned()),
        ("\"example.com\"", "\"site.test\"".to_owned()),
    ] {
        assert!(adapted.contains(shipped), "{shipped}");
        adapted = adapted.replace(shipped, &here);
    }
    adapted
}

#[test]
fn the_production_config_passes_the_check_and_only_observes_requests() {
    let origin = Origin::start();
    let folder = folder(&[("robots.txt", ROBOTS)]);
    let path = folder.at("robotsd.toml");
    fs::write(&path, production(folder.path(), &format!("http://{origin}"))).unwrap();
    let checked = run(robotsd().args(["config", "check"]).arg(&path));
    assert_eq!(checked.error, "", "it has no warning and no note");
    assert_eq!(checked.code, Some(0));
    let mut running = folder.start();
    assert_eq!(running.get("/robots.txt", GPTBOT).body, ROBOTS);
    assert_eq!(running.get("/drafts/x", GPTBOT).status, 200);
    running.wait_for_event("observed", |line| line["path"] == "/drafts/x");
    assert_eq!(running.get("/drafts/x", FIREFOX).status, 200);
    // The command finds the socket through the config and the environment variable.
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
fn every_key_of_the_production_config_is_explained_by_a_comment() {
    let text = fs::read_to_string(project("config/production.toml")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    for (number, line) in lines.iter().enumerate() {
        let is_key = line.contains(" = ") && !line.starts_with('#');
        // Two keys with a common comment are on consecutive lines.
        let above = lines[..number].iter().rev().find(|line| !line.contains(" = ") || line.starts_with('#'));
        assert!(!is_key || above.is_some_and(|line| line.starts_with('#')), "{line}");
    }
}

/// Both shipped configs must open the address that the shipped Prometheus scrapes, read-only.
#[test]
fn the_shipped_prometheus_config_scrapes_the_read_only_address_of_the_shipped_configs() {
    let read = |path: &str| fs::read_to_string(project(path)).unwrap();
    let scrape = read("config/monitoring/prometheus.yml");
    let target = scrape.split_once("targets: [\"").unwrap().1.split_once('"').unwrap().0;
    let origin = Origin::start();
    let shop = folder(&[("robots.txt", ROBOTS)]);
    let asked = folder(&[("robots.txt", ROBOTS)]);
    let beside = read("config/beside/robotsd.toml");
    let beside = beside.replace("/var/lib/robotsd", "state").replace("127.0.0.1:9180", "127.0.0.1:0");
    for text in [read("config/production.toml"), beside.clone()] {
        assert_has(&text, &["[[admin.listener]]", &format!("address = {target:?}")]);
    }
    shop.configure(production(shop.path(), &format!("http://{origin}")));
    asked.configure(beside.replace(target, "127.0.0.1:0"));
    let running = [shop.start(), asked.start()];
    for running in &running {
        assert_eq!(running.ask_admin("GET /").field("location"), Some("/board"));
        let refused =
            exchange(running.admin(), b"POST /reload HTTP/1.1\r\nHost: localhost\r\nRobotsd-Admin: 1\r\n\r\n");
        assert_eq!(refused.status, 403, "every user of the machine could");
    }
    // Commands use another address.
    for folder in [&shop, &asked] {
        folder.with_config(&["reload"]).succeeded();
    }
    if debian("prometheus", "prometheus").is_none() {
        return;
    }
    let prometheus =
        Prometheus::start(shop.path(), &running.each_ref().map(Running::admin), &read("config/monitoring/alerts.yml"));
    // The alert about an instance that is down depends on the name of the job.
    prometheus.answers("count(up{job=~\".*robotsd.*\"} == 1) == 2");
    prometheus.answers("robotsd_site_state{site=\"shop\",robotsd_site_state=\"live\"} == 1");
    prometheus.answers("robotsd_site_state{site=\"site\",robotsd_site_state=\"live\"} == 1");
    prometheus.answers("count(robotsd_state_writable == 1) == 2");
}

/// Runs the real logrotate, and sends the signal that the service would send.
#[test]
fn the_shipped_logrotate_file_is_valid_and_logging_continues_after_rotation() {
    if debian("logrotate", "logrotate").is_none() {
        return;
    }
    let config = Config::new().files_of("shop").robots(ROBOTS);
    let log = "[log]\naccess = \"combined\"\naccess_path = \"log/access.log\"";
    let folder = config.tables(log).file("log/.keep", "").file("page.html", "a page").folder();
    let running = folder.start();
    let shipped = fs::read_to_string(project("config/logrotate.conf")).unwrap();
    let signal = "systemctl kill --signal=HUP robotsd.service 2> /dev/null || true";
    assert_has(&shipped, &["/var/log/robotsd/*.log {", signal]);
    // The systemd unit must create the folder that the file names.
    let unit = fs::read_to_string(project("config/robotsd.service")).unwrap();
    assert_has(&unit, &["\nLogsDirectory=robotsd\n"]);
    let here = shipped.replace("/var/log/robotsd", &folder.at("log").display().to_string());
    folder.write("logrotate.conf", here.replace(signal, &format!("kill -HUP {}", running.id())));
    let rotate = |option: &str| {
        let mut command = Command::new("logrotate");
        command.arg(option).arg("--state").arg(folder.at("rotated")).arg(folder.at("logrotate.conf"));
        let ended = run(&mut command);
        assert!(ended.code == Some(0) && !ended.said().contains("error:"), "{ended:?}");
    };
    rotate("--debug");
    let lines = |name: &str| fs::read_to_string(folder.at(name)).unwrap_or_default().lines().count();
    let request = |times: usize| (0..times).for_each(|_| assert_eq!(running.get("/page.html", FIREFOX).status, 200));
    for round in 1..=3 {
        request(5);
        wait_until("the lines", || lines("log/access.log") == 5);
        rotate("--force");
        wait_until("another file", || folder.at("log/access.log").exists());
        assert_eq!((lines("log/access.log.1"), lines("log/access.log")), (5, 0), "round {round}");
    }
    assert!(folder.at("log/access.log.2.gz").exists());
    request(2);
    wait_until("the lines of the new file", || lines("log/access.log") == 2);
}
