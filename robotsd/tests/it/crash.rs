//! Tests crashes at every point while robotsd writes versions, switches, the board or a published
//! registry, and during upgrades. File operations are recorded as in the library's tests
//! (`tests/it/crash` of the root package). Then robotsd is started with the files that a crash
//! would leave.

#[path = "../../../tests/it/crash/failing.rs"]
mod failing;
#[path = "../../../tests/it/crash/file_system.rs"]
mod file_system;
#[path = "../../../tests/it/crash/recording.rs"]
mod recording;
#[path = "../../../tests/it/crash/states.rs"]
mod states;

use std::os::unix::net::UnixStream;

use self::failing::{Failing, can_attach};
use self::file_system::{Fate, FileSystem, Files, make_files};
use self::recording::{folder_inside, record};
use self::states::{Tried, Values, begin, end, most};
use super::upstreams::secure_origin;
use crate::harness::*;

/// Default number of states per crash point. [`EVERY`] is the default interval of crash points.
const USUAL: usize = 2;
const EVERY: usize = 64;

fn robots(source: &str) -> String {
    format!("User-agent: GPTBot\nDisallow: /private/\nDisallow: /{source}\n")
}

fn registry(name: &str) -> String {
    format!("[[crawler]]\nname = \"{name}\"\nheader = [\"{name}\"]\ncategory = \"ai-training\"\n")
}

/// Creates a folder. Its state is in `state`, and its registry is published at `url`.
fn site(state: &Path, source: &str, url: &str, authority: &str) -> Folder {
    let config = Config::refusing().keys(format!("state_dir = {state:?}")).admin_socket();
    let config = config.site("shop", "root = \"pages\"\nrobots.path = \"robots.txt\"");
    let tables = format!("[board]\nsees_all = true\n[agents]\nregistry_url = \"{url}\"\nregistry_ca = \"ca.pem\"");
    config.tables(tables).robots(robots(source)).file("ca.pem", authority).file("pages/a.html", "a page").folder()
}

fn report(folder: &Folder, path: &str) -> Value {
    wait_for("a report", || {
        let socket = UnixStream::connect(folder.at("admin.sock")).ok()?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: robotsd\r\nConnection: close\r\n\r\n");
        let answer = Answer::parse(&offer(socket, request)?);
        (answer.status == 200).then(|| answer.json())
    })
}

/// Returns everything that must survive a crash, as reported by a process that serves the folder.
fn values(folder: &Folder, source: &str, url: &str) -> Values {
    let status = report(folder, "/status");
    let text = |value: &Value| value.as_str().unwrap_or("none").to_owned();
    let board = report(folder, "/board.json");
    let rows = board["sites"][0]["crawlers"].as_array().cloned().unwrap_or_default();
    let disallowed: u64 = rows.iter().filter_map(|row| row["disallowed"].as_u64()).sum();
    let site = &status["sites"][0];
    let values = [
        ("all", text(&status["enforcement"])),
        ("shop", text(&site["switch"])),
        ("live", text(&site["hash"])),
        ("registry", text(&status["registry"]["published"]["hash"])),
        ("board", disallowed.to_string()),
        ("source", source.to_owned()),
        ("url", url.to_owned()),
    ];
    values.map(|(key, value)| (key.to_owned(), value)).into()
}

