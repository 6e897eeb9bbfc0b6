//! The files of `config/monitoring`: valid, documented, and of metrics that there are.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::origin::Origin;
use super::process::{FIREFOX, GOOGLEBOT, GPTBOT, PATIENCE, Running, folder, project, wait_for};
use super::prometheus::{prometheus, promtool};
use super::tls;

const CHAPTER: &str = include_str!("../../src/docs/monitoring.md");

/// An alert of the shipped rules, and its expression.
fn alerts() -> Vec<(String, String)> {
    let text = fs::read_to_string(project("config/monitoring/alerts.yml")).unwrap();
    let mut alerts: Vec<(String, String)> = Vec::new();
    let mut is_expression = false;
    for line in text.lines() {
        let trimmed = line.trim();
        if let Some(name) = trimmed.strip_prefix("- alert: ") {
            alerts.push((name.to_owned(), String::new()));
        } else if let Some(expression) = trimmed.strip_prefix("expr: ") {
            is_expression = expression == "|";
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

/// Every expression of a panel.
fn expressions(panel: &Value) -> impl Iterator<Item = &str> {
    let targets = panel["targets"].as_array().into_iter().flatten();
    targets.map(|target| target["expr"].as_str().unwrap())
}

#[test]
fn every_panel_says_what_it_shows_and_in_which_unit() {
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
fn every_alert_has_a_paragraph_of_the_runbook() {
    let of_chapter: BTreeSet<_> = CHAPTER.lines().filter_map(|line| line.strip_prefix("### ")).collect();
    let alerts = alerts();
    let of_rules: BTreeSet<_> = alerts.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(of_chapter, of_rules);
    assert_eq!(alerts.len(), of_rules.len(), "a name stands for one alert");
    let paragraphs = CHAPTER.split("\n### ").skip(1);
    for paragraph in paragraphs {
        assert!(paragraph.contains("\n```sh\n"), "no command: {paragraph}");
    }
}

#[test]
fn a_normal_week_fires_nothing_and_each_fault_its_own_alert() {
    if promtool().is_none() {
        return;
    }
    let passes = |arguments: &[&str]| {
        let output =
            Command::new("promtool").current_dir(project("config/monitoring")).args(arguments).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&said));
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
fn every_expression_of_dashboard_and_alerts_has_an_answer() {
    if prometheus().is_none() {
        return;
    }
    let origin = Origin::start();
    let config = format!(
        "mode = \"refuse\"\n[log]\naccess = \"json\"\n[[listener]]\nname = \"web\"\naddress = \"127.0.0.1:0\"\n\
         [[listener]]\naddress = \"127.0.0.1:0\"\n[[listener.certificate]]\nchain = \"a.pem\"\nkey = \"a.key\"\n\
         [[site]]\nname = \"shop\"\nupstreams = [\"http://{}\"]\n\
         robots.text = \"User-agent: *\\nDisallow: /private/\"\n[[site.override]]\nindex = true\nmode = \"refuse\"\n\
         [admin]\naddress = \"127.0.0.1:0\"\n",
        origin.address
    );
    let folder = folder(&[("robotsd.toml", &config)]);
    tls::certify(folder.path(), &["shop.test"]);
    let running = Running::start(folder.path());
    let play = || {
        for agent in [GPTBOT, GOOGLEBOT, FIREFOX] {
            for path in ["/private/x", "/", "/robots.txt"] {
                running.get(path, agent);
            }
        }
    };
    play();
    let prometheus = Prometheus::start(folder.path(), running.admin());
    wait_for("a scrape", || {
        play();
        prometheus.answer("rate(robotsd_decisions_total[4s])").then_some(())
    });
    let mut asked = 0;
    for expression in panels().iter().flat_map(expressions) {
        let expression = expression.replace("$__rate_interval", "10s").replace("$job", ".+").replace("$instance", ".+");
        prometheus.answers(&expression.replace("$site", ".*"));
        asked += 1;
    }
    for (_, expression) in alerts() {
        // Whatever the value is; and nothing is an hour old here.
        prometheus.answers(&of_any_value(&expression).replace(" offset 1h", ""));
        asked += 1;
    }
    assert!(asked > 40, "{asked}");
}

/// An alert's expression, true or not: its first comparison as a number.
fn of_any_value(expression: &str) -> String {
    let operators = [" == ", " > ", " < "];
    let first = operators.iter().filter_map(|operator| Some((expression.find(operator)?, operator))).min();
    let (at, operator) = first.unwrap_or_else(|| panic!("no comparison: {expression}"));
    let (before, after) = expression.split_at(at);
    format!("{before}{operator}bool {}", &after[operator.len()..])
}

/// A Prometheus that scrapes every second; killed when dropped.
struct Prometheus {
    process: Child,
    address: SocketAddr,
}

impl Prometheus {
    /// Starts with the shipped config, for this target.
    fn start(folder: &Path, target: SocketAddr) -> Self {
        let monitoring = project("config/monitoring");
        fs::copy(monitoring.join("alerts.yml"), folder.join("alerts.yml")).unwrap();
        let config = fs::read_to_string(monitoring.join("prometheus.yml")).unwrap();
        let config = config.replace("15s", "1s").replace("127.0.0.1:9145", &target.to_string());
        fs::write(folder.join("prometheus.yml"), config).unwrap();
        // It does not say which port it has got, so it is given one that was free a moment ago.
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let process = prometheus()
            .unwrap()
            .arg(format!("--config.file={}", folder.join("prometheus.yml").display()))
            .arg(format!("--storage.tsdb.path={}", folder.join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let prometheus = Self { process, address };
        wait_for("Prometheus", || TcpStream::connect(address).ok());
        prometheus
    }

    fn query(&self, expression: &str) -> Value {
        let Ok(mut stream) = TcpStream::connect(self.address) else { return Value::Null };
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let expression = utf8_percent_encode(expression, NON_ALPHANUMERIC);
        // An answer to HTTP/1.0 is not cut into chunks.
        write!(stream, "GET /api/v1/query?query={expression} HTTP/1.0\r\n\r\n").unwrap();
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        serde_json::from_str(body).unwrap_or_default()
    }

    fn answer(&self, expression: &str) -> bool {
        self.query(expression)["data"]["result"].as_array().is_some_and(|found| !found.is_empty())
    }

    fn answers(&self, expression: &str) {
        let what = format!("an answer to {expression}");
        let start = std::time::Instant::now();
        while !self.answer(expression) {
            assert!(start.elapsed() < PATIENCE, "no {what}: {}", self.query(expression));
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
