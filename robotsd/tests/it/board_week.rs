//! A scripted week of two processes, on a clock of its own: real requests, and exactly these words and counts, whatever happens to
//! the processes.
//!
//! With libfaketime (Debian: `faketime`), where it is installed. The clock jumps from one hour of the script to the next; timers run
//! as ever.

use std::path::PathBuf;

use super::identity::{TRUSTING, crawlers, known_by};
use super::programs::skip;
use super::start::faketime;
use crate::harness::*;
use crate::played_dns::{PlayedDns, ptr};

const OLD: &str = "User-agent: *\nDisallow: /drafts/\n";
const NEW: &str = "User-agent: *\nDisallow: /drafts/\nDisallow: /private/\n";

/// Crawlers, each of an operator of its own, with the addresses they come from.
const CRAWLERS: [(&str, &str); 6] = [
    ("Obeyer", "8.8.4.1"),
    ("Late", "8.8.4.2"),
    ("Ignorer", "8.8.4.3"),
    ("Stale", "8.8.4.4"),
    ("Unseen", "8.8.4.5"),
    ("Split", "8.8.4.6"),
];
const IMPOSTOR: &str = "9.9.9.9";

/// Each crawler with its word, its reads and disallowed requests, and these by what was read before them: ignored, not the newest
/// version, no read, undecided.
const WEEK: [&str; 7] = [
    "Ignorer verified: ignores, 1 2, 2 0 0 0",
    "Late verified: has not read the newest version, 1 2, 0 2 0 0",
    "Obeyer impostor: no word, 1 1, 0 0 0 0",
    "Obeyer verified: obeys, 1 0, 0 0 0 0",
    "Split verified: ignores, 1 2, 2 0 0 0",
    "Stale verified: ignores, 1 1, 1 0 0 0",
    "Unseen verified: no read seen here, 0 1, 0 0 1 0",
];

/// How far the clock of the processes is ahead.
struct Clock {
    library: PathBuf,
    file: PathBuf,
}

impl Clock {
    fn set(&self, seconds: u64) {
        replace_file(&self.file, format!("+{seconds}\n"));
    }

    fn of(&self, command: &mut std::process::Command) {
        command.env("LD_PRELOAD", &self.library).env("FAKETIME_TIMESTAMP_FILE", &self.file);
        command.env("FAKETIME_NO_CACHE", "1").env("FAKETIME_DONT_FAKE_MONOTONIC", "1").env("NO_FAKE_STAT", "1");
    }

    fn start(&self, folder: &Folder) -> Running {
        let mut command = folder.serve();
        self.of(&mut command);
        Running::spawn(&mut command)
    }
}

/// One of two replicas.
fn replica(names: &PlayedDns) -> Folder {
    let row = |name: &str| {
        let domain = name.to_lowercase();
        format!(
            "[[crawler]]\nname = {name:?}\ncategory = \"search\"\noperator = {name:?}\nrdns = [\".{domain}.example\"]\n"
        )
    };
    let rows: String = CRAWLERS.iter().map(|(name, _)| row(name)).collect();
    let config = known_by(names, TRUSTING, "wait = \"250ms\"").tables("[board]\nsees_all = true\nreplicas = 2");
    config.log_requests().robots(OLD).file("crawlers.toml", crawlers() + &rows).folder()
}

fn request(running: &Running, crawler: &str, client: &str, path: &str) {
    let agent = format!("{crawler}/1.0 (+https://{}.example/bot)", crawler.to_lowercase());
    running.request("GET", path, &[("Host", "shop.test"), ("User-Agent", &agent), ("X-Forwarded-For", client)]);
}

/// A request of the agent that is given: before it the process finds that out again, with requests that are allowed.
fn request_as(running: &Running, crawler: &str, client: &str, identity: &str, path: &str) {
    let last = |path: &str| running.all("request").into_iter().rev().find(|line| line["path"] == path);
    let count = |path: &str| running.count("request", |line| line["path"] == path);
    let lines_before = count(path);
    wait_until(identity, || {
        let before = count("/open");
        request(running, crawler, client, "/open");
        wait_until("a line of the log", || count("/open") > before);
        last("/open").is_some_and(|line| line["identity"] == identity)
    });
    request(running, crawler, client, path);
    wait_until("a line of the log", || count(path) > lines_before);
    assert_eq!(last(path).unwrap()["identity"], identity, "{crawler} {path}");
}

fn rows(running: &Running) -> Value {
    running.ask_admin("GET /board.json?period=30d").json()
}

/// Waits until the board has counted what comes now: it has seen the clock as it is.
fn settle(running: &Running) {
    let allowed = || -> u64 {
        let board = rows(running);
        let crawlers = board["sites"][0]["crawlers"].as_array().cloned().unwrap_or_default();
        crawlers.iter().filter_map(|row| row["allowed"].as_u64()).sum()
    };
    let before = allowed();
    // A crawler that no registry has.
    request(running, "Mybot", "198.51.100.7", "/open");
    wait_until("a moment of the board", || allowed() > before);
}