/// Serves a site, makes decisions, upgrades and restarts. Each of these actions is one step of the
/// recording.
fn serve_decide_upgrade_and_restart(folder: &Path) {
    let (server, authority) = secure_origin("localhost", &registry("FirstBot"));
    let url = format!("https://localhost:{}/crawlers.toml", server.address.port());
    let mut source = "a";
    let folder = site(&folder.join("state"), source, &url, &authority);
    let none = [("live", "none"), ("registry", "none"), ("board", "0"), ("all", "on"), ("shop", "on")];
    begin();
    let nothing = none.into_iter().chain([("source", source), ("url", &url)]);
    end(&nothing.map(|(key, value)| (key.to_owned(), value.to_owned())).collect(), &[], &[]);

    begin();
    let mut running = folder.start();
    let is_fetched = || report(&folder, "/status")["registry"]["published"]["origin"] == "fetched";
    wait_until("the registry", is_fetched);
    end(&values(&folder, source, &url), &[], &[]);
    let over = |source: &str, kept: &[&str], synced: &[&str]| end(&values(&folder, source, &url), kept, synced);
    let counted = |count: u64| wait_until("a count", || values(&folder, "", "")["board"] == count.to_string());

    begin();
    running.get("/robots.txt", GPTBOT);
    assert_eq!(running.get("/private/x", GPTBOT).status, 403);
    counted(1);
    over(source, &[], &[]);

    begin();
    source = "b";
    folder.replace("robots.txt", robots(source));
    wait_until("the second version", || running.get("/robots.txt", FIREFOX).body == robots(source));
    over(source, &[], &[]);

    begin();
    folder.with_config(&["rollback", "shop"]).succeeded();
    over(source, &["live"], &["live"]);

    for (arguments, key) in [
        (&["enforce", "off"][..], "all"),
        (&["enforce", "off", "--site", "shop"], "shop"),
        (&["enforce", "off"], "all"),
        (&["enforce", "on"], "all"),
        (&["enforce", "on", "--site", "shop"], "shop"),
    ] {
        begin();
        folder.with_config(arguments).succeeded();
        over(source, &[key], &[key]);
    }

    // The new process has the counts and the saved registry.
    begin();
    let process = |folder: &Folder| u32::try_from(report(folder, "/status")["pid"].as_u64().unwrap()).unwrap();
    let before = process(&folder);
    folder.with_config(&["upgrade"]).succeeded();
    running.wait_for_end();
    let after = process(&folder);
    assert_ne!(before, after);
    counted(1);
    over(source, &["board", "live", "registry"], &[]);

    begin();
    assert_eq!(running.get("/private/x", GPTBOT).status, 403);
    counted(2);
    over(source, &[], &[]);

    begin();
    server.show(200, &registry("SecondBot"));
    signal("TERM", after);
    wait_until("the end of the new process", || !is_alive(after));
    source = "c";
    folder.replace("robots.txt", robots(source));
    running = folder.start();
    let line = |line: &Value| message(line).ends_with(": this registry is used now");
    running.wait_for_event("registry", line);
    counted(2);
    over(source, &["board"], &[]);

    begin();
    running.end();
    let _running = folder.start();
    wait_until("the registry", is_fetched);
    over(source, &["board", "live", "registry"], &[]);
}

/// Starts a robotsd with the files that a crash left, once or twice, and returns what it reports.
/// The server of the registry no longer responds.
fn start(files: &Files, last: &Values, twice: bool) -> Values {
    let folder = site(Path::new("state"), &last["source"], &last["url"], &Authority::new().pem());
    let state: Files = files
        .iter()
        .filter(|(path, _)| path.starts_with("state"))
        .map(|(path, it)| (path.clone(), it.clone()))
        .collect();
    make_files(&state, folder.path());
    let mut running = folder.start();
    let found = values(&folder, &last["source"], &last["url"]);
    running.end();
    assert_eq!(running.count("panic", |_| true), 0);
    if !twice {
        return found;
    }
    let running = folder.start();
    let again = values(&folder, &last["source"], &last["url"]);
    assert_eq!(found, again, "a second start has what the first had");
    drop(running);
    found
}

#[test]
fn every_saved_value_is_old_or_new_after_a_crash_at_any_point() {
    if let Some(folder) = folder_inside() {
        return serve_decide_upgrade_and_restart(&folder);
    }
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    fs::create_dir(&root).unwrap();
    let Some(operations) = record("crash::every_saved_value_is_old_or_new_after_a_crash_at_any_point", &root) else {
        return;
    };
    let every = if is_long() { 8 } else { EVERY };
    let mut number = 0;
    let start = |files: &Files, last: &Values| {
        number += 1;
        start(files, last, is_long() || number % 3 == 0)
    };
    Tried::all(&operations, most(USUAL), every, start).expect_none("robotsd");
}

