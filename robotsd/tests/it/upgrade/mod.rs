//! Tests upgrades in place: whether clients can continue throughout, whether both processes know
//! the same state, and what happens if an upgrade fails.

mod deaths;
mod saturation;
mod throughout;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::{TokioExecutor, TokioIo};

use crate::harness::*;

const ROBOTS: &str = "User-agent: GPTBot\nDisallow: /private/\n";

/// Size of the page that a client downloads slowly, in bytes.
const LARGE: usize = 32 << 20;

/// With this setting and a [held](deaths::held) connection, the previous process drains for longer
/// than any test.
const LONG_DRAIN: &str = "[limits]\ndrain = \"10m\"";

/// A robotsd that was started from a path of its own, and the processes that replace it.
struct Upgraded {
    running: Running,
    folder: Folder,
}

impl Upgraded {
    fn start(more: &str) -> Self {
        Self::start_by(free(), more, |robotsd| Command::new(robotsd))
    }

    /// Starts robotsd at an address. The command must become the program at the given path.
    fn start_by(address: SocketAddr, more: &str, command: impl FnOnce(&Path) -> Command) -> Self {
        let config = Config::new().keys("state_dir = \"state\"\nworkers = 2\nmode = \"refuse\"").admin_socket();
        let config = config.site("shop", format!("root = \"pages\"\nrobots.path = \"robots.txt\"\n{more}"));
        let config = config.robots(ROBOTS).file("pages/a.html", "a page").file("pages/private/x", "x");
        let folder = config.folder();
        fs::File::create(folder.at("pages/large")).unwrap().set_len(LARGE as u64).unwrap();
        folder.write("robotsd.toml", folder.read("robotsd.toml").replace("127.0.0.1:0", &address.to_string()));
        Self::spawn(folder, command)
    }

    fn spawn(folder: Folder, command: impl FnOnce(&Path) -> Command) -> Self {
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_robotsd"), folder.at("robotsd")).unwrap();
        let mut command = command(&folder.at("robotsd"));
        command.args(["serve", "--config"]).arg(folder.at("robotsd.toml"));
        Self { running: Running::spawn(&mut command), folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.at(name)
    }

    fn command(&self, words: &[&str]) -> Ended {
        self.folder.with_config(words)
    }

    fn json(&self, words: &[&str]) -> Value {
        self.command(&[words, &["--json"]].concat()).json()
    }

    /// Returns the ID of the process that responds at the admin interface.
    fn process(&self) -> u32 {
        u32::try_from(self.json(&["status"])["pid"].as_u64().unwrap()).unwrap()
    }

    fn upgrade(&self) -> Ended {
        self.command(&["upgrade"])
    }

    fn upgraded(&self) -> String {
        self.upgrade().succeeded()
    }

    /// Replaces the program at its path by another one.
    fn replace_program(&self, with: &str) {
        let aside = self.path("new");
        fs::write(&aside, with).unwrap();
        fs::set_permissions(&aside, fs::Permissions::from_mode(0o755)).unwrap();
        fs::rename(aside, self.path("robotsd")).unwrap();
    }

    /// Installs a program that reports that it is prepared, receives the resources that only one
    /// process may have, and then does nothing.
    fn replace_program_by_one_that_never_serves(&self) {
        self.replace_program("#!/bin/sh\nprintf '{\"say\":\"prepared\"}' >&0\nexec sleep 600\n");
    }

    /// Waits until the first process of an upgrade has received all resources. Returns its ID.
    fn opening(&self) -> u32 {
        let process = wait_for("the new process", || self.started().first().copied());
        let lock = fs::File::open(self.path("state/lock")).unwrap();
        wait_for("the state directory to be given up", || lock.try_lock().ok());
        lock.unlock().unwrap();
        process
    }

    fn restore_program(&self) {
        let aside = self.path("link");
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_robotsd"), &aside).unwrap();
        fs::rename(aside, self.path("robotsd")).unwrap();
    }

    fn get(&self, path: &str) -> u16 {
        self.running.get(path, GPTBOT).status
    }

    /// Returns the IDs of the processes that were started for upgrades.
    fn started(&self) -> Vec<u32> {
        let number = |line: &Value| {
            let message = line["message"].as_str()?;
            message.strip_prefix("process ")?.split_once(" was started")?.0.parse().ok()
        };
        self.running.all("upgrade").iter().filter_map(number).collect()
    }
}

impl Drop for Upgraded {
    fn drop(&mut self) {
        for process in self.started() {
            signal("KILL", process);
        }
    }
}

/// Sends requests on one connection after another. Each connection is used until its last response.
fn keep_asking<'c>(address: SocketAddr, asked: &'c AtomicUsize, lasts: &'c AtomicUsize) -> Client<'c> {
    let mut open = None;
    Box::new(move || {
        let mut kept: Kept = open.take().unwrap_or_else(|| Kept::open(address, "a"));
        kept.send(b"GET /a.html HTTP/1.1\r\nHost: a\r\n\r\n");
        let answer = kept.receive();
        assert_eq!((answer.status, &*answer.body), (200, "a page"));
        asked.fetch_add(1, Ordering::Relaxed);
        if answer.is_last() {
            lasts.fetch_add(1, Ordering::Relaxed);
            return;
        }
        open = Some(kept);
        // Real clients are idle for a moment, too.
        thread::sleep(Duration::from_millis(2));
    })
}

/// Opens connections one after another, and sends a request on each.
fn keep_connecting(address: SocketAddr, asked: &AtomicUsize) -> Client<'_> {
    Box::new(move || {
        exchange(address, ASK).comes_with(200, "a page");
        asked.fetch_add(1, Ordering::Relaxed);
    })
}