/// The rows of a report, without those of claims that only came to be known.
fn said(report: &Value) -> Vec<String> {
    let crawlers = report["sites"][0]["crawlers"].as_array().cloned().unwrap_or_default();
    let counts =
        |row: &Value, kinds: &[&str]| kinds.iter().map(|kind| row[*kind].to_string()).collect::<Vec<_>>().join(" ");
    let is_claim = |row: &Value| row["identity"] == "claimed" && row["reads"] == 0 && row["disallowed"] == 0;
    let line = |row: &Value| {
        let text = |key: &str| row[key].as_str().unwrap_or("no word").to_owned();
        let judged = counts(&row["judged"], &["ignored", "not_newest", "unread", "undecided"]);
        let counted = counts(row, &["reads", "disallowed"]);
        format!("{} {}: {}, {counted}, {judged}", text("crawler"), text("identity"), text("word"))
    };
    let mut said: Vec<String> = crawlers.iter().filter(|row| !is_claim(row)).map(line).collect();
    said.sort();
    said
}

#[test]
fn a_week_of_real_requests_has_exactly_these_words_whatever_happens_to_the_processes() {
    let Some(library) = faketime() else { return skip("libfaketime") };
    let names = PlayedDns::start();
    for (name, address) in CRAWLERS {
        names.confirmed(address, &format!("crawl.{}.example", name.to_lowercase()));
    }
    names.names(IMPOSTOR, ptr(&["host.other.example"]));
    let folders = [replica(&names), replica(&names)];
    let clock = Clock { library, file: folders[0].path().join("clock") };
    clock.set(0);
    let mut running = folders.each_ref().map(|folder| clock.start(folder));
    let address = |crawler: &str| CRAWLERS.iter().find(|(name, _)| *name == crawler).unwrap().1;
    let merged = || {
        let mut command = robotsd();
        command.args(["board", "--json", "--period", "30d", "--merge"]);
        command.args(folders.each_ref().map(|folder| folder.at("state")));
        clock.of(&mut command);
        let output = run(&mut command);
        serde_json::from_str(&output.out).map(|report| said(&report)).unwrap_or_default()
    };

    running.iter().for_each(settle);
    for (hour, replica, crawler, path) in [
        (0, 0, "Obeyer", "/robots.txt"),
        (1, 0, "Obeyer", "/open"),
        (20, 0, "Stale", "/robots.txt"),
        (22, 0, "Late", "/robots.txt"),
        // The newer version comes.
        (24, 0, "", ""),
        (25, 0, "Late", "/private/1"),
        (30, 0, "Ignorer", "/robots.txt"),
        (31, 0, "Ignorer", "/private/2"),
        (32, 0, "Ignorer", "/private/3"),
        (42, 0, "Late", "/private/4"),
        (50, 0, "Stale", "/private/5"),
        (51, 0, "Unseen", "/private/6"),
        (80, 0, "Split", "/robots.txt"),
        (81, 1, "Split", "/private/7"),
        (82, 1, "Split", "/private/8"),
    ] {
        clock.set(hour * 3600);
        running.iter().for_each(settle);
        if crawler.is_empty() {
            for (folder, running) in folders.iter().zip(&running) {
                let live = || rows(running)["sites"][0]["never_hit"]["version"].clone();
                let before = live();
                folder.replace("robots.txt", NEW);
                wait_until("the newer version", || running.get("/robots.txt", FIREFOX).body == NEW);
                wait_until("the board to know it", || live() != before);
            }
            continue;
        }
        request_as(&running[replica], crawler, address(crawler), "verified", path);
    }
    clock.set(90 * 3600);
    running.iter().for_each(settle);
    // Nobody is refuted before the crawler itself has come.
    request_as(&running[0], "Obeyer", address("Obeyer"), "verified", "/open");
    request_as(&running[0], "Obeyer", IMPOSTOR, "refuted", "/robots.txt");
    request_as(&running[0], "Obeyer", IMPOSTOR, "refuted", "/private/9");

    // Counts are written once the clock has gone on for a minute.
    clock.set(91 * 3600);
    running.iter().for_each(settle);
    wait_for("the words of both", || Some(merged()).filter(|words| words == &WEEK));
    for signal in ["TERM", "KILL", "KILL"] {
        let alone = said(&rows(&running[1]));
        assert_eq!(alone, ["Split verified: no read seen here, 0 2, 0 0 2 0"]);
        for (running, folder) in running.iter_mut().zip(&folders) {
            running.signal(signal);
            running.wait_for_end();
            *running = clock.start(folder);
            let board = || Some(said(&rows(running))).filter(|words| !words.is_empty());
            wait_for("the board", board);
        }
        assert_eq!(merged(), WEEK, "after {signal}");
    }
}
