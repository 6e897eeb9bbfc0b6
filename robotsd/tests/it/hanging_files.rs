//! A file system that hangs: reading a file blocks for ever, and only what needs that file waits.

use std::fs::{self, File};
use std::process::Command;
use std::time::{Duration, SystemTime};

use super::admin::ask;
use super::process::{GPTBOT, Running, folder, robotsd, run, wait_for};

const ROBOTS: &str = "User-agent: GPTBot\nDisallow: /page\n";
const EXPECTED: &str = "[[allow]]\nagents = [\"bingbot\"]\npaths = [\"/\"]\n";
const LISTENER: &str =
    "mode = \"refuse\"\n[[listener]]\naddress = \"127.0.0.1:0\"\n[admin]\naddress = \"127.0.0.1:0\"\n";
const HANGING: &str = "[[site]]\nname = \"hanging\"\nhosts = [\"hanging.test\"]\nroot = \".\"\n\
    robots.path = \"hanging.txt\"\nrobots.expectations = \"expected.toml\"\n";
const WELL: &str = "[[site]]\nname = \"well\"\nhosts = [\"well.test\"]\nroot = \".\"\nrobots.path = \"well.txt\"\n";

fn stdout_of(running: &Running, arguments: &[&str]) -> String {
    let output = run(robotsd().args(arguments).arg("--admin").arg(running.admin().to_string()));
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn page(running: &Running, host: &str) -> u16 {
    running.request("GET", "/page.html", &[("Host", host), ("User-Agent", GPTBOT)]).status
}

#[test]
fn a_file_whose_reading_never_ends_holds_up_its_own_site_alone() {
    let folder = folder(&[
        ("robotsd.toml", &[LISTENER, HANGING, WELL].concat()),
        ("hanging.txt", ROBOTS),
        ("well.txt", ROBOTS),
        ("expected.toml", EXPECTED),
        ("page.html", "hello"),
    ]);
    let mut running = Running::start(folder.path());
    // A pipe that has a writer who writes nothing, in place of the file.
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let expected = folder.path().join("expected.toml");
    fs::rename(&pipe, &expected).unwrap();
    let _writer = File::options().read(true).write(true).open(&expected).unwrap();
    let is_reading = || {
        let open = fs::read_dir(format!("/proc/{}/fd", running.id())).unwrap().flatten();
        open.filter_map(|entry| fs::read_link(entry.path()).ok()).any(|path| path == expected).then_some(())
    };
    wait_for("robotsd to read what is expected", is_reading);

    assert!(stdout_of(&running, &["status"]).contains("site well"), "the status is answered");
    assert_eq!(ask(running.admin(), "GET /readyz", "Host: localhost\r\n").status, 200);
    assert!(stdout_of(&running, &["reload", "--site", "well"]).contains("unchanged"));
    for (switch, status) in [("off", 200), ("on", 403)] {
        for arguments in [&["enforce", switch][..], &["enforce", switch, "--site", "hanging"]] {
            stdout_of(&running, arguments);
        }
        assert_eq!((page(&running, "well.test"), page(&running, "hanging.test")), (status, status));
    }
    // Without the site its file is not needed.
    fs::write(folder.path().join("robotsd.toml"), [LISTENER, WELL].concat()).unwrap();
    let is_gone = |line: &serde_json::Value| line["message"].as_str().unwrap().contains("site \"hanging\" is gone");
    running.wait_for_event("config", is_gone);
    assert!(!stdout_of(&running, &["status"]).contains("site hanging"));
    assert_eq!((page(&running, "well.test"), page(&running, "hanging.test")), (403, 421));
    running.signal("TERM");
    assert!(running.wait_for_end().success());
}

/// However many ask for the board, few threads wait for its files, and all get an answer.
#[test]
fn a_board_whose_files_hang_says_so_and_keeps_few_threads() {
    let folder = folder(&[
        ("robotsd.toml", &["state_dir = \"state\"\n", LISTENER, WELL].concat()),
        ("well.txt", ROBOTS),
        ("page.html", "hello"),
    ]);
    let board = folder.path().join("state/board/well");
    fs::create_dir_all(&board).unwrap();
    // Today, and tomorrow, should it begin meanwhile.
    let writers: Vec<File> = [0, 1]
        .map(|days| {
            let at = SystemTime::now() + Duration::from_secs(days * 86_400);
            let pipe = board.join(format!("{}.jsonl", &humantime::format_rfc3339_seconds(at).to_string()[..10]));
            assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
            File::options().read(true).write(true).open(&pipe).unwrap()
        })
        .into();
    let mut running = Running::start(folder.path());
    let threads = || fs::read_dir(format!("/proc/{}/task", running.id())).unwrap().count();
    let before = threads();
    let admin = running.admin();
    let asking: Vec<_> =
        (0..12).map(|_| std::thread::spawn(move || ask(admin, "GET /board.json", "Host: localhost\r\n"))).collect();
    for asked in asking {
        let answer = asked.join().unwrap();
        assert_eq!(answer.status, 503, "{}", answer.body);
        assert!(answer.body.contains("state/board could not be read in 5 seconds"), "{}", answer.body);
    }
    // Those that read, the one that writes, and some that do other work for a moment.
    assert!(threads() <= before + 10, "{before} {}", threads());
    assert_eq!(ask(running.admin(), "GET /readyz", "Host: localhost\r\n").status, 200);
    assert!(stdout_of(&running, &["status"]).contains("site well"), "the status is answered");
    assert_eq!(page(&running, "well.test"), 403);
    // Once the files can be read, or cannot at all, the board is there again.
    drop(writers);
    // Something may be written there meanwhile.
    wait_for("the files are gone", || fs::remove_dir_all(&board).is_ok().then_some(()));
    wait_for("the board", || (ask(admin, "GET /board.json", "Host: localhost\r\n").status == 200).then_some(()));
    running.signal("TERM");
    assert!(running.wait_for_end().success());
}

/// Old files are looked for, removed and folded behind everything else: where one hangs, nobody who asks waits for it.
#[test]
fn an_old_file_of_the_board_that_hangs_holds_up_nobody() {
    let folder = folder(&[
        ("robotsd.toml", &["state_dir = \"state\"\n", LISTENER, WELL].concat()),
        ("well.txt", ROBOTS),
        ("page.html", "hello"),
    ]);
    let board = folder.path().join("state/board/well");
    fs::create_dir_all(&board).unwrap();
    let past = SystemTime::now() - Duration::from_secs(100 * 24 * 3600);
    let old = board.join(humantime::format_rfc3339_seconds(past).to_string()[..10].to_owned() + ".jsonl");
    assert!(Command::new("mkfifo").arg(&old).status().unwrap().success());
    let _writer = File::options().read(true).write(true).open(&old).unwrap();
    let running = Running::start(folder.path());
    let is_reading = || {
        let open = fs::read_dir(format!("/proc/{}/fd", running.id())).unwrap().flatten();
        open.filter_map(|entry| fs::read_link(entry.path()).ok()).any(|path| path == old).then_some(())
    };
    wait_for("robotsd to read the old file", is_reading);
    for _ in 0..3 {
        let answer = ask(running.admin(), "GET /board.json", "Host: localhost\r\n");
        assert_eq!(answer.status, 200, "{}", answer.body);
        assert_eq!(ask(running.admin(), "GET /metrics", "Host: localhost\r\n").status, 200);
        assert_eq!(page(&running, "well.test"), 403);
    }
    wait_for("what was counted meanwhile", || {
        let answer = ask(running.admin(), "GET /board.json", "Host: localhost\r\n").body;
        let board: serde_json::Value = serde_json::from_str(&answer).unwrap();
        (board["sites"][0]["crawlers"][0]["disallowed"] == 3).then_some(())
    });
}