const ASK: &[u8] = b"GET /a.html HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

/// Opens streams on one HTTP/2 connection after another. Each connection is used until the server
/// sends GOAWAY.
async fn keep_streaming(address: SocketAddr, asked: &AtomicUsize, lasts: &AtomicUsize) {
    let socket = TokioIo::new(tokio::net::TcpStream::connect(address).await.expect("a connection"));
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake::<_, _, Empty<Bytes>>(TokioExecutor::new(), socket).await.unwrap();
    tokio::spawn(connection);
    for _ in 0..100 {
        if sender.ready().await.is_err() {
            lasts.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let request = http::Request::get("http://a/a.html").body(Empty::new()).unwrap();
        let response = match sender.send_request(request).await {
            Ok(response) => response,
            // The client itself has cancelled the stream, because it has read GOAWAY meanwhile.
            Err(error) if error.is_canceled() => continue,
            Err(error) => panic!("{error:?}"),
        };
        assert_eq!(response.status(), 200);
        assert_eq!(response.into_body().collect().await.expect("a body").to_bytes(), "a page");
        asked.fetch_add(1, Ordering::Relaxed);
    }
}

fn asked_for_large(address: SocketAddr) -> TcpStream {
    sent(address, b"GET /large HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
}

/// Reads the large page slowly, until `rest` allows reading the rest at once.
fn download_slowly(mut stream: TcpStream, rest: &AtomicBool) {
    let (mut bytes, mut some) = (0, vec![0; 16 * 1024]);
    loop {
        match stream.read(&mut some).expect("not cut off") {
            0 => break,
            read => bytes += read,
        }
        if !rest.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(50));
        }
    }
    assert!(bytes > LARGE, "{bytes} of {LARGE}");
}

