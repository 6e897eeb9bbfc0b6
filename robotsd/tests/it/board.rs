//! Tests the board: what crawlers fetched and requested, before and after a restart and `kill -9`.

use std::time::UNIX_EPOCH;

use crate::harness::*;

const ROBOTS: &str = "User-agent: GPTBot\nDisallow: /private/\n";
const CONFIG: &str = "state_dir = \"state\"\nworkers = 2\n[admin]\nsocket = \"admin.sock\"\n[[listener]]\naddress = \"127.0.0.1:0\"\n\
                      [[listener]]\naddress = \"127.0.0.1:0\"\nkind = \"decision\"\n\
                      [[site]]\nname = \"Shop 1\"\nroot = \"pages\"\nrobots.path = \"robots.txt\"\n[board]\nsees_all = true\n";

fn site_folder() -> Folder {
    folder(&[("robotsd.toml", CONFIG), ("robots.txt", ROBOTS), ("pages/none", "")])
}

fn output(folder: &Folder, more: &[&str]) -> String {
    folder.with_config(&[&["board"], more].concat()).succeeded()
}

fn crawlers(folder: &Folder) -> Vec<Value> {
    // The output is empty if the disk was so slow that the report was refused.
    let report: Value = serde_json::from_str(&folder.with_config(&["board", "--json"]).out).unwrap_or_default();
    report["sites"][0]["crawlers"].as_array().cloned().unwrap_or_default()
}

/// Folder with the board's files of the site `Shop 1`.
const FILES: &str = "state/board/%53hop%201";

fn files(folder: &Path) -> Vec<PathBuf> {
    let folder = fs::read_dir(folder).into_iter().flatten();
    folder
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "jsonl"))
        .collect()
}

fn is_written(folder: &Path, what: &str) -> bool {
    files(folder).iter().any(|path| fs::read_to_string(path).is_ok_and(|text| text.contains(what)))
}

pub(super) fn lines(folder: &Path) -> Vec<Value> {
    let mut files = files(folder);
    files.sort();
    let texts = files.iter().filter_map(|path| fs::read_to_string(path).ok());
    texts.flat_map(|text| text.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<_>>()).collect()
}

/// Returns the number of disallowed requests in the lines of the files, over all hours.
pub(super) fn written_disallowed(lines: &[Value]) -> u64 {
    lines.iter().filter_map(|line| line["hour"]["disallowed"].as_u64()).sum()
}

#[test]
fn the_board_counts_crawlers_and_the_counts_survive_a_kill() {
    let folder = site_folder();
    let mut running = folder.start();
    running.get("/robots.txt", GPTBOT);
    for path in ["/private/a", "/private/b", "/%70rivate/c", "/page"] {
        running.get(path, GPTBOT);
    }
    running.request("HEAD", "/robots.txt", &[("User-Agent", GPTBOT)]);
    running.get("/private/a", FIREFOX);
    // Counts are collected once per second, so these requests may be collected at different times.
    let counted = || crawlers(&folder).into_iter().next().filter(|row| row["disallowed"] == 3 && row["allowed"] == 1);
    let row = wait_for("three disallowed requests and a page", counted);
    let part = json!({
        "crawler": "GPTBot", "identity": "claimed", "operator": "OpenAI", "allowed": 1, "reads": 1, "word": null,
        "done": { "observed": 3 }, "judged": { "ignored": 0, "not_newest": 0, "unread": 0, "undecided": 0 },
        "last_read": { "is_newest": true }, "worst_line": { "line": 2, "pattern": "/private/" },
    });
    assert_part(&row, &part);
    assert_has(output(&folder, &[]), &["GPTBot (claimed)\n", "not verified: anyone could have sent these requests"]);
    let table = output(&folder, &["--csv", "Shop 1"]);
    assert!(table.lines().nth(1).unwrap().starts_with("Shop 1,GPTBot,OpenAI,ai-training,claimed,,"), "{table}");
    assert_eq!(output(&folder, &["--csv", "--site", "Shop 1"]), table);
    assert_has(folder.with_config(&["board", "--site", "none"]).failed(2), &["none"]);

    // The board writes its counts immediately when a version is published.
    folder.replace("robots.txt", format!("{ROBOTS}Disallow: /more/\n"));
    wait_until("files of the board", || written_disallowed(&lines(&folder.at(FILES))) == 3);
    running.signal("KILL");
    running.wait_for_end();
    let running = folder.start();
    let after = wait_for("the counts from before", || crawlers(&folder).into_iter().next());
    let part = json!({ "disallowed": 3, "allowed": 1, "reads": 1, "last_read": { "is_newest": false } });
    assert_part(&after, &part);
    assert!(is_written(&folder.at(FILES), "/private/"), "patterns, and no paths");
    assert!(!is_written(&folder.at(FILES), "/private/a"), "patterns, and no paths");
    drop(running);
}

