//! The files of `config/beside`, each with the real server it is for, real robotsd and a real site.
//!
//! Servers are looked for in `PATH` and in the folder `ROBOTSD_BESIDE_BIN` names (`pip install --target`). One that is not
//! there is left out with a word, and in CI that is a failure.

mod hosts;
mod layouts;
mod scene;
mod server;
mod site;
mod table;
mod vhosts;

use std::fmt::Write;
use std::time::{Duration, Instant};

use super::programs::present;
use crate::harness::{GPTBOT, folder, project, serving};

use self::scene::SCENES;
use self::server::{SERVERS, Stage};
use self::table::Table;

/// How long a scene is played again for.
const AGAIN: Duration = Duration::from_secs(10);

/// What a server did in every scene.
struct Column {
    server: &'static str,
    outcomes: Vec<String>,
}

#[test]
fn every_server_gives_the_outcomes_of_the_table() {
    let table = Table::of_the_chapter();
    let playing: Vec<_> = SERVERS
        .iter()
        .filter_map(|server| Some((server, present(server.find().map_err(|why| format!("{}: {why}", server.name)))?)))
        .map(|(server, program)| {
            let expected = table.column(server.name);
            (server, std::thread::spawn(move || play(Stage::set(server, &program), &expected)))
        })
        .collect();
    let columns: Vec<_> = playing
        .into_iter()
        .map(|(server, playing)| Column {
            server: server.name,
            outcomes: playing.join().unwrap_or_else(|_| panic!("{}: see above", server.name)),
        })
        .collect();
    table.check(&columns);
}

/// What the chapter says of each server.
#[test]
fn a_status_of_the_site_for_refusals_is_passed_on() {
    for server in SERVERS {
        let Ok(program) = server.find() else { continue };
        let stage = Stage::set_with(server, &program, "\n[site.refusal]\nstatus = 451\n", &|text| text);
        let expected = if server.name == "ingress-nginx" { 403 } else { 451 };
        let refusal = crate::harness::wait_for("a refusal", || {
            Some(stage.ask("GET", b"/drafts/x", &[("User-Agent", GPTBOT.as_bytes())], "")).filter(|it| it.status != 200)
        });
        assert_eq!(refusal.status, expected, "{}: {refusal:?}", server.name);
    }
}

#[test]
fn the_request_id_of_a_refusal_that_is_fetched_is_in_the_log() {
    for name in ["nginx", "HAProxy, SPOE"] {
        let server = SERVERS.iter().find(|server| server.name == name).expect("it is among them");
        let Some(program) = present(server.find()) else { continue };
        let stage = Stage::set(server, &program);
        // A client does not choose it.
        let chosen = "chosen-by-a-client";
        let fields = [("User-Agent", GPTBOT.as_bytes()), ("X-Request-ID", chosen.as_bytes())];
        let refusal = crate::harness::wait_for("a refusal by robotsd", || {
            Some(stage.ask("GET", b"/drafts/x", &fields, "")).filter(|answer| answer.body.contains("Request "))
        });
        let id = refusal.field("x-request-id").expect("an id").to_owned();
        assert!(id.len() >= 32 && refusal.body.contains(&id), "{name}: {refusal:?}");
        stage.robotsd.wait_for_event("refused", |line| line["request_id"] == id.as_str());
        assert!(!stage.robotsd.has_event("refused", |line| line["request_id"] == chosen));
    }
}

#[test]
fn envoy_gives_its_request_id_to_a_question_over_grpc() {
    let server = SERVERS.iter().find(|server| server.name == "Envoy, gRPC").expect("it is among them");
    let Some(program) = present(server.find()) else { return };
    let stage = Stage::set(server, &program);
    let chosen = "chosen-by-a-client";
    let fields = [("User-Agent", GPTBOT.as_bytes()), ("X-Request-ID", chosen.as_bytes())];
    let id = crate::harness::wait_for("a refusal by robotsd", || {
        let refusal = stage.ask("GET", b"/drafts/x", &fields, "").body;
        refusal.lines().find_map(|line| line.strip_prefix("Request id: ")).map(str::to_owned)
    });
    assert_eq!(id.len(), 36, "Envoy's are UUIDs: {id}");
    stage.robotsd.wait_for_event("refused", |line| line["request_id"] == id.as_str());
    assert!(!stage.robotsd.has_event("refused", |line| line["request_id"] == chosen));
}

