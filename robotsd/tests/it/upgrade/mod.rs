//! An upgrade in place: clients that go on throughout, what both processes know, and upgrades that fail.

mod deaths;
mod saturation;
mod throughout;

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::Value;

use crate::harness::{
    ADMIN_SOCKET, Ended, Folder, GPTBOT, Kept, PATIENCE, Running, StopAtEnd, assert_has, exchange, folder, robotsd,
    run, wait_for, wait_until,
};

const ROBOTS: &str = "User-agent: GPTBot\nDisallow: /private/\n";

/// Octets of the page that is read slowly.
const LARGE: usize = 32 << 20;

/// robotsd by a path of its own, and whatever takes its place.
struct Upgraded {
    running: Running,
    folder: Folder,
}

impl Upgraded {
    fn start(more: &str) -> Self {
        Self::start_by(([127, 0, 0, 1], 0).into(), more, |robotsd| Command::new(robotsd))
    }

    /// Listens at an address, started by a command that ends in being the program at this path.
    fn start_by(address: SocketAddr, more: &str, command: impl FnOnce(&Path) -> Command) -> Self {
        let config = format!(
            "state_dir = \"state\"\nworkers = 2\nmode = \"refuse\"\n{ADMIN_SOCKET}[[listener]]\n\
             address = \"{address}\"\n[[site]]\nname = \"shop\"\nroot = \"pages\"\nrobots.path = \"robots.txt\"\n\
             {more}\n"
        );
        let folder = folder(&[
            ("robotsd.toml", &config),
            ("robots.txt", ROBOTS),
            ("pages/a.html", "a page"),
            ("pages/private/x", "x"),
        ]);
        folder.write("pages/large", vec![b'x'; LARGE]);
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_robotsd"), folder.at("robotsd")).unwrap();
        let mut command = command(&folder.at("robotsd"));
        command.args(["serve", "--config"]).arg(folder.at("robotsd.toml"));
        Self { running: Running::spawn(&mut command), folder }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.at(name)
    }

    fn command(&self, words: &[&str]) -> Ended {
        run(robotsd().args(words).arg("--config").arg(self.path("robotsd.toml")))
    }

    fn json(&self, words: &[&str]) -> Value {
        let output = self.command(&[words, &["--json"]].concat());
        serde_json::from_str(&output.out).unwrap_or_else(|_| panic!("{words:?}: {output:?}"))
    }

    /// The process that answers at the admin interface.
    fn process(&self) -> u32 {
        u32::try_from(self.json(&["status"])["pid"].as_u64().unwrap()).unwrap()
    }

    /// Upgrades; what the command says.
    fn upgrade(&self) -> (Option<i32>, String) {
        let output = self.command(&["upgrade"]);
        (output.code, output.out)
    }

    /// Upgrades, which has to succeed; what the command says.
    fn upgraded(&self) -> String {
        let (code, said) = self.upgrade();
        assert_eq!(code, Some(0), "{said}");
        said
    }

    /// What stands at the path of the program from now on.
    fn replace_program(&self, with: &str) {
        let aside = self.path("new");
        fs::write(&aside, with).unwrap();
        fs::set_permissions(&aside, fs::Permissions::from_mode(0o755)).unwrap();
        fs::rename(aside, self.path("robotsd")).unwrap();
    }

    /// A program that says that it serves once it has been given everything, accepts nothing, and goes on like this.
    fn replace_program_by_one_that_only_says_so(&self, then: &str) {
        let says = |word: &str| format!("printf '%s' '{word}' >&0");
        let prepared = says("{\"say\":\"prepared\"}");
        let serves = says("{\"say\":\"serves\",\"summary\":\"nothing\",\"unused\":[]}");
        // Each read is one packet.
        let listens = "while :; do\n\
             packet=$(dd bs=16384 count=1 2>/dev/null <&0)\n\
             case $packet in *'\"take\"'*) break ;; '') exit 9 ;; esac\n\
             done";
        self.replace_program(&format!("#!/bin/sh\n{prepared}\n{listens}\n{serves}\n{then}\n"));
    }

    fn restore_program(&self) {
        let aside = self.path("link");
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_robotsd"), &aside).unwrap();
        fs::rename(aside, self.path("robotsd")).unwrap();
    }

    fn get(&self, path: &str) -> u16 {
        self.running.get(path, GPTBOT).status
    }

