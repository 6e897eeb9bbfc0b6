//! Starting, stopping and running short, under a supervisor or without one.
#![cfg(target_os = "linux")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::harness::{
    ADMIN, Ended, Kept, LISTENER, Origin, PATIENCE, Running, ended, exchange, folder, message, robotsd, run, serving,
    wait_until,
};

const ROBOTS: &str = "# open\n";

fn config(listeners: &str, rest: &str) -> String {
    format!("workers = 2\n{listeners}[[site]]\nname = \"a\"\nroot = \".\"\n{rest}")
}

fn listener(address: SocketAddr) -> String {
    format!("[[listener]]\naddress = \"{address}\"\n")
}

/// A command that becomes robotsd once a shell has done something first.
fn after(first: &str, config: &Path) -> Command {
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("{first}\nexec \"$0\" \"$@\"")).arg(env!("CARGO_BIN_EXE_robotsd"));
    command.args(["serve", "--config"]).arg(config);
    command
}

/// A command that passes a listening socket as a supervisor does: as descriptor 3.
fn passing(socket: &TcpListener, name: &str, config: &Path) -> Command {
    let first = format!("export LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES={name}\nexec 3<&0 0</dev/null");
    let mut command = after(&first, config);
    command.stdin(Stdio::from(OwnedFd::from(socket.try_clone().unwrap())));
    command
}

fn failed(output: Ended) -> String {
    assert_eq!(output.code, Some(2), "{output:?}");
    output.error.clone()
}

/// A request is answered on a connection of its own.
fn serves(address: SocketAddr) {
    let answer = exchange(address, b"GET /robots.txt HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert_eq!((answer.status, &*answer.body), (200, ROBOTS));
}

const ASK: &[u8] = b"GET /robots.txt HTTP/1.1\r\nHost: a\r\n\r\n";

/// A request is answered on a connection on which another may follow.
fn served(kept: &mut Kept) {
    kept.send(ASK);
    let answer = kept.receive();
    assert_eq!((answer.status, &*answer.body), (200, ROBOTS));
}

#[test]
fn a_restart_on_a_passed_socket_refuses_no_connection() {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let folder = folder(&[
        ("robotsd.toml", &config(&listener(address), "[limits]\ngreeting = \"20s\"\n")),
        ("robots.txt", ROBOTS),
    ]);
    let path = folder.at("robotsd.toml");
    let start = || Running::spawn(&mut passing(&socket, "robotsd.socket", &path));
    let mut running = start();
    assert_eq!(running.address, address);
    let (stop, asked) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let mut clients = Vec::new();
        for _ in 0..4 {
            clients.push(scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    serves(address);
                    asked.fetch_add(1, Ordering::Relaxed);
                }
            }));
        }
        let more = |count| {
            let before = asked.load(Ordering::Relaxed);
            wait_until("requests", || asked.load(Ordering::Relaxed) >= before + count);
        };
        more(100);
        for _ in 0..5 {
            running.end();
            // No worker accepts now; clients that connect wait.
            running = start();
            more(100);
        }
        stop.store(true, Ordering::Relaxed);
        clients.into_iter().for_each(|client| client.join().unwrap());
    });
    assert!(asked.load(Ordering::Relaxed) >= 600);
}

#[test]
fn passed_sockets_and_listeners_are_matched_or_said_not_to_be() {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let write = |listeners: &str| folder(&[("robotsd.toml", &config(listeners, "")), ("robots.txt", ROBOTS)]);
    // By name, whatever the address in the config.
    let named = write("[[listener]]\nname = \"web\"\naddress = \"127.0.0.1:1\"\n");
    let running = Running::spawn(&mut passing(&socket, "web", &named.at("robotsd.toml")));
    assert_eq!(running.address, address);
    drop(running);
    // One that nothing is done with would leave clients waiting.
    let extra = write("[[listener]]\naddress = \"127.0.0.1:0\"\n");
    let error = failed(ended(&mut passing(&socket, "web", &extra.at("robotsd.toml")), b""));
    let want =
        format!("robotsd: {address}: the supervisor passed a socket for this, called \"web\", and no [[listener]] has");
    assert!(error.starts_with(&want), "{error}");
    // One that is missing is opened.
    let missing = write(&format!("{}{LISTENER}", listener(address)));
    let running = Running::spawn(&mut passing(&socket, "web", &missing.at("robotsd.toml")));
    running.wait_for_event("supervisor", |line| {
        line["message"] == "127.0.0.1:0: no socket was passed for this listener: it is opened here"
    });
    wait_until("both", || running.events("listening") == 2);
    drop(running);
    // What is no listening socket at all.
    let connection = TcpStream::connect(address).unwrap();
    let mut command = passing(&socket, "web", &missing.at("robotsd.toml"));
    command.stdin(Stdio::from(OwnedFd::from(connection)));
    let error = failed(ended(&mut command, b""));
    assert!(error.contains("(\"web\") is a connection, not a listening socket: write Accept=no"), "{error}");
    let mut command = passing(&socket, "web", &missing.at("robotsd.toml"));
    command.stdin(Stdio::from(OwnedFd::from(UnixDatagram::unbound().unwrap())));
    let error = failed(ended(&mut command, b""));
    assert!(error.contains("(\"web\") is not a stream socket"), "{error}");
    // Meant for another process.
    let mut command = robotsd();
    command.args(["serve", "--config"]).arg(extra.at("robotsd.toml"));
    let running = Running::spawn(command.env("LISTEN_PID", "1").env("LISTEN_FDS", "1"));
    assert_ne!(running.address, address);
}

