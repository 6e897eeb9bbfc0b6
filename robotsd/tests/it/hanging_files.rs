//! Tests a file system on which reading a file blocks forever. Only requests and commands that need
//! the file may wait.

use std::fs::File;

use super::programs::skip;
use crate::harness::*;

const ROBOTS: &str = "User-agent: GPTBot\nDisallow: /page\n";
const EXPECTED: &str = "[[allow]]\nagents = [\"bingbot\"]\npaths = [\"/\"]\n";
/// Creates a config with a site whose files do not hang.
fn well() -> Config {
    let keys = "hosts = [\"well.test\"]\nroot = \".\"\nrobots.path = \"well.txt\"";
    Config::refusing().admin().site("well", keys).file("well.txt", ROBOTS).file("page.html", "hello")
}

fn get(running: &Running, target: &str) -> Answer {
    running.ask_admin(&format!("GET {target}"))
}

/// Creates the board of the site `well`, in a folder with its config.
fn board() -> (Folder, PathBuf) {
    let folder = well().keys("state_dir = \"state\"").folder();
    let board = folder.at("state/board/well");
    fs::create_dir_all(&board).unwrap();
    (folder, board)
}

/// Returns the name of the board's file for a day.
fn file_of(time: SystemTime) -> String {
    format!("{}.jsonl", &humantime::format_rfc3339_seconds(time).to_string()[..10])
}

fn fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// Compiles a library whose preloading makes opening a file hang; `None` if it cannot be compiled.
fn hanging_open(folder: &Path) -> Option<PathBuf> {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/hanging_files/hang.c");
    let library = folder.join("hang.so");
    let compiled = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).args([source, "-ldl"]).status();
    let is_loaded = cfg!(target_env = "gnu");
    if !is_loaded || !compiled.is_ok_and(|status| status.success()) {
        skip("cc, and the library of GNU");
        return None;
    }
    Some(library)
}

fn entries(running: &Running, of: &str) -> usize {
    fs::read_dir(format!("/proc/{}/{of}", running.id())).unwrap().count()
}

fn page(running: &Running, host: &str) -> u16 {
    running.request("GET", "/page.html", &[("Host", host), ("User-Agent", GPTBOT)]).status
}

#[test]
fn a_file_that_hangs_while_it_is_read_delays_only_its_own_site() {
    let keys = "hosts = [\"hanging.test\"]\nroot = \".\"\nrobots.path = \"hanging.txt\"";
    let with_hanging = well().site("hanging", format!("{keys}\nrobots.expectations = \"expected.toml\""));
    let folder = with_hanging.file("hanging.txt", ROBOTS).file("expected.toml", EXPECTED).folder();
    let Some(library) = hanging_open(folder.path()) else { return };
    let expected = folder.at("expected.toml");
    let beside = |suffix: &str| expected.with_extension(format!("toml.{suffix}"));
    let mut running = Running::spawn(folder.serve().env("LD_PRELOAD", library).env("HANGING", &expected));
    fs::write(beside("hangs"), "").unwrap();
    fs::write(&expected, [EXPECTED, "# Another.\n"].concat()).unwrap();
    wait_until("robotsd to read what is expected", || beside("waits").exists());

    let says = |arguments: &[&str]| running.command(arguments).succeeded();
    assert_has(says(&["status"]), &["site well"]);
    assert_eq!(get(&running, "/readyz").status, 200);
    assert_has(says(&["reload", "--site", "well"]), &["unchanged"]);
    for (switch, status) in [("off", 200), ("on", 403)] {
        for arguments in [&["enforce", switch][..], &["enforce", switch, "--site", "hanging"]] {
            says(arguments);
        }
        assert_eq!((page(&running, "well.test"), page(&running, "hanging.test")), (status, status));
    }
    // If the config does not contain the site, its file is not needed.
    folder.write("robotsd.toml", well().to_string());
    running.wait_for_message("config", "site \"hanging\" is removed");
    assert_lacks(says(&["status"]), &["site hanging"]);
    assert_eq!((page(&running, "well.test"), page(&running, "hanging.test")), (403, 421));
    running.end();
}

