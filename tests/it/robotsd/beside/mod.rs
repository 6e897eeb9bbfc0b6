//! The files of `config/beside`, each with the real server it is for, real robotsd and a real site.
//!
//! Servers are looked for in `PATH` and in the folder `ROBOTSD_BESIDE_BIN` names (`pip install --target`). One that is not
//! there is left out with a word, and in CI that is a failure.

mod scene;
mod server;
mod site;
mod table;

use std::fmt::Write;
use std::time::{Duration, Instant};

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
        .filter_map(|server| match server.find() {
            Ok(program) => Some((server, program)),
            Err(why) => {
                assert!(std::env::var_os("CI").is_none(), "{}: {why}", server.name);
                println!("skipped: {}: {why}", server.name);
                None
            }
        })
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

/// Plays every scene. Where something else comes of one than is expected, it is played again for a while: on a machine
/// that is busy enough robotsd may take longer than the quarter of a second it is given, and then requests go on. What a
/// file gets wrong stays wrong.
fn play(mut stage: Stage, expected: &[String]) -> Vec<String> {
    let mut told = format!("== {}\n", stage.version());
    let mut outcomes = Vec::new();
    for (number, scene) in SCENES.iter().enumerate() {
        let start = Instant::now();
        let outcome = loop {
            let began = Instant::now();
            let outcome = (scene.play)(&mut stage);
            writeln!(told, "{:>7.1?}  {}: {outcome}", began.elapsed(), scene.name).unwrap();
            if expected.get(number).is_none_or(|expected| *expected == outcome) || start.elapsed() > AGAIN {
                break outcome;
            }
            std::thread::sleep(Duration::from_millis(100));
        };
        outcomes.push(outcome);
    }
    // One write, because the servers play at the same time.
    println!("{told}");
    outcomes
}
