//! The publisher of a file gets the findings: every error in the file, worded as in the report.

use std::sync::{Arc, Mutex};

use base64::Engine as _;
use tower_robots::check::Severity;
use tower_robots::live::{LiveRobots, Rejection};

use crate::shared::cases;

#[test]
fn every_file_with_an_error_is_reported_to_the_status_the_publisher_and_the_listener() {
    let (mut files, mut with_errors) = (0, 0);
    let every = if crate::is_long() { 1 } else { 30 };
    for case in cases("robots_files.jsonl.gz").into_iter().step_by(every) {
        files += 1;
        let body = base64::engine::general_purpose::STANDARD.decode(case["body_base64"].as_str().unwrap()).unwrap();
        let notified = Arc::new(Mutex::new(String::new()));
        let listened = Arc::clone(&notified);
        let listen = move |reload: &tower_robots::live::Reload, _: &_| *listened.lock().unwrap() = reload.to_string();
        // Files that are not a robots.txt are skipped, because they are rejected at the start.
        let opened: Result<LiveRobots, Rejection> = LiveRobots::text(body.clone()).on_reload(listen).open();
        let Ok(live) = opened else { continue };
        let status = live.status();
        let report = status.report.as_deref().unwrap();
        let Some(summary) = report.summary() else {
            assert_eq!(report.count(Severity::Error), 0, "{}", case["robots"]);
            continue;
        };
        with_errors += usize::from(report.count(Severity::Error) > 0);
        let published = live.publish_blocking(&body).unwrap().to_string();
        for said in [status.last_reload.to_string(), published, notified.lock().unwrap().clone()] {
            assert!(said.ends_with(&format!("; {summary}")), "{}: {said}", case["robots"]);
        }
    }
    println!("{with_errors} of {files} files with errors");
    assert!(with_errors * 30 >= files, "{with_errors} of {files}");
}
