//! Tests the files of `config/monitoring`. They must be valid and documented, and use existing
//! metrics.

use super::programs::debian;
use super::prometheus::Prometheus;
use super::tls;
use crate::harness::*;
use crate::played_dns::PlayedDns;

const RUNBOOK: &str = include_str!("../../../docs/src/howto/alerts.md");
const ALERTS: &str = include_str!("../../../config/monitoring/alerts.yml");

/// Returns the alerts of the shipped rules, with their expressions.
fn alerts() -> Vec<(String, String)> {
    let mut alerts: Vec<(String, String)> = Vec::new();
    let mut is_expression = false;
    for line in ALERTS.lines() {
        let trimmed = line.trim();
        if let Some(name) = trimmed.strip_prefix("- alert: ") {
            alerts.push((name.to_owned(), String::new()));
        } else if let Some(expression) = trimmed.strip_prefix("expr: ") {
            is_expression = expression == ">-";
            if !is_expression {
                alerts.last_mut().unwrap().1 = expression.to_owned();
            }
        } else if trimmed.starts_with("for: ") || trimmed.starts_with("labels:") {
            is_expression = false;
        } else if is_expression {
            let (_, expression) = alerts.last_mut().unwrap();
            *expression = format!("{expression} {trimmed}");
        }
    }
    alerts
}