#[test]
fn the_config_for_standing_beside_others_observes_first_and_passes_its_check() {
    let config = std::fs::read_to_string(project("config/beside/robotsd.toml")).unwrap();
    let config = config.replace("/var/lib/robotsd", "state").replace("127.0.0.1:9180", "127.0.0.1:0");
    let folder = folder(&[("robotsd.toml", &config), ("robots.txt", scene::ROBOTS)]);
    let checked = folder.configured(["config", "check"]);
    assert_eq!((checked.code, checked.error), (Some(0), String::new()));
    let running = folder.start();
    let fields = [("X-Original-URI", "/drafts/x"), ("X-Original-Method", "GET"), ("User-Agent", GPTBOT)];
    assert_eq!(running.request("GET", "/-/auth/nginx", &fields).status, 200);
    running.wait_for_event("observed", |line| line["path"] == "/drafts/x");
}

#[test]
fn the_config_in_the_manifest_starts_and_its_annotations_ask_for_it() {
    let manifest = std::fs::read_to_string(project("config/beside/kubernetes.yaml")).unwrap();
    // The text of a block: what is indented more than its key.
    let block = |key: &str| {
        let start = manifest.find(&format!("  {key}: |\n")).expect("a block");
        let lines = manifest[start..].lines().skip(1).take_while(|line| line.is_empty() || line.starts_with("    "));
        lines.map(|line| format!("{}\n", line.trim_start_matches("    "))).collect::<String>()
    };
    let shipped = block("robotsd.toml").replace("0.0.0.0:9180", "127.0.0.1:0");
    // It observes until its operator has seen what it would do.
    let config = shipped
        .replace("mode = \"observe\"", "mode = \"refuse\"")
        .replace("grace = \"24h\"", "grace = \"0s\"")
        .replace("/var/lib/robotsd", "state")
        .replace("127.0.0.1:9145", "127.0.0.1:0")
        .replace("0.0.0.0:9146", "127.0.0.1:0");
    assert_ne!(config, shipped);
    let (_folder, running) = serving(&[("robotsd.toml", &config), ("robots.txt", &block("robots.txt"))]);
    let fields = [("X-Original-URL", "https://example.com/drafts/x"), ("X-Original-Method", "GET")];
    let annotations = std::fs::read_to_string(project("config/beside/ingress-nginx.yaml")).unwrap();
    let url =
        annotations.lines().find_map(|line| line.split_once("/auth-url: ")).expect("an auth-url").1.trim_matches('"');
    let (_, path) = url.split_once(":9180").expect("robotsd's port");
    let answer = running.request("GET", path, &[&fields[..], &[("User-Agent", GPTBOT)]].concat());
    assert_eq!(answer.status, 403, "{answer:?}");
    assert_eq!(running.request("GET", "/robots.txt", &[("Host", "example.com")]).body, block("robots.txt"));
    assert_eq!(running.events("finding"), 0);
}

/// Plays every scene. Where something else comes of one than is expected, it is played again for a while: on a machine
/// that is busy enough robotsd may take longer than the quarter of a second it is given, and then requests go on. What a
/// file gets wrong stays wrong.
fn play(mut stage: Stage, expected: &[String]) -> Vec<String> {
    let mut report = format!("== {}\n", stage.version());
    let mut outcomes = Vec::new();
    for (number, scene) in SCENES.iter().enumerate() {
        let start = Instant::now();
        let outcome = loop {
            let began = Instant::now();
            let outcome = (scene.play)(&mut stage);
            writeln!(report, "{:>7.1?}  {}: {outcome}", began.elapsed(), scene.name).unwrap();
            if expected.get(number).is_none_or(|expected| *expected == outcome) || start.elapsed() > AGAIN {
                break outcome;
            }
            std::thread::sleep(Duration::from_millis(100));
        };
        outcomes.push(outcome);
    }
    // One write, because the servers play at the same time.
    println!("{report}");
    outcomes
}