#[test]
fn a_supervisor_hears_how_it_goes() {
    let folder =
        folder(&[("robotsd.toml", &config("[[listener]]\naddress = \"127.0.0.1:0\"\n", "")), ("robots.txt", ROBOTS)]);
    let path = folder.at("notify");
    let supervisor = UnixDatagram::bind(&path).unwrap();
    supervisor.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut command = robotsd();
    command.args(["serve", "--config"]).arg(folder.at("robotsd.toml"));
    let mut running = Running::spawn(command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "100000"));
    let hears = || {
        let mut message = [0; 1024];
        let length = supervisor.recv(&mut message).unwrap();
        String::from_utf8(message[..length].to_vec()).unwrap()
    };
    let hears_but_pulse = || std::iter::repeat_with(hears).find(|message| message != "WATCHDOG=1\n").unwrap();
    let ready = "READY=1\nSTATUS=serving 1 site on 1 listener\n";
    assert_eq!(hears(), ready);
    for _ in 0..3 {
        assert_eq!(hears(), "WATCHDOG=1\n");
    }
    for _ in 0..2 {
        running.signal("HUP");
        let reloading = hears_but_pulse();
        let time = reloading.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").unwrap_or_else(|| panic!("{reloading}"));
        assert!(time.split('\n').next().unwrap().parse::<u64>().unwrap() > 0, "{reloading}");
        assert_eq!(hears_but_pulse(), ready);
    }
    running.signal("TERM");
    let stopping = hears_but_pulse();
    assert_eq!(stopping, "STOPPING=1\nSTATUS=no new connections; requests under way are finished\n");
    assert!(running.wait_for_end().success());
}

#[test]
fn while_requests_are_finished_it_is_alive_and_not_ready() {
    // An upstream that takes a request and answers when the test lets it.
    let upstream = TcpListener::bind("127.0.0.1:0").unwrap();
    let config = format!(
        "{LISTENER}[[site]]\nname = \"a\"\nupstreams = [\"http://{}\"]\nrobots.text = \"# x\"\n{ADMIN}",
        upstream.local_addr().unwrap()
    );
    let (_folder, mut running) = serving(&[("robotsd.toml", &config)]);
    let admin = running.admin();
    let probe = |path: &str| {
        let answer = exchange(admin, format!("GET {path} HTTP/1.0\r\n\r\n"));
        (answer.status, answer.body)
    };
    assert_eq!(probe("/readyz").0, 200);
    let mut client = TcpStream::connect(running.address).unwrap();
    client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    let (mut taken, _) = upstream.accept().unwrap();
    running.signal("TERM");
    running.event("stopping");
    assert_eq!(probe("/readyz"), (503, "draining: the listeners are closed\n".to_owned()));
    assert_eq!(probe("/livez").0, 200);
    let output = run(robotsd().args(["status", "--admin", &admin.to_string()]));
    assert_eq!(output.code, Some(1));
    assert!(output.out.contains(" is draining for "));
    taken.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone").unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("done"), "{answer}");
    assert!(running.wait_for_end().success());
}