#[test]
fn no_connection_is_refused_reset_or_cut_off_during_an_upgrade() {
    let upgraded = Upgraded::start(LONG_DRAIN);
    let address = upgraded.running.address;
    let rest = AtomicBool::new(false);
    let [connecting, asking, streaming, lasts, goaways] = [const { AtomicUsize::new(0) }; 5];
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let stream: Client<'_> = Box::new(|| runtime.block_on(keep_streaming(address, &streaming, &goaways)));
    let connects = [(); 2].map(|()| keep_connecting(address, &connecting));
    let asks = [(); 2].map(|()| keep_asking(address, &asking, &lasts));
    thread::scope(|scope| {
        let stops = StopAtEnd(&rest);
        let downloading = scope.spawn(|| download_slowly(asked_for_large(address), &rest));
        while_asking([stream].into_iter().chain(connects).chain(asks), |_| {
            let all = [&connecting, &asking, &streaming];
            let more = || {
                let before = all.map(|count| count.load(Ordering::Relaxed));
                let is_more = |(count, before): (&&AtomicUsize, usize)| count.load(Ordering::Relaxed) >= before + 20;
                wait_until("requests of every kind", || all.iter().zip(before).all(is_more));
            };
            more();
            let mut processes = vec![upgraded.process()];
            for _ in 0..3 {
                let said = upgraded.upgraded();
                let process = upgraded.process();
                let want = format!("done: process {process} has replaced this process: serving 1 site");
                assert!(said.starts_with(&want), "{said}");
                assert!(!processes.contains(&process), "{process} of {processes:?}");
                processes.push(process);
                more();
            }
            // Clients were asked to close the connections that they kept. The first process remains
            // only for the download.
            assert!(lasts.load(Ordering::Relaxed) >= 3 && goaways.load(Ordering::Relaxed) >= 1);
            assert!(is_alive(processes[0]), "the download was cut off");
            rest.store(true, Ordering::Relaxed);
            downloading.join().unwrap();
            processes[..3].to_vec()
        })
        .into_iter()
        .for_each(|process| wait_until("the end of a process before", || !is_alive(process)));
        drop(stops);
    });
    // This closes the last connection.
    drop(runtime);
    assert_eq!(upgraded.get("/private/x"), 403);
    assert!(upgraded.path("admin.sock").exists());
    let mut problems = upgraded.running.all("problem");
    problems.retain(|line| line["reason"] != "broken");
    assert_eq!(problems, Vec::<Value>::new());
    // After the upgrades, the last process must end like any other.
    let last = upgraded.process();
    signal("TERM", last);
    wait_until("the end of the last process", || !is_alive(last));
    assert!(!upgraded.path("admin.sock").exists());
}

/// Returns how many disallowed requests of a crawler the board has counted.
fn disallowed(upgraded: &Upgraded) -> u64 {
    let board = upgraded.json(&["board"]);
    board["sites"][0]["crawlers"][0]["disallowed"].as_u64().unwrap_or(0)
}

#[test]
fn the_kill_switch_the_history_and_the_board_survive_an_upgrade() {
    let upgraded = Upgraded::start("");
    for _ in 0..7 {
        assert_eq!(upgraded.get("/private/x"), 403);
    }
    upgraded.folder.replace("robots.txt", format!("{ROBOTS}Disallow: /more/\n"));
    upgraded.command(&["reload"]);
    upgraded.command(&["enforce", "off"]).succeeded();
    // Returns all entries except entries about the start of a process.
    let but_starts = |upgraded: &Upgraded| -> Vec<String> {
        let history = upgraded.json(&["history", "shop"]);
        let entries = history["entries"].as_array().unwrap().iter().filter(|entry| entry["cause"] != "start");
        entries.map(|entry| ["cause", "outcome"].map(|name| entry[name].as_str().unwrap()).join(" ")).collect()
    };
    let before = but_starts(&upgraded);
    assert!(before.iter().any(|cause| cause.starts_with("switch ")), "{before:?}");
    assert_eq!(upgraded.get("/private/x"), 200);
    for _ in 0..2 {
        upgraded.upgraded();
        assert_eq!(upgraded.get("/private/x"), 200, "enforcement is off");
        assert_eq!(but_starts(&upgraded), before);
    }
    upgraded.command(&["enforce", "on"]).succeeded();
    assert_eq!(upgraded.get("/private/x"), 403);
    // Eight requests were refused, and three passed while enforcement was off. Each must count at
    // most once.
    let board = upgraded.json(&["board"]);
    wait_until("every request on the board", || disallowed(&upgraded) >= 8);
    assert!(disallowed(&upgraded) <= 11, "{board}");
    assert_eq!(upgraded.json(&["status"])["problems"], json!([]));
}

/// Checks that an upgrade fails with this message in output, log and status, and that the previous
/// process continues.
fn fails(upgraded: &Upgraded, want: &str) {
    let before = upgraded.process();
    let said = upgraded.upgrade().ends_with(1).out;
    assert!(said.starts_with("failed: "), "{said}");
    assert_has(said, &[want, "this process continues"]);
    assert_eq!(upgraded.process(), before);
    let upgrade = upgraded.json(&["status"])["upgrade"].take();
    assert_eq!(upgrade["state"], "failed", "{upgrade}");
    assert_has(message(&upgrade), &[want]);
    upgraded.running.wait_for_event("upgrade", |line| line["level"] == "error" && message(line).contains(want));
    let failed = |line: &Value| (&line["action"], &line["result"]) == (&"upgrade".into(), &"failed".into());
    upgraded.running.wait_for_event("audit", |line| failed(line) && message(line).contains(want));
    assert_eq!(upgraded.get("/private/x"), 403);
    assert_eq!(upgraded.running.get("/a.html", GPTBOT).status, 200);
    for process in upgraded.started() {
        wait_until("the end of a process that failed", || !is_alive(process));
    }
}

