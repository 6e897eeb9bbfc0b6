//! Plays a scripted week with two processes and a simulated clock. Real requests must lead to
//! exactly the expected verdicts and counts, whatever happens to the processes.
//!
//! Requires libfaketime (Debian: `faketime`), and is skipped without it. The clock jumps from one
//! hour of the script to the next, while timers run normally.

use super::identity::{TRUSTING, crawlers, known_by};
use super::programs::skip;
use super::start::faketime;
use crate::harness::*;
use crate::played_dns::{PlayedDns, ptr};

const OLD: &str = "User-agent: *\nDisallow: /drafts/\n";
const NEW: &str = "User-agent: *\nDisallow: /drafts/\nDisallow: /private/\n";

/// Crawlers, each with the address from which it sends requests. Each has its own operator.
const CRAWLERS: [(&str, &str); 6] = [
    ("Obeyer", "8.8.4.1"),
    ("Late", "8.8.4.2"),
    ("Ignorer", "8.8.4.3"),
    ("Stale", "8.8.4.4"),
    ("Unseen", "8.8.4.5"),
    ("Split", "8.8.4.6"),
];
const IMPOSTOR: &str = "9.9.9.9";

/// The expected row of each crawler: verdict, fetches, and disallowed requests. The last four
/// numbers split these requests: the fetched version disallows them, only a newer version does,
/// there was no fetch, or undecided.
const WEEK: [&str; 7] = [
    "Ignorer verified: ignores, 1 2, 2 0 0 0",
    "Late verified: has not read the newest version, 1 2, 0 2 0 0",
    "Obeyer impostor: no word, 1 1, 0 0 0 0",
    "Obeyer verified: obeys, 1 0, 0 0 0 0",
    "Split verified: ignores, 1 2, 2 0 0 0",
    "Stale verified: ignores, 1 1, 1 0 0 0",
    "Unseen verified: no read seen here, 0 1, 0 0 1 0",
];

/// Controls how far ahead the clock of the processes is.
pub(super) struct Clock {
    pub(super) library: PathBuf,
    pub(super) file: PathBuf,
}

impl Clock {
    pub(super) fn set(&self, seconds: impl Into<i128>) {
        replace_file(&self.file, format!("{:+}\n", seconds.into()));
    }

    pub(super) fn of(&self, command: &mut Command) {
        command.env("LD_PRELOAD", &self.library).env("FAKETIME_TIMESTAMP_FILE", &self.file);
        command.env("FAKETIME_NO_CACHE", "1").env("FAKETIME_DONT_FAKE_MONOTONIC", "1").env("NO_FAKE_STAT", "1");
    }

    pub(super) fn start(&self, folder: &Folder) -> Running {
        let mut command = folder.serve();
        self.of(&mut command);
        Running::spawn(&mut command)
    }
}

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

/// Sends a request with this agent. First waits until the process knows the crawler's identity
/// again.
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

/// Waits until the boards have counted new requests. The processes have then seen the current
/// clock.
fn settle<'r>(running: impl IntoIterator<Item = &'r Running>) {
    let allowed = |running: &Running| -> u64 {
        let board = rows(running);
        let crawlers = board["sites"][0]["crawlers"].as_array().cloned().unwrap_or_default();
        crawlers.iter().filter_map(|row| row["allowed"].as_u64()).sum()
    };
    let before: Vec<_> = running.into_iter().map(|running| (running, allowed(running))).collect();
    // A crawler that is in no registry.
    before.iter().for_each(|(running, _)| request(running, "Mybot", "198.51.100.7", "/open"));
    for (running, before) in before {
        wait_until("a moment of the board", || allowed(running) > before);
    }
}

