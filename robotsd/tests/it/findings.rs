//! Tests the findings about a file that goes live. The log, the status and the response to a reload
//! must report them in the library's words.

use base64::Engine as _;
use tower_robots::live::LiveRobots;

use crate::harness::*;
use crate::shared::cases;

const CONFIG: &str = "mode = \"refuse\"\n[[listener]]\naddress = \"127.0.0.1:0\"\n[admin]\naddress = \"127.0.0.1:0\"\n[gate]\nenabled = false\n\
                      [[site]]\nname = \"hosts\"\nroot = \".\"\n[site.robots]\nsource = \"directory\"\npath = \"sites\"\n";

#[test]
fn log_status_and_reload_report_the_same_findings_of_a_file_with_errors() {
    let folder = folder(&[("robotsd.toml", CONFIG), ("sites/none.example.txt", "User-agent: *\nDisallow: /b\n")]);
    let mut summaries = BTreeMap::new();
    // A debug build takes a minute to check all files, so only some of them are checked.
    let step = if is_long() { 10 } else { 30 };
    for (number, case) in cases("robots_files.jsonl.gz").into_iter().enumerate().step_by(step) {
        let body = base64::engine::general_purpose::STANDARD.decode(case["body_base64"].as_str().unwrap()).unwrap();
        let Ok(live) = LiveRobots::text(body.clone()).open() else { continue };
        let Some(summary) = live.status().report.as_deref().unwrap().summary() else { continue };
        if summary.contains(" error") {
            fs::write(folder.at(format!("sites/f{number}.example.txt")), body).unwrap();
            summaries.insert(format!("hosts/f{number}.example"), summary);
        }
    }
    assert!(summaries.len() >= 100 / step, "{}", summaries.len());
    let running = folder.start();
    let admin = running.admin().to_string();
    let json = |command: &str| -> Value {
        let output = run(robotsd().args([command, "--json", "--admin", &admin]));
        serde_json::from_str(&output.out).unwrap_or_else(|error| panic!("{error}: {output:?}"))
    };
    let named = |sites: &Value, field: &str| -> BTreeMap<String, String> {
        let text = |site: &Value, field: &str| site[field].as_str().unwrap_or_default().to_owned();
        sites.as_array().unwrap().iter().map(|site| (text(site, "name"), text(site, field))).collect()
    };
    let of_status = named(&json("status")["sites"], "findings_summary");
    let of_reload = named(&json("reload")["sites"], "message");
    let published = |site: &str| running.wait_for_event("published", |line| line["site"] == site);
    for (site, summary) in &summaries {
        assert_eq!(&of_status[site], summary, "{site}");
        assert!(of_reload[site].ends_with(&format!("; {summary}")), "{site}: {}", of_reload[site]);
        let line = published(site);
        assert_eq!((&line["level"], &line["reason"]), (&"warn".into(), &"start".into()), "{line}");
        assert!(message(&line).ends_with(&format!("; {summary}")), "{line}");
    }
    assert_eq!(of_status["hosts/none.example"], "");
    let line = published("hosts/none.example");
    assert_eq!(line["level"], "info", "{line}");
}