#[test]
fn a_failed_upgrade_changes_nothing_and_logs_the_reason() {
    let upgraded = Upgraded::start("");
    let config = upgraded.folder.read("robotsd.toml");
    upgraded.folder.configure(config.replace("mode = \"refuse\"", "mode = \"refused\""));
    upgraded.running.event("config-rejected");
    let said = upgraded.upgrade().ends_with(1).out;
    assert_has(said, &["robotsd.toml:3:8: \"refused\" is not a value of \"mode\""]);
    let noted = || upgraded.json(&["status"])["upgrade"]["state"].take();
    assert_eq!(noted(), "failed");
    upgraded.folder.configure(config);
    assert_eq!(noted(), Value::Null, "the cause is gone");
    for (program, want) in [
        (
            "#!/bin/sh\nexit 3\n",
            "the new process ended before it could serve: see what it printed on stderr (exit status: 3)",
        ),
        (
            "#!/bin/sh\nkill -SEGV $$\n",
            "the new process ended before it could serve: see what it printed on stderr (signal: 11",
        ),
        ("no program\n", "cannot be started: "),
    ] {
        upgraded.replace_program(program);
        fails(&upgraded, want);
    }
    fs::remove_file(upgraded.path("robotsd")).unwrap();
    fails(&upgraded, "robotsd: cannot be started: No such file or directory");
    upgraded.restore_program();
    assert_eq!(noted(), Value::Null, "the cause is gone");
    upgraded.upgraded();
}

#[test]
fn a_new_process_that_never_reports_is_ended() {
    let upgraded = Upgraded::start("[limits]\nupgrade = \"1s\"");
    let fails_in_time =
        || fails(&upgraded, "the new process was killed, because it could not serve within 1 s (signal: 9 (SIGKILL))");
    upgraded.replace_program("#!/bin/sh\nexec sleep 600\n");
    fails_in_time();
    upgraded.replace_program_by_one_that_never_serves();
    fails_in_time();
}

#[test]
fn the_previous_process_takes_its_resources_back_if_the_new_process_cannot_serve() {
    let upgraded = Upgraded::start("");
    // This is an address of the admin interface. A process opens it when it starts.
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let config = upgraded.folder.read("robotsd.toml");
    let address = taken.local_addr().unwrap();
    upgraded.folder.configure(format!("{config}[[admin.listener]]\naddress = \"{address}\"\n"));
    upgraded.running.wait_for_message("config", "take effect only after `robotsd upgrade` or a restart: admin");
    fails(&upgraded, "cannot listen here for [admin]");
    upgraded.folder.configure(config);
    upgraded.command(&["reload"]);
    // The previous process must write the state directory again.
    upgraded.command(&["enforce", "off"]).succeeded();
    assert_eq!(upgraded.folder.read("state/enforcement").trim(), "off");
    upgraded.command(&["enforce", "on"]).succeeded();
    upgraded.upgraded();
    assert_eq!(upgraded.get("/private/x"), 403);
}

#[test]
fn a_process_that_ends_during_an_upgrade_saves_the_live_version() {
    let mut upgraded = Upgraded::start("[limits]\nupgrade = \"10m\"");
    upgraded.replace_program_by_one_that_never_serves();
    upgraded.running.signal("USR2");
    let process = upgraded.opening();
    upgraded.folder.replace("robots.txt", format!("{ROBOTS}Disallow: /new/\n"));
    wait_until("the version to go live", || upgraded.get("/new/x") == 403);
    upgraded.running.end();
    wait_until("the end of the other", || !is_alive(process));
    // The next start must find the version that was live.
    run(Command::new("grep").args(["-rlF", "Disallow: /new/"]).arg(upgraded.path("state"))).succeeded();
}

