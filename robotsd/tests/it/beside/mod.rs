//! Tests each file of `config/beside` with the real server that it is for, a real robotsd and a
//! real site.
//!
//! The test searches for servers in `PATH` and in the folder that `ROBOTSD_BESIDE_BIN` names
//! (`pip install --target`). If a server is missing, its tests are skipped with a message; in CI
//! they fail.

mod browsers;
mod hosts;
mod layouts;
mod rates;
mod requests;
mod scene;
mod server;
mod site;
mod table;
mod vhosts;

use std::fmt::Write;

use super::programs::present;
use crate::harness::*;

use self::scene::SCENES;
use self::server::{SERVERS, Server, Stage};
use self::table::Table;

/// How long a scene with an unexpected outcome is repeated.
const AGAIN: Duration = PATIENCE;

/// The outcome of every scene with one server.
struct Column {
    server: &'static str,
    outcomes: Vec<String>,
}

/// Calls `play` with each available server, at the same time, and returns the results.
fn with_each<T: Send>(play: impl Fn(&'static Server, &Path) -> T + Sync) -> Vec<T> {
    thread::scope(|scope| {
        let play = &play;
        let here = |server: &'static Server| {
            let program = present(server.find().map_err(|why| format!("{}: {why}", server.name)))?;
            Some((server.name, scope.spawn(move || play(server, &program))))
        };
        let playing: Vec<_> = SERVERS.iter().filter_map(here).collect();
        let joined = playing.into_iter().map(|(name, playing)| (name, playing.join()));
        joined.map(|(name, outcome)| outcome.unwrap_or_else(|_| panic!("{name}: see above"))).collect()
    })
}

#[test]
fn every_server_gives_the_outcomes_of_the_table() {
    let table = Table::read();
    let columns = with_each(|server, program| {
        let stage = Stage::set_as_shipped(server, program, &|text| text);
        let outcomes = play(stage, &table.column(server.name));
        Column { server: server.name, outcomes }
    });
    table.check(&columns);
}

/// The handbook documents this behaviour for each server.
#[test]
fn the_configured_status_for_refusals_is_passed_on() {
    with_each(|server, program| {
        let stage = Stage::set(server, program, "\n[site.refusal]\nstatus = 451\n", &|text| text);
        let expected = if server.name == "ingress-nginx" { 403 } else { 451 };
        let refusal = wait_for("a refusal", || {
            Some(stage.ask("GET", b"/drafts/x", &[("User-Agent", GPTBOT.as_bytes())], "")).filter(|it| it.status != 200)
        });
        assert_eq!(refusal.status, expected, "{}: {refusal:?}", server.name);
    });
}