#[test]
fn the_board_begins_with_the_off_switch_and_the_pending_version() {
    let folder = site_folder();
    let running = folder.start();
    assert_has(output(&folder, &[]), &["is serving, 1 site\n\nfrom "]);
    folder.replace("robots.txt", "User-agent: *\nDisallow: /\n");
    running.event("gated");
    folder.with_config(&["enforce", "off"]).succeeded();
    let text = output(&folder, &[]);
    assert_has(&text, &["1 site, ENFORCEMENT IS OFF FOR EVERY SITE; site Shop 1: gated, ", " is pending\n"]);
    assert_has(&text, &["robotsd status --problems --config "]);
}

/// While enforcement is off, crawlers are not recognised. The board must record this as a gap,
/// however short it is.
#[test]
fn the_board_records_a_gap_if_enforcement_is_off_for_a_moment() {
    let folder = site_folder();
    let running = folder.start();
    // The wait for a count makes the first watch long enough to be split.
    running.get("/private/a", GPTBOT);
    wait_until("a count", || !crawlers(&folder).is_empty());
    for to in ["off", "on"] {
        let request = format!("POST /enforce?to={to} HTTP/1.1\r\nHost: robotsd\r\nConnection: close\r\n\r\n");
        let socket = std::os::unix::net::UnixStream::connect(folder.at("admin.sock")).unwrap();
        let answer = offer(socket, request).expect("an answer");
        assert_eq!(Answer::parse(&answer).status, 200);
    }
    running.get("/private/b", GPTBOT);
    wait_until("another count", || crawlers(&folder).first().is_some_and(|row| row["disallowed"] == 2));
    // The board writes its counts immediately when a version is published.
    folder.replace("robots.txt", format!("{ROBOTS}Disallow: /more/\n"));
    let watches =
        || -> Vec<Value> { lines(&folder.at(FILES)).iter().filter_map(|line| line.get("watch").cloned()).collect() };
    wait_until("files of the board", || written_disallowed(&lines(&folder.at(FILES))) == 2 && watches().len() > 1);
    let watches = watches();
    assert_eq!(watches[0]["process"], watches[1]["process"], "{watches:?}");
    assert!(watches[0]["to"].as_u64() < watches[1]["from"].as_u64(), "{watches:?}");
}

/// Without a robots.txt, crawlers are not recognised. A crawler that gets a 404 for robots.txt may
/// request everything, so the board must record this time as a gap.
#[test]
fn the_board_records_a_gap_while_a_site_has_no_robots_txt() {
    let origin = Origin::publishing(404, "none");
    let site = format!("upstreams = [\"http://{origin}\"]\nrobots = {{ source = \"upstream\", host = \"a.test\" }}");
    let config = Config::new().keys("state_dir = \"state\"").admin_socket().site("Shop 1", site);
    let (folder, running) = config.tables("[board]\nsees_all = true").start();
    running.event("absent");
    let watch = |is_wanted: fn(&Value) -> bool| {
        lines(&folder.at(FILES))
            .iter()
            .filter_map(|line| line.get("watch"))
            .rfind(|watch| is_wanted(&watch["version"]))
            .cloned()
    };
    // The board writes its counts immediately when the live version changes.
    let without = wait_for("a watch without a version", || watch(Value::is_null));
    // A gap within one second would have no length.
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    wait_until("a later second", || now() > without["to"].as_u64().unwrap());
    origin.show(200, ROBOTS);
    folder.with_config(&["reload"]).succeeded();
    let with = wait_for("a watch of the version", || watch(Value::is_string));
    let without = watch(Value::is_null).unwrap();
    assert!(without["to"].as_u64() < with["from"].as_u64(), "{without} {with}");
}