/// Returns the rows of a report, except those that exist only because an identity was not known
/// yet.
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
fn the_merged_board_of_a_week_of_requests_has_the_expected_verdicts() {
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

    settle(&running);
    for (hour, replica, requests) in [
        (0, 0, &[("Obeyer", "/robots.txt")][..]),
        (20, 0, &[("Obeyer", "/open"), ("Stale", "/robots.txt"), ("Late", "/robots.txt")]),
        // The newer version is published.
        (24, 0, &[]),
        (25, 0, &[("Late", "/private/1"), ("Ignorer", "/robots.txt")]),
        (31, 0, &[("Ignorer", "/private/2")]),
        (42, 0, &[("Ignorer", "/private/3"), ("Late", "/private/4")]),
        (50, 0, &[("Stale", "/private/5"), ("Unseen", "/private/6")]),
        (80, 0, &[("Split", "/robots.txt")]),
        (81, 1, &[("Split", "/private/7")]),
        (82, 1, &[("Split", "/private/8")]),
    ] {
        clock.set(hour * 3600);
        settle(&running);
        if requests.is_empty() {
            let live = |running: &Running| rows(running)["sites"][0]["never_hit"]["version"].clone();
            let before = running.each_ref().map(live);
            folders.iter().for_each(|folder| folder.replace("robots.txt", NEW));
            for (running, before) in running.iter().zip(before) {
                wait_until("the newer version", || running.get("/robots.txt", FIREFOX).body == NEW);
                wait_until("the board to know it", || live(running) != before);
            }
        }
        for (crawler, path) in requests {
            request_as(&running[replica], crawler, address(crawler), "verified", path);
        }
    }
    clock.set(90 * 3600);
    settle(&running);
    // An impostor is refuted only after the real crawler has been seen.
    request_as(&running[0], "Obeyer", address("Obeyer"), "verified", "/open");
    request_as(&running[0], "Obeyer", IMPOSTOR, "refuted", "/robots.txt");
    request_as(&running[0], "Obeyer", IMPOSTOR, "refuted", "/private/9");

    // The clock advances by a minute, so that counts are written.
    clock.set(91 * 3600);
    settle(&running);
    wait_until("the words of both", || merged() == WEEK);
    for signal in ["TERM", "KILL", "KILL"] {
        wait_until("the words of one", || {
            said(&rows(&running[1])) == ["Split verified: no read seen here, 0 2, 0 0 2 0"]
        });
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

const LIST: &str = "https://lists.example/crawlers.json";

/// A site that verifies its crawlers with a local list, and logs in a common format.
fn logged() -> Folder {
    let row = |name: &str| {
        format!("[[crawler]]\nname = {name:?}\ncategory = \"search\"\noperator = {name:?}\nranges = [\"{LIST}\"]\n")
    };
    let rows: String = CRAWLERS.iter().map(|(name, _)| row(name)).collect();
    // An operator with two crawlers and one service.
    let trainer = row("Trainer")
        .replace("\"search\"", "\"ai-training\"")
        .replace("operator = \"Trainer\"", "operator = \"Obeyer\"");
    let obeyer = rows.replacen(
        "operator = \"Obeyer\"\n",
        "operator = \"Obeyer\"\nreferers = [\"answers.example\", \"obeyer.*\"]\n",
        1,
    );
    Config::new()
        .keys("state_dir = \"state\"\nmode = \"observe\"")
        .listener(TRUSTING)
        .site("shop", "root = \"pages\"\nrobots.path = \"robots.txt\"")
        .tables("[agents]\nregistry_extra = \"crawlers.toml\"\n[[admin.listener]]\naddress = \"127.0.0.1:0\"")
        .tables(format!("[[identity.list]]\nurl = \"{LIST}\"\npath = \"list.json\""))
        .tables(
            "[board]\nsees_all = true\n[log]\naddress = \"keep\"\naccess = \"combined\"\naccess_path = \"access.log\"",
        )
        .robots(OLD)
        .file("crawlers.toml", crawlers() + &obeyer + &trainer)
        .file("list.json", r#"{"prefixes": [{"ipv4Prefix": "8.8.4.0/24"}]}"#)
        .file("pages/page.html", "a page\n")
        .file("pages/style.css", "\n")
        .folder()
}

/// Returns the counts and the verdict of each crawler in the registry.
fn words(crawlers: &Value) -> Vec<Value> {
    let keys = ["crawler", "identity", "word", "reads", "allowed", "disallowed", "pages", "judged"];
    let rows = crawlers.as_array().expect("crawlers").iter().filter(|row| row["operator"] != "");
    let mut words: Vec<Value> = rows.map(|row| keys.iter().map(|key| row[*key].clone()).collect()).collect();
    words.sort_by_key(|row| row[0].to_string());
    words
}

fn committed(folder: &Folder, text: &str, seconds: u64) {
    folder.write("history/robots.txt", text);
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command.arg("-C").arg(folder.at("history")).args(["-c", "user.name=t", "-c", "user.email=t@shop.test"]);
        let date = format!("@{seconds} +0000");
        command.args(arguments).env("GIT_COMMITTER_DATE", &date).env("GIT_AUTHOR_DATE", "@1000000000 +0000");
        run(&mut command).succeeded();
    };
    git(&["init", "--quiet"]);
    git(&["add", "robots.txt"]);
    git(&["commit", "--quiet", "--message", "A version"]);
}

#[test]
fn the_live_board_and_a_replay_of_its_log_agree_on_verdicts_and_visitors() {
    let Some(library) = faketime() else { return skip("libfaketime") };
    if Command::new("git").arg("--version").output().is_err() {
        return skip("git");
    }
    let folder = logged();
    let clock = Clock { library, file: folder.path().join("clock") };
    clock.set(0);
    let now = || SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    committed(&folder, OLD, now() - 7200);
    let mut running = clock.start(&folder);
    settle([&running]);
    let address = |crawler: &str| CRAWLERS.iter().find(|(name, _)| *name == crawler).map_or("8.8.4.77", |(_, of)| *of);
    let visit = |path: &str, referer: &str, agent: &str| {
        let fields =
            [("Host", "shop.test"), ("User-Agent", agent), ("X-Forwarded-For", "192.0.2.7"), ("Referer", referer)];
        running.request("GET", path, &fields);
    };
    for (hour, requests) in [
        (1, &[("Obeyer", "/robots.txt"), ("Trainer", "/robots.txt")][..]),
        (2, &[("Obeyer", "/page.html"), ("Trainer", "/page.html")]),
        (20, &[("Stale", "/robots.txt"), ("Late", "/robots.txt")]),
        // The newer version is published.
        (24, &[]),
        (25, &[("Late", "/private/1"), ("Ignorer", "/robots.txt")]),
        (31, &[("Ignorer", "/private/2"), ("Trainer", "/style.css")]),
        (42, &[("Ignorer", "/private/3"), ("Late", "/private/4"), ("Obeyer", "/robots.txt")]),
        (50, &[("Stale", "/private/5"), ("Unseen", "/private/6")]),
        (90, &[("Split", "/robots.txt")]),
        (91, &[("Split", "/page.html")]),
        (100, &[("Trainer", "/nothing")]),
        (160, &[("Obeyer", "/page.html")]),
        (161, &[("Split", "/private/8")]),
    ] {
        clock.set(hour * 3600);
        settle([&running]);
        if requests.is_empty() {
            let live = || rows(&running)["sites"][0]["never_hit"]["version"].clone();
            let before = live();
            folder.replace("robots.txt", NEW);
            wait_until("the newer version", || running.get("/robots.txt", FIREFOX).body == NEW);
            wait_until("the board to know it", || live() != before);
            committed(&folder, NEW, now() + hour * 3600);
        }
        requests.iter().for_each(|(crawler, path)| request(&running, crawler, address(crawler), path));
    }
    // These requests are from an impostor, from visitors that services referred, and from others.
    request(&running, "Obeyer", IMPOSTOR, "/private/9");
    visit("/page.html", "https://answers.example/q?a=1", FIREFOX);
    visit("/page.html", "https://www.obeyer.co.uk/", FIREFOX);
    visit("/page.html", "https://answers.example/", GPTBOT);
    visit("/style.css", "https://answers.example/", FIREFOX);
    visit("/nothing", "https://answers.example/", FIREFOX);
    visit("/page.html", "https://shop.test/", FIREFOX);
    settle([&running]);
    let board = wait_for("the visitors", || {
        let mut board = rows(&running)["sites"][0].take();
        (board["given_back"][0]["visitors"] == 2).then(|| board.take())
    });
    let live = words(&board["crawlers"]);
    let said: Vec<String> = live.iter().map(|row| format!("{} {}", row[0].as_str().unwrap(), row[2])).collect();
    let want = [
        "Ignorer \"ignores\"",
        "Late \"has not read the newest version\"",
        "Obeyer null",
        "Obeyer \"obeys\"",
        "Split \"ignores\"",
        "Stale \"ignores\"",
        "Trainer \"obeys\"",
        "Unseen \"no read seen here\"",
    ];
    let mut sorted = said.clone();
    sorted.sort();
    let mut expected = want.map(str::to_owned);
    expected.sort();
    assert_eq!(sorted, expected, "{board}");
    let balance = &board["given_back"][0];
    let wanted = (&"Obeyer".into(), &3.into(), &1.5.into());
    assert_eq!((&balance["operator"], &balance["pages"], &balance["pages_per_visitor"]), wanted);
    let csv = running.ask_admin("GET /board.csv?period=30d").body;
    let parts = ["pages,operator_visitors,operator_pages_per_visitor", "Trainer,Obeyer,ai-training,verified,obeys"];
    assert_has(&csv, &parts);
    let wants = ["What crawling gives back", "1 from answers.example, 1 from obeyer.*"];
    assert_has(&running.ask_admin("GET /board").body, &wants);
    running.signal("TERM");
    running.wait_for_end();
    // The board's files may contain only counts of human visitors.
    let days: String =
        fs::read_dir(folder.at("state/board/shop")).unwrap().flatten().map(|day| folder.read(day.path())).collect();
    assert_has(&days, &["\"visitors\":[{\"hour\":", "\"host\":\"answers.example\",\"visitors\":1}"]);
    assert_lacks(&days, &["192.0.2.7", "page.html", "a=1"]);

    let replay = |arguments: &[&str]| {
        let all = [&["replay", "access.log", "--format", "json", "--host", "shop.test"], arguments].concat();
        folder.with_config(&all).json()
    };
    let of_git = replay(&["--history", "history"]);
    assert_eq!(words(&of_git["history"]["crawlers"]), live);
    assert_eq!(of_git["given_back"], board["given_back"]);
    assert_eq!(of_git["history"]["versions"].as_array().unwrap().len(), 2);
    // These files contain the same versions. Their modification time is the time of the version.
    for (file, version) in [("one.txt", 0), ("two.txt", 1)] {
        folder.write(file, [OLD, NEW][version]);
        let since = of_git["history"]["versions"][version]["since"].as_str().unwrap();
        let since = humantime::parse_rfc3339(since).unwrap();
        fs::File::options().write(true).open(folder.at(file)).unwrap().set_modified(since).unwrap();
    }
    let of_files = replay(&["--history", "one.txt", "--history", "two.txt"]);
    assert_eq!(of_files["history"]["crawlers"], of_git["history"]["crawlers"]);

    // Before Split's last request, version 1 is in force again for ten hours. If the log has lines
    // from these hours, Split certainly did not fetch this version.
    let begin = humantime::parse_rfc3339(of_git["history"]["versions"][0]["since"].as_str().unwrap()).unwrap();
    let at = |hour: u64| begin + Duration::from_secs((hour + 2) * 3600);
    for (file, text, hour) in [("three.txt", OLD, 140), ("four.txt", NEW, 150)] {
        folder.write(file, text);
        fs::File::options().write(true).open(folder.at(file)).unwrap().set_modified(at(hour)).unwrap();
    }
    let log = folder.read("access.log");
    let quiet = |hour| {
        json!({ "time": humantime::format_rfc3339_seconds(at(hour)).to_string(), "remote_addr": "192.0.2.7", "status": 200,
                "request_method": "GET", "request_uri": "/page.html", "http_user_agent": FIREFOX, "http_host": "shop.test" })
    };
    let every: String = (91..=160).map(|hour| format!("{}\n", quiet(hour))).collect();
    for (log, word, judged) in [(log.clone() + &every, json!("ignores"), "ignored"), (log, Value::Null, "undecided")] {
        folder.write("access.log", log);
        let files = ["one.txt", "two.txt", "three.txt", "four.txt"].map(|file| ["--history", file]).concat();
        let report = replay(&files);
        let split = row(&report["history"]["crawlers"], "crawler", "Split");
        assert_eq!((&split["word"], &split["judged"][judged]), (&word, &1.into()), "{split}");
    }
}