/// The handbook documents this behaviour for each server. nginx would answer 500 if `auth_request`
/// got 402, so robotsd answers 403 there. nginx then fetches the refusal itself.
#[test]
fn the_status_and_header_fields_of_a_refusal_case_are_passed_on() {
    const CASES: &str = "
[[site.refusal.case]]
paths  = [\"/drafts/401\"]
status = 401
fields = { WWW-Authenticate = 'License error=\"invalid_request\"', Link = '</l.xml>; rel=\"license\"' }
[[site.refusal.case]]
paths  = [\"/drafts/402\"]
status = 402
fields = { crawler-price = \"USD 0.01\" }
";
    with_each(|server, program| {
        let stage = Stage::set(server, program, CASES, &|text| text);
        let ask = |target: &str| {
            wait_for("a refusal", || {
                let answer = stage.ask("GET", target.as_bytes(), &[("User-Agent", GPTBOT.as_bytes())], "");
                Some(answer).filter(|answer| answer.status != 200)
            })
        };
        let is_plain = server.name == "ingress-nginx";
        for (target, status, fields) in [
            (
                "/drafts/401",
                401,
                &[("www-authenticate", "License error=\"invalid_request\""), ("link", "</l.xml>; rel=\"license\"")][..],
            ),
            ("/drafts/402", 402, &[("crawler-price", "USD 0.01")]),
        ] {
            let answer = ask(target);
            assert_eq!(answer.status, if is_plain { 403 } else { status }, "{}: {answer:?}", server.name);
            for (name, value) in fields {
                assert_eq!(answer.field(name), Some(*value).filter(|_| !is_plain), "{}: {answer:?}", server.name);
            }
        }
    });
}

/// A client must not be able to choose the request ID.
#[test]
fn the_request_id_of_a_refusal_is_in_the_log() {
    let of_page = |refusal: Answer| {
        let id = refusal.field("x-request-id").expect("an id").to_owned();
        assert!(id.len() >= 32 && refusal.body.contains(&id), "{refusal:?}");
        id
    };
    let of_grpc = |refusal: Answer| {
        let id = refusal.body.lines().find_map(|line| line.strip_prefix("Request id: ")).expect("an id").to_owned();
        assert_eq!(id.len(), 36, "Envoy's are UUIDs: {id}");
        id
    };
    let rows: [(_, _, &dyn Fn(Answer) -> String); 3] = [
        ("nginx", "Request ", &of_page),
        ("HAProxy, SPOE", "Request ", &of_page),
        ("Envoy, gRPC", "Request id: ", &of_grpc),
    ];
    for (name, mark, id) in rows {
        let server = SERVERS.iter().find(|server| server.name == name).expect("it is among them");
        let Some(program) = present(server.find()) else { continue };
        let stage = Stage::set(server, &program, "", &|text| text);
        let chosen = "chosen-by-a-client";
        let fields = [("User-Agent", GPTBOT.as_bytes()), ("X-Request-ID", chosen.as_bytes())];
        let refusal = wait_for("a refusal by robotsd", || {
            Some(stage.ask("GET", b"/drafts/x", &fields, "")).filter(|answer| answer.body.contains(mark))
        });
        let id = id(refusal);
        stage.robotsd.wait_for_event("refused", |line| line["request_id"] == id.as_str());
        assert!(!stage.robotsd.has_event("refused", |line| line["request_id"] == chosen), "{name}");
    }
}

#[test]
fn a_client_does_not_choose_the_request_id_of_robots_txt() {
    with_each(|server, program| {
        // ingress-nginx forwards the ID of the client.
        if server.name == "ingress-nginx" {
            return;
        }
        let stage = Stage::set(server, program, "", &|text| text);
        let fields = [("User-Agent", GPTBOT.as_bytes()), ("X-Request-ID", b"chosen-by-a-client")];
        let file = wait_for("robotsd's file", || {
            Some(stage.ask("GET", b"/robots.txt", &fields, "")).filter(|file| file.body.contains(scene::ROBOTS))
        });
        assert_ne!(file.field("x-request-id"), Some("chosen-by-a-client"), "{}", server.name);
    });
}

#[test]
fn the_config_for_use_with_other_proxies_observes_first_and_passes_its_check() {
    let config = fs::read_to_string(project("config/beside/robotsd.toml")).unwrap();
    let config = config.replace("/var/lib/robotsd", "state");
    let config = config.replace("127.0.0.1:9180", "127.0.0.1:0").replace("127.0.0.1:9145", "127.0.0.1:0");
    let folder = folder(&[("robotsd.toml", &config), ("robots.txt", scene::ROBOTS)]);
    let checked = folder.configured(["config", "check"]);
    assert_eq!((checked.code, checked.error), (Some(0), String::new()));
    let running = folder.start();
    let fields = [("X-Original-URI", "/drafts/x"), ("X-Original-Method", "GET"), ("User-Agent", GPTBOT)];
    assert_eq!(running.request("GET", "/-/auth/nginx", &fields).status, 200);
    running.wait_for_event("observed", |line| line["path"] == "/drafts/x");
}

/// Plays every scene. A scene with an unexpected outcome is repeated for a while: on a very busy
/// machine, robotsd may take longer than a quarter of a second, and the server then forwards the
/// request. An error in a file still makes every repetition fail.
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
            thread::sleep(Duration::from_millis(100));
        };
        outcomes.push(outcome);
    }
    // Everything is printed at once, because several servers play at the same time.
    println!("{report}");
    outcomes
}
