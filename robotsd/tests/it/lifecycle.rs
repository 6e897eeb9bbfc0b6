//! Tests how robotsd starts and stops, with and without a supervisor, and with too few resources.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::sync::mpsc;

use crate::harness::*;

const ROBOTS: &str = "# open\n";

fn config() -> Config {
    Config::new().keys("workers = 2").files_of("a").robots(ROBOTS)
}

/// Creates a folder with this config. The listener gets this address.
fn listening_at(address: impl ToString, config: &Config) -> Folder {
    let folder = config.folder();
    folder.configure(config.to_string().replace("127.0.0.1:0", &address.to_string()));
    folder
}

/// Creates a command that runs `first` in a shell, and then replaces the shell with robotsd.
fn after(first: &str, config: &Path) -> Command {
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("{first}\nexec \"$0\" \"$@\"")).arg(env!("CARGO_BIN_EXE_robotsd"));
    command.args(["serve", "--config"]).arg(config);
    command
}

/// Creates a command that passes a listening socket as descriptor 3, like a supervisor.
fn passing(socket: &TcpListener, name: &str, config: &Path) -> Command {
    let first = format!("export LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES={name}\nexec 3<&0 0</dev/null");
    let mut command = after(&first, config);
    command.stdin(Stdio::from(OwnedFd::from(socket.try_clone().unwrap())));
    command
}

/// Checks that a request on a new connection is answered.
fn serves(address: SocketAddr) {
    exchange(address, b"GET /robots.txt HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").comes_with(200, ROBOTS);
}

const ASK: &[u8] = b"GET /robots.txt HTTP/1.1\r\nHost: a\r\n\r\n";

/// Checks that a request on this open connection is answered.
fn served(kept: &mut Kept) {
    kept.send(ASK);
    kept.receive().comes_with(200, ROBOTS);
}

#[test]
fn a_restart_with_a_socket_from_the_supervisor_refuses_no_connection() {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let folder = listening_at(address, &config().tables("[limits]\ngreeting = \"5m\""));
    let path = folder.at("robotsd.toml");
    let start = || Running::spawn(&mut passing(&socket, "robotsd.socket", &path));
    let mut running = start();
    assert_eq!(running.address, address);
    let client = || -> Client<'_> { Box::new(move || serves(address)) };
    while_asking((0..4).map(|_| client()), |asking| {
        asking.wait_for_more(100);
        for _ in 0..5 {
            running.end();
            // No worker accepts connections now, so clients that connect must wait.
            running = start();
            asking.wait_for_more(100);
        }
    });
}

#[test]
fn sockets_from_the_supervisor_are_matched_with_listeners_or_reported() {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    // The socket is used by the listener with the same name, even if the config has another
    // address.
    let named = listening_at("127.0.0.1:1", &config().listener("name = \"web\""));
    let running = Running::spawn(&mut passing(&socket, "web", &named.at("robotsd.toml")));
    assert_eq!(running.address, address);
    drop(running);
    // If nothing used the socket, its clients would wait forever.
    let extra = config().folder();
    let error = ended(&mut passing(&socket, "web", &extra.at("robotsd.toml")), b"").failed(2);
    let want = format!(
        "robotsd: {address}: the supervisor passed a socket for this address (\"web\"), but no \
         [[listener]] and no [admin] address"
    );
    assert!(error.starts_with(&want), "{error}");
    // If no socket is passed for a listener, robotsd opens one.
    let missing = config().folder();
    let first = format!("[[listener]]\naddress = \"{address}\"\n[[listener]]");
    missing.configure(config().to_string().replace("[[listener]]", &first));
    let running = Running::spawn(&mut passing(&socket, "web", &missing.at("robotsd.toml")));
    running.wait_for_event("supervisor", |line| {
        line["message"] == "127.0.0.1:0: the supervisor passed no socket for this listener, so robotsd opens it"
    });
    wait_until("both", || running.events("listening") == 2);
    drop(running);
    // This descriptor is not a listening socket.
    let connection = TcpStream::connect(address).unwrap();
    let mut command = passing(&socket, "web", &missing.at("robotsd.toml"));
    command.stdin(Stdio::from(OwnedFd::from(connection)));
    let error = ended(&mut command, b"").failed(2);
    assert_has(error, &["(\"web\") is a connection, not a listening socket: set Accept=no in the .socket unit"]);
    let mut command = passing(&socket, "web", &missing.at("robotsd.toml"));
    command.stdin(Stdio::from(OwnedFd::from(UnixDatagram::unbound().unwrap())));
    assert_has(ended(&mut command, b"").failed(2), &["(\"web\") is not a stream socket"]);
    // These sockets are meant for another process, so robotsd must ignore them.
    let running = Running::spawn(extra.serve().env("LISTEN_PID", "1").env("LISTEN_FDS", "1"));
    assert_ne!(running.address, address);
}

/// Opens the socket of a supervisor. Each call of the returned function returns the next message.
pub(super) fn supervisor(path: &Path) -> impl Fn() -> String {
    let socket = UnixDatagram::bind(path).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    move || {
        let mut message = [0; 1024];
        let length = socket.recv(&mut message).unwrap();
        String::from_utf8(message[..length].to_vec()).unwrap()
    }
}

#[test]
fn the_supervisor_gets_start_reload_stop_and_watchdog_notifications() {
    let folder = config().folder();
    let path = folder.at("notify");
    let hears = supervisor(&path);
    let mut running = Running::spawn(folder.serve().env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "100000"));
    let hears_but_pulse = || std::iter::repeat_with(&hears).find(|message| message != "WATCHDOG=1\n").unwrap();
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
    let want = "STOPPING=1\nSTATUS=robotsd accepts no new connections, and finishes the requests in progress\n";
    assert_eq!(stopping, want);
    assert!(running.wait_for_end().success());
}