    /// The processes that were started for upgrades.
    fn started(&self) -> Vec<u32> {
        let number = |line: &Value| {
            let message = line["message"].as_str()?;
            message.strip_prefix("process ")?.split_once(" is started")?.0.parse().ok()
        };
        self.running.all("upgrade").iter().filter_map(number).collect()
    }
}

impl Drop for Upgraded {
    fn drop(&mut self) {
        for process in self.started() {
            kill("KILL", process);
        }
    }
}

fn kill(signal: &str, process: u32) {
    let _ = Command::new("kill").arg(format!("-{signal}")).arg(process.to_string()).output();
}

/// Stops a process. A signal is delivered to one thread, and the others run on until that one has been scheduled.
fn stop(process: u32) {
    kill("STOP", process);
    let is_stopped = |task: fs::DirEntry| {
        let stat = fs::read_to_string(task.path().join("stat")).unwrap();
        stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('T'))
    };
    wait_for("every thread to stop", || {
        fs::read_dir(format!("/proc/{process}/task")).unwrap().all(|task| is_stopped(task.unwrap())).then_some(())
    });
}

/// Whether a process is there, and no more than its remains.
fn is_alive(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with('Z'))
}

/// Requests on one connection after another, each used until an answer says that it is the last.
fn keep_asking(address: SocketAddr, stop: &AtomicBool, asked: &AtomicUsize, lasts: &AtomicUsize) {
    while !stop.load(Ordering::Relaxed) {
        let mut kept = Kept::open(address, "a");
        while !stop.load(Ordering::Relaxed) {
            kept.send(b"GET /a.html HTTP/1.1\r\nHost: a\r\n\r\n");
            let answer = kept.receive();
            assert_eq!((answer.status, &*answer.body), (200, "a page"));
            asked.fetch_add(1, Ordering::Relaxed);
            if answer.field("connection") == Some("close") {
                lasts.fetch_add(1, Ordering::Relaxed);
                break;
            }
            // Idle for a moment, as clients are.
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// A request on a connection of its own, again and again.
fn keep_connecting(address: SocketAddr, stop: &AtomicBool, asked: &AtomicUsize) {
    while !stop.load(Ordering::Relaxed) {
        let answer = exchange(address, b"GET /a.html HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        assert_eq!((answer.status, &*answer.body), (200, "a page"));
        asked.fetch_add(1, Ordering::Relaxed);
    }
}

/// Streams on one HTTP/2 connection after another, each used until the server says GOAWAY.
async fn keep_streaming(address: SocketAddr, stop: &AtomicBool, asked: &AtomicUsize, lasts: &AtomicUsize) {
    while !stop.load(Ordering::Relaxed) {
        let socket = TokioIo::new(tokio::net::TcpStream::connect(address).await.expect("a connection"));
        let (mut sender, connection) =
            hyper::client::conn::http2::handshake::<_, _, Empty<Bytes>>(TokioExecutor::new(), socket).await.unwrap();
        tokio::spawn(connection);
        while !stop.load(Ordering::Relaxed) {
            if sender.ready().await.is_err() {
                lasts.fetch_add(1, Ordering::Relaxed);
                break;
            }
            let request = http::Request::get("http://a/a.html").body(Empty::new()).unwrap();
            let response = match sender.send_request(request).await {
                Ok(response) => response,
                // Taken back by the client itself, which has read the GOAWAY meanwhile.
                Err(error) if error.is_canceled() => continue,
                Err(error) => panic!("{error:?}"),
            };
            assert_eq!(response.status(), 200);
            assert_eq!(response.into_body().collect().await.expect("a body").to_bytes(), "a page");
            asked.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Reads a large page a little at a time, until it may read the rest.
fn download_slowly(address: SocketAddr, rest: &AtomicBool) {
    let mut stream = crate::harness::sent(address, b"GET /large HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    let (mut octets, mut some) = (0, vec![0; 16 * 1024]);
    loop {
        match stream.read(&mut some).expect("not cut off") {
            0 => break,
            read => octets += read,
        }
        if !rest.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    assert!(octets > LARGE, "{octets} of {LARGE}");
}

#[test]
fn an_upgrade_refuses_resets_and_cuts_off_nothing() {
    let upgraded = Upgraded::start("[limits]\ndrain = \"60s\"");
    let address = upgraded.running.address;
    let (stop, rest) = (AtomicBool::new(false), AtomicBool::new(false));
    let [connecting, asking, streaming, lasts, goaways] = [const { AtomicUsize::new(0) }; 5];
    std::thread::scope(|scope| {
        let stops = (StopAtEnd(&stop), StopAtEnd(&rest));
        let downloading = scope.spawn(|| download_slowly(address, &rest));
        let mut clients = Vec::new();
        for _ in 0..2 {
            clients.push(scope.spawn(|| keep_connecting(address, &stop, &connecting)));
            clients.push(scope.spawn(|| keep_asking(address, &stop, &asking, &lasts)));
        }
        clients.push(scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(keep_streaming(address, &stop, &streaming, &goaways));
        }));
        let all = [&connecting, &asking, &streaming];
        let more = || {
            let before = all.map(|count| count.load(Ordering::Relaxed));
            wait_for("requests of every kind", || {
                all.iter().zip(before).all(|(count, before)| count.load(Ordering::Relaxed) >= before + 20).then_some(())
            });
        };
        more();
        let mut processes = vec![upgraded.process()];
        for _ in 0..3 {
            let said = upgraded.upgraded();
            let process = upgraded.process();
            assert!(
                said.starts_with(&format!("done: process {process} has taken the place of this one: serving 1 site")),
                "{said}"
            );
            assert!(!processes.contains(&process), "{process} of {processes:?}");
            processes.push(process);
            more();
        }
        // Connections that were kept have been told, and the first process is there for the download alone.
        assert!(lasts.load(Ordering::Relaxed) >= 3 && goaways.load(Ordering::Relaxed) >= 1);
        assert!(is_alive(processes[0]), "the download was cut off");
        rest.store(true, Ordering::Relaxed);
        downloading.join().unwrap();
        stop.store(true, Ordering::Relaxed);
        clients.into_iter().for_each(|client| client.join().unwrap());
        for process in &processes[..3] {
            wait_until("the end of a process before", || !is_alive(*process));
        }
        drop(stops);
    });
    assert_eq!(upgraded.get("/private/x"), 403);
    assert!(upgraded.path("admin.sock").exists());
    assert_eq!(
        upgraded.running.count("trouble", |line| line["reason"] != "broken"),
        0,
        "{:?}",
        upgraded.running.all("trouble")
    );
    // The last one ends as any process does.
    let last = upgraded.process();
    kill("TERM", last);
    wait_until("the end of the last process", || !is_alive(last));
    assert!(!upgraded.path("admin.sock").exists());
}

/// How often a crawler was counted on the board where it may not go.
fn disallowed(upgraded: &Upgraded) -> u64 {
    let board = upgraded.json(&["board"]);
    board["sites"][0]["crawlers"][0]["disallowed"].as_u64().unwrap_or(0)
}

#[test]
fn the_switch_the_history_and_the_board_are_those_of_before() {
    let upgraded = Upgraded::start("");
    for _ in 0..7 {
        assert_eq!(upgraded.get("/private/x"), 403);
    }
    fs::write(upgraded.path("robots.txt"), format!("{ROBOTS}Disallow: /more/\n")).unwrap();
    upgraded.command(&["reload"]);
    assert!(upgraded.command(&["enforce", "off"]).code == Some(0));
    let causes = |upgraded: &Upgraded| -> Vec<String> {
        let history = upgraded.json(&["history", "shop"]);
        let entries = history["entries"].as_array().unwrap().iter();
        entries
            .map(|entry| format!("{} {}", entry["cause"].as_str().unwrap(), entry["outcome"].as_str().unwrap()))
            .collect()
    };
    // What each process does at its start aside.
    let but_starts = |upgraded: &Upgraded| {
        causes(upgraded).into_iter().filter(|cause| !cause.starts_with("start ")).collect::<Vec<_>>()
    };
    let before = but_starts(&upgraded);
    assert!(before.iter().any(|cause| cause.starts_with("switch ")), "{before:?}");
    assert_eq!(upgraded.get("/private/x"), 200);
    for _ in 0..2 {
        upgraded.upgraded();
        assert_eq!(upgraded.get("/private/x"), 200, "enforcement is off");
        assert_eq!(but_starts(&upgraded), before);
    }
    assert!(upgraded.command(&["enforce", "on"]).code == Some(0));
    assert_eq!(upgraded.get("/private/x"), 403);
    // 7 were refused, 3 passed with the switch off, one was refused again: each is there once.
    let board = upgraded.json(&["board"]);
    wait_until("every request on the board", || disallowed(&upgraded) >= 8);
    assert!(disallowed(&upgraded) <= 11, "{board}");
    assert_eq!(upgraded.json(&["status"])["troubles"], serde_json::json!([]));
}

/// What a failed upgrade says, in the command, the log and the status; the process before goes on.
fn fails(upgraded: &Upgraded, want: &str) {
    let before = upgraded.process();
    let (code, said) = upgraded.upgrade();
    assert!(code == Some(1) && said.starts_with("failed: ") && said.contains(want), "{code:?} {said}");
    assert_has(&said, &["this process goes on"]);
    assert_eq!(upgraded.process(), before);
    let status = upgraded.json(&["status"]);
    assert_eq!(status["upgrade"]["state"], "failed", "{status}");
    assert!(status["upgrade"]["message"].as_str().unwrap().contains(want), "{status}");
    upgraded.running.wait_for_event("upgrade", |line| {
        line["level"] == "error" && line["message"].as_str().is_some_and(|message| message.contains(want))
    });
    assert_eq!(upgraded.get("/private/x"), 403);
    assert_eq!(upgraded.running.get("/a.html", GPTBOT).status, 200);
    for process in upgraded.started() {
        wait_until("the end of a process that failed", || !is_alive(process));
    }
}

#[test]
fn an_upgrade_that_fails_changes_nothing_and_says_why() {
    let upgraded = Upgraded::start("");
    let config = fs::read_to_string(upgraded.path("robotsd.toml")).unwrap();
    fs::write(upgraded.path("robotsd.toml"), config.replace("mode = \"refuse\"", "mode = \"refused\"")).unwrap();
    upgraded.running.event("config-rejected");
    // The commands read the config too: the interface is named.
    let socket = upgraded.path("admin.sock");
    let output = run(robotsd().args(["upgrade", "--admin"]).arg(&socket));
    let said = output.out;
    assert!(output.code == Some(1) && said.contains("robotsd.toml:3:8: \"refused\" is not a value of mode"), "{said}");
    fs::write(upgraded.path("robotsd.toml"), config).unwrap();
    for (program, want) in [
        ("#!/bin/sh\nexit 3\n", "it ended before it served: its standard error says why (exit status: 3)"),
        ("#!/bin/sh\nkill -SEGV $$\n", "it ended before it served: its standard error says why (signal: 11"),
        ("no program\n", "cannot be started: "),
    ] {
        upgraded.replace_program(program);
        fails(&upgraded, want);
    }
    fs::remove_file(upgraded.path("robotsd")).unwrap();
    fails(&upgraded, "robotsd: cannot be started: No such file or directory");
    upgraded.restore_program();
    upgraded.upgraded();
}

#[test]
fn a_new_process_that_says_nothing_is_ended() {
    let upgraded = Upgraded::start("[limits]\nupgrade = \"1s\"");
    upgraded.replace_program("#!/bin/sh\nexec sleep 60\n");
    fails(&upgraded, "it did not serve within 1 s and was ended (signal: 9 (SIGKILL))");
}

#[test]
fn what_was_given_up_is_taken_back_where_the_new_process_cannot_serve_after_all() {
    let upgraded = Upgraded::start("");
    // An address of the admin interface that a running process can do without, and one that starts cannot.
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let config = fs::read_to_string(upgraded.path("robotsd.toml")).unwrap();
    let address = taken.local_addr().unwrap();
    let further = format!("{config}[[admin.listener]]\naddress = \"{address}\"\n");
    upgraded.folder.replace("robotsd.toml", further);
    upgraded.running.wait_for_message("config", "cannot listen here");
    fails(&upgraded, "cannot listen here for [admin]");
    upgraded.folder.replace("robotsd.toml", config);
    upgraded.command(&["reload"]);
    // It writes the state directory again.
    assert!(upgraded.command(&["enforce", "off"]).code == Some(0));
    assert_eq!(fs::read_to_string(upgraded.path("state/enforcement")).unwrap().trim(), "off");
    assert!(upgraded.command(&["enforce", "on"]).code == Some(0));
    upgraded.upgraded();
    assert_eq!(upgraded.get("/private/x"), 403);
}

#[test]
fn a_process_that_ends_while_another_prepares_writes_what_went_live_meanwhile() {
    let mut upgraded = Upgraded::start("");
    // It says that it can serve, is given what only one may have, and opens nothing.
    upgraded.replace_program("#!/bin/sh\nprintf '{\"say\":\"prepared\"}' >&0\nexec sleep 60\n");
    upgraded.running.signal("USR2");
    let process = wait_for("the new process", || upgraded.started().first().copied());
    let lock = fs::File::open(upgraded.path("state/lock")).unwrap();
    wait_for("the state directory to be given up", || lock.try_lock().ok());
    lock.unlock().unwrap();
    upgraded.folder.replace("robots.txt", format!("{ROBOTS}Disallow: /new/\n"));
    wait_until("the version to go live", || upgraded.get("/new/x") == 403);
    upgraded.running.end();
    wait_until("the end of the other", || !is_alive(process));
    let kept = run(Command::new("grep").args(["-rlF", "Disallow: /new/"]).arg(upgraded.path("state")));
    assert!(kept.code == Some(0), "the next start finds what was live: {kept:?}");
}

#[test]
fn one_upgrade_at_a_time() {
    let upgraded = Upgraded::start("");
    upgraded.replace_program("#!/bin/sh\nexec sleep 60\n");
    upgraded.running.signal("USR2");
    let first = wait_for("the first", || upgraded.started().first().copied());
    let (code, said) = upgraded.upgrade();
    assert_eq!(code, Some(1), "{said}");
    assert_has(&said, &[&format!("an upgrade is under way already, to process {first}")]);
    assert_eq!(upgraded.json(&["status"])["upgrade"]["state"], "under-way");
    // The new process is killed, and the next upgrade is not held up.
    kill("KILL", first);
    upgraded.running.wait_for_message("upgrade", "(signal: 9");
    upgraded.restore_program();
    upgraded.upgraded();
}

#[test]
fn whichever_process_is_left_serves() {
    let mut upgraded = Upgraded::start("");
    upgraded.running.signal("USR2");
    let process = wait_for("the new process", || upgraded.started().first().copied());
    // It has the sockets before it starts its first thread.
    let tasks = format!("/proc/{process}/task");
    wait_until("its sockets", || fs::read_dir(&tasks).is_ok_and(|threads| threads.count() > 1));
    upgraded.running.kill();
    let address = upgraded.running.address;
    wait_for("the new process to serve", || {
        let mut stream = TcpStream::connect(address).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(b"GET /a.html HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        answer.ends_with("a page").then_some(())
    });
    wait_until("its admin interface", || upgraded.path("admin.sock").exists());
    assert_eq!(upgraded.process(), process);
    // It can be upgraded in turn.
    upgraded.upgraded();
    assert_ne!(upgraded.process(), process);
}

#[test]
fn a_supervisor_learns_of_the_new_process() {
    let folder = folder(&[]);
    let path = folder.at("notify");
    let supervisor = std::os::unix::net::UnixDatagram::bind(&path).unwrap();
    supervisor.set_read_timeout(Some(PATIENCE)).unwrap();
    let upgraded = {
        // The environment of the test is not that of others.
        let config = "[admin]\nsocket = \"admin.sock\"\n[[listener]]\naddress = \"127.0.0.1:0\"\n\
                      [[site]]\nname = \"shop\"\nroot = \"pages\"\nrobots.path = \"robots.txt\"\n";
        let folder =
            crate::harness::folder(&[("robotsd.toml", config), ("robots.txt", ROBOTS), ("pages/a.html", "a page")]);
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_robotsd"), folder.at("robotsd")).unwrap();
        let mut command = Command::new(folder.at("robotsd"));
        command.args(["serve", "--config"]).arg(folder.at("robotsd.toml")).env("NOTIFY_SOCKET", &path);
        Upgraded { running: Running::spawn(&mut command), folder }
    };
    let hears = || {
        let mut message = [0; 1024];
        let length = supervisor.recv(&mut message).unwrap();
        String::from_utf8(message[..length].to_vec()).unwrap()
    };
    let ready = hears();
    assert!(ready.starts_with("READY=1\n"), "{ready}");
    upgraded.upgraded();
    let process = upgraded.process();
    // Of the new process itself, which a supervisor that listens to the main process alone does not hear.
    assert_eq!(hears(), ready);
    assert_eq!(hears(), format!("MAINPID={process}\n{ready}WATCHDOG=1\n"));
    // And that the one before follows it, as soon as that is known.
    kill("KILL", process);
    let follows = hears();
    let before = upgraded.running.id();
    assert!(follows.starts_with(&format!("MAINPID={before}\nSTATUS=process {process} has ended: ")), "{follows}");
    assert_eq!(hears(), ready);
}