fn panels() -> Vec<Value> {
    let text = fs::read_to_string(project("config/monitoring/dashboard.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let variables: Vec<_> =
        dashboard["templating"]["list"].as_array().unwrap().iter().map(|variable| variable["name"].clone()).collect();
    assert_eq!(variables, ["datasource", "job", "instance", "site"]);
    dashboard["panels"].as_array().unwrap().clone()
}

fn expressions(panel: &Value) -> impl Iterator<Item = &str> {
    let targets = panel["targets"].as_array().into_iter().flatten();
    targets.map(|target| target["expr"].as_str().unwrap())
}

#[test]
fn the_mixin_has_the_dashboard_and_every_alert() {
    let Some(mut jsonnet) = debian("jsonnet", "jsonnet") else { return };
    // The fields are hidden, as is usual for mixins.
    let fields = "{ grafanaDashboards: mixin.grafanaDashboards, prometheusAlerts: mixin.prometheusAlerts }";
    let path = project("config/monitoring/mixin.libsonnet");
    let output = run(jsonnet.args(["-e", &format!("local mixin = import {path:?}; {fields}")]));
    assert!(output.code == Some(0), "{output:?}");
    let mixin: Value = output.json();
    let dashboard = fs::read_to_string(project("config/monitoring/dashboard.json")).unwrap();
    assert_eq!(mixin["grafanaDashboards"]["robotsd.json"], serde_json::from_str::<Value>(&dashboard).unwrap());
    let rules = mixin["prometheusAlerts"]["groups"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|group| group["rules"].as_array().unwrap());
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = |value: &Value| words(value.as_str().unwrap());
    let found: Vec<(String, String)> = rules.map(|rule| (text(&rule["alert"]), text(&rule["expr"]))).collect();
    let expected: Vec<(String, String)> = alerts().into_iter().map(|(name, text)| (name, words(&text))).collect();
    assert_eq!(found, expected);
}

#[test]
fn every_dashboard_panel_has_a_description_and_a_unit() {
    let mut ids = BTreeSet::new();
    for panel in panels() {
        let title = panel["title"].as_str().unwrap();
        assert!(ids.insert(panel["id"].as_u64()), "{title}: its id is another's");
        if panel["type"] == "row" {
            continue;
        }
        assert!(panel["description"].as_str().is_some_and(|text| text.ends_with('.')), "{title}");
        assert!(panel["fieldConfig"]["defaults"]["unit"].is_string(), "{title}");
        assert_eq!(panel["datasource"]["uid"], "${datasource}", "{title}");
        for expression in expressions(&panel) {
            assert!(expression.contains(r#"job=~"$job",instance=~"$instance""#), "{title}: {expression}");
            assert!(!expression.contains("rate(") || expression.contains("$__rate_interval"), "{title}: {expression}");
        }
    }
}

#[test]
fn every_alert_has_a_section_with_a_command_in_the_runbook() {
    let of_runbook: BTreeSet<_> = RUNBOOK.lines().filter_map(|line| line.strip_prefix("### ")).collect();
    let alerts = alerts();
    let of_rules: BTreeSet<_> = alerts.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(of_runbook, of_rules);
    assert_eq!(alerts.len(), of_rules.len(), "a name stands for one alert");
    let paragraphs = RUNBOOK.split("\n### ").skip(1);
    for paragraph in paragraphs {
        assert!(paragraph.contains("\n```sh\n"), "no command: {paragraph}");
    }
}

#[test]
fn promtool_accepts_the_alert_rules_and_every_alert_has_a_rule_test() {
    if debian("promtool", "prometheus").is_none() {
        return;
    }
    let passes = |arguments: &[&str]| {
        let output = run(Command::new("promtool").current_dir(project("config/monitoring")).args(arguments));
        assert!(output.code == Some(0), "{arguments:?}: {}", output.said());
    };
    passes(&["check", "config", "prometheus.yml"]);
    passes(&["check", "rules", "alerts.yml"]);
    passes(&["test", "rules", "alerts.test.yml"]);
    let tests = fs::read_to_string(project("config/monitoring/alerts.test.yml")).unwrap();
    for (name, _) in alerts() {
        assert!(tests.contains(&format!("alertname=\"{name}\"")), "{name} has no test");
    }
}

#[test]
fn prometheus_returns_a_value_for_every_expression_of_dashboard_and_alerts() {
    if debian("prometheus", "prometheus").is_none() {
        return;
    }
    let origin = Origin::start();
    let secure =
        "[[listener]]\naddress = \"127.0.0.1:0\"\n[[listener.certificate]]\nchain = \"a.pem\"\nkey = \"a.key\"";
    let site = format!(
        "upstreams = [\"http://{origin}\"]\nrate = {{ mode = \"refuse\", burst = 1 }}\n[site.robots]\n\
         text = \"User-agent: *\\nCrawl-delay: 20\\nDisallow: /private/\"\n[[site.robots.append]]\npath = \"ai.txt\"\n\
         [[site.robots.on_publish]]\nurl = \"http://127.0.0.1:1/\"\n[site.modes]\n\"index\" = \"refuse\""
    );
    // robotsd must have a saved copy of the fleet's document. Otherwise, it would enforce nothing.
    let keys = "rate.store = \"redis://127.0.0.1:1\"\nfleet.name = \"shop\"\nstate_dir = \"state\"\n\
                notify = [{ on = [\"waits\"], url = \"http://127.0.0.1:1/\" }]";
    let config = Config::refusing().keys(keys).file("state/fleet.json", "{\"epoch\": \"e\"}").log_requests();
    let ask = "[[listener]]\naddress = \"127.0.0.1:0\"\nkind = \"decision\"";
    let config = config.listener(format!("name = \"web\"\n{secure}\n{ask}")).site("shop", site).admin();
    let folder = config.file("ai.txt", "User-agent: CCBot\nDisallow: /\n").folder();
    tls::certify(folder.path(), &["shop.test"]);
    let running = folder.start();
    let play = || {
        for agent in [GPTBOT, GOOGLEBOT, FIREFOX] {
            for path in ["/private/x", "/", "/robots.txt"] {
                running.get(path, agent);
            }
        }
    };
    play();
    let names = PlayedDns::start();
    let (_identity, with_identity) = super::identity::known_by(&names, "", "").robots("").start();
    let prometheus = Prometheus::start(folder.path(), &[running.admin(), with_identity.admin()], ALERTS);
    wait_until("a scrape", || {
        play();
        prometheus.answer("rate(robotsd_decisions_total[1m])")
    });
    let mut asked = 0;
    for expression in panels().iter().flat_map(expressions) {
        let expression = expression.replace("$__rate_interval", "1m").replace("$job", ".+").replace("$instance", ".+");
        prometheus.answers(&expression.replace("$site", ".*"));
        asked += 1;
    }
    for (_, expression) in alerts() {
        // The value does not matter. The offset is removed, because nothing has been running for an
        // hour.
        for part in expression.split(" and ") {
            prometheus.answers(&of_any_value(part).replace(" offset 1h", ""));
        }
        asked += 1;
    }
    assert!(asked > 40, "{asked}");
}

/// Converts the expression of an alert to a form that always has a value: the result of its first
/// comparison, as a number.
fn of_any_value(expression: &str) -> String {
    let operators = [" == ", " > ", " < "];
    let first = operators.iter().filter_map(|operator| Some((expression.find(operator)?, operator))).min();
    let (at, operator) = first.unwrap_or_else(|| panic!("no comparison: {expression}"));
    let (before, after) = expression.split_at(at);
    format!("{before}{operator}bool {}", &after[operator.len()..])
}