#[test]
fn an_off_switch_of_a_fleet_survives_a_power_cut_without_the_store() {
    if let Some(folder) = folder_inside() {
        let fleet = "[admin]\naddress = \"127.0.0.1:0\"\n[fleet]\nname = \"shop\"\nstore = \"redis://127.0.0.1:1\"";
        let config = Config::refusing().keys(format!("state_dir = {:?}", folder.join("state"))).tables(fleet);
        let (_folder, running) = config.files_of("shop").robots(robots("a")).start();
        assert_eq!(running.ask_admin("POST /enforce?to=off&mark=m1").status, 200);
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    fs::create_dir(&root).unwrap();
    let name = "crash::an_off_switch_of_a_fleet_survives_a_power_cut_without_the_store";
    let Some(operations) = record(name, &root) else { return };
    let mut disk = FileSystem::new();
    operations.iter().for_each(|operation| disk.apply(operation));
    let lost = vec![Fate::Lost; disk.fates().len()];
    let files = disk.after(&lost);
    let kept = files.get(Path::new("state/fleet.json")).and_then(Option::as_ref).expect("the file of the fleet");
    assert_has(String::from_utf8_lossy(kept), &["\"*:m1\""]);
}

/// System calls, each with the errors that it may return. `write` fails only for files of the board
/// and the access log, because other writes may go to sockets.
const FAULTS: [(&str, &[&str]); 6] = [
    ("write", &["ENOSPC", "EDQUOT", "EIO"]),
    ("openat", &["EMFILE", "ENOSPC", "EROFS", "EDQUOT", "EIO"]),
    ("rename", &["EIO", "ENOSPC", "EROFS"]),
    ("unlink", &["EROFS", "EIO"]),
    ("mkdir", &["EDQUOT"]),
    ("fsync", &["EIO"]),
];

/// Counts requests, makes decisions and upgrades while system calls fail. Requests must be
/// answered, failed writes must be reported, and nothing may be lost that can be written later.
fn go_on(call: &str, error: &str) {
    let config = Config::refusing().keys("state_dir = \"state\"").admin_socket();
    let tables = "[board]\nsees_all = true\n[log]\naccess = \"combined\"\naccess_path = \"access.log\"";
    let config = config.site("shop", "root = \"pages\"\nrobots.path = \"robots.txt\"").tables(tables);
    let folder = config.robots(robots("a")).file("pages/a.html", "a page").folder();
    let status = || report(&folder, "/status");
    let fault = format!("{call}:error={error}");
    let mut running = folder.start();
    assert_eq!(running.get("/private/1", GPTBOT).status, 403);
    let mut paths = Vec::new();
    if call == "write" {
        let today = humantime::format_rfc3339(SystemTime::now()).to_string()[..10].to_owned();
        paths.extend([folder.at(format!("state/board/shop/{today}.tmp")), folder.at("access.log")]);
    }
    let failing = Failing::begin(running.id(), &fault, &paths);
    assert_eq!(running.get("/private/2", GPTBOT).status, 403, "{fault}");
    let is_written = folder.with_config(&["enforce", "off"]).code == Some(0);
    assert_ne!(running.get("/private/3", GPTBOT).status, 403, "{fault}: it is off");
    let now = status();
    assert_eq!(now["enforcement"], "off", "{fault}");
    assert!(is_written || now["problems"].as_array().is_some_and(|all| !all.is_empty()), "{fault}: {now}");
    // The upgrade may succeed or fail, but a process must serve.
    let upgrade = folder.with_config(&["upgrade"]);
    assert_eq!(running.get("/robots.txt", FIREFOX).body, robots("a"), "{fault}: {}", upgrade.said());
    drop(failing);
    // If an audit record could not be written, the problem ends with the next record that is
    // written.
    folder.with_config(&["enforce", "off"]).succeeded();
    let quiet = || {
        let now = status();
        let problems = [&now["problems"], &now["sites"][0]["problems"]];
        problems.iter().all(|all| all.as_array().is_none_or(Vec::is_empty))
    };
    // After a failed write, the board is written again after half a minute or with a new version.
    // The log is written again with its next line.
    folder.replace("robots.txt", format!("{}# again\n", robots("a")));
    let asked = AtomicUsize::new(4);
    wait_until(&format!("no problem after {fault}"), || {
        let _ = running.get("/robots.txt", FIREFOX);
        asked.fetch_add(1, Ordering::Relaxed);
        thread::sleep(Duration::from_millis(100));
        quiet()
    });
    let process = u32::try_from(status()["pid"].as_u64().unwrap()).unwrap();
    signal("TERM", process);
    if process == running.id() {
        running.wait_for_end();
    } else {
        wait_until("the end of the new process", || !is_alive(process));
    }
    assert_eq!(running.count("panic", |_| true), 0, "{fault}");
    let lines = folder.read("access.log").lines().count();
    let has_lost = running.has_event("access-log", |line| message(line).contains("are lost"));
    assert!(lines == asked.into_inner() || has_lost && call == "write", "{fault}: {lines} lines");

    let _running = folder.start();
    let found = values(&folder, "", "");
    assert_eq!((&*found["all"], &*found["board"]), ("off", "2"), "{fault}");
}

#[test]
fn robotsd_keeps_serving_despite_disk_errors_and_saves_its_data_later() {
    if !can_attach() {
        return super::programs::skip("strace, or the permission to look at another process");
    }
    // The first errors of each call are tried at the same time, because each waits for the disk.
    let most = if is_long() { usize::MAX } else { 1 };
    thread::scope(|scope| {
        for (call, errors) in FAULTS {
            scope.spawn(move || errors.iter().take(most).for_each(|error| go_on(call, error)));
        }
    });
}
