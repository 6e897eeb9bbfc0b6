//! Tests that the shortest form of each setting works.

use std::time::Duration;

use tower_robots::check::Severity;
use tower_robots::live::{Gate, LiveRobots, ObjectionKind, RejectionKind, ReloadOutcomeKind, StateDir};
use tower_robots::policy::{Mode, Override, Policy, PolicyBuilder, RateMode};

const FILE: &str = "User-agent: GPTBot\nDisallow: /drafts/\n";

#[test]
fn a_mode_set_on_the_builder_takes_precedence_over_the_policys_mode() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("robots.txt");
    std::fs::write(&path, FILE).unwrap();
    let live = LiveRobots::file(&path).mode(Mode::Refuse).open().unwrap();
    assert_eq!(live.snapshot().policy.mode, Mode::Refuse);
    let mode = |live: LiveRobots| live.snapshot().policy.mode;
    let text = || LiveRobots::text(FILE);
    let tagging = || Policy::builder().mode(Mode::Tag);
    for (which, live, want) in [
        ("neither", text(), Mode::Observe),
        ("a mode as the policy", text().policy(Mode::Refuse), Mode::Refuse),
        ("a builder as the policy", text().policy(tagging()), Mode::Tag),
        ("a policy", text().policy(tagging().build()), Mode::Tag),
        ("the mode first", text().mode(Mode::Refuse).policy(tagging()), Mode::Refuse),
        ("the mode last", text().policy(tagging()).mode(Mode::Refuse), Mode::Refuse),
        ("the last mode", text().mode(Mode::Off).mode(Mode::Refuse), Mode::Refuse),
        ("the last policy", text().policy(tagging()).policy(Mode::Off), Mode::Off),
    ] {
        assert_eq!(mode(live.open().unwrap()), want, "{which}");
    }
}

#[test]
fn a_policy_is_updated_in_place_without_losing_concurrent_updates() {
    let spared = || Override::agent("CCBot", Mode::Observe).unwrap();
    let live = LiveRobots::text(FILE).policy(Policy::builder().with_override(spared())).open().unwrap();
    live.set_mode(Mode::Refuse);
    let policy = live.snapshot().policy.clone();
    assert_eq!((policy.mode, policy.overrides.len()), (Mode::Refuse, 1));
    live.update_policy(|policy| policy.overrides.push(spared()));
    let policy = live.snapshot().policy.clone();
    assert_eq!((policy.mode, policy.overrides.len()), (Mode::Refuse, 2));
    live.update_policy(|policy| *policy = PolicyBuilder::from(policy.clone()).rate(RateMode::Refuse).build());
    let policy = live.snapshot().policy.clone();
    assert_eq!((policy.mode, policy.overrides.len()), (Mode::Refuse, 2));
    assert!(format!("{policy:?}").contains("mode: Refuse, burst"), "{policy:?}");
    live.set_policy(Policy::from(Mode::Tag));
    let policy = live.snapshot().policy.clone();
    assert_eq!((policy.mode, policy.overrides.len()), (Mode::Tag, 0));
    let of_modes = |outcome| outcome == ReloadOutcomeKind::ModeChanged;
    assert_eq!(live.history().iter().filter(|entry| of_modes(entry.outcome)).count(), 2);
    // Concurrent updates do not overwrite each other.
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| (0..50).for_each(|_| live.update_policy(|policy| policy.overrides.push(spared()))));
        }
    });
    assert_eq!(live.snapshot().policy.overrides.len(), 400);
}

#[tokio::test]
async fn publish_returns_a_future_and_continues_if_the_future_is_dropped() {
    let live = LiveRobots::text(FILE).open().unwrap();
    let reload = live.publish("User-agent: *\nDisallow: /x\n").await.unwrap();
    assert_eq!(reload.outcome.kind(), ReloadOutcomeKind::Published);
    assert_eq!(live.publish("<!doctype html>").await.unwrap_err().kind, RejectionKind::Html);
    // The reload continues without the future, which may be moved to another thread.
    let reload = tokio::spawn(live.publish(String::from(FILE))).await.unwrap().unwrap();
    assert_eq!(live.status().live, reload.outcome.hash());
    drop(live.publish("User-agent: *\nDisallow: /y\n"));
    let is_live = || live.snapshot().content.as_ref().is_some_and(|content| content.body().ends_with(b"/y\n"));
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    while !is_live() {
        assert!(std::time::Instant::now() < deadline, "it is published");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The error of a rejected start contains every finding. It mentions the line to fix first, and
/// state directories only afterwards.
#[test]
fn the_error_of_a_rejected_start_contains_the_report_and_the_lines_to_correct() {
    let gate = || Gate::new().refuse_findings(Severity::Error);
    let folder = tempfile::tempdir().unwrap();
    let state = StateDir::open(folder.path()).unwrap();
    for (file, lines) in [
        ("User-agent: *\nDisallow: drafts/\n", "correct line 2;"),
        ("User-agent: *\nDisallow: drafts/\nAllow: /x\nDisalow: /y\nDisallow: z/\n", "correct lines 2 and 5;"),
    ] {
        for has_state in [false, true] {
            let site = LiveRobots::text(file).gate(gate());
            let site = if has_state { site.state(&state, "shop") } else { site };
            let rejection = site.open().unwrap_err();
            assert_eq!(rejection.kind, RejectionKind::Gated);
            let text = rejection.to_string();
            assert!(text.contains(lines) && !text.contains("StateDir"), "{text}");
            let report = rejection.report.as_ref().unwrap();
            let errors = || report.findings.iter().filter(|finding| finding.severity == Severity::Error);
            let pending = rejection.pending.as_ref().unwrap();
            let findings: Vec<_> = pending.objections.iter().flat_map(|objection| &objection.findings).collect();
            assert_eq!(findings, errors().collect::<Vec<_>>(), "{text}");
            assert!(pending.objections.iter().all(|objection| objection.kind == ObjectionKind::Finding));
        }
    }
    // Without a finding, the message explains how to accept the version.
    let rejection = LiveRobots::text("User-agent: *\nDisallow: /\n").gate(gate()).open().unwrap_err();
    assert!(rejection.to_string().contains("StateDir"), "{rejection}");
    let rejection = LiveRobots::text("Not Found").open().unwrap_err();
    assert_eq!(rejection.kind, RejectionKind::NoField);
    assert!(rejection.report.is_some_and(|report| !report.findings.is_empty()));
}