#[test]
fn connections_never_take_more_descriptors_than_there_are() {
    let origin = Origin::start();
    let config = format!(
        "workers = 1\n{LISTENER}[[site]]\nname = \"a\"\nupstreams = [\"http://{origin}\"]\n\
         robots.path = \"robots.txt\"\n[limits]\nconnections = 1000\nkeep_alive = \"1h\"\n"
    );
    let folder = folder(&[("robotsd.toml", &config), ("robots.txt", ROBOTS)]);
    let running = Running::spawn(&mut after("ulimit -n 160", &folder.at("robotsd.toml")));
    let bounded = running.event("connections-bounded")["message"].as_str().unwrap().to_owned();
    assert!(
        bounded.contains("connections, not 1000 as configured: the limit of open files is 160, of which "),
        "{bounded}"
    );
    let places: usize = bounded.split(' ').nth(2).unwrap().parse().unwrap();
    assert!((4..48).contains(&places), "{bounded}");
    // All places taken, and more that take them over.
    let mut kept = Vec::new();
    for _ in 0..places + 8 {
        let mut client = Kept::open(running.address, "a");
        served(&mut client);
        kept.push(client);
    }
    running.wait_for_event("trouble", |line| line["reason"] == "recycled");
    assert!(!running.has_event("trouble", |line| line["reason"] == "accept"), "out of descriptors");
    drop(kept);
    serves(running.address);
}

#[test]
fn idle_connections_make_room_for_new_ones_on_every_worker() {
    let config = "workers = 2\n[[listener]]\naddress = \"127.0.0.1:0\"\n[[site]]\nname = \"a\"\nroot = \".\"\n\
         robots.path = \"robots.txt\"\n[limits]\nconnections = 16\nfirst_byte = \"1h\"\nkeep_alive = \"1h\"\nheader_read = \"1h\"\n";
    let (_folder, running) = serving(&[("robotsd.toml", config), ("robots.txt", ROBOTS)]);
    let started = std::time::Instant::now();
    let mut idle = Vec::new();
    for number in 0..96 {
        let mut client = Kept::open(running.address, "a");
        match number % 3 {
            0 => {}
            1 => {
                served(&mut client);
            }
            _ => client.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0"),
        }
        idle.push(client);
    }
    for _ in 0..32 {
        serves(running.address);
    }
    let event = running.wait_for_event("trouble", |line| line["reason"] == "recycled");
    let message = message(&event);
    assert!(message.starts_with("as many connections are open as may be: the longest idle was closed for a new one"));
    // At most once a second; the first may fall into any.
    let events = running.count("trouble", |line| line["reason"] == "recycled") as u64;
    assert!(events <= started.elapsed().as_secs() + 2, "{events} times in {:?}", started.elapsed());
}

#[test]
fn too_few_descriptors_are_said_at_start() {
    let folder =
        folder(&[("robotsd.toml", &config("[[listener]]\naddress = \"127.0.0.1:0\"\n", "")), ("robots.txt", ROBOTS)]);
    let error = failed(run(&mut after("ulimit -n 70", &folder.at("robotsd.toml"))));
    assert!(error.starts_with("robotsd: the limit of open files is 70, of which "), "{error}");
}

#[test]
fn the_soft_limit_of_open_files_is_raised() {
    let folder =
        folder(&[("robotsd.toml", &config("[[listener]]\naddress = \"127.0.0.1:0\"\n", "")), ("robots.txt", ROBOTS)]);
    let running = Running::spawn(&mut after("ulimit -Sn 100; ulimit -Hn 600", &folder.at("robotsd.toml")));
    running.wait_for_message("connections", "the limit of open files is 600, of which ");
}

#[test]
fn without_descriptors_it_goes_on_serving_and_says_so_seldom() {
    let (_folder, running) =
        serving(&[("robotsd.toml", &config("[[listener]]\naddress = \"127.0.0.1:0\"\n", "")), ("robots.txt", ROBOTS)]);
    let mut kept = Kept::open(running.address, "a");
    served(&mut kept);
    // The limit is lowered from outside while it runs.
    let open = std::fs::read_dir(format!("/proc/{}/fd", running.id())).unwrap().count() as u64;
    let pid = i32::try_from(running.id()).unwrap();
    rlimit::prlimit(pid, rlimit::Resource::NOFILE, Some((open + 4, open + 4)), None).unwrap();
    let start = std::time::Instant::now();
    let mut others: Vec<_> = (0..30).map(|_| Kept::open(running.address, "a")).collect();
    others.iter_mut().for_each(|kept| kept.send(ASK));
    running.wait_for_event("trouble", |line| line["reason"] == "accept");
    for _ in 0..50 {
        served(&mut kept);
    }
    // At most once a second; the first may fall into any.
    let events = running.events("trouble") as u64;
    assert!(events <= start.elapsed().as_secs() + 2, "{events} times in {:?}", start.elapsed());
    // As connections end there is room again.
    drop(others);
    for _ in 0..8 {
        serves(running.address);
    }
}