/// Returns a line of a day's file about one hour of a verified crawler.
fn hour(crawler: &str, hour: u64, counts: Value) -> String {
    let mut line = json!({
        "hour": hour, "crawler": crawler, "identity": "verified", "operator": crawler, "category": "search", "chain": [crawler],
    });
    for (key, value) in counts.as_object().unwrap() {
        line[key] = value.clone();
    }
    json!({ "hour": line }).to_string()
}

/// A line of a day's file, with the first second of the day.
pub(super) type DayLine = (u64, String);

/// Writes the board of a site `Shop 1` on which every verdict occurs, each for a verified crawler.
pub(super) fn write_words(folder: &Path) {
    write_lines(folder, 1, &words_of_one_process());
}

thread_local! {
    /// The current time. It stays the same within a thread, so that no hour ends between two lines.
    static NOW: u64 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
}

pub(super) fn hours(ago: u64) -> u64 {
    NOW.with(|now| now - now % 3600 - ago * 3600)
}

pub(super) fn read(version: &str, ago: u64) -> Value {
    let at = hours(ago) + 1;
    json!([{ "origin": "https://a.test", "version": version, "first": at, "last": at, "count": 1 }])
}

fn went_in(ago: u64) -> Value {
    let at = hours(ago) + 9;
    let case = json!([{ "origin": "https://a.test", "disallowed_by": ["2"], "allowed_by": ["1"], "first": at, "last": at, "count": 4 }]);
    let line = json!([{ "version": "2", "line": 2, "pattern": "/private/", "hits": 4 }]);
    json!({ "allowed": ago, "disallowed": 4, "done": { "refused": 4 }, "cases": case, "lines": line })
}

pub(super) fn row(crawler: &str, ago: u64, counts: Value) -> DayLine {
    let begin = hours(ago);
    (begin - begin % 86_400, hour(crawler, begin, counts))
}

/// Returns watches of fetches for the last three days. Version 2 has been live for the last ten
/// hours. The last watch ends before the current hour, so that it never ends in the second in which
/// the tested process starts.
pub(super) fn watches() -> [DayLine; 2] {
    [(hours(72), hours(10), "1"), (hours(10), hours(0) - 1, "2")].map(|(from, to, version)| {
        let watch = json!({ "from": from, "to": to, "version": version, "process": 1 });
        (to - to % 86_400, json!({ "watch": watch }).to_string())
    })
}

fn words_of_one_process() -> Vec<DayLine> {
    let impostor = |(day, line): DayLine| (day, line.replace("\"verified\"", "\"impostor\""));
    let rows = [
        row("Obeyer", 5, json!({ "allowed": 7, "reads": read("2", 5) })),
        // This crawler still obeys version 1, 20 hours after the fetch.
        row("Late", 22, json!({ "reads": read("1", 22) })),
        row("Late", 2, went_in(2)),
        row("Ignorer", 5, json!({ "reads": read("2", 5) })),
        row("Ignorer", 2, went_in(2)),
        row("Stale", 40, json!({ "reads": read("1", 40) })),
        row("Stale", 2, went_in(2)),
        row("Unseen", 2, went_in(2)),
        impostor(row("Obeyer", 3, json!({ "reads": read("2", 3) }))),
        impostor(row("Obeyer", 2, went_in(2))),
    ];
    watches().into_iter().chain(rows).collect()
}

/// Writes the board of a site `Shop 1` that this many replicas serve.
pub(super) fn write_lines(folder: &Path, replicas: usize, lines: &[DayLine]) {
    let site = json!({ "site": { "name": "Shop 1", "sees_all": true, "replicas": replicas } }).to_string();
    let folder = folder.join(FILES);
    fs::create_dir_all(&folder).unwrap();
    let days: BTreeSet<u64> = lines.iter().map(|(day, _)| *day).collect();
    for day in days {
        let of_day = lines.iter().filter(|(of, _)| *of == day).map(|(_, line)| line);
        let text: String = std::iter::once(&site).chain(of_day).map(|line| format!("{line}\n")).collect();
        let end = json!({ "end": { "hash": tower_robots::live::VersionHash::of(text.as_bytes()).to_string() } });
        let date = humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(day)).to_string();
        fs::write(folder.join(format!("{}.jsonl", &date[..10])), format!("{text}{end}\n")).unwrap();
    }
}