#[test]
fn a_draining_process_is_alive_and_not_ready() {
    // This upstream delays its response until the test sends it a signal.
    let (go, goes) = mpsc::channel();
    let goes = Mutex::new(goes);
    let upstream = Origin::answering(move |_| {
        goes.lock().unwrap().recv().unwrap();
        response("200 OK", &[], "done")
    });
    let (_folder, mut running) = Config::new().upstream("a", &upstream).robots("# x").admin().start();
    let admin = running.admin();
    let probe = |path: &str| {
        let answer = exchange(admin, format!("GET {path} HTTP/1.0\r\n\r\n"));
        (answer.status, answer.body)
    };
    assert_eq!(probe("/readyz").0, 200);
    let client = sent(running.address, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    wait_until("the request", || !upstream.requests().is_empty());
    running.signal("TERM");
    running.event("stopping");
    assert_eq!(probe("/readyz"), (503, "draining: the listeners are closed\n".to_owned()));
    assert_eq!(probe("/livez").0, 200);
    assert_has(running.command(&["status"]).ends_with(1).out, &[" is draining (up for "]);
    go.send(()).unwrap();
    Answer::parse(&rest(client)).comes_with(200, "done");
    assert!(running.wait_for_end().success());
}

#[test]
fn the_connection_limit_is_reduced_to_the_available_file_descriptors() {
    let config = Config::new().keys("workers = 1").upstream("a", Origin::start()).robots(ROBOTS);
    let folder = config.tables("[limits]\nconnections = 1000\nkeep_alive = \"1h\"").folder();
    let running = Running::spawn(&mut after("ulimit -n 160", &folder.at("robotsd.toml")));
    let bounded = running.event("connections-bounded")["message"].as_str().unwrap().to_owned();
    assert_has(&bounded, &["connections are accepted, not 1000 as configured: the limit of open files is 160, and "]);
    let places: usize = bounded.split(' ').nth(2).unwrap().parse().unwrap();
    assert!((4..48).contains(&places), "{bounded}");
    // All connection slots are taken. Further connections displace idle ones.
    let mut kept = Vec::new();
    for _ in 0..places + 8 {
        let mut client = Kept::open(running.address, "a");
        served(&mut client);
        kept.push(client);
    }
    running.wait_for_event("problem", |line| line["reason"] == "recycled");
    assert!(!running.has_event("problem", |line| line["reason"] == "accept"), "out of descriptors");
    drop(kept);
    serves(running.address);
    // A reload must report the limit, too.
    folder.configure(folder.read("robotsd.toml").replace("connections = 1000", "connections = 2000"));
    running.wait_for_message("connections-bounded", "connections are accepted, not 2000 as configured: ");
}

#[test]
fn idle_connections_are_closed_on_every_worker_to_make_room_for_new_ones() {
    let limits = "[limits]\nconnections = 16\nfirst_byte = \"1h\"\nkeep_alive = \"1h\"\nheader_read = \"1h\"";
    let (_folder, running) = config().tables(limits).start();
    let started = Instant::now();
    let mut idle = Vec::new();
    for number in 0..96 {
        let mut client = Kept::open(running.address, "a");
        match number % 3 {
            0 => {}
            1 => served(&mut client),
            _ => client.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0"),
        }
        idle.push(client);
    }
    for _ in 0..32 {
        serves(running.address);
    }
    let event = running.wait_for_event("problem", |line| line["reason"] == "recycled");
    let message = message(&event);
    let want = "the limit of open connections is reached: a connection that was idle for ";
    assert!(message.starts_with(want));
    // The problem is logged at most once per second. The first line may come at any time.
    let events = running.count("problem", |line| line["reason"] == "recycled") as u64;
    assert!(events <= started.elapsed().as_secs() + 2, "{events} times in {:?}", started.elapsed());
}

#[test]
fn robotsd_fails_at_the_start_if_the_limit_of_open_files_is_too_low() {
    let folder = config().folder();
    let error = run(&mut after("ulimit -n 70", &folder.at("robotsd.toml"))).failed(2);
    assert!(error.starts_with("robotsd: the limit of open files is 70, and "), "{error}");
}

#[test]
fn the_soft_limit_of_open_files_is_raised() {
    let folder = config().folder();
    let running = Running::spawn(&mut after("ulimit -Sn 100; ulimit -Hn 600", &folder.at("robotsd.toml")));
    running.wait_for_message("connections", "the limit of open files is 600, and ");
}

#[test]
fn robotsd_serves_open_connections_without_free_descriptors_and_logs_once_per_second() {
    let (_folder, running) = config().start();
    let mut kept = Kept::open(running.address, "a");
    served(&mut kept);
    // While robotsd runs, another program lowers the limit.
    let open = fs::read_dir(format!("/proc/{}/fd", running.id())).unwrap().count() as u64;
    let pid = i32::try_from(running.id()).unwrap();
    rlimit::prlimit(pid, rlimit::Resource::NOFILE, Some((open + 4, open + 4)), None).unwrap();
    let start = Instant::now();
    let mut others: Vec<_> = (0..30).map(|_| Kept::open(running.address, "a")).collect();
    others.iter_mut().for_each(|kept| kept.send(ASK));
    running.wait_for_event("problem", |line| line["reason"] == "accept");
    for _ in 0..50 {
        served(&mut kept);
    }
    // The problem is logged at most once per second. The first line may come at any time.
    let events = running.events("problem") as u64;
    assert!(events <= start.elapsed().as_secs() + 2, "{events} times in {:?}", start.elapsed());
    // When connections end, new ones must be accepted again.
    drop(others);
    for _ in 0..8 {
        serves(running.address);
    }
}