#[test]
fn a_second_upgrade_is_refused_while_one_is_in_progress() {
    let upgraded = Upgraded::start("[limits]\nupgrade = \"10m\"");
    upgraded.replace_program("#!/bin/sh\nexec sleep 600\n");
    upgraded.running.signal("USR2");
    let first = wait_for("the first", || upgraded.started().first().copied());
    let said = upgraded.upgrade().ends_with(1).out;
    assert_has(said, &[&format!("an upgrade to process {first} is already in progress")]);
    assert_eq!(upgraded.json(&["status"])["upgrade"]["state"], "under-way");
    // The new process is killed. This kill must not delay the next upgrade.
    signal("KILL", first);
    upgraded.running.wait_for_message("upgrade", "(signal: 9");
    upgraded.restore_program();
    upgraded.upgraded();
}

#[test]
fn the_new_process_serves_if_the_previous_process_is_killed_during_an_upgrade() {
    let mut upgraded = Upgraded::start("");
    upgraded.running.signal("USR2");
    let process = wait_for("the new process", || upgraded.started().first().copied());
    // The process has received the sockets before it starts its first thread.
    let tasks = format!("/proc/{process}/task");
    wait_until("its sockets", || fs::read_dir(&tasks).is_ok_and(|threads| threads.count() > 1));
    upgraded.running.kill();
    let address = upgraded.running.address;
    let serves = || offer(TcpStream::connect(address).ok()?, ASK).filter(|answer| answer.ends_with(b"a page"));
    wait_for("the new process to serve", serves);
    // The socket of the previous process must still exist.
    wait_until("its admin interface", || upgraded.command(&["status"]).code == Some(0));
    assert_eq!(upgraded.process(), process);
    // It must be possible to upgrade this process as well.
    upgraded.upgraded();
    assert_ne!(upgraded.process(), process);
}

#[test]
fn a_supervisor_is_notified_of_the_new_process() {
    let config = Config::new().admin_socket().site("shop", "root = \"pages\"\nrobots.path = \"robots.txt\"");
    let folder = config.robots(ROBOTS).file("pages/a.html", "a page").folder();
    let path = folder.at("notify");
    let hears = super::lifecycle::supervisor(&path);
    // The variable is set for this process only, so that other tests are not affected.
    let upgraded = Upgraded::spawn(folder, |robotsd| {
        let mut command = Command::new(robotsd);
        command.env("NOTIFY_SOCKET", &path);
        command
    });
    let ready = hears();
    assert!(ready.starts_with("READY=1\n"), "{ready}");
    upgraded.upgraded();
    let process = upgraded.process();
    // The new process itself sends this message. A supervisor may ignore it.
    assert_eq!(hears(), ready);
    assert_eq!(hears(), format!("MAINPID={process}\n{ready}WATCHDOG=1\n"));
}

#[test]
fn the_admin_interface_moves_to_the_address_in_the_config_only_at_an_upgrade() {
    let upgraded = Upgraded::start("");
    let text = upgraded.folder.read("robotsd.toml");
    let (before, after) = (free(), free());
    let at = |address: SocketAddr| {
        text.replace(
            "socket = \"admin.sock\"",
            &format!("address = \"{address}\"\n[[admin.listener]]\naddress = \"{}\"", free()),
        )
    };
    let answers = |address: SocketAddr| TcpStream::connect(address).is_ok();
    upgraded.folder.configure(at(before));
    upgraded.upgraded();
    assert!(answers(before) && !upgraded.path("admin.sock").exists());
    upgraded.folder.configure(at(after));
    assert_has(
        upgraded.command(&["reload"]).out,
        &["; changes in these tables take effect only after `robotsd upgrade` or a restart: admin"],
    );
    assert!(answers(before) && !answers(after));
    // Commands must find the process throughout, and `enforce off` must take effect.
    upgraded.command(&["enforce", "off"]).succeeded();
    assert_eq!(upgraded.get("/private/x"), 200);
    upgraded.upgraded();
    wait_until("the place of before to be closed", || !answers(before));
    assert!(answers(after));
    upgraded.command(&["enforce", "on"]).succeeded();
    assert_eq!(upgraded.get("/private/x"), 403);
    upgraded.folder.configure(&text);
    upgraded.upgraded();
    assert!(upgraded.path("admin.sock").exists());
    upgraded.command(&["status"]).succeeded();
}