/// Returns a line for each crawler: the verdict, fetches, requests, and disallowed requests by what
/// was fetched before.
fn said(crawlers: &[Value]) -> Vec<String> {
    let said = |row: &Value| {
        let text = |key: &str| row[key].as_str().unwrap_or("no word").to_owned();
        let judged =
            ["ignored", "not_newest", "unread", "undecided"].map(|kind| row["judged"][kind].to_string()).join(" ");
        let counts = ["reads", "allowed", "disallowed"].map(|kind| row[kind].to_string()).join(" ");
        format!("{} {}: {}, {counts}, {judged}", text("crawler"), text("identity"), text("word"))
    };
    let mut all: Vec<String> = crawlers.iter().map(said).collect();
    all.sort();
    all
}

/// Verdicts are derived from the files, so every process that reads the files must show the same
/// verdicts.
#[test]
fn verdicts_are_the_same_after_a_restart_and_a_kill() {
    let folder = site_folder();
    write_words(folder.path());
    let words = || said(&crawlers(&folder));
    let want = [
        "Ignorer verified: ignores, 1 2 4, 4 0 0 0",
        "Late verified: has not read the newest version, 1 2 4, 0 4 0 0",
        "Obeyer impostor: no word, 1 2 4, 0 0 0 0",
        "Obeyer verified: obeys, 1 7 0, 0 0 0 0",
        "Stale verified: ignores, 0 2 4, 4 0 0 0",
        "Unseen verified: no read seen here, 0 2 4, 0 0 4 0",
    ];
    for signal in ["TERM", "KILL", "KILL"] {
        let mut running = folder.start();
        assert_eq!(wait_for("the board", || Some(words()).filter(|words| !words.is_empty())), want, "{signal}");
        running.signal(signal);
        running.wait_for_end();
    }
    assert_has(folder.run(["board", "--merge", "state"]).out, &["Ignorer (verified): ignores\n"]);
    assert_has(folder.run(["board", "--merge", "state", "state"]).error, &["is given twice"]);
}

/// The crawler fetches robots.txt on one replica and requests disallowed pages on another. Neither
/// replica alone may accuse the crawler. Both together must accuse it, even after a kill.
#[test]
fn a_fetch_and_requests_on_two_replicas_lead_to_the_same_verdict_after_a_kill() {
    let replicas = [site_folder(), site_folder()];
    let rows = [row("Split", 5, json!({ "allowed": 1, "reads": read("2", 5) })), row("Split", 2, went_in(2))];
    for (folder, row) in replicas.iter().zip(rows) {
        let config = CONFIG.replace("sees_all = true\n", "sees_all = true\nreplicas = 2\n");
        folder.write("robotsd.toml", config);
        let lines: Vec<DayLine> = watches().into_iter().chain([row]).collect();
        write_lines(folder.path(), 2, &lines);
    }
    let alone = ["Split verified: obeys, 1 1 0, 0 0 0 0", "Split verified: no read seen here, 0 2 4, 0 0 4 0"];
    let merged = || {
        let states = replicas.iter().map(|folder| folder.at("state"));
        let report = run(robotsd().args(["board", "--json", "--merge"]).args(states)).json();
        said(report["sites"][0]["crawlers"].as_array().unwrap())
    };
    for signal in ["TERM", "KILL", "KILL"] {
        let mut running = replicas.each_ref().map(|folder| folder.start());
        for (folder, want) in replicas.iter().zip(alone) {
            let words = || Some(said(&crawlers(folder))).filter(|words| !words.is_empty());
            assert_eq!(wait_for("the board", words), [want], "{signal}");
        }
        assert_eq!(merged(), ["Split verified: ignores, 1 3 4, 4 0 0 0"], "{signal}");
        running.iter_mut().for_each(|running| {
            running.signal(signal);
            running.wait_for_end();
        });
    }
    assert_eq!(merged(), ["Split verified: ignores, 1 3 4, 4 0 0 0"]);
}