/// Opening a FIFO waits for a writer. Each request would block a thread.
#[test]
fn only_regular_files_of_a_root_are_served() {
    const CLIENTS: usize = 8;
    let folder = well().folder();
    let path = |name: &str| folder.at(name);
    fifo(&path("fifo"));
    fs::create_dir(path("folder")).unwrap();
    fifo(&path("folder/index.html"));
    let _socket = std::os::unix::net::UnixListener::bind(path("socket")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", path("device")).unwrap();
    std::os::unix::fs::symlink("fifo", path("link.html")).unwrap();
    let running = folder.start();
    let status = |method: &str, path: &str| running.request(method, path, &[("Host", "well.test")]).status;
    assert_eq!(status("GET", "/page.html"), 200);
    let (threads, descriptors) = (entries(&running, "task"), entries(&running, "fd"));
    let paths = ["/fifo", "/link.html", "/folder/", "/folder/index.html", "/socket", "/device", "/fifo/", "/%66ifo?x"];
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                for round in 0..2 * paths.len() {
                    let path = paths[round % paths.len()];
                    let method = if round < paths.len() { "HEAD" } else { "GET" };
                    assert_eq!(status(method, path), 404, "{method} {path}");
                    assert_eq!(status("GET", "/page.html"), 200);
                }
            });
        }
    });
    // Threads that open files end after they were idle for a while. A request is answered shortly
    // before its thread is free again, so there may be more threads than concurrent requests. With
    // one thread per request, there would be 256.
    assert!(entries(&running, "task") <= threads + 6 * CLIENTS, "{threads} {}", entries(&running, "task"));
    wait_until("the connections to be closed", || entries(&running, "fd") <= descriptors);
    // A FIFO must not be served even if it has a writer, or if it replaces a file.
    let _writer = File::options().read(true).write(true).open(path("fifo")).unwrap();
    fs::rename(path("fifo"), path("page.html")).unwrap();
    assert_eq!((status("GET", "/page.html"), status("HEAD", "/page.html")), (404, 404));
}

/// A client can send a path of any length, and a loop of links never leads to a file.
#[test]
fn a_path_that_cannot_name_a_file_gets_status_404() {
    let folder = well().folder();
    std::os::unix::fs::symlink("loop", folder.at("loop")).unwrap();
    let running = folder.start();
    let name = "a".repeat(256);
    for path in [
        format!("/{name}"),
        format!("/{name}/"),
        format!("/{name}/page.html"),
        format!("/{}", "%61".repeat(256)),
        format!("/{}", "\u{e9}".repeat(128).bytes().map(|byte| format!("%{byte:02X}")).collect::<String>()),
        format!("/{}", "a/".repeat(2_100)),
        "/loop".to_owned(),
        "/loop/page.html".to_owned(),
        "/page.html/a".to_owned(),
    ] {
        for method in ["GET", "HEAD"] {
            assert_eq!(running.request(method, &path, &[("Host", "well.test")]).status, 404, "{method} {path}");
        }
    }
    assert_eq!(running.request("GET", "/page.html", &[("Host", "well.test")]).status, 200);
}

/// The config names a FIFO without a writer as a file. robotsd must report this instead of waiting.
#[test]
fn a_fifo_in_the_config_is_reported_and_does_not_block_robotsd() {
    let site = "hosts = [\"a.test\"]\nroot = \".\"\nrobots.path = \"robots.txt\"";
    let of_site = |key: &str| Config::new().site("a", format!("{site}\n{key}")).to_string();
    for (what, config) in [
        ("path", of_site("").replace("robots.txt", "fifo")),
        ("append", of_site("[[site.robots.append]]\npath = \"fifo\"")),
        ("expectations", of_site("robots.expectations = \"fifo\"")),
        ("baseline", of_site("robots.baseline = \"fifo\"")),
        ("urls", of_site("robots.urls = \"fifo\"")),
        ("refusal", of_site("refusal.file = \"fifo.html\"")),
        (
            "headers",
            of_site(
                "[[site.robots.on_publish]]\nurl = \"https://cdn.test/\"\nheaders = { Authorization = { file = \"fifo\" } }",
            ),
        ),
        (
            "upstream.ca",
            of_site("upstream.ca = \"fifo\"").replace("root = \".\"", "upstreams = [\"https://127.0.0.1:9\"]"),
        ),
        (
            "robots.ca",
            of_site("robots.ca = \"fifo\"")
                .replace("path = \"robots.txt\"", "source = \"url\"\nrobots.url = \"https://127.0.0.1:9/r\""),
        ),
        ("registry_extra", of_site("[agents]\nregistry_extra = \"fifo\"")),
        ("list", of_site("[identity]\n[[identity.list]]\nurl = \"https://openai.com/gptbot.json\"\npath = \"fifo\"")),
        ("password_file", of_site("[rate]\nstore = \"redis://127.0.0.1:9\"\npassword_file = \"fifo\"")),
        ("certificate", {
            let listener = "[[listener.certificate]]\nchain = \"fifo\"\nkey = \"fifo\"";
            Config::new().listener(listener).site("a", site).to_string()
        }),
    ] {
        let folder = folder(&[("robotsd.toml", &config), ("robots.txt", ROBOTS)]);
        fifo(&folder.at("fifo"));
        fifo(&folder.at("fifo.html"));
        assert_has(folder.configured(["config", "check"]).said(), &["regular file"]);
        if !["path", "append", "baseline", "urls", "headers"].contains(&what) {
            let served = run(&mut folder.serve());
            assert_ne!(served.code, Some(0), "{what}");
            assert_has(served.said(), &["regular file"]);
        } else {
            drop(folder.start());
        }
    }
}

#[test]
fn an_access_log_pipe_without_a_reader_is_an_error_at_the_start() {
    let folder = well().tables("[log]\naccess = \"json\"\naccess_path = \"fifo\"").folder();
    fifo(&folder.at("fifo"));
    let served = folder.configured(["serve", "--config"]);
    assert_ne!(served.code, Some(0));
    assert_has(served.said(), &["a pipe that no program reads"]);
}

/// The access log may be a pipe that another program reads. No line may be lost.
#[test]
fn the_access_log_can_be_a_pipe_with_a_reader() {
    let folder = well().tables("[log]\naccess = \"combined\"\naccess_path = \"fifo\"").folder();
    let path = folder.at("fifo");
    fifo(&path);
    let mut reader = File::options().read(true).write(true).open(&path).unwrap();
    let running = folder.start();
    assert_eq!(page(&running, "well.test"), 403);
    let mut line = [0; 16];
    let (done, read) = std::sync::mpsc::channel();
    thread::spawn(move || done.send(reader.read_exact(&mut line).map(|()| line)));
    let line = read.recv_timeout(PATIENCE).unwrap().unwrap();
    assert!(line.starts_with(b"127.0.0."), "{line:?}");
}

/// However many clients request the board, only a few threads may wait for its files, and all
/// clients must get a response.
#[test]
fn a_board_whose_files_hang_returns_status_503_and_uses_few_threads() {
    let (folder, board) = board();
    // Files for two days are made to hang, because the next day may begin during the test.
    let writers: Vec<File> = [0, 1]
        .map(|days| {
            let at = SystemTime::now() + Duration::from_secs(days * 86_400);
            let pipe = board.join(file_of(at));
            fifo(&pipe);
            File::options().read(true).write(true).open(&pipe).unwrap()
        })
        .into();
    let mut running = folder.start();
    let threads = || entries(&running, "task");
    let before = threads();
    let admin = running.admin();
    let ask = move || admin_answer(admin, "GET /board.json");
    let asking: Vec<_> = (0..18).map(|_| thread::spawn(ask)).collect();
    for asked in asking {
        let answer = asked.join().unwrap();
        assert_eq!(answer.status, 503, "{}", answer.body);
        assert_has(&answer.body, &["state/board could not be read in 5 seconds"]);
    }
    // The additional threads are the threads that read, the thread that writes, and some threads
    // for other short tasks.
    assert!(threads() <= before + 13, "{before} {}", threads());
    assert_eq!(get(&running, "/readyz").status, 200);
    // The exit status is 1 once robotsd notices that the board cannot be written.
    let status = running.command(&["status"]);
    assert!(matches!(status.code, Some(0 | 1)), "{status:?}");
    assert_has(&status.out, &["site well"]);
    assert_eq!(page(&running, "well.test"), 403);
    // Once the files can be read or were removed, the board must work again.
    drop(writers);
    // The process may write a new file in the meantime.
    wait_until("the files are gone", || fs::remove_dir_all(&board).is_ok());
    wait_until("the board", || ask().status == 200);
    running.end();
}

/// Old files are listed, removed and merged last. If one of them hangs, no request may wait for it.
#[test]
fn a_hanging_old_board_file_delays_no_request() {
    let (folder, board) = board();
    let past = SystemTime::now() - Duration::from_secs(100 * 24 * 3600);
    let old = board.join(file_of(past));
    fifo(&old);
    let _writer = File::options().read(true).write(true).open(&old).unwrap();
    let running = folder.start();
    let is_reading = || {
        let open = fs::read_dir(format!("/proc/{}/fd", running.id())).unwrap().flatten();
        open.filter_map(|entry| fs::read_link(entry.path()).ok()).any(|path| path == old).then_some(())
    };
    wait_for("robotsd to read the old file", is_reading);
    for _ in 0..3 {
        let answer = get(&running, "/board.json");
        assert_eq!(answer.status, 200, "{}", answer.body);
        assert_eq!(get(&running, "/metrics").status, 200);
        assert_eq!(page(&running, "well.test"), 403);
    }
    wait_until("what was counted meanwhile", || {
        get(&running, "/board.json").json()["sites"][0]["crawlers"][0]["disallowed"] == 3
    });
}
